"""What every scheduler must do for eyes and hands; here the local one does it.

The functions know a ``Bench`` only: a bench over a real cluster can run them too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from relight.clients.local.cluster import LocalCluster
from relight.clients.local.jobs import LocalJob
from relight.clients.local.scheduler import LocalEyes, LocalHands
from relight.clients.schedulers import Answer, Eyes, Hands
from relight.model.instants import Instant, from_unix, seconds
from relight.model.jobs import ENDED, JobFact, JobState
from relight.model.orders import Outcome
from relight.model.seen import Seen

DONE = Outcome.DONE
REFUSED = Outcome.REFUSED
SLEEP = "exec sleep 60"


class Bench(Protocol):
    """A scheduler with four nodes of its own, and how to give it work."""

    eyes: Eyes
    hands: Hands

    def submit(self, script: str, nodes: int = 1) -> str:
        """Queue a shell script on whole nodes."""
        ...

    def output(self, job_id: str) -> str:
        """Return what the job has written."""
        ...


class LocalBench:
    """The local scheduler with four pretend nodes."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.eyes: Eyes = LocalEyes(cluster)
        self.hands: Hands = LocalHands(cluster)
        self._cluster = cluster
        self._folder = folder

    def submit(self, script: str, nodes: int = 1) -> str:
        """Queue a shell script on whole nodes."""
        return self._cluster.submit(
            LocalJob(
                name="contract",
                command=("/bin/sh", "-c", script),
                nodes=nodes,
                stdout="job-%j.out",
                work_dir=str(self._folder),
                kill_grace=seconds(0.5),
            )
        )

    def output(self, job_id: str) -> str:
        """Return what the job has written."""
        return (self._folder / f"job-{job_id}.out").read_text()


def tick() -> Instant:
    """Tell a time that only grows."""
    return from_unix(1_767_225_600 + time.monotonic())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with LocalCluster("local", ("node-01", "node-02", "node-03", "node-04"), tick) as cluster:
        yield LocalBench(cluster, tmp_path)


def look(bench: Bench, job_id: str) -> JobFact:
    seen = bench.eyes.job(job_id)
    assert isinstance(seen, Seen)
    assert seen.value is not None
    return seen.value


def wait(bench: Bench, job_id: str, is_so: Callable[[JobFact], bool], limit: float = 10) -> JobFact:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        fact = look(bench, job_id)
        if is_so(fact):
            return fact
        time.sleep(0.005)
    raise AssertionError(f"waited in vain for job {job_id}: {look(bench, job_id)}")


def state(*wanted: JobState) -> Callable[[JobFact], bool]:
    return lambda fact: fact.state in wanted


def reason(wanted: str) -> Callable[[JobFact], bool]:
    return lambda fact: fact.state is JobState.PENDING and fact.reason == wanted


def start(
    bench: Bench, job_id: str, *exclude: str, note: str = "", delay: float | None = None
) -> Answer:
    span = None if delay is None else seconds(delay)
    return bench.hands.start(job_id, note=note, exclude=exclude, delay=span)


def relight(bench: Bench, job_id: str, *exclude: str, note: str = "") -> JobFact:
    assert bench.hands.requeue(job_id, incomplete_only=False).outcome is DONE
    wait(bench, job_id, reason("BeginTime"))
    assert start(bench, job_id, *exclude, note=note).outcome is DONE
    return wait(bench, job_id, state(JobState.RUNNING, *ENDED))


def test_a_job_that_succeeds_is_completed(bench: Bench) -> None:
    job_id = bench.submit("echo well")
    fact = wait(bench, job_id, state(*ENDED))
    assert (fact.state, fact.exit_status, fact.restart_count) == (JobState.COMPLETED, 0, 0)
    assert fact.submitted_at is not None
    assert fact.started_at is not None
    assert fact.ended_at is not None
    assert fact.submitted_at <= fact.started_at <= fact.ended_at
    assert "well" in bench.output(job_id)


def test_a_job_that_fails_says_its_exit_status(bench: Bench) -> None:
    fact = wait(bench, bench.submit("exit 3"), state(*ENDED))
    assert (fact.state, fact.exit_status) == (JobState.FAILED, 3)


def test_an_unknown_job_is_seen_to_be_unknown(bench: Bench) -> None:
    assert bench.eyes.job("999999") == Seen(None)
    assert bench.hands.cancel("999999").outcome is REFUSED
    assert bench.hands.requeue("999999", incomplete_only=True).outcome is REFUSED
    assert bench.hands.signal("999999", name="USR1", batch_only=False).outcome is REFUSED
    assert start(bench, "999999").outcome is REFUSED


