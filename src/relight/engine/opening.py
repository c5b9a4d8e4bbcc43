"""Findings enter a case, and open an incident where they tell of trouble."""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase
from relight.engine.turns import Turn
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind, Remedy
from relight.model.incidents import Incident, Phase
from relight.model.jobs import JobState

MOST_FINDINGS = 200
"""Findings kept an attempt; what a flood adds beyond them changes no verdict."""

FULLY_KEPT = 20
"""Findings kept with the lines around theirs; later ones keep the line itself."""

RECOVERED_IN_PLACE = "recovered-in-place"
"""How an incident closes whose attempt went on stepping; a later one leaves its findings out."""

_NO_TROUBLE = frozenset({Remedy.END, Remedy.REPORT})


def note_finding(turn: Turn, finding: Finding) -> None:
    """Take a finding into its attempt; one that is known already, by its id, changes nothing."""
    attempt = turn.case.attempt(finding.attempt.attempt)
    if attempt is None or finding.attempt.job != turn.case.key:
        return
    if any(one.id == finding.id for one in attempt.findings):
        return
    if len(attempt.findings) >= MOST_FINDINGS:
        return
    if len(attempt.findings) >= FULLY_KEPT:
        root = tuple(one for one in finding.evidence if one.is_root)
        finding = msgspec.structs.replace(finding, evidence=root)
    attempt = turn.change(attempt.number, findings=(*attempt.findings, finding))
    turn.tell(
        attempt.number,
        Topic.FINDING,
        finding.rule,
        f"{finding.sentence.rstrip('.')} ({finding.rule}, {finding.role}).",
        finding=finding.id,
        place=f"{finding.place.file}:{finding.place.line}" if finding.place else "",
        line=next((one.text for one in finding.evidence if one.is_root), "")[:400],
    )
    if finding.kind is not Kind.ENDING and finding.remedy not in _NO_TROUBLE:
        _join_incident(turn, attempt, finding)


def open_incident(turn: Turn, number: int, findings: tuple[Finding, ...] = ()) -> Incident:
    """Return the open incident of an attempt, opening one where there is none."""
    attempt = turn.case.attempt(number)
    if attempt is None:
        raise LookupError(f"attempt {number} of {turn.case.key} was never seen")
    current = attempt.incident
    if current is not None and current.phase is not Phase.CLOSED:
        return current
    past = attempt.past_incidents if current is None else (*attempt.past_incidents, current)
    incident = Incident(
        id=f"{turn.case.key_of(number)}.{len(past) + 1}",
        phase=Phase.OPEN,
        opened_at=turn.now,
        findings=findings,
    )
    turn.change(number, incident=incident, past_incidents=past)
    return incident


def findings_of_story(attempt: AttemptCase) -> tuple[Finding, ...]:
    """Return the findings that may explain this attempt's trouble.

    Those of incidents that it recovered from in place are left out, unless nothing else
    was found.
    """
    survived = {
        finding.id
        for incident in (*attempt.past_incidents, attempt.incident)
        if incident is not None
        and incident.closed is not None
        and incident.closed.code == RECOVERED_IN_PLACE
        for finding in incident.findings
    }
    fresh = tuple(one for one in attempt.findings if one.id not in survived)
    tells = any(one.kind is not Kind.ENDING for one in fresh)
    return fresh if tells else attempt.findings


def _join_incident(turn: Turn, attempt: AttemptCase, finding: Finding) -> None:
    current = attempt.incident
    if current is not None and current.phase is not Phase.CLOSED:
        joined = msgspec.structs.replace(current, findings=(*current.findings, finding))
        turn.change(attempt.number, incident=joined)
    elif attempt.fact.state is JobState.COMPLETED:
        return  # whatever it printed, it did what it was to do
    elif attempt.advice is None or attempt.ended_seen_at is None:
        open_incident(turn, attempt.number, (finding,))
