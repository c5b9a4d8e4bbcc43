"""What the scheduler says now, beside what the advice wants: at most one order follows.

Pure. The controller looks, asks this, acts on the one order, looks again and asks again;
nothing is remembered between but the intents in its outbox, and those only tell whether a
requeue that has already happened was its own.
"""

from __future__ import annotations

from enum import StrEnum

from relight.controller.notes import is_noted, write_note
from relight.model.advice import (
    Action,
    Advice,
    Approval,
    Decision,
    Disposition,
    Forewarning,
    Mode,
    StatusReason,
)
from relight.model.instants import Instant, seconds
from relight.model.jobs import ENDED, Holder, JobFact, JobState
from relight.model.orders import Order, Verb
from relight.model.records import Record

NO_FIT = frozenset({"BadConstraints", "PartitionNodeLimit"})
"""Reasons of a waiting job by which Slurm says that it can never start as it is constrained."""

ORDINARY_WAITS = frozenset(
    {"", "None", "Resources", "Priority", "BeginTime", "NonZeroExitCode", "Dependency"}
)
"""Reasons for which any job waits. Slurm leaves the old reason standing for a while."""
STUCK_AFTER = seconds(600)
"""A job that waits this long for another reason may be stranded by our own exclusion."""

CREDENTIAL_WAIT = seconds(2)
"""How long after a requeue (the new submit time) the job may start at the earliest.

slurmd refuses a credential that was made in the same second in which the job was last
killed on that node ("already killed, do not launch batch job"), and the attempt is lost.
Source: slurm_cred_revoked in Slurm's slurm_cred.c; seen on 22.05.
"""

_START_SLACK = seconds(2)
"""A wait that is over in less than this is not worth a postponement."""

_OWN_RESTARTS = frozenset({Decision.RESTART, Decision.RESTART_EXCLUDING_NODE, Decision.HOLD})
_OWN_HOLDS = frozenset({Holder.LAUNCH_FAILURE, Holder.MAX_REQUEUE})
_PEOPLE = frozenset({Holder.USER, Holder.ADMIN, Holder.UNKNOWN})


class Past(StrEnum):
    """What the outbox says of the requeue of this attempt."""

    NEVER = "never"
    ORDERED = "ordered"
    REFUSED = "refused"


class Signalled(Record, frozen=True, kw_only=True):
    """What the outbox says of the signal of one generation: asked at ``at``, refused or not.

    One that was not answered counts as sent: nothing at the scheduler would show whether it was,
    and a job that is told twice to save may be hit while it writes.
    """

    at: Instant
    is_refused: bool = False


class Wait(Record, frozen=True, kw_only=True, tag=True):
    """Nothing is to be done now, and why; ``is_long`` where that is known to last."""

    why: str
    is_long: bool = False


class Settled(Record, frozen=True, kw_only=True, tag=True):
    """The advice has reached its end, or is refused for capacity while pending."""

    disposition: Disposition
    reason: StatusReason
    sentence: str


class Act(Record, frozen=True, kw_only=True, tag=True):
    """One order is to be given, and the kinds of action that it needs leave for."""

    order: Order
    actions: tuple[Action, ...]


Next = Wait | Settled | Act


def reconcile(
    fact: JobFact | None,
    advice: Advice,
    past: Past,
    now: Instant,
    signalled: Signalled | None = None,
) -> Next:
    """Return the one thing to do next about an advice.

    ``fact`` is the job as the scheduler says now, None when it surely does not know it;
    ``signalled`` what became of the signal before a planned restart, None when it was not sent.
    Permission is not looked at here: the caller may only act on what it has leave for.
    """
    if fact is None:
        return _abandoned(StatusReason.JOB_GONE, "The scheduler no longer knows the job.")
    if advice.approval is Approval.WAITING:
        return Wait(why="A person has not approved the advice yet.")
    ahead = fact.restart_count - advice.attempt.attempt
    if ahead < 0:
        return Wait(why="The scheduler's answer is older than the advice.")
    if ahead > 1:
        return _abandoned(
            StatusReason.SUPERSEDED,
            f"The job is already at attempt {fact.restart_count}.",
        )
    if advice.decision not in _OWN_RESTARTS:
        return _stop(fact, advice)
    if ahead == 0:
        first = _before_requeue(fact, advice, now, signalled) if past is Past.NEVER else None
        return first or _requeue(fact, advice, past)
    return _next_attempt(fact, advice, past, now)


