"""The loop of a follower: when it polls, when it ends, and that it outlives failures."""

from __future__ import annotations

import logging
import signal
import threading
import time

import pytest

import postgres
from evertree.errors import ParameterError, TransientDatabaseError
from evertree.sql.polling import Listener
from followed import Source

ROWS = [(0, 0.0, 0.0), (1, 0.0, 1.0), (2, 9.0, 9.0)]


@pytest.fixture
def source(tmp_path):
    made = Source("sqlite", tmp_path)
    made.insert(ROWS)
    return made


def test_it_polls_until_it_is_stopped(source):
    stop, ticks = threading.Event(), []

    def on_tick(tick):
        ticks.append(tick)
        source.insert([(10 + len(ticks), 5.0, 5.0)])
        if len(ticks) == 3:
            stop.set()

    with source.follow() as follower:
        follower.run(interval=0.01, on_tick=on_tick, stop=stop)
    assert [tick.inserted for tick in ticks] == [0, 1, 1]


def test_a_full_look_now_and_then(source):
    stop, ticks = threading.Event(), []

    def on_tick(tick):
        ticks.append(tick)
        source.execute("UPDATE items SET x = x + 1, version = -1 WHERE id = 2")
        if len(ticks) == 4:
            stop.set()

    with source.follow(version="version") as follower:
        follower.run(interval=0, on_tick=on_tick, stop=stop, full_every=0)
    assert [tick.updated for tick in ticks] == [0, 1, 1, 1]


def test_ctrl_c_ends_it_after_the_poll(source):
    before = signal.getsignal(signal.SIGINT)
    with source.follow() as follower:
        follower.run(interval=60, on_tick=lambda _: signal.raise_signal(signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is before
        source.insert([(7, 5.0, 5.0)])
        assert follower.poll().inserted == 1


def test_a_second_ctrl_c_ends_the_poll(source, monkeypatch):
    with source.follow() as follower:
        source.insert([(7, 5.0, 5.0)])
        state, rows = source.state(), source.rows("assignment")

        def interrupted(*_):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(follower._output, "write_state", interrupted)
            follower.run(interval=60)
        assert (source.state(), source.rows("assignment")) == (state, rows)
        tick = follower.poll()  # the tree has the row already
        assert tick.inserted == 0
        assert tick.assigned > 0
        assert set(source.assignment()) == {0, 1, 2, 7}


def test_it_tries_again(source, monkeypatch, caplog):
    stop, ticks = threading.Event(), []
    monkeypatch.setattr("evertree.sql.polling.FIRST_PAUSE", 0.01)
    with source.follow() as follower:
        real, failures = follower.poll, iter([True, True, False])

        def poll(full=False):
            if next(failures):
                raise TransientDatabaseError("the database is locked")
            return real(full)

        def on_tick(tick):
            ticks.append(tick)
            stop.set()

        monkeypatch.setattr(follower, "poll", poll)
        with caplog.at_level(logging.WARNING, "evertree.sql"):
            follower.run(interval=0, on_tick=on_tick, stop=stop)
    assert len(ticks) == 1
    assert [record.message for record in caplog.records] == [
        "the database is locked; trying again in 0.0 seconds",
        "the database is locked; trying again in 0.0 seconds",
    ]


def test_other_errors_end_it(source):
    with source.follow() as follower:

        def on_tick(_):
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            follower.run(interval=0, on_tick=on_tick)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"listen": "channel"}, "listen must be None, because only PostgreSQL has channels"),
        ({"listen": ""}, "listen must be None or the name of a channel"),
        ({"interval": -1}, "interval must be a non-negative number"),
        ({"interval": None}, "interval must be a non-negative number"),
        ({"full_every": -1}, "full_every must be a non-negative number"),
    ],
)
def test_parameters_that_are_refused(source, options, message):
    with source.follow() as follower, pytest.raises(ParameterError, match=message):
        follower.run(**options)


@pytest.mark.process
def test_a_message_wakes_it(tmp_path):
    source = Source("postgresql", tmp_path)
    source.insert(ROWS)
    stop, ticks = threading.Event(), []
    channel = 'odd "channel"; --'

    def on_tick(tick):
        ticks.append(tick)
        if len(ticks) == 1:
            source.insert([(7, 5.0, 5.0)])
            for _ in range(3):  # several messages are one poll
                source.execute('NOTIFY "odd ""channel""; --"')
        else:
            stop.set()

    with source.follow() as follower:
        start = time.monotonic()
        follower.run(interval=60, listen=channel, on_tick=on_tick, stop=stop)
        assert time.monotonic() - start < 30
    assert [tick.inserted for tick in ticks] == [0, 1]


@pytest.mark.process
def test_a_server_that_goes_and_comes_back(monkeypatch, caplog):
    programs = postgres.shared_server()._programs
    server = postgres.Server(programs)
    monkeypatch.setattr("evertree.sql.polling.FIRST_PAUSE", 0.05)
    monkeypatch.setattr(postgres, "shared_server", lambda: server)
    try:
        source = Source("postgresql", None)
        source.insert(ROWS)
        stop, done, ticks = threading.Event(), threading.Event(), []

        def come_back():
            done.wait(0.5)
            server.start()
            done.wait(30)  # the server ends with the thread that started it

        def on_tick(tick):
            ticks.append(tick)
            if len(ticks) == 1:
                source.insert([(7, 5.0, 5.0)])
                server.stop()
                thread.start()
            else:
                stop.set()

        thread = threading.Thread(target=come_back)

        with source.follow() as follower, caplog.at_level(logging.WARNING, "evertree.sql"):
            follower.run(interval=0, listen="channel", on_tick=on_tick, stop=stop)
        assert [tick.inserted for tick in ticks] == [0, 1]
        assert set(source.assignment()) == {0, 1, 2, 7}
        assert "trying again in" in caplog.text
        assert postgres.PASSWORD not in caplog.text
    finally:
        done.set()
        server.remove()


def test_a_listener_that_could_not_listen_tries_again(tmp_path, monkeypatch):
    source = Source("postgresql", tmp_path)
    source.insert(ROWS)
    with source.follow() as follower:
        listener = Listener(follower._database, "news")
        with monkeypatch.context() as patch:
            patch.setattr("psycopg.Connection.execute", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                listener.open()
        listener.open()
        source.execute("NOTIFY news")
        assert listener.has_notification(5.0)
        listener.close()
