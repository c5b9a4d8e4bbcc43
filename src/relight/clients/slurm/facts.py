"""Raw records turned into facts."""

from __future__ import annotations

import re

from relight.clients.slurm.raw import Number, RawExit, RawJob, RawNode, small, whole
from relight.clients.slurm.states import (
    holder,
    is_node_drained,
    is_node_idle,
    is_node_rebooting,
    is_node_silent,
    job_state,
    node_state,
)
from relight.model.hostlists import expand
from relight.model.instants import Instant, from_unix
from relight.model.jobs import (
    ENDED,
    WAITING,
    Holder,
    JobFact,
    JobState,
    NodeFact,
    OutputPaths,
)

_GPU_ASKED = re.compile(
    r"(?:^|,)(?:gres[:/])?gpu(?:[:/=][A-Za-z][\w.-]*)?(?:[:=](\d{1,6}))?(?=[,(]|$)"
)
_GPUS_FEWER = re.compile(r"gres/gpu count (?:reported lower than configured|too low) \((\d{1,4}) <")
"""slurmctld's node_mgr.c and gres.c: a node that registers with fewer GPUs is drained."""
_LONGEST_REASON = 4096
_LAST_TIME = 32_503_680_000
"""The year 3000 in seconds since 1970: what lies beyond is no time."""
_NO_TASK = "4294967294"
_NO_LIMIT = 365 * 24 * 60
"""The limit in minutes that Slurm writes into a job without one when it starts."""

_NOT_SAID = frozenset({"", "None", "(null)", "n/a", "N/A"})


def job_fact(cluster: str, raw: RawJob, scheduler_id: str = "") -> JobFact:
    """Return the fact of one record; ``scheduler_id`` names a task of a whole waiting array.

    Raises:
        ValueError: a host list or a number in it makes no sense.

    """
    words = _words(raw.job_state)
    reason = _said(raw.state_description) or _said(raw.state_reason)
    state = job_state(words, is_held=raw.hold or whole(raw.priority) == 0)
    array = whole(raw.array_job_id)
    het = whole(raw.het_job_id)
    name = scheduler_id or raw.id
    nodes = expand(raw.nodes or "")
    status, signal = _exit(raw.exit_code, state)
    has_begun = state not in WAITING
    return JobFact(
        cluster=cluster,
        scheduler_id=name,
        array_job=str(array) if array else "",
        array_task=name.partition("_")[2] if array else "",
        het_job=str(het) if het else "",
        user=raw.user_name or "",
        uid=whole(raw.user_id),
        account=raw.account or "",
        partition=raw.partition or "",
        name=raw.name or "",
        comment=raw.comment or "",
        note=raw.admin_comment or "",
        state=state,
        scheduler_state=",".join(words),
        reason=reason,
        restart_count=whole(raw.restart_cnt) or 0,
        nodes=nodes,
        expected_nodes=whole(raw.node_count) or 0,
        tasks=whole(raw.tasks) or 0,
        tasks_per_node=_tasks_per_node(raw),
        gpus_per_node=_gpus_per_node(raw),
        submitted_at=_instant(raw.submit_time),
        eligible_at=_instant(raw.eligible_time),
        started_at=_instant(raw.start_time) if has_begun else None,
        ended_at=_instant(raw.end_time) if state in ENDED else None,
        exit_status=status,
        exit_signal=signal,
        requeue_allowed=bool(raw.requeue),
        is_batch=bool(raw.batch_flag),
        excluded_nodes=expand(raw.excluded_nodes or ""),
        required_nodes=expand(raw.required_nodes or ""),
        held_by=holder(reason) if state is JobState.HELD else Holder.NOBODY,
        output=_output(raw, name if array else ""),
        time_limit_seconds=_minutes(raw.time_limit),
        dependencies=_said(raw.dependency),
    )


def node_fact(cluster: str, raw: RawNode) -> NodeFact:
    """Return the fact of one node.

    A node that a person has just resumed is called not responding until it registers again:
    Slurm forgets when it was started then, which tells it from one that fell silent (seen on
    22.05).
    """
    words = [word.lower() for word in (*_words(raw.state), *raw.state_flags)]
    reason = _said(raw.reason)
    booted_at = _instant(raw.boot_time)
    return NodeFact(
        cluster=cluster,
        name=raw.name,
        state=node_state(words),
        scheduler_state=",".join(word.upper() for word in words),
        reason=reason,
        partitions=tuple(raw.partitions or ()),
        is_idle=is_node_idle(words),
        gpus=_gpus(raw.gres),
        is_drained=is_node_drained(words),
        is_silent=booted_at is not None and is_node_silent(words),
        is_rebooting=is_node_rebooting(words),
        reason_by=_said(raw.reason_set_by_user) if reason else "",
        reason_at=_instant(raw.reason_changed_at) if reason else None,
        booted_at=booted_at,
        gpus_found=_gpus_found(reason),
    )


