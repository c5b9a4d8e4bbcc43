"""The whole demo: two acts on one stage, told on a terminal or as plain lines."""

from __future__ import annotations

import contextlib
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import structlog
from rich.console import Console
from rich.text import Text

from relight.model.advice import Mode
from relight.model.records import Record
from relight.testing.demo.acts import play, problems
from relight.testing.demo.faults import FAST, FAULTS, USUAL, FaultName
from relight.testing.demo.lines import LineTeller
from relight.testing.demo.screens import ScreenTeller
from relight.testing.demo.sentences import NEXT_STEPS, introduction
from relight.testing.demo.stages import LocalStage, SlurmStage, Stage
from relight.testing.demo.watching import Act, Snapshot


class Choices(Record, frozen=True, kw_only=True):
    """What is played: which fault, where and how fast."""

    fault: FaultName = FaultName.ECC
    on_slurm: bool = False
    is_fast: bool = False


class _Teller(Protocol):
    """Tells the acts, one after the other."""

    def begin(self, act: Act) -> None:
        """Say which act begins."""
        ...

    def show(self, now: Snapshot) -> None:
        """Tell what is new."""
        ...

    def end(self, last: Snapshot) -> None:
        """Tell how the act ended."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


def play_demo(choices: Choices, console: Console) -> bool:
    """Play both acts, say what to do next, and return whether all came out as it must.

    Everything that it starts has ended when it returns or raises.

    Raises:
        ClusterError: no Slurm can be started here.
        InstallError: Slurm's packages could not be installed.

    """
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="relight-demo-")))
        folder.chmod(0o755)  # on a real Slurm jobs run as another user
        _log_to(folder / "relight.log", opened)
        stage: Stage
        if choices.on_slurm:
            stage = opened.enter_context(SlurmStage(folder, lambda line: _say(console, line)))
        else:
            stage = opened.enter_context(LocalStage(folder))
        failures = _play_both(choices, stage, folder, console)
    for failure in failures:
        _say(console, f"The demo failed: {failure}")
    _say(console, f"\n{NEXT_STEPS}")
    return not failures


def _play_both(choices: Choices, stage: Stage, folder: Path, console: Console) -> list[str]:
    fault, pace = FAULTS[choices.fault], FAST if choices.is_fast else USUAL
    _say(console, introduction(stage.called, fault.told))
    teller: _Teller = LineTeller(lambda line: _say(console, line))
    if console.is_terminal:
        teller = ScreenTeller(console)
    failures: list[str] = []
    with contextlib.closing(teller):
        for number, mode in ((1, Mode.MONITOR), (2, Mode.ACT)):
            act = Act(number=number, mode=mode, fault=fault, pace=pace)
            teller.begin(act)
            last = play(stage, act, folder, teller.show)
            teller.end(last)
            failures += problems(last)
    return failures


def _say(console: Console, line: str) -> None:
    console.print(Text(line), soft_wrap=not console.is_terminal)


def _log_to(file: Path, opened: ExitStack) -> None:
    """Keep the service's own log off the screen."""
    lines = opened.enter_context(file.open("a"))
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(file=lines))
