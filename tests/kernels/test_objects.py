"""Objects: what they are made of, where they are kept, and when they are made again."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from evertree.kernels import objects
from evertree.kernels.compile import IS_COMPILED, plain
from evertree.kernels.signatures import Configuration

PROJECT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="there is no machine code")


@pytest.fixture
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EVERTREE_CACHE_DIR", str(tmp_path / "some" / "where"))
    folder = objects.folder
    folder.cache_clear()
    yield
    folder.cache_clear()


@pytest.fixture(scope="module")
def tasks():
    """All kernels of the package and what they are compiled for, by name."""
    from native.build import all_tasks

    return {task.symbol: task for task in all_tasks()}


@pytest.fixture(scope="module")
def sources(tasks):
    """What each of them is made of."""
    return {name: objects.sources_of(task.kernel, task.configuration) for name, task in tasks.items()}


def depending_on(sources, name):
    return {symbol for symbol, texts in sources.items() if name in texts}


def test_a_kernel_is_made_of_the_steps_that_it_may_call(sources):
    found = sources
    of_single = depending_on(found, "evertree.linkages.single.compare")
    assert "shared_stabilise_stabilise__pairtree_single_float64" in of_single
    assert all("single" in name for name in of_single)
    of_means = depending_on(found, "evertree.kernels.statistics.means.sq_dist")
    assert "shared_stabilise_stabilise__meantree_ward_float32" in of_means
    assert not any("pairtree" in name for name in of_means)
    assert depending_on(found, "evertree.kernels.shared.traverse.postorder") == {"shared_traverse_postorder"}
    distance = depending_on(found, "evertree.kernels.pairwise.dissimilarities._euclidean")
    assert "pairwise_dissimilarities_euclidean__float32" in distance
    assert all("pairwise_dissimilarities" in name for name in distance)


def test_an_edit_makes_other_stamps_for_what_depends_on_it(tasks, monkeypatch):
    pytest.importorskip("numba")
    some = {name: tasks[name] for name in list(tasks)[::7]}

    def stamps():
        target = objects.Target("x", is_loaded=False)
        return {name: objects.stamp_of(task.kernel, task.configuration, target) for name, task in some.items()}

    before, text_of = stamps(), objects._text_of
    edited = "evertree.linkages.average"
    monkeypatch.setattr(objects, "_text_of", lambda found: text_of(found) + ("#" if found.__module__ == edited else ""))
    after = stamps()
    changed = {name for name in some if before[name] != after[name]}
    found = {name: objects.sources_of(task.kernel, task.configuration) for name, task in some.items()}
    assert changed == {name for name, texts in found.items() if any(x.startswith(edited) for x in texts)}
    assert changed
    assert len(changed) < len(some)
    monkeypatch.undo()
    assert stamps() == before
    name, task = next(iter(some.items()))
    for target in (objects.Target("y", is_loaded=False), objects.Target("x", is_loaded=True)):
        assert objects.stamp_of(task.kernel, task.configuration, target) != before[name]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="there is one width of vectors")
def test_products_have_the_widest_vectors(tasks):
    pytest.importorskip("numba")
    from evertree.kernels import numba_compiler as compiler

    kernel, configuration = tasks["statistics_screening_multiply__float32"]
    assert kernel.is_wide
    code = compiler.lowered(kernel.py_func, kernel.signature, configuration, "f")
    as_preferred, as_wide = (compiler.object_of(code, "f", "x86-64-v4", False, is_wide) for is_wide in (False, True))
    assert as_preferred != as_wide


def test_constants_and_options_are_part_of_a_stamp(tasks):
    task = tasks["shared_stabilise_stabilise__meantree_ward_float64"]
    texts = objects.sources_of(task.kernel, task.configuration)
    assert "GRAFTS_PER_POINT = 20" in texts["evertree.kernels.shared.stabilise.quota_of_grafts:GRAFTS_PER_POINT"]
    assert "inline" in texts["evertree.kernels.shared.stabilise.quota_of_grafts"]
    with pytest.raises(TypeError, match=r"odd is .*: say how a kernel depends on it"):
        objects._constant("odd", object())


@pytest.mark.parametrize("changed", ["column", "record"])
def test_what_arguments_look_like_is_part_of_a_stamp(tasks, monkeypatch, changed):
    """A kernel that reads no new column still has the others elsewhere."""
    pytest.importorskip("numba")
    task, target = tasks["repair_slack_find_slack__average"], objects.Target("x", is_loaded=False)
    group = next(kind for kind in task.kernel.signature.kinds.values() if hasattr(kind, "kinds"))
    before = objects.stamp_of(task.kernel, task.configuration, target)
    kinds = dict(group.kinds())
    if changed == "column":
        kinds = {"first": objects.Array(np.float64), **kinds}
    else:
        kinds["slot"] = objects.Array(np.dtype([("a", np.int32)]))
    monkeypatch.setattr(group, "kinds", classmethod(lambda _: kinds))
    assert objects.stamp_of(task.kernel, task.configuration, target) != before


def test_a_step_that_the_sources_lack_is_found(tasks):
    task = tasks["shared_traverse_postorder"]
    objects.check_sources(task.kernel, task.configuration, [plain(task.kernel)])
    with pytest.raises(AssertionError, match="postorder calls steps that are not found in its text"):
        objects.check_sources(task.kernel, task.configuration, [depending_on])


@pytest.mark.usefixtures("_folder")
def test_objects_are_kept(monkeypatch):
    assert objects.kept("kernel", "1") is None
    objects.keep("kernel", "1", b"code")
    objects.keep("kernel", "2", b"other")
    assert (objects.kept("kernel", "1"), objects.kept("kernel", "2")) == (b"code", b"other")
    long_ago = time.time() - 31 * 86_400
    os.utime(objects.folder() / "kernel-1.o", (long_ago, long_ago))
    objects.keep("kernel", "3", b"new")
    assert sorted(path.name for path in objects.folder().iterdir()) == ["kernel-2.o", "kernel-3.o"]


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("length", [0, 3, 20, 35])
def test_half_an_object_is_none(length):
    """To load it would crash the process."""
    objects.keep("kernel", "1", b"code")
    path = objects.folder() / "kernel-1.o"
    path.write_bytes(path.read_bytes()[:length])
    assert objects.kept("kernel", "1") is None
    objects.keep("kernel", "1", b"code")
    assert objects.kept("kernel", "1") == b"code"


@pytest.mark.usefixtures("_folder")
def test_objects_of_others_are_used(monkeypatch):
    """Also where they cannot be touched, or the folder cannot be written to."""
    objects.keep("kernel", "1", b"code")

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(objects.os, "utime", refused)
    monkeypatch.setattr(objects, "folder", lambda: None)
    assert objects.kept("kernel", "1") == b"code"


@pytest.mark.usefixtures("_folder")
def test_what_cannot_be_kept_leaves_nothing_behind(monkeypatch):
    def refused(*_):
        raise OSError("no space left")

    monkeypatch.setattr(objects.os, "replace", refused)
    objects.keep("kernel", "1", b"code")
    assert list(objects.folder().iterdir()) == []


def test_nowhere_to_keep_them(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVERTREE_CACHE_DIR", str(tmp_path / "file"))
    objects.folder.cache_clear()
    assert objects.folder() is None
    objects.keep("kernel", "1", b"code")
    assert objects.kept("kernel", "1") is None
    objects.folder.cache_clear()


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_where_they_are_by_default(monkeypatch, platform):
    monkeypatch.delenv("EVERTREE_CACHE_DIR", raising=False)
    monkeypatch.setattr(objects.sys, "platform", platform)
    assert "evertree" in objects._place().parts

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(objects.Path, "home", no_home)
    assert objects._place() is None
    assert objects.kept("kernel", "1") is None


CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, evertree as et
from evertree.kernels import machine_code
made = []
make = machine_code.made
machine_code.made = lambda kernel, *how: made.append(how[1]) or make(kernel, *how)
h = et.Hierarchy(goal="homogeneous")
h.insert(np.random.default_rng(0).normal(size=(30, 2)))
print(h.linkage_matrix()[-1, 2], *made)
"""