def test_a_job_that_has_not_changed_is_the_same_object(bench: Bench) -> None:
    job_id = bench.submit("true")
    wait(bench, job_id, state(*ENDED))
    first, second = bench.eyes.jobs(), bench.eyes.jobs()
    assert isinstance(first, Seen)
    assert isinstance(second, Seen)
    assert [one is two for one, two in zip(first.value, second.value, strict=True)] == [True]


def test_a_busy_node_is_not_idle(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    (node,) = wait(bench, job_id, state(JobState.RUNNING)).nodes
    seen = bench.eyes.nodes()
    assert isinstance(seen, Seen)
    assert [fact.name for fact in seen.value if not fact.is_idle] == [node]


def test_requeue_of_a_running_job_adds_an_attempt(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    before = wait(bench, job_id, state(JobState.RUNNING))
    assert bench.hands.requeue(job_id, incomplete_only=True).outcome is DONE
    after = wait(bench, job_id, reason("BeginTime"))
    assert after.restart_count == before.restart_count + 1
    assert after.nodes == ()
    assert "DUE TO JOB REQUEUE" in bench.output(job_id)


@pytest.mark.parametrize("script", ["exit 1", "true"])
def test_requeue_of_an_ended_job_adds_an_attempt(bench: Bench, script: str) -> None:
    job_id = bench.submit(script)
    wait(bench, job_id, state(*ENDED))
    assert bench.hands.requeue(job_id, incomplete_only=False).outcome is DONE
    assert wait(bench, job_id, reason("BeginTime")).restart_count == 1


def test_requeue_of_a_cancelled_job_is_obeyed_too(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    wait(bench, job_id, state(JobState.RUNNING))
    assert bench.hands.cancel(job_id).outcome is DONE
    wait(bench, job_id, state(JobState.CANCELLED))
    assert bench.hands.requeue(job_id, incomplete_only=False).outcome is DONE
    assert wait(bench, job_id, reason("BeginTime")).restart_count == 1


def test_requeue_of_a_pending_job_is_refused(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    wait(bench, job_id, state(JobState.RUNNING))
    bench.hands.requeue(job_id, incomplete_only=False)
    wait(bench, job_id, state(JobState.PENDING))
    answer = bench.hands.requeue(job_id, incomplete_only=False)
    assert answer.outcome is REFUSED
    assert "Job is pending execution" in answer.text


def test_a_cancelled_job_is_left_alone_with_incomplete_only(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    wait(bench, job_id, state(JobState.RUNNING))
    bench.hands.cancel(job_id)
    wait(bench, job_id, state(JobState.CANCELLED))
    assert bench.hands.requeue(job_id, incomplete_only=True).outcome is DONE
    time.sleep(0.1)
    fact = look(bench, job_id)
    assert (fact.state, fact.restart_count) == (JobState.CANCELLED, 0)


def test_a_requeued_job_waits_unless_it_is_started(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    wait(bench, job_id, state(JobState.RUNNING))
    bench.hands.requeue(job_id, incomplete_only=False)
    wait(bench, job_id, reason("BeginTime"))
    time.sleep(0.2)
    assert look(bench, job_id).state is JobState.PENDING
    assert start(bench, job_id).outcome is DONE
    assert wait(bench, job_id, state(JobState.RUNNING)).restart_count == 1


def test_start_writes_exclusions_and_note_at_once(bench: Bench) -> None:
    job_id = bench.submit(SLEEP)
    (bad,) = wait(bench, job_id, state(JobState.RUNNING)).nodes
    fact = relight(bench, job_id, bad, note='kept "off" a node')
    assert fact.nodes
    assert bad not in fact.nodes
    assert fact.excluded_nodes == (bad,)
    assert fact.note == 'kept "off" a node'


def test_start_with_a_delay_postpones(bench: Bench) -> None:
    job_id = bench.submit("exit 1")
    wait(bench, job_id, state(JobState.FAILED))
    bench.hands.requeue(job_id, incomplete_only=False)
    wait(bench, job_id, reason("BeginTime"))
    assert start(bench, job_id, delay=3600, note="later").outcome is DONE
    time.sleep(0.1)
    fact = look(bench, job_id)
    assert (fact.state, fact.note) == (JobState.PENDING, "later")


@pytest.mark.parametrize(
    ("script", "reached", "words"),
    [
        (SLEEP, JobState.RUNNING, "Job is no longer pending execution"),
        ("exit 1", JobState.FAILED, "Job has already finished"),
        ("true", JobState.COMPLETED, "Job has already finished"),
    ],
)
def test_start_of_a_job_that_does_not_wait_is_refused(
    bench: Bench, script: str, reached: JobState, words: str
) -> None:
    job_id = bench.submit(script)
    wait(bench, job_id, state(reached))
    answer = start(bench, job_id, note="too late")
    assert answer.outcome is REFUSED
    assert words in answer.text
    assert look(bench, job_id).note == ""


def test_excluding_an_unknown_node_is_refused_and_changes_nothing(bench: Bench) -> None:
    job_id = bench.submit("exit 1")
    wait(bench, job_id, state(JobState.FAILED))
    bench.hands.requeue(job_id, incomplete_only=False)
    wait(bench, job_id, reason("BeginTime"))
    assert start(bench, job_id, "no-such-node", note="x").outcome is REFUSED
    assert (look(bench, job_id).note, look(bench, job_id).excluded_nodes) == ("", ())


def test_excluding_more_nodes_than_fit_strands_the_job_until_they_are_given_back(
    bench: Bench,
) -> None:
    job_id = bench.submit(SLEEP, nodes=4)
    wait(bench, job_id, state(JobState.RUNNING))
    bench.hands.requeue(job_id, incomplete_only=False)
    wait(bench, job_id, reason("BeginTime"))
    assert start(bench, job_id, "node-02").outcome is DONE
    wait(bench, job_id, reason("BadConstraints"))
    assert start(bench, job_id).outcome is DONE
    wait(bench, job_id, state(JobState.RUNNING))


def test_a_job_waits_for_nodes_in_turn(bench: Bench) -> None:
    first = bench.submit(SLEEP, nodes=3)
    wait(bench, first, state(JobState.RUNNING))
    second, third = bench.submit(SLEEP, nodes=2), bench.submit(SLEEP)
    wait(bench, second, reason("Resources"))
    wait(bench, third, reason("Priority"))
    bench.hands.cancel(first)
    wait(bench, second, state(JobState.RUNNING))
    wait(bench, third, state(JobState.RUNNING))


def test_a_pending_job_is_cancelled_at_once(bench: Bench) -> None:
    wait(bench, bench.submit(SLEEP, nodes=4), state(JobState.RUNNING))
    job_id = bench.submit(SLEEP)
    assert bench.hands.cancel(job_id).outcome is DONE
    wait(bench, job_id, state(JobState.CANCELLED))


def test_a_cancel_wins_over_a_requeue_that_is_still_completing(bench: Bench) -> None:
    job_id = bench.submit("trap '' TERM; while :; do sleep 0.05; done")
    wait(bench, job_id, state(JobState.RUNNING))
    time.sleep(0.1)
    bench.hands.requeue(job_id, incomplete_only=True)
    wait(bench, job_id, state(JobState.COMPLETING))
    assert bench.hands.cancel(job_id).outcome is DONE
    wait(bench, job_id, state(JobState.CANCELLED))


def test_a_start_while_completing_keeps_the_exclusion_and_loses_the_start_time(
    bench: Bench,
) -> None:
    job_id = bench.submit("trap '' TERM; while :; do sleep 0.05; done")
    wait(bench, job_id, state(JobState.RUNNING))
    time.sleep(0.1)
    bench.hands.requeue(job_id, incomplete_only=True)
    wait(bench, job_id, state(JobState.COMPLETING))
    assert start(bench, job_id, "node-01", note="early").outcome is DONE
    fact = wait(bench, job_id, reason("BeginTime"))
    assert (fact.note, fact.excluded_nodes) == ("early", ("node-01",))
    time.sleep(0.1)
    assert look(bench, job_id).state is JobState.PENDING


def test_a_signal_reaches_the_tasks_of_a_running_job_which_runs_on(bench: Bench) -> None:
    catches = "trap 'echo caught' USR1; echo ready; while :; do sleep 0.01; done"
    job_id = bench.submit(catches)
    wait(bench, job_id, lambda _: "ready" in output_of(bench, job_id))
    assert bench.hands.signal(job_id, name="USR1", batch_only=False).outcome is DONE
    wait(bench, job_id, lambda _: "caught" in output_of(bench, job_id))
    assert look(bench, job_id).state is JobState.RUNNING
    assert bench.hands.signal(job_id, name="KILL", batch_only=False).outcome is REFUSED
    assert bench.hands.cancel(job_id).outcome is DONE
    wait(bench, job_id, state(JobState.CANCELLED))
    assert bench.hands.signal(job_id, name="USR1", batch_only=False).outcome is REFUSED


def output_of(bench: Bench, job_id: str) -> str:
    try:
        return bench.output(job_id)
    except FileNotFoundError:
        return ""
