"""Scheduler ids wrap and are reset: whether this job is the known one or another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.engine.identity import Identity, identify
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobFact, JobState
from relight.testing.stories import START, fact

NOT_BEGUN = (JobState.COMPLETING, JobState.PENDING, JobState.HELD, JobState.UNKNOWN)
NEWER = Instant(START + seconds(60))


def known(attempt: int = 1, **fields: object) -> JobFact:
    return fact(JobState.RUNNING, attempt, **fields)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, known(), Identity.NEW_JOB),
        (known(), known(), Identity.SAME_ATTEMPT),
        (known(), fact(JobState.FAILED, 1), Identity.SAME_ATTEMPT),
        (known(), known(2), Identity.NEXT_ATTEMPT),
        (known(), known(2, submitted_at=NEWER), Identity.NEXT_ATTEMPT),
        (known(), known(7), Identity.NEXT_ATTEMPT),
        (known(), known(1, submitted_at=NEWER), Identity.NEW_JOB),
        (known(), known(0, submitted_at=NEWER), Identity.NEW_JOB),
        (known(), known(1, user="mallory"), Identity.NEW_JOB),
        (known(), known(2, user="mallory"), Identity.NEW_JOB),
        (known(), known(0), Identity.STALE),
        (known(submitted_at=NEWER), known(), Identity.STALE),
        (known(submitted_at=NEWER), known(0), Identity.STALE),
        *(
            (fact(state, 1), known(1, submitted_at=NEWER), Identity.SAME_ATTEMPT)
            for state in NOT_BEGUN
        ),
        *((fact(state, 0), known(0, submitted_at=NEWER), Identity.NEW_JOB) for state in NOT_BEGUN),
        *((fact(state, 1), known(0, submitted_at=NEWER), Identity.NEW_JOB) for state in NOT_BEGUN),
        (known(submitted_at=None), known(), Identity.SAME_ATTEMPT),
        (known(), known(submitted_at=None), Identity.SAME_ATTEMPT),
        (known(), known(0, submitted_at=None), Identity.STALE),
        (known(user=""), known(), Identity.SAME_ATTEMPT),
        (known(), known(user=""), Identity.SAME_ATTEMPT),
        (known(user=""), known(2), Identity.NEXT_ATTEMPT),
    ],
)
def test_a_fact_is_placed_by_user_restart_count_and_submit_time(
    before: JobFact | None, now: JobFact, expected: Identity
) -> None:
    assert identify(before, now) is expected


FACTS = st.builds(
    known,
    st.integers(0, 3),
    user=st.sampled_from(["", "alice", "mallory"]),
    submitted_at=st.sampled_from([None, START, NEWER]),
)


@given(FACTS, FACTS)
def test_no_fact_is_newer_than_another_both_ways(one: JobFact, other: JobFact) -> None:
    there, back = identify(one, other), identify(other, one)
    if there is Identity.STALE:
        assert back in (Identity.NEXT_ATTEMPT, Identity.NEW_JOB)
    if there is Identity.SAME_ATTEMPT:
        assert back is Identity.SAME_ATTEMPT
