"""Who wrote a line, when, and what it says, whatever launcher or shipper carried it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.instants import Instant, from_iso
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.envelopes import MOST_LINES, unwrapped
from relight.perception.prefixes import listen
from relight.perception.reporting import report_of
from relight.perception.times import printed_time
from relight.rules.loading import load

POD = "[pod/w-0/container] died"
BODY = "CUDA error: out of memory"
VOICES = [
    ("[1,3]<stderr>:", {"rank": 3}),
    ("[prterun-node7-123@1,3]<stdout>: ", {"rank": 3}),
    ("Mon Jan  6 12:00:00 2025[5]<stderr>:", {"rank": 5}),
    ("[trainer2]: ", {"rank": None}),
    ("[default0]:[rank8]:", {"rank": 8}),
    ("3: [rank3]:", {"rank": 3, "task": 3}),
    ("[rank13]:[E218 12:54:01.1 ProcessGroupNCCL.cpp:616] [Rank 1] ", {"rank": 13}),
    ("2025-01-31T12:00:00.123456789Z stderr F [rank1]: ", {"rank": 1}),
    ("[pod/llm-worker-3/pytorch] ", {"node": "llm-worker-3"}),
    ("Jan 31 12:00:00 node07 kernel: [ 1234.567890] ", {"node": "node07"}),
    ("Jan  1 12:00:00 node07 slurmstepd[4711]: ", {"node": "node07"}),
    ("2025-01-31T12:00:00+01:00 node07 kernel: ", {"node": "node07"}),
    ("[1714560000.123456] [gpu-01:12345:0] ", {"node": "gpu-01"}),
    ("[gpu-01:12345] ", {"node": "gpu-01"}),
    ("node-002: [rank0]:", {"node": "node-002", "rank": 0}),
    ("(Worker pid=7, ip=10.0.0.3) ", {"node": "10.0.0.3"}),
    ("2025-02-18 12:54 [rank13]:", {"rank": 13}),
    ("10.0.4.22: ", {"node": "10.0.4.22"}),
    ("gpu-node-7: ", {"node": "gpu-node-7"}),
    ("2025-01-31 12:00:00,123 ", {"node": None, "rank": None}),
    ("lw-11 | [rank31]: ", {"node": "lw-11", "rank": 31}),
    ("trainer-0  | ", {"node": "trainer-0"}),
    ("12:00:00 web.1  | ", {"node": "web.1"}),
    ("rank 3 | ", {"rank": 3, "node": None}),
    ("[2025-01-31T12:00:00.123456Z] 1a2b3c4d || ", {"node": None}),
    ("[1,mpirank:9,algo-2]<stderr>:", {"rank": 9, "node": "algo-2"}),
    ("(worker1, rank=1, pid=3356, ip=10.164.0.11) ", {"rank": 1, "node": "10.164.0.11"}),
    ("[default3|11]: ", {"rank": 11}),
    ("[rank: 2] ", {"rank": 2}),
    ("[ 1234.567890] node07 kernel: ", {"node": "node07"}),
    ("2025-01-31T12:00:00+0100 node07 python[4711]: ", {"node": "node07"}),
    ("2025-01-31T12:00:00.123000+00:00 job/default/0a1b ", {"node": None}),
    ("2025-01-31 12:00:00,123 - INFO - ", {}),
    ("2025-01-31 12:00:00,123 - root - ERROR - ", {}),
    ("01/31/2025 12:00:00 - INFO - __main__ - ", {}),
    ("01/31 12:00:00 - mmengine - INFO - ", {}),
    ("INFO:root:", {}),
    ("ERROR:torch.distributed.elastic:", {}),
    ("[INFO] ", {}),
    ("[2025-01-31 12:00:00,123] [INFO] [engine.py:12:step] [Rank 7] ", {"rank": 7}),
    ("2025-01-31 12:00:00.123 | INFO     | train.loop:run:88 - ", {}),
    ("2025-01-31 12:00:00 | INFO | train_inner | ", {}),
    ("2025-01-31 12:00:00,123 [rank12] ERROR ", {"rank": 12}),
    ("2025-01-31 12:00:00,123 ERROR    trainer: ", {}),
    ("2025-01-31 12:00:00,123\tERROR tune_controller.py:1331 -- ", {}),
    ("E1210 02:31:05.123456     123 file.cc:12] ", {}),
    ("[rank3]:[E1210 02:31:05.123 ProcessGroupNCCL.cpp:568] ", {"rank": 3}),
    ("2025-01-31 12:00:00.123456: E tensorflow/core/a.cc:29] ", {}),
    ("2025-01-31T12:00:00Z INFO     [olmo.train:816, rank=5] ", {"rank": 5}),
]


@pytest.mark.parametrize(("prefix", "expected"), VOICES)
def test_a_prefix_is_peeled_and_tells_who_wrote(prefix: str, expected: dict[str, object]) -> None:
    voice = listen(prefix + BODY)
    assert voice.body == BODY
    for name, value in expected.items():
        assert getattr(voice, name) == value


@pytest.mark.parametrize(
    "line",
    [
        "2025-01-31 12:00:00 INFO trainer.py:12: started",
        "2025-01-31 12:00:00,123 ERROR torch.distributed: lost",
        "[2025-01-31 12:00:00,123] [INFO] [engine.py:12:step] done",
        "[W1018 12:00:00.1 socket.cpp:436] trying",
        "RuntimeError: rank 3 is gone",
        "step: 12 loss: 3",
        "nvidia-nvswitch2: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "mlx5_0: port 1 is down",
        "nvme0n1: I/O timeout",
        "cuda:0: out of memory",
        "step2: loss 3",
        "epoch-3 | loss 2.1",
        "0  | model | GPT | 7.0 B",
        "GPU0 | 35C | 70W",
    ],
)
def test_what_only_looks_like_a_writer_names_nobody(line: str) -> None:
    voice = listen(line)
    assert (voice.node, voice.rank, voice.task) == (None, None, None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2025-01-31T14:00:00.5+0200 x", "2025-01-31T12:00:00.5Z"),
        ("Fri Jan 31 12:00:00 2025 x", "2025-01-31T12:00:00Z"),
        ("Fri Jan  3 12:00:00 UTC 2025 x", "2025-01-03T12:00:00Z"),
        ("01/31/2025 12:00:00 - INFO - x", "2025-01-31T12:00:00Z"),
        ("31/01/2025 12:00:00 - INFO - x", None),
        ("[1738324800.250000] [gpu-01:1:0] x", "2025-01-31T12:00:00.25Z"),
        ("[2025/01/31 12:00:00] ppcls INFO: x", "2025-01-31T12:00:00Z"),
        ("[INFO|trainer.py:1721] 2025-01-31 12:00:00,123 >> x", "2025-01-31T12:00:00.123Z"),
        ("loss 1738324800.250000", None),
    ],
)
def test_a_time_is_read_in_its_own_zone(line: str, expected: str | None) -> None:
    assert printed_time(line) == (None if expected is None else from_iso(expected))


@pytest.mark.parametrize(
    ("envelope", "expected"),
    [
        ({"log": "died\n", "stream": "stderr", "time": "2025-01-31T12:00:00Z"}, "{time} died"),
        ({"message": "died", "ts": 1738324800.25, "rank": 3}, "[1738324800.250000] [rank3]: died"),
        ({"msg": "died", "hostname": "node7", "level": "error"}, "node7: died"),
        ({"textPayload": "died", "resource": {"labels": {"pod_name": "w-0"}}}, POD),
        ({"jsonPayload": {"message": "died"}, "labels": {"pod_name": "w-0"}}, POD),
        ({"log": "died", "kubernetes": {"pod_name": "w-0"}}, POD),
        ({"log": "died", "kubernetes": {"pod_name": "w-0", "host": "node7"}}, "node7: died"),
        ({"message": "died", "loss": float("nan")}, "died"),
    ],
)
def test_an_envelope_becomes_the_line_that_it_carries(
    envelope: dict[str, object], expected: str
) -> None:
    told = expected.format(time=envelope.get("time", ""))
    assert unwrapped(json.dumps(envelope).encode()) == [told.encode()]


def test_a_message_of_several_lines_becomes_several() -> None:
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x'
    lines = unwrapped(json.dumps({"message": "failed", "exc_info": traceback}).encode())
    assert lines == [b"failed", *(one.encode() for one in traceback.split("\n"))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'2025-01-31T12:00:00Z {"msg": "died"}', [b"2025-01-31T12:00:00Z died"]),
        (b'x stderr F {"msg": "a\\rb\\n"}', [b"x stderr F a", b"x stderr F b"]),
        (
            b'time="2025-01-31T12:00:00Z" level=error msg="a \\"b\\""',
            [b'2025-01-31T12:00:00Z a "b"'],
        ),
        (b'level=error msg="a\\nb\\u2501" rank=3', [b"a", "b\u2501 rank=3".encode()]),
        (
            b'ts=2025-01-31T12:00:00Z level=info caller=a.go:1 msg="died"',
            [b"2025-01-31T12:00:00Z died"],
        ),
        (b'the reply was {"msg": "died"}', [b'the reply was {"msg": "died"}']),
        (b'sent msg="died" to all', [b'sent msg="died" to all']),
    ],
)
def test_envelopes_stand_behind_prefixes_and_come_in_kinds(
    line: bytes, expected: list[bytes]
) -> None:
    assert unwrapped(line) == expected


def test_of_a_very_long_message_the_first_and_the_last_lines_are_kept() -> None:
    message = "\r".join(str(number) for number in range(1000))
    lines = unwrapped(json.dumps({"log": message}).encode())
    assert (lines[0], lines[-1], len(lines)) == (b"0", b"999", MOST_LINES)


@pytest.mark.parametrize(
    "line",
    [
        b'{"loss": 3.1, "step": 4}',
        b'{"log": ',
        b'{"log": 3}',
        b'{"log": ""}',
        b"[1, 2]",
        b"{'log': 'python'}",
        b'{"a": ' * 5000,
    ],
)
def test_what_is_no_envelope_stays_as_it_is(line: bytes) -> None:
    assert unwrapped(line) == [line]


@given(st.binary(max_size=300))
def test_any_bytes_stay_whole_or_become_lines_without_line_ends(tail: bytes) -> None:
    for line in (tail, b'{"log": "' + tail + b'"}'):
        for one in unwrapped(line.replace(b"\n", b"")):
            assert b"\n" not in one


def test_lines_in_envelopes_are_heard_as_they_were_printed() -> None:
    traceback = 'Traceback (most recent call last):\n  File "/w/a.py", line 1, in f\nValueError: x'
    lines = [
        {"log": "step 7 | loss: 2.0\n", "time": "2025-01-31T12:00:00Z"},
        {"message": "failed", "exc_info": traceback, "rank": 3, "pod": "w-0"},
        {"log": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n"},
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    attempt = AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0)
    rules = [rule for rule in load() if rule.id == "cuda-out-of-memory"]
    report = report_of(
        LogFile(file="a.log"), [data], Ears(Lexicon(rules), attempt), Instant(1_900_000_000_000_000)
    )
    heard = {one.rule: one for one in report.findings}
    places = {rule: (one.place.line, one.ranks) for rule, one in heard.items() if one.place}
    assert places == {"python-exception": (2, (3,)), "cuda-out-of-memory": (3, ())}
    assert report.runs[-1].progress.last_step == 7
