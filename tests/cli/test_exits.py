"""How errors of the library read on the command line."""

from __future__ import annotations

import pytest

import cli_tools  # noqa: F401  or a reason to skip these tests
from evertree.cli.exits import error_text
from evertree.errors import DuplicateKeyError, LockedError, ParameterError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ParameterError("goal must be 'stable'"), "goal must be 'stable'"),
        (ParameterError("max_age must be 1", parameter="max_age"), "--max-age must be 1"),
        (ParameterError("no", remedy="give time= here too"), "no: give --time here too"),
        (ParameterError("no", remedy="give reset=True, which drops them"), "no: give --reset, which drops them"),
        (ParameterError("no", remedy="lift it with max_age=None"), "no: lift it with --max-age 0"),
        (ParameterError("no", remedy="change it with set_metric()"), "no: change it with set_metric() in Python"),
        (
            ParameterError("search_width must be 4; it is None", parameter="search_width"),
            "--search-width must be 4; it is 0",
        ),
        (DuplicateKeyError("keys must differ"), "keys must differ"),
        (DuplicateKeyError("taken", remedy="use update()"), "taken: evertree upsert gives these points new values"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), "x.csv: No such file or directory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (UnicodeError("not UTF-8"), "not UTF-8"),
    ],
)
def test_errors_in_the_words_of_the_command_line(error, text):
    assert error_text(error) == text


def test_locked_files():
    text = error_text(LockedError("tree.db is open", remedy="use open(path, read_only=True)"))
    assert text.startswith("tree.db is open: try again when")
