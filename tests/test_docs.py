"""The documentation: its examples run and give what they say, and it leaves nothing out."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree import io, plotting
from evertree.input import metrics

DOCS = Path(__file__).parents[1] / "docs"
PACKAGE = Path(et.__file__).parent
EXAMPLES = Path(__file__).parents[1] / "examples"
GENERATED = {"_build", "api", "gallery"}
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in GENERATED)
EXTRA_OF_PAGE = {"river.md": ["river"], "distributed.md": ["distributed", "pyarrow"]}
RESULT = re.compile(r"# → (.*)$")


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The Python examples of a page, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(1)) + 1, match[1])
        for match in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    ]


def run_block(code: str, name: str, names: dict) -> int:
    """Run an example, compare values with what a comment ``# → value`` says, and return how many were compared."""
    lines, n_compared = code.splitlines(), 0
    for statement in ast.parse(code, name).body:
        says = RESULT.search(lines[statement.end_lineno - 1])
        if isinstance(statement, ast.Expr) and says:
            value = eval(compile(ast.Expression(statement.value), name, "eval"), names)
            assert repr(value) == says[1], f"{name}: {lines[statement.end_lineno - 1].strip()}"
            n_compared += 1
        else:
            assert not says, f"{name}: a result beside what is no expression: {says[1]}"
            exec(compile(ast.Module([statement], []), name, "exec"), names)
    return n_compared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "n_results"),
    [
        ("index.md", 0),
        ("quickstart.md", 10),
        ("choosing.md", 9),
        ("moving.md", 8),
        ("questions.md", 1),
        ("guide.md", 63),
        ("pictures.md", 2),
        ("data-model.md", 8),
        ("architecture.md", 2),
        ("durable.md", 2),
        ("streams.md", 6),
        ("anomalies.md", 7),
        ("databases.md", 3),
        ("river.md", 8),
        ("distributed.md", 5),
        ("parallel.md", 1),
    ],
)
def test_examples_of_a_page_run(page, n_results, tmp_path, monkeypatch):
    """One after the other, in an empty folder; at least so many results are as the page says."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the examples draw")
    for module in ("pandas", "polars", "networkx", "sklearn", *EXTRA_OF_PAGE.get(page, ())):
        pytest.importorskip(module, reason=f"the examples use {module}")
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(DOCS / page)
    assert blocks
    pyplot.switch_backend("agg")
    names: dict = {}
    try:
        n_compared = sum(run_block(code, f"{page}:{line}", names) for line, code in blocks)
    finally:
        pyplot.close("all")
    assert n_compared >= n_results


def listed_in_api() -> set[str]:
    """The full names that the reference has a page or an entry for."""
    found, module = set(), "evertree"
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. (?:currentmodule|automodule|py:data):: ([\w.]+)$", line):
            is_data = "py:data" in line
            found.add(f"{module}.{match[1]}" if is_data else match[1])
            module = module if is_data else match[1]
        elif match := re.match(r"   ([A-Za-z]\w*(?:\.\w+)?)$", line):
            found.add(f"{module}.{match[1]}")
    return found


def public_names() -> list[str]:
    names = [f"evertree.{name}" for name in et.__all__ if name != "EvertreeError"]  # it stands with the other errors
    for kind in (et.Hierarchy, et.Partition, et.CondensedTree):
        names += [f"evertree.{kind.__name__}.{name}" for name in dir(kind) if not name.startswith("_")]
    names += [f"evertree.DurableHierarchy.{name}" for name in vars(et.DurableHierarchy) if not name.startswith("_")]
    names += ["evertree.open", "evertree.follow"]
    names += [f"evertree.Follower.{name}" for name in ("poll", "run", "close")]
    for module in (et.quality, plotting, io):
        names += [f"{module.__name__}.{name}" for name in module.__all__]
    return names


@pytest.mark.parametrize("name", public_names())
def test_reference_has_every_public_name(name):
    if name in ("evertree.Partition.keys", "evertree.Partition.labels"):
        return  # attributes, which the page of the class explains
    assert name in listed_in_api()


def test_reference_has_the_estimator():
    pytest.importorskip("sklearn", reason="the estimator needs scikit-learn")
    # set_fit_request and its like are made by scikit-learn.
    own = [name for name in vars(et.AnytimeClustering) if not name.startswith(("_", "set_"))]
    assert {"fit", "predict"} < set(own)
    assert {f"evertree.AnytimeClustering.{name}" for name in own} <= listed_in_api()


def test_reference_has_the_models_for_river():
    pytest.importorskip("river", reason="the models need river")
    for model in (et.RiverClustering, et.RiverAnomalies):
        own = {
            name for kind in model.__mro__ for name in vars(kind) if kind.__module__ == "evertree.integrations.river"
        }
        names = {f"evertree.{model.__name__}.{name}" for name in own if not name.startswith("_")}
        assert f"evertree.{model.__name__}.learn_one" in names
        assert names <= listed_in_api()


def test_reference_has_the_trees_on_dask():
    pytest.importorskip("distributed", reason="trees on Dask need it")
    names = {f"evertree.distributed.{name}" for name in et.distributed.__all__}
    tree = et.distributed.DistributedHierarchy
    names |= {f"evertree.distributed.DistributedHierarchy.{name}" for name in vars(tree) if not name.startswith("_")}
    assert "evertree.distributed.DistributedHierarchy.cut" in names
    assert names <= listed_in_api()


def test_reference_names_nothing_that_is_not_there():
    missing = []
    for name in sorted(listed_in_api()):
        thing = et
        for part in name.split(".")[1:]:
            thing = getattr(thing, part, None)
        if thing is None:
            missing.append(name)
    assert missing == []


def test_reference_has_every_error():
    """All of them are listed by their module; the helpers of error texts are left out by name."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    hidden = re.search(r"automodule:: evertree\.errors\n.*:exclude-members: ([\w, ]+)\n", text, flags=re.DOTALL)
    helpers = {
        name
        for name, thing in vars(et.errors).items()
        if getattr(thing, "__module__", "") == "evertree.errors" and not isinstance(thing, type)
    }
    assert set(hidden[1].split(", ")) == helpers


