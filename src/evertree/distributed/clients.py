"""The Dask cluster that does the work: of a given client, of the current one, or a new one on this machine."""

from __future__ import annotations

import os
import threading
from typing import Any

from distributed import Client, LocalCluster

from evertree.errors import ClosedError, ParameterError


class _SharedCluster:
    """The local cluster of all trees that were made without a client. It is closed with the last of them."""

    lock = threading.Lock()
    client: Any = None
    n_users = 0

    @classmethod
    def enter(cls) -> Any:
        with cls.lock:
            if cls.client is None or cls.client.status != "running":
                n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
                # A free port for the dashboard: another cluster may have the usual one.
                cluster = LocalCluster(n_workers=n_cores, threads_per_worker=1, dashboard_address=":0")
                cls.client, cls.n_users = Client(cluster), 0
            cls.n_users += 1
            return cls.client

    @classmethod
    def leave(cls, client: Any) -> None:
        with cls.lock:
            cls.n_users -= client is cls.client
            if client is not cls.client or cls.n_users:
                return
            cls.client = None
        client.close()
        client.cluster.close()


class Connection:
    """A Dask client, and whether its cluster is ours to close.

    Parameters
    ----------
    client : distributed.Client or None
        None for the current one; if there is none, a cluster of processes is started on this machine, one for each
        core. Its client becomes the current one, so that results can be computed.
    """

    def __init__(self, client: Any = None) -> None:
        given = _checked(client) if client is not None else _current()
        self._is_own = given is None or given is _SharedCluster.client
        self._client = _SharedCluster.enter() if self._is_own else given

    @property
    def client(self) -> Any:
        """The client, if it is open."""
        if not self.is_open:
            raise ClosedError("the tree, or its Dask client, is closed: load it from a directory that it was saved to")
        return self._client

    @property
    def is_open(self) -> bool:
        """Whether tasks can be sent."""
        return self._client is not None and self._client.status == "running"

    def close(self) -> None:
        """Let go of the client. One that was given stays open."""
        client, self._client = self._client, None
        if client is not None and self._is_own:
            _SharedCluster.leave(client)


def _checked(client: Any) -> Any:
    if not isinstance(client, Client):
        raise ParameterError(f"client must be None or a distributed.Client; it is {type(client).__name__}")
    if client.asynchronous:
        raise ParameterError("client must not be asynchronous: use Client(address) without asynchronous=True")
    if client.status != "running":
        raise ParameterError(f"client must be running; it is {client.status}: make a new one")
    return client


def _current() -> Any:
    try:
        return _checked(Client.current())
    except ValueError:  # there is none, or it cannot be used
        return None
