"""A living attempt in trouble: which of its troubles speaks first, and what follows from a line.

The gravest speaks: a part of it is gone or a line says what broke, then that it stands still, then
that it computes nonsense, then that it is slow. Whatever it is, it lives: law 7 decides what may
end it.
"""

from __future__ import annotations

import msgspec

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice
from relight.engine.cases import AttemptCase, Occasion
from relight.engine.hangs import LONGEST_PAUSE, judge_hang, watch_on
from relight.engine.hearing import was_heard_lately
from relight.engine.numerics import judge_numerics
from relight.engine.opening import findings_so_far, open_incident
from relight.engine.recording import record_verdict
from relight.engine.revisiting import revisit
from relight.engine.second_looks import borne_out
from relight.engine.slowness import judge_slowness
from relight.engine.trouble import (
    STEPS_ALL_THE_SAME,
    is_at_work,
    may_have_stopped,
    numerics_of,
    silence_of,
    slowness_of,
)
from relight.engine.turns import Turn
from relight.engine.witnesses import (
    BEFORE_TROUBLE,
    STALE_AFTER,
    ask,
    is_awaited,
    is_fresh,
    is_testimony,
    newest,
)
from relight.model.audit import Topic
from relight.model.findings import Kind
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, between, later, seconds
from relight.model.jobs import JobState
from relight.policy.policies import Policy

NODE_GONE_GRACE = seconds(5)
"""After the scheduler's word that a node is gone, it has this long to end the job itself."""
_STEPS_MISSED = 3
"""A step or a progress line may be late by this factor before its absence means anything."""


def judge_living(turn: Turn, attempt: AttemptCase, policy: Policy) -> None:
    """Draw every conclusion about an attempt that lives and on which no advice is active."""
    if attempt.running_at is None or attempt.fact.state is JobState.SUSPENDED:
        return
    attempt = _with_gone_nodes(turn, attempt)
    if attempt.incident is not None and attempt.incident.phase is Phase.CLOSED:
        revisit(turn, attempt, attempt.incident, policy)
        watch_on(turn, attempt, attempt.incident)
        attempt = turn.case.attempt(attempt.number) or attempt
    incident = attempt.incident
    if incident is None or incident.phase is Phase.CLOSED:
        return
    silence = silence_of(incident)
    has_begun = attempt.progress.best_step is not None or bool(incident.gone_nodes)
    if is_substantial(incident) and (has_begun or not silence):
        _judge_line(turn, attempt, incident, policy)
    elif silence:
        judge_hang(turn, attempt, incident, policy)
    elif numerics_of(incident.findings):
        incident = _of_kind(turn, attempt, incident, Kind.NUMERIC)
        judge_numerics(turn, attempt, incident, policy)
    elif slowness_of(incident):
        incident = _of_kind(turn, attempt, incident, Kind.SLOW)
        judge_slowness(turn, attempt, incident, policy)
    elif incident.kind is Kind.HANG and newest(attempt, Occasion.LIVING) is None:
        ask(turn, attempt, policy, Occasion.LIVING, incident.opened_at)


def _of_kind(turn: Turn, attempt: AttemptCase, incident: Incident, kind: Kind) -> Incident:
    """Return the incident as one of this kind: what it began with, a warning say, was no more."""
    if incident.kind is not kind:
        incident = msgspec.structs.replace(incident, kind=kind)
        turn.change(attempt.number, incident=incident)
    return incident


def _with_gone_nodes(turn: Turn, attempt: AttemptCase) -> AttemptCase:
    """Return the attempt with nodes that went down in its story; each is told of in one only.

    A job may go on without a node (``--no-kill``), for as long as it likes.
    """
    stories = [*attempt.past_incidents, *([attempt.incident] if attempt.incident else [])]
    known = {node for one in stories for node in one.gone_nodes}
    fresh = tuple(node for node in attempt.gone_nodes if node not in known)
    if not fresh:
        return attempt
    incident = open_incident(turn, attempt.number, kind=Kind.NODE)
    incident = msgspec.structs.replace(
        incident,
        gone_nodes=(*incident.gone_nodes, *fresh),
        gone_since=incident.gone_since or turn.now,
        kind=Kind.NODE if incident.kind in STEPS_ALL_THE_SAME else incident.kind,
    )
    return turn.change(attempt.number, incident=incident)


