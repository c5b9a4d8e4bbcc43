"""Lets witnesses look for the core, each in threads of its own, and gives back what they saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import structlog

from relight.clients.backend.answers import SourceHealth
from relight.daemon.asking import Asking
from relight.daemon.backends import Backend
from relight.daemon.loops import Loop
from relight.model.evidence import Evidence, Window, Witness
from relight.model.instants import EPOCH, Instant, later, seconds
from relight.model.questions import EvidenceAsked
from relight.model.stimuli import EvidenceSeen, FindingMade, Stimulus

SIDE_BY_SIDE = 4
"""Looks of one witness at the same time: when many jobs fail at once, none waits for all others."""
IDLE = 1.0
"""Seconds between two looks for a question; a new one hurries the loop."""
TRY_EVERY = seconds(30)
"""How often a witness without a question is tried, so that health tells when it is gone."""

_log = structlog.get_logger("relight.witnessing")


class Looks(Protocol):
    """Whoever can tell something of an attempt that its logs do not."""

    def look(self, window: Window) -> Evidence:
        """Return what can be told of the window; what cannot is said, and nothing is raised."""
        ...


@runtime_checkable
class Answers(Protocol):
    """A witness of whom it can be told, without a question, whether it could answer one."""

    def why_not(self) -> str:
        """Return in a sentence why nothing can be asked now, or nothing where it can."""
        ...


@dataclass(frozen=True, slots=True)
class Post:
    """A witness of one cluster."""

    cluster: str
    witness: Witness
    source: Looks


class WitnessLoop(Loop):
    """Answers the questions to one witness of one cluster; ``number`` tells its threads apart."""

    def __init__(
        self,
        post: Post,
        backend: Backend,
        asking: Asking,
        clock: Callable[[], Instant],
        number: int = 0,
    ) -> None:
        words = post.witness.replace("_", " ")
        super().__init__(
            f"{post.witness.replace('_', '-')}-{post.cluster}-{number}",
            f"looking at the {words} of cluster {post.cluster}",
            clock,
        )
        self._clusters = frozenset({post.cluster})
        self._witness = post.witness
        self._source = post.source
        self._backend = backend
        self._asking = asking
        self._now = clock
        self._words = f"the {words} of cluster {post.cluster}"
        self._outside = post.source if isinstance(post.source, Answers) and not number else None
        self._due = EPOCH

    def turn(self) -> float:
        """Answer one question, if there is one."""
        question = self._asking.take(self._witness, self._clusters)
        if not isinstance(question, EvidenceAsked):
            self._try()
            return IDLE
        evidence = self._source.look(question.window)
        if evidence.unseen:
            _log.warning("a witness told nothing", witness=self._witness, why=evidence.unseen)
        self._backend.take(*_told(question, evidence, self._now()))
        return 0.0

    def _try(self) -> None:
        """Find out now and then whether the witness could answer: before there is a question."""
        source, now = self._outside, self._now()
        if source is None or now < self._due:
            return
        self._due = later(now, TRY_EVERY)
        why, before = source.why_not(), self.source
        last = now if not why else (before.last_seen_at if before is not None else None)
        self.source = SourceHealth(name=self._words, seen=not why, last_seen_at=last, why=why)
        if why and (before is None or before.seen):
            _log.warning(
                "a witness cannot be asked; relight goes on without", who=self._words, why=why
            )
        elif not why and before is not None and not before.seen:
            _log.info("a witness can be asked again", who=self._words)


def _told(question: EvidenceAsked, evidence: Evidence, now: Instant) -> list[Stimulus]:
    """Return the findings, and after them that the witness has spoken."""
    return [
        *(
            FindingMade(
                job=question.job, seen_at=now, at=one.at, source=question.witness, finding=one
            )
            for one in evidence.findings
        ),
        EvidenceSeen(
            job=question.job,
            seen_at=now,
            source=question.witness,
            attempt=question.window.attempt.attempt,
            witness=question.witness,
            until=question.window.until,
            found=len(evidence.findings),
            unseen=evidence.unseen,
            blind=evidence.blind,
        ),
    ]
