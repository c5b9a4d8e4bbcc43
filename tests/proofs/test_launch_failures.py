"""On a real cluster: a prolog fails on one node, and Slurm itself holds the job."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from relight.model.advice import Decision
from relight.testing.served import COMMENT, Served
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm

BAD = "node-02"
HELD = "launch failed requeued held"
CHANGES = {"requeue": 1, "update": 1, "kill": 0, "release": 0, "node": 0}
"""The requeue is Slurm's own."""


class Failing:
    """A cluster on one of whose nodes every prolog fails, at once or after some seconds."""

    def __init__(self, folder: Path, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        self._pause = folder / "pause"

    def prepare(self, pause: int) -> None:
        """Bring all nodes back, and let prologs fail after ``pause`` seconds from now on."""
        self.cluster.reset()
        self._pause.write_text(f"{pause}\n")

    def submit(self) -> str:
        """Submit a job of three nodes and return its id."""
        return self.cluster.submit(
            "srun hostname", options=("--nodes=3", "--ntasks=3", f"--comment={COMMENT}")
        )


@pytest.fixture(scope="module")
def failing(slurm_cluster: SlurmCluster) -> Iterator[Failing]:
    """Start that cluster beside the common one, whose configuration has no prolog."""
    if slurm_cluster.root is not None:
        pytest.skip("the prolog lies outside that Slurm's own root")
    with tempfile.TemporaryDirectory(prefix="relight-prolog-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        prolog = folder / "prolog.sh"
        fails = f'[ "$SLURMD_NODENAME" != {BAD} ] || {{ sleep "$(cat {folder}/pause)"; exit 1; }}'
        prolog.write_text(f"#!/bin/sh\n{fails}\n")
        prolog.chmod(0o755)
        settings = {"Prolog": str(prolog), "PrologFlags": "Alloc"}
        with SlurmCluster.start(folder / "cluster", settings=settings) as cluster:
            yield Failing(folder, cluster)


def test_a_job_that_slurm_could_not_launch_is_told_of_and_starts_as_advised_when_it_is_let_go(
    failing: Failing, tmp_path: Path
) -> None:
    cluster = failing.cluster
    failing.prepare(0)
    with Served(cluster, tmp_path) as relight:
        job = failing.submit()
        advice = relight.wait_for_advice(job)
        assert cluster.run("squeue", "-h", "-t", "all", "-o", "%r", "-j", job) == HELD
        assert advice.decision in (Decision.RESTART, Decision.RESTART_EXCLUDING_NODE)
        assert advice.already_requeued
        is_held = f"scontrol release {job}"
        relight.wait_for("the word that it is held", lambda: is_held in relight.sentences())
        assert relight.changes(job) == CHANGES
        assert cluster.state(job) == "PENDING"
        cluster.run("scontrol", "release", job)
        relight.wait_state(job, "COMPLETED")
        assert relight.case(job).attempts[-1].fact.note.startswith("[relight ")


def test_the_node_whose_prolog_failed_while_the_job_was_seen_there_is_blamed_and_left_out(
    failing: Failing, tmp_path: Path
) -> None:
    failing.prepare(3)
    with Served(failing.cluster, tmp_path) as relight:
        job = failing.submit()
        relight.wait_for("the update", lambda: relight.changes(job) == CHANGES)
        advice = relight.wait_for_advice(job)
        assert advice.exclusions == (BAD,)
        incident = relight.case(job).attempts[0].incident
        assert incident is not None
        assert incident.verdict is not None
        assert incident.verdict.cause == "node-failed-prolog"
        said = failing.cluster.run("scontrol", "show", "job", job)
        assert f"ExcNodeList={BAD}" in said


def test_in_monitor_mode_a_job_that_slurm_holds_is_told_of_and_not_touched(
    failing: Failing, tmp_path: Path
) -> None:
    failing.prepare(0)
    with Served(failing.cluster, tmp_path, mode="monitor") as relight:
        job = failing.submit()
        assert "could not launch the job" in relight.wait_for_advice(job).reason.sentence
        relight.wait_for("the word", lambda: "nothing is done" in relight.sentences())
        assert relight.changes(job) == {**CHANGES, "update": 0}
