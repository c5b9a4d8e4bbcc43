from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relight.clients.local.cluster import LocalCluster
from relight.clients.local.jobs import LocalJob, SubmissionError
from relight.clients.local.scheduler import LocalEyes
from relight.model.instants import Instant, later, seconds
from relight.model.jobs import ENDED, JobFact, JobState
from relight.model.seen import Unseen

NODES = ("node-01", "node-02", "node-03")
START = Instant(1_767_225_600_000_000)


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Instant:
        """Tell the time it was set to."""
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def cluster(clock: Hand) -> Iterator[LocalCluster]:
    with LocalCluster("local", NODES, clock) as cluster:
        yield cluster


def shell(script: str, folder: Path, **more: object) -> LocalJob:
    return LocalJob(
        **{  # type: ignore[arg-type]  # fields of a record, each test names its own
            "name": "test",
            "command": ("/bin/sh", "-c", script),
            "work_dir": str(folder),
            "stdout": "job-%j.out",
            "kill_grace": seconds(0.3),
            **more,
        }
    )


def settle(cluster: LocalCluster, job_id: str, *wanted: JobState) -> JobFact:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        fact = cluster.fact(job_id)
        assert fact is not None
        if fact.state in (wanted or ENDED):
            return fact
        time.sleep(0.005)
    raise AssertionError(f"job {job_id} stays {cluster.fact(job_id)}")


def wait_for(path: Path, text: str = "") -> str:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if path.is_file() and text in path.read_text():
            return path.read_text()
        time.sleep(0.005)
    raise AssertionError(f"{path} never held {text!r}")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_tasks_know_their_place(cluster: LocalCluster, tmp_path: Path) -> None:
    script = (
        "echo $RELIGHT_RANK/$RELIGHT_WORLD on $RELIGHT_NODE"
        " try $RELIGHT_RESTART_COUNT of $RELIGHT_JOB_ID, $EXTRA"
    )
    job = shell(
        script, tmp_path, nodes=2, tasks_per_node=2, stdout="%x-%j-%t.out", env={"EXTRA": "more"}
    )
    settle(cluster, cluster.submit(job))
    assert [(tmp_path / f"test-1-{rank}.out").read_text() for rank in range(4)] == [
        "0/4 on node-01 try 0 of 1, more\n",
        "1/4 on node-01 try 0 of 1, more\n",
        "2/4 on node-02 try 0 of 1, more\n",
        "3/4 on node-02 try 0 of 1, more\n",
    ]