def _requeue(fact: JobFact, advice: Advice, past: Past) -> Next:
    """Return what to do while the advised attempt is still the latest one."""
    match fact.state:
        case JobState.COMPLETED:
            return _abandoned(
                StatusReason.SUPERSEDED, "The attempt completed by itself; nothing was done."
            )
        case JobState.CANCELLED:
            return _abandoned(
                StatusReason.CHANGED_BY_PERSON, "Somebody cancelled the job; that stands."
            )
        case JobState.SUSPENDED | JobState.UNKNOWN | JobState.PENDING | JobState.HELD:
            return Wait(why=f"The job is {fact.state}; it is left alone until that changes.")
        case JobState.COMPLETING:
            return Wait(why="The attempt is ending; how is not known yet.")
        case JobState.RUNNING if not advice.while_living:
            return Wait(why="The job runs again, although it was seen to end.")
        case _:
            pass
    if fact.successors:
        return _abandoned(
            StatusReason.SUCCESSOR_EXISTS,
            f"Job {', '.join(fact.successors[:3])} was submitted to follow this one.",
        )
    if past is Past.REFUSED:
        return _abandoned(
            StatusReason.SCHEDULER_REFUSED, "The scheduler refused to requeue the job."
        )
    return Act(
        order=Order(
            attempt=advice.attempt,
            generation=advice.generation,
            verb=Verb.REQUEUE,
            target="while-running" if fact.state is JobState.RUNNING else "",
            incomplete_only=fact.state is JobState.RUNNING,
        ),
        actions=_actions(advice),
    )


def _before_requeue(
    fact: JobFact, advice: Advice, now: Instant, signalled: Signalled | None
) -> Next | None:
    """Return what comes before the requeue of a running job, None where nothing does.

    A hold gives it the time to go on by itself; a planned restart tells it to save first.
    """
    if fact.state is not JobState.RUNNING or not advice.while_living or fact.successors:
        return None
    until = advice.not_before
    if advice.decision is Decision.HOLD and until is not None and now < until:
        why = "The job still runs and may go on by itself; it is given the time."
        return Wait(why=why, is_long=True)
    ahead = advice.forewarning
    if ahead is None:
        return None
    if signalled is None and ahead.sent_at is None:
        return _signal(advice, ahead)
    if ahead.is_heeded or (signalled is not None and signalled.is_refused):
        return None
    sent = ahead.sent_at if ahead.sent_at is not None else signalled.at if signalled else now
    if now < sent + ahead.wait:
        why = f"The job was sent {ahead.name} and is given the time to save."
        return Wait(why=why, is_long=True)
    return None


def _signal(advice: Advice, ahead: Forewarning) -> Act:
    scope = "batch-" if ahead.batch_only else ""
    return Act(
        order=Order(
            attempt=advice.attempt,
            generation=advice.generation,
            verb=Verb.SIGNAL,
            target=f"{scope}{ahead.name}-generation-{advice.generation}",
            signal=ahead.name,
            batch_only=ahead.batch_only,
        ),
        actions=(*_actions(advice), Action.SIGNAL),
    )


def _next_attempt(fact: JobFact, advice: Advice, past: Past, now: Instant) -> Next:
    """Return what to do for the attempt after the advised one to start as advised."""
    ours = past is Past.ORDERED or is_noted(fact.note, advice)
    if fact.state is JobState.CANCELLED:
        return _abandoned(
            StatusReason.CHANGED_BY_PERSON, "Somebody cancelled the job; that stands."
        )
    if fact.state is JobState.RUNNING or fact.state in ENDED:
        return _started(fact, advice)
    if fact.state in (JobState.COMPLETING, JobState.UNKNOWN, JobState.SUSPENDED):
        return Wait(why="The nodes of the failed attempt are not free yet.")
    if is_noted(fact.note, advice) and _reason(fact) in NO_FIT:
        return _waiting(fact, advice, now)
    if fact.held_by in _PEOPLE and not _cannot_fit(fact):
        return _abandoned(
            StatusReason.CHANGED_BY_PERSON, f"The job is held ({fact.reason}); that stands."
        )
    if not ours and not advice.already_requeued:
        return _abandoned(
            StatusReason.CHANGED_BY_PERSON, "Somebody else requeued the job; that stands."
        )
    if not is_noted(fact.note, advice):
        return _start(fact, advice, now)
    return _held(fact) if fact.held_by in _OWN_HOLDS else _waiting(fact, advice, now)


def _cannot_fit(fact: JobFact) -> bool:
    """Tell whether Slurm keeps the job back as one that fits nowhere, and no person does.

    It gives such a job the priority 0 of a held one, and the reason names no holder.
    """
    return fact.held_by is Holder.UNKNOWN and _reason(fact) in NO_FIT


