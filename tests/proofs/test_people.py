"""A person's word wins, whenever it comes (laws 2 and 5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relight.model.advice import Disposition, StatusReason
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm
ServedMaker = Callable[..., Served]

STEP = (
    " [2026-01-31 12:00:00.123456] iteration        7/  50 | consumed samples: 1 | elapsed time "
    "per iteration (ms): 50.0 | learning rate: 1.0E-04 | global batch size: 1 | lm loss: 1.0E+00 |"
)
LIVING = "deadtask:node=node-02,step=12"


def abandoned(relight: Served, job: str, reason: StatusReason) -> bool:
    advice = relight.advice(job)
    if advice is None:
        return False
    status = advice.status
    return (status.disposition, status.reason) == (Disposition.ABANDONED, reason)


def test_a_cancel_between_the_last_look_and_the_requeue_stands(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(settle='"5s"') as relight:
        relight.shim(
            "scontrol",
            'case "$*" in *requeue*) /usr/bin/scancel "${@: -1}"; sleep 1 ;; esac\nexec $REAL "$@"',
        )
        job = training(slurm_cluster, "cancel-late", fault=LIVING, kill_on_bad_exit=False)
        relight.wait_state(job, "CANCELLED", 60)
        relight.wait_for(
            "the end of the advice",
            lambda: (
                abandoned(relight, job, StatusReason.CHANGED_BY_PERSON)
                or "cancelled" in relight.sentences()
            ),
        )
        assert slurm_cluster.state(job) == "CANCELLED"
        assert relight.changes(job)["requeue"] == 0
        assert relight.changes(job)["update"] == 0


def test_a_success_between_the_last_look_and_the_requeue_stands(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(settle='"3s"') as relight:
        done = slurm_cluster.jobs / "done"
        relight.shim(
            "scontrol",
            f'case "$*" in *requeue*) touch {done}; sleep 3 ;; esac\nexec $REAL "$@"',
        )
        job = slurm_cluster.submit(
            f"echo '{STEP}'\n"
            "echo 'srun: error: node-01: task 0: Exited with exit code 1'\n"
            f"while [ ! -e {done} ]; do sleep 0.1; done",
            options=('--comment={"relight": {}}',),
        )
        relight.wait_state(job, "COMPLETED", 60)
        relight.wait_for(
            "the end of the advice", lambda: abandoned(relight, job, StatusReason.SUPERSEDED)
        )
        assert slurm_cluster.state(job) == "COMPLETED"
        assert relight.changes(job)["requeue"] == 0


def test_a_cancel_between_requeue_and_update_stands(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        relight.shim(
            "scontrol",
            'case "$*" in *update*) job=$(echo "$*" | grep -o "JobId=[0-9]*" | cut -d= -f2);'
            ' /usr/bin/scancel "$job"; sleep 0.5 ;; esac\nexec $REAL "$@"',
        )
        job = training(slurm_cluster, "cancel-middle", fault="ecc:node=node-02,step=12")
        relight.wait_state(job, "CANCELLED", 60)
        relight.wait_for(
            "the end of the advice",
            lambda: (advice := relight.advice(job)) is not None and not advice.is_active,
        )
        assert slurm_cluster.state(job) == "CANCELLED"
        assert relight.changes(job)["update"] == 0


def test_a_hold_between_requeue_and_update_stands(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        relight.shim(
            "scontrol",
            'if [ "$1" = requeue ]; then\n'
            '  $REAL "$@"; code=$?; $REAL hold "${@: -1}"; exit $code\nfi\n'
            'exec $REAL "$@"',
        )
        job = training(slurm_cluster, "hold-middle", fault="ecc:node=node-02,step=12")
        relight.wait_for(
            "the end of the advice",
            lambda: abandoned(relight, job, StatusReason.CHANGED_BY_PERSON),
            60,
        )
        assert relight.changes(job)["release"] == 0
        assert "JobHeld" in slurm_cluster.run("squeue", "-h", "-o", "%r", "-j", job)


def test_a_person_who_requeues_first_is_left_alone(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(slurm_cluster, "own-requeue", steps=400)
        relight.wait_state(job, "RUNNING", 30)
        relight.wait_for("a look at the job", lambda: relight.find_case(job) is not None)
        slurm_cluster.run("scontrol", "requeue", job)
        advice = relight.wait_for_advice(job)
        assert advice.reason.code == "requeued-by-person"
        assert relight.changes(job)["update"] == 0


def test_approve_mode_waits_for_a_yes_and_then_acts(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(mode="approve") as relight:
        job = training(slurm_cluster, "approve", fault="ecc:node=node-02,step=12")
        relight.wait_for_advice(job)
        assert relight.changes(job)["requeue"] == 0
        relight.relight("approve", f"main:{job}-0", "--why", "looks right")
        relight.wait_state(job, "COMPLETED", 60)
        assert "looks right" in relight.sentences()
