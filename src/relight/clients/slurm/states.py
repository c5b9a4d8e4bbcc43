"""Slurm's words for the state of jobs and nodes, in relight's words.

Source: squeue's manual page, "JOB STATE CODES", and sinfo's, "NODE STATE CODES".
"""

from __future__ import annotations

from collections.abc import Iterable

from relight.model.jobs import Holder, JobState, NodeState

_FIRST = {
    "COMPLETING": JobState.COMPLETING,
    "STAGE_OUT": JobState.COMPLETING,
    "REVOKED": JobState.UNKNOWN,
    "REQUEUE_HOLD": JobState.HELD,
    "SPECIAL_EXIT": JobState.HELD,
    "RESV_DEL_HOLD": JobState.HELD,
}
"""Flags that say more than the base state beside them, in order."""

_BASE = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "COMPLETED": JobState.COMPLETED,
    "CANCELLED": JobState.CANCELLED,
    "FAILED": JobState.FAILED,
    "TIMEOUT": JobState.TIMEOUT,
    "DEADLINE": JobState.TIMEOUT,
    "PREEMPTED": JobState.PREEMPTED,
    "NODE_FAIL": JobState.NODE_FAIL,
    "OUT_OF_MEMORY": JobState.OUT_OF_MEMORY,
    "BOOT_FAIL": JobState.BOOT_FAIL,
    "LAUNCH_FAILED": JobState.BOOT_FAIL,
    "RECONFIG_FAIL": JobState.BOOT_FAIL,
    "STOPPED": JobState.SUSPENDED,
    "CONFIGURING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "UPDATE_DB": JobState.RUNNING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
}
"""Base states, then flags that stand alone only where an old release prints nothing else."""

_HOLDERS = {
    "jobhelduser": Holder.USER,
    "jobheldadmin": Holder.ADMIN,
    "launch failed requeued held": Holder.LAUNCH_FAILURE,
    "jobholdmaxrequeue": Holder.MAX_REQUEUE,
}

_NODE_DOWN = frozenset({"down"})
"""Only this ends what runs there; a node that is called failing goes on with its jobs."""
_NODE_KEPT_BACK = frozenset(
    {
        "drain",
        "drained",
        "draining",
        "maintenance",
        "maint",
        "fail",
        "failing",
        "error",
        "inval",
        "invalid_reg",
    }
)
_NODE_NO_ANSWER = frozenset({"not_responding", "no_respond"})
_NODE_SILENT = _NODE_NO_ANSWER | {"unknown"}
_NODE_REBOOTS = frozenset(
    {"reboot_issued", "powering_down", "power_down", "powered_down", "powering_up", "power_up"}
)
"""A reboot that is only requested waits until the node is idle."""
_NODE_UP = frozenset({"idle", "mixed", "allocated", "planned"})
_NODE_NOT_FREE = frozenset({"completing", "reserved"})


def job_state(words: Iterable[str], *, is_held: bool) -> JobState:
    """Return the state that Slurm's words name; unknown when relight knows none of them.

    ``is_held``: Slurm keeps it from starting (priority 0), which makes a pending job held.
    """
    said = frozenset(words)
    for word, state in _FIRST.items():
        if word in said:
            return state
    for word, state in _BASE.items():
        if word in said:
            return JobState.HELD if state is JobState.PENDING and is_held else state
    return JobState.UNKNOWN


def holder(reason: str) -> Holder:
    """Return who holds a held job, by the reason text: the code is the same for all of them.

    A hold by ``requeuehold`` reads as the user's.
    """
    return _HOLDERS.get(reason.replace("_", " ").strip().lower(), Holder.UNKNOWN)


def node_state(words: Iterable[str]) -> NodeState:
    """Return the state of a node from Slurm's words in small letters, flags included.

    Down or drained wins over everything; a node that does not respond is unknown (law 1).
    """
    said = frozenset(words)
    if said & _NODE_DOWN:
        return NodeState.DOWN
    if said & _NODE_KEPT_BACK:
        return NodeState.DRAINED
    if said & _NODE_SILENT or not said & _NODE_UP:
        return NodeState.UNKNOWN
    return NodeState.UP


def is_node_idle(words: Iterable[str]) -> bool:
    """Return whether a node is up, runs nothing and is kept for nobody."""
    said = frozenset(words)
    return node_state(said) is NodeState.UP and "idle" in said and not said & _NODE_NOT_FREE


def is_node_drained(words: Iterable[str]) -> bool:
    """Return whether a node takes no new job, also beside a state that says more."""
    return not _NODE_KEPT_BACK.isdisjoint(words)


def is_node_silent(words: Iterable[str]) -> bool:
    """Return whether the node's daemon does not answer the controller."""
    return not _NODE_NO_ANSWER.isdisjoint(words)


def is_node_rebooting(words: Iterable[str]) -> bool:
    """Return whether a node is being started again, or its power changes."""
    return not _NODE_REBOOTS.isdisjoint(words)
