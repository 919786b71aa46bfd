"""``evertree follow``, on SQLite."""

from __future__ import annotations

import json
import logging
import signal
import sqlite3

import pytest

from cli_tools import error_of, run, three_groups, write_database

pytest.importorskip("sqlalchemy", reason="follow needs SQLAlchemy")

from evertree.sql import Follower

TABLE = ["--table", "items", "--key", "id"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a database, which tests are in."""
    write_database(tmp_path / "items.db", three_groups())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERTREE_URL", raising=False)
    return tmp_path


def execute(statement: str) -> list:
    db = sqlite3.connect("items.db")
    try:
        with db:
            return db.execute(statement).fetchall()
    finally:
        db.close()


@pytest.mark.parametrize(
    ("columns", "url"),
    [(["--columns", "x,y"], ["items.db"]), (["--vector", "v"], ["sqlite:///items.db"]), (["--columns", "x, y"], [])],
)
def test_look_once(columns, url, monkeypatch):
    if not url:
        monkeypatch.setenv("EVERTREE_URL", "sqlite:///items.db")
    result = run("follow", *url, *TABLE, *columns, "-k", 3, "--once")
    assert result.stdout.endswith("  30 inserted, 3 events; 30 points\n")
    clusters = dict(execute("SELECT id, n_clusters_3 FROM evertree_items_assignment"))
    assert clusters == {i: i % 3 for i in range(30)}


def test_scores():
    words = ["follow", "items.db", *TABLE, "--columns", "x,y", "-k", 3, "--once"]
    run(*words, "--scores", "displacement")
    scores = [score for (score,) in execute("SELECT score FROM evertree_items_assignment")]
    assert len(scores) == 30
    assert min(scores) > 0
    text = error_of(*words, "--scores", "jump")
    assert "scores must be 'displacement'" in text
    assert text.endswith("give another --prefix, or --reset, which drops these tables")
    assert "'far' is not one of 'jump'" in error_of(*words, "--scores", "far", code=2)


@pytest.mark.parametrize(("seconds", "quality"), [(0, None), (100, 1.0)])
def test_a_quality_that_is_not_measured_is_null(seconds, quality):
    words = ["follow", "items.db", *TABLE, "--columns", "x,y", "--once", "--seconds", seconds, "--json"]
    words += ["--search-width", 4]
    assert json.loads(run(*words).stdout)["quality"] == quality


def test_a_first_look_that_finds_nothing_new():
    words = ["follow", "items.db", *TABLE, "--columns", "x,y", "-k", 3, "--store", "tree.db", "--once"]
    run(*words)
    assert run(*words).stdout.endswith("  nothing new; 30 points\n")


def test_options_reach_the_follower(folder):
    options = ["--linkage", "average", "--metric", "cityblock", "--goal", "homogeneous", "--prefix", "p_"]
    run("follow", "items.db", *TABLE, "--columns", "x,y", "--height", 2.5, *options, "--store", "tree.db", "--once")
    found = json.loads(run("info", "tree.db", "--json").stdout)
    assert (found["linkage"], found["metric"], found["goal"]) == ("average", "cityblock", "homogeneous")
    assert execute("SELECT count(height_2_5) FROM p_assignment") == [(30,)]


def test_other_cuts_than_before():
    words = ["follow", "items.db", *TABLE, "--columns", "x,y", "--once", "-k"]
    run(*words, 3)
    text = error_of(*words, 2)
    assert text.endswith("give another --prefix, or --reset, which drops these tables")
    run(*words, 2, "--reset")
    assert execute("SELECT count(DISTINCT n_clusters_2) FROM evertree_items_assignment") == [(2,)]


def test_a_table_that_is_missing():
    words = ["follow", "items.db", *TABLE, "--columns", "x,y", "--once"]
    run(*words)
    execute("DROP TABLE evertree_items_events")
    assert error_of(*words).endswith("give another --prefix, or --reset, which drops what is there")
    run(*words, "--reset")


def test_ten_clusters_by_default():
    run("follow", "items.db", *TABLE, "--columns", "x,y", "--once")
    assert execute("SELECT count(DISTINCT n_clusters_10) FROM evertree_items_assignment") == [(10,)]


@pytest.fixture
def _two_looks(monkeypatch):
    """The table changes between two looks; a third finds nothing new, and SIGTERM ends the fourth."""

    def loop(self, interval, listen, on_tick, stop, full_every):
        assert interval == 0.5
        execute("DELETE FROM items WHERE id = 3")
        execute("UPDATE items SET x = x + 10, y = y + 10 WHERE id = 0")
        on_tick(self.poll())
        on_tick(self.poll())
        logging.getLogger("evertree.sql").warning("the database is away")
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()

    monkeypatch.setattr(Follower, "run", loop)


@pytest.mark.usefixtures("_two_looks")
def test_a_line_for_each_look():
    words = ["follow", "items.db", *TABLE, "--columns", "x,y", "-k", 3, "--interval", 0.5]
    result = run(*words)
    _, line = result.stdout.splitlines()
    assert "1 updated, 1 removed, 1 moved; 29 points" in line
    assert result.stderr == "evertree: the database is away\n"


@pytest.mark.usefixtures("_two_looks")
def test_json_lines():
    result = run("follow", "items.db", *TABLE, "--columns", "x,y", "-k", 3, "--interval", 0.5, "--json")
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert (first["started"], first["inserted"], first["events"], first["points"]) == (True, 30, 3, 30)
    assert first.keys() - {"started"} == second.keys()
    assert (second["updated"], second["removed"], second["moved"], second["points"]) == (1, 1, 1, 29)
    assert (third["updated"], third["assigned"]) == (0, 0)
    assert {"inserted", "skipped", "events", "seconds", "seconds_clustering", "quality"} < set(third)


def test_the_end_of_the_loop_is_ctrl_c(monkeypatch):
    monkeypatch.setattr(Follower, "run", lambda *_: None)
    run("follow", "items.db", *TABLE, "--columns", "x,y", code=130)


@pytest.mark.parametrize("where", ["argument", "EVERTREE_URL", "--url-env"])
def test_no_text_shows_a_password(where, monkeypatch):
    url = "postgresql://me:hunter2@nowhere.invalid/shop"
    words = []
    if where == "argument":
        words = [url]
    elif where == "--url-env":
        monkeypatch.setenv("SHOP", url)
        words = ["--url-env", "SHOP"]
    else:
        monkeypatch.setenv(where, url)
    for more in ([], ["--help"], ["--linkage", "nonsense"], ["--vector", "v"]):
        code = 0 if "--help" in more else 2 if more else 1
        result = run("follow", *words, *TABLE, "--columns", "x", *more, code=code)
        assert "hunter2" not in result.output


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["nothing.db", "--columns", "x"], "there is no file 'nothing.db'", 1),
        (["items.db", "--columns", "x,z"], "it has no 'z'", 1),
        (["items.db"], "give either --columns or --vector", 2),
        (["--columns", "x"], "name a database, or give --url-env", 2),
        (["--url-env", "NOTHING", "--columns", "x"], "the environment variable NOTHING is not set", 2),
        (["items.db", "--columns", "x", "--store", "no/tree.db"], "must be in a folder that exists", 1),
        (["items.db", "--columns", "x", "--interval", "-1"], "interval", 2),
        (["items.db", "--columns", "x", "--listen", "channel"], "only PostgreSQL has channels", 1),
    ],
)
def test_what_is_wrong_is_said(words, message, code):
    assert message in error_of("follow", *words, *TABLE, code=code)
