from __future__ import annotations

import pytest

from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.schema import Rule

RULE = Rule(
    id="no-memory",
    family="device_oom",
    kind=Kind.CRASH,
    role=Role.ROOT,
    domain=Domain.APPLICATION,
    remedy=Remedy.STOP,
    title="Out of memory",
    sentence="It needed more memory than there is.",
    patterns=("out of memory",),
    evidence="this test",
)
EARS = Ears(Lexicon([RULE]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
HEAD = "Traceback (most recent call last):"
FRAME = '  File "/srv/train.py", line 12, in main'


def heard(*lines: str) -> list[tuple[str, int]]:
    data = ("\n".join(lines) + "\n").encode()
    report = report_of(LogFile(file="a.log"), [data], EARS, Instant(0))
    return [(one.rule, one.place.line) for one in report.findings if one.place]


CASES: list[tuple[str, list[str], list[tuple[str, int]]]] = [
    (
        "the line that raises is not the one that tells",
        [HEAD, FRAME, '    raise RuntimeError(f"out of memory on {d}")', "RuntimeError: gone"],
        [("python-exception", 4)],
    ),
    (
        "nor where the log begins inside the traceback",
        [FRAME, '    raise RuntimeError("out of memory")', "RuntimeError: out of memory"],
        [("no-memory", 3)],
    ),
    (
        "torch's compiler goes on without",
        ["WON'T CONVERT f a.py line 1", "due to: ", HEAD, FRAME, "torch.Unsupported: call"],
        [],
    ),
    ("the interpreter ignores it", ["Exception ignored in: <f>", HEAD, FRAME, "OSError: x"], []),
    ("the logger failed", ["--- Logging error ---", HEAD, FRAME, "OSError: x"], []),
    ("there is another way", ["no flash, falling back to eager", HEAD, FRAME, "OSError: x"], []),
    ("it is tried again", ["upload failed, will retry", HEAD, FRAME, "OSError: x"], []),
    (
        "the last try has failed",
        ["Retrying in 32s [Retry 5/5].", HEAD, FRAME, "OSError: x"],
        [("python-exception", 4)],
    ),
    (
        "a reason of something else",
        ["due to: ", HEAD, FRAME, "OSError: x"],
        [("python-exception", 4)],
    ),
    (
        "behind a prefix",
        [f"node-1: {one}" for one in (HEAD, FRAME, "OSError: x")],
        [("python-exception", 3)],
    ),
]


@pytest.mark.parametrize(
    ("lines", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_traceback_tells_what_was_raised_and_not_caught(
    lines: list[str], expected: list[tuple[str, int]]
) -> None:
    assert heard(*lines) == expected


def test_the_last_line_of_a_traceback_is_heard_without_its_prefix() -> None:
    rule = Rule(
        id="interrupted",
        family="user_cancelled",
        kind=Kind.ENDING,
        role=Role.ROOT,
        domain=Domain.NONE,
        remedy=Remedy.END,
        title="Interrupted",
        sentence="It was interrupted.",
        patterns=(r"^KeyboardInterrupt\s*$",),
        evidence="this test",
    )
    ears = Ears(Lexicon([rule]), EARS.attempt)
    lines = [f"2026-01-31 10:00:00,1 - root - ERROR - {one}" for one in (HEAD, FRAME)]
    data = "\n".join([*lines, "2026-01-31 10:00:00,1 - root - ERROR - KeyboardInterrupt"]).encode()
    report = report_of(LogFile(file="a.log"), [data], ears, Instant(0))
    assert [one.rule for one in report.findings] == ["interrupted"]
