"""Reads the plain values of a pickle and runs nothing: a machine of the few opcodes they need.

A pickle is a program. Of its opcodes only those are known here that build numbers, texts, None,
booleans, lists, dictionaries and tuples of such; any other ends the reading, whatever would follow.
The interpreter's own unpickler is not used behind such a check, because plain opcodes alone can
make it allocate gigabytes (a memo index), and hash a tuple that is nested a million times, which
overflows the stack of the process (docs/decisions/0013-reading-pickles.md).

Source: the opcodes and their arguments, ``pickletools`` of CPython; what PyTorch writes,
``torch/csrc/jit/serialization/pickler.cpp`` (protocol 2).
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

Plain = (
    None | bool | int | float | str | list["Plain"] | dict[object, "Plain"] | tuple["Plain", ...]
)
"""What a pickle of plain values holds. Lists and dictionaries may be shared, or hold themselves."""

MOST_BYTES: Final = 32 << 20
"""Bytes of a dump: one of 2,000 entries with their stacks has between 1 and 5 MiB."""
MOST_MARKS: Final = 64
"""How deep lists and dictionaries may be nested; a dump needs 6."""
_MOST_OF_A_NUMBER = 16
"""Bytes of one integer: times are written with 8."""
_PROTOCOLS = range(2, 6)
_UINT16 = struct.Struct("<H")
_INT32 = struct.Struct("<i")
_UINT32 = struct.Struct("<I")
_UINT64 = struct.Struct("<Q")
_DOUBLE = struct.Struct(">d")
_SCALARS: Final[frozenset[type]] = frozenset({str, int, float, bool, type(None)})
_KEYS: Final[frozenset[type]] = frozenset({str, int, float, bool, tuple})
_NAMES = {ord(one.code): one.name for one in pickletools.opcodes}


class Limits(NamedTuple):
    """How much is read: an entry takes about 150 operations, so these are 30,000 entries."""

    operations: int = 5_000_000
    containers: int = 1_000_000


LIMITS: Final = Limits()


class UnsafeError(Exception):
    """A pickle that is not read on: what stands at which byte, and why that is refused."""


class CutError(UnsafeError):
    """A pickle that ends before its end, as one does that is still being written."""


def read_pickle(data: bytes, limits: Limits = LIMITS) -> Plain:
    """Return the plain value that a pickle of protocol 2 to 5 holds.

    Time and memory are bounded by ``limits``, whatever the bytes.

    Raises:
        UnsafeError: it holds something else, or more than the bounds allow.
        CutError: it ends too early.

    """
    if len(data) > MOST_BYTES:
        raise UnsafeError(f"it has {len(data):,} bytes, and at most {MOST_BYTES:,} are read")
    return _Machine(data, limits).run()


class _Machine:
    """Runs one pickle; ``stack`` is what lies above the last mark, ``below`` what lies under it."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data = data
        self.limits = limits
        self.at = 0
        self.stack: list[Plain] = []
        self.below: list[list[Plain]] = []
        self.memo: list[Plain] = []
        self.containers = 0

    def run(self) -> Plain:
        data, known = self.data, _KNOWN
        start = 0
        try:
            for _ in range(self.limits.operations):
                start = self.at
                code = data[start]
                if code == _BINGET:  # half of all operations of a dump
                    self.at = start + 2
                    self.stack.append(self.memo[data[start + 1]])
                    continue
                if code == _STOP:
                    return self._result()
                act = known[code]
                if act is None:
                    raise self._refused(start)
                self.at = start + 1
                act(self)
        except CutError:
            raise
        except (IndexError, struct.error):
            raise self._broken(start) from None
        raise UnsafeError(f"it takes more than {self.limits.operations:,} operations to read")

    def _result(self) -> Plain:
        if len(self.stack) != 1 or self.below:
            raise UnsafeError(f"it ends at byte {self.at} without one value")
        return self.stack[0]

    def _refused(self, at: int) -> UnsafeError:
        name = _NAMES.get(self.data[at], f"0x{self.data[at]:02x}")
        return UnsafeError(
            f"it holds {name} at byte {at}: only plain values are read, and nothing is run"
        )

    def _broken(self, at: int) -> UnsafeError:
        """Return what an operation broke on: the end of the bytes, or a stack without values."""
        if at >= len(self.data) or self.at >= len(self.data):
            return CutError(f"it ends at byte {len(self.data)}, before its end")
        return UnsafeError(f"{_NAMES.get(self.data[at], 'an operation')} at byte {at} has no value")

    def take(self, size: int) -> bytes:
        start = self.at
        end = start + size
        if end > len(self.data):
            raise CutError(f"it ends at byte {len(self.data)}, before its end")
        self.at = end
        return self.data[start:end]

    def count(self) -> None:
        self.containers += 1
        if self.containers > self.limits.containers:
            raise UnsafeError(
                f"it holds more than {self.limits.containers:,} lists, tables and texts"
            )

    def put(self, index: int) -> None:
        """Remember the value on top; writers number from 0 on, so the memo has no gaps."""
        memo, value = self.memo, self.stack[-1]
        if index == len(memo):
            memo.append(value)
        elif index < len(memo):
            memo[index] = value
        else:
            raise UnsafeError(f"it remembers a value under number {index} after {len(memo)} values")

    def marked(self) -> list[Plain]:
        """Return what lies above the last mark, and go on below it."""
        values = self.stack
        self.stack = self.below.pop()
        return values

    def pack(self, values: list[Plain]) -> None:
        """Push a tuple, which holds no list, table or tuple: so its hash is cheap."""
        self.count()
        if not _SCALARS.issuperset(map(type, values)):
            raise UnsafeError(f"a tuple at byte {self.at} holds more than numbers and texts")
        self.stack.append(tuple(values))

    def set_items(self, values: list[Plain]) -> None:
        table = self.stack[-1]
        if not isinstance(table, dict) or len(values) % 2:
            raise UnsafeError(f"the values before byte {self.at} make no table")
        keys = values[::2]
        if not _KEYS.issuperset(map(type, keys)):
            raise UnsafeError(f"a key before byte {self.at} is neither number nor text")
        table.update(zip(keys, values[1::2], strict=True))

    def append(self, values: list[Plain]) -> None:
        items = self.stack[-1]
        if not isinstance(items, list):
            raise UnsafeError(f"the values before byte {self.at} belong to no list")
        items += values


