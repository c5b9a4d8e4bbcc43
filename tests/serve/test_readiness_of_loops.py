"""Readiness over real loops: trouble is told with its reason, and goes when it is over."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from relight.clients.backend import BackendClient
from relight.daemon import services
from relight.daemon.clock import now
from relight.daemon.loops import Loop
from relight.daemon.services import Service
from relight.model.instants import Instant
from relight.serve.apps import create_app
from relight.serve.ports import Ports
from relight.serve.servers import run_server
from relight.serve.tokens import Token
from relight.store import Store, StoreBroken, StoreBusy, stores
from relight.store import connections as store_connections


@pytest.fixture
def living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> Iterator[BackendClient]:
    """Give a client of a service that runs its loops over a store of its own."""
    monkeypatch.setattr(services, "TRY_STORE_EVERY", 0.05)
    monkeypatch.setattr(store_connections, "BUSY_SECONDS", 0.05)
    with (
        Store.open(str(tmp_path / "relight.db")) as store,
        Service([], store, tmp_path, now) as service,
        run_server(
            create_app(Ports(store, service.daemon), Token(token, "/t"), controllers=False),
            "127.0.0.1",
            0,
        ) as server,
    ):
        client = BackendClient(server.url, token=token)
        yield client
        client.close()


def _wait(client: BackendClient, is_so: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    end = time.monotonic() + 10
    while not is_so(reasons := client.health().reasons):
        assert time.monotonic() < end, reasons
        time.sleep(0.02)
    return reasons


def test_a_database_that_another_program_holds_is_told_and_forgotten_when_it_lets_go(
    living: BackendClient, tmp_path: Path
) -> None:
    assert living.health().ready
    with closing(sqlite3.connect(tmp_path / "relight.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (reason,) = _wait(living, bool)
        assert reason.startswith("trying the database has failed since 20")
        assert "(StoreBusy): another program holds the database" in reason
        other.execute("ROLLBACK")
    _wait(living, lambda reasons: not reasons)


def test_a_database_that_was_deleted_is_told_and_used_again_when_it_is_back(
    living: BackendClient, tmp_path: Path
) -> None:
    away = (tmp_path / "relight.db").rename(tmp_path / "away")
    (reason,) = _wait(living, bool)
    assert "(StoreBroken): the database file" in reason
    assert "removed or replaced while relight runs" in reason
    assert not (tmp_path / "relight.db").exists()
    away.rename(tmp_path / "relight.db")
    _wait(living, lambda reasons: not reasons)


def test_a_disk_without_room_is_told_and_forgotten_when_there_is_room(
    living: BackendClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(stores, "LEAST_FREE", 1 << 62)
        (reason,) = _wait(living, bool)
        assert "is all but full" in reason
    _wait(living, lambda reasons: not reasons)


class _Turns(Loop):
    """Fails as it is told, one error a turn, then succeeds."""

    longest_wait = 0.001

    def __init__(self, *errors: Exception) -> None:
        self.instants = iter(range(1, 100))
        super().__init__("test", "testing", lambda: Instant(next(self.instants)))
        self.errors = list(errors)
        self.seen: list[tuple[int, str, str]] = []

    def turn(self) -> float:
        if self.trouble is not None:
            told = self.trouble
            self.seen.append((told.since, told.error, told.message))
        if self.errors:
            raise self.errors.pop(0)
        self.ask_to_stop()
        return 0.0


def test_a_loop_tells_since_when_it_fails_and_of_which_error_last() -> None:
    several = ExceptionGroup("jobs", [StoreBusy("held"), ExceptionGroup("x", [StoreBroken("y")])])
    loop = _Turns(ZeroDivisionError("a"), several, ValueError("z" * 10_000))
    loop.start()
    loop.join()
    assert loop.seen[:2] == [(1, "ZeroDivisionError", "a"), (1, "StoreBusy", "held (and 1 more)")]
    since, error, message = loop.seen[2]
    assert (since, error, len(message)) == (1, "ValueError", 500)
    assert loop.trouble is None
