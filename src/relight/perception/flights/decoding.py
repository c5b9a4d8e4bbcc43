"""From the bytes of one dump to a ``Dump``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from relight.perception.flights.dumps import Call, Dump, Group, Refused, Standing, State
from relight.perception.flights.frames import told_by
from relight.perception.flights.pickles import MOST_BYTES, CutError, UnsafeError, read_pickle

NEWEST = 128
"""Completed calls kept of one dump, and as many others: what is compared is how it ended."""
MOST_ENTRIES = 100_000
MOST_GROUPS = 4_096
"""Groups of one rank: tensor, pipeline, data and expert parallel ones are a few dozen."""
_MOST_BRACKETS = 2_000_000
_LONGEST = 200
_MOST_MEMBERS = 100_000
_PICKLE = b"\x80"
_INTEGER = re.compile(r"-?\d{1,18}")
_RANK = re.compile(r"\d{1,7}")
_PAIR = re.compile(r"(send|recv) (\d{1,7})(->|<-)(\d{1,7})")
_HIGHEST = 2**63
_HEAD = 64
_ENTRIES = (b"X\x07\x00\x00\x00entries", b"\x8c\x07entries")
"""The key of the calls, which comes last, as pickles of protocol 2 and of 4 write it."""
_CLOSED = b"u."
"""What ends the table that stands open before that key."""
_PAIRS = (b":send ", b":recv ")
_TAIL = 4_096
_TIME = re.compile(rb"\x8a\x08(.{8})", re.DOTALL)
_TIMES = range(10**18, 2 * 10**18 + 1)
"""Nanoseconds since 1970 of the years 2001 to 2033."""


def decode(data: bytes, rank: int, file: str = "") -> Dump | Refused:
    """Return what the bytes of the dump of global rank ``rank`` tell, or why they are not read."""
    try:
        return _dump(_plain(data), rank, file)
    except CutError as error:
        return Refused(rank=rank, file=file, why=str(error), is_cut=True)
    except UnsafeError as error:
        return Refused(rank=rank, file=file, why=str(error))


def decode_briefly(data: bytes, rank: int, file: str = "") -> Dump | None:
    """Return how far a rank has come in its groups, without its calls, None if that is too little.

    It takes a hundredth of the time of ``decode``. It is too little where a group's name has to be
    looked up among the calls, and where there are sends and receives, whose sequences are mixed
    with those of collectives in what is told of a group.
    """
    at = next((at for word in _ENTRIES if (at := data.find(word)) > 0), 0)
    if not at or any(word in data for word in _PAIRS):
        return None
    try:
        told = read_pickle(data[:at] + _CLOSED)
    except UnsafeError:
        return None
    if not isinstance(told, dict):
        return None
    dump = _dump({**told, "entries": []}, rank, file)
    if not dump.standings or len(dump.standings) < len(_table(told.get("pg_status"))):
        return None
    times = [int.from_bytes(one, "little") for one in _TIME.findall(data[-_TAIL:])]
    return msgspec.structs.replace(
        dump, newest_ns=max((one for one in times if one in _TIMES), default=0)
    )


def is_dump(data: bytes) -> bool:
    """Tell whether bytes begin like a dump, which other files in a folder of dumps do not."""
    return data.startswith(_PICKLE) or data[:_HEAD].lstrip().startswith(b"{")


def _plain(data: bytes) -> Mapping[object, object]:
    if not data.strip(b" \t\r\n\0"):
        raise CutError("it is empty")
    is_pickle = data.startswith(_PICKLE)
    value = read_pickle(data) if is_pickle else _json(data)
    if not isinstance(value, dict):
        raise UnsafeError("it holds no table, as the dump of a flight recorder does")
    return value


def _json(data: bytes) -> object:
    if not data.lstrip().startswith(b"{"):
        raise UnsafeError("it is neither a pickle nor JSON")
    if len(data) > MOST_BYTES or data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        raise UnsafeError("it is larger than the dump of any flight recorder")
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        if "truncated" in str(error):
            raise CutError("it is cut short") from None
        raise UnsafeError(f"it is no JSON: {error}") from None
    except RecursionError:
        raise UnsafeError("it is nested too deep") from None
    except UnicodeDecodeError:
        raise UnsafeError("it holds what is no text") from None


def _dump(told: Mapping[object, object], rank: int, file: str) -> Dump:
    if not {"pg_status", "pg_config", "entries"} & set(told):
        raise UnsafeError("it holds nothing that a flight recorder writes")
    listed = told.get("entries")
    entries = listed[-MOST_ENTRIES:] if isinstance(listed, list) else []
    tables = [one for one in entries if isinstance(one, dict)]
    statuses = _table(told.get("pg_status"))
    calls = tuple(_newest(tables))
    groups = {one.name: one for one in _groups(_table(told.get("pg_config")), tables)}
    standings = _standings(statuses, _names_of_ids(tables, groups), groups)
    return Dump(
        rank=rank,
        file=file,
        version=_text(told.get("version")),
        groups=groups,
        standings=standings,
        calls=calls,
        reach=_reach(tables),
        first_record=_number(tables[0].get("record_id")) or 0 if tables else 0,
        entries=len(tables),
        is_timed=_is_timed(standings, tables),
        newest_ns=max((one.created_ns for one in calls), default=0),
    )


def _groups(
    told: Mapping[object, object], entries: Sequence[Mapping[object, object]]
) -> Iterator[Group]:
    """Return the groups of the table, before them those that only entries name."""
    for name, about in dict.fromkeys(map(_named, entries)):
        yield Group(name=name, about=about)
    for key, value in list(told.items())[:MOST_GROUPS]:
        table = _table(value)
        yield Group(
            name=_text(table.get("name")) or _text(key),
            about=_text(table.get("desc")),
            ranks=_members(table.get("ranks")),
        )


def _members(value: object) -> tuple[int, ...]:
    """Return the ranks of ``[0, 1]``, written as a text or as a list."""
    if isinstance(value, str):
        return _ranks_in(value)
    if isinstance(value, list | tuple):
        found = (_number(one) for one in value[:_MOST_MEMBERS])
        return tuple(sorted({one for one in found if one is not None and one >= 0}))
    return ()


@lru_cache(maxsize=1_024)  # every rank of a group writes the same text
def _ranks_in(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(one) for one in _RANK.findall(text)[:_MOST_MEMBERS]}))


def _names_of_ids(
    entries: Sequence[Mapping[object, object]], groups: Mapping[str, Group]
) -> dict[int, str]:
    """Return which group a rank's own numbers of groups stand for.

    ``pg_status`` is by a number that each rank counts up by itself, so that the same group bears
    another one elsewhere; entries tell number and name. A group of which no entry is left is told
    by its number in the order of creation, in which PyTorch counts its names too, where nothing
    that entries tell contradicts it.
    """
    told: dict[int, str] = {}
    for entry in entries:
        number = _number(entry.get("pg_id"))
        if number is not None:
            told[number] = _named(entry)[0]
    if all(_INTEGER.fullmatch(name) for name in groups):
        counted = dict(enumerate(sorted(groups, key=int)))
        if all(counted.get(number) == name for number, name in told.items()):
            return counted
    return told


def _standings(
    statuses: Mapping[object, object], names: Mapping[int, str], groups: Mapping[str, Group]
) -> dict[str, Standing]:
    found = {}
    for key, value in list(statuses.items())[:MOST_GROUPS]:
        number = _number(key)
        name = names.get(number, "") if number is not None else ""
        name = name or (_text(key) if number is None and _text(key) in groups else "")
        table = _table(value)
        if name and table:
            found[name] = Standing(
                enqueued=_number(table.get("last_enqueued_collective")),
                started=_number(table.get("last_started_collective")),
                completed=_number(table.get("last_completed_collective")),
            )
    return found


def _newest(entries: Sequence[Mapping[object, object]]) -> list[Call]:
    """Return the newest calls of each sort in the order in which they were made."""
    left = {True: NEWEST, False: NEWEST}
    kept = []
    for entry in reversed(entries):
        is_done = _state(entry) is State.COMPLETED
        if left[is_done] and (call := _call(entry)) is not None:
            left[is_done] -= 1
            kept.append(call)
        if not any(left.values()):
            break
    return kept[::-1]


def _call(entry: Mapping[object, object]) -> Call | None:
    """Return one entry as a call; None where it has no sequence (a format before 2.0 had one)."""
    name = _text(entry.get("profiling_name")).rpartition(":")[2]
    pair = _PAIR.match(name)
    sequence = _sequence(entry)
    if pair is not None:
        sequence = _number(entry.get("p2p_seq_id")) or 0
    if sequence is None:
        return None
    frames = entry.get("frames")
    frame, phase = told_by(frames if isinstance(frames, list) else [])
    ends = None
    if pair is not None:
        ends = (int(pair[2]), int(pair[4])) if pair[3] == "->" else (int(pair[4]), int(pair[2]))
    return Call(
        group=_named(entry)[0],
        sequence=sequence,
        name=name.partition(" ")[0],
        state=_state(entry),
        record=_number(entry.get("record_id")) or 0,
        created_ns=_number(entry.get("time_created_ns")) or 0,
        sizes=_sizes(entry.get("input_sizes")),
        outputs=_sizes(entry.get("output_sizes")),
        types=_sizes(entry.get("input_dtypes")),
        source=ends[0] if ends else None,
        target=ends[1] if ends else None,
        frame=frame,
        phase=phase,
    )


def _sequence(entry: Mapping[object, object]) -> int | None:
    number = _number(entry.get("collective_seq_id"))
    return number if number is not None else _number(entry.get("seq_id"))


def _reach(entries: Sequence[Mapping[object, object]]) -> dict[str, int]:
    reach: dict[str, int] = {}
    for entry in entries:
        number = _sequence(entry)
        if number is not None and not _is_pair(entry):
            name = _named(entry)[0]
            reach[name] = max(reach.get(name, number), number)
    return reach


def _is_pair(entry: Mapping[object, object]) -> bool:
    return (
        entry.get("is_p2p") is True or _PAIR.search(_text(entry.get("profiling_name"))) is not None
    )


def _is_timed(
    standings: Mapping[str, Standing], entries: Sequence[Mapping[object, object]]
) -> bool:
    if any((one.started or -1) > 0 for one in standings.values()):
        return True
    return any(entry.get("state") == State.STARTED for entry in entries)


def _named(entry: Mapping[object, object]) -> tuple[str, str]:
    """Return the name of an entry's group and what it is for."""
    told = entry.get("process_group")
    if isinstance(told, tuple | list) and told:
        return _text(told[0]), _text(told[1]) if len(told) > 1 else ""
    if told is not None:
        return _text(told), ""
    return _text(entry.get("pg_id")), ""


def _state(entry: Mapping[object, object]) -> State:
    told = entry.get("state")
    return State(told) if isinstance(told, str) and told in set(State) else State.SCHEDULED


def _sizes(value: object) -> str:
    """Return ``[[2, 3]]`` as ``2x3``, several with commas, cut; nothing nested is walked into."""
    if not isinstance(value, list | tuple):
        return ""
    parts = []
    for one in value[:_MOST_SIZES]:
        if isinstance(one, list | tuple):
            numbers = (_number(size) for size in one[:_MOST_SIZES])
            parts.append("x".join("?" if size is None else str(size) for size in numbers))
        else:
            parts.append(_text(one))
    return ", ".join(parts)[:_LONGEST]


_MOST_SIZES = 16


def _table(value: object) -> Mapping[object, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value[:_LONGEST]
    return str(value) if isinstance(value, int) and abs(value) < _HIGHEST else ""


def _number(value: object) -> int | None:
    """Return a number of 64 bits; JSON writes those of ``pg_status`` as texts."""
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < _HIGHEST else None
