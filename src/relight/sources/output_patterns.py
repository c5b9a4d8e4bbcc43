"""Where a job writes: Slurm's patterns of output names made into the files to read.

Source: the section "filename pattern" of the manual pages sbatch and srun, and what Slurm
22.05 was seen to create. The two differ where it matters most: **a batch script has one output
file**, whatever its pattern says. There ``%t`` and ``%n`` become 0, ``%N`` the first node, ``%s``
``batch`` and ``%J`` the plain job id; so the name tells neither rank nor node of the lines inside,
which come from every rank. Only a step (srun) writes a file for each task or node. Steps started
inside a batch script are unknown to the scheduler's listing: the owner names their files with the
``logs`` key of the job's comment, and there the same symbols are understood.

Names are never tidied: a job called ``../x`` writes where Slurm lets it, and whether that file may
be read is decided by its owner's rights when it is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from relight.model.jobs import Allocation, JobFact
from relight.model.records import Record
from relight.model.signals import FileUnseen

MOST_FILES = 2_000
"""The most files that are read for one job."""

NOT_THERE_YET = "not there yet"
"""Why a file is unseen that may still appear: it does not exist, or its name is not settled."""

_WIDEST = 10
"""Slurm pads numbers to at most ten digits."""

_NO_ARRAY_TASK = "4294967294"
"""What ``%a`` becomes outside an array: Slurm's NO_VAL, as seen in 22.05."""

_SYMBOL = re.compile(r"%(?:(?P<plain>%)|(?P<width>\d+)?(?P<letter>[A-Za-z])?)", re.ASCII)
_NUMERIC = frozenset("jJAantsb")


class LogFile(Record, frozen=True, kw_only=True):
    """One file to read; rank and node where its name tells whose lines it holds."""

    path: str
    rank: int | None = None
    node: str | None = None


class OutputFiles(Record, frozen=True, kw_only=True):
    """The files of one attempt, each path once, and the names that could not be worked out."""

    files: tuple[LogFile, ...] = ()
    unseen: tuple[FileUnseen, ...] = ()


class UnknownNameError(LookupError):
    """A pattern needs something that is not known of this job; the message is one sentence."""


def output_files(fact: JobFact, nodes: tuple[str, ...]) -> OutputFiles:
    """Return the files that the scheduler writes for the attempt that runs on ``nodes``.

    ``nodes`` are in allocation order and may be empty before the start. An empty standard error
    means that it is merged into the output; an empty output means the scheduler's default name.
    """
    found: dict[str, LogFile] = {}
    unseen: list[FileUnseen] = []
    for pattern in _patterns(fact):
        try:
            for file in _expanded(pattern, fact, nodes):
                found.setdefault(file.path, file)
        except UnknownNameError as error:
            unseen.append(FileUnseen(file=pattern, why=str(error)))
    return OutputFiles(files=tuple(found.values()), unseen=tuple(unseen))


def job_values(fact: JobFact) -> dict[str, str]:
    """Return what the symbols that are the same for all tasks stand for; unknown ones are absent.

    An array task or a part of a heterogeneous job has a job id of its own (``%j``) that its
    scheduler id (``8_1``, ``8+1``) does not tell.
    """
    task = fact.array_task if fact.array_task.isdigit() else ""
    values = {"x": fact.name, "a": task or _NO_ARRAY_TASK}
    if task:
        values["b"] = task[-1]
    own = fact.scheduler_id.removesuffix("+0")
    if own.isdigit():
        values |= {"j": own, "A": own}
    if fact.array_job.isdigit():
        values["A"] = fact.array_job
    if fact.user:
        values["u"] = fact.user
    return values


