"""Whatever the bytes and however they are cut: no crash, the same report, bounded memory."""

from __future__ import annotations

import json

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import FileReport, LogFile
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, perceive
from relight.perception.cleaning import MOST_CARRIED, UNIT_HEAD
from relight.perception.ears import Ears, Lexicon
from relight.perception.lines import KEPT_LINES, SHOWN
from relight.perception.prefixes import listen
from relight.perception.reporting import report_of
from relight.perception.times import printed_time
from relight.rules.schema import Rule
from relight.testing.frameworks import Dress, Prefix
from relight.testing.frameworks.dressing import dressed

RULE = Rule(
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
EARS = Ears(Lexicon([RULE]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
NOW = Instant(1_900_000_000_000_000)
WORDS = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "/w/a.py", line 1, in f',
        "    raise ValueError(f'it broke')",
        "ValueError: it broke",
        "KeyboardInterrupt",
        "it broke here",
        "step 7 | loss: 2.5",
        "epoch 3 batch 40 loss 0.1",
        " 10%|#   | 8/100 [00:10<00:10,  1.00it/s]",
        "a1:811:811 [0] NCCL INFO comm 0x55d0 rank 3 nranks 4 cudaDev 0 - Init START",
        "=== attempt 2 of 3 ===",
        "WON'T CONVERT f a.py line 1",
        "due to: ",
        "srun: error: node-1: task 0: Exited with exit code 1",
        '{"log":"it broke\\nstep 9 loss: 1.5\\r\\n","time":"2026-01-31T10:00:00Z"}',
        'level=error msg="Traceback (most recent call last):\\nValueError: x"',
        "\x1b[32mit broke\x1b[0m",
        "\x1b]0;title\x07step 8 loss: 2.5",
        "2026-01-31 10:00:00 9 9 9",
        "{" * 50 + '{"msg": "it broke"',
        "x" * (UNIT_HEAD + 100) + "it broke",
    ]
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Return lines behind prefixes, in envelopes, and rubbish between them."""
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 12))):
        line = draw(st.one_of(WORDS, st.text(max_size=30)))
        prefixes = draw(st.lists(st.sampled_from(Prefix), max_size=2))
        for prefix in prefixes:
            line = next(dressed([line], Dress(prefix=prefix)))[:-1]
        end = draw(st.sampled_from([b"\n", b"\r\n", b"\r", b"\r\r\n", b"", b"\x00\n"]))
        parts += [line.encode(errors="replace"), draw(st.binary(max_size=3)), end]
    return b"".join(parts)


def report(data: bytes, size: int) -> FileReport:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return report_of(LogFile(file="out.log"), chunks, EARS, NOW)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.sampled_from([1, 7, 64, 4_099]))
def test_how_a_log_is_cut_changes_nothing(data: bytes, size: int) -> None:
    assert report(data, size) == report(data, 1 << 20)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_what_is_kept_is_bounded_and_can_be_stored(data: bytes) -> None:
    reading = Reading(file="out.log", offset=0, data=data, mark=Mark(offset=len(data)))
    state = perceive(PerceptionState(), [reading], NOW, EARS).state
    kept = state.files["out.log"]
    assert len(kept.carry) <= MOST_CARRIED
    assert len(kept.tail) <= KEPT_LINES
    assert max((len(line) for line in kept.tail), default=0) <= SHOWN
    assert msgspec.json.decode(msgspec.json.encode(state), type=PerceptionState) == state


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(Prefix), max_size=4), st.text(max_size=60))
def test_any_line_has_a_voice(prefixes: list[Prefix], text: str) -> None:
    line = text
    for prefix in prefixes:
        line = next(dressed([line], Dress(prefix=prefix)))[:-1]
    voice = listen(line)
    assert line.endswith(voice.body)
    printed_time(line)


def test_a_hundred_megabytes_on_one_line_are_passed_over() -> None:
    block = b"x" * (1 << 20)
    chunks = [b'{"log": "', *([block] * 100), b'"}\nit broke\n']
    told = report_of(LogFile(file="out.log"), chunks, EARS, NOW)
    assert [(one.rule, one.place and one.place.line) for one in told.findings] == [("broken", 2)]


def test_envelopes_as_deep_as_python_goes_are_lines() -> None:
    data = b'{"labels":' * 5_000 + b'{"msg":"it broke"}' + b"}" * 5_000
    assert [one.rule for one in report(data + b"\n", 1 << 20).findings] == []
    shallow = json.dumps({"labels": {"labels": {"labels": {"pod": "w-0"}}}, "msg": "it broke"})
    assert [one.nodes for one in report(shallow.encode(), 99).findings] == [("w-0",)]
