"""The pure decision core: one stimulus in, the next case and what follows from it out."""

from __future__ import annotations

from relight.engine.applying import apply
from relight.engine.cases import Case
from relight.engine.considering import consider
from relight.engine.turns import Turn
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.model.questions import Question
from relight.model.records import Record
from relight.model.stimuli import Stimulus
from relight.policy.policies import PolicyBook

CORE_VERSION = "5"
"""Rises whenever the same journal could lead to another decision."""


class Step(Record, frozen=True, kw_only=True):
    """What one stimulus led to.

    ``advice`` are those that are new or changed, ``questions`` those that a later stimulus
    should answer, ``entries`` what is written to the audit.
    """

    case: Case
    advice: tuple[Advice, ...] = ()
    questions: tuple[Question, ...] = ()
    entries: tuple[AuditEntry, ...] = ()


def step(case: Case, stimulus: Stimulus, book: PolicyBook) -> Step:
    """Return what follows from one stimulus about the case's job.

    The instant of the turn is the stimulus's ``seen_at``: there is no other clock. The same
    case, stimulus and book give the same step, always.

    Raises:
        ValueError: the stimulus is about another job.

    """
    if stimulus.job != case.key:
        raise ValueError(f"a stimulus about {stimulus.job} was given to the case of {case.key}")
    turn = Turn(case=case, now=stimulus.seen_at, book=book)
    apply(turn, stimulus)
    consider(turn)
    return Step(
        case=turn.case,
        advice=tuple(turn.advice),
        questions=tuple(turn.questions),
        entries=tuple(turn.entries),
    )
