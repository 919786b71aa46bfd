"""How far the rows of a followed table stand apart."""

from __future__ import annotations

import json

import pytest

import evertree as et
from evertree.errors import ParameterError
from followed import DATABASES, Source, fail_once

#: A group of 20 rows, and one by itself.
ROWS = [(key, key % 5, key // 5) for key in range(20)] + [(20, 60.0, 60.0)]


@pytest.fixture(params=DATABASES)
def source(request, tmp_path):
    made = Source(request.param, tmp_path)
    made.insert(ROWS)
    return made


@pytest.fixture
def sqlite_source(tmp_path):
    made = Source("sqlite", tmp_path)
    made.insert(ROWS)
    return made


def scores_of(h: et.Hierarchy, measure: str = "jump") -> dict:
    return dict(zip(h.keys(), h.anomaly_scores(measure=measure).tolist(), strict=True))


def change(source: Source) -> None:
    """A new row far off, and one that changes without leaving its cluster."""
    source.insert([(30, -90.0, 0.0, 1)])
    source.execute("UPDATE items SET x = x + 0.25, version = 1 WHERE id = 7")


@pytest.mark.parametrize("version", [None, "version"])
def test_rows_that_come_or_change_get_a_score(source, version):
    with source.follow(scores="jump", version=version, n_clusters=2) as follower:
        first = source.assignment("score")
        assert first == scores_of(follower.hierarchy)
        assert max(first, key=first.get) == 20
        source.execute("UPDATE items SET version = 1 WHERE id = 3")  # it does not change
        change(source)
        tick = follower.poll()
        assert (tick.inserted, tick.updated) == (1, 1)
        now, written = scores_of(follower.hierarchy), source.assignment("score")
        assert now[0] != first[0]
        assert written == {**first, 7: now[7], 30: now[30]}
        source.execute("DELETE FROM items WHERE id = 20")
        follower.poll()
        assert source.assignment("score") == {key: score for key, score in written.items() if key != 20}
        assert follower.poll().assigned == 0


def test_rows_in_another_cluster_keep_their_score(source):
    with source.follow(scores="displacement", n_clusters=2) as follower:
        first, labels = source.assignment("score"), source.assignment("n_clusters_2")
        assert first == scores_of(follower.hierarchy, "displacement")
        source.execute("DELETE FROM items WHERE id = 20")  # the group falls apart
        assert follower.poll().assigned > 1
        now = source.assignment("n_clusters_2")
        assert any(now[key] != labels[key] for key in now)
        assert source.assignment("score") == {key: first[key] for key in now}


def test_scores_after_a_restart(source, tmp_path):
    """A tree that is made anew has got all rows; one from a file, those that have changed."""
    source.follow(scores="jump").close()
    first = source.assignment("score")
    change(source)
    with source.follow(scores="jump") as follower:
        assert source.assignment("score") == scores_of(follower.hierarchy) != first
    source.follow(scores="jump", store=tmp_path / "tree.evertree").close()
    before = source.assignment("score")
    source.insert([(31, 300.0, 300.0)])
    with source.follow(scores="jump", store=tmp_path / "tree.evertree") as follower:
        now = scores_of(follower.hierarchy)
        assert now[0] != before[0]
        assert source.assignment("score") == {**before, 31: now[31]}


def test_a_poll_that_failed_is_made_up_for(sqlite_source, monkeypatch):
    with sqlite_source.follow(scores="jump") as follower:
        first = sqlite_source.assignment("score")
        change(sqlite_source)
        fail_once(follower, monkeypatch)
        assert sqlite_source.assignment("score") == first
        assert follower.poll().updated == 0  # the tree has it already
        now = scores_of(follower.hierarchy)
        assert sqlite_source.assignment("score") == {**first, 7: now[7], 30: now[30]}


def test_a_point_that_the_tree_has_and_the_tables_lack(sqlite_source, tmp_path):
    """As where a process is killed between the commit of the one and of the others."""
    path = tmp_path / "tree.evertree"
    sqlite_source.follow(scores="jump", store=path).close()
    sqlite_source.insert([(30, -90.0, 0.0)])
    with et.open(path) as h:
        h.insert([[-90.0, 0.0]], keys=[30])
    with sqlite_source.follow(scores="jump", store=path) as follower:
        assert follower.last.inserted == 0
        assert sqlite_source.assignment("score")[30] == scores_of(follower.hierarchy)[30]


def test_a_key_that_is_gone_before_it_is_scored(sqlite_source, monkeypatch):
    with sqlite_source.follow(scores="jump") as follower:
        change(sqlite_source)
        fail_once(follower, monkeypatch)
        sqlite_source.execute("DELETE FROM items WHERE id IN (7, 30)")
        follower.poll()
        assert sqlite_source.assignment("score").keys() == {row[0] for row in ROWS} - {7}
        sqlite_source.execute("DELETE FROM items")
        follower.poll()
        assert sqlite_source.assignment("score") == {}


def test_tables_without_scores(source):
    """Those of an earlier version do not name them; the others do."""
    source.follow().close()
    settings = json.loads(source.execute("SELECT settings FROM evertree_items_state")[0][0])
    del settings["scores"]
    source.execute("UPDATE evertree_items_state SET settings = :s", {"s": json.dumps(settings)})
    with pytest.raises(ParameterError, match=r"scores must be None, .* give another prefix=, or reset=True"):
        source.follow(scores="jump")
    source.follow().close()
    source.follow(scores="jump", reset=True).close()
    assert None not in source.assignment("score").values()
    with pytest.raises(ParameterError, match=r"scores must be 'jump', as when .* it is 'displacement'"):
        source.follow(scores="displacement")
