"""One turn of the core: the case as it becomes, and what is told on the way.

A turn lives only inside ``step``. It is the one mutable thing in the pure rooms, so that
what is written to the audit stands beside the change that it tells of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Advice
from relight.model.audit import AuditEntry, Topic
from relight.model.incidents import PHASE_MOVES, Incident, Phase
from relight.model.instants import Instant
from relight.model.questions import Question
from relight.model.reasons import Reason
from relight.policy.policies import PolicyBook


class ImpossibleMove(Exception):  # noqa: N818 - it names what happened, as the other errors here do
    """A phase or disposition was to move in a way that its table does not have."""


@dataclass
class Turn:
    """The case under change, the instant of the turn, and what came out of it so far.

    ``wakes`` are instants at which the case wants to be looked at again.
    """

    case: Case
    now: Instant
    book: PolicyBook
    advice: list[Advice] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    entries: list[AuditEntry] = field(default_factory=list)
    wakes: list[Instant] = field(default_factory=list)

    def tell(self, number: int, topic: Topic, code: str, sentence: str, **details: str) -> None:
        """Write one audit entry about an attempt."""
        self.entries.append(
            AuditEntry(
                at=self.now,
                job=self.case.key,
                attempt=number,
                topic=topic,
                reason=Reason(code=code, sentence=sentence),
                details=details,
            )
        )

    def put(self, attempt: AttemptCase) -> AttemptCase:
        """Put an attempt into the case, in place of the one of the same number."""
        others = [one for one in self.case.attempts if one.number != attempt.number]
        ordered = tuple(sorted([*others, attempt], key=lambda one: one.number))
        self.case = msgspec.structs.replace(self.case, attempts=ordered)
        return attempt

    def change(self, number: int, **fields: object) -> AttemptCase:
        """Change fields of an attempt and return it as it is now."""
        attempt = self.case.attempt(number)
        if attempt is None:
            raise LookupError(f"attempt {number} of {self.case.key} was never seen")
        return self.put(msgspec.structs.replace(attempt, **fields))

    def publish(self, advice: Advice) -> None:
        """Make ``advice`` the active one of its attempt."""
        self.change(advice.attempt.attempt, advice=advice)
        self.advice = [one for one in self.advice if one.id != advice.id]
        self.advice.append(advice)

    def wake(self, at: Instant) -> None:
        """Ask for a Tick at ``at``."""
        self.wakes.append(at)


def moved(incident: Incident, phase: Phase, **fields: object) -> Incident:
    """Return the incident in its next phase.

    Raises:
        ImpossibleMove: the table of phases has no such move.

    """
    if phase is not incident.phase and phase not in PHASE_MOVES[incident.phase]:
        raise ImpossibleMove(
            f"incident {incident.id} cannot go from {incident.phase} to {phase}; "
            f"its verdict: {incident.verdict.sentence if incident.verdict else 'none yet'}"
        )
    return msgspec.structs.replace(incident, phase=phase, **fields)


def close(turn: Turn, number: int, code: str, sentence: str, *, is_told: bool = False) -> None:
    """Close the incident of an attempt, if one is open, with the reason.

    ``is_told`` says that the audit holds the sentence already.
    """
    attempt = turn.case.attempt(number)
    if attempt is None or attempt.incident is None or attempt.incident.phase is Phase.CLOSED:
        return
    reason = Reason(code=code, sentence=sentence)
    turn.change(number, incident=moved(attempt.incident, Phase.CLOSED, closed=reason))
    if not is_told:
        turn.tell(number, Topic.INCIDENT, code, sentence)
