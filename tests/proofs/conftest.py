"""Fixtures of the proofs: a folder of their own, and relight serve beside the real cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.testing.served import Served
from relight.testing.slurm import SlurmCluster

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