def expand(pattern: str, value: Callable[[str], str]) -> str:
    """Return ``pattern`` with its symbols replaced by ``value(letter)``, numbers padded.

    A backslash anywhere leaves every symbol alone and is itself removed. An unknown symbol stays
    as it is; with a width before it only the width's last digit stays, as Slurm does it.
    ``value`` may raise KeyError for a symbol that it does not know.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def put(match: re.Match[str]) -> str:
        width, letter = match["width"] or "", match["letter"] or ""
        if match["plain"]:
            return "%"
        try:
            text = value(letter) if letter else ""
        except KeyError:
            text = ""
        if not text:
            return (width[-1] if width else "%") + letter
        padding = min(int(width[:3]), _WIDEST) if width else 0
        return text.zfill(padding) if letter in _NUMERIC and text.isdigit() else text

    return _SYMBOL.sub(put, pattern)


def symbols(pattern: str) -> frozenset[str]:
    """Return the letters of the symbols in a pattern that will be replaced."""
    if "\\" in pattern:
        return frozenset()
    return frozenset(match["letter"] for match in _SYMBOL.finditer(pattern) if match["letter"])


def below(folder: str, name: str) -> str:
    """Return ``name`` as an absolute path, relative ones below ``folder``; nothing is tidied.

    Raises:
        UnknownNameError: the name is relative and the folder is not known.

    """
    if name.startswith("/"):
        return name
    if not folder.startswith("/"):
        raise UnknownNameError("its name is relative and the job's work folder is not known")
    return folder.rstrip("/") + "/" + name


def _patterns(fact: JobFact) -> list[str]:
    default = "slurm-%A_%a.out" if fact.array_task else "slurm-%j.out"
    output = fact.output.stdout or (default if fact.is_batch else "")
    return [pattern for pattern in (output, fact.output.stderr) if pattern]


def _expanded(pattern: str, fact: JobFact, nodes: tuple[str, ...]) -> Iterator[LogFile]:
    folder = fact.output.work_dir
    if fact.output.expanded and pattern in {fact.output.stdout, fact.output.stderr}:
        yield LogFile(path=below(folder, pattern))
        return
    used = symbols(pattern)
    values = job_values(fact)
    refuse_unknown(used, values)
    own = values.get("j", "")
    values |= {"s": "batch", "J": own} if fact.is_batch else {"s": "0", "J": f"{own}.0"}
    for writer in _writers(used, fact, nodes):
        numbers = values | {"t": str(writer.rank), "n": str(writer.node_index)}
        if nodes:
            numbers["N"] = nodes[writer.node_index].partition(".")[0]
        name = expand(pattern, numbers.__getitem__)
        yield LogFile(path=below(folder, name), rank=writer.only_rank, node=writer.only_node)


def refuse_unknown(used: frozenset[str], values: dict[str, str]) -> None:
    """Refuse a pattern whose symbols name what ``job_values`` does not know.

    Raises:
        UnknownNameError: always when such a symbol is used.

    """
    if used & {"j", "J"} and "j" not in values:
        raise UnknownNameError(
            "its name holds the job's own number (%j), which an array task or a part of a "
            "heterogeneous job does not tell: use %A_%a, or name the files in the job's comment"
        )
    if "A" in used and "A" not in values:
        raise UnknownNameError("its name holds the job number (%A), which is not known")
    if "u" in used and "u" not in values:
        raise UnknownNameError("its name holds the user's name (%u), which is not known")


class _Writer(NamedTuple):
    """One file's task: what its numbers are, and whose lines alone the file holds."""

    rank: int = 0
    node_index: int = 0
    only_rank: int | None = None
    only_node: str | None = None


def _writers(used: frozenset[str], fact: JobFact, nodes: tuple[str, ...]) -> Iterator[_Writer]:
    if "N" in used and not nodes:
        raise UnknownNameError(NOT_THERE_YET)
    if fact.is_batch or not used & {"t", "n", "N"}:
        yield _Writer()
    elif "t" in used:
        yield from _tasks(used, fact, nodes)
    else:
        for index, node in enumerate(nodes[:MOST_FILES]):
            yield _Writer(node_index=index, only_node=node)


def _tasks(used: frozenset[str], fact: JobFact, nodes: tuple[str, ...]) -> Iterator[_Writer]:
    per_node = fact.tasks_per_node or (fact.tasks // len(nodes) if nodes else 0)
    ranks = Allocation(nodes=nodes, tasks_per_node=per_node)
    count = fact.tasks or per_node * len(nodes) or len(nodes)
    for rank in range(min(count, MOST_FILES)):
        node = ranks.node_of_task(rank)
        if node is None and used & {"n", "N"}:
            raise UnknownNameError(
                "its name holds rank and node, and how ranks lie on the nodes is not known"
            )
        index = nodes.index(node) if node else 0
        yield _Writer(rank=rank, node_index=index, only_rank=rank, only_node=node)
