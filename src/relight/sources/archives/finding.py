"""From the words of a command line to the files that they mean.

A word is a file, a directory, a glob that the shell did not expand, or ``-``. What a word
names itself is always read. In a directory only what may be a log is taken: the rest of a
run's folder (checkpoints, code, tables) is counted and said, and is no trouble.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import stat
from collections.abc import Iterator, Sequence

from relight.model.records import Record
from relight.sources.archives.compressed import kind_of
from relight.sources.archives.opening import STANDARD_INPUT, RefusedError, part_of
from relight.sources.archives.texts import SNIFFED, names_no_log, no_log

MOST_FILES = 20_000
"""Files of one call: two for each rank of a thousand nodes, and a quarter more."""
MOST_ENTRIES = 500_000
"""Entries of directories that are looked at in one call."""
DEEPEST = 16
"""Directories inside one another."""

_GLOB = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"(\d+)")
_PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages"})


class Found(Record, frozen=True, kw_only=True):
    """The files that words mean, in order, each once.

    ``refused`` are files that cannot be read, with what is wrong with them; ``fruitless`` are
    directories and globs in which there is no log; ``passed_over`` counts what was seen in
    directories and taken for no log.
    """

    paths: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    fruitless: tuple[tuple[str, str], ...] = ()
    passed_over: int = 0


def find(words: Sequence[str]) -> Found:
    """Return the files that ``words`` mean; none of them is opened but to look at its head."""
    search = _Search()
    for word in words:
        search.take(word)
    return Found(
        paths=tuple(search.paths),
        refused=tuple(search.refused),
        fruitless=tuple(search.fruitless),
        passed_over=search.passed_over,
    )


class _Search:
    """What has been found so far, and how much has been looked at."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.fruitless: list[tuple[str, str]] = []
        self.passed_over = 0
        self._seen: set[tuple[int, int]] = set()
        self._entries = 0
        self._is_full = False

    def take(self, word: str) -> None:
        """Take in one word of the command line."""
        if word == STANDARD_INPUT:
            if STANDARD_INPUT not in self.paths:
                self.paths.append(word)
            return
        try:
            found = os.stat(word)  # noqa: PTH116 - a name here is what the system takes
        except (OSError, ValueError) as error:
            self._take_missing(word, error)
            return
        if stat.S_ISDIR(found.st_mode):
            self._take_directory(word)
        else:
            self._add(word, found)

    def _take_missing(self, word: str, error: OSError | ValueError) -> None:
        if not isinstance(error, FileNotFoundError) or not _GLOB.search(word):
            self.refused.append((word, _why(error)))
            return
        names = self._deep(word) if "**" in word else glob.iglob(word)  # noqa: PTH207 - a word may be absolute
        # A glob may name directories beside files: their files are meant only by **.
        files = (name for name in names if not os.path.isdir(name))  # noqa: PTH112 - as above
        try:
            found = sorted(itertools.islice(files, MOST_FILES + 1), key=_counting)
        except re.error:
            self.fruitless.append((word, "it is no glob: look at what stands in brackets"))
            return
        if not found:
            self.fruitless.append((word, "no file has such a name"))
        for name in found:
            self.take(name)

    def _deep(self, word: str) -> Iterator[str]:
        """Yield the files that a glob with ``**`` means, through no link to a directory."""
        folder = word[: _GLOB.search(word).start()].rpartition("/")[0]  # type: ignore[union-attr]  # it holds **
        expression = re.compile(_translated(word))
        root = folder or ("/" if word.startswith("/") else ".")
        for path in self._walk(root, 0):
            name = path if folder or word.startswith("/") else path.removeprefix("./")
            if expression.fullmatch(name):
                yield name

    def _take_directory(self, word: str) -> None:
        before, refused = len(self.paths), len(self.refused)
        for path in self._walk(word, 0):
            try:
                found = os.stat(path)  # noqa: PTH116 - as above
                is_log = stat.S_ISREG(found.st_mode) and found.st_size and _may_be_log(path)
            except (OSError, RefusedError) as error:
                if names_no_log(path.rpartition("/")[2]):
                    self.passed_over += 1  # as a link to the newest checkpoint, which is gone
                else:
                    self.refused.append((path, _why(error)))
                continue
            if is_log:
                self._add(path, found)
            else:
                self.passed_over += 1
        if len(self.paths) == before and len(self.refused) == refused:
            self.fruitless.append((word, "there is no log in this directory"))

    def _walk(self, folder: str, depth: int) -> Iterator[str]:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: _counting(entry.name))
        except OSError as error:
            self.refused.append((folder, _why(error)))
            return
        for entry in entries:
            self._entries += 1
            if self._entries > MOST_ENTRIES or self._is_full:
                self._give_up(folder)
                return
            if entry.name.startswith("."):
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path
            elif depth < DEEPEST and entry.name not in _PASSED_OVER:
                yield from self._walk(entry.path, depth + 1)

    def _add(self, path: str, found: os.stat_result) -> None:
        key = found.st_dev, found.st_ino
        if key in self._seen:
            return
        self._seen.add(key)
        if len(self.paths) < MOST_FILES:
            self.paths.append(path)
        else:
            self._give_up(path)

    def _give_up(self, path: str) -> None:
        if not self._is_full:
            self._is_full = True
            most = f"{MOST_FILES} files or {MOST_ENTRIES} entries of directories"
            self.refused.append((path, f"the search ended here: {most} are the most at once"))


def _may_be_log(path: str) -> bool:
    if names_no_log(path.rpartition("/")[2]):
        return False
    head = part_of(path, 0, SNIFFED)
    return bool(kind_of(head)) or not no_log(head)


def _translated(pattern: str) -> str:
    """Return the expression of a glob: ``**`` for any depth, ``*`` and ``?`` within a part."""
    made = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pattern = re.sub(r"(?:\*\*/)+", "**/", re.sub(r"\*{3,}", "**", pattern))
    tokens = re.findall(r"\*\*/?|\*|\?|\[!?\]?[^\]/]*\]|.", pattern, re.DOTALL)
    return "(?s)" + "".join(
        made.get(token) or (f"[{_class(token[1:-1])}]" if len(token) > 1 else re.escape(token))
        for token in tokens
    )


def _class(inner: str) -> str:
    escaped = inner.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return "^" + escaped[1:] if escaped.startswith("!") else escaped


def _counting(name: str) -> list[tuple[int, str]]:
    """Return what sorts ``rank_10`` behind ``rank_9``."""
    return [
        (int(part), "") if part.isdecimal() and part.isascii() else (-1, part)
        for part in _NUMBER.split(name)
    ]


def _why(error: OSError | ValueError | RefusedError) -> str:
    told = error.strerror if isinstance(error, OSError) else None
    return (told or str(error)).lower()
