"""The order in which to visit nodes. Nothing recurses: a path of a million nodes is a legal tree."""

from __future__ import annotations

from evertree.kernels.compile import kernel
from evertree.kernels.topology import is_leaf


@kernel
def postorder(tree, root, nodes):
    """Fill `nodes` with `root` and all below it, children first; return how many there are. O(their number).

    The child with the older point comes first, and the leaves below any node stand side by side. It stops where `nodes`
    is full.
    """
    count = 0
    end = tree.parent[root]
    u = root
    came_from = end
    while u != end and count < nodes.size:
        p = tree.parent[u]
        older, younger = tree.left[u], tree.right[u]
        if not is_leaf(u) and tree.birth[older] > tree.birth[younger]:
            older, younger = younger, older
        if not is_leaf(u) and came_from == p:
            u, came_from = older, u
        elif not is_leaf(u) and came_from == older:
            u, came_from = younger, u
        else:
            nodes[count] = u
            count += 1
            u, came_from = p, u
    return count


@kernel
def find_spans(tree, nodes, leaves, first, stop):
    """Where the leaves below each node stand among all leaves.

    `nodes` are all nodes in postorder. Fills `leaves` with the leaves among them, and for each node u, ``first[u]`` and
    ``stop[u]`` with the ends of its stretch. O(n).
    """
    count = 0
    for u in nodes:
        if is_leaf(u):
            leaves[count] = u
            first[u] = count
            count += 1
        else:
            first[u] = min(first[tree.left[u]], first[tree.right[u]])
        stop[u] = count
