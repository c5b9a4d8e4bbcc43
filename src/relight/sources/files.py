"""A job's output files, read with its owner's rights: pieces of text with their places.

What a file said before is told by its mark (``relight.model.signals.Mark``). It was truncated or
replaced when it is shorter than the mark, bears another inode, or its last bytes before the mark
are other ones; then reading begins anew. Slurm truncates the output at every start of a job that
did not ask for ``--open-mode=append``. A file that was truncated and has grown again with the very
same 256 bytes before the mark cannot be told from one that only grew, and what was written between
the last read and a truncation or rotation is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relight.model.jobs import JobFact
from relight.model.seen import Seen, Unseen
from relight.model.signals import FileUnseen, Mark, Reading
from relight.sources.log_globs import log_glob, name_files
from relight.sources.output_patterns import (
    MOST_FILES,
    LogFile,
    OutputFiles,
    UnknownNameError,
    output_files,
)
from relight.sources.owner_readers import Chunk, OwnerReaders, Stuck
from relight.sources.reader import MOST_BYTES

__all__ = ["AttemptLogs", "OwnerReaders"]

LEAST_SHARE = 4_096
"""Bytes that every file may give in each call, even when that exceeds the budget."""

MOST_STUCK = 3
"""After so many reads that hung, the files left are not tried in this call."""


class AttemptLogs:
    """Finds and reads the files of one owner's jobs; remembers nothing between calls.

    ``uid`` is the owner's; None when the scheduler did not say, which a relight that is root
    does not read for.
    """

    def __init__(self, readers: OwnerReaders, uid: int | None) -> None:
        self._readers = readers
        self._uid = uid

    def files(self, fact: JobFact, nodes: tuple[str, ...], logs: str = "") -> OutputFiles:
        """Return what the attempt on ``nodes`` writes: its scheduler's output, then ``logs``.

        ``logs`` is the pattern from the job's comment (``log_globs``); of its files those are
        named that exist now, so call again to see later ones. At most ``MOST_FILES`` in all.
        """
        output = output_files(fact, nodes)
        named = self._named(fact, nodes, logs) if logs else OutputFiles()
        # A file in both keeps the scheduler's labels: its output holds the lines of every rank.
        files = {file.path: file for file in named.files} | {f.path: f for f in output.files}
        ordered = [files[path] for path in dict.fromkeys(f.path for f in output.files) | files]
        unseen = [*output.unseen, *named.unseen]
        if len(ordered) > MOST_FILES:
            unseen.append(FileUnseen(file=logs, why=f"only {MOST_FILES} files of a job are read"))
        return OutputFiles(files=tuple(ordered[:MOST_FILES]), unseen=tuple(unseen))

    def read(
        self, files: Sequence[LogFile], marks: Mapping[str, Mark], budget_bytes: int
    ) -> tuple[list[Reading], list[FileUnseen]]:
        """Return what the files say beyond their marks, and the files that could not be read.

        ``marks`` are by path; a file without one is read from its start. A file with nothing new
        gives one empty reading; one with much gives several, in order, each at most 1 MiB. The
        budget is dealt evenly, what a file leaves goes to the others; with fewer than
        ``LEAST_SHARE`` bytes for each file it is exceeded by at most that much a file.
        Blocks for at most ``MOST_STUCK`` times the readers' patience over hanging files.
        """
        call = _Call(left=budget_bytes)
        going = {file.path: (file, marks.get(file.path, Mark())) for file in files}
        least = LEAST_SHARE
        while going and (call.left > 0 or least):
            further: dict[str, tuple[LogFile, Mark]] = {}
            for position, (path, (file, mark)) in enumerate(going.items()):
                share = max(call.left // (len(going) - position), least)
                if share <= 0:
                    break
                reading = self._next(call, file, mark, min(share, MOST_BYTES))
                if reading is not None and reading.data and not reading.at_end:
                    further[path] = (file, reading.mark)
            going, least = further, 0
        return call.readings, call.unseen

    def _named(self, fact: JobFact, nodes: tuple[str, ...], logs: str) -> OutputFiles:
        try:
            glob = log_glob(logs, fact)
        except UnknownNameError as error:
            return OutputFiles(unseen=(FileUnseen(file=_shown(logs), why=str(error)),))
        if not _is_text(glob.pattern):
            return OutputFiles(unseen=(FileUnseen(file=_shown(logs), why=_NOT_TEXT),))
        match self._readers.find(self._uid, glob.pattern):
            case Unseen(why=why):
                return OutputFiles(unseen=(FileUnseen(file=logs, why=why),))
            case Seen(value=answer):
                unseen = [FileUnseen(file=logs, why=why) for why in (answer.left_out,) if why]
                return OutputFiles(
                    files=name_files(glob, answer.paths, nodes), unseen=tuple(unseen)
                )

    def _next(self, call: _Call, file: LogFile, mark: Mark, limit: int) -> Reading | None:
        why = call.given_up(file.path) or ("" if _is_text(file.path) else _NOT_TEXT)
        if why:
            call.unseen.append(FileUnseen(file=_shown(file.path), why=why))
            return None
        match self._readers.read(self._uid, file.path, mark, limit):
            case Stuck(why=why):
                call.stuck[_folder(file.path)] = why
                call.unseen.append(FileUnseen(file=file.path, why=why))
                return None
            case Unseen(why=why):
                call.unseen.append(FileUnseen(file=file.path, why=why))
                return None
            case Seen(value=chunk):
                call.left -= len(chunk.data)
                reading = _reading(file, chunk)
                call.readings.append(reading)
                return reading


@dataclass(slots=True)
class _Call:
    """What one call of ``read`` has gathered; ``stuck`` are the folders in which a read hung."""

    left: int
    readings: list[Reading] = field(default_factory=list)
    unseen: list[FileUnseen] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)

    def given_up(self, path: str) -> str:
        if len(self.stuck) >= MOST_STUCK:
            return f"{MOST_STUCK} other reads hung, so it was left for the next time"
        return self.stuck.get(_folder(path), "")


_NOT_TEXT = "its name is not UTF-8"


def _reading(file: LogFile, chunk: Chunk) -> Reading:
    return Reading(
        file=file.path,
        offset=chunk.answer.offset,
        data=chunk.data,
        mark=chunk.answer.mark,
        restarted=chunk.answer.restarted,
        rank=file.rank,
        node=file.node,
        at_end=chunk.answer.at_end,
    )


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_text(name: str) -> bool:
    return name == _shown(name)


def _shown(name: str) -> str:
    """Return a name that can be written as UTF-8, lone surrogates escaped."""
    return name.encode(errors="backslashreplace").decode()
