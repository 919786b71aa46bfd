"""Without a client a local cluster is started, and ends with the last tree that uses it."""

from __future__ import annotations

import numpy as np
import pytest

import evertree as et

distributed = pytest.importorskip("distributed", reason="distributed trees need Dask")


@pytest.mark.process
@pytest.mark.slow
def test_a_cluster_of_our_own_ends_with_the_last_tree():
    x = np.random.default_rng(0).normal(size=(30, 2))
    with et.distributed.cluster(x) as one, et.distributed.cluster(x) as two:
        client = one.client
        assert two.client is client
        assert all("tcp" in worker for worker in client.scheduler_info()["workers"])  # processes
        one.close()
        assert two.cut(n_clusters=2).compute().max() == 1
    assert client.status == "closed"
    with pytest.raises(ValueError, match="No clients"):
        distributed.default_client()


@pytest.mark.process
@pytest.mark.slow
def test_a_cluster_of_our_own_ends_with_an_error():
    with pytest.raises(et.errors.NotFiniteError):
        et.distributed.cluster([[np.nan]])
    with pytest.raises(ValueError, match="No clients"):
        distributed.default_client()


def test_connections_without_a_client_share_a_cluster(monkeypatch):
    """Of threads here, which start faster."""
    clients = pytest.importorskip("evertree.distributed.clients")
    started = []

    def start(**options):
        started.append(distributed.LocalCluster(**{**options, "n_workers": 1, "processes": False}))
        return started[-1]

    monkeypatch.setattr(clients, "LocalCluster", start)
    one = clients.Connection()
    two, same = clients.Connection(), clients.Connection(one.client)
    client = one.client
    assert two.client is same.client is client
    for connection in (one, one, two):
        connection.close()
        assert not connection.is_open
    assert client.status == "running"
    same.close()
    assert client.status == "closed"
    with pytest.raises(et.errors.ClosedError, match="is closed: load it"):
        same.client  # noqa: B018
    with pytest.raises(et.errors.ParameterError, match="client must be running; it is closed"):
        clients.Connection(client)
    clients.Connection().close()
    assert len(started) == 2
