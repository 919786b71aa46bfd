"""What the paper left open: a module for each question, with a study and the section of the report that answers it."""

from __future__ import annotations

from paper.questions import growth, insertion_orders, metric_learning, orders, over_time, random_single

#: The questions, in the order of the report.
QUESTIONS = {
    "How does the number of moves grow?": growth,
    "How much does the order of moves matter?": orders,
    "How much does the order of insertion matter?": insertion_orders,
    "How good is the tree after how much time?": over_time,
    "What does a randomized single linkage cost?": random_single,
    "Can the tree follow a metric that is being learned?": metric_learning,
}
