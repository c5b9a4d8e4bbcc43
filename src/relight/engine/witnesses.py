"""Witnesses beside the logs: who was asked about which window, and what they have answered.

Nothing here concludes anything. A witness that has not answered, could not see, or is blind to
something has said nothing: its silence is never read as 'all is well' (law 1).
"""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase, Look, Occasion
from relight.engine.turns import Turn
from relight.model.audit import Topic
from relight.model.evidence import Window, Witness
from relight.model.findings import Finding, Kind, Provenance
from relight.model.instants import Instant, Span, later, seconds
from relight.model.questions import EvidenceAsked
from relight.model.stimuli import EvidenceSeen
from relight.policy.policies import Policy

BEFORE_TROUBLE = seconds(600)
"""A window begins this long before the trouble: what lies further back caused something else.

Source: the window in which Meta's Research SuperCluster blames a node's health for a failure.
"""
STALE_AFTER = seconds(60)
"""Before acting on a living attempt, no look may be older: what stood still may go on again."""
LATER_LOOK = seconds(300)
"""How long after an end witnesses are asked once more: the same window's other side."""
MOST_LOOKS = 24
MOST_FOUND = 50
MOST_BLIND = 40
MOST_SENTENCE = 300

RECORDER_RULES = frozenset(
    {
        "rank-not-joined",
        "rank-stuck-in-transport",
        "collective-mismatch",
        "stream-blocked",
        "recorder-refused",
    }
)
"""What flight recorder dumps are found to tell. They are the job's own, so is their provenance."""

GPUS_WORK = "gpus-work"
"""What metrics show where GPUs are at work while a log is silent."""

_OF_A_MOMENT = frozenset({Kind.HANG, Kind.SLOW})
_BY_PROVENANCE = {
    Provenance.TELEMETRY: Witness.TELEMETRY,
    Provenance.KERNEL: Witness.KERNEL_LOG,
}


def witness_of(finding: Finding) -> Witness | None:
    """Return the witness that a finding comes from, None where that is no witness's."""
    if finding.rule in RECORDER_RULES and finding.detector != "signatures":
        return Witness.FLIGHT_RECORDER
    return _BY_PROVENANCE.get(finding.provenance)


def is_testimony(finding: Finding) -> bool:
    """Tell whether a finding was made beside the job's own lines.

    It bears witness where there is trouble; by itself it is none (law 7).
    """
    return finding.provenance is not Provenance.JOB_LOG or witness_of(finding) is not None


def witnesses_of(turn: Turn, policy: Policy) -> tuple[Witness, ...]:
    """Return who can be asked about this job; a recorder only where its path is known."""
    has_path = bool(turn.case.choice.flight_recorder or policy.flight_recorder)
    return tuple(
        one for one in turn.book.witnesses if has_path or one is not Witness.FLIGHT_RECORDER
    )


def ask(  # noqa: PLR0913 - what is asked, about when, and why
    turn: Turn,
    attempt: AttemptCase,
    policy: Policy,
    occasion: Occasion,
    trouble: Instant,
    *,
    silent_since: Instant | None = None,
    slow_since: Instant | None = None,
) -> AttemptCase:
    """Ask every witness of the cluster about the time from before the trouble until now."""
    path = turn.case.choice.flight_recorder or policy.flight_recorder
    since = later(min(trouble, turn.now), Span(-BEFORE_TROUBLE))
    for witness in witnesses_of(turn, policy):
        window = Window(
            attempt=turn.case.key_of(attempt.number),
            allocation=attempt.allocation,
            since=since,
            until=turn.now,
            silent_since=silent_since,
            slow_since=slow_since,
            started_at=attempt.running_at,
            gpus_per_node=attempt.fact.gpus_per_node,
            uid=attempt.fact.uid,
            flight_recorder=path if witness is Witness.FLIGHT_RECORDER else "",
        )
        turn.questions.append(EvidenceAsked(job=turn.case.key, witness=witness, window=window))
        look = Look(witness=witness, occasion=occasion, asked_at=turn.now, since=since)
        attempt = turn.change(attempt.number, looks=(*attempt.looks, look)[-MOST_LOOKS:])
    return attempt


def newest(attempt: AttemptCase, occasion: Occasion) -> Instant | None:
    """Return when witnesses were last asked on an occasion, None when they never were."""
    return max((one.asked_at for one in attempt.looks if one.occasion is occasion), default=None)


def sights(attempt: AttemptCase, since: Instant) -> tuple[Look, ...]:
    """Return the looks at metrics from ``since`` on, while it lived, that saw anything."""
    return tuple(
        one
        for one in attempt.looks
        if one.witness is Witness.TELEMETRY
        and one.occasion is Occasion.LIVING
        and one.answered_at is not None
        and not one.unseen
        and one.asked_at >= since
    )


def newest_sight(attempt: AttemptCase, since: Instant) -> Look | None:
    """Return the last of those looks, None when there was none."""
    return next(reversed(sights(attempt, since)), None)


