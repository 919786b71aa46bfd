"""The report: what the paper says in section 5.3, what was found, and answers to what it left open."""

from __future__ import annotations

from collections.abc import Iterable

from paper.figures import FIGURES
from paper.output import markdown_image, markdown_table
from paper.section5 import Results
from paper.statements import STATEMENTS

INTRODUCTION = """\
The experiments of O. Arslan and D. E. Koditschek, *Anytime Hierarchical Clustering* (2014, arXiv:1404.3439),
section 5: batch clustering (HAC), anytime clustering from a random tree (AHC) and incremental clustering (IHC), with
five linkages on Euclidean distances. An iteration is a move; for IHC, all moves over the insertion of all points are
counted. The initial trees are drawn uniformly from all hierarchies. AHC mends the check that came last; the paper
leaves the order open, and [it matters](#how-much-does-the-order-of-moves-matter). The correlation is the paper's
everywhere in this report: it counts the zero diagonal, and the induced dissimilarity of a Ward tree is the average
linkage between the parts of each cluster."""


def write(results: Results, command: str, mnist_source: str, answers: Iterable[tuple[str, str]]) -> str:
    """The report as Markdown; `answers` are headings and texts."""
    findings = [(statement, statement.find(results)) for statement in STATEMENTS]
    parts = [
        "# The paper's experiments, reproduced",
        INTRODUCTION,
        f"{results.repetitions:,} repetitions for each size and kind of data. MNIST: {mnist_source}. Made by "
        f"`{command}`; `runs.csv` has every run, and `figure3.csv` to `figure6.csv` the numbers behind the figures.",
        "## Summary",
        markdown_table(
            ("statement of section 5.3", "found"),
            [(statement.claim, f"**{finding.verdict}**") for statement, finding in findings],
        ),
        "## Figures",
    ]
    for figure in FIGURES:
        parts += [
            f"**Figure {figure.number}** (`{figure.label}`): {figure.title}.",
            markdown_image(f"{figure.name}.png", figure.title),
        ]
    parts.append("Means over all repetitions; the shade is one standard deviation of single linkage to both sides.")
    parts.append("## Statements of section 5.3")
    for number, (statement, finding) in enumerate(findings, 1):
        parts += [
            f"### {number}. {statement.claim}",
            f"**{finding.verdict.capitalize()}.** Counted as holding where {statement.criterion}.",
            finding.details,
        ]
    sections = list(answers)
    if sections:
        parts.append("## What the paper left open")
        for heading, text in sections:
            parts += [f"### {heading}", text]
    return "\n\n".join(parts) + "\n"
