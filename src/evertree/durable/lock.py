"""One writer at a time: a lock that the operating system releases when its holder dies, however it dies."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from filelock import FileLock, Timeout

from evertree.errors import LockedError, StoreError

#: Seconds to wait for a holder that has not said who it is, or is about to remove the file.
_PATIENCE = 0.2

#: Bytes at the start of the lock file for the holder. On Windows the first of them is the lock: others cannot read it.
_LENGTH = 20


class WriterLock:
    """The right to write to a file, held until `release`. A forked child does not have it.

    It is on a separate file next to the hierarchy's, with the suffix ``-lock``: closing any handle of an SQLite file
    would release SQLite's own locks on it. The file holds the id of the process that has the lock, after a space, and
    is removed when the lock is released; one left behind by a killed process does no harm.
    """

    def __init__(self, path: str) -> None:
        self._lock = FileLock(f"{path}-lock", blocking=False, thread_local=False, on_acquired=_write_process)
        deadline = time.monotonic() + _PATIENCE
        while not self._lock.is_locked:
            try:
                self._lock.acquire()
            except Timeout:
                holder = _process(self._lock.lock_file)
                if holder or time.monotonic() > deadline:
                    raise LockedError(
                        f"{path} is open for writing already, by process {holder or 'unknown'}",
                        remedy="close it there, or use open(path, read_only=True)",
                    ) from None
                time.sleep(_PATIENCE / 20)
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
    """Write the id of this process to the lock file, over that of an earlier holder.

    The position in the file is restored: on Windows, some versions of filelock release the byte that is there.
    """
    with suppress(OSError):  # on a full disk, nobody learns who has the lock
        os.write(fd, f" {os.getpid()}".ljust(_LENGTH).encode())
    with suppress(OSError):
        os.lseek(fd, 0, os.SEEK_SET)


def _process(lock_file: str) -> str:
    """The id of the process that holds a lock; nothing if it is not there, or cannot be read now."""
    try:
        with open(lock_file, "rb", buffering=0) as file:
            try:
                text = file.read(_LENGTH)
            except PermissionError:  # on Windows
                file.seek(1)
                text = file.read(_LENGTH - 1)
    except OSError:  # its last holder has just removed it or, on Windows, is about to
        return ""
    return text.decode(errors="replace").strip()
