"""MNIST: the sample of 2,000 images beside this file, or the whole set where the user has it."""

from __future__ import annotations

import gzip
import hashlib
import math
import zipfile
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, ParameterError

SAMPLE = Path(__file__).with_name("mnist_2000.npz")

N_DIGITS = 10
_N_PIXELS = 784

#: Images of each digit that the experiments need.
FEWEST = 200

#: Names of images and digits in files of the whole set: ours, scikit-learn's habit, and Keras's two parts.
_NAMES = [[("images", "digits")], [("X", "y")], [("x_train", "y_train"), ("x_test", "y_test")]]

#: The same for the files of the original distribution, with or without .gz.
_IDX_PARTS = [
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
]


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

    def sample(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """`n` images with pixels between 0 and 1 and their digits, equally many of each, in random order."""
        of_digit = [np.flatnonzero(self.digits == digit) for digit in range(N_DIGITS)]
        rows = rng.permutation(np.concatenate([rng.choice(found, n // N_DIGITS, replace=False) for found in of_digit]))
        return self.images[rows] / 255.0, self.digits[rows].astype(np.int64)


@cache
def load(path: Path | None = None) -> Mnist:
    """The sample of 2,000 images; or the set in an ``.npz`` file or a folder of the original files."""
    if path is None:
        return _from_npz(SAMPLE)
    if path.is_dir():
        return _from_idx(path)
    if not path.is_file():
        raise ParameterError(f"--mnist must be a file or a folder that exists; {path} does not")
    return _from_npz(path)


def _from_npz(path: Path) -> Mnist:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            wanted = {name for parts in _NAMES for part in parts for name in part}
            arrays = {name: file[name] for name in file.files if name in wanted}
            found = ", ".join(file.files)
    except (ValueError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"--mnist must be an .npz file, or a folder; {path} cannot be read: {error}") from None
    for parts in _NAMES:
        if all(name in arrays for part in parts for name in part):
            return _joined([(arrays[images], arrays[digits]) for images, digits in parts], path)
    raise DataError(
        f"{path} must hold arrays named images and digits, X and y, or x_train, y_train, x_test and y_test; it has "
        f"{found}"
    )


def _from_idx(folder: Path) -> Mnist:
    """Read the files of the original distribution."""
    return _joined([(_idx(folder, images), _idx(folder, digits)) for images, digits in _IDX_PARTS], folder)


def _idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """An array of the IDX format: two zeros, 8 for bytes, the number of axes, how long each is, and the bytes."""
    content = _content(folder, name)
    n_axes = content[3] if content[:3] == b"\0\0\x08" else 0
    shape = tuple(np.frombuffer(content[4 : 4 + 4 * n_axes], ">u4").tolist())
    values = np.frombuffer(content[4 + 4 * n_axes :], np.uint8)
    if n_axes == 0 or len(shape) != n_axes or values.size != math.prod(shape):
        raise DataError(f"{folder / name} is damaged, or no file of MNIST")
    return values.reshape(shape)


def _content(folder: Path, name: str) -> bytes:
    if (folder / name).is_file():
        return (folder / name).read_bytes()
    packed = folder / f"{name}.gz"
    if not packed.is_file():
        raise ParameterError(f"{folder} must hold the four files of MNIST; {name} (or {name}.gz) is missing")
    try:
        return gzip.decompress(packed.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{packed} is damaged: {error}") from None


def _joined(parts: list[tuple[NDArray[Any], NDArray[Any]]], path: Path) -> Mnist:
    """All parts in one, if they are images of digits, and enough of each for every experiment."""
    images = [_whole_numbers(images, 255, path) for images, _ in parts]
    digits = [_whole_numbers(digits, N_DIGITS - 1, path) for _, digits in parts]
    for some, their_digits in zip(images, digits, strict=True):
        if some.size != _N_PIXELS * len(their_digits) or their_digits.ndim != 1:
            raise DataError(
                f"{path} must hold an image of 784 pixels for each digit; the shapes are {some.shape} and "
                f"{their_digits.shape}"
            )
    all_digits = np.concatenate(digits)
    counts = np.bincount(all_digits, minlength=N_DIGITS)
    if counts.min() < FEWEST:
        raise DataError(f"{path} must hold at least {FEWEST} images of each digit; the counts are {counts.tolist()}")
    return Mnist(np.concatenate([some.reshape(-1, _N_PIXELS) for some in images]), all_digits)


def _whole_numbers(values: NDArray[Any], most: int, path: Path) -> NDArray[np.uint8]:
    if values.dtype.kind not in "uif" or not bool(np.all((values >= 0) & (values <= most) & (values % 1 == 0))):
        raise DataError(f"{path} must hold pixels from 0 to 255 and digits from 0 to 9, as whole numbers")
    return values.astype(np.uint8)
