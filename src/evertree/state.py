"""`State`: what a hierarchy holds. Edits change it, and everything else reads it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from evertree.input.keys import KeyTable
from evertree.locking import Turns
from evertree.tree import LiveTree
from evertree.windows import MovingWindow


@dataclass(eq=False)
class State:
    """The tree, its keys and its window, and the locks that edits and readers take.

    Attributes
    ----------
    live : LiveTree
        The tree, by node.
    keys : KeyTable
        Which key has which leaf.
    window : MovingWindow or None
        Which points stay.
    seed : int
        Of random choices.
    n_edits : int
        Edits made so far, to notice one that a callback makes.
    """

    live: LiveTree
    keys: KeyTable
    window: MovingWindow | None
    seed: int
    n_edits: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    turns: Turns = field(default_factory=Turns)