def toctree_entries() -> set[Path]:
    found = set()
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            entries = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")]
            found |= {Path(os.path.normpath(page.parent / entry)) for entry in entries}
    return found


@pytest.mark.parametrize("page", [str(page.relative_to(DOCS)) for page in PAGES])
def test_every_page_is_in_a_table_of_contents(page):
    assert page == "index.md" or (DOCS / page).with_suffix("") in toctree_entries()


def test_tables_of_contents_name_pages_that_exist():
    generated = {DOCS / "gallery" / "index"}
    pages = {page.with_suffix("") for page in PAGES}
    assert toctree_entries() - pages == generated


@pytest.mark.parametrize("script", sorted(EXAMPLES.rglob("plot_*.py")), ids=lambda script: script.name)
def test_gallery_scripts_have_a_title_and_a_picture(script):
    """`make docs` runs them; here they are only read."""
    text = script.read_text(encoding="utf-8")
    title, line, *_ = ast.get_docstring(ast.parse(text)).splitlines()
    assert line == "=" * len(title)
    assert "plt" in text


def test_there_are_gallery_scripts():
    assert len(list(EXAMPLES.glob("plot_*.py"))) >= 6


def test_architecture_names_every_room_and_only_files_that_are_there():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+(?:\.py|/))`", text))
    assert {"hierarchy.py", "kernels/shared/homogenise.py"} < named
    places = [DOCS.parent, PACKAGE, *(path for path in PACKAGE.iterdir() if path.is_dir())]
    assert [name for name in named if not any((place / name).exists() for place in places)] == []
    rooms = {f"{path.name}/" if path.is_dir() else path.name for path in PACKAGE.iterdir()}
    assert rooms - named - {"__init__.py", "__init__.pyi", "__pycache__/", "py.typed"} == set()


def test_adding_a_metric_as_contributing_says(monkeypatch):
    (_, code), _ = python_blocks(DOCS.parent / "CONTRIBUTING.md")
    names = vars(metrics).copy()
    exec(code, names)
    monkeypatch.setitem(metrics.METRICS, "hellinger", names["_hellinger"])
    h = et.Hierarchy("single", "hellinger")
    h.insert([[0.5, 0.5], [1.0, 0.0]])
    assert h.height(h.root) == pytest.approx(np.sqrt(1 - np.sqrt(0.5)))
    with pytest.raises(et.errors.DataError, match="hellinger"):
        h.insert([[-1.0, 2.0]])


def test_the_linkage_that_contributing_shows_is_wards():
    _, (_, shown) = python_blocks(DOCS.parent / "CONTRIBUTING.md")
    whole = (PACKAGE / "linkages" / "ward.py").read_text(encoding="utf-8")

    def statements(code):
        """All but imports, and docstrings of functions."""
        tree = ast.parse(code)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                del node.body[0]
        return [ast.dump(node) for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)]

    assert len(statements(shown)) == 5
    assert statements(shown) == statements(whole)
