"""The local cluster as every scheduler is seen: eyes that only look, hands that change."""

from __future__ import annotations

from relight.clients.local.cluster import LocalCluster
from relight.clients.local.standings import Refused
from relight.clients.schedulers import Answer
from relight.model.instants import Span
from relight.model.jobs import JobFact, NodeFact
from relight.model.orders import Outcome
from relight.model.seen import Seen, Unseen


class LocalEyes:
    """Looks at a local cluster; see ``relight.clients.schedulers.Eyes``."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return every job that the cluster remembers."""
        return self._closed() or Seen(self._cluster.facts())

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return one job as it is now, None when the cluster does not know it."""
        return self._closed() or Seen(self._cluster.fact(scheduler_id))

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return every node as it is now."""
        return self._closed() or Seen(self._cluster.node_facts())

    def _closed(self) -> Unseen | None:
        if self._cluster.is_closed:
            return Unseen(f'The local cluster "{self._cluster.name}" has been closed.')
        return None


class LocalHands:
    """Changes jobs of a local cluster; see ``relight.clients.schedulers.Hands``."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """Put a job back into the queue as its next attempt."""
        return self._answer(self._cluster.requeue(scheduler_id, incomplete_only=incomplete_only))

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Write note, exclusions and start time of a waiting job in one change."""
        return self._answer(
            self._cluster.update(scheduler_id, note=note, exclude=exclude, delay=delay)
        )

    def cancel(self, scheduler_id: str) -> Answer:
        """Cancel a job."""
        return self._answer(self._cluster.cancel(scheduler_id))

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Send a signal to every task of a job; there is no batch script beside them."""
        del batch_only
        return self._answer(self._cluster.signal(scheduler_id, name))

    def _answer(self, refused: Refused | None) -> Answer:
        if refused is None:
            return Answer(outcome=Outcome.DONE, text="")
        return Answer(outcome=Outcome.REFUSED, text=refused.text)
