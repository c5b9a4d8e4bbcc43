"""Pickles that a flight recorder writes are read; of all others nothing is run, grown or lost."""

from __future__ import annotations

import collections
import datetime as dt
import os
import pickle
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from relight.perception.flights.decoding import decode
from relight.perception.flights.dumps import Dump, Refused
from relight.perception.flights.pickles import (
    MOST_BYTES,
    CutError,
    Limits,
    UnsafeError,
    read_pickle,
)
from relight.testing.flight_dumps import Recorders, torch_pickle

PLAIN = {
    "text": "é\n" * 100,
    "numbers": [0, -1, 255, 256, 65_536, -(2**31), 2**40, -(2**63), 2**63 - 1, 1.5, True, None],
    "pair": ("0", "default_pg"),
    "tuples": [(), (1,), (1, 2, 3), (1, 2, 3, 4)],
    "nested": {"a": [{}, [], [[1, 2], [3]]]},
    7: False,
}
PROTO = b"\x80\x04"


class Runs:
    """What a hostile user would pickle: reading it in the usual way runs a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


class Built:
    """An object of a class, with state."""

    def __init__(self) -> None:
        self.state = 1


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_are_read_as_python_reads_them(protocol: int) -> None:
    assert read_pickle(pickle.dumps(PLAIN, protocol=protocol)) == PLAIN


def test_what_pytorch_writes_is_read_as_python_reads_it() -> None:
    recorders = Recorders(4)
    for _ in range(300):
        recorders.call()
    data = recorders.pickled(3)
    assert read_pickle(data) == pickle.loads(data) == recorders.dump(3)  # noqa: S301  our own bytes
    assert read_pickle(torch_pickle({"text": "a", "none": None})) == {"text": "a", "none": None}


def test_a_pickle_that_would_run_a_command_runs_nothing(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    for protocol in range(6):
        with pytest.raises(UnsafeError):
            read_pickle(pickle.dumps({"entries": Runs(f"touch {touched}")}, protocol=protocol))
    assert not touched.exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x80\x02cos\nsystem\n.", "GLOBAL at byte 2"),
        (pickle.dumps(Built(), 4), "STACK_GLOBAL at byte"),
        (pickle.dumps(collections.OrderedDict(a=1), 2), "GLOBAL at byte 2"),
        (pickle.dumps(dt.date(2026, 1, 1), 5), "STACK_GLOBAL"),
        (PROTO + b"N)\x81.", "NEWOBJ at byte 4"),
        (PROTO + b"N}b.", "BUILD at byte 4"),
        (PROTO + b"N)R.", "REDUCE at byte 4"),
        (PROTO + b"(ios\nsystem\n.", "INST at byte 3"),
        (PROTO + b"(No.", "OBJ at byte 4"),
        (PROTO + b"\x82\x01.", "EXT1 at byte 2"),
        (PROTO + b"\x83\x01\x00.", "EXT2 at byte 2"),
        (PROTO + b"\x84\x01\x00\x00\x00.", "EXT4 at byte 2"),
        (PROTO + b"P1\n.", "PERSID at byte 2"),
        (PROTO + b"NQ.", "BINPERSID at byte 3"),
        (PROTO + b"\x97.", "NEXT_BUFFER at byte 2"),
        (pickle.dumps(bytearray(b"a"), 5), "BYTEARRAY8"),
        (pickle.dumps(b"abc", 4), "SHORT_BINBYTES"),
        (pickle.dumps({1}, 4), "EMPTY_SET"),
        (PROTO + b"N2.", "DUP at byte 3"),
        (PROTO + b"\xff.", "0xff at byte 2"),
        (b"\x80\x01N.", "protocol 1"),
        (b"\x80\x09N.", "protocol 9"),
        (pickle.dumps(2**200, 2), "a number of 26 bytes"),
        (PROTO + b"Nr\xff\xff\xff\x7f.", "under number 2147483647"),
        (PROTO + b"h\x05.", "BINGET at byte 2"),
        (PROTO + b"u.", "SETITEMS at byte 2"),
        (PROTO + b"N(NNu.", "make no table"),
        (PROTO + b"}(Nu.", "make no table"),
        (PROTO + b"N(Ne.", "belong to no list"),
        (PROTO + b"}]Ns.", "neither number nor text"),
        (PROTO + b"}NNs.", "neither number nor text"),
        (PROTO + b"]\x85.", "holds more than numbers and texts"),
        (PROTO + b"N\x85\x85.", "holds more than numbers and texts"),
        (PROTO + b"NN.", "without one value"),
        (PROTO + b"(N.", "without one value"),
        (PROTO + b"(" * 100 + b"N.", "nested more than 64 deep"),
        (PROTO + b"\x86.", "TUPLE2 at byte 2"),
        (b"x" * (MOST_BYTES + 1), "at most 33,554,432"),
    ],
)
def test_anything_but_plain_values_is_refused_with_what_stands_where(
    data: bytes, said: str
) -> None:
    with pytest.raises(UnsafeError, match=r".") as refused:
        read_pickle(data)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\x80\x02",
        PROTO + b"X\xff\xff\xff\x7fabc",
        PROTO + b"\x8d" + b"\xff" * 8 + b"abc",
        PROTO + b"\x95" + struct.pack("<Q", 2**63) + b"N.",
        PROTO + b"J\x01",
        PROTO + b"r\x01",
        PROTO + b"G\x01",
    ],
)
def test_a_pickle_that_ends_too_early_may_still_be_being_written(data: bytes) -> None:
    with pytest.raises(CutError):
        read_pickle(data)


def test_a_dump_cut_anywhere_is_half_written_and_never_read_as_whole() -> None:
    recorders = Recorders(2)
    recorders.call()
    data = recorders.pickled(0)
    for size in range(len(data)):
        told = decode(data[:size], 0)
        assert isinstance(told, Refused)
        assert told.is_cut, told.why


def test_small_pickles_that_are_huge_when_walked_cost_nothing() -> None:
    """Lists that hold the one before twice, sixty times over, and one that holds itself."""
    doubled = (
        PROTO
        + b"]\x94"
        + b"".join(b"](h" + bytes([n]) + b"h" + bytes([n]) + b"e\x94" for n in range(60))
    )
    told = decode(PROTO + b"}(X\x07\x00\x00\x00entries" + doubled[2:] + b"u.", 0)
    assert isinstance(told, Refused | Dump)
    endless = PROTO + b"}\x94(X\x07\x00\x00\x00entries](h\x00eX\x09\x00\x00\x00pg_configh\x00u."
    looped = decode(endless, 0)
    assert isinstance(looped, Dump)
    assert looped.calls == ()


@pytest.mark.parametrize(
    "filling", [b"}", b"]", b"(", b"N", b"K\x01", b"M\xff\xff", b")", b"J\1\2\3\4", b"]\x94"]
)
def test_a_flood_of_values_is_bounded(filling: bytes) -> None:
    """Each operation adds at most one value: a few hundred bytes with what remembers it."""
    limits = Limits(operations=20_000, containers=5_000)
    data = PROTO + filling * 30_000
    tracemalloc.start()
    with pytest.raises(UnsafeError):
        read_pickle(data, limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * limits.operations


@settings(max_examples=400, deadline=None)
@given(some.binary(max_size=200), some.booleans())
def test_no_bytes_break_the_reading(data: bytes, with_head: bool) -> None:  # noqa: FBT001 - drawn
    told = decode(b"\x80\x02" + data if with_head else data, 0)
    assert isinstance(told, Dump | Refused)


@settings(max_examples=80, deadline=None)
@given(some.integers(0, 10_000), some.binary(min_size=1, max_size=6))
def test_no_damage_to_a_dump_breaks_the_reading(place: int, damage: bytes) -> None:
    data = _WHOLE
    place %= len(data)
    told = decode(data[:place] + damage + data[place + len(damage) :], 0)
    assert isinstance(told, Dump | Refused)


def _whole() -> bytes:
    recorders = Recorders(2, groups={"1": [0, 1]})
    for _ in range(3):
        recorders.call()
        recorders.call("1", state="started")
    return recorders.pickled(1)


_WHOLE = _whole()
_JSON_VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8),
    lambda inner: (
        some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(
    some.fixed_dictionaries(
        {},
        optional={
            "version": _JSON_VALUES,
            "pg_status": _JSON_VALUES | some.dictionaries(some.sampled_from("012"), _JSON_VALUES),
            "pg_config": _JSON_VALUES | some.dictionaries(some.sampled_from("012"), _JSON_VALUES),
            "entries": some.lists(
                some.dictionaries(
                    some.sampled_from(
                        [
                            *("pg_id", "process_group", "collective_seq_id", "p2p_seq_id"),
                            *("profiling_name", "state", "frames", "input_sizes", "record_id"),
                        ]
                    ),
                    _JSON_VALUES,
                ),
                max_size=4,
            ),
        },
    )
)
def test_no_values_in_a_dump_break_the_reading(told: dict[str, object]) -> None:
    data = pickle.dumps(told, protocol=4)
    assert isinstance(decode(data, 0), Dump | Refused)
