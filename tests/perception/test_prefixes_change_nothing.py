from __future__ import annotations

from collections.abc import Iterable

import pytest

from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import FileReport, LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.schema import Rule
from relight.testing.frameworks import Dress, Prefix, generate
from relight.testing.frameworks.dressing import dressed

NOW = Instant(1_900_000_000_000_000)
OOM = Rule(
    id="out-of-memory",
    family="device_oom",
    kind=Kind.CRASH,
    role=Role.ROOT,
    domain=Domain.APPLICATION,
    remedy=Remedy.STOP,
    title="Out of memory",
    sentence="It needed more memory than there is.",
    patterns=("CUDA out of memory",),
    evidence="this test",
)
EARS = Ears(Lexicon([OOM]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
LOGS: dict[str, list[str]] = {
    "an exception that no rule knows": [
        "epoch 4 batch 330 loss 0.242",
        "epoch 4 batch 340 loss 0.274",
        "Traceback (most recent call last):",
        '  File "/srv/train.py", line 20, in <module>',
        "    main()",
        '  File "/srv/train.py", line 12, in main',
        '    raise ValueError(f"bad batch {n}, CUDA out of memory")',
        "ValueError: bad batch 7",
    ],
    "an exception that a rule knows": [
        "step 10 | loss: 3.10",
        "step 20 | loss: 3.05",
        "Traceback (most recent call last):",
        '  File "/srv/train.py", line 9, in step',
        "    loss.backward()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    ],
    "an exception that another one caused": [
        "Traceback (most recent call last):",
        '  File "/srv/data.py", line 3, in read',
        "    return open(path)",
        "FileNotFoundError: [Errno 2] No such file or directory: 'a'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "/srv/data.py", line 7, in load',
        "    read(path)",
        "my.data.BrokenShard: shard 7",
    ],
    "one that the library has caught": [
        "WON'T CONVERT forward /srv/model.py line 12",
        "due to: ",
        "Traceback (most recent call last):",
        '  File "/opt/torch/_dynamo/convert_frame.py", line 9, in _convert',
        "    return compile(code)",
        "torch._dynamo.exc.Unsupported: call_method",
        "step 30 | loss: 2.90",
    ],
    "bars": [f" 10%|#   | {n}/100 [00:10<00:10,  1.00it/s]" for n in (8, 9, 10)],
}
SAMPLE = (
    "megatron",
    "lightning",
    "hf-trainer",
    "torchtune",
    "timm",
    "llm.c",
    "nemo-1",
    "keras",
    "keras-3",
)
"""Bars, lines that begin with their counter, and counters that begin again each epoch."""


def told(lines: Iterable[str], prefix: Prefix) -> FileReport:
    data = "".join(dressed(lines, Dress(prefix=prefix))).encode()
    return report_of(LogFile(file="a.log"), [data], EARS, NOW)


def essence(report: FileReport) -> list[object]:
    found: list[object] = [
        (one.rule, one.place and one.place.line, one.sentence, one.step, one.fingerprint)
        for one in report.findings
    ]
    steps = [(one.progress.first_step, one.progress.last_step) for one in report.runs]
    return [*found, *steps]


@pytest.mark.parametrize("prefix", Prefix)
@pytest.mark.parametrize("name", LOGS)
def test_what_is_found_does_not_depend_on_the_prefix(name: str, prefix: Prefix) -> None:
    plain, behind = told(LOGS[name], Prefix.NONE), told(LOGS[name], prefix)
    for one in behind.findings:
        assert set(one.ranks) <= {0}
    assert essence(behind) == [
        _as_of(one, "of rank 0") if behind.findings and behind.findings[0].ranks else one
        for one in essence(plain)
    ]


def _as_of(told_plainly: object, writer: str) -> object:
    """Return what is told of a finding where the prefix names the writer's rank."""
    if not isinstance(told_plainly, tuple) or len(told_plainly) < 5:
        return told_plainly
    rule, line, sentence, *others = told_plainly
    named = sentence.replace("ended a process:", f"ended a process {writer}:")
    return (rule, line, named, *others)


@pytest.mark.parametrize("name", SAMPLE)
def test_the_steps_of_frameworks_are_read_behind_every_prefix(name: str) -> None:
    expected = steps_of(generate(name, steps=20).data)
    for prefix in Prefix:
        behind = generate(name, steps=20, dress=Dress(prefix=prefix)).data
        assert (prefix, steps_of(behind)) == (prefix, expected)


def steps_of(data: bytes) -> list[tuple[int | None, int | None]]:
    report = report_of(LogFile(file="a.log"), [data], EARS, NOW)
    return [(run.progress.first_step, run.progress.last_step) for run in report.runs]
