"""What can be submitted to the local scheduler, and where its output goes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from relight.model.instants import Span, seconds
from relight.model.records import Record

KILL_GRACE = seconds(5)
"""From SIGTERM to SIGKILL. Slurm's KillWait is 30 s by default; here a person waits for it."""


class SubmissionError(ValueError):
    """A job that could never run here; the message says why."""


class LocalJob(Record, frozen=True, kw_only=True):
    """A command to run ``nodes`` times ``tasks_per_node`` times, as ``srun`` would.

    ``stdout`` and ``stderr`` are patterns: ``%j`` the job id, ``%t`` the task, ``%n`` the
    node's place in the allocation, ``%N`` the node, ``%x`` the job's name, ``%%`` a percent
    sign; they are relative to ``work_dir``, an empty ``stderr`` joins ``stdout``. A pattern
    with ``%t`` (or a job of one task) is written by the tasks themselves, so that the output
    survives the scheduler; any other is shared by all tasks, each line labelled with its task
    as ``srun -l`` does. Attempts append. ``kill_on_bad_exit`` ends the other tasks when one
    fails. ``inherit_stdin`` lets the tasks read the scheduler's standard input.
    """

    name: str
    command: tuple[str, ...]
    nodes: int = 1
    tasks_per_node: int = 1
    stdout: str = "job-%j-%t.out"
    stderr: str = ""
    work_dir: str = "."
    comment: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    kill_on_bad_exit: bool = True
    kill_grace: Span = KILL_GRACE
    inherit_stdin: bool = False
    requeue_allowed: bool = True
    exclude: tuple[str, ...] = ()
    partition: str = "local"
    gpus_per_node: int = 0

    @property
    def tasks(self) -> int:
        """Return how many tasks it has in all."""
        return self.nodes * self.tasks_per_node


def check(job: LocalJob, node_count: int) -> None:
    """Raise SubmissionError when a job could not run on a cluster of ``node_count`` nodes."""
    if not job.command or not job.command[0]:
        raise SubmissionError(f'job "{job.name}" has no command: name a program to run')
    texts = (*job.command, *job.env, *job.env.values(), job.stdout, job.stderr, job.work_dir)
    if not all(_is_plain(text) for text in texts):
        raise SubmissionError(f'job "{job.name}" holds a character that no process can be given')
    if any("=" in name or not name for name in job.env):
        raise SubmissionError(f'job "{job.name}" names an environment variable with "="')
    if not 1 <= job.nodes <= node_count or job.tasks_per_node < 1:
        raise SubmissionError(
            f'job "{job.name}" asks for {job.nodes} nodes with {job.tasks_per_node} tasks each: '
            f"Requested node configuration is not available, there are {node_count} nodes"
        )


def _is_plain(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def output_path(  # noqa: PLR0913 - one argument for each letter of a pattern
    pattern: str, *, work_dir: str, job_id: str, name: str, task: int, place: int, node: str
) -> Path:
    """Return the file that a pattern names for one task; a slash in a value becomes ``_``."""
    values = {"j": job_id, "A": job_id, "t": str(task), "n": str(place), "N": node, "x": name}
    parts: list[str] = []
    rest = pattern
    while rest:
        plain, percent, rest = rest.partition("%")
        parts.append(plain)
        letter, rest = rest[:1], rest[1:]
        if percent and letter in values:
            parts.append(values[letter].replace("/", "_"))
        elif percent:
            parts.append("%" if letter == "%" else percent + letter)
    return Path(work_dir) / "".join(parts)


def is_shared(pattern: str, tasks: int) -> bool:
    """Return whether several tasks would write to the file that the pattern names."""
    return tasks > 1 and "%t" not in pattern.replace("%%", "")
