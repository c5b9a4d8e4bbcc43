"""What watching costs while nothing happens: many known jobs that all wait in the queue."""

from __future__ import annotations

import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from bench.processes import Memory, children, cpu_seconds, memory
from bench.tables import Measured, Result, Row, cheaper
from relight.clients.backend.backends import BackendClient
from relight.testing.served import COMMENT, Served
from relight.testing.slurm import SlurmCluster, unavailable

_KNOWN_SECONDS = 120
_PER_MINUTE = "CPU s a minute"


class _Cost(NamedTuple):
    """Processor seconds a minute: of the watcher with all that it starts, and of slurmctld."""

    own: float
    slurmctld: float


def measure(*, jobs: int = 1000, seconds: int = 60, settling: int = 10) -> Result:
    """Return the memory and the processor time of watching ``jobs`` waiting jobs.

    Each number is taken over ``seconds``, relight's own ``settling`` seconds after it knows them.
    """
    if (why := unavailable()) is not None:
        return Result(part="idle", rows=(), facts=(f"Not measured: {why}.",))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relight-bench-")))
        folder.chmod(0o755)
        cluster = stack.enter_context(SlurmCluster.start(folder / "cluster"))
        _submit(cluster, jobs)
        slurmctld = int((cluster.folder / "slurmctld.pid").read_text())
        alone = _cost(slurmctld, seconds, lambda: 0.0, _sleep)
        naive = _cost(slurmctld, seconds, _children_seconds, lambda end: _ask(cluster, end))
        place = folder / "relight"
        place.mkdir(mode=0o700)
        relight = Served(cluster, place)
        stack.callback(relight.kill)
        relight.start(RELIGHT_CLUSTER__MAIN__POLL="1s")
        known_after = _wait_until_known(relight, jobs)
        sleep(settling)
        pid = int((place / "state" / "lock").read_text())
        ours = _cost(slurmctld, seconds, lambda: _tree_seconds(pid), _sleep)
        sizes = [memory(one) for one in (pid, *_readers(pid))]
    facts = (
        (
            f"{jobs:,} jobs of their own, opted in by comment and postponed by --begin; all known "
            f"to relight {known_after:.1f} s after it listened; each cost over {seconds} s."
        ),
        (
            f"slurmctld with nobody watching: {alone.slurmctld:.2f} {_PER_MINUTE}, taken off both "
            "sides. A watcher's number holds every command that it starts."
        ),
    )
    return Result(part="idle", rows=tuple(_rows(ours, naive, alone, sizes)), facts=facts)


def _rows(ours: _Cost, naive: _Cost, alone: _Cost, sizes: list[Memory]) -> Iterator[Row]:
    of = "squeue --json each second"
    yield cheaper(
        "watching",
        Measured(of="relight serve", value=ours.own, unit=_PER_MINUTE),
        Measured(of=of, value=naive.own, unit=_PER_MINUTE),
    )
    yield cheaper(
        "slurmctld, because of it",
        Measured(of="relight serve", value=ours.slurmctld - alone.slurmctld, unit=_PER_MINUTE),
        Measured(of=of, value=naive.slurmctld - alone.slurmctld, unit=_PER_MINUTE),
    )
    serve = sizes[0]
    rss = f"relight serve, RSS {serve.rss:.0f}"
    yield Row(what="memory", ours=Measured(of=rss, value=serve.pss, unit="MiB Pss"))
    readers = Measured(
        of=f"{len(sizes) - 1} reader processes",
        value=sum(one.pss for one in sizes[1:]),
        unit="MiB Pss",
    )
    yield Row(what="memory of what reads logs", ours=readers)


def _submit(cluster: SlurmCluster, jobs: int) -> None:
    script = cluster.folder / "scripts" / "waiting.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    for _ in range(jobs):
        cluster.submit(script, options=(f"--comment={COMMENT}", "--begin=now+12hours"))


def _wait_until_known(relight: Served, jobs: int) -> float:
    client = BackendClient(relight.url, token=relight.token)
    begun = monotonic()
    try:
        relight.wait_for(
            f"{jobs} known jobs",
            lambda: sum(1 for _ in client.jobs()) >= jobs,
            _KNOWN_SECONDS,
        )
    finally:
        client.close()
    return monotonic() - begun


def _cost(
    slurmctld: int, seconds: int, own: Callable[[], float], spend: Callable[[float], None]
) -> _Cost:
    before = own(), cpu_seconds(slurmctld)
    begun = monotonic()
    spend(begun + seconds)
    a_minute = 60 / (monotonic() - begun)
    return _Cost((own() - before[0]) * a_minute, (cpu_seconds(slurmctld) - before[1]) * a_minute)


def _sleep(end: float) -> None:
    sleep(max(end - monotonic(), 0))


def _ask(cluster: SlurmCluster, end: float) -> None:
    """Do what a watcher without a thought does: the whole JSON, each second."""
    while (begun := monotonic()) < end:
        subprocess.run(
            ["squeue", "--json"],
            env=cluster.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=30,
            check=True,
        )
        _sleep(begun + 1)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree_seconds(pid: int) -> float:
    return cpu_seconds(pid) + sum(cpu_seconds(reader) for reader in _readers(pid))


def _readers(pid: int) -> list[int]:
    """Return the processes that read logs for relight: they live on, commands do not."""
    return [
        child
        for child in children(pid)
        if b"reader.py" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
