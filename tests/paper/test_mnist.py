"""The images of the reproduction: the sample beside the code, and files of the whole set."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from evertree.errors import DataError, ParameterError
from paper import mnist

PROJECT = Path(__file__).parents[2]


def test_the_sample_of_mnist():
    digits = mnist.load()
    assert digits.images.shape == (2000, 784)
    assert digits.images.dtype == np.uint8
    np.testing.assert_array_equal(np.bincount(digits.digits), 200)
    means = np.array([digits.images[digits.digits == k].mean() for k in range(10)])
    assert means.argmin() == 1  # a one takes the least ink, a zero the most
    assert means.argmax() == 0


def test_the_sample_is_from_the_whole_set():
    whole = PROJECT.parent / "shared" / "data" / "mnist70k.npz"
    if not whole.is_file():
        pytest.skip("the whole of MNIST is not beside this clone")
    loaded = mnist.load(whole)
    with np.load(PROJECT / "paper" / "mnist_2000.npz") as sample:
        np.testing.assert_array_equal(loaded.images[sample["rows"]], sample["images"])
        np.testing.assert_array_equal(loaded.digits[sample["rows"]], sample["digits"])


def test_a_sample_is_balanced_and_in_random_order(rng):
    digits = mnist.load()
    drawn, shown = digits.sample(50, rng)
    assert drawn.shape == (50, 784)
    assert drawn.max() <= 1
    known = {image.tobytes(): digit for image, digit in zip(digits.images, digits.digits, strict=True)}
    assert [known[np.round(255 * image).astype(np.uint8).tobytes()] for image in drawn] == shown.tolist()
    np.testing.assert_array_equal(np.bincount(shown), 5)
    assert shown.tolist() != sorted(shown)


N_IMAGES = 10 * mnist.FEWEST


def idx_files(folder, images, digits, compress=False):
    parts = {
        "train-images-idx3-ubyte": images[:1500].reshape(-1, 28, 28),
        "train-labels-idx1-ubyte": digits[:1500],
        "t10k-images-idx3-ubyte": images[1500:].reshape(-1, 28, 28),
        "t10k-labels-idx1-ubyte": digits[1500:],
    }
    for name, array in parts.items():
        data = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
        if compress:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)


def some_images(rng):
    digits = np.repeat(np.arange(10, dtype=np.uint8), mnist.FEWEST)
    return rng.integers(0, 256, size=(N_IMAGES, 784), dtype=np.uint8), rng.permutation(digits)


@pytest.mark.parametrize("kind", ["ours", "X and y", "floats", "Keras", "original", "original, compressed"])
def test_the_whole_set_in_its_usual_forms(tmp_path, rng, kind):
    images, digits = some_images(rng)
    path = tmp_path / "mnist.npz"
    if kind == "ours":
        np.savez(path, images=images, digits=digits)
    elif kind == "X and y":
        np.savez(path, X=images, y=digits.astype(np.int64))
    elif kind == "floats":
        np.savez(path, X=images.astype(float), y=digits.astype(float))
    elif kind == "Keras":
        square = images.reshape(-1, 28, 28)
        np.savez(path, x_train=square[:60], y_train=digits[:60], x_test=square[60:], y_test=digits[60:])
    else:
        path = tmp_path
        idx_files(path, images, digits, "compressed" in kind)
    loaded = mnist.load(path)
    np.testing.assert_array_equal(loaded.images, images)
    np.testing.assert_array_equal(loaded.digits, digits)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "must hold arrays named"),
        ({"X": np.full((5, 784), 0.5), "y": np.zeros(5, int)}, "whole numbers"),
        ({"X": np.full((5, 784), 256), "y": np.zeros(5, int)}, "whole numbers"),
        ({"X": np.zeros((5, 784), np.uint8), "y": np.full(5, -1)}, "whole numbers"),
        ({"X": np.zeros((5, 784), np.uint8), "y": np.full(5, 10**12)}, "whole numbers"),
        ({"X": np.zeros((5, 784), np.uint8), "y": np.array(["0"] * 5)}, "whole numbers"),
        ({"X": np.zeros((5, 784), np.uint8), "y": np.zeros(5, int)}, "at least 200 images of each digit"),
        ({"X": np.zeros((5, 784), np.uint8), "y": np.zeros(6, int)}, "784 pixels for each digit"),
        ({"X": np.zeros((5, 10), np.uint8), "y": np.zeros(5, int)}, "784 pixels for each digit"),
        ({"X": np.zeros((0, 784), np.uint8), "y": np.zeros(0, int)}, "at least 200 images"),
    ],
)
def test_a_file_that_is_not_mnist(tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataError, match=message):
        mnist.load(tmp_path / "x.npz")


@pytest.mark.parametrize("damage", ["text", "empty", "cut short", "one array"])
def test_a_damaged_file(tmp_path, damage):
    path = tmp_path / "x.npz"
    np.savez(path, X=np.zeros((500, 784), np.uint8), y=np.zeros(500))
    content = path.read_bytes()
    if damage == "one array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.write_bytes({"text": b"hello", "empty": b"", "cut short": content[: len(content) // 2]}[damage])
    with pytest.raises(DataError, match=r"x\.npz cannot be read"):
        mnist.load(path)


def test_mnist_that_is_not_there(tmp_path):
    with pytest.raises(ParameterError, match="--mnist must be a file or a folder that exists"):
        mnist.load(tmp_path / "no.npz")
    with pytest.raises(ParameterError, match="train-images-idx3-ubyte"):
        mnist.load(tmp_path)


@pytest.mark.parametrize("damage", ["compressed", "header", "cut short"])
def test_damaged_original_files(tmp_path, rng, damage):
    idx_files(tmp_path, *some_images(rng), compress=damage == "compressed")
    path = tmp_path / ("t10k-labels-idx1-ubyte" + (".gz" if damage == "compressed" else ""))
    content = path.read_bytes()
    path.write_bytes(b"\1" + content[1:] if damage == "header" else content[:-9])
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte"):
        mnist.load(tmp_path)
