"""What ``relight run`` says of its job: few sentences, each one that the record holds."""

from __future__ import annotations

from collections.abc import Iterator

from relight.daemon.following import Entries
from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Decision
from relight.model.audit import AuditEntry, Topic
from relight.model.instants import between, show_span
from relight.model.jobs import ENDED, JobKey, JobState
from relight.store.stores import Store

_TOLD_BY_ADVICE = frozenset({Decision.STOP, Decision.NONE})
_NOT_SAID = frozenset({"not-recovered", "completed"})
"""A command without steps cannot be seen to recover; its end has been said already."""
_REFUSALS = ("abandoned", "refused", "not-permitted")


class Teller:
    """Reads the record of one job as it grows, and returns what a person should hear of it."""

    def __init__(self, store: Store, key: JobKey, max_restarts: int) -> None:
        self._entries = Entries(store, key)
        self._max_restarts = max_restarts
        self._said: set[str] = set()

    def news(self, case: Case) -> list[str]:
        """Return the sentences that are new since the last call."""
        told = [sentence for entry in self._entries.new() for sentence in self._of(entry, case)]
        fresh = [sentence for sentence in dict.fromkeys(told) if sentence not in self._said]
        self._said.update(fresh)
        return fresh

    def _of(self, entry: AuditEntry, case: Case) -> Iterator[str]:
        attempt, code = case.attempt(entry.attempt), entry.reason.code
        if attempt is None or code in _NOT_SAID:
            return
        match entry.topic:
            case Topic.ATTEMPT:
                yield from _end_of(attempt, code)
            case Topic.ADVICE:
                yield from _roots(attempt)
                yield entry.reason.sentence
            case Topic.ORDER if code == "start-done":
                yield self._restart(attempt.number + 1)
            case Topic.RECOVERY | Topic.INCIDENT:
                if not _is_told_by_advice(attempt):
                    yield entry.reason.sentence
            case _ if any(word in code for word in _REFUSALS):
                yield entry.reason.sentence
            case _:
                pass

    def _restart(self, number: int) -> str:
        of = f" of {self._max_restarts}" if number <= self._max_restarts else ""
        return f"Restart {number}{of}."


def _end_of(attempt: AttemptCase, code: str) -> Iterator[str]:
    state = attempt.fact.state
    if state not in ENDED or code != f"attempt-{state.replace('_', '-')}":
        return
    if state is not JobState.COMPLETED:
        yield f"Attempt {attempt.number} {_how(attempt)}{_after(attempt)}."
    elif attempt.number > 0:
        yield f"Attempt {attempt.number} completed{_after(attempt)}."


def _how(attempt: AttemptCase) -> str:
    fact = attempt.fact
    if fact.exit_signal:
        return f"was ended by signal {fact.exit_signal}"
    return f"failed with exit code {fact.exit_status}"


def _after(attempt: AttemptCase) -> str:
    start, end = attempt.fact.started_at, attempt.fact.ended_at
    return f" after {show_span(between(start, end))}" if start and end else ""


def _roots(attempt: AttemptCase) -> Iterator[str]:
    verdict = attempt.incident.verdict if attempt.incident is not None else None
    for one in verdict.evidence if verdict is not None else ():
        if one.is_root:
            place = f"  ({one.place.file}:{one.place.line})" if one.place else ""
            yield f"» {one.text.strip()}{place}"


def _is_told_by_advice(attempt: AttemptCase) -> bool:
    """Tell whether the end of the story is the advice itself, which has been said."""
    return attempt.advice is not None and attempt.advice.decision in _TOLD_BY_ADVICE
