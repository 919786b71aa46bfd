from . import (
    bounds,
    events,
    filling,
    pieces,
    repair,
    rows,
    rules,
    slack,
    slots,
    state,
    values,
)

__all__ = [
    "bounds",
    "events",
    "filling",
    "pieces",
    "repair",
    "rows",
    "rules",
    "slack",
    "slots",
    "state",
    "values",
]
