"""Where a database is, without ever telling the password."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

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
        return sa.URL.create("sqlite", database=os.fspath(url))
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
    return _with_driver(place)


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
    name = place.database or ""
    if place.get_backend_name() == "postgresql" or name.startswith(("file:", "md:")):
        return
    if name in ("", ":memory:"):
        raise ParameterError(
            "url must be of a file, because a database in memory is gone with its connection: pass the engine that "
            "keeps it, sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.StaticPool)"
        )
    if not Path(name).exists():
        raise ParameterError(f"url must be of a database that exists; there is no file {name!r}")


def shown(place: sa.URL) -> str:
    """A URL without user, password and options."""
    port = f":{place.port}" if place.port else ""
    return f"{place.get_backend_name()}://{place.host or ''}{port}/{place.database or ''}"


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
    for name, values in place.normalized_query.items():
        if any(part in name.lower() for part in _SECRET):
            yield from values
