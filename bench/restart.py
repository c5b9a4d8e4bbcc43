"""From the end of a crashed attempt to the next one running, on a real and idle Slurm."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench.slurm_logs import Restarted, restarted
from bench.tables import Measured, Result, Row, cheaper
from relight.model.instants import Instant, in_seconds
from relight.model.records import Record
from relight.testing.served import Served, training
from relight.testing.slurm import SlurmCluster, unavailable

STOCK = {"SchedulerParameters": "bf_interval=30", "KillWait": "30"}
"""Slurm's own defaults in place of the brisk ones of the test cluster."""

EAGER = {**STOCK, "SchedulerParameters": "bf_interval=30,batch_sched_delay=0"}
"""Slurm told not to gather scheduling work for three seconds."""

_FIRST_STEP = 90
"""The crash comes after 4 s or later, so that Slurm's own delay has no rest of the job's start."""

_PLAIN_SECONDS = 180
_JOB_SECONDS = 90
_SETTLE = "3s"


class Crash(Record, frozen=True, kw_only=True):
    """Seconds of each stretch of one restart, in their order, and from end to running."""

    seen: float
    decided: float
    requeued: float
    updated: float
    started: float

    @property
    def whole(self) -> float:
        """Return the seconds from the attempt's end to the next one's start."""
        return self.seen + self.decided + self.requeued + self.updated + self.started


_STRETCHES = (
    ("the end is seen", "seen"),
    ("the logs are read to their end and the advice is given", "decided"),
    ("slurmctld accepts the requeue", "requeued"),
    ("the nodes are free and slurmctld accepts the update", "updated"),
    ("Slurm starts the job", "started"),
)


class CannotMeasure(Exception):  # noqa: N818 - named by what it says
    """A run did not come to its end; the message holds what was missing."""


def measure(*, runs: int = 5, plain: bool = True) -> Result:
    """Return how long restarts take, with relight and by Slurm alone.

    Raises:
        CannotMeasure: a restart did not come about.

    """
    if (why := unavailable()) is not None:
        return Result(part="restart", rows=(), facts=(f"Not measured: {why}.",))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relight-bench-")))
        folder.chmod(0o755)
        alone = _Alone(stack.enter_context(SlurmCluster.start(folder / "a", settings=STOCK)))
        if plain:
            alone.requeue()
        stock = crashes(folder / "stock", STOCK, runs, poll="1s")
        living = _living(folder / "living")
        quick = crashes(folder / "quick", STOCK, runs, poll="200ms")
        eager = crashes(folder / "eager", EAGER, runs, poll="1s")
        both = crashes(folder / "both", EAGER, runs, poll="200ms")
        theirs = alone.seconds() if plain else None
    peer = None if theirs is None else Measured(of="scontrol requeue", value=theirs, unit="s")
    rows = (
        _row("restart, Slurm's defaults", stock, peer),
        _row("restart, relight polls each 200 ms", quick, peer),
        _row("restart, batch_sched_delay=0", eager, peer),
        _row("restart, both", both, peer),
        cheaper(
            "restart of an attempt that lives but completes no step",
            Measured(of="from the end of the settle time, 1 run", value=living, unit="s"),
            peer,
        ),
        *_split("Slurm's defaults", stock),
        *_split("both", both),
    )
    return Result(part="restart", rows=rows, facts=_facts(runs))


def _row(what: str, found: Sequence[Crash], peer: Measured | None) -> Row:
    wholes = sorted(crash.whole for crash in found)
    of = f"median of {len(wholes)}, {wholes[0]:.2f} to {wholes[-1]:.2f}"
    return cheaper(what, Measured(of=of, value=median(wholes), unit="s"), peer)


def _split(setting: str, found: Sequence[Crash]) -> Iterator[Row]:
    for what, name in _STRETCHES:
        values = sorted(float(getattr(crash, name)) for crash in found)
        of = f"median, {values[0]:.2f} to {values[-1]:.2f}"
        yield Row(
            what=f"{setting}: until {what}", ours=Measured(of=of, value=median(values), unit="s")
        )


