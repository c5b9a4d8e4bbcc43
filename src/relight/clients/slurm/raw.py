"""The commands' JSON as it comes, in the shapes of every release since 22.05.

Numbers are plain, null where unset, or ``{"set", "infinite", "number"}``; a state is a word
or a list of words; an exit code is a wait status or an object.
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

_NO_VALUE_16 = 0xFFFE
_NO_VALUE = 0xFFFFFFFE
"""From here on an integer of 22.05 means infinite or unset (slurm.h: NO_VAL, INFINITE)."""


class RawNumber(msgspec.Struct):
    """A number since 23.02."""

    set: bool = True
    infinite: bool = False
    number: int | float = 0


_Kind = TypeVar("_Kind")

Number = int | float | RawNumber | None


class RawSignal(msgspec.Struct):
    """The signal in an exit code; ``signal_id`` in releases before 23.11."""

    id: Number = None
    signal_id: Number = None


class RawExit(msgspec.Struct):
    """An exit code since 23.02."""

    return_code: Number = None
    signal: RawSignal | None = None


class RawJob(msgspec.Struct):
    """One job of ``squeue --json``: the fields that relight uses."""

    job_id: Number
    job_state: str | list[str]
    array_job_id: Number = None
    array_task_id: Number = None
    array_task_string: str | None = ""
    het_job_id: Number = None
    het_job_offset: Number = None
    user_name: str | None = ""
    user_id: Number = None
    account: str | None = ""
    partition: str | None = ""
    name: str | None = ""
    comment: str | None = ""
    admin_comment: str | None = ""
    state_reason: str | None = ""
    state_description: str | None = ""
    hold: bool = False
    priority: Number = None
    restart_cnt: Number = 0
    nodes: str | None = ""
    node_count: Number = None
    tasks: Number = None
    tasks_per_node: Number = None
    tres_per_node: str | None = ""
    tres_per_job: str | None = ""
    tres_per_task: str | None = ""
    tres_alloc_str: str | None = ""
    tres_req_str: str | None = ""
    submit_time: Number = None
    eligible_time: Number = None
    start_time: Number = None
    end_time: Number = None
    exit_code: int | RawExit | None = None
    requeue: bool | int = True
    batch_flag: bool | int = True
    excluded_nodes: str | None = ""
    required_nodes: str | None = ""
    standard_output: str | None = ""
    standard_error: str | None = ""
    stdout_expanded: str | None = ""
    stderr_expanded: str | None = ""
    current_working_directory: str | None = ""
    time_limit: Number = None
    dependency: str | None = ""

    @property
    def id(self) -> str:
        """Return the id as ``squeue`` lists it; a whole waiting array has its bare number."""
        array, task = whole(self.array_job_id), whole(self.array_task_id)
        if array and task is not None:
            return f"{array}_{task}"
        if het := whole(self.het_job_id):
            return f"{het}+{whole(self.het_job_offset) or 0}"
        return str(whole(self.job_id))


class RawNode(msgspec.Struct):
    """One node of ``scontrol show nodes --json``, or of ``sinfo --json`` before 23.02."""

    name: str
    state: str | list[str]
    state_flags: list[str] = msgspec.field(default_factory=list)
    reason: str | None = ""
    reason_set_by_user: str | None = ""
    reason_changed_at: Number = None
    boot_time: Number = None
    partitions: list[str] | None = None
    gres: str | None = ""


class _Answer(msgspec.Struct):
    jobs: list[msgspec.Raw] | None = None
    nodes: list[msgspec.Raw] | None = None


def whole(number: Number) -> int | None:
    """Return a number as an integer, None where it is unset or infinite."""
    if isinstance(number, RawNumber):
        return int(number.number) if number.set and not number.infinite else None
    if number is None or number >= _NO_VALUE:
        return None
    return int(number)


def small(number: Number) -> int | None:
    """Return a number that 22.05 keeps in 16 bits, None where it is unset or infinite."""
    value = whole(number)
    return None if value is None or value >= _NO_VALUE_16 else value


def decode_jobs(output: bytes) -> tuple[list[RawJob], int]:
    """Return the jobs of an answer, and how many of its records could not be read.

    Raises:
        msgspec.DecodeError: the answer is no JSON, or no answer about jobs.

    """
    records = _decode(output).jobs
    if records is None:
        raise msgspec.ValidationError("the answer has no list of jobs")
    return _each(records, RawJob)


def decode_nodes(output: bytes) -> tuple[list[RawNode], int]:
    """Return the nodes of an answer, and how many of its records could not be read.

    Raises:
        msgspec.DecodeError: the answer is no JSON, or no answer about nodes.

    """
    records = _decode(output).nodes
    if records is None:
        raise msgspec.ValidationError("the answer has no list of nodes")
    return _each(records, RawNode)


def _decode(output: bytes) -> _Answer:
    """Decode an envelope, also when a name in it is no UTF-8 or a number is none in JSON.

    Slurm prints what the user gave, and a float as C does.
    """
    try:
        output.decode()
    except UnicodeDecodeError:
        output = output.decode(errors="replace").encode()
    try:
        try:
            return msgspec.json.decode(output, type=_Answer)
        except msgspec.DecodeError:
            if b"NaN" not in output and b"Infinity" not in output:
                raise
            return msgspec.json.decode(_without_constants(output), type=_Answer)
    except RecursionError as error:
        raise msgspec.DecodeError("the answer is nested too deeply") from error


def _without_constants(output: bytes) -> bytes:
    """Return an answer with null for NaN and Infinity, which are no JSON."""
    try:
        return msgspec.json.encode(json.loads(output, parse_constant=lambda _: None))
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from error


def _each(records: list[msgspec.Raw], kind: type[_Kind]) -> tuple[list[_Kind], int]:
    decoder = msgspec.json.Decoder(kind)
    read: list[_Kind] = []
    for record in records:
        try:
            read.append(decoder.decode(record))
        except (msgspec.DecodeError, RecursionError):
            continue
    return read, len(records) - len(read)
