"""Three-valued looking: what was asked for was seen, or it could not be seen.

Law 1: no answer is not an answer. Whoever asks the world gets ``Seen(value)`` or
``Unseen(why)`` and has to handle both; an empty answer is a value, a failed one never is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Seen(Generic[Value]):
    """The world answered with ``value``."""

    value: Value


@dataclass(frozen=True, slots=True)
class Unseen:
    """The world did not answer; ``why`` is one plain sentence for the operator."""

    why: str