def _facts(runs: int) -> tuple[str, ...]:
    return (
        (
            f"{runs} crashes a setting (an ECC error on one of three nodes of four, nothing else "
            "in the queue, relight in act mode), from slurmctld's own stamps: _job_complete to "
            "Allocate or Started."
        ),
        (
            "Slurm's defaults here: bf_interval=30, batch_sched_delay=3, KillWait=30; relight's: "
            "poll 1 s."
        ),
        (
            f"The living attempt: settle time {_SETTLE} (the default is 60 s), and a process that "
            "ends at SIGTERM; one that ignores it adds KillWait."
        ),
        (
            "Slurm alone: scontrol requeue right after the failure, one run; Slurm lets every "
            "requeued job wait for two minutes."
        ),
    )


class _Alone:
    """The same crash under Slurm alone, requeued by hand; it waits while others are measured."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self._cluster = cluster
        self._job = ""

    def requeue(self) -> None:
        self._job = training(self._cluster, "alone", fault="ecc:node=node-02,step=12,attempts=1")
        self._cluster.wait_state(self._job, "FAILED", _JOB_SECONDS)
        self._cluster.run("scontrol", "requeue", self._job)

    def seconds(self) -> float:
        self._cluster.wait_state(self._job, ("RUNNING", "COMPLETED"), _PLAIN_SECONDS)
        turns = restarted(self._cluster.log(), self._job)
        return _span(turns.ended, turns.started)


def crashes(folder: Path, settings: Mapping[str, str], runs: int, poll: str) -> list[Crash]:
    """Let ``runs`` jobs crash, one after the other, on a new cluster with relight beside it."""
    with _serving(folder, settings, poll) as relight:
        return [_crash(relight, number) for number in range(runs)]


def _crash(relight: Served, number: int) -> Crash:
    """Let one job crash and come back; the step differs, so that no run has another's rhythm."""
    cluster = relight.cluster
    step = _FIRST_STEP + 7 * number
    job = training(
        cluster, f"crash-{number}", fault=f"ecc:node=node-02,step={step}", steps=step + 10
    )
    cluster.wait_state(job, "COMPLETED", _JOB_SECONDS)
    relight.wait_for("the end", lambda: len(relight.case(job).attempts) > 1)
    turns = restarted(cluster.log(), job)
    failed = relight.case(job).attempts[0]
    advised = None if failed.incident is None else failed.incident.times.advised
    return Crash(
        seen=_span(turns.ended, failed.ended_seen_at),
        decided=_span(failed.ended_seen_at, advised),
        requeued=_span(advised, turns.requeued),
        updated=_span(turns.requeued, turns.updated),
        started=_span(turns.updated, turns.started),
    )


def _living(folder: Path) -> float:
    """Return the seconds from the end of the settle time to the next attempt's start."""
    with _serving(folder, STOCK, "1s", settle=f'"{_SETTLE}"') as relight:
        cluster = relight.cluster
        job = cluster.submit(
            'if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then exit 0; fi\n'
            "echo ' [2026-01-31 12:00:00.123456] iteration        7/  50 | consumed samples: 1 | "
            "elapsed time per iteration (ms): 50.0 | lm loss: 1.0E+00 |'\n"
            "echo '[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered'\n"
            "exec sleep 600",
            options=('--comment={"relight": {}}', "--open-mode=append"),
        )
        cluster.wait_state(job, "COMPLETED", _JOB_SECONDS)
        incident = relight.case(job).attempts[0].incident
        settled = None if incident is None else incident.times.settled
        turns: Restarted = restarted(cluster.log(), job)
        return _span(settled, turns.started)


@contextmanager
def _serving(
    folder: Path, settings: Mapping[str, str], poll: str, **policy: str
) -> Iterator[Served]:
    """Run a cluster with these settings and relight beside it."""
    with SlurmCluster.start(folder, settings=settings) as cluster:
        place = folder / "relight"
        place.mkdir(mode=0o700)
        relight = Served(cluster, place, **policy)
        try:
            yield relight.start(RELIGHT_CLUSTER__MAIN__POLL=poll)
        finally:
            relight.kill()


def _span(start: Instant | None, end: Instant | None) -> float:
    if start is None or end is None:
        raise CannotMeasure(f"a restart is incomplete: from {start} to {end}; run it again")
    return in_seconds(end - start)
