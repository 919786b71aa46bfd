"""The files around the package: its address, how to cite it, and workflows that test what is claimed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import evertree
from lower_bounds import lowest, required

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = [*WORKFLOWS, *sorted(GITHUB.glob("actions/*/action.yml"))]
EACH_WORKFLOW = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)

#: What a classifier calls the systems of GitHub's runners.
SYSTEMS = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}

#: A major version, or more: v6, v6.1.2, release/v1, a commit.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@((release/)?v\d+(\.\d+)*|[0-9a-f]{40})")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_yaml(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps_of(document: dict) -> list[dict]:
    """The steps of a workflow's jobs or of an action. A job that is another workflow counts as a step."""
    jobs = document.get("jobs", {}).values()
    return [*document.get("runs", {}).get("steps", []), *(step for job in jobs for step in job.get("steps", [job]))]


def matrix() -> dict:
    return read_yaml(GITHUB / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]


def claimed(start: str) -> set[str]:
    """What the classifiers that start so go on with."""
    return {text.removeprefix(start) for text in project()["classifiers"] if text.startswith(start)}


@pytest.mark.process
def test_the_address_of_the_project_stands_in_one_file():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    address = re.compile(
        rb"(github|gitlab|codeberg)\.(com|org|io)/[\w.-]+/evertree|evertree\.readthedocs", re.IGNORECASE
    )
    paths = [ROOT / name for name in names.split("\0") if name]
    found = [path.name for path in paths if path.is_file() and address.search(path.read_bytes())]
    assert found == ["pyproject.toml"]
    assert all(url.startswith(project()["urls"]["Source"]) for url in project()["urls"].values())


def test_links_of_the_readme_lead_to_files():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    places = [place.partition("#")[0] for place in re.findall(r"\]\((?!\w+:|#)([^)\s]+)", text)]
    assert {"CHANGELOG.md", "docs/images/demo.png"} <= set(places)
    assert [place for place in places if not (ROOT / place).is_file()] == []


def test_links_of_the_readme_are_whole_on_a_package_index():
    pytest.importorskip("hatchling", reason="it builds the package")
    from hatch_build import with_addresses

    told = with_addresses("![a](b/c.png) [d](e.md#f) [g](#h) [i](https://j.k)", "https://x.y/z", "1.2")
    pages, pictures = "https://x.y/z/blob/v1.2", "https://x.y/z/raw/v1.2"
    assert told == f"![a]({pictures}/b/c.png) [d]({pages}/e.md#f) [g](#h) [i](https://j.k)"
    assert with_addresses("[a](b)", "https://x.y/z", "1.2.dev0") == "[a](https://x.y/z/blob/main/b)"
    readme = with_addresses((ROOT / "README.md").read_text(encoding="utf-8"), project()["urls"]["Source"], "1.2")
    assert re.findall(r"\]\((?!https://|#)", readme) == []


def test_a_citation_is_of_this_version():
    citation = read_yaml(ROOT / "CITATION.cff")
    assert citation["version"] == evertree.__version__
    assert citation["license"] == project()["license"]
    assert citation["keywords"] == project()["keywords"]
    (paper,) = citation["references"]
    assert paper["title"] == "Anytime Hierarchical Clustering"
    assert paper["doi"].endswith("1404.3439")


def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["nightly", "release", "tests", "wheels"]


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: str(path.relative_to(GITHUB)))
def test_actions_are_pinned(path):
    used = [step["uses"] for step in steps_of(read_yaml(path)) if "uses" in step]
    assert used
    for name in used:
        assert (ROOT / name).exists() if name.startswith("./") else PINNED.fullmatch(name), name


@EACH_WORKFLOW
def test_workflows_may_do_little_and_end(path):
    workflow = read_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"].startswith(f"{path.stem}-")  # else one that is called cancels its caller
    more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert more == ({"publish": {"id-token": "write"}} if path.stem == "release" else {})
    assert all("timeout-minutes" in job or "uses" in job for job in workflow["jobs"].values())


@EACH_WORKFLOW
def test_workflows_make_targets_that_exist(path):
    targets = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    commands = [step.get("run", "") for step in steps_of(read_yaml(path))]
    made = {target for command in commands for target in re.findall(r"\bmake ([\w-]+)", command)}
    assert made <= set(targets)
    if path.stem == "nightly":
        assert made == {"test-nightly", "coverage", "mutate", "soak"}


def test_systems_that_are_claimed_are_tested():
    assert claimed("Operating System :: ") == {SYSTEMS[name.partition("-")[0]] for name in matrix()["os"]}


def test_versions_of_python_that_are_claimed_are_tested():
    tested = matrix()["python"]
    assert claimed("Programming Language :: Python :: 3.") == {version.removeprefix("3.") for version in tested}
    allowed = SpecifierSet(project()["requires-python"])
    assert [f"3.{minor}" for minor in range(20) if f"3.{minor}" in allowed][: len(tested)] == tested


def test_what_is_left_out_on_a_system_is_there():
    """A test that gets another name would be run again, or never, and nobody would know."""
    options = " ".join(entry["left-out"] for entry in matrix()["include"]).split()
    assert options
    for option in options:
        kind, _, place = option.partition("=")
        file, _, name = place.partition("::")
        assert kind == ("--deselect" if name else "--ignore")
        assert (ROOT / file).exists(), place
        assert not name or f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), place


def test_every_dependency_has_a_lowest_version():
    versions = lowest(required())
    assert {"numpy", "numba", "scikit-learn", "psycopg"} < set(versions)
    assert "evertree" not in versions


def test_the_lowest_version_is_what_all_requirements_allow():
    texts = ["a>=1.2,<3", "A[x]>=1.10", "b~=2.0", "c==4", "a_b>=0.1"]
    found = {name: str(version) for name, version in lowest(map(Requirement, texts)).items()}
    assert found == {"a": "1.10", "b": "2.0", "c": "4", "a-b": "0.1"}
    with pytest.raises(ValueError, match="d<3 has no lower bound"):
        lowest([Requirement("d<3")])
