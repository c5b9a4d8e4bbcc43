from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relight.testing.slurm import ClusterError, SlurmCluster
from relight.testing.slurm.processes import CLUSTER_VARIABLE

pytestmark = pytest.mark.slurm


@pytest.fixture
def folder(slurm_cluster: SlurmCluster) -> Iterator[Path]:
    assert slurm_cluster.nodes
    path = Path(tempfile.mkdtemp(prefix="relight-slurm-"))
    yield path
    shutil.rmtree(path)


def _living(folder: Path) -> list[str]:
    marker = f"{CLUSTER_VARIABLE}={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_job_runs_as_an_unprivileged_user_on_several_nodes_with_gpus(
    slurm_cluster: SlurmCluster,
) -> None:
    job = slurm_cluster.submit("id -un; srun hostname", options=["-N3", "--gpus-per-node=8"])
    assert slurm_cluster.wait_state(job, "COMPLETED") == "COMPLETED"
    words = (slurm_cluster.jobs / f"slurm-{job}.out").read_text().split()
    assert words[0] == "nobody"
    assert len(words) == 4


def test_a_node_that_goes_down_requeues_its_job_and_comes_back(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit("sleep 300", options=["-N1", "-w", "node-02"])
    slurm_cluster.wait_state(job, "RUNNING")
    slurm_cluster.node_down("node-02")
    slurm_cluster.wait_state(job, "PENDING")
    slurm_cluster.node_up("node-02")
    assert slurm_cluster.node_state("node-02") == "idle"


def test_a_killed_slurmd_comes_back(slurm_cluster: SlurmCluster) -> None:
    slurm_cluster.kill_node("node-03")
    slurm_cluster.node_up("node-03")
    job = slurm_cluster.submit("true", options=["-w", "node-03"])
    slurm_cluster.wait_state(job, "COMPLETED")


def test_jobs_survive_a_killed_slurmctld(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit("sleep 300")
    slurm_cluster.wait_state(job, "RUNNING")
    slurm_cluster.kill_slurmctld()
    slurm_cluster.start_slurmctld()
    slurm_cluster.wait_state(job, "RUNNING")


def test_a_stopped_slurmctld_answers_again_after_it_goes_on(slurm_cluster: SlurmCluster) -> None:
    with slurm_cluster.paused("slurmctld"), pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [*slurm_cluster.within, "squeue"], env=slurm_cluster.env, check=False, timeout=0.5
        )
    assert slurm_cluster.node_state("node-01") == "idle"


def test_stop_leaves_no_process_behind_not_even_a_job_that_ignores_signals(folder: Path) -> None:
    with SlurmCluster.start(folder, nodes=1, settings={"KillWait": "30"}) as cluster:
        job = cluster.submit("trap '' TERM; setsid sleep 300 & sleep 300; wait")
        cluster.wait_state(job, "RUNNING")
        assert len(_living(folder)) > 4
        before = time.monotonic()
    assert time.monotonic() - before < 3
    assert not _living(folder)


def test_a_start_that_fails_says_why_and_leaves_no_process_behind(folder: Path) -> None:
    with pytest.raises(ClusterError, match="ended"):
        SlurmCluster.start(folder, nodes=1, settings={"SelectType": "select/nonsense"})
    assert not _living(folder)


def test_a_folder_that_job_users_may_not_enter_is_refused(folder: Path) -> None:
    folder.chmod(0o700)
    with pytest.raises(ClusterError, match="nobody"):
        SlurmCluster.start(folder / "below")


def test_waiting_for_a_state_that_does_not_come_says_what_came(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit("true")
    slurm_cluster.wait_state(job, "COMPLETED")
    with pytest.raises(ClusterError, match="COMPLETED"):
        slurm_cluster.wait_state(job, "RUNNING", timeout=0.1)
