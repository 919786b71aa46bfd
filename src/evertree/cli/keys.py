"""Keys in files and on the command line: which a word stands for, and what becomes of times."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.cli.output import DASH
from evertree.errors import DataError, FileFormatError, InvalidKeyError, name_rows
from evertree.hierarchy import Hierarchy

#: How a whole number is written that is the same number when it is written again.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")

#: The units of times that name less than a second.
_COARSE = ("Y", "M", "W", "D", "h", "m")


def key_of(word: str) -> Hashable:
    """The key that a word stands for, in a file without types: a whole number, if it is written like one."""
    return int(word) if _WHOLE.fullmatch(word) else word


def live_keys(h: Hierarchy, keys: Sequence[Hashable]) -> list[Hashable]:
    """Keys from text, as a tree has them: as text where that is live, as `key_of` makes them otherwise."""
    return [str(key) if str(key) in h else key for key in keys]


def named_keys(h: Hierarchy, words: Sequence[str]) -> list[Hashable]:
    """The keys that words stand for: those of `live_keys`, and others of any type that only one live key reads like."""
    keys = live_keys(h, [key_of(word) for word in words])
    if all(key in h for key in keys):
        return list(dict.fromkeys(keys))
    live = h.keys()
    counts = Counter(map(str, live))  # as `cut` writes them
    unique = {str(key): key for key in live if counts[str(key)] == 1}
    return list(dict.fromkeys(key if key in h else unique.get(str(key), key) for key in keys))


def words_in(path: Path) -> list[str]:
    """The lines of a file of keys, in UTF-8. Only line feeds, with or without carriage returns, end a line."""
    content = standard_input() if path == DASH else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        name = "standard input" if path == DASH else path
        raise FileFormatError(f"{name} must be text in UTF-8, with a key in each line: {error}") from None
    words = (line.strip(" \t\r") for line in text.split("\n"))
    return [word for word in words if word]


def standard_input() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise DataError("standard input is closed: there is nothing to read")
    return sys.stdin.buffer.read()


def of_array(values: NDArray[Any], where: str, zone: str = "") -> list[Hashable]:
    """The keys in an array; times are text, as JSON and other files can have them."""
    if values.dtype.kind in "fmM":
        missing = np.flatnonzero(values != values)  # NaN, and NaT
        if missing.size:
            raise InvalidKeyError(f"{where} has no key in {name_rows(missing + 1)}")
    if values.dtype.kind == "m":
        raise InvalidKeyError(f"{where} has spans of time, which cannot be keys: make them numbers or text")
    if values.dtype.kind == "M":
        return _times_as_text(values, zone)
    found: list[Hashable] = values.tolist()
    return found


def _times_as_text(times: NDArray[Any], zone: str) -> list[Hashable]:
    """In ISO 8601: dates if all are whole days, and otherwise no more digits of a second than there are."""
    days = times.astype("M8[D]")
    if not zone and (days == times).all():
        return list(map(str, np.datetime_as_string(days)))
    fine = times.astype("M8[s]") if np.datetime_data(times.dtype)[0] in _COARSE else times
    return [_short(str(word)) + zone for word in np.datetime_as_string(fine)]


def _short(word: str) -> str:
    return word.rstrip("0").rstrip(".") if "." in word else word
