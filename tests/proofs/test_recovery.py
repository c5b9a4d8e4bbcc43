"""The main job, on a real Slurm cluster: a crash is diagnosed and restarted off the bad node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relight.model.advice import Decision, Mode
from relight.model.incidents import Phase
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm
ServedMaker = Callable[..., Served]

ECC = "ecc:node=node-02,step=12"


def test_an_ecc_crash_ends_completed_on_other_nodes_resumed_from_the_checkpoint(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(slurm_cluster, "ecc-act", fault=ECC)
        relight.wait_state(job, "COMPLETED", 60)
        relight.wait_for("the recovery", lambda: closed_as(relight, job) == "recovered")
        first, second = relight.case(job).attempts
        assert second.fact.nodes == ("node-01", "node-03", "node-04")
        assert second.progress.resumed_from == first.progress.best_checkpoint == 10
        assert relight.changes(job) == changes(requeue=1, update=1)
        story = relight.relight("why", job)
        assert "uncorrectable ECC error encountered" in story
        assert "node-02" in story
        replayed = relight.relight("replay")
        assert "all as stored" in replayed


def test_in_monitor_mode_the_advice_is_recorded_and_slurm_is_not_touched(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(mode="monitor") as relight:
        job = training(slurm_cluster, "ecc-monitor", fault=ECC)
        relight.wait_state(job, "FAILED", 60)
        advice = relight.wait_for_advice(job)
        assert advice.decision is Decision.RESTART_EXCLUDING_NODE
        assert advice.exclusions == ("node-02",)
        assert advice.mode is Mode.MONITOR
        assert advice.permit is None
        relight.wait_for(
            "the word that nothing is done",
            lambda: "nothing is done" in relight.sentences(),
        )
        assert relight.changes(job) == changes()
        assert slurm_cluster.state(job) == "FAILED"


def test_a_deterministic_error_is_not_restarted_and_the_owner_sees_why(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(slurm_cluster, "module", fault="module")
        advice = relight.wait_for_advice(job)
        assert advice.decision is Decision.STOP, relight.relight("why", job) + relight.said
        assert relight.changes(job) == changes()
        assert "would fail again" in relight.relight("why", job)


def test_a_launcher_that_restarts_its_worker_in_place_is_left_alone(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(settle='"8s"') as relight:
        job = training(
            slurm_cluster,
            "inplace",
            fault="inplace:node=node-02,step=20,attempts=1",
            steps=120,
            train="--launcher --max-restarts 3",
        )
        relight.wait_state(job, "COMPLETED", 90)
        relight.wait_for("the incident", lambda: closed_as(relight, job) == "recovered-in-place")
        assert relight.changes(job) == changes()


def test_a_dead_task_that_srun_reports_restarts_a_job_that_slurm_keeps_running(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(settle='"5s"') as relight:
        job = training(
            slurm_cluster,
            "deadtask",
            fault="deadtask:node=node-02,step=12,attempts=1",
            kill_on_bad_exit=False,
        )
        relight.wait_state(job, "COMPLETED", 90)
        first = relight.case(job).attempts[0]
        assert first.advice is not None
        assert first.advice.while_living
        assert relight.changes(job) == changes(requeue=1, update=1)


def test_a_living_job_that_completes_no_step_for_the_settle_time_is_restarted(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(settle='"3s"') as relight:
        folder = slurm_cluster.jobs / "settle"
        folder.mkdir()
        folder.chmod(0o777)
        body = (
            'if [ "$SLURM_RESTART_COUNT" -gt 0 ] 2>/dev/null; then exit 0; fi\n'
            "echo ' [2026-01-31 12:00:00.123456] iteration        7/  50 | consumed samples: 1 | "
            "elapsed time per iteration (ms): 50.0 | learning rate: 1.0E-04 | global batch size: "
            "1 | lm loss: 1.0E+00 |'\n"
            "echo '[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered'\n"
            "sleep 600"
        )
        job = slurm_cluster.submit(
            body,
            options=(
                '--comment={"relight": {}}',
                f"--output={folder}/out.txt",
                "--open-mode=append",
            ),
        )
        relight.wait_state(job, "COMPLETED", 60)
        assert relight.changes(job) == changes(requeue=1, update=1)


def test_a_node_that_slurm_declares_down_is_excluded_within_slurms_own_wait(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(slurm_cluster, "node-fail", steps=150)
        relight.wait_state(job, "RUNNING", 30)
        relight.wait_for("a first checkpoint", lambda: has_checkpoint(relight, job))
        slurm_cluster.node_down("node-02", "tests pull the plug")
        relight.wait_state(job, "COMPLETED", 90)
        first, second = relight.case(job).attempts
        assert first.advice is not None
        assert first.advice.already_requeued
        assert first.advice.exclusions == ("node-02",)
        assert "node-02" not in second.fact.nodes
        assert relight.changes(job)["requeue"] == 0 or first.advice.already_requeued
        assert relight.changes(job)["update"] == 1


@pytest.mark.parametrize("dependency", ["afterany:{job}", "singleton"])
def test_a_chained_successor_forbids_the_restart(
    slurm_cluster: SlurmCluster, served: ServedMaker, dependency: str
) -> None:
    with served() as relight:
        name = f"chain-{dependency.partition(':')[0]}"
        job = training(slurm_cluster, name, fault=ECC)
        successor = slurm_cluster.submit(
            "sleep 30",
            options=(f"--dependency={dependency.format(job=job)}", f"--job-name={name}"),
        )
        advice = relight.wait_for_advice(job)
        assert advice.decision is Decision.NONE
        assert advice.reason.code == "successor-exists"
        assert successor in advice.reason.sentence
        assert relight.changes(job) == changes()


def test_an_exclusion_that_cannot_be_spared_is_not_made(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(max_restarts="1") as relight:
        job = training(
            slurm_cluster, "no-spare", fault="ecc:node=node-02,step=12,attempts=1", nodes=4
        )
        relight.wait_state(job, "COMPLETED", 60)
        advice = relight.advice(job)
        assert advice is not None
        assert advice.decision is Decision.RESTART
        assert "cannot be left out" in advice.reason.sentence


def test_a_users_own_exclusions_and_a_sites_own_note_stay(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(
            slurm_cluster, "own-exclude", fault=ECC, nodes=2, options=("--exclude=node-01",)
        )
        slurm_cluster.run("scontrol", "update", f"JobId={job}", "AdminComment=ticket 4711; gold")
        relight.wait_state(job, "COMPLETED", 60)
        fact = relight.case(job).attempts[1].fact
        assert set(fact.excluded_nodes) == {"node-01", "node-02"}
        assert fact.note.startswith("ticket 4711; gold [relight ")


def changes(**counts: int) -> dict[str, int]:
    return {"requeue": 0, "update": 0, "kill": 0, "release": 0, "node": 0, **counts}


def closed_as(relight: Served, job: str) -> str:
    incident = relight.case(job).attempts[0].incident
    closed = incident.closed if incident is not None else None
    return closed.code if closed is not None and incident and incident.phase is Phase.CLOSED else ""


def has_checkpoint(relight: Served, job: str) -> bool:
    case = relight.find_case(job)
    latest = case.latest if case is not None else None
    return latest is not None and latest.progress.best_checkpoint is not None