def is_fresh(turn: Turn, attempt: AttemptCase, policy: Policy) -> bool:
    """Tell whether the last look at a living attempt is new enough to act on.

    It ages from when it was answered, or given up. Where nobody can be asked, there is none.
    """
    asked = newest(attempt, Occasion.LIVING)
    if asked is None:
        return not witnesses_of(turn, policy)
    over = [
        one.answered_at if one.answered_at is not None else later(one.asked_at, policy.evidence)
        for one in attempt.looks
        if one.occasion is Occasion.LIVING and one.asked_at == asked
    ]
    return turn.now <= later(max(over), STALE_AFTER)


def is_awaited(turn: Turn, attempt: AttemptCase, policy: Policy) -> bool:
    """Tell whether a decision waits for a witness, and have the case woken when it no longer does.

    One that takes longer than the policy allows has not answered.
    """
    deadlines = [
        later(one.asked_at, policy.evidence) for one in attempt.looks if one.answered_at is None
    ]
    open_ones = [deadline for deadline in deadlines if deadline > turn.now]
    if open_ones:
        turn.wake(max(open_ones))
    return bool(open_ones)


def note_answer(turn: Turn, seen: EvidenceSeen) -> None:
    """Take in that a witness has answered; what it could not see is told once.

    What it is blind to is many sentences of the cluster, not of the job: they are kept with the
    attempt, and the audit holds their number.
    """
    attempt = turn.case.attempt(seen.attempt)
    asked = _unanswered(attempt, seen.witness, seen.until) if attempt is not None else None
    if attempt is None or asked is None:
        return
    unseen = seen.unseen[:MOST_SENTENCE]
    is_news = bool(unseen) and all(one.unseen != unseen for one in attempt.looks)
    cut = dict.fromkeys(one[:MOST_SENTENCE] for one in seen.blind)
    room = MOST_BLIND - len(attempt.blind)
    fresh = [one for one in cut if one not in attempt.blind][:room]
    answered = msgspec.structs.replace(asked, answered_at=turn.now, unseen=unseen)
    turn.change(
        seen.attempt,
        looks=_with(attempt.looks, asked, answered),
        blind=(*attempt.blind, *fresh),
    )
    who = seen.witness.replace("_", " ").capitalize()
    if is_news:
        said = f"{who} could not tell anything, which is no sign of health: {unseen}"
        turn.tell(seen.attempt, Topic.ATTEMPT, "witness-unseen", said, witness=seen.witness)
    if fresh:
        things = "1 thing" if len(fresh) == 1 else f"{len(fresh)} things"
        said = f"{who} cannot see {things} of this job: relight doctor lists them."
        turn.tell(seen.attempt, Topic.ATTEMPT, "witness-blind", said, witness=seen.witness)


def note_testimony(turn: Turn, number: int, finding: Finding) -> None:
    """Write down in answer to which question a finding came, the first time or again."""
    attempt = turn.case.attempt(number)
    witness = witness_of(finding)
    if attempt is None or witness is None:
        return
    asked = _unanswered(attempt, witness, finding.seen_at)
    asked = asked or _unanswered(attempt, witness, turn.now)
    if asked is None or finding.id in asked.found or len(asked.found) >= MOST_FOUND:
        return
    answered = msgspec.structs.replace(asked, found=(*asked.found, finding.id))
    turn.change(number, looks=_with(attempt.looks, asked, answered))


def weigh(attempt: AttemptCase) -> tuple[Look, ...]:
    """Return the looks of an attempt once a verdict has taken their answers into account."""
    return tuple(
        one
        if one.answered_at is None or one.is_weighed
        else msgspec.structs.replace(one, is_weighed=True)
        for one in attempt.looks
    )


def is_outdated(attempt: AttemptCase, finding: Finding) -> bool:
    """Tell whether a witness has looked again since and no longer tells what it told.

    Only patterns of a moment pass: how busy GPUs were, who was slower than its peers. A look
    that saw nothing takes no sign of trouble back, nor does one at what has ended; that GPUs
    worked holds for the look that saw it alone.
    """
    witness = witness_of(finding)
    if witness is not Witness.TELEMETRY or finding.kind not in _OF_A_MOMENT:
        return False
    looks = [
        one
        for one in attempt.looks
        if one.witness is witness
        and one.occasion is Occasion.LIVING
        and (finding.rule == GPUS_WORK or (one.answered_at is not None and not one.unseen))
    ]
    told = [number for number, one in enumerate(looks) if finding.id in one.found]
    return bool(told) and told[-1] < len(looks) - 1


def _unanswered(attempt: AttemptCase, witness: Witness, until: Instant) -> Look | None:
    """Return the question that an answer about the time to ``until`` is of: never a later one."""
    waiting = [one for one in attempt.looks if one.witness is witness and one.answered_at is None]
    return next((one for one in reversed(waiting) if one.asked_at <= until), None)


def _with(looks: tuple[Look, ...], old: Look, new: Look) -> tuple[Look, ...]:
    return tuple(new if one is old else one for one in looks)
