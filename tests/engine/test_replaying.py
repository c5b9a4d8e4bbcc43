"""A stored decision can be made again, and a replay that differs says where."""

from __future__ import annotations

import msgspec
import pytest

from relight.engine.cases import Case
from relight.engine.replaying import Replayed, compare, replay
from relight.engine.step import step
from relight.model.advice import Decision, Mode
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobKey, JobState
from relight.model.records import Record
from relight.model.stimuli import (
    AttemptSeen,
    CapacitySeen,
    FindingMade,
    ProgressSeen,
    Stimulus,
)
from relight.testing.stories import KEY, START, book, fact, finding


class Recorded(Record, frozen=True, kw_only=True):
    """A journal record of the test's own."""

    stimulus: Stimulus
    book: str = "act"


BOOKS = {"act": book(), "monitor": book(Mode.MONITOR), "spent": book(max_restarts=0)}
OTHER = JobKey(cluster="main", scheduler_id="8")


def life(key: JobKey = KEY) -> list[Stimulus]:
    later = Instant(START + seconds(1))
    made = finding("ecc", ranks=(1,), nodes=("node-02",))
    made = msgspec.structs.replace(
        made, attempt=msgspec.structs.replace(made.attempt, job=key), seen_at=START
    )
    running = fact(JobState.RUNNING, scheduler_id=key.scheduler_id)
    return [
        AttemptSeen(job=key, seen_at=START, fact=running),
        FindingMade(job=key, seen_at=START, finding=made),
        AttemptSeen(
            job=key, seen_at=later, fact=msgspec.structs.replace(running, state=JobState.FAILED)
        ),
        ProgressSeen(job=key, seen_at=later, attempt=0, final=True),
        CapacitySeen(job=key, seen_at=later, without=("node-02",), fit_now=3, fit_ever=3),
    ]


def journal(key: JobKey = KEY, name: str = "act") -> list[Recorded]:
    return [Recorded(stimulus=one, book=name) for one in life(key)]


def test_a_replay_folds_a_journal_as_the_core_did() -> None:
    case = Case(key=KEY)
    for one in life():
        case = step(case, one, BOOKS["act"]).case
    replayed = replay(journal(), BOOKS)
    assert replayed.records == 5
    assert replayed.cases == (case,)
    assert [one.decision for one in replayed.advice] == [Decision.RESTART_EXCLUDING_NODE]
    assert compare(replayed, replayed.advice, replayed.entries).is_same


def test_the_jobs_of_one_journal_do_not_disturb_one_another() -> None:
    mixed = [one for pair in zip(journal(), journal(OTHER), strict=True) for one in pair]
    replayed = replay(mixed, BOOKS)
    assert [case.key for case in replayed.cases] == [KEY, OTHER]
    assert replayed.cases == tuple(replay(journal(key), BOOKS).cases[0] for key in (KEY, OTHER))


def test_each_record_is_decided_under_the_book_of_its_own_time() -> None:
    (advice,) = replay(journal(name="monitor"), BOOKS).advice
    assert (advice.mode, advice.permit) == (Mode.MONITOR, None)
    (advice,) = replay(journal(name="act"), BOOKS).advice
    assert advice.permit is not None


def test_under_another_policy_a_replay_lists_what_differs() -> None:
    stored = replay(journal(), BOOKS)
    other = replay(journal(), BOOKS, instead=BOOKS["spent"])
    report = compare(other, stored.advice, stored.entries)
    assert not report.is_same
    first = report.differences[0]
    assert first.about == "advice on main:7-0, generation 1"
    assert first.was.startswith("restart_excluding_node (act, pending")
    assert first.now.startswith("stop (act, converged")


def test_a_record_under_a_book_that_is_not_stored_is_refused_unless_another_is_given() -> None:
    with pytest.raises(LookupError, match="policy book lost"):
        replay(journal(name="lost"), BOOKS)
    assert replay(journal(name="lost"), BOOKS, instead=BOOKS["act"]).records == 5


def test_an_empty_journal_leads_to_nothing() -> None:
    assert replay([], {}) == Replayed(records=0, cases=(), advice=(), entries=())


@pytest.mark.parametrize("missing", ["stored advice", "replayed advice"])
def test_advice_that_only_one_side_has_is_a_difference(missing: str) -> None:
    full = replay(journal(), BOOKS)
    bare = msgspec.structs.replace(full, advice=())
    if missing == "stored advice":
        report = compare(full, (), full.entries)
    else:
        report = compare(bare, full.advice, full.entries)
    (difference,) = report.differences
    assert "none" in (difference.was, difference.now)


def test_the_first_audit_entry_that_differs_is_named() -> None:
    full = replay(journal(), BOOKS)
    changed = list(full.entries)
    changed[2] = msgspec.structs.replace(changed[2], attempt=9)
    (difference,) = compare(full, full.advice, changed).differences
    assert difference.about == "audit entry 3 and those after it"
    shorter = compare(full, full.advice, full.entries[:-1]).differences
    assert [one.was for one in shorter] == ["none"]
    longer = compare(full, full.advice, (*full.entries, full.entries[0])).differences
    assert [one.now for one in longer] == ["none"]