@pytest.mark.process
@pytest.mark.slow
def test_an_edited_kernel_is_compiled_again(tmp_path):
    """And nothing else: an edit in a file whose steps become part of kernels in other files."""
    pytest.importorskip("numba")
    source = tmp_path / "src"
    shutil.copytree(PROJECT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "lib"))

    def run():
        environment = {**os.environ, "EVERTREE_CACHE_DIR": str(tmp_path / "kept"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", CODE, str(source)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        height, *made = result.stdout.split()
        return float(height), set(made), result.stderr

    height, made, said = run()
    assert "shared_insert_insert_leaves__meantree_ward_float64" in made
    assert "shared_traverse_postorder" in made
    assert "once only: they are kept in" in said
    assert run() == (height, set(), "")
    means = source / "evertree" / "kernels" / "statistics" / "means.py"
    text = means.read_text()
    edited = text.replace("total += difference * difference", "total += 4 * difference * difference")
    assert edited != text
    means.write_text(edited)
    other, made_again, _ = run()
    assert other == pytest.approx(2 * height)
    assert "shared_insert_insert_leaves__meantree_ward_float64" in made_again
    assert "shared_traverse_postorder" not in made_again


def test_a_configuration_decides_which_steps(tasks):
    task = tasks["shared_traverse_postorder"]
    assert task.configuration == Configuration(None, None, "")
