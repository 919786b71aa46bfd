"""The wheel and the sdist: what is in them. ``make dist-check`` installs and uses them, too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from distribution import USES, complaints_of_sdist, complaints_of_wheel
from evertree.kernels import library

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist, by the backend that is named in pyproject.toml."""
    pytest.importorskip("hatchling", reason="it builds the wheel")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    return folder


@pytest.mark.process
def test_the_wheel_is_complete(built):
    (wheel,) = built.glob("*-any.whl")
    assert complaints_of_wheel(wheel) == []


@pytest.mark.process
def test_a_wheel_for_a_platform_has_the_library_and_does_not_need_numba(built):
    if library.level() is None:
        pytest.skip("the library has not been built")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(built)]
    environment = {**os.environ, "EVERTREE_WHEEL": "platform"}
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True)
    (wheel,) = set(built.glob("*.whl")) - set(built.glob("*-any.whl"))
    assert complaints_of_wheel(wheel) == []
    assert wheel.stat().st_size < 6e6


@pytest.mark.process
def test_a_wheel_for_a_platform_is_refused_where_the_library_does_not_fit(tmp_path):
    """It would need Numba, and not say so."""
    clone = tmp_path / "clone"
    for name in ("src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        source = PROJECT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        clone.mkdir(exist_ok=True)
        copy(source, clone / name)
    (clone / "src" / "evertree" / "linkages" / "ward.py").write_text("# edited")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    environment = {**os.environ, "EVERTREE_WHEEL": "platform"}
    result = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
    assert result.returncode
    assert "must fit the sources: run python -m native.build --levels all first" in result.stderr + result.stdout


@pytest.mark.process
def test_the_sdist_is_complete(built):
    (sdist,) = built.glob("*.tar.gz")
    assert complaints_of_sdist(sdist) == []


def test_each_extra_is_used_by_the_check():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert sorted(USES) == sorted(extras)
