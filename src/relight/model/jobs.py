"""Jobs, attempts and what a scheduler says of them."""

from __future__ import annotations

import re
from enum import StrEnum

from relight.model.instants import Instant
from relight.model.records import Record

_JOB_TEXT = re.compile(r"(?P<cluster>[^:/]+):(?P<id>[^~:/]+?)(?:~(?P<reuse>\d+))?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}")
_ATTEMPT_TEXT = re.compile(r"(?P<job>.+)-(?P<attempt>\d+)")


class JobKey(Record, frozen=True, kw_only=True, order=True):
    """What names a job: cluster, the scheduler's id and how often that id was reused before."""

    cluster: str
    scheduler_id: str
    reuse: int = 0

    def __str__(self) -> str:
        """Return ``main:123``, ``main:8_1`` or, for the second bearer of an id, ``main:123~1``."""
        return f"{self.cluster}:{self.scheduler_id}" + (f"~{self.reuse}" if self.reuse else "")

    @staticmethod
    def parse(text: str) -> JobKey:
        """Return the key that ``str(key)`` wrote.

        Raises:
            ValueError: the text has another form.

        """
        match = _JOB_TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f'"{text}" does not name a job: write cluster:id, such as main:123')
        return JobKey(
            cluster=match["cluster"], scheduler_id=match["id"], reuse=int(match["reuse"] or 0)
        )


class AttemptKey(Record, frozen=True, kw_only=True, order=True):
    """One execution of a job, numbered from 0: the scheduler's restart count."""

    job: JobKey
    attempt: int

    def __str__(self) -> str:
        """Return the job and the attempt: ``main:123-0``."""
        return f"{self.job}-{self.attempt}"

    @staticmethod
    def parse(text: str) -> AttemptKey:
        """Return the key that ``str(key)`` wrote.

        Raises:
            ValueError: the text has another form.

        """
        match = _ATTEMPT_TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f'"{text}" does not name an attempt: write cluster:id-attempt')
        return AttemptKey(job=JobKey.parse(match["job"]), attempt=int(match["attempt"]))


class JobState(StrEnum):
    """A job's state in relight's words; the scheduler's own stands beside it."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    COMPLETING = "completing"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    PREEMPTED = "preempted"
    NODE_FAIL = "node_fail"
    OUT_OF_MEMORY = "out_of_memory"
    BOOT_FAIL = "boot_fail"
    UNKNOWN = "unknown"


ENDED = frozenset(
    {
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.TIMEOUT,
        JobState.PREEMPTED,
        JobState.NODE_FAIL,
        JobState.OUT_OF_MEMORY,
        JobState.BOOT_FAIL,
    }
)
"""States in which an attempt is over."""

WAITING = frozenset({JobState.PENDING, JobState.HELD})
"""States in which an attempt has not started."""


class Holder(StrEnum):
    """Who keeps a job from starting. Told by the reason text: Slurm's JSON says the same of all."""

    NOBODY = "nobody"
    USER = "user"
    ADMIN = "admin"
    LAUNCH_FAILURE = "launch_failure"
    MAX_REQUEUE = "max_requeue"
    UNKNOWN = "unknown"


class OutputPaths(Record, frozen=True, kw_only=True):
    """Where a job writes, as patterns of its scheduler, and the folder they are relative to."""

    stdout: str = ""
    stderr: str = ""
    work_dir: str = ""
    expanded: bool = False


