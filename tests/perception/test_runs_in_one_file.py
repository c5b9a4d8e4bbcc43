from __future__ import annotations

from itertools import pairwise

import pytest

from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import FileReport, LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.schema import Rule
from relight.testing.frameworks import FRAMEWORKS, generate


def rule(name: str, pattern: str, role: Role) -> Rule:
    return Rule(
        id=name,
        family="user_code_exception",
        kind=Kind.CRASH,
        role=role,
        domain=Domain.APPLICATION,
        remedy=Remedy.STOP,
        title="Broken",
        sentence="It broke.",
        patterns=(pattern,),
        evidence="this test",
    )


RULES = [rule("broken", "it broke", Role.ROOT), rule("harmless", "a warning", Role.BENIGN)]
EARS = Ears(Lexicon(RULES), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
MEGATRON = "[after megatron is initialized] datetime: 2026-01-31 10:00:00"
TORCHRUN = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default"
GONE = "srun: error: node-1: task 0: Exited with exit code 1"
DONE = "[after training is done] datetime: 2026-01-31 10:00:00"


def read(*lines: str) -> FileReport:
    data = ("\n".join(lines) + "\n").encode()
    return report_of(LogFile(file="out.log"), [data], EARS, Instant(1_900_000_000_000_000))


def steps(first: int, last: int) -> list[str]:
    return [
        f" iteration {step:8d}/     900 | consumed samples: 1 |"
        f" elapsed time per iteration (ms): 1000.0 | lm loss: 6.1 |"
        for step in range(first, last + 1)
    ]


def bars(first: int, last: int, total: int = 100) -> list[str]:
    return [f" 10%|#   | {n}/{total} [00:10<00:10,  1.00it/s]" for n in range(first, last + 1)]


def loop(first: int, last: int) -> list[str]:
    return [f"step {step} loss 0.5" for step in range(first, last + 1)]


CASES: list[tuple[str, list[str], list[int | None]]] = [
    ("one run", [MEGATRON, *steps(1, 9)], [9]),
    ("ranks print the same banner", [MEGATRON, MEGATRON, *steps(1, 9)], [9]),
    (
        "a banner after steps begins a run",
        [MEGATRON, *steps(1, 9), MEGATRON, *steps(5, 12)],
        [9, 12],
    ),
    (
        "a wrapper counts the attempts",
        ["=== attempt 1 of 3 ===", *steps(1, 9), "=== attempt 2 of 3, restart 1 ===", *steps(5, 7)],
        [9, 7],
    ),
    (
        "Ray starts its workers again",
        [
            "(TorchTrainer pid=7) Started distributed worker processes: ",
            *steps(1, 9),
            "(TorchTrainer pid=7) Started distributed worker processes: ",
            *steps(5, 7),
        ],
        [9, 7],
    ),
    ("it dies at its start", [MEGATRON, *steps(1, 9), MEGATRON, "it broke"], [9, None]),
    (
        "a loop that dies at its start each time",
        [TORCHRUN, "it broke", GONE, TORCHRUN, "it broke", GONE, TORCHRUN, "it broke", GONE],
        [None, None, None],
    ),
    ("a failure on one rank before another's banner", [MEGATRON, "it broke", MEGATRON], [None]),
    ("no banner, but an end and a fall", [*loop(1, 30), "it broke", GONE, *loop(20, 40)], [30, 40]),
    ("no banner, a failure and a fall", [*loop(1, 30), "it broke", *loop(1, 9)], [30, 9]),
    ("rolled back in place", [*steps(1, 30), *steps(20, 40)], [40]),
    ("again from its first step", [*steps(1, 30), *steps(1, 9)], [30, 9]),
    ("two ranks out of step", [*steps(1, 9), *steps(8, 9), *steps(8, 20)], [20]),
    ("a loop over epochs", [*loop(1, 9), *loop(1, 9), "a warning", *loop(1, 9)], [9]),
    ("bars of epochs", [*bars(1, 100), *bars(1, 100)], [100]),
    ("a bar that broke off and began anew", [*bars(1, 50), "it broke", *bars(1, 20)], [50, 20]),
    (
        "what comes after training is no run",
        [MEGATRON, *steps(1, 9), DONE, MEGATRON, "words"],
        [9],
    ),
    (
        "what fails after training is one",
        [MEGATRON, *steps(1, 9), DONE, MEGATRON, "it broke"],
        [9, None],
    ),
    (
        "a launcher that restarts its workers",
        [*loop(1, 30), "  restart_count=1", *loop(20, 40)],
        [30, 40],
    ),
]


@pytest.mark.parametrize(
    ("lines", "last"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_runs_are_told_apart(lines: list[str], last: list[int | None]) -> None:
    runs = read(*lines).runs
    assert [run.progress.last_step for run in runs] == last
    assert [run.number for run in runs] == list(range(len(last)))
    assert (runs[0].first_line, runs[-1].last_line) == (1, len(lines))
    for before, after in pairwise(runs):
        assert before.last_line + 1 == after.first_line


def test_a_finding_belongs_to_its_run_and_knows_the_step_before_it() -> None:
    report = read(
        *[MEGATRON, "it broke", *steps(1, 9), "it broke", GONE, MEGATRON, "it broke", *steps(5, 7)],
        "it broke",
    )
    assert [(one.run, one.step) for one in report.findings] == [
        (0, None),
        (0, 9),
        (1, None),
        (1, 7),
    ]


def test_a_step_and_a_failure_on_one_line_go_together() -> None:
    report = read(*bars(1, 8), " 10%|#   | 9/100 [00:10<00:10,  1.00it/s]it broke")
    assert [one.step for one in report.findings] == [9]


def test_lines_and_last_lines_are_numbered_from_one() -> None:
    report = read("one", "two", "three")
    assert report.lines == 3
    assert [(one.line, one.text) for one in report.tail] == [(1, "one"), (2, "two"), (3, "three")]


def test_the_unfinished_last_line_counts() -> None:
    report = report_of(LogFile(file="f"), [b"one\ntwo"], EARS, Instant(0))
    assert report.lines == 2
    assert [(one.line, one.text) for one in report.tail] == [(1, "one"), (2, "two")]


def test_the_first_and_the_last_time_are_found() -> None:
    report = read("words", "2026-01-31 10:00:00 begin", "2026-01-31 11:00:00 end", "words")
    assert report.first_at is not None
    assert report.last_at is not None
    assert report.last_at - report.first_at == 3_600_000_000


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "hf-trainer", "olmo-core", "nemo-2"])
def test_two_runs_of_one_framework_are_two(name: str) -> None:
    assert name in FRAMEWORKS
    data = generate(name, steps=100).data + b"it broke\n" + GONE.encode() + b"\n"
    data += generate(name, steps=60).data
    runs = report_of(LogFile(file="f"), [data], EARS, Instant(0)).runs
    assert [run.progress.best_step for run in runs] == [
        generate(name, steps=100).truth.last_step,
        generate(name, steps=60).truth.last_step,
    ]


def test_a_flood_of_runs_is_kept_bounded() -> None:
    report = read(*[line for _ in range(450) for line in (MEGATRON, *steps(1, 2))])
    assert len(report.runs) == 401
    assert report.runs[-1].number == 449


def test_an_empty_file_holds_one_run() -> None:
    report = report_of(LogFile(file="f"), [], EARS, Instant(0))
    assert (len(report.runs), report.lines, report.tail) == (1, 0, ())
