"""Trees in files and other formats: archives, Newick, nested JSON, networkx, pandas and HTML.

The functions exported here work on a linkage matrix and its keys, without a hierarchy.
"""

from __future__ import annotations

from evertree.io.graph import to_digraph
from evertree.io.nested_json import to_nested, to_nested_json
from evertree.io.newick import ParsedTree, read_newick, write_newick
from evertree.io.node_frame import to_node_frame

__all__ = ["ParsedTree", "read_newick", "to_digraph", "to_nested", "to_nested_json", "to_node_frame", "write_newick"]
