"""What `follow` refuses, and that no error, log or text ever shows a password."""

from __future__ import annotations

import logging
import sys
import traceback
from urllib.parse import quote, quote_plus

import pytest
import sqlalchemy as sa

import evertree as et
import postgres
from evertree.errors import (
    DatabaseError,
    EvertreeError,
    MissingExtraError,
    ParameterError,
    TransientDatabaseError,
)
from evertree.sql import follow
from evertree.sql.credentials import scrubbed
from evertree.sql.settings import checked_cuts
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
    assert scrubbed("token hunter2 is not valid, read_only", place) == "token *** is not valid, read_only"


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


def test_a_window_is_refused(tmp_path):
    """The table says which points there are."""
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0), (2, 1.0, 1.0)])
    with source.follow(store=tmp_path / "tree.db", n_clusters=1) as follower:
        follower.hierarchy.keep(last=5)
        with pytest.raises(ParameterError, match=r"must have no window; it has Window\(last=5, .*lift it by keep\(\)"):
            follower.poll()
    with pytest.raises(ParameterError, match="must have no window"):
        source.follow(store=tmp_path / "tree.db", n_clusters=1)
    with et.open(tmp_path / "tree.db") as h:
        h.keep()
    with source.follow(store=tmp_path / "tree.db", n_clusters=1) as follower:
        assert len(follower.hierarchy) == 2


def test_a_closed_follower(tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0)])
    follower = source.follow()
    follower.close()
    follower.close()
    assert repr(follower).endswith("items.db): closed")
    with pytest.raises(ParameterError, match="must not be closed"):
        follower.poll()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "nothing"}, "table must be a table or a view of the database; there is no 'nothing'"),
        ({"table": 3}, "table must be a name; it is 3"),
        (
            {"key": "nothing"},
            "key must be of the table 'items', which has 'id', 'x', 'y', 'version'; it has no 'nothing'",
        ),
        ({"key": ["id", "x"]}, "key must be a name"),
        ({"columns": ["x", "no"]}, "columns must be of the table 'items', .* it has no 'no'"),
        ({"columns": []}, "columns must be a list of names"),
        ({"columns": ["x", "x"]}, "columns must differ"),
        ({"columns": None}, "it got neither"),
        ({"vector": "x"}, "it got both"),
        ({"columns": None, "vector": "no"}, "vector must be of the table"),
        ({"version": "no"}, "version must be of the table"),
        ({"n_clusters": None}, "follow takes n_clusters, height or min_cluster_size; it got none"),
        ({"n_clusters": 0}, "n_clusters must be a positive integer; it is 0"),
        ({"n_clusters": "3"}, "n_clusters must be a number or a collection of numbers"),
        ({"height": -1}, "height must be a non-negative number"),
        ({"min_cluster_size": 0}, "min_cluster_size must be a positive integer"),
        ({"metric": "precomputed", "linkage": "average"}, "metric must compare rows"),
        ({"linkage": "best"}, "linkage must be"),
        ({"linkage": "ward", "metric": "cosine"}, "Ward needs Euclidean geometry"),
        ({"metric": "mahalanobis", "metric_params": {"VI": [[1.0]]}}, "must be 2 × 2"),
        ({"dtype": "int8"}, "dtype must be None, 'float32' or 'float64'; it is 'int8'"),
        ({"chunk": 0}, "chunk must be a positive integer"),
        ({"seconds": -1}, "seconds must be None or a non-negative number"),
        ({"prefix": ""}, "prefix must be None or a name"),
        ({"scores": "far"}, "scores must be 'jump' or 'displacement'; it is 'far'"),
        ({"key": "score", "scores": "jump"}, "key must not have the name of a column that is written; 'score' is one"),
        ({"key": "n_clusters_3"}, "key must not have the name of a column that is written"),
    ],
)
def test_parameters_that_are_refused(options, message, tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0)])
    with pytest.raises(EvertreeError, match=message):
        source.follow(**options)


def test_a_name_that_the_database_would_cut_off():
    url = postgres.shared_server().new_database()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {'t' * 50} (id int, x float8)")
    engine.dispose()
    with pytest.raises(ParameterError, match="prefix must be so short that names have at most 63 bytes"):
        follow(url, "t" * 50, "id", ["x"])


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


def test_names_of_cuts_differ():
    heights = [2.5, 2, 0.00001, 1e16, 1e-16, 1.5e-7, 25, 2.05]
    names = [cut.name for cut in checked_cuts([2, 3], heights, None)]
    assert names[:6] == ["n_clusters_2", "n_clusters_3", "height_2_5", "height_2", "height_1e_05", "height_1e16"]
    assert len(set(names)) == len(names) == 10
    assert all(name.replace("_", "").isalnum() for name in names)
    assert len(checked_cuts([2, 2, 2], [1, 1.0], None)) == 2
