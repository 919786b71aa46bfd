"""Any sequence of edits, refinements and round trips keeps the tree valid, and homogeneous where that is promised."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import evertree as et
import naive
from evertree import Hierarchy
from helpers import SCHEMES, definition, nested

# Few different values, so that ties and duplicates are common; huge, tiny and awkward ones among them.
ORDINARY = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 0.1, 1 / 3, 0.30000000000000004])
EXTREME = st.sampled_from([1e149, -1e149, 1e-150, 1e10, 1e-10]) | st.floats(-1e6, 1e6)
SCHEME = st.sampled_from(SCHEMES)
CONSTANT = st.none() | st.sampled_from([3.0, 1e7, 1.7e18])  # what the first column always is
OPTIONS = st.sampled_from([{"goal": "homogeneous"}, {}, {"search_width": 4}, {"search_width": None}])
N_COLUMNS = 2


def rows(values, least=0, most=6):
    shape = st.integers(least, most).map(lambda k: (k, N_COLUMNS))
    return npst.arrays(np.float64, shape, elements=values)


ROWS = rows(ORDINARY) | rows(ORDINARY | EXTREME)


def params(metric):
    return {"VI": np.array([[2.0, 0.5], [0.5, 1.0]])} if metric == "mahalanobis" else None


class Edits(RuleBasedStateMachine):
    """A hierarchy beside a dictionary of the points that it should hold."""

    @initialize(scheme=SCHEME, dtype=st.sampled_from([np.float64, np.float32]), constant=CONSTANT, options=OPTIONS)
    def start(self, scheme, dtype, constant, options):
        linkage, metric = scheme
        self.options = options
        self.h = Hierarchy(linkage, metric, metric_params=params(metric), **options)
        self.points: dict = {}
        self.dtype, self.constant = dtype, constant
        self.promised = True
        self.n_named = 0

    def prepared(self, x):
        """As the hierarchy can take it: no zero rows, and nothing that float32 cannot hold."""
        if self.constant is not None:
            x[:, 0] = self.constant
        x[:, 1] = np.where(np.abs(x).max(axis=1, initial=0) == 0, 1.0, x[:, 1])
        if self.dtype == np.float32:
            x = np.clip(x, -1e38, 1e38)
            x[(x != 0) & (np.abs(x) < 1e-37)] = 1.0
        return x.astype(self.dtype)

    def some_keys(self, data, most=4):
        return data.draw(st.lists(st.sampled_from(list(self.points)), max_size=most, unique=True))

    @rule(x=ROWS, named=st.booleans(), data=st.data())
    def insert(self, x, named, data):
        x = self.prepared(x)
        keys = None
        if named:
            keys = [f"point {self.n_named + i}" for i in range(len(x))]
            self.n_named += len(x)
        weights = data.draw(
            st.none() | st.lists(st.sampled_from([1.0, 0.5, 3.0, 1e6]), min_size=len(x), max_size=len(x))
        )
        added = self.h.insert(x, keys=keys, sample_weight=weights)
        assert keys is None or added == keys
        assert not set(added) & set(self.points)
        self.points.update(zip(added, x, strict=True))
        self.promised = self.promised or len(x) > 0

    @precondition(lambda self: self.points)
    @rule(data=st.data())
    def remove(self, data):
        keys = self.some_keys(data)
        self.h.remove(keys)
        for key in keys:
            del self.points[key]
        self.promised = self.promised or len(keys) > 0

    @precondition(lambda self: self.points)
    @rule(data=st.data())
    def update(self, data):
        keys = self.some_keys(data)
        x = self.prepared(data.draw(rows(ORDINARY | EXTREME, len(keys), len(keys))))
        self.h.update(keys, x)
        self.points.update(zip(keys, x, strict=True))
        self.promised = self.promised or len(keys) > 0

    @rule(moves=st.integers(0, 3))
    def refine_a_little(self, moves):
        report = self.h.refine(moves=moves)
        assert report.moves + report.grafts <= moves
        self.promised = self.promised and report.pending == 0  # a graft may wait for the moves that follow it

    @rule(until=st.sampled_from(["stable", "homogeneous", None]))
    def refine(self, until):
        report = self.h.refine(until=until)
        assert report.stopped_by == (until or self.h.goal)
        if until == "homogeneous":
            assert self.h.violations().size == 0
        if report.certified:
            assert self.h.is_stable()
        self.promised = (until or self.h.goal) == self.h.goal or self.h.linkage != "ward"

    @rule(scheme=SCHEME)
    def change_scheme(self, scheme):
        linkage, metric = scheme
        report = self.h.set_linkage(linkage, metric=metric, metric_params=params(metric))
        assert report.stable if self.h.goal == "stable" else report.homogeneous
        self.promised = True

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tree"
            self.h.save(path)
            twin = et.load(path)
        assert twin.keys() == self.h.keys()
        assert np.array_equal(twin.linkage_matrix(), self.h.linkage_matrix())
        self.h = twin

    @precondition(lambda self: self.points)
    @rule(seed=st.integers(0, 5))
    def start_again_at_random(self, seed):
        h = self.h
        x = np.array(list(self.points.values()))
        self.h = Hierarchy.random(
            x, h.linkage, h.metric, metric_params=h.metric_params, seed=seed, keys=list(self.points), **self.options
        )
        self.promised = False

    @rule()
    def copy(self):
        self.h = self.h.copy()

    @invariant()
    def valid(self):
        h = self.h
        h.validate()
        assert h.keys() == list(self.points)
        if self.points:
            assert np.array_equal(h.points(), np.array(list(self.points.values())))
        if self.promised:
            assert h.is_monotone()
            if h.goal == "homogeneous" or h.linkage != "ward":
                assert h.violations().size == 0
                self.check_by_definition()

    def check_by_definition(self):
        """With a linkage that shares nothing with the kernels, where rounding is far below what is compared."""
        x = np.array(list(self.points.values()), np.float64).reshape(-1, N_COLUMNS)
        spread = [column - column[:1] for column in x.T]
        is_tame = all(np.all((np.abs(d) < 1e3) & ((d == 0) | (np.abs(d) > 1e-3))) for d in spread)
        offset = max((np.abs(c).max() for c, d in zip(x.T, spread, strict=True) if np.any(d)), default=0)
        if 3 <= len(x) <= 12 and is_tame and offset < 1e3 and self.h.metric in ("euclidean", "sqeuclidean"):
            tolerance = 1e-3 if self.dtype == np.float32 else 1e-8
            assert naive.is_homogeneous(nested(self.h), definition(self.h), tolerance)


TestEdits = Edits.TestCase
