"""Trees for other programs: Newick, networkx, nested JSON, pandas. All start from a linkage matrix and its keys."""

from __future__ import annotations

from evertree.exchange.frame import to_node_frame
from evertree.exchange.graph import to_digraph
from evertree.exchange.nested import to_nested, to_nested_json
from evertree.exchange.newick import ParsedTree, read_newick, write_newick

__all__ = ["ParsedTree", "read_newick", "to_digraph", "to_nested", "to_nested_json", "to_node_frame", "write_newick"]
