"""One regular expression over the bytes of one line, in linear time.

RE2 reads bytes as Latin-1 here, so that no byte sequence is invalid and both engines that
perception uses see the same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2

from relight.rules.schema import Rule

MOST_CAPTURED = 300
"""Bytes kept of one capture: longer ones come from a line that nobody reads anyway."""


class PatternError(ValueError):
    """An expression that RE2 refuses; the message says why."""


def one_expression(expressions: Sequence[str]) -> str:
    """Return one expression that matches what any of ``expressions`` does, without names."""
    unnamed = [_NAME.sub("(", one) for one in expressions]
    if len(unnamed) == 1:
        return unnamed[0]
    return "|".join(
        f"(?i:{one.removeprefix('(?i)')})" if one.startswith("(?i)") else f"(?:{one})"
        for one in unnamed
    )


_NAME = re.compile(r"\(\?P<\w+>")


class Pattern:
    """A compiled expression.

    Raises:
        PatternError: RE2 refuses the expression.

    """

    __slots__ = ("_groups", "_regexp", "text")

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.log_errors = False
        try:
            self._regexp = re2.compile(text.encode(), options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            shown = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise PatternError(shown) from error
        self._groups: tuple[tuple[str, int], ...] = tuple(
            (name.decode() if isinstance(name, bytes) else str(name), int(index))
            for name, index in self._regexp.groupindex.items()
        )
        self.text = text

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the groups."""
        return frozenset(name for name, _ in self._groups)

    def is_in(self, line: bytes) -> bool:
        """Return whether the expression matches somewhere in ``line``."""
        return self._regexp.search(line) is not None

    def captures(self, line: bytes) -> dict[str, str] | None:
        """Return the named groups of the first match that took part, None without a match."""
        match = self._regexp.search(line)
        if match is None:
            return None
        found: dict[str, str] = {}
        for name, index in self._groups:
            value: bytes | None = match.group(index)
            if value is not None:
                found[name] = value[:MOST_CAPTURED].decode(errors="replace")
        return found


class CompiledRule:
    """The expressions of one rule, ready for single lines.

    Raises:
        PatternError: RE2 refuses one of them.

    """

    __slots__ = ("_patterns", "_unless")

    def __init__(self, rule: Rule) -> None:
        self._patterns = tuple(Pattern(expression) for expression in rule.patterns)
        self._unless = tuple(Pattern(expression) for expression in rule.unless)

    def captures(self, line: bytes) -> dict[str, str] | None:
        """Return the named groups of the first expression that matches, None for no hit."""
        for pattern in self._patterns:
            captures = pattern.captures(line)
            if captures is not None:
                is_quoted = any(unless.is_in(line) for unless in self._unless)
                return None if is_quoted else captures
        return None
