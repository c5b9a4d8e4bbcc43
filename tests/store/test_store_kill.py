from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relight.model.jobs import AttemptKey, JobKey
from relight.store import AuditFilters, Store

CHILD = """
import sys
from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Advice, Decision, Mode
from relight.model.audit import AuditEntry, Topic
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobFact, JobKey
from relight.model.reasons import Reason
from relight.model.stimuli import Tick
from relight.store import Change, JournalRecord, SavedPerception, Store, Tail

store = Store.open(sys.argv[1])
number = store.counts()["journal"]
while True:
    job = JobKey(cluster="main", scheduler_id=str(number))
    attempt = AttemptKey(job=job, attempt=0)
    now = Instant(number)
    reason = Reason(code="x", sentence="x" * 5000)
    fact = JobFact(cluster="main", scheduler_id=str(number))
    store.commit(Change(
        journal=(JournalRecord(stimulus=Tick(job=job, seen_at=now)),),
        case=Case(key=job, attempts=(AttemptCase(number=0, fact=fact, first_seen_at=now),)),
        advice=(Advice(attempt=attempt, generation=1, decision=Decision.NONE, mode=Mode.MONITOR,
                       reason=reason, made_at=now),),
        audit=(AuditEntry(at=now, job=job, attempt=0, topic=Topic.JOB, reason=reason),),
        perceptions=(SavedPerception(attempt=attempt, state=b"x" * 9000),),
        tails=(Tail(attempt=attempt, file="out", text="x" * 9000),),
    ))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    number += 1
"""

MILLISECONDS_AFTER_FIRST_COMMIT = (0, 1, 3, 7, 13, 29, 53, 97)


def _has_all(store: Store, number: int) -> bool:
    job = JobKey(cluster="main", scheduler_id=str(number))
    attempt = AttemptKey(job=job, attempt=0)
    parts = (
        list(store.journal(job=job)),
        store.case(job),
        store.advice_of(attempt),
        store.audit(AuditFilters(job=job)).items,
        store.perception(attempt),
        store.tails(attempt),
    )
    present = [bool(part) for part in parts]
    assert len(set(present)) == 1, f"change {number} is there in part: {present}"
    return present[0]


@pytest.mark.timeout(60)
def test_a_kill_at_any_moment_leaves_all_of_a_change_or_nothing(tmp_path: Path, url: str) -> None:
    seen = 0
    for delay in MILLISECONDS_AFTER_FIRST_COMMIT:
        said = tmp_path / "said"
        with (
            said.open("wb") as out,
            subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=out) as child,
        ):
            while said.stat().st_size == 0 and child.poll() is None:
                time.sleep(0.002)
            time.sleep(delay / 1000)
            os.kill(child.pid, signal.SIGKILL)
        acknowledged = [int(line) for line in said.read_text().split("\n")[:-1]]
        assert acknowledged, "the child ended before its first commit"
        assert child.returncode == -signal.SIGKILL
        with Store.open(url) as store:
            counts = store.counts()
            for number in range(seen, counts["journal"] + 2):
                assert _has_all(store, number) == (number < counts["journal"])
            assert counts["journal"] in (acknowledged[-1] + 1, acknowledged[-1] + 2)
            assert [record.seq for record in store.journal()] == [*range(1, counts["journal"] + 1)]
            seen = counts["journal"]
    assert seen > len(MILLISECONDS_AFTER_FIRST_COMMIT)
