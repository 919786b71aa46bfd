"""Databases that cannot be opened, and that no error, log or text ever shows a password."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from urllib.parse import quote, quote_plus

import pytest
import sqlalchemy as sa

import postgres
from evertree.errors import (
    DatabaseError,
    MissingExtraError,
    ParameterError,
    TransientDatabaseError,
)
from evertree.sql import follow
from evertree.sql.engine import display_url, make_engine, mask_secrets
from followed import Source

WRONG = "wr0ng/p@ss:w%rd"


def forms(password: str) -> list[str]:
    return [password, quote(password), quote(password, safe=""), quote_plus(password), quote(password, safe=" +")]


def check_secret(error: BaseException, caplog, *passwords: str) -> None:
    """Neither the error, nor what it carries, nor the log has a password."""
    chain = [error]
    while chain[-1].__cause__ or chain[-1].__context__:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    texts = [text for one in chain for text in (str(one), repr(one), repr(one.args))]
    texts += ["".join(traceback.format_exception(error)), caplog.text]
    for password in passwords:
        for form in forms(password):
            assert not [text for text in texts if form in text]


@pytest.fixture
def server(caplog):
    caplog.set_level(logging.DEBUG)
    return postgres.shared_server()


@pytest.mark.parametrize("table", ["items", "missing"])
def test_a_wrong_password(server, table, caplog):
    with pytest.raises(DatabaseError, match="password authentication failed") as caught:
        follow(server.url(password=WRONG), table, "id", ["x"])
    assert not isinstance(caught.value, TransientDatabaseError)
    check_secret(caught.value, caplog, WRONG)


@pytest.mark.parametrize(
    "end", ["@127.0.0.1:1/name", "@no.such.host.invalid/name", "@127.0.0.1:1/name?connect_timeout=2"]
)
def test_a_server_that_cannot_be_reached(end, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(TransientDatabaseError) as caught:
        follow(f"postgresql://user:{quote(WRONG, safe='')}{end}", "items", "id", ["x"])
    check_secret(caught.value, caplog, WRONG)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hunter2@host:port/name",
        "postgresql://user:hun@ter2@host/name",
        "postgresql://user:hun@ter2:1@host/name",
        "postgresql:///name?host=127.0.0.1&port=1&user=u&password=hunter2",
        "postgresql://127.0.0.1:1/name?password=hunter2&sslpassword=hunter2",
        "postgresql://user:hunter2@127.0.0.1:1/name?no_such_option=1",
        "postgresql://user:hunter2@127.0.0.1:1/name?connect_timeout=hunter2",
        "mysql://user:hunter2@host/name",
        "postgresql+asyncpg://user:hunter2@host/name",
        "nonsense://user:hunter2@host/name",
        "://user:hunter2@host",
        "sqlite://user:hunter2@host/name",
    ],
)
def test_urls_that_cannot_be_used(url, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises((ParameterError, DatabaseError)) as caught:
        follow(url, "items", "id", ["x"])
    check_secret(caught.value, caplog, "hunter2")
    assert "hun@" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_secrets_among_the_options_of_a_url():
    place = sa.make_url("duckdb:///md:name?motherduck_token=hunter2&access_mode=read_only")
    assert mask_secrets("token hunter2 is not valid, read_only", place) == "token *** is not valid, read_only"


@pytest.mark.parametrize("secret", [postgres.PASSWORD, WRONG, "back\\slash 'quote'", "pässwörd", "100%"])
def test_secrets_in_any_form(secret):
    url = sa.URL.create("postgresql", "me", secret, "host", query={"sslpassword": secret})
    for form in (*forms(secret), repr(secret)[1:-1], secret.replace("\\", "\\\\").replace("'", "\\'")):
        assert mask_secrets(f"password={form}!", url) == "password=***!"


def test_a_follower_does_not_show_where_it_is(server, caplog):
    url = server.new_database()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE items (id int PRIMARY KEY, x float8)")
        connection.exec_driver_sql("INSERT INTO items VALUES (1, 0), (2, 1)")
    with follow(url, "items", "id", ["x"], n_clusters=1) as follower:
        assert repr(follower).startswith("Follower('items' of postgresql://127.0.0.1:")
        assert not any(form in repr(follower) for form in [*forms(postgres.PASSWORD), "evertree:"])
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE items")
        with pytest.raises(DatabaseError, match='relation "items" does not exist') as caught:
            follower.poll()
        check_secret(caught.value, caplog, postgres.PASSWORD)
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("no/such/file.db", "there is no file 'no/such/file.db'"),
        ("sqlite:///no/such/file.db", "there is no file"),
        ("duckdb:///no/such/file.db", "there is no file"),
        (":memory:", "url must be of a file"),
        ("sqlite://", "url must be of a file"),
        ("duckdb:///:memory:", "url must be of a file"),
        (3, "it is int"),
        ("", "url must be the URL of a database"),
    ],
)
def test_databases_that_are_not_there(url, message):
    with pytest.raises(ParameterError, match=message):
        follow(url, "items", "id", ["x"])


def test_a_path_is_a_file_of_sqlite(tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0)])
    for path in (tmp_path / "items.db", str(tmp_path / "items.db"), sa.make_url(source.url)):
        follow(path, "items", "id", ["x"], n_clusters=1).close()


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "text.db").write_text("nothing of the kind " * 100)
    with pytest.raises(DatabaseError, match="file is not a database"):
        follow(tmp_path / "text.db", "items", "id", ["x"])


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("postgresql://h/n", "psycopg", "postgresql"), ("duckdb:///md:x", "duckdb_engine", "duckdb")],
)
def test_drivers_that_are_missing(url, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    if extra == "duckdb":
        monkeypatch.setattr(sa.dialects.registry, "load", _no_such_module)
    with pytest.raises(
        MissingExtraError, match=rf"follow needs {module} for this url: pip install 'evertree\[{extra}\]'"
    ):
        follow(url, "items", "id", ["x"])


def _no_such_module(name):
    raise sa.exc.NoSuchModuleError(name)


ADDRESSES = [
    "host=db user=me password=hunter2 dbname=x",
    "host = db password = hunter2",
    "postgresql:/me:hunter2@host/db",
    "postgresql//me:hunter2@h/db",
    "postgresql:me:hunter2@h/db",
    "postgresql:me:hunter2",
    "POSTGRES:hunter2",
    "me:hunter2@h/db",
    "md:db?motherduck_token=hunter2",
    "MD:db?motherduck_token=hunter2",
    "md:hunter2",
    "duckdb:/md:db?motherduck_token=hunter2",
    "duckdb:hunter2",
    "db?hunter2",
    "token hunter2",
    f"me:hunter2@{'h' * 300}/db",  # longer than the name of a file can be
    "hunter2@\0",
    "postgresql:///me:hunter2@host/db",
    "postgresql://host/me:hunter2@host/db",
    "sqlite:///md:db%3Fmotherduck_token=hunter2",
    "sqlite:///file:db%3Fpassword=hunter2",
    "sqlite:///me:hunter2@h/db",
    "duckdb:///host=db password=hunter2",
    "duckdb:///file:db%3Fpassword=hunter2",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_addresses_that_are_no_urls_are_not_shown(url, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as caught:
        follow(url, "items", "id", ["x"])
    check_secret(caught.value, caplog, "hunter2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a@b.db", "token=1?.db", "md:x", "postgres.db", "file:x"])
def test_files_with_unusual_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    for path in (name, tmp_path / name):
        assert make_engine(path).url.database == str(path)


def test_names_in_the_bytes_of_the_file_system(tmp_path):
    (tmp_path / "é.db").touch()
    with os.scandir(os.fsencode(tmp_path)) as entries:
        (entry,) = entries
    assert make_engine(entry).url.database == str(tmp_path / "é.db")


def test_uris_and_databases_elsewhere_are_not_looked_for():
    assert make_engine("sqlite:///file:no.db?mode=ro&uri=true").url.database == "file:no.db"
    assert make_engine("duckdb:///md:name").url.database == "md:name"


def test_a_token_in_the_name_of_a_database():
    place = sa.make_url("duckdb:///md:db%3Fmotherduck_token=hunter2&user=me")
    assert display_url(place) == "duckdb:///md:db"
    assert mask_secrets("md:db?motherduck_token=hunter2&user=me", place) == "md:db?motherduck_token=***&user=me"
