from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.progress import Progress
from relight.model.reports import FileReport, LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.matching import HAS_HYPERSCAN
from relight.perception.progress.sampling import Grid
from relight.perception.reporting import report_of
from relight.rules.schema import Rule
from relight.testing.frameworks import FRAMEWORKS, Dress, Prefix, generate

NOW = Instant(1_900_000_000_000_000)
BROKEN = Rule(
    id="broken",
    family="user_code_exception",
    kind=Kind.CRASH,
    role=Role.ROOT,
    domain=Domain.APPLICATION,
    remedy=Remedy.STOP,
    title="Broken",
    sentence="It broke.",
    patterns=("it broke",),
    evidence="this test",
)
EARS = Ears(Lexicon([BROKEN]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
GRID = Grid(slot=1 << 13, flood=12, read_whole=1, frame=1 << 12, head=1 << 10)

DENSE = [
    "megatron",
    "megatron-deepspeed",
    "lightning",
    "maxtext",
    "modded-nanogpt",
    "timm",
    "mmdetection",
    "dllogger-epochs",
    "mlperf-nemo",
    "mlperf-bert",
    "dlrm",
    "torchvision",
    "gnmt",
    "fairseq",
]
EVENTS = [
    "it broke here",
    "step lost: lm loss: nan | grad norm: inf |",
    "successfully saved checkpoint from iteration      77 to /ckpt",
    "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1",
    "ordinary words",
    "[after megatron is initialized] datetime: 2026-01-31 10:00:00",
    " validation loss at iteration 100 | lm loss value: 7.666490E+00 |",
]


def report(data: bytes, size: int, grid: Grid | None) -> FileReport:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return report_of(LogFile(file="out.log"), chunks, EARS, NOW, grid=grid)


def without_times(progress: Progress) -> Progress:
    return msgspec.structs.replace(progress, step_seconds=None, report_seconds=None)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Return a run or two of one framework, with other lines that matter strewn in."""
    name = draw(st.sampled_from(DENSE))
    dress = Dress(
        prefix=draw(st.sampled_from([Prefix.NONE, Prefix.SRUN])),
        crlf=draw(st.booleans()),
        colours=draw(st.booleans()),
        noise=draw(st.sampled_from([0, 5])),
    )
    lines: list[bytes] = []
    for seed in draw(st.lists(st.integers(0, 1000), min_size=1, max_size=2)):
        steps = draw(st.integers(20, 300))
        lines += generate(name, seed=seed, steps=steps, dress=dress).data.splitlines(keepends=True)
    for event in draw(st.lists(st.sampled_from(EVENTS), max_size=8)):
        lines.insert(draw(st.integers(0, len(lines))), event.encode() + b"\n")
    return b"".join(lines)


@pytest.mark.skipif(not HAS_HYPERSCAN, reason="only with Hyperscan lines are left unread")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.sampled_from([700, 5_000, 1 << 20]))
def test_what_is_read_of_some_lines_is_what_all_lines_tell(data: bytes, size: int) -> None:
    every, some = report(data, 1 << 20, None), report(data, size, GRID)
    assert [without_times(one.progress) for one in some.runs] == [
        without_times(one.progress) for one in every.runs
    ]
    assert [(one.first_line, one.last_line) for one in some.runs] == [
        (one.first_line, one.last_line) for one in every.runs
    ]
    assert some.findings == every.findings
    for ours, theirs in zip(some.runs, every.runs, strict=True):
        usual = theirs.progress.step_seconds
        if usual is not None and ours.progress.step_seconds is not None:
            # On this tiny grid a handful of steps stand for all, and each is up to 4 % off.
            assert ours.progress.step_seconds == pytest.approx(usual, rel=0.08)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.sampled_from([300, 4_096, 50_000]))
def test_how_the_bytes_are_cut_changes_nothing(data: bytes, size: int) -> None:
    assert report(data, size, GRID) == report(data, 1 << 20, GRID)


@pytest.mark.parametrize("name", ["megatron", "torchvision"])
def test_the_usual_time_of_a_long_log_is_the_one_of_all_its_lines(name: str) -> None:
    data = generate(name, seed=1, steps=2_000).data
    every, some = report(data, 1 << 20, None), report(data, 1 << 16, GRID)
    usual = every.runs[-1].progress.step_seconds
    assert some.runs[-1].progress.step_seconds == pytest.approx(usual, rel=0.01)


def test_every_framework_named_exists() -> None:
    assert set(DENSE) <= set(FRAMEWORKS)