def test_a_shared_file_labels_each_line_with_its_task(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    job = shell("echo one; printf 'no end'", tmp_path, nodes=3)
    settle(cluster, cluster.submit(job))
    lines = sorted((tmp_path / "job-1.out").read_text().splitlines())
    assert lines == ["0: no end", "0: one", "1: no end", "1: one", "2: no end", "2: one"]


def test_a_line_without_end_is_broken_up_and_memory_stays_small(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    job = shell("head -c 3000000 /dev/zero | tr '\\0' x", tmp_path, nodes=2)
    settle(cluster, cluster.submit(job))
    lines = (tmp_path / "job-1.out").read_text().splitlines()
    assert max(map(len, lines)) < 200_000
    assert sum(line.count("x") for line in lines) == 6_000_000


def test_stdout_and_stderr_can_be_apart(cluster: LocalCluster, tmp_path: Path) -> None:
    job = shell("echo out; echo err >&2; exit 2", tmp_path, stderr="job-%j.err")
    settle(cluster, cluster.submit(job))
    assert (tmp_path / "job-1.out").read_text() == "out\n"
    assert (tmp_path / "job-1.err").read_text() == (
        "err\nsrun: error: node-01: task 0: Exited with exit code 2\n"
    )


def test_attempts_append_to_the_same_file(
    cluster: LocalCluster, tmp_path: Path, clock: Hand
) -> None:
    job_id = cluster.submit(shell("echo try $RELIGHT_RESTART_COUNT", tmp_path))
    settle(cluster, job_id)
    cluster.requeue(job_id, incomplete_only=False)
    clock.now = later(clock.now, seconds(122))
    settle(cluster, job_id)
    assert wait_for(tmp_path / "job-1.out", "try 1") == "try 0\ntry 1\n"


def test_the_wait_of_a_requeued_job_is_by_the_clock_that_was_given(
    cluster: LocalCluster, tmp_path: Path, clock: Hand
) -> None:
    job_id = cluster.submit(shell("true", tmp_path))
    settle(cluster, job_id)
    cluster.requeue(job_id, incomplete_only=False)
    clock.now = later(START, seconds(120.9))
    time.sleep(0.1)
    fact = settle(cluster, job_id, JobState.PENDING)
    assert (fact.reason, fact.eligible_at) == ("BeginTime", later(START, seconds(121)))
    clock.now = later(START, seconds(121))
    assert settle(cluster, job_id, JobState.COMPLETED).restart_count == 1


def test_one_failed_task_ends_the_others(cluster: LocalCluster, tmp_path: Path) -> None:
    script = "[ $RELIGHT_RANK = 1 ] && { sleep 0.1; exit 7; }; exec sleep 60"
    fact = settle(cluster, cluster.submit(shell(script, tmp_path, nodes=3)))
    assert (fact.state, fact.exit_status, fact.exit_signal) == (JobState.FAILED, 7, None)
    assert fact.reason == "NonZeroExitCode"
    lines = (tmp_path / "job-1.out").read_text().splitlines()
    assert lines[0] == "srun: error: node-02: task 1: Exited with exit code 7"
    assert lines[1] == "srun: Job step aborted: Waiting up to 0 seconds for job step to finish."
    assert lines[2] == (
        "slurmstepd-node-01: error: *** STEP 1.0 ON node-01 CANCELLED AT 2026-01-01T00:00:00 ***"
    )
    assert sorted(lines[3:]) == [
        "srun: error: node-01: task 0: Terminated",
        "srun: error: node-03: task 2: Terminated",
    ]


def test_without_kill_on_bad_exit_the_others_go_on(cluster: LocalCluster, tmp_path: Path) -> None:
    script = "[ $RELIGHT_RANK = 1 ] && exit 7; exec sleep 60"
    job = shell(script, tmp_path, nodes=2, kill_on_bad_exit=False)
    job_id = cluster.submit(job)
    wait_for(tmp_path / "job-1.out", "srun: error: node-02: task 1: Exited with exit code 7\n")
    time.sleep(0.05)
    fact = cluster.fact(job_id)
    assert fact is not None
    assert fact.state is JobState.RUNNING


def test_a_task_killed_by_a_signal_says_so(cluster: LocalCluster, tmp_path: Path) -> None:
    fact = settle(cluster, cluster.submit(shell("kill -SEGV $$", tmp_path)))
    assert (fact.state, fact.exit_status, fact.exit_signal) == (JobState.FAILED, 139, 11)
    assert (tmp_path / "job-1.out").read_text() == (
        "srun: error: node-01: task 0: Segmentation fault\n"
    )


def test_a_requeue_writes_the_step_daemons_line(cluster: LocalCluster, tmp_path: Path) -> None:
    job_id = cluster.submit(shell("exec sleep 60", tmp_path))
    settle(cluster, job_id, JobState.RUNNING)
    cluster.requeue(job_id, incomplete_only=True)
    settle(cluster, job_id, JobState.PENDING)
    assert (tmp_path / "job-1.out").read_text() == (
        "slurmstepd-node-01: error: *** STEP 1.0 ON node-01 CANCELLED AT"
        " 2026-01-01T00:00:00 DUE TO JOB REQUEUE ***\n"
    )


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.02; done"
    job_id = cluster.submit(shell(script, tmp_path))
    wait_for(tmp_path / "job-1.out", "ready")
    cluster.cancel(job_id)
    settle(cluster, job_id, JobState.COMPLETING)
    assert settle(cluster, job_id).state is JobState.CANCELLED


def test_a_stopped_process_is_ended_too(cluster: LocalCluster, tmp_path: Path) -> None:
    job_id = cluster.submit(shell("echo ready; kill -STOP $$", tmp_path))
    wait_for(tmp_path / "job-1.out", "ready")
    cluster.cancel(job_id)
    assert settle(cluster, job_id).state is JobState.CANCELLED


def test_what_a_task_leaves_behind_dies_with_it(cluster: LocalCluster, tmp_path: Path) -> None:
    job_id = cluster.submit(shell("sleep 60 & echo $!", tmp_path))
    assert settle(cluster, job_id).state is JobState.COMPLETED
    pid = int((tmp_path / "job-1.out").read_text())
    until = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(pid)


@pytest.mark.parametrize(
    ("command", "status"), [(("/no/such/program",), 2), (("/etc/passwd",), 13)]
)
def test_a_command_that_cannot_start_fails_the_job(
    cluster: LocalCluster, tmp_path: Path, command: tuple[str, ...], status: int
) -> None:
    fact = settle(cluster, cluster.submit(shell("", tmp_path, command=command)))
    assert (fact.state, fact.exit_status) == (JobState.FAILED, status)
    assert f"task 0: Exited with exit code {status}" in (tmp_path / "job-1.out").read_text()


def test_output_that_cannot_be_opened_fails_the_job_and_blocks_nothing(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    bad = [shell("true", tmp_path, stdout=name) for name in ("pipe", ".", "no/folder/out")]
    facts = [settle(cluster, cluster.submit(job)) for job in bad]
    assert [fact.state for fact in facts] == [JobState.FAILED] * 3
    missing = shell("true", tmp_path, work_dir=str(tmp_path / "gone"), stdout="/dev/null")
    assert settle(cluster, cluster.submit(missing)).exit_status == 2
    assert settle(cluster, cluster.submit(shell("true", tmp_path))).state is JobState.COMPLETED


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ()},
        {"command": ("",)},
        {"command": ("echo", "zero\0byte")},
        {"command": ("echo", "\ud800")},
        {"env": {"A=B": "c"}},
        {"nodes": 4},
        {"nodes": 0},
        {"tasks_per_node": 0},
    ],
)
def test_a_job_that_could_never_run_is_refused(
    cluster: LocalCluster, tmp_path: Path, fields: dict[str, object]
) -> None:
    with pytest.raises(SubmissionError, match="test"):
        cluster.submit(shell("true", tmp_path, **fields))


