"""One call of ``relight diagnose``: read, tell, and end with the code that says it in short."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from relight.cli.failures import FAILED
from relight.cli.screens import plain, show_json
from relight.daemon.clock import now
from relight.model.advice import Decision
from relight.model.jobs import Allocation
from relight.perception.ears import Ears
from relight.perception.matching import LateMatcher
from relight.sources.archives.diagnosing import Announced, Diagnoses, Trouble, diagnose_logs
from relight.sources.archives.opening import STANDARD_INPUT
from relight.sources.archives.reading import Listener
from relight.sources.shelves import cache_folder

if TYPE_CHECKING:  # loaded only where dumps are named
    from relight.sources.archives.recorded import Recorder

USAGE = 2
PARTIAL = 3
CODES = {
    Decision.NONE: 0,
    Decision.RESTART: 10,
    Decision.RESTART_EXCLUDING_NODE: 11,
    Decision.STOP: 12,
    Decision.HOLD: 13,
}
"""The exit code of a decision; of several jobs the highest counts."""

MUCH = 256 * 1024 * 1024
"""Bytes from which a person wants to see how far the reading is."""
MOST_TROUBLES = 20

_BAR = 30
_EVERY = 16 * 1024 * 1024


def exit_code(diagnoses: Diagnoses) -> int:
    """Return the code: 3 when anything could not be read, whatever the rest says."""
    if diagnoses.is_misnamed:
        return USAGE
    if diagnoses.is_partial:
        return PARTIAL
    return max(CODES[one.report.decision] for one in diagnoses.jobs)


@dataclass(slots=True)
class Diagnosing:
    """Reads with these rules, and prints as JSON or for a person.

    ``flight_recorder`` is where dumps of NCCL's flight recorder lie, empty for nowhere.
    """

    directories: tuple[Path, ...]
    as_json: bool = False
    flight_recorder: str = ""
    _ears: Ears | None = field(default=None, init=False)
    _bar: _Bar | None = field(default=None, init=False)

    def run(self, words: Sequence[str], allocation: Allocation) -> int:
        """Diagnose what ``words`` name, print it, and return the exit code.

        What could not be read is told on standard error, one line each.

        Raises:
            RuleError: the rules of a directory cannot be used.

        """
        diagnoses = diagnose_logs(words, allocation, self._prepare, self._seen, self._recorder())
        if self._bar is not None:
            self._bar.clear()
        _tell([*diagnoses.troubles, *(one for job in diagnoses.jobs for one in job.troubles)])
        is_written = _print(lambda: self._show(diagnoses))
        self._stock()
        return exit_code(diagnoses) if is_written else FAILED

    def _recorder(self) -> Recorder | None:
        if not self.flight_recorder:
            return None
        from relight.sources.archives.recorded import Recorder  # noqa: PLC0415 - only where it is named
        from relight.sources.flight_files import gather_own  # noqa: PLC0415 - likewise

        path = self.flight_recorder
        return Recorder(path=path, gathered=gather_own(path), now=now())

    def _prepare(self, announced: Announced) -> tuple[Listener, Ears]:
        folder = cache_folder(os.environ)
        listener = Listener(directories=self.directories, shelf=folder, now=now())
        self._ears = listener.ears()
        if sys.stderr.isatty() and (announced.is_open or announced.size >= MUCH):
            self._bar = _Bar(total=0 if announced.is_open else announced.size)
        return listener, self._ears

    def _seen(self, count: int) -> None:
        if self._bar is not None:
            self._bar.add(count)

    def _show(self, diagnoses: Diagnoses) -> None:
        if self.as_json:
            from relight.cli.reports_json import as_one  # noqa: PLC0415 - one of the two is needed

            show_json(as_one(diagnoses))
        elif any(one.files for one in diagnoses.jobs):
            from rich.console import Group  # noqa: PLC0415 - only a person pays for it

            from relight.cli.reports_shown import pages  # noqa: PLC0415 - likewise
            from relight.cli.screens import rendered  # noqa: PLC0415 - likewise

            rules = self._ears.lexicon.rules if self._ears is not None else ()
            known = {rule.id: rule for rule in rules}
            sys.stdout.write(rendered(Group(*pages(diagnoses, known))))

    def _stock(self) -> None:
        """Keep for the next call what this one compiled, now that the answer is out."""
        matcher = self._ears.lexicon.matcher if self._ears is not None else None
        if isinstance(matcher, LateMatcher):
            matcher.stock()


class _Bar:
    """How far the reading is, on one line of standard error; ``total`` 0 when nobody knows."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._read = 0
        self._shown = 0

    def add(self, count: int) -> None:
        self._read += count
        if self._read - self._shown < _EVERY:
            return
        self._shown = self._read
        told = f"{self._read / 1e9:.2f} GB"
        if self._total:
            share = min(1.0, self._read / self._total)
            bar = ("#" * round(share * _BAR)).ljust(_BAR, ".")
            told = f"[{bar}] {share:4.0%} of {self._total / 1e9:.2f} GB"
        sys.stderr.write(f"\rreading {told}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            _wipe()


def _wipe() -> None:
    """Wipe what stands on the terminal's last line."""
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _tell(troubles: Sequence[Trouble]) -> None:
    for one in troubles[:MOST_TROUBLES]:
        file = "standard input" if one.file == STANDARD_INPUT else one.file
        sys.stderr.write(f"relight: {plain(file)}: {plain(one.why)}\n")
    if len(troubles) > MOST_TROUBLES:
        more = len(troubles) - MOST_TROUBLES
        sys.stderr.write(f"relight: {more} more could not be read; --json lists all\n")
    sys.stderr.flush()


def _print(show: Callable[[], None]) -> bool:
    """Print, and return whether it could be written.

    Nobody complains when a reader leaves before its end, as with ``| head``.
    """
    try:
        show()
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer would be tried again at exit, and fail aloud.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return True
        why = error.strerror or str(error)
        sys.stderr.write(f"relight: the report could not be written: {why.lower()}\n")
        return False
    return True
