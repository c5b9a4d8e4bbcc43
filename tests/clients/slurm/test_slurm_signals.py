"""A signal by order, against a real Slurm: who gets it, and that the job runs on."""

from __future__ import annotations

import time

import pytest

from relight.clients.slurm import Commands, SlurmHands
from relight.model.orders import Outcome
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm

CATCHES = """
trap 'echo batch got it' USR1
srun sh -c "trap 'echo step got it' USR1; echo ready; while :; do sleep 0.1; done" &
while :; do wait; done
"""


def read_until(cluster: SlurmCluster, job: str, word: str) -> str:
    deadline = time.monotonic() + 20
    path = cluster.jobs / f"slurm-{job}.out"
    while not path.exists() or word not in path.read_text():
        assert time.monotonic() < deadline, f'"{word}" was never written'
        time.sleep(0.05)
    return path.read_text()


def test_a_signal_goes_to_the_steps_or_to_the_batch_script_and_the_job_runs_on(
    slurm_cluster: SlurmCluster,
) -> None:
    hands = SlurmHands(Commands(slurm_cluster.env, slurm_cluster.within))
    job = slurm_cluster.submit(CATCHES)
    read_until(slurm_cluster, job, "ready")
    assert hands.signal(job, name="USR1", batch_only=False).outcome is Outcome.DONE
    assert "batch got it" not in read_until(slurm_cluster, job, "step got it")
    assert hands.signal(job, name="USR1", batch_only=True).outcome is Outcome.DONE
    read_until(slurm_cluster, job, "batch got it")
    assert slurm_cluster.state(job) == "RUNNING"


def test_a_job_that_does_not_run_is_not_signalled(slurm_cluster: SlurmCluster) -> None:
    hands = SlurmHands(Commands(slurm_cluster.env, slurm_cluster.within))
    job = slurm_cluster.submit("true")
    slurm_cluster.wait_state(job, "COMPLETED")
    for name in (job, "999999"):
        assert hands.signal(name, name="USR1", batch_only=False).outcome is Outcome.REFUSED
