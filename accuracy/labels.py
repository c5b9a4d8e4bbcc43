"""What is right for a log, as its label says, and where labelled logs are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from relight.model.records import Record

ENDS = frozenset({"finished", "cancelled", "preempted", "timeout"})
"""Kinds of a label that tell how a run ended where nothing failed."""
QUIET = frozenset({"none", "finished"})
"""Kinds of a label of which any alarm is a false one."""
_COUNTED = ("step", "iteration", "batch", "update", "optimizer step")
_MARGIN = 1
"""A run's index may count from 0 where its log counts from 1."""

_Line = TypeVar("_Line", bound=Record)


class LabelError(ValueError):
    """A corpus that cannot be read; the message names the file and what is wrong with it."""


class Label(Record, frozen=True, kw_only=True):
    """The right answers for one log, in the words of the corpus.

    A list ``acceptable_*`` that is missing accepts the best answer alone. ``ranks_optional``
    and ``nodes_optional`` may be named and need not be.
    """

    id: str
    kind: str
    family: str
    domain: str
    retry: str
    service_kind: str = ""
    acceptable_service_kind: tuple[str, ...] = ()
    acceptable_family: tuple[str, ...] = ()
    acceptable_domain: tuple[str, ...] = ()
    acceptable_retry: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    ranks_optional: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    nodes_optional: tuple[str, ...] = ()
    root_line: int | None = None
    root_lines_ok: tuple[int, ...] = ()
    step_last: int | None = None
    step_last_ok: tuple[int | None, ...] = ()
    has_step: bool = True
    """The last step is part of the label."""

    @property
    def kinds(self) -> frozenset[str]:
        """Return every kind that counts as right, in the words of a report."""
        plain = "none" if self.kind in ENDS else self.kind
        return frozenset({self.service_kind or plain, *self.acceptable_service_kind})

    @property
    def families(self) -> frozenset[str]:
        """Return every family that counts as right."""
        return frozenset({self.family, *self.acceptable_family})

    @property
    def domains(self) -> frozenset[str]:
        """Return every domain that counts as right."""
        return frozenset({self.domain, *self.acceptable_domain})

    @property
    def decisions(self) -> frozenset[str]:
        """Return every decision that counts as right."""
        return frozenset({self.retry, *self.acceptable_retry})

    @property
    def root_lines(self) -> frozenset[int]:
        """Return every line that counts as the root's; empty where there is none."""
        own = () if self.root_line is None else (self.root_line,)
        return frozenset({*own, *self.root_lines_ok})

    @property
    def steps(self) -> frozenset[int | None]:
        """Return every last step that counts as right."""
        return frozenset({self.step_last, *self.step_last_ok})


class Case(Record, frozen=True, kw_only=True):
    """A log with its label."""

    corpus: str
    path: str
    label: Label


class Timeline(Record, frozen=True, kw_only=True):
    """A whole run's log, as the index of a folder of them tells of it."""

    id: str
    kind: str
    last_step: float | None = None
    step_unit: str | None = None
    complete: bool = True


def cases_of(folder: Path) -> list[Case]:
    """Return the cases of one corpus, in the order of its labels.

    Raises:
        LabelError: the labels cannot be read, or a log is missing.

    """
    cases: list[Case] = []
    labels = folder / "labels.jsonl"
    if not labels.is_file() and (folder / "timelines").is_dir():
        return cases
    for label in _lines_of(labels, Label):
        path = folder / "cases" / f"{label.id}.log"
        if not path.is_file():
            raise LabelError(f"{path} is missing: add it, or take {label.id} out of the labels")
        cases.append(Case(corpus=folder.name, path=str(path), label=label))
    return cases


def timelines_of(folder: Path) -> list[Case]:
    """Return the healthy runs of a corpus as cases in which any alarm is a false one.

    Raises:
        LabelError: the index cannot be read, or a log is missing.

    """
    cases: list[Case] = []
    index = folder / "timelines" / "index.jsonl"
    if not index.is_file():
        return cases
    for run in _lines_of(index, Timeline):
        path = index.parent / f"{run.id}.log"
        if run.kind != "healthy":
            continue
        if not path.is_file():
            raise LabelError(f"{path} is missing: add it, or take {run.id} out of the index")
        cases.append(Case(corpus=f"{folder.name}/timelines", path=str(path), label=_quiet(run)))
    return cases


def corpora(named: Sequence[Path], root: Path) -> list[Path]:
    """Return the corpora to measure: those named, else the project's own and one beside it."""
    if named:
        return list(named)
    own = sorted(path for path in (root / "corpus").iterdir() if _is_corpus(path))
    beside = root.parent / "shared" / "corpus"
    return [*own, beside] if (beside / "labels.jsonl").is_file() else own


def _is_corpus(folder: Path) -> bool:
    return (folder / "labels.jsonl").is_file() or (folder / "timelines" / "index.jsonl").is_file()


def _quiet(run: Timeline) -> Label:
    unit = run.step_unit or ""
    counted = run.last_step is not None and unit.startswith(_COUNTED)
    last = int(run.last_step) if run.last_step is not None and counted else None
    around = () if last is None else range(last - _MARGIN, last + _MARGIN + 1)
    return Label(
        id=run.id,
        kind="finished" if run.complete else "none",
        family="healthy_finished" if run.complete else "healthy_running",
        domain="none",
        retry="none",
        acceptable_family=("healthy_finished", "healthy_running", "benign_warning"),
        step_last=last,
        step_last_ok=tuple(around),
        has_step=counted,
    )


def _lines_of(path: Path, kind: type[_Line]) -> Iterator[_Line]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise LabelError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=kind)
        except msgspec.MsgspecError as error:
            raise LabelError(f"{path}, line {number}: {error}") from error
