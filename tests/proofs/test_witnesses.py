"""Crashes that others than the job's log explain, on a real Slurm cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from relight.clients.backend.backends import BackendClient
from relight.daemon.clock import now
from relight.model.advice import Decision
from relight.model.findings import Domain
from relight.model.instants import to_iso
from relight.testing.flight_dumps import Recorders
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = pytest.mark.slurm
ServedMaker = Callable[..., Served]
NODES = ("node-01", "node-02", "node-03", "node-04")


def test_a_crash_that_the_log_cannot_explain_is_explained_by_the_kernel_log_of_a_node(
    slurm_cluster: SlurmCluster, served: ServedMaker, tmp_path: Path
) -> None:
    for node in NODES:
        (tmp_path / f"{node}.log").touch()
    with served(beside=f'kernel_logs = ["{tmp_path}/%N.log"]\n') as relight:
        job = training(slurm_cluster, "kernel", fault="segfault:node=node-02,step=12,attempts=1")
        with (tmp_path / "node-02.log").open("a") as log:
            stamp = to_iso(now()).replace("Z", "+00:00")
            log.write(
                f"{stamp} node-02 kernel: NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', "
                "name=<unknown>, GPU has fallen off the bus.\n"
            )
        relight.wait_state(job, "COMPLETED", 60)
        first, second = relight.case(job).attempts
        assert first.incident is not None
        verdict = first.incident.verdict
        assert verdict is not None
        assert verdict.domain is Domain.HARDWARE, verdict
        assert [one.node for one in verdict.suspects] == ["node-02"]
        assert "node-02" not in second.fact.nodes
        assert relight.changes(job)["requeue"] == 1
        assert "fallen off the bus" in relight.relight("why", job)


def test_metrics_that_cannot_be_had_are_said_and_hold_nothing_up(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    beside = 'telemetry = "gone"\n[telemetry.gone]\nurl = "http://127.0.0.1:9"\n'
    with served(beside=beside) as relight:
        job = training(slurm_cluster, "no-metrics", fault="ecc:node=node-02,step=12")
        relight.wait_state(job, "COMPLETED", 60)
        first, second = relight.case(job).attempts
        assert first.advice is not None
        assert first.advice.decision is Decision.RESTART_EXCLUDING_NODE
        assert "node-02" not in second.fact.nodes
        assert "could not tell anything, which is no sign of health" in relight.sentences()
        client = BackendClient(relight.url, token=relight.token)
        try:
            health = client.health()
        finally:
            client.close()
        assert health.ready
        assert "the telemetry of cluster main cannot be asked" in health.blind[0]
        assert "127.0.0.1:9" in health.blind[0]


def test_a_silent_hang_is_explained_by_the_dumps_of_the_flight_recorder(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(hang_floor='"10s"') as relight:
        folder = slurm_cluster.jobs / "recorded"
        paths = f'"flight_recorder": "{folder}/dumps/nccl_trace_rank_"'
        job = training(
            slurm_cluster,
            "recorded",
            fault="hang:node=node-02,step=60,attempts=1",
            steps=120,
            comment=f'{{"relight": {{{paths}}}}}',
        )
        relight.wait_state(job, "RUNNING")
        recorders = Recorders(world=3, start=now() * 1_000)
        for _ in range(59):
            recorders.call()
        recorders.call(ranks=[0, 2], state="started")
        (folder / "dumps").mkdir(mode=0o755)
        for rank in range(3):
            file = folder / "dumps" / f"nccl_trace_rank_{rank}"
            file.write_bytes(recorders.pickled(rank))
            file.chmod(0o644)
        relight.wait_state(job, "COMPLETED", 90)
        first, second = relight.case(job).attempts
        assert first.incident is not None
        verdict = first.incident.verdict
        assert verdict is not None
        assert [one.node for one in verdict.suspects] == ["node-02"], verdict
        assert "node-02" not in second.fact.nodes
        assert "rank 1" in relight.relight("why", job)