_Act = Callable[[_Machine], None]
_STOP = ord(".")
_BINGET = ord("h")


def _protocol(machine: _Machine) -> None:
    version = machine.take(1)[0]
    if version not in _PROTOCOLS:
        raise UnsafeError(f"it is of protocol {version}, and 2 to 5 are read")


def _frame(machine: _Machine) -> None:
    (size,) = _UINT64.unpack(machine.take(8))
    if machine.at + size > len(machine.data):
        raise CutError(f"it announces {size:,} bytes at byte {machine.at}, and they are not there")


def _mark(machine: _Machine) -> None:
    if len(machine.below) >= MOST_MARKS:
        raise UnsafeError(f"it is nested more than {MOST_MARKS} deep at byte {machine.at}")
    machine.count()
    machine.below.append(machine.stack)
    machine.stack = []


def _long_get(machine: _Machine) -> None:
    machine.stack.append(machine.memo[_UINT32.unpack_from(machine.data, machine.at)[0]])
    machine.at += 4


def _put(machine: _Machine) -> None:
    machine.put(machine.take(1)[0])


def _long_put(machine: _Machine) -> None:
    machine.put(_UINT32.unpack(machine.take(4))[0])


def _memoize(machine: _Machine) -> None:
    machine.memo.append(machine.stack[-1])


def _int1(machine: _Machine) -> None:
    machine.stack.append(machine.data[machine.at])
    machine.at += 1


def _int2(machine: _Machine) -> None:
    machine.stack.append(_UINT16.unpack(machine.take(2))[0])


def _int4(machine: _Machine) -> None:
    machine.stack.append(_INT32.unpack(machine.take(4))[0])


def _long1(machine: _Machine) -> None:
    size = machine.take(1)[0]
    if size > _MOST_OF_A_NUMBER:
        raise UnsafeError(f"it holds a number of {size} bytes at byte {machine.at}")
    machine.stack.append(int.from_bytes(machine.take(size), "little", signed=True))


def _float(machine: _Machine) -> None:
    machine.stack.append(_DOUBLE.unpack(machine.take(8))[0])


def _text(sizes: struct.Struct) -> _Act:
    def act(machine: _Machine) -> None:
        machine.count()
        (size,) = sizes.unpack(machine.take(sizes.size))
        machine.stack.append(machine.take(size).decode(errors="replace"))

    return act


def _constant(value: Plain) -> _Act:
    return lambda machine: machine.stack.append(value)


def _empty_list(machine: _Machine) -> None:
    machine.count()
    machine.stack.append([])


def _empty_dict(machine: _Machine) -> None:
    machine.count()
    machine.stack.append({})


def _tuple_of(size: int) -> _Act:
    def act(machine: _Machine) -> None:
        values = machine.stack[-size:]
        if len(values) < size:
            raise IndexError
        del machine.stack[-size:]
        machine.pack(values)

    return act


def _append(machine: _Machine) -> None:
    machine.append([machine.stack.pop()])


def _set_item(machine: _Machine) -> None:
    value = machine.stack.pop()
    machine.set_items([machine.stack.pop(), value])


_ACTS: dict[str, _Act] = {
    "PROTO": _protocol,
    "FRAME": _frame,
    "MARK": _mark,
    "LONG_BINGET": _long_get,
    "BINPUT": _put,
    "LONG_BINPUT": _long_put,
    "MEMOIZE": _memoize,
    "BININT": _int4,
    "BININT1": _int1,
    "BININT2": _int2,
    "LONG1": _long1,
    "BINFLOAT": _float,
    "BINUNICODE": _text(_UINT32),
    "SHORT_BINUNICODE": _text(struct.Struct("<B")),
    "BINUNICODE8": _text(_UINT64),
    "NONE": _constant(None),
    "NEWTRUE": _constant(value=True),
    "NEWFALSE": _constant(value=False),
    "EMPTY_LIST": _empty_list,
    "EMPTY_DICT": _empty_dict,
    "EMPTY_TUPLE": _constant(()),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "TUPLE": lambda machine: machine.pack(machine.marked()),
    "APPEND": _append,
    "APPENDS": lambda machine: machine.append(machine.marked()),
    "SETITEM": _set_item,
    "SETITEMS": lambda machine: machine.set_items(machine.marked()),
}
_KNOWN: list[_Act | None] = [_ACTS.get(_NAMES.get(code, "")) for code in range(256)]
