"""Keys as text: in files without types, on the command line, and times, which become text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import InvalidKeyError, name_rows
from evertree.hierarchy import Hierarchy

#: Integers whose text can be restored from their value: no leading zeros or plus sign, at most 18 digits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

#: NumPy's units of time that are longer than a second.
_COARSE_UNITS = ("Y", "M", "W", "D", "h", "m")


def parse_key(word: str) -> Hashable:
    """The key that a word stands for in a file without types: an integer if it is written like one, or else text."""
    return int(word) if _INTEGER.fullmatch(word) else word


def match_live_keys(h: Hierarchy, keys: Sequence[Hashable]) -> list[Hashable]:
    """Parsed keys in the types that a tree has: text where that is a live key, otherwise as they are."""
    return [str(key) if str(key) in h else key for key in keys]


def find_keys(h: Hierarchy, words: Sequence[str]) -> list[Hashable]:
    """The keys that words stand for: as `match_live_keys` finds them, or else a live key whose text is unique.

    Keys that are not found are returned too, parsed.
    """
    keys = match_live_keys(h, [parse_key(word) for word in words])
    if not all(key in h for key in keys):
        live = h.keys()
        counts = Counter(map(str, live))  # as `cut` writes them
        unique = {str(key): key for key in live if counts[str(key)] == 1}
        keys = [key if key in h else unique.get(str(key), key) for key in keys]
    return list(dict.fromkeys(keys))


def keys_from_array(values: NDArray[Any], where: str, zone: str = "") -> list[Hashable]:
    """The keys in an array; times become text, because JSON has no times."""
    if values.dtype.kind in "fmM":
        missing = np.flatnonzero(values != values)  # NaN and NaT
        if missing.size:
            raise InvalidKeyError(f"{where} has no key in {name_rows(missing + 1)}")
    if values.dtype.kind == "m":
        raise InvalidKeyError(f"{where} has time spans, which cannot be keys: convert them to numbers or text")
    if values.dtype.kind == "M":
        return _iso_times(values, zone)
    keys: list[Hashable] = values.tolist()
    return keys


def _iso_times(times: NDArray[Any], zone: str) -> list[Hashable]:
    """Times in ISO 8601: dates if all are whole days, otherwise with as many digits of a second as needed."""
    days = times.astype("M8[D]")
    if not zone and (days == times).all():
        return list(map(str, np.datetime_as_string(days)))
    if np.datetime_data(times.dtype)[0] in _COARSE_UNITS:
        times = times.astype("M8[s]")
    words = map(str, np.datetime_as_string(times))
    return [(word.rstrip("0").rstrip(".") if "." in word else word) + zone for word in words]
