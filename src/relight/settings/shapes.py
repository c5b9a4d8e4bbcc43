"""What a value may be: one small class for each, which reads it, or refuses it and says why.

``read`` takes what TOML gave and returns it as plain builtins, spans as microseconds;
``from_text`` takes an environment variable's text and returns what TOML would have given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from relight.model.instants import parse_span, show_span
from relight.policy.opt_in import did_you_mean, quoted

_MOST_TEXT = 4_096
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SPAN_CHARACTERS = 40
_MOST_BITS = 64


class RefusedError(ValueError):
    """A value that its key does not allow; the message says what it is instead."""


class Shape(Protocol):
    """What every kind of value can do."""

    @property
    def allowed(self) -> str:
        """Return in words which values are allowed."""
        ...

    def read(self, raw: object) -> object:
        """Return the value.

        Raises:
            RefusedError: the value is not allowed.

        """
        ...

    def from_text(self, text: str) -> object:
        """Return what TOML would have given for an environment variable's text."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is not empty; ``pattern`` limits it, and ``words`` say how."""

    words: str = "a text"
    pattern: str = r".+"

    @property
    def allowed(self) -> str:
        """Return in words which values are allowed."""
        return self.words

    def read(self, raw: object) -> str:
        """Return the text, which has no line breaks and no other control characters."""
        text = _text(raw)
        if not text:
            raise RefusedError("is empty")
        if not text.isprintable():
            raise RefusedError("holds characters that cannot be printed")
        if re.fullmatch(self.pattern, text) is None:
            raise RefusedError(f"is {quoted(text)}")
        return text

    def from_text(self, text: str) -> object:
        """Return the text as it is."""
        return text


FOLDER = Text(words="an absolute path of a folder", pattern=r"/.*")
FILE = Text(words="an absolute path of a file", pattern=r"/.*")


@dataclass(frozen=True, slots=True)
class Word:
    """One of a closed list; ``later`` are words that have a meaning but do nothing yet."""

    choices: tuple[str, ...]
    later: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """Return in words which values are allowed."""
        return " or ".join(f'"{choice}"' for choice in self.choices)

    def read(self, raw: object) -> str:
        """Return the word."""
        text = _text(raw)
        if text in self.later:
            raise RefusedError(f'is "{text}", which relight cannot do yet')
        if text not in self.choices:
            guess = did_you_mean(text, self.choices)
            raise RefusedError(
                f"is {quoted(text)}" + (f' (did you mean "{guess}"?)' if guess else "")
            )
        return text

    def from_text(self, text: str) -> object:
        """Return the text as it is."""
        return text


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two bounds; ``true`` is not a number."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        """Return in words which values are allowed."""
        return f"a whole number from {self.least} to {self.most}"

    def read(self, raw: object) -> int:
        """Return the number."""
        if type(raw) is not int:
            raise RefusedError(f"is {_shown(raw)}")
        if not self.least <= raw <= self.most:
            raise RefusedError(f"is {_shown(raw)}")
        return raw

    def from_text(self, text: str) -> object:
        """Return the number that the text is, or the text when it is none."""
        return int(text) if _WHOLE.fullmatch(text) else text


@dataclass(frozen=True, slots=True)
class Duration:
    """A span written with its unit, between two bounds in microseconds."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        """Return in words which values are allowed."""
        return (
            f'a span with its unit, such as "90s" or "1h 30m", '
            f"from {show_span(self.least)} to {show_span(self.most)}"
        )

    def read(self, raw: object) -> int:
        """Return the span in microseconds."""
        if type(raw) is int or isinstance(raw, float):
            raise RefusedError(f"is {_shown(raw)}, without a unit")
        text = _text(raw)
        try:
            span = parse_span(text[:_SPAN_CHARACTERS])
        except ValueError:
            raise RefusedError(f"is {quoted(text)}") from None
        if len(text) > _SPAN_CHARACTERS or not self.least <= span <= self.most:
            raise RefusedError(f"is {quoted(text)}")
        return int(span)

    def from_text(self, text: str) -> object:
        """Return the text as it is."""
        return text


@dataclass(frozen=True, slots=True)
class Several:
    """A list of one shape of value; an environment variable writes it with commas."""

    of: Shape
    least: int = 0

    @property
    def allowed(self) -> str:
        """Return in words which values are allowed."""
        return f"a list{' of at least one' if self.least else ''}, each {self.of.allowed}"

    def read(self, raw: object) -> tuple[object, ...]:
        """Return the values in order, each once."""
        if not isinstance(raw, list):
            raise RefusedError(f"is {_shown(raw)}, not a list")
        if len(raw) < self.least:
            raise RefusedError("is an empty list")
        values: dict[object, None] = {}
        for number, one in enumerate(raw, start=1):
            try:
                values[self.of.read(one)] = None
            except RefusedError as error:
                raise RefusedError(f"has an entry, number {number}, that {error}") from None
        return tuple(values)

    def from_text(self, text: str) -> object:
        """Return the parts between commas; an empty text is an empty list."""
        return [self.of.from_text(part.strip()) for part in text.split(",")] if text else []


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise RefusedError(f"is {_shown(raw)}, not a text")
    if len(raw) > _MOST_TEXT:
        raise RefusedError(f"has {len(raw)} characters, more than {_MOST_TEXT}")
    return raw


def _shown(raw: object) -> str:
    match raw:
        case bool():
            return "true" if raw else "false"
        case str():
            return quoted(raw)
        case int() if raw.bit_length() > _MOST_BITS:
            return "a very large number"
        case int() | float():
            return f"{raw}"
        case dict() | list():
            return "a table" if isinstance(raw, dict) else "a list"
        case _:
            return "a date or time"
