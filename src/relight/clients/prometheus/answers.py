"""What a metrics server answers, checked and bounded.

Source of the shapes: Prometheus, "HTTP API" (https://prometheus.io/docs/prometheus/latest/querying/api/).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from relight.clients.prometheus.errors import AnswerTooLarge, QueryRefused, ServerFailed
from relight.model.instants import Instant, from_unix
from relight.model.records import Record
from relight.model.telemetry import Sample

NAME = "__name__"
"""The label that holds the name of the metric."""

_MOST_LABELS = 64
_LONGEST_LABEL = 1_024
_MOST_WARNINGS = 5
_LONGEST_WARNING = 300
_FAR = 1e11
"""Seconds since 1970 that no clock shows (the year 5138): beyond it an instant cannot be told."""


class Bounds(Record, frozen=True, kw_only=True):
    """How many series and samples of one answer are taken; more is refused."""

    series: int = 100_000
    samples: int = 2_000_000


class Row(Record, frozen=True, kw_only=True):
    """One series of an answer: its labels, ``__name__`` among them, and its samples in order."""

    labels: dict[str, str]
    samples: tuple[Sample, ...]

    @property
    def metric(self) -> str:
        """Return the name of the metric, empty where the query took it away."""
        return self.labels.get(NAME, "")


class Answer(Record, frozen=True, kw_only=True):
    """The series of one answer, and what the server said beside them.

    ``is_partial`` says that the server warned: what is missing may well exist. ``dropped`` counts
    the series that could not be read.
    """

    rows: tuple[Row, ...] = ()
    warnings: tuple[str, ...] = ()
    is_partial: bool = False
    dropped: int = 0


class _Data(msgspec.Struct):
    resultType: str = ""  # noqa: N815 - as the API names it
    result: list[msgspec.Raw] = []


class _Envelope(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    errorType: str = ""  # noqa: N815 - as the API names it
    error: str = ""
    warnings: list[str] = []
    isPartial: bool = False  # noqa: N815 - as VictoriaMetrics names it


class _RawRow(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


_ENVELOPES = msgspec.json.Decoder(_Envelope)
_ROWS = msgspec.json.Decoder(_RawRow)


def read_answer(body: bytearray, url: str, bounds: Bounds) -> Answer:
    """Return the vector or matrix that a body holds.

    What is no number (NaN, infinite, the marks of staleness among them) is left out, and so is
    a sample that is not later than the one before it. A series that cannot be read is counted
    and left out.

    Raises:
        ServerFailed: the body is no such answer.
        QueryRefused: the server says so in it.
        AnswerTooLarge: it has more series or samples than ``bounds`` allow.

    """
    envelope = _envelope(body, url)
    if envelope.status != "success":
        told = plain(f"{envelope.errorType}: {envelope.error}")
        raise QueryRefused(f"{url} refused the query ({told})")
    if envelope.data.resultType not in ("vector", "matrix"):
        kind = plain(envelope.data.resultType)
        raise ServerFailed(f"{url} answered with a {kind!a} where series were asked for")
    if len(envelope.data.result) > bounds.series:
        raise AnswerTooLarge(
            f"{url} answered with {len(envelope.data.result)} series, more than {bounds.series}: "
            "narrow the query"
        )
    rows = tuple(_rows(envelope.data.result, url, bounds.samples))
    return Answer(
        rows=rows,
        warnings=tuple(plain(text) for text in envelope.warnings[:_MOST_WARNINGS]),
        is_partial=envelope.isPartial or bool(envelope.warnings),
        dropped=len(envelope.data.result) - len(rows),
    )


def refusal(body: bytearray) -> str:
    """Return what a server says of a request that failed, as one short line."""
    try:
        envelope = _ENVELOPES.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return plain(bytes(body[: 4 * _LONGEST_WARNING]).decode(errors="replace"))
    return plain(envelope.error or envelope.errorType)


def plain(text: str) -> str:
    """Return a text of the server as one short line of printable ASCII."""
    line = " ".join(text[: 4 * _LONGEST_WARNING].split())[:_LONGEST_WARNING]
    return ascii(line)[1:-1]


def _envelope(body: bytearray, url: str) -> _Envelope:
    try:
        return _ENVELOPES.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        start = plain(bytes(body[:120]).decode(errors="replace"))
        raise ServerFailed(
            f'{url} answered with something else than metrics ("{start}"; {plain(str(error))}): '
            "check that the url is the server's own and that no proxy stands before it"
        ) from error


def _rows(found: Iterable[msgspec.Raw], url: str, most: int) -> Iterable[Row]:
    instants: dict[float, Instant] = {}
    left = most
    for raw in found:
        try:
            row = _ROWS.decode(raw)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        if not _is_sane(row.metric):
            continue
        told = row.values if row.value is None else [row.value]
        left -= len(told)
        if left < 0:
            raise AnswerTooLarge(
                f"{url} answered with more than {most} samples: ask for fewer series or a shorter "
                "time"
            )
        yield Row(labels=row.metric, samples=tuple(_samples(told, instants)))


def _is_sane(labels: dict[str, str]) -> bool:
    return len(labels) <= _MOST_LABELS and all(
        len(name) <= _LONGEST_LABEL and len(value) <= _LONGEST_LABEL
        for name, value in labels.items()
    )


def _samples(told: list[tuple[float, str]], instants: dict[float, Instant]) -> Iterable[Sample]:
    """Yield what is a number; all series share their instants, which are the same objects."""
    before = -math.inf
    for at, text in told:
        try:
            value = float(text)
        except ValueError:
            continue
        if not (before < at < _FAR and math.isfinite(value)):
            continue
        before = at
        instant = instants.get(at)
        if instant is None:
            instant = instants[at] = from_unix(at)
        yield Sample(at=instant, value=value)
