"""What one cluster is made of at run time: eyes, hands where something may act, limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relight.clients.schedulers import Eyes, Hands
from relight.clients.slurm.commands import Commands
from relight.clients.slurm.eyes import SlurmEyes
from relight.clients.slurm.hands import SlurmHands
from relight.controller.cycles import Allowance
from relight.model.advice import Mode
from relight.model.instants import Span, in_seconds, seconds
from relight.policy.policies import PolicyBook
from relight.settings.problems import Problem, SettingsError
from relight.settings.records import Attribution, Cluster, Settings, Telemetry

_USUAL_POLL = seconds(1)


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """One cluster as the service runs it. ``hands`` None means that nothing can change it.

    ``telemetry``, ``kernel_logs`` and ``attribution`` are who can be asked beside the logs.
    """

    name: str
    eyes: Eyes
    hands: Hands | None
    book: PolicyBook
    allowance: Allowance
    log_roots: tuple[str, ...] = ("/",)
    poll: Span = _USUAL_POLL
    telemetry: Telemetry | None = None
    kernel_logs: tuple[str, ...] = ()
    attribution: tuple[Attribution, ...] = ()

    @property
    def poll_seconds(self) -> float:
        """Return how long to wait between two looks when nothing is under way."""
        return in_seconds(self.poll)


def parts_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[ClusterParts]:
    """Return the parts of every cluster in the settings.

    Raises:
        SettingsError: there is no cluster, or one of a kind that only ``relight demo`` and
            ``relight run`` have.

    """
    problems = [
        Problem(
            path=f"cluster.{cluster.name}.kind",
            what='is "local", which exists only inside relight demo and relight run',
            cure='allowed here is "slurm"',
        )
        for cluster in settings.clusters
        if cluster.kind == "local"
    ]
    if not settings.clusters:
        problems.append(
            Problem(path="cluster", what="is missing", cure="name one, such as [cluster.main]")
        )
    if problems:
        raise SettingsError(tuple(problems))
    return [_slurm(settings, cluster, environ) for cluster in settings.clusters]


def allowance_of(book: PolicyBook, partitions: tuple[str, ...] = ()) -> Allowance:
    """Return what a controller may do under ``book``: the policies that are not in monitor."""
    acting = tuple(one.name for one in book.policies if one.mode is not Mode.MONITOR)
    return Allowance(policies=acting, partitions=partitions)


def _slurm(settings: Settings, cluster: Cluster, environ: Mapping[str, str]) -> ClusterParts:
    env = dict(environ)
    if cluster.slurm_conf:
        env["SLURM_CONF"] = cluster.slurm_conf
    commands = Commands(env, bin_dir=Path(cluster.bin_dir) if cluster.bin_dir else None)
    book = settings.book(cluster.name)
    return ClusterParts(
        name=cluster.name,
        eyes=SlurmEyes(cluster.name, commands),
        hands=SlurmHands(commands) if settings.can_change(cluster.name) else None,
        book=book,
        allowance=allowance_of(book, cluster.partitions),
        log_roots=cluster.log_roots,
        poll=cluster.poll,
        telemetry=next((one for one in settings.telemetry if one.name == cluster.telemetry), None),
        kernel_logs=cluster.kernel_logs,
        attribution=tuple(one for one in settings.attribution if one.name in cluster.attribution),
    )
