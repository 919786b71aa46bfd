"""Progress bars: shown for True, replaced by a callback, and named where tqdm is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import evertree as et
from evertree.errors import MissingExtraError, ParameterError

X = np.random.default_rng(0).normal(size=(300, 2))


def test_a_bar_for_a_refinement(capsys):
    h = et.Hierarchy.random(X)
    assert h.refine(seconds=0, progress=True).quality is None
    assert h.refine(progress=True).stable
    shown = capsys.readouterr()
    assert shown.out == ""
    last = shown.err.split("\r")[-1]
    assert last.startswith("Refining: 100%|")
    assert f"{h.n_moves:,} moves, {h.n_grafts:,} grafts" in last


@pytest.mark.parametrize("quiet", [None, False, np.False_])
def test_no_bar(quiet, capsys):
    et.Hierarchy.random(X).refine(progress=quiet)
    assert capsys.readouterr() == ("", "")


def test_a_bar_for_comparisons(capsys):
    h = et.Hierarchy("single", lambda a, b: abs(a - b))
    h.insert([1.0, 2.0, 9.0], progress=True)
    h.update([0], [1.5], progress=True)
    h.upsert([1.5, 7.0], keys=[0, "new"], progress=True)
    shown = capsys.readouterr().err
    for total in (3, 2, 5):
        assert f"{total:.2f}/{total:.2f}" in shown
    assert "Comparing" in shown


def test_the_estimator_is_verbose(capsys):
    et.AnytimeClustering(verbose=True).fit(X)
    shown = capsys.readouterr().err
    assert "Refining" in shown
    assert "Comparing" not in shown  # vectors are not compared by a function
    et.AnytimeClustering().fit(X)
    assert capsys.readouterr().err == ""


def test_ctrl_c_closes_the_bar(capsys, monkeypatch):
    from evertree import edits

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(edits, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        et.Hierarchy.random(X).refine(progress=True)
    assert capsys.readouterr().err.endswith("\n")


def test_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    h = et.Hierarchy.random(X)
    with pytest.raises(MissingExtraError, match=r"progress=True needs tqdm.*pip install 'evertree\[progress\]'"):
        h.refine(progress=True)
    with pytest.raises(MissingExtraError, match="progress=True needs tqdm"):
        h.insert(X[:1], progress=True)


@pytest.mark.parametrize("metric", ["euclidean", lambda a, b: float(abs(a - b).sum())])
def test_bad_callbacks(metric):
    h = et.Hierarchy("single", metric)
    points = list(X[:3]) if callable(metric) else X[:3]
    h.insert(points)
    calls = (h.refine, lambda progress: h.insert(points, progress=progress))
    for call in (*calls, lambda progress: h.update([0], points[:1], progress=progress)):
        with pytest.raises(ParameterError, match="progress must be True, False, None or callable; it is 7"):
            call(progress=7)
    assert len(h) == 3
