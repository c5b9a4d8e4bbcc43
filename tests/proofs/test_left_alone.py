"""Healthy jobs that look ill, and jobs that only Slurm's own refusals could strand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relight.model.advice import Decision
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm
ServedMaker = Callable[..., Served]

STEPS = """
step() {
  echo " [2026-01-31 12:00:00.123456] iteration  $1/  90 | consumed samples: 1 | elapsed time \
per iteration (ms): 500.0 | learning rate: 1.0E-04 | global batch size: 1 | lm loss: 1.0E+00 |"
  sleep 0.5
}
"""
ECC = 'echo "[rank0]: RuntimeError: CUDA error: uncorrectable ECC error encountered"'
DEAD = 'echo "srun: error: node-01: task 0: Exited with exit code 1"'

HEALTHY = {
    "a worker that its launcher restarts below its best step": (
        f"for i in $(seq 30 40); do step $i; done; {ECC}; for i in $(seq 20 45); do step $i; done"
    ),
    "a step of the script that failed while the next one goes on": (
        f"for i in 1 2 3; do step $i; done; {DEAD}; for i in $(seq 1 20); do step $i; done"
    ),
    "an unknown program that shows no steps": f"{ECC}; {DEAD}; sleep 12",
}


@pytest.mark.parametrize("body", HEALTHY.values(), ids=HEALTHY)
def test_left_alone(slurm_cluster: SlurmCluster, served: ServedMaker, body: str) -> None:
    with served(settle='"4s"') as relight:
        job = slurm_cluster.submit(
            f"#!/bin/bash\n{STEPS}\n{body}\n", options=('--comment={"relight": {}}',)
        )
        relight.wait_state(job, "COMPLETED", 60)
        assert relight.changes(job)["requeue"] == 0, relight.sentences()


def test_lines_of_an_earlier_attempt_in_an_appended_file_are_not_blamed(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    body = f"#!/bin/bash\n{STEPS}\n{ECC}\n{DEAD}\nfor i in $(seq 1 60); do step $i; done\n"
    job = slurm_cluster.submit(body, options=('--comment={"relight": {}}', "--open-mode=append"))
    for _ in range(2):
        slurm_cluster.wait_state(job, "RUNNING", 30)
        slurm_cluster.run("bash", "-c", "sleep 11")
        slurm_cluster.run("scontrol", "requeue", job)
        slurm_cluster.run("bash", "-c", f"sleep 1; scontrol update JobId={job} StartTime=now")
    slurm_cluster.wait_state(job, "RUNNING", 60)
    slurm_cluster.run("bash", "-c", "sleep 11")
    with served(settle='"4s"') as relight:
        relight.wait_for("a look at the job", lambda: relight.find_case(job) is not None)
        relight.wait_state(job, "COMPLETED", 60)
        assert relight.changes(job)["requeue"] == 0, relight.sentences()


def test_a_job_that_takes_long_to_end_keeps_its_advice_through_completing(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(settle='"4s"') as relight:
        job = slurm_cluster.submit(
            f"#!/bin/bash\n{STEPS}\n"
            'if [ -n "$SLURM_RESTART_COUNT" ]; then exit 0; fi\n'
            "trap 'sleep 2' TERM\n"
            f"for i in 1 2 3; do step $i; done; {ECC}\n"
            "while true; do sleep 0.5; done\n",
            options=('--comment={"relight": {}}', "--open-mode=append"),
        )
        relight.wait_state(job, "COMPLETED", 60)
        assert relight.case(job).key.reuse == 0
        assert relight.changes(job)["requeue"] == 1
        assert relight.changes(job)["update"] == 1


def test_a_job_that_asks_for_the_bad_node_by_name_runs_again_on_it(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        fault = "ecc:node=node-02,step=12,attempts=1"
        job = training(
            slurm_cluster, "nodelist", fault=fault, nodes=2, options=("--nodelist=node-02",)
        )
        relight.wait_state(job, "COMPLETED", 60)
        advice = relight.advice(job)
        assert advice is not None
        assert advice.decision is Decision.RESTART
        assert "--nodelist" in advice.reason.sentence


def test_an_exclusion_that_slurm_refuses_is_given_back(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    """Only the scheduler knows of constraints that relight does not count: it answers so."""
    slurm_cluster.run("scontrol", "update", "NodeName=node-02", "AvailableFeatures=special")
    with served() as relight:
        job = training(
            slurm_cluster,
            "feature",
            fault="ecc:node=node-02,step=12,attempts=1",
            nodes=1,
            options=("--constraint=special",),
        )
        relight.wait_state(job, "COMPLETED", 60)
        advice = relight.advice(job)
        assert advice is not None
        assert advice.given_back == ("node-02",)
        assert relight.changes(job)["update"] == 2
