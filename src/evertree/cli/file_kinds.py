"""What kind of file it is, judging by its first bytes, and by its name where these do not tell."""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO, Literal

from evertree.cli.input_source import InputFile
from evertree.durable.sqlite_file import MAGIC
from evertree.errors import DataError, FileFormatError

Kind = Literal["arrays", "parquet", "json", "csv"]

GZIP = b"\x1f\x8b"
_NPY, _ZIP, _PARQUET = b"\x93NUMPY", b"PK\x03\x04", b"PAR1"

#: The kinds that are read from a file as a whole.
BINARY = (_NPY, _ZIP, _PARQUET)

#: How many bytes decide what a file is.
_N_FIRST = 1024

#: The start of an array, or of an object.
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*[-\d\[{\]]|\{\s*[\"}])")
_JSON_ENDINGS = {".json", ".jsonl", ".ndjson"}

#: The first bytes of files that are no tables for us: what they are, and what to do.
_OTHERS = {
    MAGIC: "an SQLite database: see evertree follow for a table in it, and evertree cut for a tree",
    b"ARROW1": "an Arrow file: save the table as Parquet",
    b"ORC": "an ORC file: save the table as Parquet",
    b"\x89HDF": "an HDF5 file: save the points as .npy or .npz",
    b"\x80\x04\x95": "a pickle of Python: save the table as CSV or Parquet",
    b"\x80\x05\x95": "a pickle of Python: save the table as CSV or Parquet",
    b"\xd0\xcf\x11\xe0": "an Excel file: save the table as CSV",
    b"BZh": "compressed by bzip2: decompress it, or use gzip",
    b"\xfd7zXZ": "compressed by xz: decompress it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard: decompress it, or use gzip",
    b"%PDF-": "a PDF, not a table",
    b"\x89PNG": "a picture, not a table",
    b"\xff\xd8\xff": "a picture, not a table",
    b"GIF8": "a picture, not a table",
}
_MARKUP = re.compile(rb"(\xef\xbb\xbf)?\s*<(\?xml|!doctype|html)", re.IGNORECASE)


def find_kind(stream: BinaryIO, file: InputFile) -> Kind:
    """What the bytes of a file are; an error that names it if that is nothing that can be read."""
    first = stream.read(_N_FIRST)
    stream.seek(0)
    if not first:
        raise DataError(f"{file.name} is empty")
    kind = _from_bytes(first, stream)
    if file.format is not None:
        wanted: Kind = "json" if file.format in ("json", "jsonl") else "csv"
        if kind not in (None, wanted):
            raise FileFormatError(f"--format must be left out: {file.name} is {_NAMES[kind]}, not {file.format}")
        kind = wanted
    if kind is None:
        kind = "json" if _JSON_ENDINGS & set(file.path.suffixes) else "csv"
    if kind in ("json", "csv"):
        _refuse_others(first, file.name)
    return kind


#: The kinds in messages.
_NAMES: dict[Kind | None, str] = {"arrays": "a NumPy file", "parquet": "Parquet", "json": "JSON"}


def _from_bytes(first: bytes, stream: BinaryIO) -> Kind | None:
    """The kind of a file if its first bytes are unmistakable."""
    if first.startswith((_NPY, _ZIP)):
        return "arrays"
    if first.startswith(_PARQUET) and (b"\0" in first or _ends_with(stream, _PARQUET)):
        return "parquet"
    return "json" if _JSON.match(first) else None


def _refuse_others(first: bytes, file: str) -> None:
    """Refuse what is not text in UTF-8."""
    if b"\0" in first or not _is_utf8(first):
        for start, what in _OTHERS.items():
            if first.startswith(start):
                raise FileFormatError(f"{file} is {what}")
    if _MARKUP.match(first):
        raise FileFormatError(f"{file} is HTML or XML: save the table as CSV")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in first:
        raise FileFormatError(f"{file} is text in UTF-16: save it as UTF-8, with iconv -f UTF-16 -t UTF-8, say")
    if b"\0" in first:
        raise FileFormatError(f"{file} is neither text (in UTF-8) nor Parquet, .npy or .npz")


def _is_utf8(first: bytes) -> bool:
    """Whether bytes are the start of text in UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(first)  # which waits for the rest of the last character
    except UnicodeDecodeError:
        return False
    return True


def _ends_with(stream: BinaryIO, ending: bytes) -> bool:
    stream.seek(-len(ending), io.SEEK_END)
    found = stream.read()
    stream.seek(0)
    return found == ending
