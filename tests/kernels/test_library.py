"""The library of machine code: that it has everything, when it is used, and when it is refused."""

from __future__ import annotations

import logging
import shutil
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from evertree import errors
from evertree.kernels import library, machine_code
from evertree.kernels.columns import MeanTree, PairTree
from evertree.kernels.compile import IS_COMPILED
from evertree.kernels.signatures import Configuration
from evertree.linkages import LINKAGES

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="there is no machine code")


@pytest.fixture(scope="module")
def shipped():
    found = library.opened()
    if found is None:
        pytest.skip("the library has not been built: make library")
    return found


def forget():
    """Look for the library again."""
    library._found.cache_clear()
    library.opened.cache_clear()


@pytest.fixture
def _anew(monkeypatch):
    """What is known of the library is forgotten before and after."""
    monkeypatch.delenv("EVERTREE_KERNELS", raising=False)
    forget()
    yield
    monkeypatch.undo()
    forget()


def test_it_has_every_kernel_for_everything(shipped):
    """What there is to build follows from annotations, so that nothing can be forgotten."""
    from native.build import all_tasks

    symbols = [task.symbol for task in all_tasks()]
    assert len(symbols) == len(set(symbols)) > 200
    assert [symbol for symbol in symbols if shipped.address(symbol) is None] == []
    assert shipped.address("shared_traverse_preorder") is None


def test_it_has_the_level_of_this_processor(shipped):
    assert library.level() is not None
    assert shipped.path.stem in (library.level(), *library.LEVELS)
    assert machine_code.origin() == {"Numba": shipped.compiler, "CPU": shipped.path.stem}


@pytest.mark.usefixtures("_anew")
def test_one_of_other_sources_is_refused(shipped, monkeypatch, caplog):
    monkeypatch.setattr(library, "fingerprint", lambda: "another")
    with caplog.at_level(logging.INFO, logger="evertree"):
        assert library.opened() is library.opened() is None
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("evertree", "INFO")
    assert record.message.endswith(f"{shipped.path.name} was made of other sources")
    assert library.why_not().endswith("was made of other sources")


@pytest.mark.usefixtures("_anew")
def test_a_lower_level_serves_where_there_is_no_better_one(shipped, monkeypatch, tmp_path):
    for file in (shipped.path, library.FOLDER / library.DETECTOR):
        shutil.copy(file, tmp_path / file.name)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    assert library.opened().path == tmp_path / shipped.path.name
    forget()
    monkeypatch.setattr(library, "level", lambda: "x86-64-v4")
    if shipped.path.stem in library.LEVELS:
        assert library.opened().path == tmp_path / shipped.path.name
    forget()
    monkeypatch.setattr(library, "level", lambda: "another")
    assert library.opened() is None
    assert library.why_not() == "this installation has no compiled kernels for another"


@pytest.mark.usefixtures("_anew")
@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_a_damaged_one_is_refused(monkeypatch, tmp_path, content):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setattr(library, "level", lambda: "x86-64-v2")
    (tmp_path / f"x86-64-v2{library.SUFFIX}").write_bytes(content)
    assert library.opened() is None
    assert "x86-64-v2" in library.why_not()


@pytest.mark.usefixtures("_anew")
def test_one_that_is_no_library_of_ours_is_refused(monkeypatch, tmp_path):
    detector = library.FOLDER / library.DETECTOR
    if not detector.exists():
        pytest.skip("the library has not been built: make library")
    shutil.copy(detector, tmp_path / f"x86-64-v2{library.SUFFIX}")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setattr(library, "level", lambda: "x86-64-v2")
    assert library.why_not().endswith("was made of other sources")


@pytest.mark.usefixtures("_anew")
def test_it_may_be_left_aside(monkeypatch):
    monkeypatch.setenv("EVERTREE_KERNELS", "numba")
    assert library.opened() is None
    assert library.why_not() == "EVERTREE_KERNELS=numba"


@pytest.mark.usefixtures("_anew")
def test_without_library_and_numba_an_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setattr(library, "level", lambda: None)
    for name in ("numba", "llvmlite"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "evertree.kernels.numba_compiler", raising=False)
    monkeypatch.delattr("evertree.kernels.numba_compiler", raising=False)
    with pytest.raises(errors.MissingExtraError, match=r"no compiled kernels .* pip install 'evertree\[jit\]'"):
        machine_code.the_compiler()


def test_linkages_of_others_are_not_looked_up():
    class Ward:
        """Not ours."""

    assert not machine_code._is_of_package(Ward)
    assert machine_code._is_of_package(LINKAGES["ward"].tag)


@pytest.mark.parametrize("tree", [MeanTree, PairTree])
def test_whoever_waits_for_the_compiler_is_told_once(tree, caplog, monkeypatch, tmp_path):
    monkeypatch.setattr(machine_code, "_has_told", type(machine_code._has_told)())
    monkeypatch.setattr(machine_code.objects, "folder", lambda: tmp_path if tree is MeanTree else None)
    machine_code._tell(Configuration(tree, None, "float64"))
    for _ in range(2):
        machine_code._tell(Configuration(tree, LINKAGES["average"].tag, "float64"))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("evertree", "WARNING")
    once, always = ("10 s, and once only", str(tmp_path)), ("20 s in every process", "EVERTREE_CACHE_DIR")
    assert all(word in record.getMessage() for word in (once if tree is MeanTree else always))


def test_the_version_of_numba_is_checked(monkeypatch):
    machine_code.check_version("0.61.2")
    machine_code.check_version("0.68.1")
    for version in ("0.61.1", "0.69.0rc1", "1.0"):
        with pytest.raises(errors.MissingExtraError, match=rf"this is {version}: pip install 'numba>=0.61.2,<0.69'"):
            machine_code.check_version(version)
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(__version__="0.70.0"))
    with pytest.raises(errors.MissingExtraError, match=r"this is 0\.70\.0"):
        machine_code.the_compiler()


def test_the_extra_has_the_versions_that_are_tested():
    (requirement,) = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["jit"]
    (first, after) = (".".join(map(str, bound)) for bound in machine_code.TESTED)
    assert requirement == f"numba>={first},<{after}"
