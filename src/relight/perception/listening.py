"""Hears one file: blocks of whole lines in, findings and progress into the attempt's memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import msgspec

from relight.model.findings import Domain, Finding, Kind, Place, Remedy, Role
from relight.model.instants import Instant
from relight.model.signals import Reading
from relight.perception.conclusions import Heading, concluded, remedy_of_exception
from relight.perception.ears import Ears, Heard
from relight.perception.fingerprints import fingerprint
from relight.perception.lines import SHOWN, STRIDE, UNIT_HEAD, Block, FileState, Unit, readable
from relight.perception.prefixes import Voice, listen
from relight.perception.progress import ProgressState, advanced, without_guesses
from relight.perception.times import printed_time
from relight.perception.tracebacks import (
    MOST_LINES,
    Traceback,
    exception_named,
    followed,
    is_inside,
    opened,
)
from relight.rules.schema import Rule

FIRST_FINDINGS = 50
"""Lines of one (rule, fingerprint) that each make a finding."""
MOST_COUNTED = 500
"""Different (rule, fingerprint) pairs counted apart; beyond it, rules alone are counted."""
MOST_TRACEBACKS = 256
"""Tracebacks of one file that may be open at once: one a writer."""
_BEFORE = 5

PYTHON_EXCEPTION = Rule(
    id="python-exception",
    family="user_code_exception",
    kind=Kind.CRASH,
    role=Role.EITHER,
    domain=Domain.APPLICATION,
    remedy=Remedy.CONFIRM_THEN_STOP,
    title="Python exception",
    sentence="A Python exception ended a process[ of rank {rank}]: {exception} in {frame}.",
    patterns=(),
    evidence="CPython's traceback",
)
"""What an exception is that no rule knows better. It has no expression: a detector finds it."""

_ENDS_AS_TOLD = frozenset({"SystemExit", "KeyboardInterrupt", "GeneratorExit"})
_NOTHING = Heard()


@dataclass(slots=True)
class Memory:
    """What the files of one attempt share while readings are worked on."""

    counts: dict[str, int]
    progress: ProgressState
    findings: list[Finding] = field(default_factory=list)

    def may_tell(self, rule: str, mark: str) -> int:
        """Count one line; return how many lines a finding for it stands for, 0 for no finding."""
        key = f"{rule}|{mark}"
        if key not in self.counts and len(self.counts) >= MOST_COUNTED:
            key = rule
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count <= FIRST_FINDINGS:
            return 1
        if count & (count - 1):
            return 0
        return count - max(count // 2, FIRST_FINDINGS)


@dataclass(frozen=True, slots=True)
class _Line:
    """One unit that matters, with its block, what was heard in it and who wrote it."""

    block: Block
    unit: Unit
    heard: Heard
    shown: str
    voice: Voice


class Listener:
    """Reads one file on from its state; the state that it returns replaces the old one."""

    def __init__(self, file: FileState, memory: Memory, ears: Ears, now: Instant) -> None:
        self._file = file
        self._memory = memory
        self._ears = ears
        self._now = now
        self._name = ""

    def read(self, reading: Reading) -> FileState:
        """Take in the bytes of ``reading``, but none that were taken before."""
        self._name = reading.file
        file = self._file
        if reading.restarted:
            file = FileState(rank=file.rank, node=file.node, next_offset=reading.offset)
        data = reading.data
        seen = file.next_offset - reading.offset
        if seen > 0:
            data = data[seen:]
        elif seen < 0:
            file = msgspec.structs.replace(file, carry=b"", next_offset=reading.offset)
        self._file = msgspec.structs.replace(
            file,
            mark=reading.mark,
            rank=file.rank if reading.rank is None else reading.rank,
            node=reading.node or file.node,
        )
        for start in range(0, len(data), STRIDE):
            self._take(data[start : start + STRIDE])
        return self._file

    def finish(self, name: str) -> FileState:
        """Hear the unfinished last line, as if a line end had followed, and what was cut off.

        A traceback whose last line never came is told too: srun loses the last words of a
        task that dies fast (seen on Slurm 22.05 with ``-l`` and ``--kill-on-bad-exit``).
        """
        self._name = name
        if self._file.carry:
            self._hear(self._file.carry + b"\n", self._file.carry_offset, 0)
            self._file = msgspec.structs.replace(self._file, carry=b"")
        for traceback in self._file.tracebacks.values():
            if traceback.frame is not None and not traceback.is_noise:
                self._cut_off(traceback)
        self._file = msgspec.structs.replace(self._file, tracebacks={})
        return self._file

    def _cut_off(self, traceback: Traceback) -> None:
        captures = {"exception": "the log ends before its name is told,"}
        mark = fingerprint(PYTHON_EXCEPTION.id, captures, traceback.blamed)
        count = self._memory.may_tell(PYTHON_EXCEPTION.id, mark)
        if not count:
            return
        last = traceback.lines[-1]
        heading = Heading(
            place=Place(file=self._name, offset=self._file.next_offset, line=traceback.began),
            voice=listen(last),
            shown=last,
            before=traceback.lines[:-1],
            frame=traceback.blamed,
            now=self._now,
            node=self._file.node,
            rank=self._file.rank,
        )
        finding = concluded(self._ears, PYTHON_EXCEPTION, captures, heading, count)
        self._memory.findings.append(finding)

    def _take(self, data: bytes) -> None:
        file = self._file
        block = file.carry + data
        shift = file.next_offset - len(file.carry)
        first_offset = file.carry_offset if file.carry else file.next_offset
        line_feed = block.rfind(b"\n")
        end = max(line_feed, block.rfind(b"\r", line_feed + 1)) + 1
        if end:
            self._hear(block[:end], first_offset, shift)
        self._file = msgspec.structs.replace(
            self._file,
            carry=block[end : end + UNIT_HEAD],
            carry_offset=end + shift if end else first_offset,
            next_offset=file.next_offset + len(data),
        )

    def _hear(self, raw: bytes, first_offset: int, shift: int) -> None:
        block = Block(raw, self._file, first_offset, shift)
        tracebacks = dict(self._file.tracebacks)
        pairs = self._ears.lexicon.matcher.scan(block.text)
        done = 0
        for start, group in groupby(pairs, key=itemgetter(0)):
            self._follow(block, tracebacks, done, start)
            unit = block.unit(start)
            heard = self._ears.lexicon.heard([index for _, index in group], unit.data)
            self._line(block, unit, heard, tracebacks)
            done = block.text.find(b"\n", start) + 1
        self._follow(block, tracebacks, done, len(block.text))
        tail, overwritten = block.new_tail()
        self._file = msgspec.structs.replace(
            self._file,
            line=self._file.line + block.count_lines(),
            overwritten=overwritten,
            tail=tail,
            tracebacks=tracebacks,
        )

    def _follow(
        self, block: Block, tracebacks: dict[str, Traceback], first: int, last: int
    ) -> None:
        """Feed the units between two matched lines to the tracebacks that are open."""
        if not tracebacks:
            return
        for start in block.starts(first, last):
            self._line(block, block.unit(start), _NOTHING, tracebacks)
            if not tracebacks:
                return

    def _line(
        self, block: Block, unit: Unit, heard: Heard, tracebacks: dict[str, Traceback]
    ) -> None:
        shown = readable(unit.data)
        if heard.shapes:
            at = printed_time(shown) or self._now
            shapes = without_guesses(heard.shapes) if heard.hits else heard.shapes
            self._memory.progress = advanced(self._memory.progress, shapes, unit.data, at)
        if not (heard.hits or heard.is_headline or tracebacks):
            return
        line = _Line(block=block, unit=unit, heard=heard, shown=shown, voice=listen(shown))
        _forget_old(tracebacks, unit.line)
        key = line.voice.key
        if heard.is_headline:
            self._open(line, tracebacks)
        elif key in tracebacks:
            name = exception_named(line.voice.body)
            if name is not None:
                self._ended(line, tracebacks.pop(key), name)
                return
            goes_on = followed(tracebacks[key], line.voice.body, shown[:SHOWN])
            if goes_on is None:
                del tracebacks[key]
            else:
                tracebacks[key] = goes_on
            if is_inside(line.voice.body):
                return
        self._signatures(line, None)

    def _open(self, line: _Line, tracebacks: dict[str, Traceback]) -> None:
        tracebacks.pop(line.voice.key, None)
        if len(tracebacks) < MOST_TRACEBACKS:
            before = line.block.lines_before(line.unit.at, 1)
            tracebacks[line.voice.key] = opened(line.shown[:SHOWN], before, line.unit.line)

    def _ended(self, line: _Line, traceback: Traceback, name: str) -> None:
        if traceback.is_noise:
            return
        if line.heard.hits:
            self._signatures(line, traceback)
        elif name.rpartition(".")[2] not in _ENDS_AS_TOLD:
            rule = msgspec.structs.replace(PYTHON_EXCEPTION, remedy=remedy_of_exception(name))
            self._tell(line, traceback, rule, {"exception": name})

    def _signatures(self, line: _Line, traceback: Traceback | None) -> None:
        for hit in line.heard.hits:
            self._tell(line, traceback, hit.rule, hit.captures)

    def _tell(
        self, line: _Line, traceback: Traceback | None, rule: Rule, captures: dict[str, str]
    ) -> None:
        frame = traceback.blamed if traceback else None
        count = self._memory.may_tell(rule.id, fingerprint(rule.id, captures, frame))
        if not count:
            return
        before = traceback.lines if traceback else line.block.lines_before(line.unit.at, _BEFORE)
        heading = Heading(
            place=Place(file=self._name, offset=line.unit.offset, line=line.unit.line),
            voice=line.voice,
            shown=line.shown[:SHOWN],
            before=before,
            frame=frame,
            at=printed_time(line.shown),
            now=self._now,
            node=self._file.node,
            rank=self._file.rank,
        )
        self._memory.findings.append(concluded(self._ears, rule, captures, heading, count))


def _forget_old(tracebacks: dict[str, Traceback], line: int) -> None:
    """Drop the tracebacks that began too long ago; they stand in the order of their beginning."""
    for key, traceback in list(tracebacks.items())[:1]:
        if line - traceback.began > MOST_LINES:
            del tracebacks[key]
