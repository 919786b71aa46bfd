"""SQLAlchemy engines for the databases that can be followed, and texts without their passwords."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from evertree.errors import MissingExtraError, ParameterError

#: The databases that can be followed: SQLAlchemy's name, the driver, and the extra that installs it.
DRIVERS = {
    "sqlite": ("pysqlite", "sql"),
    "postgresql": ("psycopg", "postgresql"),
    "duckdb": ("duckdb_engine", "duckdb"),
}

#: Options of a URL whose names contain one of these are secret.
_SECRET_OPTIONS = ("pass", "pwd", "token", "secret", "key")

#: What a missing file may be instead: a mistyped address of a database, with a password.
_MAY_BE_ADDRESS = re.compile(r"[@=?]|token|^(postgres|duckdb:|md:)", re.IGNORECASE)

_EXPECTED = (
    "url must be the URL of a database, such as 'sqlite:///file.db', 'postgresql://user:password@host/name' or "
    "'duckdb:///file.duckdb', the path of an SQLite file, or an SQLAlchemy engine"
)


def make_engine(url: Any) -> sa.Engine:
    """An engine for a URL or a path; an engine is returned as it is."""
    if isinstance(url, sa.Engine):
        _check_driver(url.dialect.name, url.driver)
        return url
    parsed = _parse(url)
    _check_file(parsed)
    options: dict[str, Any] = {"pool_pre_ping": True}
    if parsed.get_backend_name() != "postgresql":
        options = {"poolclass": NullPool}  # between polls, the file is free for others
    try:
        return sa.create_engine(parsed, hide_parameters=True, **options)
    except (ModuleNotFoundError, sa.exc.NoSuchModuleError):
        driver, extra = DRIVERS[parsed.get_backend_name()]
        raise MissingExtraError(f"follow needs {driver} for this url: pip install 'evertree[{extra}]'") from None
    except Exception as error:  # drivers raise many kinds
        reason = mask_secrets(str(error), parsed)
    # Raised outside the except block: the original error, which may show the password, is not its context.
    raise ParameterError(f"{_EXPECTED}; SQLAlchemy refuses it: {reason}")


def _parse(url: Any) -> sa.URL:
    """A URL that names the driver. Errors show nothing of a text that cannot be parsed."""
    if isinstance(url, os.PathLike) or (isinstance(url, str) and url and "://" not in url):
        return sa.URL.create("sqlite", database=os.fsdecode(url))
    if not isinstance(url, (str, sa.URL)):
        raise ParameterError(f"{_EXPECTED}; it is {type(url).__name__}")
    parsed = None
    with suppress(Exception):  # they show parts of the text
        parsed = sa.make_url(url)
    if parsed is None:
        raise ParameterError(f"{_EXPECTED}; it cannot be parsed: write '@' in a password as '%40', and ':' as '%3A'")
    backend, _, driver = parsed.drivername.partition("+")
    backend = "postgresql" if backend == "postgres" else backend
    _check_driver(backend, driver)
    if backend != "postgresql":
        return parsed
    if isinstance(url, str):
        address = url.partition("://")[2].partition("?")[0]
        if address.count("@") > (parsed.username is not None):  # part of a password would be taken for a host or name
            raise ParameterError(f"{_EXPECTED}; it has an '@' too many: write '@' in a password as '%40'")
    return parsed.set(drivername="postgresql+psycopg")


def _check_driver(backend: str, driver: str) -> None:
    if backend not in DRIVERS or driver not in ("", DRIVERS[backend][0]):
        name = f"{backend}+{driver}" if driver else backend
        raise ParameterError(f"url must be one of sqlite, postgresql (with psycopg) or duckdb; it is {name}")


def _check_file(url: sa.URL) -> None:
    """Refuse a file that does not exist: drivers would create it."""
    name, backend = url.database or "", url.get_backend_name()
    is_remote = backend == "postgresql" or (backend == "duckdb" and name.startswith("md:"))
    is_uri = backend == "sqlite" and name.startswith("file:") and "uri" in url.query
    if is_remote or is_uri:
        return
    if name in ("", ":memory:"):
        raise ParameterError(
            "url must be of a file, because a database in memory is gone with its connection: pass the engine that "
            "keeps it, sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.StaticPool)"
        )
    if not os.path.exists(name):  # unlike Path.exists, it raises nothing that has the name
        if _MAY_BE_ADDRESS.search(name):
            raise ParameterError(f"{_EXPECTED}; it is neither a URL nor a file that exists")
        raise ParameterError(f"url must be of a database that exists; there is no file {name!r}")


def display_url(url: sa.URL) -> str:
    """A URL without user, password and options.

    SQLAlchemy's ``render_as_string(hide_password=True)`` hides one of the places that a password can be in: not
    ``?password=`` and not DuckDB's ``md:name?motherduck_token=``.
    """
    port = f":{url.port}" if url.port else ""
    name = (url.database or "").partition("?")[0]
    return f"{url.get_backend_name()}://{url.host or ''}{port}/{name}"


def mask_secrets(text: str, url: sa.URL) -> str:
    """A driver's message with stars instead of the passwords of a URL, whether plain, escaped or percent-encoded."""
    for secret in sorted(_secrets(url), key=len, reverse=True):
        forms = [{char, f"\\{char}", quote(char, safe=""), quote_plus(char)} for char in secret]
        pattern = "".join(f"(?:{'|'.join(map(re.escape, sorted(form, key=len, reverse=True)))})" for form in forms)
        text = re.sub(pattern, "***", text)
    return text


def _secrets(url: sa.URL) -> Iterator[str]:
    options = [("password", str(url.password or ""))]
    options += [(name, value) for name, values in url.normalized_query.items() for value in values]
    options += parse_qsl((url.database or "").partition("?")[2])  # DuckDB takes options there, too
    for name, value in options:
        if value and any(part in name.lower() for part in _SECRET_OPTIONS):
            yield value
