"""On which line of a TOML file a key stands: tomllib does not say.

Only for texts that tomllib has accepted, so the scan may trust that strings and brackets
close. Keys inside an inline table have no place of their own: their nearest parent has.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

Path = tuple[str | int, ...]
"""The way to a value: names, and numbers from 0 for the entries of an array of tables."""

_STRING = (
    r'"""(?:\\.|[^\\"]|"{1,2}(?!"))*+"{3,5}|'
    r"'''(?:[^']|'{1,2}(?!'))*+'{3,5}|"
    r'"(?:\\.|[^\\"\n])*+"|'
    r"'[^'\n]*+'"
)
_NAME = r"(?:[A-Za-z0-9_-]+|\"(?:\\.|[^\\\"\n])*+\"|'[^'\n]*+')"
_PART = re.compile(_NAME)
_DOTTED = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*+"
_STATEMENT = re.compile(
    rf"(?:\s|#[^\n]*)*+"
    rf"(?:(?P<array>\[\[)|(?P<table>\[))?[ \t]*(?P<key>{_DOTTED})[ \t]*(?:\]\]?|(?P<assigns>=))"
)
_VALUE = re.compile(
    rf"(?P<string>{_STRING})|#[^\n]*|[\[{{]|[\]}}]|\n|[^\[\]{{}}\"'#\n]+", re.DOTALL
)


class Lines:
    """Where the keys of one file stand."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]
        self._places: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._scan(text)

    def of(self, path: Path) -> int | None:
        """Return the line of a key, from 1, or that of its nearest parent which has one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._places:
                return bisect_right(self._ends, self._places[path[:length]] - 1) + 1
        return None

    def _scan(self, text: str) -> None:
        table: Path = ()
        position = 0
        while (match := _STATEMENT.match(text, position)) is not None:
            parts = [_unquoted(part) for part in _PART.findall(match["key"])]
            position = match.end()
            if match["assigns"]:
                self._note(table, parts, match.start("key"))
                position = _end_of_value(text, position)
                continue
            table = self._within((), parts[:-1])
            last: Path = (*table, parts[-1])
            if match["array"]:
                self._counts[last] = self._counts.get(last, 0) + 1
            table = self._within(table, parts[-1:])
            self._note((), list(table), match.start("key"))

    def _note(self, table: Path, parts: list[str | int], offset: int) -> None:
        for length in range(1, len(parts) + 1):
            self._places.setdefault((*table, *parts[:length]), offset)

    def _within(self, path: Path, parts: list[str | int]) -> Path:
        for part in parts:
            path = (*path, part)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path


def _unquoted(part: str) -> str | int:
    if part[0] not in "\"'":
        return part
    return str(tomllib.loads(f"key = {part}")["key"])


def _end_of_value(text: str, position: int) -> int:
    depth = 0
    while (match := _VALUE.match(text, position)) is not None:
        if match[0] == "\n" and depth == 0:
            break
        depth += (match[0] in "[{") - (match[0] in "]}")
        position = match.end()
    return position
