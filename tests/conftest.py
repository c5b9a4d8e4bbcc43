"""Fixtures of the whole suite: one real Slurm cluster, started once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from relight.testing.slurm import SlurmCluster, unavailable

# In CI the same commit is judged by the same examples; everywhere else new ones are sought.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":
    settings.load_profile("ci")


# A worker of pytest-xdist has a terminal's width though it has no terminal; commands go by it.
os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests on the real Slurm run first and in one process, where several share the work.

    They mostly wait, so that the others fit beside them. A file of the others stays together,
    because its fixtures may be dear.
    """
    for item in items:
        is_slurm = item.get_closest_marker("slurm") is not None
        item.add_marker(pytest.mark.xdist_group("slurm" if is_slurm else str(item.path)))
    items.sort(key=lambda item: item.get_closest_marker("slurm") is None)


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """Start a four-node cluster for the session; skip where there is no Slurm, fail in CI.

    Its folder lies directly below the temporary folder, because pytest's own may be entered
    by the user alone and jobs run as another one. Tests that use it are marked ``slurm`` and
    find all four nodes idle and no job queued. RELIGHT_TEST_SLURM_ROOT names a folder with
    another Debian, whose Slurm is run instead of this machine's.
    """
    root = os.environ.get("RELIGHT_TEST_SLURM_ROOT")
    if root is None and (why := unavailable()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no real Slurm cluster: {why}")
        pytest.skip(f"no real Slurm cluster: {why}")
    folder = Path(tempfile.mkdtemp(prefix="relight-slurm-"))
    try:
        with SlurmCluster.start(folder, root=None if root is None else Path(root)) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder.resolve(), ignore_errors=True)
        if folder.is_symlink():
            folder.unlink()


@pytest.fixture(autouse=True)
def _clean_cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give the cluster back as it was found: no jobs, every daemon running, every node idle."""
    yield
    if "slurm_cluster" in request.fixturenames:
        cluster = request.getfixturevalue("slurm_cluster")
        assert isinstance(cluster, SlurmCluster)
        cluster.reset()
