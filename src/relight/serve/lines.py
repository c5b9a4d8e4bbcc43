"""Cases as lines of a listing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from relight.clients.backend.answers import IncidentLine, JobLine
from relight.engine.cases import AttemptCase, Case
from relight.engine.plans import plan_of
from relight.model.findings import Domain, Finding, Remedy, Role
from relight.model.incidents import Incident
from relight.store.writing import is_open

_TELLING = frozenset({Role.ROOT, Role.EITHER})
_NO_TROUBLE = frozenset({Remedy.REPORT, Remedy.END})


def job_line(case: Case) -> JobLine:
    """Return one job as a line."""
    latest = case.latest
    base = JobLine(
        key=str(case.key),
        cluster=case.key.cluster,
        scheduler_id=case.key.scheduler_id,
        reuse=case.key.reuse,
        policy=case.choice.policy,
        opted_in=case.choice.opted_in,
        is_open=is_open(case),
        says=says(case),
    )
    return base if latest is None else _with_attempt(base, latest, case)


def _with_attempt(base: JobLine, latest: AttemptCase, case: Case) -> JobLine:
    fact = latest.fact
    incidents = [one.incident for one in case.attempts if one.incident is not None]
    advice = [one.advice for one in case.attempts if one.advice is not None]
    return msgspec.structs.replace(
        base,
        user=fact.user,
        name=fact.name,
        partition=fact.partition,
        state=fact.state,
        attempt=latest.number,
        nodes=latest.allocation.nodes or fact.nodes,
        step=latest.progress.best_step,
        phase=incidents[-1].phase if incidents else None,
        decision=advice[-1].decision if advice else None,
        planned=plan_of(latest),
    )


def says(case: Case) -> str:
    """Return the last sentence that relight has about a job, empty when it has none."""
    if case.choice.errors:
        return case.choice.errors[0]
    for attempt in reversed(case.attempts):
        incident = attempt.incident
        plan = plan_of(attempt)
        if plan is not None:
            return plan.reason.sentence
        if incident is not None and incident.closed is not None:
            return incident.closed.sentence
        if attempt.advice is not None:
            return attempt.advice.reason.sentence
        if incident is not None and incident.verdict is not None:
            return incident.verdict.sentence
        troubles = [one for one in attempt.findings if _is_trouble(one)]
        if troubles:
            return troubles[-1].sentence
    return "" if case.choice.opted_in else "not opted in"


def _is_trouble(finding: Finding) -> bool:
    """Tell whether a finding alone says that something is wrong: a note or a symptom does not."""
    return finding.role in _TELLING and finding.remedy not in _NO_TROUBLE


def incident_lines(case: Case) -> Iterator[IncidentLine]:
    """Yield the incidents of a job as lines, the newest first."""
    for attempt in reversed(case.attempts):
        present = () if attempt.incident is None else (attempt.incident,)
        for incident in (*present, *reversed(attempt.past_incidents)):
            yield _incident_line(case, attempt, incident)


def _incident_line(case: Case, attempt: AttemptCase, incident: Incident) -> IncidentLine:
    verdict = incident.verdict
    told = verdict.sentence if verdict else ""
    return IncidentLine(
        id=incident.id,
        job=str(case.key),
        attempt=attempt.number,
        phase=incident.phase,
        opened_at=incident.opened_at,
        domain=verdict.domain if verdict else Domain.UNKNOWN,
        cause=verdict.cause if verdict else "",
        confidence=verdict.confidence if verdict else 0.0,
        suspects=tuple(suspect.node for suspect in verdict.suspects) if verdict else (),
        says=told or (incident.findings[-1].sentence if incident.findings else ""),
        closed=incident.closed.sentence if incident.closed else "",
        false_recovery=incident.false_recovery,
    )
