"""A stimulus becomes part of the case. Facts only: what follows from them is considered after."""

from __future__ import annotations

from typing import TypeVar, assert_never

import msgspec

from relight.engine.attributing import note_attribution
from relight.engine.cases import AttemptCase, Requeuer
from relight.engine.launches import note_own_hold
from relight.engine.opening import (
    RECOVERED_IN_PLACE,
    note_finding,
)
from relight.engine.outcomes import note_order, note_person, note_status, withdraw
from relight.engine.requeuers import requeuer_by_evidence
from relight.engine.revisiting import set_aside
from relight.engine.trouble import (
    MOST_CHECKPOINTS,
    is_refutable,
    with_mark,
)
from relight.engine.turns import Turn, close
from relight.engine.witnesses import note_answer
from relight.model.advice import StatusReason
from relight.model.audit import Topic
from relight.model.incidents import Incident, Phase
from relight.model.jobs import ENDED, WAITING, Allocation, JobFact, JobState, NodeState
from relight.model.progress import Progress
from relight.model.stimuli import (
    AttemptSeen,
    AttributionGiven,
    CapacitySeen,
    CheckpointSeen,
    EvidenceSeen,
    FindingMade,
    JobGone,
    NodeSeen,
    OrderDone,
    PersonSaid,
    ProgressSeen,
    StatusSeen,
    Stimulus,
    Tick,
)
from relight.policy.opt_in import choose

Number = TypeVar("Number", bound=int)

STEPS_THAT_SHOW_LIFE = 3
"""Reports of a higher step after a fault: the first two may have been on their way already."""


def apply(turn: Turn, stimulus: Stimulus) -> None:  # noqa: C901, PLR0912 - one arm a stimulus, none nested
    """Take one stimulus into the case."""
    match stimulus:
        case AttemptSeen():
            _attempt_seen(turn, stimulus.fact)
        case JobGone():
            _job_gone(turn)
        case NodeSeen():
            _node_seen(turn, stimulus)
        case FindingMade():
            note_finding(turn, stimulus.finding)
        case ProgressSeen():
            _progress_seen(turn, stimulus)
        case OrderDone():
            note_order(turn, stimulus.outcome)
        case StatusSeen():
            note_status(turn, stimulus.attempt, stimulus.status)
        case PersonSaid():
            note_person(turn, stimulus)
        case CapacitySeen():
            turn.case = msgspec.structs.replace(turn.case, capacity=stimulus)
        case EvidenceSeen():
            note_answer(turn, stimulus)
        case AttributionGiven():
            note_attribution(turn, stimulus)
        case Tick() | CheckpointSeen():
            pass
        case _:
            assert_never(stimulus)


def _attempt_seen(turn: Turn, fact: JobFact) -> None:
    latest = turn.case.latest
    if latest is not None and fact.restart_count < latest.number:
        return
    _choose(turn, fact)
    note_own_hold(turn, fact)
    latest = turn.case.latest
    successors = tuple(dict.fromkeys([*turn.case.successors, *fact.successors]))
    turn.case = msgspec.structs.replace(turn.case, successors=successors, is_gone=False)
    attempt = turn.case.attempt(fact.restart_count)
    if attempt is None:
        attempt = _begin(turn, fact, latest)
    if fact.state is not attempt.fact.state:
        turn.tell(
            attempt.number,
            Topic.ATTEMPT,
            f"attempt-{fact.state.replace('_', '-')}",
            _state_sentence(fact, has_run=attempt.running_at is not None),
        )
    _update(turn, attempt, fact)


def _choose(turn: Turn, fact: JobFact) -> None:
    choice = choose(fact, turn.book)
    if choice == turn.case.choice:
        return
    turn.case = msgspec.structs.replace(turn.case, choice=choice)
    if choice.errors:
        turn.tell(
            fact.restart_count,
            Topic.JOB,
            "opted-in-with-errors",
            "Nothing is done for this job until its comment is right: "
            + "; ".join(choice.errors)
            + ".",
        )
    elif choice.opted_in:
        turn.tell(
            fact.restart_count, Topic.JOB, "opted-in", f"Watched under policy {choice.policy}."
        )


def _begin(turn: Turn, fact: JobFact, before: AttemptCase | None) -> AttemptCase:
    if before is not None and before.ended_seen_at is None:
        # The scheduler started over without our having seen the end between two looks.
        turn.change(before.number, ended_seen_at=turn.now, ended_at=None)
    if before is not None and before.requeued_by is Requeuer.NOBODY:
        turn.change(before.number, requeued_by=requeuer_by_evidence(before))
    waiting = fact.state in WAITING or fact.state is JobState.COMPLETING
    return turn.put(
        AttemptCase(
            number=fact.restart_count,
            fact=msgspec.structs.replace(fact, state=JobState.UNKNOWN),
            first_seen_at=turn.now,
            running_at=None if waiting else fact.started_at,
        )
    )


