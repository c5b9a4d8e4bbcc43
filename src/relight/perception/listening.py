"""Hears one file: blocks of whole lines in, findings and progress into the attempt's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from relight.model.findings import Domain, Finding, Kind, Place, Remedy, Role
from relight.model.instants import Instant
from relight.model.signals import Reading
from relight.perception.cleaning import MOST_CARRIED
from relight.perception.conclusions import Heading, concluded, remedy_of_exception
from relight.perception.ears import Ears, Heard
from relight.perception.fingerprints import fingerprint
from relight.perception.lines import SHOWN, STRIDE, Block, FileState, Unit, readable
from relight.perception.memories import Memory
from relight.perception.prefixes import Voice, listen
from relight.perception.progress.besides import clock_of, take_beside
from relight.perception.progress.readings import read_line, read_other, time_of_day
from relight.perception.progress.runs import RunTally
from relight.perception.progress.sampling import Step, steps_of
from relight.perception.progress.tallies import Moment, step_named
from relight.perception.ranks import Hosts, heard_in
from relight.perception.rhythm.beats import Beats
from relight.perception.rhythm.figures import figures_in
from relight.perception.shapes import SHAPES
from relight.perception.shapes.entries import Says
from relight.perception.times import printed_time
from relight.perception.tracebacks import (
    MOST_LINES,
    Traceback,
    exception_named,
    followed,
    is_code,
    is_inside,
    opened,
)
from relight.rules.schema import Rule

MOST_TRACEBACKS = 256
"""Tracebacks of one file that may be open at once: one a writer."""
_BEFORE = 5
_ABOVE = 2
"""Lines above a traceback that may say that it was caught."""

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
_BESIDE_A_STEP = frozenset({Says.EVALUATED, Says.EVALUATING, Says.NAN})
"""What a line that tells a step says of numbers that stand beside it, not of a pause."""
_NOTHING = Heard()
_FAILURES = frozenset({Kind.CRASH, Kind.HANG, Kind.NODE})


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
        self._runs = RunTally(file.runs)

    def read(self, reading: Reading) -> FileState:
        """Take in the bytes of ``reading``, but none that were taken before."""
        self._name = reading.file
        file = self._file
        if reading.restarted:
            file = FileState(rank=file.rank, node=file.node, next_offset=reading.offset)
            self._runs = RunTally(file.runs)
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
        self._file = msgspec.structs.replace(self._file, runs=self._runs.frozen())
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
        self._file = msgspec.structs.replace(self._file, tracebacks={}, runs=self._runs.frozen())
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
            run=self._runs.number,
            step=self._runs.tally.last_step,
        )
        self._found(concluded(self._ears, PYTHON_EXCEPTION, captures, heading, count))

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
            carry=block[end : end + MOST_CARRIED],
            carry_offset=end + shift if end else first_offset,
            next_offset=file.next_offset + len(data),
        )

    def _hear(self, raw: bytes, first_offset: int, shift: int) -> None:
        block = Block(raw, self._file, first_offset, shift)
        tracebacks = dict(self._file.tracebacks)
        things = grouped(self._ears.lexicon.matcher.scan(block.text))
        steps, density = steps_of(
            block,
            list(things),
            self._file.density,
            self._memory.grid,
            is_known=self._runs.knows_its_counter,
        )
        done = 0
        turns = [(0, self._runs.number)]
        for start in sorted(steps.keys() | things.keys()):
            self._follow(block, tracebacks, done, start)
            unit = block.unit(start)
            found = things.get(start)
            heard = self._ears.lexicon.heard(found, unit.data) if found else _NOTHING
            self._line(block, unit, heard, steps.get(start), tracebacks)
            if self._runs.number != turns[-1][1]:
                turns.append((start, self._runs.number))
            done = block.text.find(b"\n", start) + 1
        self._follow(block, tracebacks, done, len(block.text))
        tail, overwritten = block.new_tail()
        self._file = msgspec.structs.replace(
            self._file,
            line=self._file.line + block.count_lines(),
            overwritten=overwritten,
            tail=tail,
            density=density,
            hosts=self._hosts_in(block.text, turns),
            tracebacks=tracebacks,
        )

    def _hosts_in(self, text: bytes, turns: Sequence[tuple[int, int]]) -> Hosts:
        """Return the hosts known after ``text``; ``turns`` are where its runs begin."""
        hosts = self._file.hosts
        ends = [start for start, _ in turns[1:]] + [len(text)]
        for (start, run), end in zip(turns, ends, strict=True):
            hosts = heard_in(text, start, end, hosts, run)
        return hosts

    def _follow(
        self, block: Block, tracebacks: dict[str, Traceback], first: int, last: int
    ) -> None:
        """Feed the units between two matched lines to the tracebacks that are open."""
        if not tracebacks:
            return
        for start in block.starts(first, last):
            self._line(block, block.unit(start), _NOTHING, None, tracebacks)
            if not tracebacks:
                return

    def _line(
        self,
        block: Block,
        unit: Unit,
        heard: Heard,
        step: Step | None,
        tracebacks: dict[str, Traceback],
    ) -> None:
        shown = readable(unit.data)
        self._counts(unit, heard, step, shown)
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
        if not is_code(line.voice.body):
            self._signatures(line, None)

    def _counts(self, unit: Unit, heard: Heard, step: Step | None, shown: str) -> None:
        """Take in what a line tells of progress: its shapes, its step, and the pulses of both."""
        for number in heard.shapes:
            self._runs.marked(number, unit.line)
            self._runs.tally.heard(number, unit.data)
            self._memory.progress.heard(number, unit.data)
        has_counted = False
        if step is not None:
            is_trouble = any(_is_trouble(hit.rule) for hit in heard.hits)
            has_counted = self._progress(unit, step, shown, is_failure=is_trouble)
        if heard.shapes and self._memory.beats is not None:
            self._pulses(self._memory.beats, heard.shapes, unit, shown, has_counted=has_counted)

    def _pulses(
        self, beats: Beats, shapes: Sequence[int], unit: Unit, shown: str, *, has_counted: bool
    ) -> None:
        """Tell the rhythm what a line says, but for what its step has told already."""
        at = printed_time(shown)
        steps = (step_named(number, unit.data) for number in shapes)
        named = next((step for step in steps if step is not None), None)
        told = {SHAPES[number].says for number in shapes}
        if has_counted:
            told -= _BESIDE_A_STEP
        beats.said(told, shown, at, named, self._memory.progress.last_step)

    def _progress(self, unit: Unit, step: Step, shown: str, *, is_failure: bool) -> bool:
        """Count a line that may tell a step; return whether it told one."""
        tallies = (self._runs.tally, self._memory.progress)
        beats = self._memory.beats
        at = printed_time(shown)
        of_day = time_of_day(unit.data) if at is None else None
        moment = Moment(at, clock_of(at, of_day, self._now), step.frame)
        for number in step.numbers:
            is_measure = take_beside(number, unit.data, moment, tallies)
            if is_measure and beats is not None:
                beats.beside(figures_in(shown), shown, at, self._memory.progress.last_step)
        told = step.told
        if not step.was_read:
            told = read_line(step.numbers, unit.data, is_failure=is_failure)
        if told is None:
            if beats is not None:
                _other(beats, step, unit, at)
            return False
        if told.clock is not None:
            moment = moment._replace(clock=told.clock)
        elif of_day is not None:
            told = told._replace(clock=of_day)
        self._runs.stepping(told, unit.line)
        self._runs.tally.step(told, moment, shown)
        moment = moment._replace(at=at or self._now)
        stepped = self._memory.progress.step(told, moment, shown)
        if stepped is not None and beats is not None:
            counted = self._memory.progress.counted(stepped, told, moment)
            place = Place(file=self._name, offset=unit.offset, line=unit.line)
            beats.counted(counted, shown, at, place)
        return True

    def _open(self, line: _Line, tracebacks: dict[str, Traceback]) -> None:
        tracebacks.pop(line.voice.key, None)
        if len(tracebacks) < MOST_TRACEBACKS:
            before = line.block.lines_before(line.unit.at, _ABOVE)
            tracebacks[line.voice.key] = opened(line.shown[:SHOWN], before, line.unit.line)

    def _ended(self, line: _Line, traceback: Traceback, name: str) -> None:
        if traceback.is_noise:
            return
        line = self._behind_prefix(line)
        if line.heard.hits:
            self._signatures(line, traceback)
        elif name.rpartition(".")[2] not in _ENDS_AS_TOLD:
            rule = msgspec.structs.replace(PYTHON_EXCEPTION, remedy=remedy_of_exception(name))
            self._tell(line, traceback, rule, {"exception": name})

    def _behind_prefix(self, line: _Line) -> _Line:
        """Return the line as it is heard without its prefix, where with it nothing is heard.

        Some expressions want the begin of a line.
        """
        body = line.voice.body
        if line.heard.hits or len(body) == len(line.shown):
            return line
        data = body.encode(errors="replace")
        found = [index for _, index in self._ears.lexicon.matcher.scan(data + b"\n")]
        return replace(line, heard=self._ears.lexicon.heard(found, data))

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
            run=self._runs.number,
            step=self._runs.tally.last_step,
        )
        self._found(concluded(self._ears, rule, captures, heading, count))

    def _found(self, finding: Finding) -> None:
        self._memory.findings.append(finding)
        self._runs.found(is_failure=_is_failure(finding))


def _other(beats: Beats, step: Step, unit: Unit, at: Instant | None) -> None:
    if not beats.wants_others:
        return
    moved = read_other(step.numbers, unit.data)
    if moved is not None:
        beats.moved(moved, at)


def _forget_old(tracebacks: dict[str, Traceback], line: int) -> None:
    """Drop the tracebacks that began too long ago; they stand in the order of their beginning."""
    for key, traceback in list(tracebacks.items())[:1]:
        if line - traceback.began > MOST_LINES:
            del tracebacks[key]


def grouped(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the second numbers of ``pairs`` by their first."""
    found: dict[int, list[int]] = {}
    for first, second in pairs:
        found.setdefault(first, []).append(second)
    return found


def _is_failure(told: Rule | Finding) -> bool:
    """Return whether a rule, or what it found, tells of something that ends a run."""
    return told.kind in _FAILURES and told.role is not Role.BENIGN and told.ending is None


def _is_trouble(rule: Rule) -> bool:
    """Return whether a number in a line of this rule is hardly a step that was completed."""
    return rule.role is not Role.BENIGN and rule.kind is not Kind.NUMERIC
