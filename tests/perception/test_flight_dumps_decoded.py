"""A dump is read in every format that PyTorch has written, with what is missing left out."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import pytest

from relight.perception.flights.decoding import NEWEST, decode, decode_briefly
from relight.perception.flights.dumps import Call, Dump, Refused, Standing, State
from relight.testing.flight_dumps import Recorders, Table, as_json, torch_pickle


def read(data: bytes) -> Dump:
    told = decode(data, 3, "trace_3")
    assert isinstance(told, Dump), told
    return told


def entry(**fields: object) -> Table:
    return {
        "record_id": 0,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": 4,
        "profiling_name": "nccl:all_reduce",
        "state": "started",
        **fields,
    }


def of(*entries: Table, **fields: object) -> Dump:
    return read(pickle.dumps({"version": "2.4", "entries": list(entries), **fields}))


def test_pickle_and_json_of_the_same_recorder_tell_the_same_but_for_frames() -> None:
    recorders = Recorders(4, groups={"1": [2, 3]})
    for _ in range(4):
        recorders.call()
        recorders.call("1")
    recorders.call(state="started")
    pickled, written = read(recorders.pickled(3)), read(as_json(recorders.dump(3)))
    assert pickled.groups == written.groups
    assert pickled.standings == written.standings
    assert pickled.reach == written.reach == {"0": 5, "1": 4}
    assert pickled.is_timed
    assert pickled.calls[-1].frame == "steps.py:88 in backward_step"
    assert pickled.calls[-1].phase == "the backward pass"
    assert written.calls[-1].frame == ""
    assert [one.sequence for one in pickled.calls] == [one.sequence for one in written.calls]


def test_a_standing_is_found_by_the_number_that_this_rank_gave_its_group() -> None:
    """Rank 3 is not in group 1, so its own second group is group 2, numbered 1 by it."""
    recorders = Recorders(4, groups={"1": [0, 1], "2": [2, 3]})
    recorders.call("2")
    told = read(recorders.pickled(3))
    assert told.standings == {"2": Standing(enqueued=1, started=1, completed=1)}
    alone = {**recorders.dump(3), "entries": []}
    assert read(torch_pickle(alone)).standings == told.standings


def test_a_standing_whose_group_nothing_tells_is_left_out() -> None:
    status = {"1": {"last_enqueued_collective": 3}}
    config = {"a1b2": {"name": "a1b2", "desc": "tp", "ranks": "[0, 1]"}}
    assert of(pg_status=status, pg_config=config).standings == {}


@pytest.mark.parametrize(
    ("fields", "group"),
    [
        ({}, "0"),
        ({"process_group": ["7", "tp"]}, "7"),
        ({"process_group": "7"}, "7"),
        ({"process_group": ("7",)}, "7"),
        ({"process_group": None, "pg_id": 5}, "5"),
        ({"process_group": None, "pg_id": ("5", "tp")}, ""),
    ],
)
def test_a_group_may_be_told_as_pair_text_or_number(fields: Table, group: str) -> None:
    assert of(entry(**fields)).calls[0].group == group


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (4, State.STARTED)),
        ({"collective_seq_id": None, "seq_id": 9}, (9, State.STARTED)),
        ({"collective_seq_id": "12"}, (12, State.STARTED)),
        ({"state": "strange"}, (4, State.SCHEDULED)),
        ({"state": None}, (4, State.SCHEDULED)),
        ({"state": "completed", "input_sizes": "no list"}, (4, State.COMPLETED)),
    ],
)
def test_an_entry_of_an_older_or_stranger_format_is_read_as_far_as_it_goes(
    fields: Table, expected: tuple[int, State]
) -> None:
    call = of(entry(**fields)).calls[0]
    assert (call.sequence, call.state) == expected


def test_sends_and_receives_tell_who_with_whom() -> None:
    sent, received = of(
        entry(profiling_name="nccl:send 1->2", p2p_seq_id=5),
        entry(profiling_name="nccl:recv 3<-0", p2p_seq_id=6),
    ).calls
    assert (sent.name, sent.source, sent.target, sent.sequence) == ("send", 1, 2, 5)
    assert (received.name, received.source, received.target) == ("recv", 0, 3)


def test_entries_without_use_are_left_out() -> None:
    told = of(entry(collective_seq_id=None), {}, {"record_id": "x", "frames": [1, {}, None]})
    assert told.calls == ()


def test_of_many_entries_the_newest_and_all_that_are_open_are_kept() -> None:
    recorders = Recorders(1, ring=5_000)
    recorders.call(state="started")
    for _ in range(3_000):
        recorders.call()
    told = read(recorders.pickled(0))
    assert len(told.calls) == NEWEST + 1
    assert told.calls[0].state is State.STARTED
    assert told.calls[-1].sequence == 3_001
    assert told.entries == 3_001


def test_long_texts_are_cut_and_numbers_beyond_64_bits_left_out() -> None:
    call: Call = of(
        entry(profiling_name="nccl:" + "x" * 10_000, time_created_ns=2**70, input_sizes=[[1] * 999])
    ).calls[0]
    assert len(call.name) <= 200
    assert call.created_ns == 0
    assert len(call.sizes) <= 200


@pytest.mark.parametrize(
    ("data", "said", "is_cut"),
    [
        (b"", "empty", True),
        (b"\0\0\0\0", "empty", True),
        (b'{"entries": [', "cut short", True),
        (b"step 1 loss 2.5", "neither a pickle nor JSON", False),
        (b"[1, 2]", "neither a pickle nor JSON", False),
        (b'{"entries": oops}', "no JSON", False),
        (b'{"entries": NaN}', "no JSON", False),
        (b'{"a": 1}', "nothing that a flight recorder writes", False),
        (b'{"a": "\xff"}', "no", False),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested", False),
        (b"{" + b"[" * 2_000_001, "larger than", False),
        (pickle.dumps([1]), "no table", False),
    ],
)
def test_what_is_no_dump_is_refused_with_the_reason(data: bytes, said: str, is_cut: bool) -> None:  # noqa: FBT001 - a column
    told = decode(data, 3)
    assert isinstance(told, Refused)
    assert said in told.why
    assert told.is_cut is is_cut


def test_json_with_nothing_but_the_status_is_enough() -> None:
    told = read(
        json.dumps(
            {
                "version": "2.5",
                "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
                "pg_status": {
                    "0": {
                        "last_enqueued_collective": "12",
                        "last_started_collective": "-1",
                        "last_completed_collective": "11",
                    }
                },
            }
        ).encode()
    )
    assert told.standings == {"0": Standing(enqueued=12, started=-1, completed=11)}
    assert not told.is_timed


@pytest.mark.parametrize("write", [torch_pickle, lambda told: pickle.dumps(told, protocol=2)])
def test_a_brief_look_tells_how_far_a_rank_has_come_and_when(
    write: Callable[[Table], bytes],
) -> None:
    recorders = Recorders(4, groups={"1": [0, 1], "2": [2, 3]})
    recorders.call("2")
    for _ in range(2_000):
        recorders.call()
    data = write(recorders.dump(3))
    brief, whole = decode_briefly(data, 3), read(data)
    assert brief is not None
    assert (brief.standings, brief.groups) == (whole.standings, whole.groups)
    assert brief.calls == ()
    assert abs(brief.newest_ns - whole.newest_ns) < 1_000


def test_a_brief_look_is_not_enough_where_calls_are_needed() -> None:
    paired = Recorders(4, groups={"1": range(4)})
    paired.call()
    paired.pair("1", 0, "send", (0, 1))
    assert decode_briefly(paired.pickled(0), 0) is None
    hashed = Recorders(2, groups={"a1b2": [0, 1]})
    hashed.call("a1b2")
    assert decode_briefly(hashed.pickled(0), 0) is None
    whole = Recorders(2)
    whole.call()
    assert decode_briefly(as_json(whole.dump(0)), 0) is None
    assert decode_briefly(whole.pickled(0)[:60], 0) is None
    assert decode_briefly(b"\x80\x02X\x07\0\0\0entries", 0) is None
    assert decode_briefly(b"\x80\x02cos\nsystem\nX\x07\0\0\0entries", 0) is None
