"""`PollingLoop`: polls until it is stopped, and survives a database that is away for a while."""

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
from evertree.sql.database import FollowedDatabase

logger = logging.getLogger("evertree.sql")

#: Seconds of the first and the longest pause after a failure; pauses double.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0

#: Seconds between checks whether to stop.
_CHECK_EVERY = 0.25


class PollingLoop:
    """The loop of `Follower.run`, with its parameters."""

    def __init__(
        self,
        database: FollowedDatabase,
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
        self._is_interrupted = False

    def run(self) -> None:
        """Poll until stopped."""
        pause, last_full = FIRST_PAUSE, time.monotonic()
        with self._first_ctrl_c_stops():
            try:
                while not self._is_stopped:
                    is_full = self._full_every is not None and time.monotonic() - last_full >= self._full_every
                    try:
                        if self._listener is not None:
                            self._database.call(self._listener.open)  # before the poll: none is missed
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
    def _is_stopped(self) -> bool:
        return self._is_interrupted or self._stop.is_set()

    def _wait(self, seconds: float, listener: Listener | None = None) -> None:
        """Wait, or until there is a notification or a reason to stop."""
        end = time.monotonic() + seconds
        while not self._is_stopped and (rest := end - time.monotonic()) > 0:
            step = min(rest, _CHECK_EVERY)
            if listener is None:
                self._stop.wait(step)
                continue
            try:
                if self._database.call(listener.has_notification, step):
                    return
            except TransientDatabaseError as error:
                logger.warning("%s; listening again after the next poll", error)
                listener.close()
                return

    @contextmanager
    def _first_ctrl_c_stops(self) -> Iterator[None]:
        """The first Ctrl-C stops the loop after the current poll; the next one does what it did before."""
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def note(_signum: int, _frame: FrameType | None) -> None:
            self._is_interrupted = True
            signal.signal(signal.SIGINT, before)
            logger.info("stopping after this poll; Ctrl-C again stops at once")

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class Listener:
    """A connection that waits for ``NOTIFY`` on a channel of PostgreSQL."""

    def __init__(self, database: FollowedDatabase, channel: str) -> None:
        self._database = database
        self._channel = channel
        self._connection: Any = None

    def open(self) -> None:
        """Start to listen, unless it does already."""
        if self._connection is not None:
            return
        from psycopg import sql

        pooled = self._database.engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()  # it never returns to the pool
        try:
            connection.rollback()
            connection.autocommit = True
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def has_notification(self, seconds: float) -> bool:
        """Wait for a notification; consume all that have come."""
        found = list(self._connection.notifies(timeout=seconds, stop_after=1))
        if found:
            list(self._connection.notifies(timeout=0))
        return bool(found)

    def close(self) -> None:
        """Stop listening."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
