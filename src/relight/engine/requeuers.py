"""Who put a job back into the queue: relight by its own orders, else by what is seen."""

from __future__ import annotations

from relight.engine.cases import AttemptCase, Requeuer
from relight.engine.launches import OWN_HOLDS
from relight.model.findings import Kind
from relight.model.jobs import JobState


def requeuer_by_evidence(attempt: AttemptCase) -> Requeuer:
    """Return who requeued after an attempt, when it was not relight.

    Slurm requeues by itself when it lost a node, preempted the job or could not launch it. The
    word of the lost node may come from the log after the next attempt was seen, so this is asked
    again then.
    """
    if attempt.own_hold in OWN_HOLDS:
        return Requeuer.SCHEDULER
    lost_node = bool(attempt.gone_nodes) or any(
        one.kind is Kind.NODE and one.task_gone for one in attempt.findings
    )
    if lost_node or attempt.fact.state in (JobState.NODE_FAIL, JobState.PREEMPTED):
        return Requeuer.SCHEDULER
    return Requeuer.PERSON
