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
from relight.engine.hangs import judge_hang, watch_on
from relight.engine.hearing import HEARD_LATELY, was_heard_lately
from relight.engine.numerics import judge_numerics
from relight.engine.opening import findings_so_far, open_incident
from relight.engine.recording import record_verdict
from relight.engine.revisiting import revisit
from relight.engine.second_looks import borne_out
from relight.engine.slowness import judge_slowness
from relight.engine.trouble import (
    is_at_work,
    is_open,
    lost_part,
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
from relight.model.instants import Instant, Span, later, seconds
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
    if attempt.gone_nodes and not is_open(attempt.incident):
        open_incident(turn, attempt.number, kind=Kind.NODE)
        attempt = turn.case.attempt(attempt.number) or attempt
    if attempt.incident is not None and attempt.incident.phase is Phase.CLOSED:
        revisit(turn, attempt, attempt.incident, policy)
        watch_on(turn, attempt, attempt.incident)
        attempt = turn.case.attempt(attempt.number) or attempt
    incident = attempt.incident
    if incident is None or incident.phase is Phase.CLOSED:
        return
    silence = silence_of(incident)
    has_begun = attempt.progress.best_step is not None or bool(attempt.gone_nodes)
    if is_substantial(attempt, incident) and (has_begun or not silence):
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


def is_substantial(attempt: AttemptCase, incident: Incident) -> bool:
    """Tell whether a living attempt shows more than symptoms, beside its own rhythm."""
    return lost_part(attempt, incident) or any(may_have_stopped(one) for one in incident.findings)


def _judge_line(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> None:
    since = later(incident.opened_at, Span(-BEFORE_TROUBLE))
    findings = findings_so_far(attempt, incident, since)
    stepped = attempt.stepped_at or incident.opened_at
    proven = borne_out(attempt, findings, stepped)
    ending = Ending(gone_nodes=attempt.gone_nodes)
    verdict = diagnose(proven, attempt.allocation, ending, attempt.logs_unseen)
    record_verdict(turn, attempt, verdict)
    if attempt.progress.best_step is None and not attempt.gone_nodes:
        _tell_once(turn, attempt)
        return
    due = _settled_at(attempt, incident, policy)
    if turn.now < due:
        turn.wake(due)
        return
    if not attempt.gone_nodes and not was_heard_lately(turn, attempt):
        turn.wake(later(turn.now, HEARD_LATELY))
        return
    if is_awaited(turn, attempt, policy):
        return
    if not is_fresh(turn, attempt, policy):
        attempt = ask(
            turn,
            attempt,
            policy,
            Occasion.LIVING,
            incident.opened_at,
            silent_since=attempt.stepped_at,
        )
        if is_awaited(turn, attempt, policy):
            return
    if not lost_part(attempt, incident) and is_at_work(attempt, findings, stepped):
        turn.wake(later(turn.now, STALE_AFTER))
        return
    give_advice(turn, attempt.number, verdict, policy)


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
    if attempt.gone_nodes:
        return later(incident.opened_at, min(policy.settle, NODE_GONE_GRACE))
    slowest = max(attempt.progress.step_seconds or 0, attempt.progress.report_seconds or 0)
    return later(told, max(policy.settle, Span(seconds(slowest * _STEPS_MISSED))))
