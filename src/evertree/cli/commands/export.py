"""``evertree export``: a tree for other tools."""

from __future__ import annotations

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.output import Output
from evertree.cli.output_files import TreeExports, check_output_files, file_lines, written_files
from evertree.cli.tree_files import open_to_read


@examples(
    ("For phylogenetics, on the terminal", "evertree export tree.db --newick -"),
    ("For d3, and for SciPy", "evertree export tree.db --tree-json tree.json --linkage-matrix Z.npy"),
    ("A page to explore it", "evertree export tree.db --html tree.html"),
    ("A copy for evertree.load", "evertree export tree.db --save tree.evertree"),
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
    """Write a tree for other tools, or as a page to explore."""
    exports = TreeExports(newick, tree_json, linkage_matrix, html, None, save)
    if not exports.paths:
        raise typer.BadParameter("give --newick, --tree-json, --linkage-matrix, --html or --save")
    out = Output(as_json, exports.on_stdout)
    check_output_files(exports.to_check(), tree)
    h = open_to_read(tree)
    exports.write(h)
    files = written_files(exports.paths)
    out.text(*file_lines(files))
    out.json({"tree": str(tree), "points": len(h), "files": files})
