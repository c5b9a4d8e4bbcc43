"""Fixtures of the proofs: a folder of their own, and relight serve beside the real cluster."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.testing.metrics import Prometheus
from relight.testing.served import NeverHappened, Served, moments
from relight.testing.slurm import SlurmCluster
from relight.testing.slurm.processes import Daemon
from relight.testing.workloads import gpu_exporter

EXPORTER = Path(gpu_exporter.__file__)
ServedMaker = Callable[..., Served]


@pytest.fixture
def served(slurm_cluster: SlurmCluster) -> Iterator[ServedMaker]:
    """Make ``relight serve`` processes that are gone when the test is over."""
    made: list[Served] = []
    with tempfile.TemporaryDirectory(prefix="relight-proof-") as folder:

        def make(*, mode: str = "act", **policy: str) -> Served:
            place = Path(folder) / str(len(made))
            place.mkdir()
            made.append(Served(slurm_cluster, place, mode=mode, **policy))
            return made[-1]

        yield make
        for one in made:
            one.kill()


@pytest.fixture
def metrics(slurm_cluster: SlurmCluster) -> Iterator[str]:
    """Give the address of a real Prometheus that knows what the ranks of pretend nodes do."""
    with tempfile.TemporaryDirectory(prefix="relight-metrics-") as name:
        folder = Path(name)
        said = folder / "port"
        command = (sys.executable, str(EXPORTER), str(said), str(slurm_cluster.jobs))
        exporter = Daemon("gpu-exporter", command, env=os.environ, output=folder / "exporter.log")
        exporter.start()
        try:
            address = f"127.0.0.1:{_written(said)}"
            with Prometheus.start(folder, targets={"dcgm": [address]}) as server:
                yield server.url
        finally:
            exporter.kill()


def _written(file: Path) -> int:
    for _ in moments(20):
        if file.exists() and (text := file.read_text().strip()):
            return int(text)
    raise NeverHappened(f"{file} was never written")