def test_a_hostile_name_stays_in_its_folder(cluster: LocalCluster, tmp_path: Path) -> None:
    job = shell("echo here", tmp_path, name="../../x", stdout="%x-%j-100%%.out")
    settle(cluster, cluster.submit(job))
    assert (tmp_path / ".._.._x-1-100%.out").read_text() == "here\n"


def test_close_leaves_no_process_and_no_thread(tmp_path: Path, clock: Hand) -> None:
    before = set(threading.enumerate())
    cluster = LocalCluster("local", NODES, clock)
    script = "trap '' TERM; sleep 60 & echo $$ $! ready; wait; while :; do sleep 0.02; done"
    cluster.submit(shell(script, tmp_path, nodes=3))
    written = wait_for(tmp_path / "job-1.out", "2: ")
    pids = [int(word) for line in written.splitlines() for word in line.split()[1:3]]
    cluster.close()
    cluster.close()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists() and is_alive(pid)] == []
    assert set(threading.enumerate()) <= before
    assert isinstance(LocalEyes(cluster).jobs(), Unseen)
    assert isinstance(LocalEyes(cluster).job("1"), Unseen)
    assert isinstance(LocalEyes(cluster).nodes(), Unseen)
    with pytest.raises(SubmissionError, match="closed"):
        cluster.submit(shell("true", tmp_path))


def test_orders_from_many_threads_at_once_make_one_attempt_each(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    job_id = cluster.submit(shell("exec sleep 60", tmp_path))
    settle(cluster, job_id, JobState.RUNNING)
    refusals: list[object] = []

    def order() -> None:
        refusals.append(cluster.requeue(job_id, incomplete_only=True))

    threads = [threading.Thread(target=order) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert settle(cluster, job_id, JobState.PENDING).restart_count == 1
    assert refusals.count(None) == 1
