"""One look at a cluster becomes an observation: what changed, what is there, what was unseen."""

from __future__ import annotations

from relight.clients.schedulers import Eyes
from relight.model.instants import Instant, seconds
from relight.model.jobs import ENDED, JobFact, NodeFact
from relight.model.observations import Observation
from relight.model.seen import Seen, Unseen

NODES_EVERY = seconds(5)
"""Nodes change seldom and their listing is the longer one."""
NODES_AT_AN_END = seconds(1)
"""When an attempt has ended, nodes are looked at again unless they were just now."""


class Observer:
    """Looks, and remembers what the backend has accepted, so that only changes are sent."""

    def __init__(self, cluster: str, eyes: Eyes) -> None:
        self._cluster = cluster
        self._eyes = eyes
        self._sequence = 0
        self._sent: dict[str, JobFact] = {}
        self._sent_nodes: dict[str, NodeFact] = {}
        self._nodes_at: Instant | None = None

    def look(self, now: Instant) -> tuple[Observation, dict[str, JobFact]]:
        """Return an observation, and every job seen by scheduler id; none when unseen."""
        self._sequence += 1
        jobs = self._eyes.jobs()
        if isinstance(jobs, Unseen):
            return self._observation(now, complete=False, unseen=(jobs.why,)), {}
        seen = {fact.scheduler_id: fact for fact in jobs.value}
        changed = tuple(fact for key, fact in seen.items() if self._sent.get(key) is not fact)
        nodes, unseen = self._look_at_nodes(now, is_urgent=any(map(self._tells_an_end, changed)))
        observation = self._observation(
            now, complete=True, jobs=changed, present=tuple(seen), nodes=nodes, unseen=unseen
        )
        return observation, seen

    def accepted(self, observation: Observation, seen: dict[str, JobFact]) -> None:
        """Note that the backend has taken an observation in."""
        if observation.complete:
            self._sent = dict(seen)
        self._sent_nodes.update({fact.name: fact for fact in observation.nodes})

    def _tells_an_end(self, fact: JobFact) -> bool:
        """Tell whether an attempt has ended: why may stand in the state of a node."""
        before = self._sent.get(fact.scheduler_id)
        if before is None:
            return False
        return fact.restart_count != before.restart_count or fact.state in ENDED

    def _look_at_nodes(
        self, now: Instant, *, is_urgent: bool
    ) -> tuple[tuple[NodeFact, ...], tuple[str, ...]]:
        age = None if self._nodes_at is None else now - self._nodes_at
        if age is not None and age < (NODES_AT_AN_END if is_urgent else NODES_EVERY):
            return (), ()
        nodes = self._eyes.nodes()
        match nodes:
            case Unseen(why):
                return (), (why,)
            case Seen(facts):
                self._nodes_at = now
                return tuple(one for one in facts if self._sent_nodes.get(one.name) != one), ()

    def _observation(  # noqa: PLR0913 - the fields of the record that it makes
        self,
        now: Instant,
        *,
        complete: bool,
        jobs: tuple[JobFact, ...] = (),
        present: tuple[str, ...] = (),
        nodes: tuple[NodeFact, ...] = (),
        unseen: tuple[str, ...] = (),
    ) -> Observation:
        return Observation(
            cluster=self._cluster,
            sequence=self._sequence,
            at=now,
            complete=complete,
            jobs=jobs,
            present=present,
            nodes=nodes,
            unseen=unseen,
        )
