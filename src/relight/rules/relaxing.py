"""A looser expression in place of an exact one: it matches wherever that one does.

An engine that scans whole blocks calls back at each end that a match may have: a hundred times
for ``x.{0,100}``. Where every line found is asked again with the exact expression, one without
what may be missing at its begin and end finds it as well, once. Bounds in the middle are kept:
without them the engine would stay awake to the end of each line. Only what expressions of
rules may hold is read (see ``linting``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_COUNTED = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_OPENING = re.compile(r"\((?:\?P<\w+>|\?(?P<flags>[a-zA-Z]*)(?P<end>[:)])|(?!\?))")
_BRACKET = re.compile(r"\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|.)", re.DOTALL)
_BOUNDS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ASSERTIONS = frozenset({"^", "$", r"\b", r"\B"})


@dataclass(frozen=True, slots=True)
class _Item:
    """One atom and how often it stands there; ``most`` None is without end.

    A group has ``branches`` instead of ``text`` and sets ``flags`` for its inside. What
    ``is_place`` says something of a place and takes no room: assertions and flags.
    """

    text: str = ""
    branches: tuple[_Sequence, ...] = ()
    flags: str = ""
    least: int = 1
    most: int | None = 1
    is_place: bool = False

    @property
    def is_flag(self) -> bool:
        """Return whether it sets flags for what follows."""
        return self.is_place and self.text.startswith("(")


_Sequence = tuple[_Item, ...]


def relaxed(expression: str) -> str:
    """Return an expression, without names, that matches every line that ``expression`` does."""
    branches = _Reader(expression).branches()
    trimmed = _trimmed_branches(_trimmed_branches(branches, at_end=False), at_end=True)
    return _written(trimmed or branches)


def _trimmed_branches(branches: tuple[_Sequence, ...], *, at_end: bool) -> tuple[_Sequence, ...]:
    """Return the branches without what may be missing on one side; none if one asks nothing."""
    trimmed = tuple(_trimmed(branch, at_end=at_end) for branch in branches)
    return trimmed if all(any(not item.is_flag for item in one) for one in trimmed) else ()


def _trimmed(items: _Sequence, *, at_end: bool) -> _Sequence:
    kept: list[_Item] = []
    rest = list(items if at_end else reversed(items))
    while rest:
        item = rest.pop()
        if item.is_flag:
            kept.append(item)
            continue
        if item.is_place:
            kept.append(item)
            break
        if item.least == 0:
            continue
        once = replace(item, most=item.least)
        if item.branches and item.least == 1:
            inside = _trimmed_branches(item.branches, at_end=at_end)
            if not inside:
                continue
            once = replace(once, branches=inside)
        kept.append(once)
        break
    return (*rest, *reversed(kept)) if at_end else (*kept, *reversed(rest))


def _written(branches: tuple[_Sequence, ...]) -> str:
    return "|".join("".join(map(_shown, branch)) for branch in branches)


def _shown(item: _Item) -> str:
    text = f"(?{item.flags}:{_written(item.branches)})" if item.branches else item.text
    match item.least, item.most:
        case 1, 1:
            return text
        case 0, 1:
            return f"{text}?"
        case 0, None:
            return f"{text}*"
        case 1, None:
            return f"{text}+"
        case least, None:
            return f"{text}{{{least},}}"
        case least, most:
            return f"{text}{{{least}}}" if least == most else f"{text}{{{least},{most}}}"


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def branches(self) -> tuple[_Sequence, ...]:
        """Read up to the end of the group."""
        found = [self._sequence()]
        while self._text.startswith("|", self._at):
            self._at += 1
            found.append(self._sequence())
        return tuple(found)

    def _sequence(self) -> _Sequence:
        items: list[_Item] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items.append(self._repeated(self._atom()))
        return tuple(items)

    def _atom(self) -> _Item:
        character = self._text[self._at]
        if character == "(":
            return self._group()
        length = 1
        for opening, form in (("[", _BRACKET), ("\\", _ESCAPE)):
            if character == opening and (found := form.match(self._text, self._at)):
                length = len(found[0])
        text = self._text[self._at : self._at + length]
        self._at += length
        return _Item(text=text, is_place=text in _ASSERTIONS)

    def _group(self) -> _Item:
        opening = _OPENING.match(self._text, self._at)
        if opening is None:
            raise ValueError(f'"{self._text}" holds a group that no rule may use; write (?:...)')
        self._at = opening.end()
        if opening["end"] == ")":
            return _Item(text=opening[0], is_place=True)
        branches = self.branches()
        self._at += 1
        return _Item(branches=branches, flags=opening["flags"] or "")

    def _repeated(self, item: _Item) -> _Item:
        counted = _COUNTED.match(self._text, self._at)
        character = self._text[self._at : self._at + 1]
        if counted is not None:
            least = int(counted[1])
            most = least if counted[2] is None else int(counted[3]) if counted[3] else None
            self._at = counted.end()
        elif character in _BOUNDS:
            least, most = _BOUNDS[character]
            self._at += 1
        else:
            return item
        if self._text.startswith("?", self._at):
            self._at += 1
        return replace(item, least=least, most=most)
