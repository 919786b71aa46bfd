"""A PostgreSQL server of our own: real, in a temporary folder, on a free port, gone when this process is."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

#: With everything that has to be escaped in a URL. It must never appear in an error or a log.
PASSWORD = "s3cr3t/@:%? +'x"

_SECONDS_TO_START = 30.0


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs, or None; those of Debian are not on the PATH."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    return folders[-1].parent if folders else None


class Server:
    """A server that runs until `stop`, or until this process ends in whatever way."""

    def __init__(self, programs: Path, *settings: str) -> None:
        self._programs = programs
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="evertree-postgres-"))
        self._user = _ordinary_user()
        self._number = itertools.count()
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ["-U", "evertree", "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--no-sync"]
        self._run("initdb", "-D", str(self._folder / "data"), "--locale=C", *options)
        self.port = _free_port()
        self.start()

    def start(self) -> None:
        """Start, or start again."""
        # Durability is not what is tested.
        settings = [
            "fsync=off",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self._folder}",
            *self._settings,
        ]
        options = [word for setting in settings for word in ("-c", setting)]
        with open(self._folder / "log", "a") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C is not for the server
                preexec_fn=_die_with_parent,
            )
        give_up = time.monotonic() + _SECONDS_TO_START
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.05)

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection in which every statement is committed."""
        place = {"host": "127.0.0.1", "port": self.port, "dbname": database}
        return psycopg.connect(user="evertree", password=PASSWORD, autocommit=True, **place)

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        """The URL of a database, with the password."""
        place = sa.URL.create("postgresql+psycopg", "evertree", password, "127.0.0.1", self.port, database)
        return place.render_as_string(hide_password=False)

    def new_database(self) -> str:
        """The URL of a new and empty database."""
        name = f"test_{next(self._number)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def stop(self) -> None:
        """Stop at once; `start` starts it again with what it has."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def remove(self) -> None:
        """Stop, and delete everything."""
        with contextlib.suppress(Exception):
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, user=self._user, cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)


def _ordinary_user() -> str | None:
    """Who runs the server: it refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    import pwd  # which Windows does not have

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _die_with_parent() -> None:
    """In the child: let Linux stop the server (at once: SIGINT) when this process is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@functools.cache
def shared_server() -> Server:
    """The server of all tests, or a reason why there is none: on CI a failure, elsewhere a skip."""
    programs = binaries()
    if programs is None:
        reason = "PostgreSQL's server is not installed: apt install postgresql"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    server = Server(programs)
    atexit.register(server.remove)
    return server
