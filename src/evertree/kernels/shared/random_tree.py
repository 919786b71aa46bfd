"""Random trees, uniform over all (2n − 3)!! hierarchies (`eq.numBinTree`)."""

from __future__ import annotations

from evertree.kernels.columns import Tree
from evertree.kernels.compile import kernel
from evertree.kernels.shared.topology import attach
from evertree.kernels.signatures import Ints, LongInts


@kernel
def grow_at_random(tree: Tree, leaves: Ints, picks: LongInts) -> None:
    """Attach `leaves`, with rows 0, 1, …, in an empty tree, each beside a node picked from those before it.

    With i leaves there are 2i − 1 nodes, the root among them; ``picks[i - 1]`` says which: one of the i leaves, or one
    of the i − 1 inner nodes. Every tree comes from exactly one sequence of picks. O(n).
    """
    tree.state["root"][0] = leaves[0]
    for i in range(1, leaves.size):
        pick = picks[i - 1]
        target = 2 * pick if pick < i else 2 * (pick - i) + 1
        attach(tree, leaves[i], target)
    tree.state["n_points"][0] = leaves.size
