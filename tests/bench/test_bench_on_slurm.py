from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from bench.restart import STOCK, crashes
from bench.tables import table

from bench import idle
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm


@pytest.mark.usefixtures("slurm_cluster")
def test_one_crash_is_measured_in_its_stretches() -> None:
    with tempfile.TemporaryDirectory(prefix="relight-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (crash,) = crashes(folder / "cluster", STOCK, 1, poll="500ms")
    assert crash.whole > 0
    assert min(crash.decided, crash.requeued, crash.updated, crash.started) > 0


def test_a_few_idle_jobs_are_measured_and_nothing_is_left(slurm_cluster: SlurmCluster) -> None:
    result = idle.measure(jobs=3, seconds=1, settling=1)
    assert next(row.what for row in result.rows) == "watching"
    assert "3 jobs" in table([result])
    assert slurm_cluster.run("squeue", "-h") == ""
