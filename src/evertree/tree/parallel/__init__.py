"""Insertion and refinement of large trees in pieces, which threads share, with the same tree for any number of them."""
