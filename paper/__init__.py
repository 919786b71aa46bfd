"""The experiments of the paper's section 5, and of what it left open: ``python -m paper.reproduce``.

A *study* (`paper.study`) lists cases and runs one at a time; the runner spreads cases over the cores and records each;
tables, figures and the report are made from the records.
"""
