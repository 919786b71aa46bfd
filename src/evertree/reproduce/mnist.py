"""MNIST: the sample of 2,000 images that comes with the package, or the whole set where the user has it."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, ParameterError

N_DIGITS = 10
_N_PIXELS = 784

#: Names of images and digits in files of the whole set: ours, scikit-learn's habit, and Keras's two parts.
_NAMES = [[("images", "digits")], [("X", "y")], [("x_train", "y_train"), ("x_test", "y_test")]]

#: The same for the files of the original distribution, with or without .gz.
_IDX_PARTS = [
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
]
_IDX_HEADERS = (16, 8)


@dataclass(frozen=True)
class Mnist:
    """Images as rows of pixels between 0 and 255, and the digit that each shows."""

    images: NDArray[np.uint8]
    digits: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.digits)

    @property
    def fingerprint(self) -> str:
        """The same for the same images in the same order."""
        return hashlib.sha256(self.images.tobytes() + self.digits.tobytes()).hexdigest()

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """`n` images, equally many of each digit, in random order; pixels between 0 and 1."""
        rows = [
            rng.choice(np.flatnonzero(self.digits == digit), n // N_DIGITS, replace=False) for digit in range(N_DIGITS)
        ]
        return self.images[rng.permutation(np.concatenate(rows))] / 255.0


@cache
def load(path: Path | None = None) -> Mnist:
    """The sample that comes with the package; or the set in an ``.npz`` file or a folder of the original files."""
    if path is None:
        with resources.as_file(resources.files(__package__) / "mnist_2000.npz") as sample:
            return _from_npz(sample)
    if path.is_dir():
        return _from_idx(path)
    if not path.is_file():
        raise ParameterError(f"--mnist must be a file or a folder that exists; {path} does not")
    return _from_npz(path)


def _from_npz(path: Path) -> Mnist:
    try:
        with np.load(path, allow_pickle=False) as file:
            for parts in _NAMES:
                if all(name in file for part in parts for name in part):
                    return _joined([(file[images], file[digits]) for images, digits in parts], path)
            found = ", ".join(file.files)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"--mnist must be an .npz file or a folder; {path} cannot be read: {error}") from None
    raise DataError(
        f"{path} must hold arrays named images and digits, X and y, or x_train, y_train, x_test and y_test; it has "
        f"{found}"
    )


def _from_idx(folder: Path) -> Mnist:
    """Read the files of the original distribution: a header of whole numbers, and then bytes."""
    parts = []
    for names in _IDX_PARTS:
        images, digits = (
            np.frombuffer(_content(folder, name)[header:], np.uint8)
            for name, header in zip(names, _IDX_HEADERS, strict=True)
        )
        if images.size != _N_PIXELS * digits.size:
            raise DataError(f"{names[0]} and {names[1]} in {folder} do not belong together, or one is cut short")
        parts.append((images, digits))
    return _joined(parts, folder)


def _content(folder: Path, name: str) -> bytes:
    if (folder / name).is_file():
        return (folder / name).read_bytes()
    if (folder / f"{name}.gz").is_file():
        return gzip.decompress((folder / f"{name}.gz").read_bytes())
    raise ParameterError(f"{folder} must hold the four files of MNIST; {name} (or {name}.gz) is missing")


def _joined(parts: list[tuple[NDArray[Any], NDArray[Any]]], path: Path) -> Mnist:
    images = np.concatenate([np.asarray(images).reshape(-1, _N_PIXELS) for images, _ in parts])
    digits = np.concatenate([digits for _, digits in parts])
    if images.dtype != np.uint8 or len(images) != len(digits):
        raise DataError(f"{path} must hold an image of 784 pixels as uint8 for each digit; it does not")
    counts = np.bincount(digits, minlength=N_DIGITS)
    if len(counts) != N_DIGITS or counts.min() < N_DIGITS:
        raise DataError(f"{path} must hold at least 10 images of each digit; the counts are {counts.tolist()}")
    return Mnist(images, digits.astype(np.uint8))
