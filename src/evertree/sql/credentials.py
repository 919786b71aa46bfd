"""Where a database is, without ever telling the password."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from evertree.errors import MissingExtraError, ParameterError

#: The databases that can be followed: by SQLAlchemy's name the driver, and the extra that brings it.
DRIVERS = {
    "sqlite": ("pysqlite", "sql"),
    "postgresql": ("psycopg", "postgresql"),
    "duckdb": ("duckdb_engine", "duckdb"),
}

#: Parts of the names of options in a URL whose values nobody may see.
_SECRET = ("pass", "pwd", "token", "secret", "key")

#: What the name of a file rarely has or begins with, and what somebody wrote who meant a database with a password.
_PARTS_OF_ADDRESSES = ("@", "=", "?", "token")
_BEGINNINGS_OF_ADDRESSES = ("postgres", "duckdb:", "md:")

_EXPECTED = (
    "url must be the URL of a database, such as 'sqlite:///file.db', 'postgresql://user:password@host/name' or "
    "'duckdb:///file.duckdb', the path of an SQLite file, or an SQLAlchemy engine"
)
_ENCODED = "each '@' of a password written as '%40', and each ':' as '%3A'"


def make_engine(url: Any) -> sa.Engine:
    """An engine for a URL, a path, or an engine, which is taken as it is."""
    if isinstance(url, sa.Engine):
        _check_dialect(url.dialect.name, url.driver)
        return url
    place = _parsed(url)
    _check_file(place)
    options: dict[str, Any] = {"pool_pre_ping": True}
    if place.get_backend_name() != "postgresql":
        # A file stays free for others between polls.
        options = {"poolclass": NullPool}
    try:
        return sa.create_engine(place, hide_parameters=True, **options)
    except (ModuleNotFoundError, sa.exc.NoSuchModuleError):
        driver, extra = DRIVERS[place.get_backend_name()]
        raise MissingExtraError(f"follow needs {driver} for this url: pip install 'evertree[{extra}]'") from None
    except Exception as error:  # of several kinds
        reason = scrubbed(str(error), place)
    # Outside of the block, so that the error does not carry the one that has the password.
    raise ParameterError(f"{_EXPECTED}; SQLAlchemy refuses it: {reason}")


def _parsed(url: Any) -> sa.URL:
    """A URL with the driver that is used. Errors show nothing of a text that cannot be parsed."""
    if isinstance(url, sa.URL):
        return _with_driver(url)
    if isinstance(url, os.PathLike) or (isinstance(url, str) and url and "://" not in url):
        name = os.fsdecode(url)
        if _may_tell(name) and not os.path.exists(name):
            raise ParameterError(f"{_EXPECTED}; it is neither a URL nor a file that exists")
        return sa.URL.create("sqlite", database=name)
    if not isinstance(url, str):
        raise ParameterError(f"{_EXPECTED}; it is {type(url).__name__}")
    backend, _, rest = url.partition("://")
    if backend.startswith("postgres") and rest.partition("?")[0].count("@") > 1:
        raise ParameterError(f"url must have {_ENCODED}")
    place = None
    with suppress(Exception):  # of several kinds, with parts of the text
        place = sa.make_url(url)
    if place is None:
        raise ParameterError(f"{_EXPECTED}; it cannot be parsed: it must have {_ENCODED}")
    if backend.startswith("postgres") and place.username is None and "@" in rest.partition("?")[0]:
        # A slash too many: the password would be part of the name of the database.
        raise ParameterError(f"{_EXPECTED}; it has an '@' that no user stands before")
    return _with_driver(place)


def _may_tell(name: str) -> bool:
    """Whether what was given for the name of a file may be an address, with a password in it."""
    has_part = any(part in name.lower() for part in _PARTS_OF_ADDRESSES)
    return has_part or name.lower().startswith(_BEGINNINGS_OF_ADDRESSES)


def _with_driver(place: sa.URL) -> sa.URL:
    backend, _, driver = place.drivername.partition("+")
    backend = "postgresql" if backend == "postgres" else backend
    _check_dialect(backend, driver)
    return place.set(drivername="postgresql+psycopg") if backend == "postgresql" else place


def _check_dialect(backend: str, driver: str) -> None:
    wanted = DRIVERS.get(backend, ("",))[0]
    if backend not in DRIVERS or driver not in ("", wanted):
        known = "sqlite, postgresql (with psycopg) or duckdb"
        raise ParameterError(f"url must be one of {known}; it is {backend}{'+' + driver if driver else ''}")


def _check_file(place: sa.URL) -> None:
    """Refuse a database that is not there before a driver makes an empty one."""
    name, kind = place.database or "", place.get_backend_name()
    is_elsewhere = kind == "duckdb" and name.startswith("md:")
    is_uri = kind == "sqlite" and name.startswith("file:") and "uri" in place.query
    if kind == "postgresql" or is_elsewhere or is_uri:
        return
    if name in ("", ":memory:"):
        raise ParameterError(
            "url must be of a file, because a database in memory is gone with its connection: pass the engine that "
            "keeps it, sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.StaticPool)"
        )
    if not os.path.exists(name):  # unlike Path.exists, never an error that has the name
        which = "such file" if _may_tell(name) else f"file {name!r}"
        raise ParameterError(f"url must be of a database that exists; there is no {which}")


def shown(place: sa.URL) -> str:
    """A URL without user, password and options."""
    port = f":{place.port}" if place.port else ""
    name = (place.database or "").partition("?")[0]
    return f"{place.get_backend_name()}://{place.host or ''}{port}/{name}"


def scrubbed(text: str, place: sa.URL) -> str:
    """A text with stars instead of every form of every secret of a URL."""
    forms = {
        form
        for secret in _secrets(place)
        for form in (
            secret,
            quote(secret),
            quote(secret, safe=""),
            quote(secret, safe=" +"),  # as SQLAlchemy writes it
            quote_plus(secret),
            repr(secret)[1:-1],
            json.dumps(secret)[1:-1],
        )
        if form
    }
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def _secrets(place: sa.URL) -> Iterator[str]:
    if place.password:
        yield str(place.password)
    options = [(name, value) for name, values in place.normalized_query.items() for value in values]
    options += parse_qsl((place.database or "").partition("?")[2])  # which DuckDB takes too
    for name, value in options:
        if any(part in name.lower() for part in _SECRET):
            yield value
