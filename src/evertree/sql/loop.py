"""`Loop`: polls again and again, waits in between, and lives through a database that is away for a while."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from evertree.errors import ParameterError, TransientDatabaseError
from evertree.input.arrays import as_height
from evertree.sql.database import Database

logger = logging.getLogger("evertree.sql")

#: Seconds of the first and the longest pause after a failure; each is twice the one before.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0

#: Seconds between two looks at whether to stop while listening.
_LOOK_EVERY = 0.25


class Loop:
    """The loop of `Follower.run`, which says what its parameters are."""

    def __init__(
        self,
        database: Database,
        poll: Callable[[bool], Any],
        interval: float,
        listen: str | None,
        on_tick: Callable[[Any], object] | None,
        stop: threading.Event | None,
        full_every: float | None,
    ) -> None:
        as_height("interval", interval)
        if full_every is not None:
            as_height("full_every", full_every)
        if listen is not None and (not isinstance(listen, str) or not listen):
            raise ParameterError(f"listen must be None or the name of a channel; it is {listen!r}")
        if listen is not None and database.kind != "postgresql":
            raise ParameterError(f"listen must be None, because only PostgreSQL has channels; it is {listen!r}")
        self._database = database
        self._poll = poll
        self._interval = interval
        self._on_tick = on_tick
        self._stop = threading.Event() if stop is None else stop
        self._full_every = full_every
        self._listener = None if listen is None else Listener(database, listen)
        self._has_ctrl_c = False

    def run(self) -> None:
        """Poll until stopped."""
        pause, last_full = FIRST_PAUSE, time.monotonic()
        with self._noting_ctrl_c():
            try:
                while not self._is_over:
                    is_full = self._full_every is not None and time.monotonic() - last_full >= self._full_every
                    try:
                        if self._listener is not None:
                            self._database.call(self._listener.open)  # before the poll, so that no message is lost
                        tick = self._poll(is_full)
                    except TransientDatabaseError as error:
                        logger.warning("%s; trying again in %.1f seconds", error, pause)
                        self._wait(pause)
                        pause = min(2 * pause, LONGEST_PAUSE)
                        continue
                    pause = FIRST_PAUSE
                    last_full = time.monotonic() if is_full else last_full
                    if self._on_tick is not None:
                        self._on_tick(tick)
                    self._wait(self._interval, self._listener)
            except KeyboardInterrupt:
                logger.info("stopped at once")
            finally:
                if self._listener is not None:
                    self._listener.close()

    @property
    def _is_over(self) -> bool:
        return self._has_ctrl_c or self._stop.is_set()

    def _wait(self, seconds: float, listener: Listener | None = None) -> None:
        """Wait so long, or until there is a message or a reason to stop."""
        end = time.monotonic() + seconds
        while not self._is_over and (rest := end - time.monotonic()) > 0:
            step = min(rest, _LOOK_EVERY)
            if listener is None:
                self._stop.wait(step)
                continue
            try:
                if self._database.call(listener.has_message, step):
                    return
            except TransientDatabaseError as error:
                logger.warning("%s; listening again after the next poll", error)
                listener.close()
                return

    @contextmanager
    def _noting_ctrl_c(self) -> Iterator[None]:
        """The first Ctrl-C is noted, and the next one is left to whoever had it before."""
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def note(_signum: int, _frame: FrameType | None) -> None:
            self._has_ctrl_c = True
            signal.signal(signal.SIGINT, before)
            logger.info("stopping after this poll; Ctrl-C again stops at once")

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class Listener:
    """A connection of its own that waits for ``NOTIFY`` on a channel of PostgreSQL."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel
        self._connection: Any = None

    def open(self) -> None:
        """Begin to listen, if that has not been done."""
        if self._connection is not None:
            return
        from psycopg import sql

        pooled = self._database.engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()  # it is not for others to use
        try:
            connection.rollback()
            connection.autocommit = True
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def has_message(self, seconds: float) -> bool:
        """Wait so long for a message; take all that are there."""
        found = list(self._connection.notifies(timeout=seconds, stop_after=1))
        if found:
            list(self._connection.notifies(timeout=0))
        return bool(found)

    def close(self) -> None:
        """Stop listening."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
