"""One writer at a time: a lock that the operating system gives back when its holder dies, however it dies."""

from __future__ import annotations

import os
from contextlib import suppress

from filelock import FileLock, Timeout

from evertree.errors import LockedError, StoreError


class WriterLock:
    """The right to write to a file, held until `release`. A forked child does not have it.

    It is on a file of its own beside the hierarchy's, named with ``-lock``: closing any handle of an SQLite file would
    give up SQLite's own locks on it. The file has the number of the process that holds the lock, and is removed when
    the lock is released; one that a killed process left behind does not matter.
    """

    def __init__(self, path: str) -> None:
        self._lock = FileLock(f"{path}-lock", blocking=False, thread_local=False, on_acquired=_write_process)
        while not self._lock.is_locked:
            try:
                self._lock.acquire()
            except Timeout:
                holder = _process(self._lock.lock_file)
                if holder is not None:  # otherwise its last holder has just removed it
                    raise LockedError(
                        f"{path} is open for writing already, by process {holder}",
                        remedy="close it there, or use open(path, read_only=True)",
                    ) from None
            except OSError as error:
                place = self._lock.lock_file
                raise StoreError(f"{path} cannot be opened for writing: {error.strerror}: {place}") from error

    def release(self) -> None:
        """Let others write. Only the first call does anything."""
        if self._lock.is_locked:
            with suppress(OSError):  # on Windows, filelock removes the file after it has released the lock
                os.unlink(self._lock.lock_file)  # on Unix, it would leave it
            self._lock.release()


def _write_process(fd: int) -> None:
    with suppress(OSError):  # a full disk: nobody learns who has the lock
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())


def _process(lock_file: str) -> str | None:
    """The number of the process that holds a lock; None if there is no such file."""
    try:
        with open(lock_file, errors="replace") as file:
            return file.read(20).strip() or "unknown"
    except FileNotFoundError:
        return None
    except OSError:  # Windows lets nobody read what is locked
        return "unknown"
