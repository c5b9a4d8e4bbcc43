"""Law 2: dying on any line and starting again loses no order and repeats none."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm
ServedMaker = Callable[..., Served]

KILLER = """
case "$*" in
  *{word}*) if [ ! -e {mark} ]; then
      touch {mark}
      {before}
      kill -9 $(cat {state}/lock)
      sleep 5
    fi ;;
esac
exec $REAL "$@"
"""


def recovered(relight: Served, job: str) -> None:
    """Check that the job is back off the bad node, and that nothing was done twice."""
    relight.wait_state(job, "COMPLETED", 90)
    nodes = relight.case(job).attempts[-1].fact.nodes
    assert "node-02" not in nodes
    accepted = relight.changes(job)
    assert accepted == {"requeue": 1, "update": 1, "kill": 0, "release": 0, "node": 0}, accepted


@pytest.mark.parametrize("word", ["requeue", "update"])
@pytest.mark.parametrize("before", ["", '$REAL "$@"'], ids=["asking", "hearing the answer"])
def test_killed_before(
    slurm_cluster: SlurmCluster, served: ServedMaker, word: str, before: str
) -> None:
    with served() as relight:
        mark, state = relight.folder / "killed", relight.folder / "state"
        relight.shim("scontrol", KILLER.format(word=word, mark=mark, before=before, state=state))
        name = f"killed-{word}-{'after' if before else 'before'}"
        job = training(slurm_cluster, name, fault="ecc:node=node-02,step=12")
        relight.wait_for("the kill", lambda: relight.is_dead, 60)
        assert mark.exists()
        relight.kill()
        relight.start()
        recovered(relight, job)


@pytest.mark.parametrize("delay", [0.0, 0.4, 0.8, 1.2, 1.6])
def test_killed_so_many_seconds_after_the_crash(
    slurm_cluster: SlurmCluster, served: ServedMaker, delay: float
) -> None:
    with served() as relight:
        job = training(slurm_cluster, f"killed-{delay:g}", fault="ecc:node=node-02,step=12")
        relight.wait_state(job, {"FAILED", "COMPLETING"}, 60)
        time.sleep(delay)
        relight.kill()
        relight.start()
        recovered(relight, job)
        assert "all as stored" in relight.relight("replay")


def test_killed_again_and_again_all_the_way(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served() as relight:
        job = training(slurm_cluster, "killed-often", fault="ecc:node=node-02,step=12")
        for _ in range(6):
            time.sleep(0.7)
            relight.kill()
            relight.start()
        recovered(relight, job)


def test_nobody_alive_between_requeue_and_update_is_a_plain_requeue(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    """What relight leaves behind when it dies ends by Slurm's own clock (law 4)."""
    with served() as relight:
        relight.shim("scontrol", 'case "$*" in *update*) exit 1;; esac\nexec $REAL "$@"')
        job = training(slurm_cluster, "nobody-alive", fault="ecc:node=node-02,step=12")
        relight.wait_for("the requeue", lambda: relight.changes(job)["requeue"] == 1, 60)
        relight.kill()
        state, priority = slurm_cluster.run("squeue", "-h", "-o", "%T %p", "-j", job).split()
        assert state == "PENDING"
        assert float(priority) > 0, "a job that is held would have priority 0"
        relight.start()
