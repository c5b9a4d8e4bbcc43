from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.model.findings import Finding, Provenance, Remedy, Role
from relight.model.instants import Instant, from_iso
from relight.model.jobs import AttemptKey, JobKey
from relight.model.signals import FileUnseen, Mark, Reading
from relight.perception.attempts import Perceived, PerceptionState, conclude, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.memories import FIRST_FINDINGS
from relight.rules.loading import load

NOW = Instant(1_900_000_000_000_000)
ATTEMPT = AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0)
RULES = load()
EARS = Ears(Lexicon(RULES), ATTEMPT)

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/user/run42/train.py", line 12, in <module>
    main()
  File "/home/user/run42/train.py", line 99, in forward
    raise ValueError("No space left on device")
  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1, in __call__
    return x
ValueError: bad batch 17
"""


def reading(data: bytes, offset: int = 0) -> Reading:
    return Reading(file="out.log", offset=offset, data=data, mark=Mark(offset=offset + len(data)))


def fed(pieces: Iterable[bytes]) -> tuple[tuple[Finding, ...], Perceived]:
    state = PerceptionState()
    found: list[Finding] = []
    offset = 0
    for piece in pieces:
        perceived = perceive(state, [reading(piece, offset)], NOW, EARS)
        offset += len(piece)
        state = perceived.state
        found += perceived.findings
    last = conclude(state, NOW, EARS)
    return (*found, *last.findings), last


def found_in(text: str) -> tuple[Finding, ...]:
    return fed([text.encode()])[0]


def rules_in(text: str) -> list[str]:
    """Return the rules that say that something is wrong."""
    return [finding.rule for finding in found_in(text) if finding.role is not Role.BENIGN]


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, max(len(data), 1), size))


LINES = [
    *(hit.encode() for rule in RULES for hit in rule.hits),
    *TRACEBACK.encode().splitlines(),
    *(b"[rank1]: " + line for line in TRACEBACK.encode().splitlines()),
    b" 10%|#         | 100/1000 [01:40<15:00,  1.00s/it]",
    b"iteration      100/  500000 | elapsed time per iteration (ms): 1234.5 | lm loss: 6.1 |",
    b"successfully saved checkpoint from iteration     100 to /ckpt",
    b"\x1b[31mstep: 12  loss:  6.1\x1b[0m",
    b"x" * 9000 + b"CUDA out of memory. Tried to allocate",
    b"\xff\xfe\x00\x0b\x1b[",
    b"",
]
texts = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=25
).map(lambda rows: b"".join(line + end for line, end in rows))


@settings(max_examples=60, deadline=None)
@given(texts, st.sampled_from([1, 2, 7, 64, 1000]), st.binary(max_size=20))
def test_the_same_bytes_give_the_same_however_they_are_cut(
    text: bytes, size: int, rubbish: bytes
) -> None:
    data = text + rubbish
    if size < 7:
        data = data[:3000]
    whole, last_whole = fed([data])
    pieces, last_pieces = fed(cut(data, size))
    assert pieces == whole
    assert last_pieces.progress == last_whole.progress
    assert last_pieces.state == last_whole.state


@settings(max_examples=30, deadline=None)
@given(texts)
def test_the_state_survives_being_stored(text: bytes) -> None:
    state = perceive(PerceptionState(), [reading(text)], NOW, EARS).state
    assert msgspec.json.decode(msgspec.json.encode(state), type=PerceptionState) == state


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=4000))
def test_garbage_never_crashes(data: bytes) -> None:
    fed([data])


def test_a_line_read_twice_makes_the_same_finding() -> None:
    line = b"srun: error: Node failure on node-02\n"
    (first,), _ = fed([line])
    (again,), _ = fed([line])
    assert first.id == again.id


def test_bytes_that_were_read_are_passed_over() -> None:
    line = b"srun: error: Node failure on node-02\n"
    state = perceive(PerceptionState(), [reading(line)], NOW, EARS).state
    assert perceive(state, [reading(line)], NOW, EARS).findings == ()
    more = perceive(state, [reading(line + line)], NOW, EARS).findings
    assert [finding.place.offset for finding in more if finding.place] == [len(line)]


def test_a_file_that_began_anew_is_read_from_its_start() -> None:
    state = perceive(PerceptionState(), [reading(b"x\n" * 50 + b"half a li")], NOW, EARS).state
    anew = msgspec.structs.replace(reading(b"srun: error: Node failure on n1\n"), restarted=True)
    perceived = perceive(state, [anew], NOW, EARS)
    (finding,) = perceived.findings
    assert finding.place is not None
    assert (finding.place.offset, finding.place.line) == (0, 1)
    assert perceived.state.tails["out.log"] == ("srun: error: Node failure on n1",)


def test_after_a_gap_the_unfinished_line_is_dropped() -> None:
    state = perceive(PerceptionState(), [reading(b"srun: error: Node fail")], NOW, EARS).state
    found = perceive(state, [reading(b"ure on n1\nCUDA error: out\n", 500)], NOW, EARS)
    assert found.findings == ()
    assert found.state.marks["out.log"].offset == 526


def test_a_file_that_cannot_be_read_is_remembered_until_it_can() -> None:
    state = perceive(PerceptionState(), [FileUnseen(file="out.log", why="denied")], NOW, EARS).state
    assert state.unseen == {"out.log": "denied"}
    assert perceive(state, [reading(b"x\n")], NOW, EARS).state.unseen == {}


def test_a_line_is_placed_by_line_feeds_alone() -> None:
    text = "one\rtwo\rthree\nfour\r\nsrun: error: Node failure on n1\n"
    (finding,) = found_in(text)
    assert finding.place is not None
    assert (finding.place.line, finding.place.offset) == (3, 20)
    assert [item.text for item in finding.evidence] == [
        "three",
        "four",
        "srun: error: Node failure on n1",
    ]
    assert [item.is_root for item in finding.evidence] == [False, False, True]


def test_an_error_glued_behind_a_progress_bar_is_found_on_its_line() -> None:
    bar = "\r".join(f" {n}%|##  | {n}/100 [00:00<00:01, 1.0it/s]" for n in range(1, 5))
    (finding,) = found_in("begin\n" + bar + "ERROR: Unexpected bus error encountered in worker\n")
    assert finding.place is not None
    assert (finding.rule, finding.place.line) == ("shared-memory-exhausted", 2)


def test_colours_do_not_hide_a_line_nor_stand_in_its_evidence() -> None:
    (finding,) = found_in("ok\n\x1b[31msrun: error: \x1b[1mNode failure on n1\x1b[0m\n")
    assert finding.nodes == ("n1",)
    assert finding.evidence[-1].text == "srun: error: Node failure on n1"
    assert finding.place is not None
    assert finding.place.offset == 3


VOICES = [
    ("3: RuntimeError: CUDA error: out of memory", (), (3,)),
    ("3: [rank27]: RuntimeError: CUDA error: out of memory", (), (27,)),
    ("[default3]: RuntimeError: CUDA error: out of memory", (), ()),
    ("node-07: RuntimeError: CUDA error: out of memory", ("node-07",), ()),
    ("(TaskRunner pid=77, ip=10.0.0.3) RuntimeError: CUDA error: out of memory", ("10.0.0.3",), ()),
    ("2025-01-31T12:00:00.5Z [rank3]: RuntimeError: CUDA error: out of memory", (), (3,)),
    (
        "Dec  2 10:43:35 node-114 kernel: [1.5] NVRM: Xid (PCI:0000:07:00): 79, gone",
        ("node-114",),
        (),
    ),
    (
        "node-003:9121:9401 [2] net_ib.cc:95 NCCL WARN NET/IB : Got async event : port error",
        ("node-003",),
        (),
    ),
    (
        "[E ProcessGroupNCCL.cpp:474] [Rank 65] Watchdog caught collective operation timeout: x",
        (),
        (65,),
    ),
    (
        "srun: error: node-[02-03]: tasks 4-6,9: Exited with exit code 1",
        ("node-02", "node-03"),
        (4, 5, 6, 9),
    ),
]


@pytest.mark.parametrize(("line", "nodes", "ranks"), VOICES)
def test_prefixes_tell_who_wrote_a_line(
    line: str, nodes: tuple[str, ...], ranks: tuple[int, ...]
) -> None:
    (finding,) = found_in(line + "\n")
    assert (finding.nodes, finding.ranks) == (nodes, ranks)


def test_a_file_named_after_rank_and_node_fills_in_what_its_lines_leave_out() -> None:
    given = Reading(
        file="r5.log",
        offset=0,
        data=b"RuntimeError: CUDA error: out of memory\n",
        mark=Mark(offset=40),
        rank=5,
        node="node-05",
    )
    (finding,) = perceive(PerceptionState(), [given], NOW, EARS).findings
    assert (finding.nodes, finding.ranks) == (("node-05",), (5,))


TIMES = [
    ("2025-01-31T12:00:00.123456Z", "2025-01-31T12:00:00.123456Z"),
    ("[2025-01-31 12:00:00,123]", "2025-01-31T12:00:00.123Z"),
    ("2025-01-31T14:00:00+02:00", "2025-01-31T12:00:00Z"),
    ("[Sun Mar 30 08:24:00 2025]", "2025-03-30T08:24:00Z"),
    ("3: [rank3]: 2025/01/31 12:00:00", "2025-01-31T12:00:00Z"),
    ("12:00:00", None),
    ("2025-13-31 12:00:00", None),
    ("Dec  2 10:43:35", None),
]


@pytest.mark.parametrize(("head", "expected"), TIMES)
def test_a_time_is_read_only_with_a_date(head: str, expected: str | None) -> None:
    (finding,) = found_in(
        f"{head} CUDA error: out of memory RuntimeError: CUDA error: out of memory\n"
    )
    assert finding.at == (None if expected is None else from_iso(expected))
    assert finding.seen_at == NOW


def test_an_exception_is_named_by_its_type_and_the_innermost_frame_of_the_user() -> None:
    (finding,) = found_in(TRACEBACK)
    assert finding.rule == "python-exception"
    assert finding.fingerprint == "python-exception|exception=ValueError|at=run#/train.py:forward"
    assert finding.remedy is Remedy.CONFIRM_THEN_STOP
    assert finding.place is not None
    assert finding.place.line == 8
    assert finding.evidence[0].text == "Traceback (most recent call last):"
    assert finding.evidence[-1].text == "ValueError: bad batch 17"


def test_a_mistake_in_code_asks_to_stop() -> None:
    (finding,) = found_in(TRACEBACK.replace("ValueError: bad", "TypeError: bad"))
    assert finding.remedy is Remedy.STOP


def test_a_rule_that_knows_the_exception_wins_and_gets_the_frame() -> None:
    text = TRACEBACK.replace("ValueError: bad batch 17", "OSError: [Errno 116] Stale file handle")
    (finding,) = found_in(text)
    assert finding.rule == "stale-file-handle"
    assert finding.fingerprint.endswith("|at=run#/train.py:forward")


def test_tracebacks_of_several_ranks_in_one_file_are_told_apart() -> None:
    one = [f"[rank0]: {line}" for line in TRACEBACK.splitlines()]
    two = [
        f"[rank1]: {line}" for line in TRACEBACK.replace("ValueError: ", "KeyError: ").splitlines()
    ]
    text = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    found = found_in(text + "\n")
    assert [(finding.ranks, finding.remedy) for finding in found] == [
        ((0,), Remedy.CONFIRM_THEN_STOP),
        ((1,), Remedy.STOP),
    ]


QUIET = [
    ("Exception ignored in: <function f at 0x7f>\n" + TRACEBACK, "nobody sees it"),
    (TRACEBACK.replace("ValueError: bad batch 17", "SystemExit: 0"), "told to end"),
    ("INFO: fine\nSomeError: said in passing\n", "no traceback"),
]


@pytest.mark.parametrize("text", [text for text, _ in QUIET], ids=[why for _, why in QUIET])
def test_what_is_no_failure_is_not_found(text: str) -> None:
    assert rules_in(text) == []


def test_lines_of_other_loggers_do_not_end_a_traceback() -> None:
    head, _, last = TRACEBACK.rpartition("ValueError")
    assert rules_in(head + "INFO: still here\ndone\nValueError" + last) == ["python-exception"]


def test_a_job_cannot_speak_as_the_kernel() -> None:
    (finding,) = found_in("NVRM: Xid (PCI:0000:b3:00): 79, pid=1, GPU has fallen off the bus.\n")
    assert finding.provenance is Provenance.JOB_LOG


def test_a_flood_is_counted_and_thinned() -> None:
    flood = b"srun: error: Node failure on node-02\n" * 20_000
    findings, last = fed([flood])
    assert len(findings) == FIRST_FINDINGS + 9
    assert sum(finding.count for finding in findings) == 16_384
    assert list(last.state.counts.values()) == [20_000]


def test_one_endless_line_is_read_in_bounded_memory() -> None:
    state = PerceptionState()
    piece = b"x" * (1 << 20)
    began = time.monotonic()
    for number in range(20):
        state = perceive(state, [reading(piece, number << 20)], NOW, EARS).state
    assert len(msgspec.json.encode(state)) < 100_000
    found = perceive(state, [reading(b"\nsrun: error: Node failure on n\n", 20 << 20)], NOW, EARS)
    (finding,) = found.findings
    assert finding.place is not None
    assert (finding.place.offset, finding.place.line) == ((20 << 20) + 1, 2)
    assert time.monotonic() - began < 5


def test_the_tail_is_what_a_terminal_would_have_shown() -> None:
    text = b"".join(b"line %d\n" % n for n in range(300)) + b"10%\r20%\r30%\nunfinished"
    tail = perceive(PerceptionState(), [reading(text)], NOW, EARS).state.tails["out.log"]
    assert tail[-3:] == ("line 299", "30%", "unfinished")
    assert len(tail) == 201


def test_control_characters_are_not_shown() -> None:
    line = "CUDA out of memory. Tried to allocate 1.00 GiB \x07\x00\x1b]0;title\x07 1\n"
    (finding,) = found_in(line)
    assert finding.evidence[-1].text.isprintable()


def test_a_traceback_that_is_cut_off_is_told_at_the_end_with_its_frame() -> None:
    text = (
        "2: [rank2]: Traceback (most recent call last):\n"
        '2: [rank2]:   File "/home/a/train.py", line 9, in <module>\n'
        "2: [rank2]:     main()\n"
        "srun: error: node-03: task 2: Exited with exit code 1\n"
    )
    found = {one.rule: one for one in found_in(text)}
    assert set(found) == {"python-exception", "slurm-task-exited"}
    assert found["python-exception"].ranks == (2,)
    assert "train.py" in found["python-exception"].fingerprint


def test_slurms_own_daemons_are_no_nodes() -> None:
    text = (
        "slurmstepd-node-01: error: *** STEP 1.0 ON node-01 CANCELLED AT 2026-01-01T00:00:00 "
        "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
    )
    assert [one.nodes for one in found_in(text)] == [()]
