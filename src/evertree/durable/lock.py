"""One writer at a time: a lock that the operating system gives back when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import os
import weakref

from evertree.errors import LockedError, StoreError

try:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


#: The locks of this process. A child that is forked lets go of them: the system would keep them for it as well.
_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def _let_go() -> None:
    for lock in list(_held):
        lock.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class WriterLock:
    """The right to write to a file, held until `release`.

    It is on a file of its own beside the hierarchy's, named with ``-lock``: closing any handle of an SQLite file would
    give up SQLite's own locks on it. The file is removed when the lock is released; one that a killed process left
    behind does not matter.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}-lock"
        self._fd = self._taken(path)
        _held.add(self)

    def _taken(self, path: str) -> int:
        while True:
            try:
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise StoreError(f"{path} cannot be opened for writing: {error.strerror}: {self._path}") from error
            try:
                _lock(fd)
            except (BlockingIOError, PermissionError):
                holder = os.read(fd, 20).decode(errors="replace").strip() or "unknown"
                os.close(fd)
                raise LockedError(
                    f"{path} is open for writing already, by process {holder}",
                    remedy="close it there, or use open(path, read_only=True)",
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
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self.let_go()

    def let_go(self) -> None:
        """Close the file, and leave it there."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
