"""A verdict is written into the incident of its attempt, a new revision where it changed."""

from __future__ import annotations

import msgspec

from relight.diagnosis.cascades import CLOCK_SLACK
from relight.engine.attributing import ask_attribution
from relight.engine.cases import AttemptCase
from relight.engine.opening import findings_of_story, open_incident
from relight.engine.trouble import silence_of, silent_since, slow_since, slowness_of
from relight.engine.turns import Turn, moved
from relight.engine.witnesses import weigh
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind, Provenance
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, later
from relight.model.verdicts import Verdict


def record_verdict(
    turn: Turn, attempt: AttemptCase, verdict: Verdict, *, is_later: bool = False
) -> bool:
    """Write a verdict into the attempt's incident; tell whether it is another than before.

    ``is_later`` says that it rests on evidence that came after advice was given.
    """
    incident = open_incident(turn, attempt.number, findings_of_story(attempt))
    turn.change(attempt.number, looks=weigh(attempt), judged_at=turn.now)
    if incident.verdict is not None:
        verdict = msgspec.structs.replace(verdict, revision=incident.verdict.revision)
        if verdict == incident.verdict:
            return False
        verdict = msgspec.structs.replace(verdict, revision=incident.verdict.revision + 1)
    root = next((one for one in attempt.findings if one.id == verdict.root), None)
    times = msgspec.structs.replace(
        incident.times,
        fault=_fault(turn, attempt, incident, root) or incident.times.fault,
        ended=attempt.ended_at or attempt.ended_seen_at,
        detected=incident.times.detected or turn.now,
    )
    phase = Phase.DIAGNOSED if incident.phase is Phase.OPEN else incident.phase
    turn.change(attempt.number, incident=moved(incident, phase, verdict=verdict, times=times))
    late = "Later evidence, verdict" if is_later else "Verdict"
    turn.tell(
        attempt.number,
        Topic.VERDICT,
        verdict.cause,
        f"{late}: {verdict.sentence} ({verdict.domain}, confidence {verdict.confidence:.2f}).",
        suspects=", ".join(one.node for one in verdict.suspects),
        revision=str(verdict.revision),
    )
    ask_attribution(turn, attempt.number, verdict)
    return True


def _fault(
    turn: Turn, attempt: AttemptCase, incident: Incident, root: Finding | None
) -> Instant | None:
    """Return when the trouble began: the last completed step of a hang, the onset of slowness.

    What witnesses saw tells when they looked. A line of another sort tells by its own clock.
    """
    if root is None:
        return None
    silence, slow = silence_of(incident), slowness_of(incident)
    if silence and (root.kind is Kind.HANG or root.provenance is Provenance.TELEMETRY):
        return silent_since(attempt, silence[0])
    if slow and incident.kind is Kind.SLOW:
        policy = turn.book.policy(turn.case.choice.policy)
        return slow_since(attempt, slow[0], policy.slow_for if policy is not None else Span(0))
    return _written_at(root, attempt)


def _written_at(root: Finding, attempt: AttemptCase) -> Instant:
    """Return when the root line was written: its own clock, where that can be this attempt's."""
    began = attempt.running_at or attempt.first_seen_at
    if root.at is None or not later(began, Span(-CLOCK_SLACK)) <= root.at <= later(
        root.seen_at, CLOCK_SLACK
    ):
        return root.seen_at
    return root.at
