"""Whether edits that are made again give the tree that they gave when they were made."""

from __future__ import annotations

from collections.abc import Mapping

from evertree import checks
from evertree.durable.digest import digest_of
from evertree.durable.fingerprint import described, fingerprint
from evertree.errors import ReplayWarning, warn
from evertree.state import State

#: Trees with up to this many points are checked whole, in time and memory that may grow by the square; larger ones in
#: linear time.
_MOST_CHECKED_WHOLE = 4_000


class ReplayCheck:
    """Compares a tree with digests of it that were stored with its edits.

    Where it differs, other code or another processor has decided otherwise: nothing is damaged.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    is_doubtful : bool
        Whether the tree differs, or something else than this process has written the edits.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_doubtful = False
        self._has_differed = False
        self._has_warned = False

    def compare(self, state: State, digest: int | None) -> None:
        """Compare the tree with a digest, if there is one."""
        if digest is not None and not self._has_differed:
            self._has_differed = digest_of(state) != digest

    def finish(self, state: State, written_by: Mapping[str, str]) -> None:
        """Check a tree after its edits if something else has written them, or, with a warning, if it differs."""
        if self._has_differed and not self._has_warned:
            self.is_doubtful = self._has_warned = True
            checks.validate(state, _MOST_CHECKED_WHOLE)
            warn(
                f"{self.path} holds edits that give another tree here than where they were made. All points, keys and "
                f"weights are exactly as they were committed, and the tree is valid, but its shape may differ. It was "
                f"written by {described(written_by)}, and opened by {described(fingerprint())}",
                ReplayWarning,
            )
        elif not self.is_doubtful and written_by != fingerprint():
            self.is_doubtful = True
            checks.validate(state, _MOST_CHECKED_WHOLE)
