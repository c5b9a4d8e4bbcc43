"""What arrives at the backend: which facts are taken in, under which key, and what is urgent."""

from __future__ import annotations

from relight.clients.backend.answers import ClusterHealth
from relight.model.advice import Mode
from relight.model.jobs import ENDED, JobFact, JobKey, JobState
from relight.model.observations import Observation
from relight.model.stimuli import AttemptSeen, FindingMade, Stimulus
from relight.policy.policies import PolicyBook


def is_unreadable(fact: JobFact) -> bool:
    """Tell whether a listing named a job whose details could not be read: it is unseen."""
    return fact.state is JobState.UNKNOWN and not fact.user


def is_follower(fact: JobFact) -> bool:
    """Tell whether this is a part of a heterogeneous job that follows its leader, part 0."""
    return bool(fact.het_job) and not fact.scheduler_id.endswith("+0")


def key_of(fact: JobFact, reuse: int = 0) -> JobKey:
    """Return the key of the job that a fact is of, when ``reuse`` jobs bore its id before."""
    return JobKey(cluster=fact.cluster, scheduler_id=fact.scheduler_id, reuse=reuse)


def is_urgent(stimulus: Stimulus) -> bool:
    """Tell whether every loop should look at once: an attempt ended, or its log says why."""
    if isinstance(stimulus, FindingMade):
        return True
    return isinstance(stimulus, AttemptSeen) and stimulus.fact.state in ENDED


def furthest_mode(book: PolicyBook) -> Mode:
    """Return the furthest that any policy of a book may go."""
    order = list(Mode)
    return max((policy.mode for policy in book.policies), key=order.index, default=Mode.MONITOR)


def health_after(before: ClusterHealth, observation: Observation) -> ClusterHealth:
    """Return how a cluster is, now that it was looked at once more."""
    return ClusterHealth(
        name=before.name,
        mode=before.mode,
        seen=observation.complete,
        last_seen_at=observation.at if observation.complete else before.last_seen_at,
        why="; ".join(observation.unseen),
    )
