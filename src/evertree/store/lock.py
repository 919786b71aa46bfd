"""One writer at a time: a lock that the operating system gives back when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import os

from evertree.errors import LockedError

try:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


class WriterLock:
    """The right to write to a file, held until `release`.

    It is on a file of its own beside the hierarchy's, named with ``-lock``: closing any handle of an SQLite file would
    give up SQLite's own locks on it. The file is removed when the lock is released; one that a killed process left
    behind does not matter.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}-lock"
        self._fd = self._taken(path)

    def _taken(self, path: str) -> int:
        while True:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(fd)
            except (BlockingIOError, PermissionError):
                holder = os.read(fd, 20).decode(errors="replace").strip() or "unknown"
                os.close(fd)
                raise LockedError(
                    f"{path} is open for writing already, by process {holder}: close it there, or use "
                    "open(path, read_only=True)"
                ) from None
            if self._is_in_place(fd):
                with contextlib.suppress(OSError):  # a full disk: nobody learns who has the lock
                    os.ftruncate(fd, 0)
                    os.write(fd, str(os.getpid()).encode())
                return fd
            os.close(fd)

    def _is_in_place(self, fd: int) -> bool:
        """Whether the file is still the one by that name: its last holder may have removed it in the meantime."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(fd), os.stat(self._path))
        return False

    def release(self) -> None:
        """Let others write. Only the first call does anything."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._fd)
        self._fd = -1