def _state_sentence(fact: JobFact, *, has_run: bool) -> str:
    match fact.state:
        case JobState.RUNNING:
            return (
                f"Attempt {fact.restart_count} runs on {', '.join(fact.nodes) or 'nodes unseen'}."
            )
        case JobState.PENDING | JobState.HELD:
            why = f" ({fact.reason})" if fact.reason else ""
            return f"Attempt {fact.restart_count} waits in the queue{why}."
        case JobState.COMPLETING:
            if fact.restart_count and not has_run:
                before = fact.restart_count - 1
                return (
                    f"Attempt {fact.restart_count} is to come; the nodes of attempt {before} are "
                    "not free yet."
                )
            return f"Attempt {fact.restart_count} is ending; its nodes are not free yet."
        case _:
            words = fact.state.replace("_", " ")
            code = f" with exit code {fact.exit_status}" if fact.exit_status else ""
            return f"Attempt {fact.restart_count} is {words}{code}."


def _update(turn: Turn, attempt: AttemptCase, fact: JobFact) -> None:
    changes: dict[str, object] = {"fact": fact}
    if fact.nodes and fact.state not in WAITING:
        changes["allocation"] = Allocation(
            nodes=fact.nodes,
            tasks_per_node=_per_node(fact),
            ranks_are_tasks=_ranks_are_tasks(fact),
        )
    has_run = fact.state is JobState.RUNNING or (fact.state in ENDED and bool(fact.nodes))
    if has_run and attempt.running_at is None:
        changes["running_at"] = fact.started_at or turn.now
    if fact.state is JobState.SUSPENDED:
        set_aside(turn, attempt.number)
        withdraw(
            turn,
            attempt.number,
            StatusReason.CHANGED_BY_PERSON,
            "The job was suspended: what its silence meant is open again.",
        )
    if attempt.fact.state is JobState.SUSPENDED and fact.state is JobState.RUNNING:
        _resume(turn, attempt.number)
    if fact.state in ENDED and attempt.ended_seen_at is None:
        changes["ended_seen_at"] = turn.now
        changes["ended_at"] = fact.ended_at
    turn.change(attempt.number, **changes)
    previous = turn.case.attempt(attempt.number - 1)
    if (
        previous is not None
        and previous.nodes_free_at is None
        and fact.state is not JobState.COMPLETING
    ):
        turn.change(previous.number, nodes_free_at=turn.now)


def _resume(turn: Turn, number: int) -> None:
    """Let an attempt's clocks start anew, as it goes on after a suspension."""
    set_aside(turn, number)
    incident = turn.change(number, resumed_at=turn.now).incident
    if incident is not None and incident.phase is not Phase.CLOSED:
        turn.change(number, incident=msgspec.structs.replace(incident, stepped_at=turn.now))


def _per_node(fact: JobFact) -> int:
    if fact.tasks_per_node:
        return fact.tasks_per_node
    if fact.tasks and fact.nodes and fact.tasks % len(fact.nodes) == 0:
        return fact.tasks // len(fact.nodes)
    return 0


def _ranks_are_tasks(fact: JobFact) -> bool:
    """Tell whether each rank is a task: with one task a node, a launcher may hold several."""
    per_node = _per_node(fact)
    if fact.gpus_per_node:
        return per_node == fact.gpus_per_node
    return per_node > 1


def _job_gone(turn: Turn) -> None:
    if turn.case.is_gone:
        return
    turn.case = msgspec.structs.replace(turn.case, is_gone=True)
    latest = turn.case.latest
    if latest is not None:
        turn.tell(latest.number, Topic.JOB, "job-gone", "The scheduler no longer knows this job.")
        if latest.ended_seen_at is None:
            turn.change(latest.number, ended_seen_at=turn.now)


def _node_seen(turn: Turn, seen: NodeSeen) -> None:
    latest = turn.case.latest
    name = seen.fact.name
    if latest is None or name not in latest.allocation.nodes or latest.ended_seen_at is not None:
        return
    if seen.fact.state is NodeState.DOWN and name not in latest.gone_nodes:
        turn.change(latest.number, gone_nodes=(*latest.gone_nodes, name))
        turn.tell(
            latest.number,
            Topic.ATTEMPT,
            "node-down",
            f"The scheduler says that {name}, a node of this attempt, is down"
            + (f": {seen.fact.reason}." if seen.fact.reason else "."),
        )


