"""A backend on a real socket, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relight.store import Store
from relight.testing.told import TOKEN, ListeningDaemon, served_store, told_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give a store that holds the stories; the tests of a module share it and only read."""
    with told_store(tmp_path_factory.mktemp("shared")) as store:
        yield store


@pytest.fixture(scope="module")
def shared_daemon(store: Store) -> ListeningDaemon:
    """Give the daemon behind the shared backend."""
    return ListeningDaemon(store)


@pytest.fixture
def daemon(shared_daemon: ListeningDaemon) -> ListeningDaemon:
    """Give the daemon behind the shared backend, well, and told of nothing yet."""
    shared_daemon.told.clear()
    shared_daemon.is_well = True
    shared_daemon.failure = None
    return shared_daemon


@pytest.fixture(scope="module")
def url(store: Store, shared_daemon: ListeningDaemon) -> Iterator[str]:
    """Give the URL of the shared backend on a real socket."""
    with served_store(store, shared_daemon) as url:
        yield url


@pytest.fixture(scope="session")
def token() -> str:
    """Give the token of every backend here."""
    return TOKEN.value
