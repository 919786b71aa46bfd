"""Mutants: lines of the source that are wrong on purpose, each with a test that must notice.

``make mutate`` makes one after the other in a copy of the sources, with the compiler off, and fails if one survives.
`test_mutations` checks, in no time, that the lines are still there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

#: What pytest returns where all tests passed, and where some failed. Otherwise it has found none, or broke.
PASSED, FAILED = 0, 1


class Mutant(NamedTuple):
    """One wrong line."""

    what: str
    file: str  # below src/evertree
    line: str  # without its indentation; no other line of the file is the same
    wrong: str  # what stands in its place
    test: str  # one that fails then, the fastest

    def applied(self, source: str) -> str:
        """The source with the wrong line; ValueError if the line is not there exactly once."""
        lines = source.splitlines(keepends=True)
        (place,) = [i for i, line in enumerate(lines) if line.strip() == self.line]
        lines[place] = lines[place].replace(self.line, self.wrong)
        return "".join(lines)


MUTANTS = [
    Mutant(
        "points of a piece that is just large enough, and leave",
        "kernels/shared/condensed.py",
        "if n_a >= fewest and n_b >= fewest:",
        "if n_a > fewest and n_b >= fewest:",
        "tests/tree/test_condensed.py::test_by_definition",
    ),
    Mutant(
        "two siblings in the order in which the tree has them",
        "kernels/shared/condensed.py",
        "if tree.birth[a] > tree.birth[b]:",
        "if False:",
        "tests/tree/test_condensed.py::test_the_order_of_children_does_not_matter",
    ),
    Mutant(
        "a cluster that is born at an infinite density, and has a stability that is no number",
        "kernels/shared/condensed.py",
        "return (density_now - density_then) * count if density_then < np.inf else 0.0",
        "return (density_now - density_then) * count",
        "tests/tree/test_condensed.py::test_by_definition_on_hard_data",
    ),
    Mutant(
        "a tie of stabilities that rounding decides",
        "kernels/shared/condensed.py",
        "is_selected[c] = not below[c] > stability[c] * (1.0 + TIE)",
        "is_selected[c] = not below[c] > stability[c]",
        "tests/tree/test_condensed.py::test_a_tie_of_stabilities_goes_to_the_larger_cluster",
    ),
    Mutant(
        "selected clusters inside a selected one",
        "kernels/shared/condensed.py",
        "is_inside[c] = p >= start and (is_inside[p] or is_selected[p])",
        "is_inside[c] = p >= start and is_selected[p]",
        "tests/tree/test_condensed.py::test_by_definition",
    ),
    Mutant(
        "a sum of stabilities that ends where a cluster is not selected",
        "kernels/shared/condensed.py",
        "stability[c] = below[c]",
        "pass",
        "tests/tree/test_condensed.py::test_by_definition",
    ),
    Mutant(
        "clusters born below a height that give way to one born there, too",
        "kernels/shared/condensed.py",
        "goal[c] = p if born[p] > epsilon else goal[p]",
        "goal[c] = p",
        "tests/tree/test_condensed.py::test_by_definition",
    ),
    Mutant(
        "a cluster born at the height itself that gives way",
        "kernels/shared/condensed.py",
        "is_merged[goal[c] if born[c] < epsilon else c] = True",
        "is_merged[goal[c] if born[c] <= epsilon else c] = True",
        "tests/test_condensed_tree.py::test_leaves_below_a_height_are_merged",
    ),
    Mutant(
        "outlier scores beside the smallest cluster, and not beside what is inside it",
        "kernels/shared/condensed.py",
        "lowest[parent[c]] = min(lowest[parent[c]], lowest[c])",
        "pass",
        "tests/tree/test_condensed.py::test_by_definition",
    ),
    Mutant(
        "a single cluster of all points, whenever they leave it",
        "tree/condensed.py",
        "found[(found == 0) & ((clusters.left_at > lowest) | (not is_only))] = NULL",
        "pass",
        "tests/test_condensed_tree.py::test_a_single_cluster",
    ),
    Mutant(
        "a single cluster with fewer points than it must have",
        "tree/condensed.py",
        "start = 0 if may_be_one and clusters.left.size >= wanted.min_cluster_size else 1",
        "start = 0 if may_be_one else 1",
        "tests/test_condensed_tree.py::test_a_single_cluster",
    ),
    Mutant(
        "labels numbered by the tree, and not by first appearance",
        "tree/condensed.py",
        "return owning[np.argsort(first[owning])]",
        "return owning",
        "tests/tree/test_condensed.py::test_by_definition",
    ),
    Mutant(
        "a piece whose neighbours outside are not asked",
        "kernels/shared/rounds.py",
        "q, _ = partner_beyond(linkage, tree, search, a, limit, np.int64(root))",
        "pass",
        "tests/tree/parallel/test_rounds.py::test_nodes_in_a_blocking_pair_with_a_node_outside_their_piece_are_due",
    ),
    Mutant(
        "nodes of a piece that are given up when a refinement is stopped",
        "tree/parallel/rounds.py",
        "due[due == INSIDE] = DUE",
        "due[due == INSIDE] = 0",
        "tests/tree/parallel/test_rounds.py::test_nodes_that_were_not_searched_beyond_their_piece_stay_due",
    ),
    Mutant(
        "a node that waits on the level that its parent had before",
        "kernels/shared/due_queue.py",
        "elif work.level[u] == level:",
        "elif True:",
        "tests/kernels/test_due_queue.py::test_like_a_plain_list",
    ),
    Mutant(
        "a node that is searched although its parent has risen",
        "kernels/shared/due_queue.py",
        "if now > level:",
        "if False:",
        "tests/kernels/test_due_queue.py::test_like_a_plain_list",
    ),
    Mutant(
        "a check that is due again because it has paused",
        "kernels/shared/homogenise.py",
        "put_back(work, v)  # as if it had not been popped: when it pauses depends on the clock",
        "push(tree, work, v)",
        "tests/kernels/test_due_queue.py::test_a_check_that_pauses_changes_nothing",
    ),
    Mutant(
        "a distance that is smaller than the same one on a list",
        "kernels/shared/neighbours.py",
        "value = np.float64(near_value.dtype.type(min(value, np.float64(np.finfo(near_value.dtype).max))))",
        "value = min(value, np.float64(np.finfo(near_value.dtype).max))",
        "tests/tree/test_wrong_ways.py::test_what_is_as_far_as_the_first_is_not_nearer",
    ),
    Mutant(
        "a neighbour that is a little nearer, and seems to show that all others were wrong",
        "kernels/shared/neighbours.py",
        "return value < NEARER * before",
        "return value < before",
        "tests/tree/test_wrong_ways.py::test_only_what_is_much_nearer_counts",
    ),
    Mutant(
        "a leaf whose list was wrong, and that does not search again",
        "kernels/shared/neighbours.py",
        "note_due(tree, work, i)",
        "pass",
        "tests/tree/test_wrong_ways.py::test_a_leaf_whose_list_was_wrong_searches_again",
    ),
    Mutant(
        "a tree that looks ahead when it is loaded",
        "kernels/shared/stabilise.py",
        'if max_steps > 0 and work.state["pending"][0] == 0 and not needs_lists(linkage, search):',
        'if work.state["pending"][0] == 0 and not needs_lists(linkage, search):',
        "tests/kernels/test_due_queue.py::test_loading_does_not_look_ahead",
    ),
    Mutant(
        "a queue with old numbers of nodes",
        "kernels/shared/reorder.py",
        "work.later[v] = relabelled(place, work.later[v])",
        "pass",
        "tests/kernels/test_due_queue.py::test_it_follows_new_numbers",
    ),
    Mutant(
        "a queue that comes back in another order",
        "kernels/shared/due_queue.py",
        "for k in range(nodes.size - 1, -1, -1):",
        "for k in range(nodes.size):",
        "tests/kernels/test_due_queue.py::test_a_file_keeps_the_order",
    ),
    Mutant(
        "what is left after rounds, of which nothing is listed",
        "tree/base.py",
        "recent[1 : 1 + some.size], recent[0] = some, some.size",
        "recent[0] = 0",
        "tests/tree/parallel/test_rounds.py::test_what_is_left_by_rounds_is_listed_for_steps",
    ),
    Mutant(
        "a sketch whose rounding is forgotten",
        "kernels/statistics/sketches.py",
        "distance = ROUNDED_DOWN * np.sqrt(sq_dist(sketch.value, u, v)) - sketch.slip[u] - sketch.slip[v]",
        "distance = np.sqrt(sq_dist(sketch.value, u, v))",
        "tests/kernels/test_sketches.py::test_bounds_on_hard_data",
    ),
    Mutant(
        "sketches that stay where they were when nodes are numbered anew",
        "tree/statistics.py",
        "permute(self.tree.sketch.value, place)",
        "pass",
        "tests/kernels/test_sketches.py::test_sketches_go_with_the_tree",
    ),
    Mutant(
        "an inversion just where a tree is cut",
        "kernels/shared/cut.py",
        "elif tree.height[child] > tree.height[u]:",
        "elif False:",
        "tests/test_reading.py::test_all_cuts_of_small_trees_that_are_not_monotone",
    ),
    Mutant(
        "a list of what is close that is thought to be complete",
        "kernels/repair/repair.py",
        "others, ahead = min(others, run.beyond[row]), AHEAD * expected",
        "ahead = AHEAD * expected",
        "tests/tree/test_repair.py::test_short_lists_of_what_is_close",
    ),
    Mutant(
        "a cluster that is beyond a list, and lowers nothing",
        "kernels/repair/rows.py",
        "run.beyond[k] = min(run.beyond[k], max(value, last))",
        "run.beyond[k] = run.beyond[k]",
        "tests/tree/test_repair.py::test_short_lists_of_what_is_close",
    ),
    Mutant(
        "a list whose limit stays where it was when a cluster is dropped",
        "kernels/statistics/screening.py",
        "limit = bounds[n]",
        "limit = limit",
        "tests/tree/test_screening.py::test_lists_have_all_that_is_near",
    ),
    Mutant(
        "a bound on an entry that may merge with what is not listed",
        "kernels/statistics/screening.py",
        "raise_entry(lists, a, k, min(rounded_down(value / unit, value / unit, m, eps, noise), limit))",
        "raise_entry(lists, a, k, rounded_down(value / unit, value / unit, m, eps, noise))",
        "tests/tree/test_screening.py::test_lists_have_all_that_is_near",
    ),
    Mutant(
        "products that are taken as exact",
        "kernels/statistics/screening.py",
        "rest = 1.0 - (1.02 * (m + 40) * unit + 4.0 * rounding(m))",
        "rest = 1.0",
        "tests/tree/test_screening.py::test_bounds_are_below_values",
    ),
    Mutant(
        "a limit of a union that is that of one of its parts",
        "kernels/statistics/screening.py",
        "limit = bound_to_union(linkage, far_a, far_b, z, size_a, size_b, sizes)",
        "limit = far_a",
        "tests/tree/test_screening.py::test_lists_have_all_that_is_near",
    ),
    Mutant(
        "a list of a union without those who are near one of its parts only",
        "kernels/statistics/screening.py",
        "one_slot, other_slot = (a, b) if turn == 0 else (b, a)",
        "one_slot, other_slot = a, b",
        "tests/tree/test_screening.py::test_lists_have_all_that_is_near",
    ),
    Mutant(
        "slack that is not lowered for a new cluster",
        "kernels/repair/repair.py",
        "slack_a = min(slack_a, run.value[k, a])",
        "slack_a = slack_a",
        "tests/tree/test_repair.py::test_random_edits",
    ),
    Mutant(
        "a sibling that is forgotten",
        "kernels/repair/bounds.py",
        "if run.rank[k] == run.rank[u]:  # siblings, one of which is about to merge with another cluster",
        "if False:",
        "tests/tree/test_repair.py::test_random_edits",
    ),
    Mutant(
        "a death that is compared the other way",
        "kernels/repair/bounds.py",
        "return run.before[p] if dies_p < dies_q else run.before[q]",
        "return run.before[p] if dies_p > dies_q else run.before[q]",
        "tests/tree/test_repair.py::test_random_edits",
    ),
    Mutant(
        "a tie of two deaths that is decided by one of them",
        "kernels/repair/bounds.py",
        "return min(run.before[p], run.before[q])",
        "return max(run.before[p], run.before[q])",
        "tests/tree/test_repair.py::test_ties",
    ),
    Mutant(
        "a late cluster that others did not expect",
        "kernels/repair/repair.py",
        "latest = min(latest, run.before[v])",
        "latest = latest",
        "tests/tree/test_repair.py::test_random_edits",
    ),
    Mutant(
        "points that a cluster has lost since, and that are counted as gained",
        "kernels/repair/filling.py",
        "value, error = value_after(linkage, value, error, size, gained if comes else lost, weight, comes)",
        "value, error = value_after(linkage, value, error, size, gained if comes else lost, weight, 1)",
        "tests/tree/test_repair.py::test_values_of_slots",
    ),
    Mutant(
        "a reference that is thought to be nearer to its cluster than it is",
        "linkages/minimax.py",
        "over = far - reach - ROUNDING * (far + reach)",
        "over = far - ROUNDING * (far + reach)",
        "tests/tree/test_repair.py::test_random_edits",
    ),
    Mutant(
        "lists to improve, of which one is forgotten",
        "kernels/shared/neighbours.py",
        "recent[0] = count + 1",
        "recent[0] = count",
        "tests/tree/test_refine.py::test_lists_to_improve_are_listed",
    ),
    Mutant(
        "an order of merges that is kept although two heights are equal",
        "kernels/repair/repair.py",
        "if not level[u] > last:",
        "if False:",
        "tests/tree/test_repair.py::test_ties",
    ),
    Mutant(
        "an automatic width that stays exhaustive",
        "tree/base.py",
        "reach[0] = BY_DESCENT",
        "pass",
        "tests/tree/test_automatic_width.py::test_exact_as_far_as_the_limit",
    ),
    Mutant(
        "free nodes that are counted as due",
        "tree/base.py",
        "self.work.due[:] = 0  # free nodes may have been due",
        "pass",
        "tests/tree/test_automatic_width.py::test_by_upserts_and_windows",
    ),
    Mutant(
        "a neighbour of a node that changed is not checked again",
        "kernels/shared/worklist.py",
        "push(tree, work, sibling(tree, u))",
        "pass",
        "tests/test_edits.py::test_edits_agree_with_the_definition[ward-euclidean]",
    ),
    Mutant(
        "a node takes the place of the wrong child",
        "kernels/shared/topology.py",
        "elif tree.left[p] == old:",
        "elif tree.right[p] == old:",
        "tests/kernels/test_topology.py::test_move_agrees_with_naive",
    ),
    Mutant(
        "parts of a mean have each other's weights",
        "kernels/statistics/merge.py",
        "rest, share = tree.size[a] / size, tree.size[b] / size",
        "rest, share = tree.size[b] / size, tree.size[a] / size",
        "tests/kernels/test_statistics.py::test_statistics_of_a_union_are_those_of_its_points",
    ),
    Mutant(
        "a mean of dissimilarities forgets the weights",
        "kernels/pairwise/pairs.py",
        "share[t] = tree.size[2 * rows[t]] / total",
        "share[t] = 1.0 / rows.size",
        "tests/test_edits.py::test_edits_agree_with_the_definition[average-euclidean]",
    ),
    Mutant(
        "a tie goes to the younger point",
        "kernels/shared/linkage_values.py",
        "return tree.birth[a] < tree.birth[b] if tied else z_a < z_b",
        "return tree.birth[a] > tree.birth[b] if tied else z_a < z_b",
        "tests/test_edits.py::test_a_point_that_is_as_near_to_two_others_goes_to_the_older[average-sqeuclidean]",
    ),
    Mutant(
        "a check of many columns holds by a bound that is none",
        "kernels/shared/check.py",
        "from_a = np.sqrt(sq_vc) - share_b * np.sqrt(sq_ab)",
        "from_a = np.sqrt(sq_vc) + share_b * np.sqrt(sq_ab)",
        "tests/test_edits.py::test_columns_of_zeros_change_nothing[ward-euclidean-homogeneous]",
    ),
    Mutant(
        "a node above one that left is not stale",
        "kernels/shared/remove.py",
        "mark_path(tree, work, tree.parent[s])",
        "work.mark[tree.parent[s]] |= STALE",
        "tests/test_edits.py::test_every_edit_of_hard_data_leaves_a_homogeneous_tree[ward-euclidean-random]",
    ),
    Mutant(
        "the node at which a graft ends keeps its height",
        "kernels/shared/graft.py",
        "tree.height[top] = linkage_value(linkage, tree, a, b)",
        "pass",
        "tests/tree/test_stable.py::test_ties_end_at_a_tree_that_is_certified",
    ),
    Mutant(
        "a height that has to be computed from pairs is not",
        "kernels/pairwise/path.py",
        "recompute_height(linkage, tree, np.int64(u))",
        "tree.height[u] = max(tree.height[a], tree.height[b])",
        "tests/tree/test_pairwise.py::test_every_metric[single-euclidean]",
    ),
    Mutant(
        "a graft is not looked at again after those before it",
        "kernels/shared/rounds.py",
        "if not is_blocking(linkage, tree, tolerance, a, q, value):",
        "if False:",
        "tests/tree/parallel/test_rounds.py::test_a_graft_that_is_no_longer_wanted_is_not_made",
    ),
    Mutant(
        "a bound from pivots is none",
        "kernels/pairwise/pairs.py",
        "upper = min(upper, p + q)",
        "upper = min(upper, max(p, q))",
        "tests/tree/test_pairwise.py::test_bounds_change_nothing[complete-60-3]",
    ),
    Mutant(
        "the lightest point of a tree is that of the last batch",
        "tree/base.py",
        "self._lightest = min(self._lightest, lightest)",
        "self._lightest = lightest",
        "tests/tree/test_stable.py::test_a_light_point_of_an_earlier_batch_is_found",
    ),
    Mutant(
        "points of other parts are thought to be as heavy as their clusters",
        "distributed/cross_partition_search.py",
        "live.search.lightest[0] = lightest",
        "pass",
        "tests/kernels/test_cross_partition.py::test_a_light_point_inside_a_heavy_cluster_is_found",
    ),
    Mutant(
        "a key is lost when nodes are numbered anew",
        "input/keys.py",
        "self._leaf_of = {key: int(place[leaf]) for key, leaf in self._leaf_of.items()}",
        "self._leaf_of = {key: int(place[leaf]) for key, leaf in self._leaf_of.items() if place[leaf]}",
        "tests/input/test_keys.py::test_keys_follow_their_leaves_to_new_numbers",
    ),
    Mutant(
        "numbered keys stay where they were when nodes are numbered anew",
        "input/keys.py",
        "leaves[leaves != NULL] = place[leaves[leaves != NULL]]",
        "pass",
        "tests/input/test_keys.py::test_keys_follow_their_leaves_to_new_numbers",
    ),
    Mutant(
        "a window has one point too many",
        "edits.py",
        "n_outside = 0 if last is None else max(len(state.keys) - last, 0)",
        "n_outside = 0 if last is None else max(len(state.keys) - last - 1, 0)",
        "tests/test_windows.py::test_the_points_are_those_of_the_definition[ward-euclidean-0]",
    ),
    Mutant(
        "a point is too old at the very age limit",
        "windows.py",
        "if moment.time - time <= self.limits.max_age:",
        "if moment.time - time < self.limits.max_age:",
        "tests/test_windows.py::test_the_points_are_those_of_the_definition[ward-euclidean-0]",
    ),
    Mutant(
        "an edit is not committed",
        "durable/sqlite_file.py",
        "_uri(path, read_only), timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=True",
        '_uri(path, read_only), timeout=_PATIENCE, isolation_level="", check_same_thread=False, uri=True',
        "tests/durable/test_durable.py::test_edits_are_in_the_file_before_the_call_returns[ward-euclidean-stable]",
    ),
    Mutant(
        "rows that have the last version are not read again",
        "sql/source_table.py",
        "return self.rows().where(sa.or_(self._version >= bound, self._version.is_(None)))",
        "return self.rows().where(sa.or_(self._version > bound, self._version.is_(None)))",
        "tests/sql/test_follower.py::test_rows_that_change_and_keep_the_last_version_are_found",
    ),
    Mutant(
        "clusters of keys that left stay in the table",
        "sql/output_tables.py",
        "self._database.delete(connection, self._assignment, self._options.key, removed)",
        "pass",
        "tests/sql/test_follower.py::test_insert_update_delete[sqlite]",
    ),
]


def copy_sources(folder: Path) -> None:
    """Copy all that tests need."""
    for name in ("src", "paper", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)


def run(folder: Path, tests: list[str]) -> int:
    """Run tests on the sources in a folder, with the compiler off; return what pytest does."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not process"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder / "src")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (PASSED, FAILED):
        raise RuntimeError(f"pytest broke:\n{done.stdout}{done.stderr}")
    return done.returncode


def main(words: list[str]) -> int:
    """Try all mutants, or those whose file or description has one of some words; return how many survived."""
    mutants = [one for one in MUTANTS if not words or any(word in f"{one.file}: {one.what}" for word in words)]
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_sources(folder)
        if run(folder, sorted({mutant.test for mutant in mutants})) != PASSED:
            raise RuntimeError("the tests fail without any mutant: see `make test`")
        for mutant in mutants:
            path = folder / "src" / "evertree" / mutant.file
            source = path.read_text(encoding="utf-8")
            path.write_text(mutant.applied(source), encoding="utf-8")
            is_caught = run(folder, [mutant.test]) == FAILED
            path.write_text(source, encoding="utf-8")
            survived += not is_caught
            print(f"{'caught  ' if is_caught else 'SURVIVED'}  {mutant.file}: {mutant.what}", flush=True)
    print(f"{len(mutants) - survived} of {len(mutants)} mutants were caught")
    return survived


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