def is_substantial(incident: Incident) -> bool:
    """Tell whether the story of a living attempt holds more than symptoms and its own rhythm."""
    return _lost_part(incident) or any(may_have_stopped(one) for one in incident.findings)


def _lost_part(incident: Incident) -> bool:
    """Tell whether a story is of a lost node or task; a node told of in another one is not."""
    return bool(incident.gone_nodes) or any(one.task_gone for one in incident.findings)


def _judge_line(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> None:
    since = later(incident.opened_at, Span(-BEFORE_TROUBLE))
    findings = findings_so_far(attempt, incident, since)
    stepped = attempt.stepped_at or incident.opened_at
    proven = borne_out(attempt, findings, stepped)
    ending = Ending(gone_nodes=attempt.gone_nodes)
    verdict = diagnose(proven, attempt.allocation, ending, attempt.logs_unseen)
    record_verdict(turn, attempt, verdict)
    if attempt.progress.best_step is None and not incident.gone_nodes:
        _tell_once(turn, attempt)
        return
    due = _settled_at(attempt, incident, policy)
    if turn.now < due:
        turn.wake(due)
        return
    if not incident.gone_nodes and not was_heard_lately(turn, attempt):
        return  # the next time that its files are listened to, it is looked at again
    if is_awaited(turn, attempt, policy):
        return
    works = not _lost_part(incident) and is_at_work(attempt, findings, stepped)
    if _is_looked_at(turn, attempt, incident, policy, works=works):
        give_advice(turn, attempt.number, verdict, policy)


def _is_looked_at(
    turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy, *, works: bool
) -> bool:
    """Tell whether a look that is new enough to act on shows no GPUs at work; ask for one if not.

    While they work it is looked at again and again, each time after a longer pause.
    """
    due = _next_look(attempt, incident) if works else turn.now
    if turn.now < due:
        turn.wake(due)
        return False
    if works or not is_fresh(turn, attempt, policy):
        attempt = ask(
            turn,
            attempt,
            policy,
            Occasion.LIVING,
            incident.opened_at,
            silent_since=attempt.stepped_at,
        )
        if is_awaited(turn, attempt, policy):
            return False
    if works:  # and nobody is left to ask: what was seen last stands
        turn.wake(later(turn.now, LONGEST_PAUSE))
    return not works


def _next_look(attempt: AttemptCase, incident: Incident) -> Instant:
    """Return when GPUs that were at work are looked at again: the pauses double, within bounds."""
    begun = max(incident.opened_at, incident.stepped_at or incident.opened_at)
    asked = newest(attempt, Occasion.LIVING) or begun
    return later(asked, min(max(between(begun, asked), STALE_AFTER), LONGEST_PAUSE))


def _tell_once(turn: Turn, attempt: AttemptCase) -> None:
    """Say that silence proves nothing here: unknown never justifies an act (law 1)."""
    incident = attempt.incident
    if incident is not None and incident.opened_at == turn.now and len(incident.findings) == 1:
        turn.tell(
            attempt.number,
            Topic.INCIDENT,
            "no-step-seen",
            "No step of this attempt was ever seen, so its silence proves nothing: it is left "
            "alone until it ends or the scheduler says that a node of it is gone.",
        )


def _settled_at(attempt: AttemptCase, incident: Incident, policy: Policy) -> Instant:
    """Return when a living attempt that goes on without a step is given up (law 7)."""
    lines = [one.seen_at for one in incident.findings if not is_testimony(one)]
    told = max(lines, default=incident.opened_at)
    told = max(told, incident.stepped_at or told)
    if incident.gone_nodes:
        return later(incident.opened_at, min(policy.settle, NODE_GONE_GRACE))
    slowest = max(attempt.progress.step_seconds or 0, attempt.progress.report_seconds or 0)
    return later(told, max(policy.settle, Span(seconds(slowest * _STEPS_MISSED))))
