"""Runs every case through relight and the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from accuracy.answers import Answer, always_restart, grep, ours
from accuracy.labels import Case
from accuracy.scoring import Score, score
from relight.model.records import Record
from relight.perception.ears import Ears


class Outcome(Record, frozen=True, kw_only=True):
    """One case with relight's answer and its score."""

    case: Case
    answer: Answer
    score: Score


class Measured(Record, frozen=True, kw_only=True):
    """The outcomes of one corpus, and the scores of every method on it."""

    corpus: str
    outcomes: tuple[Outcome, ...]
    scores: dict[str, tuple[Score, ...]]

    @property
    def milliseconds(self) -> float:
        """Return how long relight took for a case on average."""
        return 1000 * mean(one.answer.seconds for one in self.outcomes)

    @property
    def calibration(self) -> tuple[float, float] | None:
        """Return the mean confidence of right and of wrong decisions and domains, where both."""
        right: list[float] = []
        wrong: list[float] = []
        for one in self.outcomes:
            is_right = one.score.right["decision"] and one.score.right.get("domain", True)
            (right if is_right else wrong).append(one.answer.confidence)
        return (mean(right), mean(wrong)) if right and wrong else None


def measure(corpus: str, cases: Sequence[Case], listening: Ears) -> Measured:
    """Return what relight and the baselines make of the cases."""
    outcomes: list[Outcome] = []
    for case in cases:
        answer = ours(Path(case.path), listening)
        outcomes.append(Outcome(case=case, answer=answer, score=score(answer, case.label)))
    scores = {"relight": tuple(one.score for one in outcomes)}
    for name, baseline in (("grep", grep), ("always restart", always_restart)):
        scores[name] = tuple(score(baseline(Path(case.path)), case.label) for case in cases)
    return Measured(corpus=corpus, outcomes=tuple(outcomes), scores=scores)


def together(measured: Sequence[Measured]) -> Measured:
    """Return all corpora as one."""
    scores: dict[str, tuple[Score, ...]] = {}
    for one in measured:
        for method, found in one.scores.items():
            scores[method] = (*scores.get(method, ()), *found)
    outcomes = tuple(outcome for one in measured for outcome in one.outcomes)
    return Measured(corpus="all", outcomes=outcomes, scores=scores)
