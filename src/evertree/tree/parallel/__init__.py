"""Insertion and refinement by several threads, with the same tree for any number of them."""
