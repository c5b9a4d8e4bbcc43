"""A database in a folder of its own, and changes to put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Advice, Decision, Mode
from relight.model.audit import AuditEntry, Topic
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobFact, JobKey, JobState
from relight.model.reasons import Reason
from relight.model.signals import Mark
from relight.model.stimuli import Tick
from relight.policy.policies import PolicyBook
from relight.store import Change, JournalRecord, SavedPerception, Store, Tail

ChangeOf = Callable[..., Change]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/relight.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


@pytest.fixture
def change_of() -> ChangeOf:
    """Return a builder of changes that have every part."""
    return _change


def _change(
    number: int,
    *,
    reuse: int = 0,
    state: JobState = JobState.RUNNING,
    user: str = "ada",
    generation: int = 1,
) -> Change:
    cluster = "main"
    job = JobKey(cluster=cluster, scheduler_id=str(number), reuse=reuse)
    attempt = AttemptKey(job=job, attempt=0)
    now = Instant(1_000_000 * number)
    fact = JobFact(
        cluster=cluster, scheduler_id=str(number), user=user, partition="train", state=state
    )
    reason = Reason(code="node-broke", sentence=f"node {number} broke")
    return Change(
        journal=(
            JournalRecord(stimulus=Tick(job=job, seen_at=now), book="b", core="c", rules="r"),
        ),
        case=Case(key=job, attempts=(AttemptCase(number=0, fact=fact, first_seen_at=now),)),
        advice=(
            Advice(
                attempt=attempt,
                generation=generation,
                decision=Decision.RESTART,
                mode=Mode.MONITOR,
                reason=reason,
                made_at=now,
            ),
        ),
        audit=(AuditEntry(at=now, job=job, attempt=0, topic=Topic.ADVICE, reason=reason),),
        books=(PolicyBook(),),
        perceptions=(
            SavedPerception(attempt=attempt, state=b"\x00\xff", marks={"out": Mark(offset=number)}),
        ),
        tails=(Tail(attempt=attempt, file="/logs/out", text=f"step {number}\n"),),
    )
