"""What can be done, for errors of the library that say it in Python."""

from __future__ import annotations

import re

_LOCKED = re.compile(r"(?P<file>.+) is open for writing already, by process (?P<holder>\w+): .*")
_OPTION = re.compile(
    r"(?P<name>\w+) must be None or (?P<found>.+), which the hierarchy in (?P<file>.+) has; it is (?P<given>.+): .*"
)
_CLOCKS = {
    "give time= here too": "give --time",
    "leave time= out, or lift the window by keep() and set it anew with a time=": "leave --time out, or lift the limit "
    "first, with --max-age 0",
}
_RESET = re.compile(r"[Cc]hoose another prefix, or pass reset=True, which drops ")

#: What Python changes in a tree that is there.
_CHANGES = {"linkage": "set_linkage", "metric": "set_metric"}


def on_the_command_line(text: str) -> str:
    """The text of an error, with what can be done about it on the command line."""
    if found := _LOCKED.fullmatch(text):
        return _locked(**found.groupdict())
    if found := _OPTION.fullmatch(text):
        return _other_option(**found.groupdict())
    for in_python, here in _CLOCKS.items():
        text = text.replace(in_python, here)
    return _RESET.sub("give another --prefix, or --reset, which drops ", text)


def _locked(file: str, holder: str) -> str:
    return (
        f"{file} cannot be changed now: another process, number {holder}, is writing to it. Try again when that one "
        "has ended; cut, anomalies, plot, export, info and verify work now, too"
    )


def _other_option(name: str, found: str, file: str, given: str) -> str:
    if name == "search_width":
        found, given = (word.replace("None", "0") for word in (found, given))
    in_python = f", or change this one in Python, with {_CHANGES[name]}()" if name in _CHANGES else ""
    return (
        f"--{name.replace('_', '-')} must be {found}, as in the tree in {file}; it is {given}: "
        f"make another tree in another file{in_python}"
    )
