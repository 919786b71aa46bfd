"""The stories of the documentation: what their pages claim holds, with smaller data where that makes it quicker.

`make docs` runs the scripts as they stand. Here their functions are taken out of them.
"""

from __future__ import annotations

import ast
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import evertree as et

STORIES = Path(__file__).parents[1] / "examples" / "stories"

pytestmark = pytest.mark.slow


def story(name: str) -> SimpleNamespace:
    """The imports, constants and functions of a story, without what it does with them."""
    pytest.importorskip("matplotlib", reason="the stories draw")
    path = STORIES / f"plot_{name}.py"
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    parsed.body = [statement for statement in parsed.body if defines(statement)]
    names: dict = {}
    exec(compile(parsed, path.name, "exec"), names)
    return SimpleNamespace(**names)


def defines(statement: ast.stmt) -> bool:
    """Whether it is an import, a function, or gives values to constants."""
    if isinstance(statement, ast.Assign | ast.AugAssign):
        names = [
            node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        return all(name.isupper() and len(name) > 1 for name in names)
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef)


def test_there_are_five_stories_and_a_page_that_names_them():
    scripts = sorted(path.stem for path in STORIES.glob("plot_*.py"))
    page = (STORIES.parents[1] / "docs" / "stories.md").read_text(encoding="utf-8")
    assert len(scripts) == 5
    assert [name for name in scripts if f"(gallery/stories/{name}.rst)" not in page] == []


@pytest.mark.parametrize("seed", [2, 3])  # 3 is that of the page
def test_topics_of_the_news_keep_their_numbers(seed):
    pytest.importorskip("pandas", reason="changes are tables of pandas")
    news = story("news")
    days = news.news(seed)
    partitions, changes, _ = news.follow_topics(days)
    about = np.concatenate([names for _, names in days])
    numbers = {}
    for partition in partitions:
        for topic in set(about[partition.keys]) - {""}:
            labels = partition.labels[about[partition.keys] == topic]
            if (labels >= 0).sum() > 12:
                numbers.setdefault(topic, []).append(np.bincount(labels[labels >= 0]).argmax())
    assert all(len(set(numbers[topic])) == 1 for topic in ("elections", "health", "football", "flood", "gas"))
    assert numbers["gas"][-1] == numbers["energy"][0]
    assert numbers["nuclear power"][0] == numbers["energy"][0] != numbers["nuclear power"][-1]

    events = [(day, row.event, row.id) for day, table in enumerate(changes, 1) for row in table.itertuples()]
    flood = int(numbers["flood"][0])
    assert (news.FLOOD, "born", flood) in events
    assert [event[1:] for event in events if event[1] == "died"] == [("died", flood)]
    [(day, _, split)] = [event for event in events if event[1] == "split"]
    assert split == numbers["energy"][0]
    assert day >= news.PARTING


def test_misspelt_names_are_one_customer_and_numbers_stay(tmp_path):
    pytest.importorskip("sqlalchemy", reason="tables are followed with SQLAlchemy")
    names = story("names")
    rows = names.registrations(n_people=60, n_again=60, seed=1)
    db = sqlite3.connect(tmp_path / "shop.db")
    with db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, first TEXT, last TEXT)")
        db.executemany(names.ADD, [row[:2] for row in rows[:90]])
    with names.follow(tmp_path / "shop.db") as follower:
        before = names.assignments(db)
        with db:
            db.executemany(names.ADD, [row[:2] for row in rows[90:]])
        assert follower.poll().inserted == 30
        after = names.assignments(db)
    with names.follow(tmp_path / "shop.db"):
        assert names.assignments(db) == after
    db.close()
    assert {key: after[key] for key in before} == before
    assert names.checked([person for _, _, person in rows], [after[key] for key in sorted(after)]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("one", "other", "errors"),
    [("", "abc", 3), ("anna", "anna", 0), ("anna", "ana", 1), ("maria", "mraia", 1), ("johanna", "johannes", 2)],
)
def test_typing_errors_are_counted(one, other, errors):
    assert story("names").typing_errors(one, other) == errors


def test_the_sensor_raises_alarms_for_what_is_new_and_not_for_the_summer():
    sensor = story("sensor")
    day, X = sensor.readings(seed=1)
    _, _, alarms = sensor.watch(X)
    raised = np.array(list(alarms))
    before, after = raised[day[raised] < sensor.BROKEN], raised[day[raised] >= sensor.BROKEN]
    assert before.tolist() == [int(moment * sensor.A_DAY) for moment in sensor.LOOSE]
    assert day[after[0]] < sensor.BROKEN + 1 / 24
    assert day[after].max() < sensor.BROKEN + 3

    _, _, fixed = sensor.watch(X, follows=False)
    assert np.count_nonzero(day[list(fixed)] < sensor.BROKEN) > 10 * len(before)


def test_the_tree_of_many_vectors_gets_better_over_time():
    million = story("million")
    X, kind = million.vectors(12_000, seed=1)
    h, seconds, purity = million.over_time(X, kind, slice_of_insertion=2.0)
    assert len(h) == len(X)
    assert h.is_monotone()
    assert (np.diff(seconds) > 0).all()
    assert purity[-1] > purity[0] + 0.1
    assert np.diff(purity).min() > -0.02


def test_the_tree_that_was_adopted_is_as_good_as_one_made_anew():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    adopted = story("adopted_tree")
    images, digits = adopted.scans(seed=1)
    h = et.Hierarchy.from_linkage(adopted.linkage(images[:600], "ward"), images[:600])
    purity, Z = adopted.compare(h, images, digits, n_days=5)
    assert h.keys()[:1] == [100]
    assert len(h) == 650 == len(Z) + 1
    assert purity.min() > 0.7
    assert abs(np.diff(purity).mean()) < 0.02
