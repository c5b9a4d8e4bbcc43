"""A log says the same whoever prints it: prefixes, levels, colours and line ends change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accuracy.answers import NOW, ears
from accuracy.labels import Case, cases_of

from relight.engine.offline import examine
from relight.model.jobs import Allocation
from relight.model.reports import LogFile, Report
from relight.perception.reporting import report_of

CORPUS = Path(__file__).parents[2] / "corpus"
EARS = ears()
EVERY = 9
"""One case in so many of each corpus: enough to meet every kind of rule, quick enough to run."""

VOICES: dict[str, Callable[[str], str]] = {
    "a container runtime": lambda line: f"2025-03-01T10:00:00.123456789Z stderr F {line}",
    "docker": lambda line: json.dumps({"log": f"{line}\n", "time": "2025-03-01T10:00:00.1Z"}),
    "torchrun": lambda line: f"[default0]:{line}",
    "ray": lambda line: f"\x1b[36m(TrainWorker pid=4412)\x1b[0m {line}",
    "a terminal": lambda line: f"\x1b[32m{line}\x1b[0m",
    "windows": lambda line: f"{line}\r",
    "python's logging": lambda line: f"2025-03-01 10:00:00,123 - INFO - {line}",
    "loguru": lambda line: f"2025-03-01 10:00:00.123 | INFO     | train:run:88 - {line}",
    "basic logging": lambda line: f"INFO:root:{line}",
    "a shipper": lambda line: f"[2025-03-01T10:00:00.106313Z] fa88a9df || {line}",
}
_NEEDS_THEIR_CLOCK = frozenset({"silent-hang"})
"""What is concluded from the times in front of lines: a voice that puts one there hides them."""


def sample() -> Iterator[Case]:
    for folder in sorted(CORPUS.iterdir()):
        if (folder / "labels.jsonl").is_file():
            yield from cases_of(folder)[::EVERY]


CASES = list(sample())


def said(text: str) -> Report:
    file = report_of(LogFile(file="a.log"), [text.encode(errors="surrogateescape")], EARS, NOW)
    return examine([file], Allocation())


def lines_of(case: Case) -> list[str]:
    text = Path(case.path).read_bytes().decode(errors="surrogateescape")
    return text.removesuffix("\n").split("\n")


@pytest.mark.parametrize("voice", VOICES)
def test_what_is_said_of_a_log_does_not_depend_on_who_printed_it(voice: str) -> None:
    wrap = VOICES[voice]
    changed: list[str] = []
    for case in CASES:
        lines = lines_of(case)
        if any(line.startswith('{"') for line in lines):
            continue
        plain = said("\n".join(lines) + "\n")
        if plain.cause in _NEEDS_THEIR_CLOCK:
            continue
        voiced = said("".join(f"{wrap(line)}\n" for line in lines))
        if essence(plain) != essence(voiced):
            changed.append(f"{case.label.id}: {essence(plain)} became {essence(voiced)}")
    assert not changed, "\n".join(changed)


def essence(report: Report) -> tuple[str, str, str, str, int]:
    return (
        report.kind.value,
        report.ending.value if report.ending is not None else "",
        report.domain.value,
        report.decision.value,
        report.root.line if report.root is not None else 0,
    )
