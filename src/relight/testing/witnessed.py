"""Stories in which witnesses beside the logs are asked, and answer as the story tells them to."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from relight.engine.step import Step
from relight.model.advice import Mode
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import JobState
from relight.model.questions import AttributionAsked, EvidenceAsked
from relight.model.stimuli import EvidenceSeen, FindingMade
from relight.policy.policies import PolicyBook
from relight.testing.stories import KEY, Story, book, finding


def witnessed_book(
    mode: Mode = Mode.ACT,
    witnesses: tuple[Witness, ...] = (Witness.TELEMETRY,),
    *,
    is_attributed: bool = False,
    **fields: object,
) -> PolicyBook:
    """Return a book of a cluster on which these witnesses can be asked."""
    plain = book(mode, **fields)
    return msgspec.structs.replace(plain, witnesses=witnesses, is_attributed=is_attributed)


def told(rule: str, kind: Kind, **fields: object) -> Finding:
    """Return what a witness tells: metrics unless told otherwise, of hardware, as a root."""
    base = finding(rule, kind=kind, offset=0)
    defaults: dict[str, object] = {
        "id": f"witness-{rule}",
        "detector": "telemetry",
        "provenance": Provenance.TELEMETRY,
        "place": None,
        "evidence": (),
    }
    return msgspec.structs.replace(base, **(defaults | fields))


@dataclass
class WitnessedStory(Story):
    """A story whose witnesses answer what ``testimony`` holds for them; without it, nothing.

    A witness that is not a key of ``testimony`` never answers. ``asked`` are the questions so far.
    """

    policy_book: PolicyBook = field(default_factory=witnessed_book)
    testimony: dict[Witness, tuple[Finding, ...]] = field(default_factory=dict)
    unseen: dict[Witness, str] = field(default_factory=dict)
    asked: list[EvidenceAsked] = field(default_factory=list)
    attributions_asked: list[AttributionAsked] = field(default_factory=list)

    def take(self, stimulus: object) -> Step:
        """Give one stimulus to the core, and let the witnesses answer what it asks."""
        taken = super().take(stimulus)  # type: ignore[arg-type]  # passed on as given
        for question in taken.questions:
            if isinstance(question, AttributionAsked):
                self.attributions_asked.append(question)
            if isinstance(question, EvidenceAsked):
                self.asked.append(question)
                self._answer(question)
        return taken

    def _answer(self, question: EvidenceAsked) -> None:
        witness = question.witness
        if witness not in self.testimony and witness not in self.unseen:
            return
        number = question.window.attempt.attempt
        found = self.testimony.get(witness, ())
        for one in found:
            made = msgspec.structs.replace(
                one, attempt=question.window.attempt, seen_at=question.window.until
            )
            self.take(FindingMade(job=KEY, seen_at=self.now, finding=made))
        self.answer(witness, number, question.window.until, found=len(found))

    def answer(self, witness: Witness, number: int, until: Instant, found: int = 0) -> None:
        """Let a witness say that it has looked."""
        self.take(
            EvidenceSeen(
                job=KEY,
                seen_at=self.now,
                attempt=number,
                witness=witness,
                until=until,
                found=found,
                unseen=self.unseen.get(witness, ""),
            )
        )

    def begin(self, attempt: int = 0, **fields: object) -> WitnessedStory:
        """Let an attempt run and complete its first steps, ten minutes long."""
        self.see(JobState.RUNNING, attempt, **fields)
        for number in range(20):
            self.wait(30)
            self.progress(attempt, best_step=10 * number + 10, first_step=1, best_checkpoint=100)
        return self

    def fall_silent(self, attempt: int = 0, count: int = 0) -> WitnessedStory:
        """Let the log be found silent for longer than the job's own rhythm allows."""
        self.find(
            "no-progress",
            attempt=attempt,
            kind=Kind.HANG,
            role=Role.EITHER,
            domain=Domain.UNKNOWN,
            remedy=Remedy.RESTART,
            detector="silence",
            offset=1000 + count,
        )
        return self
