"""Eyes and hands against a real Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relight.clients.schedulers import Answer, Eyes, Hands
from relight.clients.slurm import Commands, SlurmEyes, SlurmHands
from relight.model.instants import seconds
from relight.model.jobs import Holder, JobFact, JobState, NodeState
from relight.model.orders import Outcome
from relight.model.seen import Seen, Unseen
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm

SLEEP = "sleep 600"


@pytest.fixture
def eyes(slurm_cluster: SlurmCluster) -> Eyes:
    return SlurmEyes("main", Commands(slurm_cluster.env, slurm_cluster.within))


@pytest.fixture
def hands(slurm_cluster: SlurmCluster) -> Hands:
    return SlurmHands(Commands(slurm_cluster.env, slurm_cluster.within))


def look(eyes: Eyes, job: str) -> JobFact:
    seen = eyes.job(job)
    assert isinstance(seen, Seen)
    assert seen.value is not None
    return seen.value


def sweep(eyes: Eyes) -> dict[str, JobFact]:
    seen = eyes.jobs()
    assert isinstance(seen, Seen), seen
    return {fact.scheduler_id: fact for fact in seen.value}


def wait_for(eyes: Eyes, job: str, is_so: Callable[[JobFact], bool]) -> JobFact:
    deadline = time.monotonic() + 20
    while not is_so(fact := look(eyes, job)):
        assert time.monotonic() < deadline, fact
        time.sleep(0.05)
    return fact


def requeued(eyes: Eyes, job: str) -> JobFact:
    return wait_for(eyes, job, lambda fact: fact.state is JobState.PENDING)


def test_a_running_job_is_seen_with_its_nodes_in_order(
    slurm_cluster: SlurmCluster, eyes: Eyes
) -> None:
    options = ["-N3", "--ntasks-per-node=2", "--gpus-per-node=4", "-t90", "-J", "train"]
    job = slurm_cluster.submit(SLEEP, options=[*options, "--comment", '{"relight": {}}'])
    slurm_cluster.wait_state(job, "RUNNING")
    fact = look(eyes, job)
    assert fact.state is JobState.RUNNING
    assert fact.nodes == ("node-01", "node-02", "node-03")
    assert (fact.tasks, fact.tasks_per_node, fact.gpus_per_node) == (6, 2, 4)
    assert (fact.name, fact.comment, fact.user) == ("train", '{"relight": {}}', "nobody")
    assert fact.time_limit_seconds == 5400
    assert fact.started_at is not None
    assert fact.ended_at is None
    assert fact.exit_status is None


def test_an_unchanged_job_is_the_same_object_and_a_changed_one_is_another(
    slurm_cluster: SlurmCluster, eyes: Eyes
) -> None:
    steady = slurm_cluster.submit(SLEEP)
    moving = slurm_cluster.submit(SLEEP)
    slurm_cluster.wait_state(steady, "RUNNING")
    slurm_cluster.wait_state(moving, "RUNNING")
    before = sweep(eyes)
    slurm_cluster.run("scancel", moving)
    slurm_cluster.wait_state(moving, "CANCELLED")
    after = sweep(eyes)
    assert after[steady] is before[steady]
    assert after[moving].state is JobState.CANCELLED


def test_an_unknown_job_is_surely_unknown(eyes: Eyes) -> None:
    assert eyes.job("99999") == Seen(None)
    assert eyes.job("99999_7") == Seen(None)
    assert eyes.job("--help") == Seen(None)


@pytest.mark.parametrize("incomplete_only", [True, False])
def test_a_running_job_is_requeued(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands, *, incomplete_only: bool
) -> None:
    job = slurm_cluster.submit(SLEEP)
    slurm_cluster.wait_state(job, "RUNNING")
    assert hands.requeue(job, incomplete_only=incomplete_only).outcome is Outcome.DONE
    assert requeued(eyes, job).restart_count == 1


def test_a_failed_job_is_requeued_and_tells_how_it_ended(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    job = slurm_cluster.submit("exit 3")
    slurm_cluster.wait_state(job, "FAILED")
    fact = look(eyes, job)
    assert (fact.state, fact.exit_status, fact.exit_signal) == (JobState.FAILED, 3, None)
    assert fact.ended_at is not None
    assert hands.requeue(job, incomplete_only=False).outcome is Outcome.DONE
    assert requeued(eyes, job).restart_count == 1


def test_a_requeue_of_incomplete_jobs_leaves_a_cancelled_one_alone(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    job = slurm_cluster.submit(SLEEP)
    slurm_cluster.wait_state(job, "RUNNING")
    slurm_cluster.run("scancel", job)
    slurm_cluster.wait_state(job, "CANCELLED")
    assert hands.requeue(job, incomplete_only=True).outcome is Outcome.DONE
    fact = look(eyes, job)
    assert (fact.state, fact.restart_count) == (JobState.CANCELLED, 0)
    assert f"Requeuing JobId={job}" not in slurm_cluster.log()


def test_a_waiting_job_takes_note_exclusion_and_start_in_one_change(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    job = slurm_cluster.submit(SLEEP, options=["-N2"])
    slurm_cluster.wait_state(job, "RUNNING")
    hands.requeue(job, incomplete_only=True)
    requeued(eyes, job)
    before = slurm_cluster.log().count(f"_slurm_rpc_update_job: complete JobId={job}")
    note = 'the site\'s "own" a=b; $HOME `id` ExcNodeList=node-04\nStartTime=now+9999'
    answer = hands.start(job, note=note, exclude=("node-01", "node-02"), delay=None)
    assert answer.outcome is Outcome.DONE
    fact = wait_for(eyes, job, lambda fact: fact.state is JobState.RUNNING)
    assert fact.nodes == ("node-03", "node-04")
    assert fact.excluded_nodes == ("node-01", "node-02")
    assert fact.note == note.replace("\n", " ")
    after = slurm_cluster.log().count(f"_slurm_rpc_update_job: complete JobId={job}")
    assert after - before == 1


def test_a_start_with_a_delay_postpones_and_an_empty_exclusion_clears(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    job = slurm_cluster.submit(SLEEP, options=["--begin=now+1hour", "--exclude=node-01"])
    sweep(eyes)
    answer = hands.start(job, note="", exclude=(), delay=seconds(899.5))
    assert answer.outcome is Outcome.DONE
    fact = sweep(eyes)[job]
    assert fact.excluded_nodes == ()
    assert fact.eligible_at is not None
    assert fact.submitted_at is not None
    assert 899 <= (fact.eligible_at - fact.submitted_at) / 1e6 < 910


@pytest.mark.parametrize(
    ("script", "option", "expected"),
    [
        pytest.param(SLEEP, "--begin=now+1hour", "PENDING: pending execution", id="pending"),
        pytest.param(SLEEP, "--no-requeue", "RUNNING: disabled", id="not requeueable"),
        pytest.param("exit 1", "--no-requeue", "FAILED: disabled", id="failed for good"),
    ],
)
def test_slurm_refuses_a_requeue_in_its_own_words(
    slurm_cluster: SlurmCluster, hands: Hands, script: str, option: str, expected: str
) -> None:
    state, _, words = expected.partition(": ")
    job = slurm_cluster.submit(script, options=[option])
    slurm_cluster.wait_state(job, state)
    answer = hands.requeue(job, incomplete_only=False)
    assert answer.outcome is Outcome.REFUSED
    assert words in answer.text


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        pytest.param(SLEEP, "RUNNING", "no longer pending", id="running"),
        pytest.param("exit 1", "FAILED", "already finished", id="failed"),
    ],
)
def test_slurm_refuses_a_start_of_a_job_that_does_not_wait(
    slurm_cluster: SlurmCluster, hands: Hands, script: str, state: str, words: str
) -> None:
    job = slurm_cluster.submit(script)
    slurm_cluster.wait_state(job, state)
    answer = hands.start(job, note="x", exclude=("node-01",), delay=None)
    assert answer.outcome is Outcome.REFUSED
    assert words in answer.text


def test_a_job_that_slurm_does_not_know_is_refused(hands: Hands) -> None:
    assert hands.requeue("99999", incomplete_only=False).outcome is Outcome.REFUSED
    assert hands.start("99999", note="", exclude=(), delay=None).outcome is Outcome.REFUSED


@pytest.mark.parametrize(("user", "holder"), [("nobody", Holder.USER), ("root", Holder.ADMIN)])
def test_a_hold_tells_who_placed_it(
    slurm_cluster: SlurmCluster, eyes: Eyes, user: str, holder: Holder
) -> None:
    job = slurm_cluster.submit(SLEEP, options=["--begin=now+1hour"])
    assert sweep(eyes)[job].state is JobState.PENDING
    slurm_cluster.run("scontrol", "hold", job, user=user)
    fact = sweep(eyes)[job]
    assert (fact.state, fact.held_by) == (JobState.HELD, holder)


def test_array_tasks_are_addressed_one_by_one(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    array = slurm_cluster.submit(SLEEP, options=["--array=0-2%2"])
    slurm_cluster.wait_state(f"{array}_1", "RUNNING")
    facts = sweep(eyes)
    assert {facts[f"{array}_{task}"].state for task in (0, 1)} == {JobState.RUNNING}
    waiting = facts[f"{array}_2"]
    assert (waiting.state, waiting.array_job, waiting.array_task) == (JobState.PENDING, array, "2")
    assert hands.requeue(f"{array}_1", incomplete_only=True).outcome is Outcome.DONE
    assert requeued(eyes, f"{array}_1").restart_count == 1
    assert look(eyes, f"{array}_0").state is JobState.RUNNING


def test_successors_are_remembered_after_slurm_has_emptied_the_dependency(
    slurm_cluster: SlurmCluster, eyes: Eyes
) -> None:
    first = slurm_cluster.submit(SLEEP, options=["-J", "chain"])
    second = slurm_cluster.submit(SLEEP, options=[f"--dependency=afterany:{first}"])
    third = slurm_cluster.submit(SLEEP, options=["-J", "chain", "--dependency=singleton"])
    slurm_cluster.wait_state(first, "RUNNING")
    assert set(sweep(eyes)[first].successors) == {second, third}
    slurm_cluster.run("scancel", first)
    slurm_cluster.wait_state(second, "RUNNING")
    facts = sweep(eyes)
    assert facts[second].dependencies == ""
    assert set(facts[first].successors) == {second, third}
    assert set(look(eyes, first).successors) == {second, third}


def test_a_cancelled_job_is_cancelled_by_hand(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    job = slurm_cluster.submit(SLEEP)
    slurm_cluster.wait_state(job, "RUNNING")
    assert hands.cancel(job).outcome is Outcome.DONE
    wait_for(eyes, job, lambda fact: fact.state is JobState.CANCELLED)


def test_nodes_are_seen_idle_busy_drained_and_down(slurm_cluster: SlurmCluster, eyes: Eyes) -> None:
    job = slurm_cluster.submit(SLEEP, options=["-w", "node-01"])
    slurm_cluster.wait_state(job, "RUNNING")
    slurm_cluster.run("scontrol", "update", "NodeName=node-03", "State=DRAIN", "Reason=bad disk")
    slurm_cluster.node_down("node-04", "dead")
    seen = eyes.nodes()
    assert isinstance(seen, Seen)
    nodes = {node.name: node for node in seen.value}
    assert [(node.state, node.is_idle) for node in nodes.values()] == [
        (NodeState.UP, False),
        (NodeState.UP, True),
        (NodeState.DRAINED, False),
        (NodeState.DOWN, False),
    ]
    assert nodes["node-03"].reason == "bad disk"
    assert {node.gpus for node in nodes.values()} == {8}
    assert nodes["node-01"].partitions == ("main",)


def test_a_controller_that_is_down_is_unseen_and_its_answers_unclear(
    slurm_cluster: SlurmCluster, eyes: Eyes, hands: Hands
) -> None:
    job = slurm_cluster.submit(SLEEP)
    slurm_cluster.wait_state(job, "RUNNING")
    sweep(eyes)
    slurm_cluster.kill_slurmctld()
    assert isinstance(eyes.jobs(), Unseen)
    assert hands.requeue(job, incomplete_only=True).outcome is Outcome.UNCLEAR


def test_a_controller_that_hangs_costs_bounded_time(
    slurm_cluster: SlurmCluster, hands: Hands
) -> None:
    impatient = Commands(slurm_cluster.env, slurm_cluster.within, timeout=0.5)
    job = slurm_cluster.submit(SLEEP)
    slurm_cluster.wait_state(job, "RUNNING")
    answers: list[Answer | Seen[tuple[JobFact, ...]] | Unseen] = []
    with slurm_cluster.paused("slurmctld"):
        before = time.monotonic()
        answers.append(SlurmEyes("main", impatient).jobs())
        answers.append(SlurmHands(impatient).cancel(job))
        assert time.monotonic() - before < 3
    assert isinstance(answers[0], Unseen)
    assert isinstance(answers[1], Answer)
    assert answers[1].outcome is Outcome.UNCLEAR
    assert hands.cancel(job).outcome is Outcome.DONE


def test_a_wrapped_command_is_found_in_the_folder_given(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    wrapper = tmp_path / "scontrol"
    wrapper.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    wrapper.chmod(0o755)
    hands = SlurmHands(Commands(slurm_cluster.env, bin_dir=tmp_path))
    assert hands.requeue("1", incomplete_only=False) == Answer(Outcome.REFUSED, "not today")
