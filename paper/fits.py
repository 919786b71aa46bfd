"""Growth of a count with the number of points, fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Times that repetitions are drawn anew, to see how much a fit depends on which ones there were.
N_BOOTSTRAPS = 200


@dataclass(frozen=True)
class PowerLaw:
    """``factor * n ** exponent``; the error is the standard deviation of the exponent over redrawn repetitions."""

    factor: float
    exponent: float
    error: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ± {self.error:.2f}"


def fit_power_law(n: Any, counts: NDArray[np.float64]) -> PowerLaw | None:
    """Fit a power law to mean counts, of shape (sizes, repetitions), on logarithmic axes.

    None if the means of fewer than two sizes are positive; others are left out.
    """
    used = counts.mean(axis=1) > 0
    if np.count_nonzero(used) < 2:
        return None
    x, counts = np.log(np.asarray(n, np.float64)[used]), counts[used]
    slope, intercept = np.polyfit(x, np.log(counts.mean(axis=1)), 1)
    rng = np.random.default_rng(0)
    repetitions = counts.shape[1]
    redrawn = [counts[:, rng.integers(repetitions, size=repetitions)].mean(axis=1) for _ in range(N_BOOTSTRAPS)]
    slopes = [np.polyfit(x, np.log(means), 1)[0] for means in redrawn if means.min() > 0]
    return PowerLaw(float(np.exp(intercept)), float(slope), float(np.std(slopes)))


@dataclass(frozen=True)
class LogGrowth:
    """``n * (constant + slope * log2 n)``, and the share of the variance between sizes that it explains."""

    constant: float
    slope: float
    explained: float

    def __str__(self) -> str:
        return f"{self.constant:.1f} {'+' if self.slope >= 0 else '−'} {abs(self.slope):.2f} log₂ n"


def fit_log_growth(n: Any, counts: NDArray[np.float64]) -> LogGrowth:
    """Fit counts for each point, of shape (sizes, repetitions), by a line in the logarithm of the number of points."""
    n = np.asarray(n, np.float64)
    x, y = np.log2(n), counts.mean(axis=1) / n
    slope, constant = np.polyfit(x, y, 1)
    unexplained = ((y - constant - slope * x) ** 2).sum()
    return LogGrowth(float(constant), float(slope), float(1 - unexplained / ((y - y.mean()) ** 2).sum()))


def with_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean and its standard error, which is infinite for a single value."""
    n = values.size
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")
