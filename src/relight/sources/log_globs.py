"""The ``logs`` key of a job's comment: further files of an attempt, as a pattern.

It takes the symbols of Slurm's output names (so an owner can copy what stands after ``srun
--output``) and the shell's ``*``, ``?``, ``[...]`` and ``**`` (any depth). What is not known
beforehand (``%t``, ``%n``, ``%N``, ``%s``, a step's number) is found by looking, and read back
from the name that was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import re2

from relight.model.jobs import Allocation, JobFact
from relight.model.records import Record
from relight.sources.output_patterns import (
    LogFile,
    UnknownNameError,
    below,
    expand,
    job_values,
    refuse_unknown,
    symbols,
)

LONGEST_PATTERN = 1_024
"""Longer patterns are refused, so that the expression made of one stays small."""

_CAPTURES = {"t": r"(?P<rank>\d+)", "n": r"(?P<index>\d+)", "N": r"(?P<host>[^/]+)", "s": "[^/]*"}
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_TOKEN = re.compile(r"\x00[tnNs]|\*\*/?|\*|\?|\[!?\]?[^\]/]*\]|[^\x00]", re.DOTALL)


class LogGlob(Record, frozen=True, kw_only=True):
    """What to look for: an absolute glob, and an RE2 expression that its finds must match.

    The expression covers the whole path; its groups, where there are any, are ``rank``,
    ``index`` (of the node in the allocation) and ``host``.
    """

    pattern: str
    expression: str


def log_glob(logs: str, fact: JobFact) -> LogGlob:
    """Return what to look for; relative patterns lie below the job's work folder.

    Raises:
        UnknownNameError: the pattern is too long, or needs something not known of the job.

    """
    if len(logs) > LONGEST_PATTERN:
        raise UnknownNameError(f"the pattern is longer than {LONGEST_PATTERN} characters")
    values = job_values(fact)
    refuse_unknown(symbols(logs), values)
    known = {letter: _literal(value) for letter, value in values.items()}
    known["J"] = known.get("j", "") + ".*"
    # A letter behind a NUL stands for what only a found name tells: no path can hold a NUL.
    later = {letter: f"\x00{letter}" for letter in _CAPTURES}
    text = expand(logs.replace("\x00", ""), (known | later).__getitem__)
    return _of_tokens(_TOKEN.findall(below(_literal(fact.output.work_dir), text)))


def name_files(glob: LogGlob, paths: Iterable[str], nodes: tuple[str, ...]) -> tuple[LogFile, ...]:
    """Return found paths in order, with the rank and node that their names tell.

    A path whose place for a number holds something else is not a file of the job and left out.
    """
    expression = re2.compile(glob.expression)
    files = []
    for path in paths:
        match = expression.fullmatch(path)
        if match is not None:
            files.append(_labelled(path, match.groupdict(), nodes))
    return tuple(files)


def _literal(text: str) -> str:
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def _of_tokens(tokens: list[str]) -> LogGlob:
    pattern, expression = "", "(?s)"
    used: set[str] = set()
    for token in tokens:
        if token.startswith("\x00"):
            pattern += "*"
            expression += "[^/]*" if token in used else _CAPTURES[token[1]]
            used.add(token)
        else:
            pattern += token
            is_class = token.startswith("[") and len(token) > 1
            expression += "[^/]" if is_class else _WILD.get(token) or re2.escape(token)
    return LogGlob(pattern=pattern, expression=expression)


def _labelled(path: str, groups: dict[str, str | None], nodes: tuple[str, ...]) -> LogFile:
    rank, index, host = (groups.get(name) for name in ("rank", "index", "host"))
    node = Allocation(nodes=nodes).member(host) if host else None
    if node is None and index and len(index) < len("1000000") and int(index) < len(nodes):
        node = nodes[int(index)]
    return LogFile(
        path=path, rank=int(rank) if rank and len(rank) <= len("1000000") else None, node=node
    )