class JobFact(Record, frozen=True, kw_only=True):
    """All that a scheduler says of one job at one instant.

    Nodes are named as the scheduler names them, in allocation order. Instants are the
    scheduler's; None where it says none. ``exit_status`` is the code that the batch script
    exited with, ``exit_signal`` the signal that ended it. ``note`` is Slurm's AdminComment.
    ``dependencies`` is the raw dependency text; ``successors`` are the ids of other jobs that
    were seen to wait for this one, and ``expected_nodes`` how many nodes the job asks for.
    """

    cluster: str
    scheduler_id: str
    array_job: str = ""
    array_task: str = ""
    het_job: str = ""
    user: str = ""
    uid: int | None = None
    account: str = ""
    partition: str = ""
    name: str = ""
    comment: str = ""
    note: str = ""
    state: JobState = JobState.UNKNOWN
    scheduler_state: str = ""
    reason: str = ""
    restart_count: int = 0
    nodes: tuple[str, ...] = ()
    expected_nodes: int = 0
    tasks: int = 0
    tasks_per_node: int = 0
    gpus_per_node: int = 0
    submitted_at: Instant | None = None
    eligible_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    exit_status: int | None = None
    exit_signal: int | None = None
    requeue_allowed: bool = True
    is_batch: bool = True
    excluded_nodes: tuple[str, ...] = ()
    required_nodes: tuple[str, ...] = ()
    held_by: Holder = Holder.NOBODY
    output: OutputPaths = OutputPaths()
    time_limit_seconds: int | None = None
    dependencies: str = ""
    successors: tuple[str, ...] = ()


class NodeState(StrEnum):
    """A node's state in relight's words."""

    UP = "up"
    DRAINED = "drained"
    DOWN = "down"
    UNKNOWN = "unknown"


class NodeFact(Record, frozen=True, kw_only=True):
    """All that a scheduler says of one node at one instant.

    ``is_drained``: it is to take no new job, whatever it runs. ``is_silent``: its daemon does
    not answer the scheduler, which is not to say that it is down. ``is_rebooting``: a reboot
    or a loss of power was ordered and goes on. ``reason_by`` and ``reason_at`` say who gave
    the reason and when. ``booted_at`` is when its kernel started; None where nothing is said.
    ``gpus`` are configured, ``gpus_found`` those that the node itself found where the reason
    says that they are fewer, else None.
    """

    cluster: str
    name: str
    state: NodeState = NodeState.UNKNOWN
    scheduler_state: str = ""
    reason: str = ""
    partitions: tuple[str, ...] = ()
    is_idle: bool = False
    gpus: int = 0
    is_drained: bool = False
    is_silent: bool = False
    is_rebooting: bool = False
    reason_by: str = ""
    reason_at: Instant | None = None
    booted_at: Instant | None = None
    gpus_found: int | None = None


class Allocation(Record, frozen=True, kw_only=True):
    """The nodes of one attempt in order, and how tasks lie on them.

    ``tasks_per_node`` 0 means that it is not known; then a task names no node.
    ``ranks_are_tasks`` says that each rank is a task of its own, so that a rank names a node
    too: with one launcher a node (torchrun) it does not.
    """

    nodes: tuple[str, ...] = ()
    tasks_per_node: int = 0
    ranks_are_tasks: bool = False

    def node_of_task(self, task: int) -> str | None:
        """Return the node of a task under Slurm's block distribution, its default.

        Source: srun's manual page, ``--distribution``: block places consecutive tasks on
        one node before the next.
        """
        if self.tasks_per_node <= 0 or not 0 <= task < self.tasks_per_node * len(self.nodes):
            return None
        return self.nodes[task // self.tasks_per_node]

    def member(self, host: str) -> str | None:
        """Return the allocation's own name for ``host``, None when it is not one of its nodes.

        A short name that several nodes bear names none of them, so that none is blamed for
        another. An address has no short name.
        """
        if host in self.nodes:
            return host
        if not host or _is_address(host):
            return None
        short = host.partition(".")[0]
        alike = [
            node for node in self.nodes if node.partition(".")[0] == short and not _is_address(node)
        ]
        return alike[0] if len(alike) == 1 else None


def _is_address(host: str) -> bool:
    """Tell whether ``host`` is an IPv4 or IPv6 address: what stands before its dot is no name."""
    return _ADDRESS.fullmatch(host) is not None
