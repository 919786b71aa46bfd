"""The experiments of the paper's section 5, and of what it left open: ``evertree reproduce``.

The way of a number: a *study* (`evertree.reproduce.study`) lists cases and runs one at a time; the runner spreads cases
over the cores and records each; tables, figures and a page are made from the records.
"""