def _held(fact: JobFact) -> Wait:
    """Return that a hold of Slurm's own is waited out: what is advised is written down already.

    Slurm takes the update of a job that it holds so, and keeps it held (seen on 22.05).
    """
    return Wait(
        why=f"Slurm itself holds the job ({fact.reason}). It starts as advised after: "
        f"scontrol release {fact.scheduler_id}",
        is_long=True,
    )


def _started(fact: JobFact, advice: Advice) -> Next:
    caught = [node for node in advice.exclusions if node in fact.nodes]
    if caught:
        return _abandoned(
            StatusReason.AMBIGUOUS,
            f"The job started on {', '.join(caught)} before the exclusion was written.",
        )
    return Settled(
        disposition=Disposition.CONVERGED,
        reason=StatusReason.DESIRED_STATE_OBSERVED,
        sentence=f"Attempt {fact.restart_count} runs as advised.",
    )


def _waiting(fact: JobFact, advice: Advice, now: Instant) -> Next:
    """Return what Slurm's reason tells of a job whose update was accepted."""
    reason = _reason(fact)
    is_stuck = reason not in ORDINARY_WAITS and now > advice.made_at + STUCK_AFTER
    if advice.ours and (reason in NO_FIT or is_stuck):
        return Settled(
            disposition=Disposition.PENDING,
            reason=StatusReason.NO_CAPACITY,
            sentence=f"The scheduler says {reason} without {', '.join(advice.ours)}.",
        )
    return Wait(why=f"Waiting for the scheduler to start the job ({fact.reason or 'queued'}).")


def _reason(fact: JobFact) -> str:
    return fact.reason.partition(",")[0]


def _start(fact: JobFact, advice: Advice, now: Instant) -> Next:
    if fact.submitted_at is not None and now < fact.submitted_at + CREDENTIAL_WAIT:
        return Wait(why="The nodes have just become free; Slurm's own clean-up needs a moment.")
    postponed = advice.not_before is not None and advice.not_before > now + _START_SLACK
    order = Order(
        attempt=advice.attempt,
        generation=advice.generation,
        verb=Verb.START,
        target=f"generation-{advice.generation}",
        exclude=tuple(dict.fromkeys([*_kept(fact, advice), *advice.exclusions])),
        note=write_note(fact.note, advice, advice.not_before if postponed else None),
        start_at=advice.not_before if postponed else None,
    )
    return Act(order=order, actions=_actions(advice))


def _actions(advice: Advice) -> tuple[Action, ...]:
    """Return what a restart needs leave for, as a whole.

    A requeue whose exclusion would then be refused starts the job on the blamed node.
    """
    return (Action.REQUEUE, Action.EXCLUDE) if advice.exclusions else (Action.REQUEUE,)


def _kept(fact: JobFact, advice: Advice) -> tuple[str, ...]:
    """Return the exclusions that stay: the user's own and relight's, but what it gives back."""
    return tuple(node for node in fact.excluded_nodes if node not in advice.given_back)


def _stop(fact: JobFact, advice: Advice) -> Next:
    if advice.decision is not Decision.STOP:
        return Settled(
            disposition=Disposition.CONVERGED,
            reason=StatusReason.ALREADY_SATISFIED,
            sentence="Nothing has to be done at the scheduler.",
        )
    if fact.state in ENDED:
        return Settled(
            disposition=Disposition.CONVERGED,
            reason=StatusReason.DESIRED_STATE_OBSERVED,
            sentence=f"The job is {fact.state}.",
        )
    if fact.state is JobState.COMPLETING:
        return Wait(why="The job is ending.")
    if fact.held_by in _PEOPLE:
        return _abandoned(
            StatusReason.CHANGED_BY_PERSON, f"The job is held ({fact.reason}); that stands."
        )
    if fact.restart_count > advice.attempt.attempt and not advice.already_requeued:
        return _abandoned(StatusReason.CHANGED_BY_PERSON, "Somebody requeued the job; that stands.")
    return Act(
        order=Order(attempt=advice.attempt, generation=advice.generation, verb=Verb.CANCEL),
        actions=(Action.CANCEL,),
    )


def _abandoned(reason: StatusReason, sentence: str) -> Settled:
    return Settled(disposition=Disposition.ABANDONED, reason=reason, sentence=sentence)


def is_permitted(act: Act, advice: Advice, allowed: tuple[Action, ...], partition: str) -> bool:
    """Check the core's permit again, against the controller's own allowlist and mode (law 3)."""
    permit = advice.permit
    return (
        advice.mode is not Mode.MONITOR
        and permit is not None
        and permit.cluster == advice.attempt.job.cluster
        and permit.partition in partition.split(",")
        and all(action in permit.actions and action in allowed for action in act.actions)
    )