def _progress_seen(turn: Turn, seen: ProgressSeen) -> None:
    attempt = turn.case.attempt(seen.attempt)
    if attempt is None:
        return
    progress = _joined(attempt.progress, seen.progress)
    changed = turn.change(
        seen.attempt,
        progress=progress,
        logs_unseen=seen.logs_unseen,
        logs_read=attempt.logs_read or seen.final,
        heard_at=attempt.heard_at if seen.logs_unseen else turn.now,
    )
    if seen.logs_unseen and seen.logs_unseen != attempt.logs_unseen:
        turn.tell(
            seen.attempt,
            Topic.ATTEMPT,
            "logs-unseen",
            f"Its logs are not seen, so nothing can be said of its health: {seen.logs_unseen}",
        )
    _note_checkpoint(turn, changed)
    gained = _gained(attempt, changed)
    if gained:
        changed = turn.change(seen.attempt, stepped_at=turn.now, marks=with_mark(changed, turn.now))
        _recovered_in_place(turn, changed, gained)


def _note_checkpoint(turn: Turn, attempt: AttemptCase) -> None:
    newest = attempt.progress.best_checkpoint
    if newest is not None and newest not in attempt.checkpoints[-1:]:
        steps = (*attempt.checkpoints, newest)[-MOST_CHECKPOINTS:]
        turn.change(attempt.number, checkpoints=steps)


def _joined(known: Progress, told: Progress) -> Progress:
    """Return what is known with what was told since; what was told once is not forgotten."""
    return Progress(
        best_step=_highest(known.best_step, told.best_step),
        last_step=told.last_step if told.last_step is not None else known.last_step,
        best_checkpoint=_highest(known.best_checkpoint, told.best_checkpoint),
        resumed_from=_first(known.resumed_from, told.resumed_from),
        first_step=_first(known.first_step, told.first_step),
        first_step_at=_first(known.first_step_at, told.first_step_at),
        last_step_at=_highest(known.last_step_at, told.last_step_at),
        step_seconds=told.step_seconds or known.step_seconds,
        report_seconds=told.report_seconds or known.report_seconds,
    )


def _gained(before: AttemptCase, after: AttemptCase) -> str:
    """Return what was completed, in words: a step or a checkpoint (law 8); else nothing.

    A worker that was restarted in place begins below the best step, and it lives. A checkpoint
    that was completed before its attempt was first met tells nothing.
    """
    was, now = before.progress, after.progress
    if now.best_step is None:
        return ""
    if (was.best_step, was.last_step) != (now.best_step, now.last_step):
        return f"step {now.last_step if now.last_step is not None else now.best_step}"
    if was.best_checkpoint != now.best_checkpoint:
        return f"the checkpoint of step {now.best_checkpoint}"
    return ""


def _recovered_in_place(turn: Turn, attempt: AttemptCase, gained: str) -> None:
    """Close the incident of an attempt that lives and goes on (law 7).

    One that is slow or computes nonsense steps all the same: that tells nothing of it.
    """
    incident = attempt.incident
    if incident is None or incident.phase is Phase.CLOSED:
        return
    if attempt.ended_seen_at is not None or incident.gone_nodes or attempt.is_being_ended:
        return
    incident = msgspec.structs.replace(
        incident, steps_after=incident.steps_after + 1, stepped_at=turn.now
    )
    turn.change(attempt.number, incident=incident)
    if not _is_refuted(attempt, incident):
        return
    said = f"{gained[0].upper()}{gained[1:]} was completed after all."
    withdraw(turn, attempt.number, StatusReason.SUPERSEDED, said)
    if incident.steps_after < STEPS_THAT_SHOW_LIFE:
        return
    sentence = f"It goes on ({gained}): the attempt recovered in place and is left alone."
    close(turn, attempt.number, RECOVERED_IN_PLACE, sentence)


def _is_refuted(attempt: AttemptCase, incident: Incident) -> bool:
    """Tell whether progress speaks against an incident, or what its active advice rests on."""
    advice = attempt.advice
    findings = incident.findings
    if advice is not None and advice.is_active:
        findings = tuple(one for one in findings if one.seen_at <= advice.made_at)
    return is_refutable(findings)


def _highest(before: Number | None, after: Number | None) -> Number | None:
    known = [value for value in (before, after) if value is not None]
    return max(known) if known else None


def _first(before: Number | None, after: Number | None) -> Number | None:
    return before if before is not None else after
