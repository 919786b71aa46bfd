"""Labelled data for the benchmarks: scikit-learn's digits, mixtures of Gaussians, and the files of the data folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Beside the repository, not in it: what is missing there is skipped.
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def add_folder(parser: argparse.ArgumentParser) -> None:
    """The option that says where the data are."""
    text = f"where the data are, NAME.npz with arrays X and y each; by default {FOLDER}"
    parser.add_argument("--folder", type=Path, default=FOLDER, help=text)


#: The file of each data set, from the smallest to the largest; digits come with scikit-learn.
FILES = {
    "digits": None,
    "glass": "glass",
    "vowel": "vowel",
    "spambase": "spambase",
    "letter": "letter",
    "news20": "news20_minilm384",
    "mnist10k": "mnist70k",
    "shuttle": "shuttle",
    "mnist70k": "mnist70k",
    "covtype": "covtype",
}

#: The files of streams, whose rows are in order.
STREAMS = {
    "elec2": "stream_elec2",
    "gas": "stream_gas_drift",
    "kdd99": "stream_kdd99_10pct",
    "nab": "stream_nab",
}

#: Their columns are of one kind, or they have unit length.
NOT_SCALED = ("digits", "news20", "mnist10k", "mnist70k")

#: Data with more rows are float32, and so are pixels and embeddings.
MOST_FLOAT64_ROWS = 50_000


def gaussians(n: int) -> str:
    """The name of a mixture of 100 Gaussians in 16 columns."""
    return f"gaussians{n}"


def missing(name: str, folder: Path) -> str | None:
    """Why a data set cannot be loaded, or None."""
    file = STREAMS.get(name, FILES.get(name))
    if file is not None and not (folder / f"{file}.npz").exists():
        return f"{file}.npz is not in the data folder (--folder)"
    return None


def load(name: str, folder: Path, order: int | None = None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Points and their classes 0, 1, …, ready for clustering, in the insertion order of that number."""
    X, y = raw(name, folder)
    if name.startswith("mnist"):
        X = X.astype(np.float32) / np.float32(255)
    elif name not in NOT_SCALED and not name.startswith("gaussians"):
        X = z_scored(X)
    is_float32 = len(X) > MOST_FLOAT64_ROWS or name.startswith(("mnist", "news20"))
    X = X.astype(np.float32 if is_float32 else np.float64)
    y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    if order is None:
        return X, y
    rows = np.random.default_rng(order).permutation(len(X))
    return X[rows], y[rows]


def raw(name: str, folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """What the file or the generator holds."""
    if name == "digits":
        from sklearn.datasets import load_digits

        return load_digits(return_X_y=True)
    if name.startswith("gaussians"):
        return mixture(int(name.removeprefix("gaussians")))
    with np.load(folder / f"{FILES[name]}.npz") as file:
        X, y = file["X"], file["y"]
    if name == "mnist10k":
        rng = np.random.default_rng(0)
        rows = np.concatenate([rng.choice(np.flatnonzero(y == digit), 1_000, replace=False) for digit in range(10)])
        X, y = X[rows], y[rows]
    return X, y


def stream(name: str, folder: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a stream, as they are in its file."""
    with np.load(folder / f"{STREAMS[name]}.npz") as file:
        return dict(file)


def mixture(n: int, n_columns: int = 16, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A mixture of 100 Gaussians, and which of them each point is from."""
    rng = np.random.default_rng(seed)
    centres = 10 * rng.normal(size=(100, n_columns))
    component = rng.integers(100, size=n)
    return centres[component] + rng.normal(size=(n, n_columns)), component


def z_scored(X: NDArray[Any]) -> NDArray[np.float64]:
    """Columns of mean 0 and deviation 1; a constant one is 0."""
    X = X.astype(np.float64)
    X -= X.mean(axis=0)
    deviation = X.std(axis=0)
    # Rounding leaves a constant column with a tiny deviation, by which it must not be divided.
    X /= np.where(deviation > 1e-12, deviation, 1)
    return X
