"""The one typed record for all configuration."""

from __future__ import annotations

import msgspec

from relight.model.advice import Mode
from relight.model.evidence import Witness
from relight.model.instants import Span, seconds
from relight.model.records import Record
from relight.policy.policies import OptIn, Policy, PolicyBook

_RANK = {Mode.MONITOR: 0, Mode.APPROVE: 1, Mode.ACT: 2}


class Cluster(Record, frozen=True, kw_only=True):
    """One scheduler and how it is reached.

    ``mode`` is the most that any policy may do here; ``act`` caps nothing. ``partitions``
    are those in which anything may be changed, empty for all. ``log_roots`` are the folders
    below which job output may be read. ``slurm_conf`` and ``bin_dir``, empty for the
    machine's own, say which configuration Slurm's commands use and where they lie.
    ``telemetry`` and ``attribution`` name what is asked beside, ``kernel_logs`` the files of
    each node's kernel log with ``%N`` for the node's name.
    """

    name: str
    kind: str = "slurm"
    reach: str = "commands"
    logs: str = "files"
    slurm_conf: str = ""
    bin_dir: str = ""
    poll: Span = seconds(1)
    mode: Mode = Mode.ACT
    log_roots: tuple[str, ...] = ("/",)
    partitions: tuple[str, ...] = ()
    telemetry: str = ""
    kernel_logs: tuple[str, ...] = ()
    attribution: tuple[str, ...] = ()

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Return who can be asked about this cluster's jobs beside their logs.

        A flight recorder's files are the jobs' own, so there may be some on every cluster.
        """
        asked = [Witness.FLIGHT_RECORDER]
        if self.telemetry:
            asked.append(Witness.TELEMETRY)
        if self.kernel_logs:
            asked.append(Witness.KERNEL_LOG)
        return tuple(asked)


class Telemetry(Record, frozen=True, kw_only=True):
    """A metrics server with the API of Prometheus.

    ``node_labels`` are the labels that may name a node, the first that a series has counts.
    ``timeout`` bounds one query.
    """

    name: str
    url: str
    node_labels: tuple[str, ...] = ("Hostname", "hostname", "node", "nodename", "instance")
    tenant: str = ""
    token_file: str = ""
    timeout: Span = seconds(5)


class Attribution(Record, frozen=True, kw_only=True):
    """An outside attribution service; ``kind`` is the protocol that it speaks."""

    name: str
    url: str
    kind: str = "relight"
    token_file: str = ""
    timeout: Span = seconds(240)


class Store(Record, frozen=True, kw_only=True):
    """Where relight keeps what it knows.

    ``path`` is the folder for everything that is written on this machine; ``url`` names the
    database, empty for a SQLite file in that folder.
    """

    path: str = "relight-state"
    url: str = ""

    @property
    def database(self) -> str:
        """Return the database as a URL."""
        return self.url or f"sqlite:///{self.path}/relight.db"


class Serve(Record, frozen=True, kw_only=True):
    """Where the API listens; port 0 lets the system pick one."""

    host: str = "127.0.0.1"
    port: int = 8474


class RuleSets(Record, frozen=True, kw_only=True):
    """Folders of rules beside the packaged ones."""

    directories: tuple[str, ...] = ()


class Settings(Record, frozen=True, kw_only=True):
    """All configuration of one process; ``origin`` is the file that it was read from."""

    clusters: tuple[Cluster, ...] = ()
    policies: tuple[Policy, ...] = (Policy(name="default"),)
    opt_ins: tuple[OptIn, ...] = ()
    store: Store = Store()
    serve: Serve = Serve()
    rules: RuleSets = RuleSets()
    telemetry: tuple[Telemetry, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    origin: str = ""

    def cluster(self, name: str) -> Cluster | None:
        """Return the cluster of that name, None when there is none."""
        return next((cluster for cluster in self.clusters if cluster.name == name), None)

    def book(self, cluster: str | None = None) -> PolicyBook:
        """Return policies and opt-ins, no policy going further than the cluster's mode.

        Without a cluster the strictest mode of all clusters holds, so that a book shared by
        several can do no more than any of them allows.
        """
        caps = [one.mode for one in self.clusters if cluster in (None, one.name)]
        uncapped = Mode.ACT if cluster is None else Mode.MONITOR  # a cluster that is not known
        cap = min(caps, key=_RANK.__getitem__, default=uncapped)
        asked = self.cluster(cluster) if cluster is not None else None
        return PolicyBook(
            policies=tuple(_capped(policy, cap) for policy in self.policies),
            opt_ins=tuple(one for one in self.opt_ins if cluster in (None, one.cluster)),
            witnesses=asked.witnesses if asked is not None else (),
            is_attributed=asked is not None and bool(asked.attribution),
        )

    def can_change(self, cluster: str) -> bool:
        """Return whether anything on this cluster may be changed, with or without a person's yes.

        Any policy counts, opted in or not, because a job's comment can pick it. Where this
        is false no object that changes the cluster is made (law 3).
        """
        if self.cluster(cluster) is None:
            return False
        policies = self.book(cluster).policies
        return any(policy.mode is not Mode.MONITOR and policy.may for policy in policies)


def _capped(policy: Policy, cap: Mode) -> Policy:
    return msgspec.structs.replace(policy, mode=min(policy.mode, cap, key=_RANK.__getitem__))
