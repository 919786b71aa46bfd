"""One writer at a time: a lock that the operating system releases when its holder dies, however it dies."""

from __future__ import annotations

import os
from contextlib import suppress

from filelock import FileLock, Timeout

from evertree.errors import LockedError, StoreError


class WriterLock:
    """The right to write to a file, held until `release`. A forked child does not have it.

    It is on a separate file next to the hierarchy's, with the suffix ``-lock``: closing any handle of an SQLite file
    would release SQLite's own locks on it. The file holds the id of the process that has the lock, and is removed when
    the lock is released; one left behind by a killed process does no harm.
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
    with suppress(OSError):  # on a full disk, nobody learns who has the lock
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())


def _process(lock_file: str) -> str | None:
    """The id of the process that holds a lock; None if there is no such file."""
    try:
        with open(lock_file, errors="replace") as file:
            return file.read(20).strip() or "unknown"
    except FileNotFoundError:
        return None
    except OSError:  # on Windows a locked file cannot be read
        return "unknown"
