"""Growth of a count with the number of points, fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PowerLaw:
    """``factor * n ** exponent``, with the standard error of the exponent."""

    factor: float
    exponent: float
    error: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ± {self.error:.2f}"


def fit_power_law(n: Any, counts: NDArray[np.float64]) -> PowerLaw:
    """Fit a power law to mean counts, of shape (sizes, repetitions), on logarithmic axes.

    The error is that of the fit: how far the means are from any power law, and how much they vary.
    """
    x, y = np.log(np.asarray(n, np.float64)), np.log(counts.mean(axis=1))
    (slope, intercept), residuals = np.polyfit(x, y, 1), y - np.polyval(np.polyfit(x, y, 1), x)
    spread = np.sqrt((residuals**2).sum() / max(len(x) - 2, 1) / ((x - x.mean()) ** 2).sum())
    return PowerLaw(float(np.exp(intercept)), float(slope), float(spread))


@dataclass(frozen=True)
class LogGrowth:
    """``n * (constant + slope * log2 n)``, and the share of the variance that it explains."""

    constant: float
    slope: float
    explained: float


def fit_log_growth(n: Any, counts: NDArray[np.float64]) -> LogGrowth:
    """Fit counts for each point, of shape (sizes, repetitions), by a line in the logarithm of the number of points."""
    n = np.asarray(n, np.float64)
    x, y = np.log2(n), counts.mean(axis=1) / n
    slope, constant = np.polyfit(x, y, 1)
    unexplained = ((y - constant - slope * x) ** 2).sum()
    return LogGrowth(float(constant), float(slope), float(1 - unexplained / ((y - y.mean()) ** 2).sum()))
