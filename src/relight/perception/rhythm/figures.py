"""Reads the numbers beside a step: loss, gradient norm, loss scale, the wait for data.

Every line that tells a step is read, so words are looked for first, and expressions are only
tried where one stands.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = r"(-?(?:\d[\d.]{0,30}(?:e[-+]?\d{1,3})?|nan|inf(?:inity)?)(?![a-z]))"
_IS = r"[\"')]{0,2}(?:, \"value\")?[:=\s|]{1,6}[\"'(]?(?:tensor\()?"
_OF_LOSS = re.compile(rf"(?:/tok|/mean|/train/total| train| value)?{_IS}{_NUMBER}")
_AFTER = re.compile(rf"{_IS}{_NUMBER}")
_OF_DATA = re.compile(
    r"(?:\bdata(?:_time|_cost)?|reader_cost|\bdata loading \(s\)|\biter_time)"
    rf"[:=\s]{{1,4}}{_NUMBER}"
)
_OF_BATCHES = re.compile(r"batch-generator \.*: \(([\d.]{1,20})(?:, ([\d.]{1,20}))?\)")
_SCALE = re.compile(
    rf"(?:reducing to|loss scale to|loss[ _]scale{_IS}|attempted loss scale:) {{0,4}}{_NUMBER}"
)
_BEFORE = 14
_MOST_DATA = 1e6


class Figures(NamedTuple):
    """The numbers of one line, None where it tells none; losses and norms may be no number."""

    loss: float | None = None
    grad_norm: float | None = None
    scale: float | None = None
    data_seconds: float | None = None


def figures_in(line: str) -> Figures:
    """Return the numbers that a progress line tells beside its step."""
    low = line.lower()
    return Figures(
        loss=_loss(low),
        grad_norm=_grad_norm(low) if "norm" in low else None,
        scale=_found(_SCALE, low) if "scale" in low else None,
        data_seconds=data_in(low),
    )


def scale_in(line: str) -> float | None:
    """Return the loss scale that is left after the overflow that a line tells of."""
    found = _SCALE.findall(line.lower())
    return _number(found[-1]) if found else None


def data_in(low: str) -> float | None:
    """Return the seconds that a step has waited for data, as a line in small letters tells."""
    if "batch-generator" in low:
        match = _OF_BATCHES.search(low)
        milliseconds = None if match is None else _number(match[2] or match[1])
        return None if milliseconds is None else milliseconds / 1000
    if "data" not in low and "reader_cost" not in low and "iter_time" not in low:
        return None
    seconds = _found(_OF_DATA, low)
    return seconds if seconds is not None and 0 <= seconds < _MOST_DATA else None


def _loss(low: str) -> float | None:
    at = low.find("loss")
    while at >= 0:
        match = _OF_LOSS.match(low, at + 4)
        if match is not None and not _is_of_others(low[max(0, at - _BEFORE) : at]):
            return _number(match[1])
        at = low.find("loss", at + 4)
    return None


def _is_of_others(before: str) -> bool:
    """Return whether what stands before a loss says that it is another than that of training."""
    name = before[max(before.rfind(","), before.rfind("|"), before.rfind(";")) + 1 :]
    return "val" in name or "test" in name


def _grad_norm(low: str) -> float | None:
    at = low.find("norm")
    while at >= 0:
        match = _AFTER.match(low, at + 4)
        if match is not None and "param" not in low[max(0, at - _BEFORE) : at]:
            return _number(match[1])
        at = low.find("norm", at + 4)
    return None


def _found(expression: re.Pattern[str], low: str) -> float | None:
    match = expression.search(low)
    return None if match is None else _number(match[1])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
