"""Jobs that live and do not do well, on a real Slurm cluster with a real Prometheus beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relight.model.advice import Decision
from relight.model.findings import Domain, Kind
from relight.testing.ranks import Slowed, stop
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(420)]
ServedMaker = Callable[..., Served]
BRISK = {"hang_floor": '"10s"', "slow_for": '"30s"'}


def telemetry(url: str) -> str:
    """Return the lines that name a metrics server for the cluster."""
    return f'telemetry = "real"\n[telemetry.real]\nurl = "{url}"\n'


def steps(relight: Served, job: str, attempt: int = 0) -> int:
    """Return the best step that relight knows of."""
    case = relight.find_case(job)
    known = case.attempt(attempt) if case is not None else None
    return (known.progress.best_step or 0) if known is not None else 0


def test_a_job_whose_one_rank_stops_is_found_hung_and_restarted_without_its_node(
    slurm_cluster: SlurmCluster, served: ServedMaker, metrics: str
) -> None:
    with served(beside=telemetry(metrics), **BRISK) as relight:
        job = training(
            slurm_cluster, "stopped", steps=400, train="--step-seconds 0.2 --checkpoint-every 20"
        )
        relight.wait_for("steps", lambda: steps(relight, job) > 40, 60)
        slurm_cluster.run("bash", "-c", "sleep 8")  # the metrics of a job that is well
        stop(slurm_cluster.jobs, job, "node-02")
        relight.wait_for("the requeue", lambda: relight.changes(job)["requeue"] == 1, 90)
        relight.wait_for("steps of the next attempt", lambda: steps(relight, job, 1) > 60, 60)
        first, second = relight.case(job).attempts
        assert first.incident is not None
        verdict = first.incident.verdict
        assert verdict is not None
        assert (verdict.kind, verdict.domain) == (Kind.HANG, Domain.HARDWARE), verdict
        assert [one.node for one in verdict.suspects] == ["node-02"]
        assert "node-02" not in second.fact.nodes
        assert second.progress.resumed_from
        story = relight.relight("why", job)
        assert "node-02" in story
        assert "all as stored" in relight.relight("replay")
        slurm_cluster.run("scancel", job)
        relight.wait_state(job, "CANCELLED")


def test_a_healthy_job_with_a_pause_of_90_seconds_for_a_checkpoint_is_left_alone(
    slurm_cluster: SlurmCluster, served: ServedMaker
) -> None:
    with served(**BRISK) as relight:
        job = training(
            slurm_cluster,
            "long-checkpoint",
            steps=1000,
            train="--step-seconds 0.2 --checkpoint-every 50 --checkpoint-seconds 90",
        )
        output = slurm_cluster.jobs / "long-checkpoint" / f"slurm-{job}.out"
        relight.wait_for(
            "steps after the pause",
            lambda: output.exists() and f"iteration {70:8d}/" in output.read_text(),
            240,
        )
        case = relight.case(job)
        assert len(case.attempts) == 1
        assert case.attempts[0].incident is None, relight.sentences()
        assert relight.changes(job)["requeue"] == 0
        slurm_cluster.run("scancel", job)
        relight.wait_state(job, "CANCELLED")


def test_a_job_that_one_node_slows_is_reported_with_the_node_and_left_alone(
    slurm_cluster: SlurmCluster, served: ServedMaker, metrics: str
) -> None:
    with served(beside=telemetry(metrics), **BRISK) as relight:
        job = training(
            slurm_cluster, "slowed", steps=2000, train="--step-seconds 0.2 --checkpoint-every 200"
        )
        relight.wait_for("steps", lambda: steps(relight, job) > 200, 120)
        with Slowed(slurm_cluster.jobs, job, "node-03", share=0.5):
            advice = relight.wait_for_advice(job, seconds=150)
        verdict = relight.case(job).attempts[0].incident
        assert verdict is not None
        assert verdict.verdict is not None
        assert verdict.verdict.kind is Kind.SLOW
        assert [one.node for one in verdict.verdict.suspects] == ["node-03"], verdict.verdict
        assert advice.decision is Decision.NONE
        assert advice.reason.code == "slowdown-reported"
        assert "lost so far" in advice.reason.sentence
        assert "node-03" in advice.reason.sentence
        assert relight.changes(job)["requeue"] == 0
        slurm_cluster.run("scancel", job)
        relight.wait_state(job, "CANCELLED")
