"""A backend on a real socket: a real store with told stories in it, and a daemon that listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from relight.clients.backend.answers import ClusterHealth, Health, SourceHealth
from relight.model.advice import Advice, Mode, ReconciliationStatus
from relight.model.jobs import AttemptKey
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome
from relight.model.stimuli import Word
from relight.serve.apps import create_app
from relight.serve.ports import Ports
from relight.serve.servers import run_server
from relight.serve.tokens import Token
from relight.store import Change, Store

TOKEN = Token(value="the-token-of-the-tests", path="/state/token")
STORIES = Path(__file__).with_name("stories.json")


@dataclass
class ListeningDaemon:
    """Remembers what it is told; its advice is what the store holds."""

    store: Store
    told: list[object] = field(default_factory=list)
    is_well: bool = True
    failure: Exception | None = None

    def health(self) -> Health:
        """Say that the cluster is seen, or not."""
        cluster = ClusterHealth(name="main", mode=Mode.APPROVE, seen=self.is_well, why="no answer")
        return Health(clusters=(cluster,), sources=(SourceHealth(name="files", seen=True),))

    def person_said(
        self, attempt: AttemptKey, *, generation: int, word: Word, who: str, why: str
    ) -> None:
        """Remember a person's word."""
        self._take((str(attempt), generation, word, who, why))

    def observe(self, observation: Observation) -> None:
        """Remember an observation."""
        self._take(observation)

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return what the store holds."""
        return self.store.advice(active_only=True, cluster=cluster).items

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Remember a status."""
        self._take((str(attempt), status))

    def outcome(self, outcome: OrderOutcome) -> None:
        """Remember an outcome."""
        self._take(outcome)

    def _take(self, what: object) -> None:
        if self.failure is not None:
            raise self.failure
        self.told.append(what)


def told_store(folder: Path) -> Store:
    """Open a new store in ``folder`` that holds the stories."""
    store = Store.open(f"sqlite:///{folder}/relight.db")
    for change in msgspec.json.decode(STORIES.read_bytes(), type=list[Change]):
        store.commit(change)
    return store


@contextmanager
def served_store(store: Store, daemon: ListeningDaemon) -> Iterator[str]:
    """Serve a store on a free port of this machine and give its URL."""
    app = create_app(Ports(store, daemon), TOKEN, controllers=True)
    with run_server(app, "127.0.0.1", 0) as server:
        yield server.url
