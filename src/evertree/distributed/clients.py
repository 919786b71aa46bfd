"""Which Dask cluster does the work: one that is given, the current one, or one of our own on this machine."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Self

from distributed import Client, LocalCluster

from evertree.errors import ClosedError, ParameterError


class Connection:
    """A Dask client, and the cluster behind it where that was started here and ends with it.

    Parameters
    ----------
    client : distributed.Client or None
        None for the current one; where there is none, a cluster of processes is started on this machine, one for each
        core.
    """

    def __init__(self, client: Any = None) -> None:
        self._cluster: Any = None
        self._client = _checked(client) if client is not None else _current()
        if self._client is None:
            # A free port for the dashboard: another cluster may have the usual one.
            n_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
            self._cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
            self._client = Client(self._cluster, set_as_default=False)

    @property
    def client(self) -> Any:
        """The client, as long as it is open."""
        if self._client is None or self._client.status != "running":
            raise ClosedError("the Dask client is closed: load the tree anew from a directory that it was saved to")
        return self._client

    @property
    def is_open(self) -> bool:
        """Whether work can still be done."""
        return self._client is not None and self._client.status == "running"

    def close(self) -> None:
        """End the cluster that was started here. A given client stays open."""
        if self._cluster is not None:
            self._client.close()
            self._cluster.close()
        self._client = self._cluster = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _checked(client: Any) -> Any:
    if not isinstance(client, Client):
        raise ParameterError(f"client must be None or a distributed.Client; it is {type(client).__name__}")
    if client.asynchronous:
        raise ParameterError("client must not be asynchronous: use Client(address) without asynchronous=True")
    return client


def _current() -> Any:
    try:
        return _checked(Client.current())
    except ValueError:  # there is none
        return None
