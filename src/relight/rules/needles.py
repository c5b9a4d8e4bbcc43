"""The literals of an expression: every match holds at least one of them.

A rule without such a literal would have to be tried on every byte of every log, and could
not be found by a plain search. They are derived from the expression itself, so they never
disagree with it. Only what expressions of rules may hold is read (see ``linting``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

FEWEST_CHARACTERS = 4
"""A shorter literal is found everywhere."""
MOST_CHOICES = 64
"""Alternatives multiplied out beyond this number make no literal."""
_MOST_CLASS = 4
_QUANTIFIER = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")
_PLAIN = re.compile(r"[^\\.\[\]()*+?{}|^$]+(?![*+?{])")
"""Characters that stand for themselves, each once."""
_NOT_LITERAL = "wWdDsSbBAzZ"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}


def needles(expression: str) -> tuple[str, ...]:
    """Return literals of which every match holds one, sorted; none where there are none.

    Of several such sets the one whose shortest literal is longest is returned. Where the
    expression ignores case the literals are lower case.
    """
    ignores_case = "(?i" in expression
    found = _Reader(expression).alternatives().needed
    if not found:
        return ()
    return tuple(sorted({needle.lower() for needle in found} if ignores_case else found))


def shortest(found: tuple[str, ...]) -> int:
    """Return the length of the shortest literal, 0 without any."""
    return min((len(needle) for needle in found), default=0)


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of a part: all that it can match (None: too much), and what it must hold."""

    exact: frozenset[str] | None
    needed: frozenset[str]


_ANYTHING = _Part(exact=None, needed=frozenset())
_NOTHING = _Part(exact=frozenset({""}), needed=frozenset())


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def alternatives(self) -> _Part:
        """Read up to the end of the group."""
        branches = [self._sequence()]
        while self._next_is("|"):
            self._at += 1
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        exact: frozenset[str] | None = None
        if all(branch.exact is not None for branch in branches):
            exact = _bounded(frozenset().union(*(branch.exact or () for branch in branches)))
        if not all(branch.needed for branch in branches):
            return _Part(exact=exact, needed=frozenset())
        needed = frozenset().union(*(branch.needed for branch in branches))
        return _Part(exact=exact, needed=needed if len(needed) <= MOST_CHOICES else frozenset())

    def _sequence(self) -> _Part:
        whole: frozenset[str] | None = frozenset({""})
        current: frozenset[str] | None = frozenset({""})
        best: frozenset[str] = frozenset()
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            part = self._plain() or self._repeated(self._atom())
            if part.exact is None or len(part.exact) > 1:
                best = _better(_better(best, _usable(current)), part.needed)
            joined = _joined(current, part.exact)
            if joined is None:
                whole = None
                best = _better(best, _usable(current))
                joined = part.exact
            current = joined
            if whole is not None:
                whole = current
        return _Part(exact=whole, needed=_better(best, _usable(current)))

    def _plain(self) -> _Part | None:
        found = _PLAIN.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return _literal(found[0])

    def _atom(self) -> _Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == ".":
            return _ANYTHING
        if character in "^$":
            return _NOTHING
        if character == "\\":
            return self._escaped()
        return _literal(character)

    def _group(self) -> _Part:
        if self._next_is("?"):
            end = self._text.index(":", self._at) if self._next_is("?:") else -1
            if self._next_is("?P<"):
                end = self._text.index(">", self._at)
            elif end < 0:
                end = min(_found(self._text, ":", self._at), _found(self._text, ")", self._at))
            self._at = end + 1
            if self._text[end] == ")":
                return _NOTHING
        inside = self.alternatives()
        self._take()
        return inside

    def _class(self) -> _Part:
        is_negated = self._next_is("^")
        members: list[str] = []
        is_small = not is_negated
        self._at += is_negated
        is_first = True
        while is_first or not self._next_is("]"):
            is_first = False
            character = self._take()
            if character == "\\":
                escaped = self._escaped().exact
                is_small = is_small and escaped is not None and "" not in escaped
                members += escaped or ()
            elif self._next_is("-") and self._text[self._at + 1 : self._at + 2] != "]":
                is_small = False
                self._at += 2
            elif character == "[" and self._next_is(":"):
                is_small = False
                self._at = self._text.index(":]", self._at) + 2
            else:
                members.append(character)
        self._take()
        if not is_small or len(members) > _MOST_CLASS:
            return _ANYTHING
        return _Part(exact=frozenset(members), needed=frozenset())

    def _escaped(self) -> _Part:
        character = self._take()
        if character in "bBAzZ":
            return _NOTHING
        if character in _NOT_LITERAL:
            return _ANYTHING
        if character == "x":
            self._at += 2
            return _literal(chr(int(self._text[self._at - 2 : self._at], 16)))
        return _literal(_CONTROLS.get(character, character))

    def _repeated(self, part: _Part) -> _Part:
        if not _QUANTIFIER.match(self._text, self._at):
            return part
        character = self._take()
        least = 1 if character == "+" else 0
        is_once = False
        if character == "{":
            end = self._text.index("}", self._at)
            first, _, last = self._text[self._at : end].partition(",")
            least, is_once = int(first or 0), first == "1" == (last or first)
            self._at = end + 1
        if self._next_is("?"):
            self._at += 1
        if is_once:
            return part
        if character == "?" and part.exact is not None:
            return _Part(exact=_bounded(part.exact | {""}), needed=frozenset())
        if least == 0:
            return _ANYTHING
        return _Part(exact=None, needed=_better(part.needed, _usable(part.exact)))

    def _take(self) -> str:
        character = self._text[self._at]
        self._at += 1
        return character

    def _next_is(self, text: str) -> bool:
        return self._text.startswith(text, self._at)


def _literal(text: str) -> _Part:
    return _Part(exact=frozenset({text}), needed=frozenset())


def _found(text: str, wanted: str, at: int) -> int:
    place = text.find(wanted, at)
    return len(text) if place < 0 else place


def _bounded(choices: frozenset[str]) -> frozenset[str] | None:
    return choices if len(choices) <= MOST_CHOICES else None


def _joined(before: frozenset[str] | None, after: frozenset[str] | None) -> frozenset[str] | None:
    if before is None or after is None or len(before) * len(after) > MOST_CHOICES:
        return None
    return frozenset(first + last for first, last in product(before, after))


def _usable(choices: frozenset[str] | None) -> frozenset[str]:
    return frozenset() if choices is None or "" in choices else choices


def _better(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the set whose shortest literal is longer; of equals, the smaller set."""
    if not one or not other:
        return one or other
    return max((one, other), key=lambda found: (min(map(len, found)), -len(found)))
