"""``evertree cut``, ``plot``, ``export``, ``info`` and ``verify``: what only reads a tree."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evertree.cli import facts, labels, options, writing
from evertree.cli.examples import examples
from evertree.cli.exits import MENDABLE
from evertree.cli.exporting import PICTURES, Exports, draw
from evertree.cli.opening import open_to_read, require_points
from evertree.cli.output import DASH, Voice, check_targets
from evertree.durable import DurableHierarchy
from evertree.errors import CorruptFileError, InvariantError
from evertree.hierarchy import Hierarchy


class Orientation(StrEnum):
    """Where the root of a picture is."""

    TOP = "top"
    LEFT = "left"


@examples(
    ("Three clusters, as CSV", "evertree cut tree.db --n-clusters 3"),
    ("Several levels in one table", "evertree cut tree.db -k 2 -k 5 --height 1.5 --output labels.parquet"),
    ("The clusters of at least 5 points that there are", "evertree cut tree.db --min-cluster-size 5 | head"),
)
def cut(
    tree: options.AnyTree,
    n_clusters: options.NClusters = None,
    height: options.Heights = None,
    min_cluster_size: options.MinClusterSize = None,
    output: options.Labels = None,
    as_json: options.Json = False,
) -> None:
    """Cut a tree into clusters: a line for each point."""
    wanted = labels.Wanted(n_clusters or [], height or [], min_cluster_size)
    if not wanted:
        raise typer.BadParameter("give --n-clusters, --height or --min-cluster-size", param_hint="cut")
    if as_json and output == DASH:
        raise typer.BadParameter("with --json, nothing else can go to standard output", param_hint="--output")
    target = DASH if output is None and not as_json else output
    check_targets({"--output": (target, writing.ENDINGS)}, tree)
    h = open_to_read(tree)
    require_points(h, tree)
    found = wanted.of(h)
    voice = Voice(as_json, target == DASH)
    if target is not None:
        writing.write(target, "key", h.keys(), found)
    if target != DASH:
        for line in labels.summary(found):
            voice.say(line)
    voice.answer({"tree": str(tree), "points": len(h), "cuts": labels.described(found), **_labels(target, h, found)})


def _labels(target: Path | None, h: Hierarchy, cuts: labels.Cuts) -> dict[str, Any]:
    """For machines: where the labels are, or the labels."""
    if target is not None:
        return {"output": str(target)}
    return {"output": None, "keys": h.keys(), "labels": {name: found.tolist() for name, found in cuts.items()}}


@examples(
    ("The top of a tree", "evertree plot tree.db -o tree.png"),
    ("In the colours of three clusters", "evertree plot tree.db -o tree.svg --n-clusters 3"),
    ("Every leaf, with the root on the left", "evertree plot tree.db -o tree.pdf --truncate 0 --orientation left"),
)
def plot(
    tree: options.AnyTree,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    truncate: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many clusters to show at the bottom; 0 shows every leaf.")
    ] = 50,
    n_clusters: Annotated[
        int | None, typer.Option("--n-clusters", "-k", metavar="N", min=1, help="Give so many clusters colours.")
    ] = None,
    orientation: Annotated[Orientation, typer.Option(help="Where the root is.")] = Orientation.TOP,
    title: Annotated[str | None, typer.Option(help="A title.")] = None,
    as_json: options.Json = False,
) -> None:
    """Draw a tree."""
    check_targets({"--output": (output, PICTURES)}, tree)
    h = open_to_read(tree)
    require_points(h, tree)
    clusters = None if n_clusters is None else h.cut(n_clusters=n_clusters)
    draw(output, h, clusters, n_shown=truncate or None, orientation=str(orientation), title=title)
    voice = Voice(as_json)
    voice.say(str(output))
    voice.answer({"tree": str(tree), "points": len(h), "output": str(output)})


@examples(
    ("For phylogenetics, on the terminal", "evertree export tree.db --newick -"),
    ("For d3, and for SciPy", "evertree export tree.db --tree-json tree.json --linkage-matrix Z.npy"),
    ("A page to look through it with", "evertree export tree.db --html tree.html"),
    ("A copy that evertree.load reads", "evertree export tree.db --save tree.evertree"),
)
def export(
    tree: options.AnyTree,
    newick: options.Newick = None,
    tree_json: options.TreeJson = None,
    linkage_matrix: options.LinkageMatrix = None,
    html: options.Html = None,
    save: options.Save = None,
    as_json: options.Json = False,
) -> None:
    """Write a tree for other tools, or as a page."""
    exports = Exports(newick, tree_json, linkage_matrix, html, None, save)
    if not exports.paths:
        raise typer.BadParameter("give --newick, --tree-json, --linkage-matrix, --html or --save", param_hint="export")
    if as_json and exports.on_stdout:
        raise typer.BadParameter("nothing else can go to standard output: name a file", param_hint="--json")
    check_targets(exports.targets(), tree)
    h = open_to_read(tree)
    require_points(h, tree)
    exports.write(h)
    voice = Voice(as_json, exports.on_stdout)
    files = {what: str(path) for what, path in exports.paths.items() if path != DASH}
    for what, path in files.items():
        voice.say(f"{what.replace('_', ' ')}: {path}")
    voice.answer({"tree": str(tree), "points": len(h), "files": files})


@examples(
    ("What is in a file", "evertree info tree.db"),
    ("And how far the tree is from batch clustering", "evertree info tree.db --measure"),
    ("For a program", "evertree info tree.db --json"),
)
def info(
    tree: options.AnyTree,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Search for blocking pairs at up to 1,000 nodes: takes time on a large tree."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Tell what is in the file of a tree."""
    h = open_to_read(tree)
    found = facts.of(tree, h)
    if measure:
        found["instability"] = h.instability()._asdict()
    voice = Voice(as_json)
    voice.say(facts.text(found))
    voice.answer(found)


@examples(
    ("Whether a file and the tree in it are sound", "evertree verify tree.db"),
    ("In a script", "evertree verify tree.db && cp tree.db backup.db"),
)
def verify(tree: options.AnyTree, as_json: options.Json = False) -> None:
    """Check a file and the tree in it thoroughly.

    The exit code is 0 if they are sound, and 1 if not.
    """
    voice = Voice(as_json)
    problem: Exception | None = None
    try:
        h = open_to_read(tree)
        if isinstance(h, DurableHierarchy):
            h.verify()
        else:
            h.validate()
    except (CorruptFileError, InvariantError) as error:
        if not as_json:
            raise
        problem = error
    found: dict[str, Any] = {"tree": str(tree), "sound": problem is None, "reason": problem and str(problem)}
    voice.answer(found)
    if problem is not None:
        raise typer.Exit(MENDABLE)
    voice.say(f"{tree} is sound: {len(h):,} points")
