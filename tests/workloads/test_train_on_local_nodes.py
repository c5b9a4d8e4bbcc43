from __future__ import annotations

import sys
import time
from pathlib import Path

from relight.clients.local.cluster import LocalCluster
from relight.clients.local.jobs import LocalJob
from relight.clients.local.scheduler import LocalHands
from relight.model.instants import Instant, from_unix
from relight.model.jobs import ENDED, JobFact, JobState
from relight.testing.workloads import TRAIN


def tick() -> Instant:
    """Tell a time that only grows."""
    return from_unix(1_767_225_600 + time.monotonic())


def settle(cluster: LocalCluster, job_id: str, *wanted: JobState) -> JobFact:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        fact = cluster.fact(job_id)
        assert fact is not None
        if fact.state in wanted:
            return fact
        time.sleep(0.01)
    raise AssertionError(f"job {job_id} stays {cluster.fact(job_id)}")


def restart(cluster: LocalCluster, job_id: str, *exclude: str) -> JobFact:
    hands = LocalHands(cluster)
    hands.requeue(job_id, incomplete_only=False)
    settle(cluster, job_id, JobState.PENDING)
    hands.start(job_id, note="", exclude=exclude, delay=None)
    return settle(cluster, job_id, *ENDED)


def test_training_fails_again_on_its_bad_node_and_ends_well_without_it(tmp_path: Path) -> None:
    options = f"--folder {tmp_path} --steps 12 --step-seconds 0.01 --checkpoint-every 4"
    fault = "--fault ecc:node=node-02,step=6"
    job = LocalJob(
        name="pretrain",
        command=(sys.executable, str(TRAIN), *options.split(), *fault.split()),
        nodes=3,
        work_dir=str(tmp_path),
    )
    with LocalCluster("local", ("node-01", "node-02", "node-03", "node-04"), tick) as cluster:
        job_id = cluster.submit(job)
        assert settle(cluster, job_id, *ENDED).state is JobState.FAILED
        assert restart(cluster, job_id).state is JobState.FAILED
        fact = restart(cluster, job_id, "node-02")
    assert (fact.state, fact.restart_count) == (JobState.COMPLETED, 2)
    assert fact.nodes == ("node-01", "node-03", "node-04")
    first, second = ((tmp_path / f"job-1-{rank}.out").read_text() for rank in (0, 1))
    assert "srun: error: node-02: task 1: Exited with exit code 1\n" in first
    assert second.count("CUDA error: uncorrectable ECC error encountered\n") == 2
    assert first.endswith("training complete at iteration 12\n")