def _gpus_found(reason: str) -> int | None:
    match = _GPUS_FEWER.search(reason[:_LONGEST_REASON])
    return int(match[1]) if match else None


def _words(state: str | list[str]) -> list[str]:
    return [state] if isinstance(state, str) else state


def _said(text: str | None) -> str:
    return "" if text is None or text in _NOT_SAID else text


def _instant(number: Number) -> Instant | None:
    unix = whole(number)
    return from_unix(unix) if unix and 0 < unix < _LAST_TIME else None


def _minutes(number: Number) -> int | None:
    minutes = whole(number)
    return None if minutes is None or minutes >= _NO_LIMIT else minutes * 60


def _exit(code: int | RawExit | None, state: JobState) -> tuple[int | None, int | None]:
    """Return exit status and signal; a job that a signal ended has no status.

    While COMPLETING a 0 may only mean that nothing is known yet.
    """
    if isinstance(code, RawExit):
        status = small(code.return_code)
        raised = code.signal
        signal = None if raised is None else small(raised.id) or small(raised.signal_id)
    else:
        wait = whole(code)
        status = None if wait is None else wait >> 8 & 0xFF
        signal = None if wait is None else wait & 0x7F
    if state is JobState.COMPLETING:
        return (None, signal) if signal else (status or None, None)
    if state not in ENDED:
        return None, None
    return (None, signal) if signal else (status, None)


def _tasks_per_node(raw: RawJob) -> int:
    """Return how many tasks each node has, 0 when the nodes may differ."""
    if said := small(raw.tasks_per_node):
        return said
    tasks, nodes = whole(raw.tasks) or 0, whole(raw.node_count) or 0
    return tasks // nodes if nodes and tasks % nodes == 0 else 0


def _gpus_per_node(raw: RawJob) -> int:
    """Return the GPUs asked for on each node, by whichever way they were asked for."""
    if per_node := _gpus(raw.tres_per_node):
        return per_node
    if per_task := _gpus(raw.tres_per_task):
        return per_task * _tasks_per_node(raw)
    nodes = whole(raw.node_count) or 0
    all_nodes = _gpus(raw.tres_per_job) or _gpus(raw.tres_alloc_str) or _gpus(raw.tres_req_str)
    return all_nodes // nodes if nodes and all_nodes % nodes == 0 else 0


def _gpus(tres: str | None) -> int:
    """Return how many GPUs a text such as ``gres:gpu:a100:4`` or ``cpu=2,gres/gpu=4`` names.

    Where the total stands beside the kinds (``gres/gpu=4,gres/gpu:a100=4``) it is not added.
    """
    text = (tres or "")[:4096]
    counts = [
        (match.group().lstrip(",").partition("gpu")[2], int(match[1] or 1))
        for match in _GPU_ASKED.finditer(text)
    ]
    total = [count for rest, count in counts if rest.startswith("=")]
    return total[0] if total else sum(count for _, count in counts)


def _output(raw: RawJob, array_task: str) -> OutputPaths:
    """Return where the job writes; ``array_task`` is ``8_1`` for such, else empty.

    22.05 gives the pattern, and nothing for sbatch's default; 24.11 the expanded path, twice
    when the streams are merged, with NO_VAL for the task of an array that waits as a whole;
    26.05 both. A percent sign tells a pattern.
    """
    stdout = raw.stdout_expanded or raw.standard_output or ""
    stderr = raw.stderr_expanded or ("" if raw.stdout_expanded else raw.standard_error or "")
    if not stdout and raw.batch_flag:
        stdout = "slurm-%A_%a.out" if array_task else "slurm-%j.out"
    task = array_task.partition("_")[2]
    if task and whole(raw.array_task_id) is None:
        stdout, stderr = (path.replace(_NO_TASK, task) for path in (stdout, stderr))
    return OutputPaths(
        stdout=stdout,
        stderr="" if stderr == stdout else stderr,
        work_dir=raw.current_working_directory or "",
        expanded=bool(raw.stdout_expanded) or "%" not in stdout + stderr,
    )
