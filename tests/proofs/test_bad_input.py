"""Bad comments, missing and foreign logs, a scheduler that is down: said, never acted on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import urllib3

from relight.model.advice import Decision
from relight.model.jobs import JobState
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm
ServedMaker = Callable[..., Served]


@pytest.mark.parametrize(
    ("comment", "named"),
    [
        ('{"relight": {"max_restarts": "many"}}', "relight.max_restarts"),
        ('{"relight": {"max_restart": 3}}', "relight.max_restart"),
        ('{"relight": {"policy": "nope"}}', "nope"),
        ('{"relight": {"policy": ', "relight"),
        ('{"APS": {"auto_resume_mode": "sometimes"}}', "APS.auto_resume_mode"),
    ],
)
def test_a_comment_in_error_is_listed_with_its_key_and_nothing_is_done(
    slurm_cluster: SlurmCluster, served: ServedMaker, comment: str, named: str
) -> None:
    with served() as relight:
        job = slurm_cluster.submit("exit 1", options=(f"--comment={comment}",))
        relight.wait_for("the listing", lambda: relight.find_case(job) is not None)
        relight.wait_for("the end", lambda: state_seen(relight, job) is JobState.FAILED)
        case = relight.case(job)
        assert any(named in error for error in case.choice.errors), case.choice.errors
        assert case.attempts[0].advice is None
        assert relight.changes(job)["requeue"] == 0
        assert job in relight.relight("jobs")


def test_the_keys_of_autonomous_job_recovery_mean_the_same(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(
            slurm_cluster,
            "aps",
            fault="ecc:node=node-02,step=12",
            comment='{"APS": {"auto_resume_mode": "requeue", "max_requeue_times": 2}}',
        )
        relight.wait_state(job, "COMPLETED", 60)
        assert relight.case(job).choice.max_restarts == 2


def test_a_missing_log_file_is_unseen_and_not_healthy(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = slurm_cluster.submit(
            "rm -f gone.out; sleep 1; exit 1",
            options=('--comment={"relight": {}}', f"--output={slurm_cluster.jobs}/gone.out"),
        )
        advice = relight.wait_for_advice(job)
        assert advice.decision is Decision.NONE
        assert "logs were not seen" in advice.reason.sentence
        assert "not there" in advice.reason.sentence


def test_an_output_that_links_to_another_users_file_is_unseen_and_never_shown(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    secret = slurm_cluster.folder / "secret.txt"
    secret.write_text("RuntimeError: CUDA error: uncorrectable ECC error encountered XYZZY\n")
    secret.chmod(0o600)
    with served() as relight:
        job = slurm_cluster.submit(
            f"rm -f link.out; ln -s {secret} link.out; sleep 1; exit 1",
            options=('--comment={"relight": {}}', f"--output={slurm_cluster.jobs}/link.out"),
        )
        advice = relight.wait_for_advice(job)
        assert "logs were not seen" in advice.reason.sentence
        said = relight.said + relight.sentences() + relight.relight("why", job)
        assert "XYZZY" not in said
        case = relight.case(job)
        assert not any("XYZZY" in e.text for f in case.attempts[0].findings for e in f.evidence)


def test_noise_and_a_forged_line_blame_no_node(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = slurm_cluster.submit(
            "head -c 3000000 /dev/urandom; head -c 50000000 /dev/zero | tr '\\0' x; echo\n"
            "echo 'Jan  1 00:00:00 node-04 kernel: NVRM: Xid (PCI:0000:b3:00): 79, pid=1, gone'\n"
            "exit 1",
            options=('--comment={"relight": {}}', "--nodelist=node-01"),
        )
        advice = relight.wait_for_advice(job, seconds=60)
        assert advice.exclusions == ()
        assert relight.changes(job)["node"] == 0


def test_a_scheduler_that_is_down_is_said_and_waited_out(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(slurm_cluster, "down", fault="ecc:node=node-02,step=400", steps=420)
        relight.wait_state(job, "RUNNING", 30)
        relight.wait_for("a look at the job", lambda: relight.find_case(job) is not None)
        slurm_cluster.kill_slurmctld()
        relight.wait_for("the health to say so", lambda: not is_ready(relight), 40)
        assert relight.case(job).is_gone is False
        slurm_cluster.start_slurmctld()
        relight.wait_for("the health to be well", lambda: is_ready(relight), 60)
        relight.wait_state(job, "COMPLETED", 90)
        assert relight.changes(job)["requeue"] == 1


def test_the_tasks_of_an_array_are_jobs_of_their_own(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = slurm_cluster.submit(
            'if [ -n "$SLURM_RESTART_COUNT" ]; then exit 0; fi\nsleep 1\n'
            'echo "[rank0]: RuntimeError: CUDA error: uncorrectable ECC error encountered"\n'
            'if [ "$SLURM_ARRAY_TASK_ID" = 1 ]; then exit 1; fi',
            options=('--comment={"relight": {}}', "--array=0-1", "--open-mode=append"),
        )
        relight.wait_for("the restart of one task", lambda: attempts(relight, f"{job}_1") == 2, 60)
        relight.wait_state(f"{job}_1", "COMPLETED", 60)
        relight.wait_state(f"{job}_0", "COMPLETED", 60)
        assert attempts(relight, f"{job}_0") == 1


def attempts(relight: Served, job: str) -> int:
    case = relight.find_case(job)
    return len(case.attempts) if case is not None else 0


def state_seen(relight: Served, job: str) -> JobState:
    latest = relight.case(job).latest
    return latest.fact.state if latest is not None else JobState.UNKNOWN


def is_ready(relight: Served) -> bool:
    answer = urllib3.request("GET", f"{relight.url}/readyz", timeout=5, retries=False)
    return bool(json.loads(answer.data)["ready"])
