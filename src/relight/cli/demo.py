"""``relight demo``: a failure and a recovery on this machine, in half a minute."""

from __future__ import annotations

import signal
from enum import StrEnum
from types import FrameType
from typing import Annotated

import typer

INTERRUPTED = 130

app = typer.Typer(name="demo")


class FaultOption(StrEnum):
    """What can break."""

    ECC = "ecc"
    MODULE = "module"
    INPLACE = "inplace"
    DEADTASK = "deadtask"


_HELP = """\
Show a failure and a recovery on this machine, in less than half a minute.

A small real training runs on four pretend nodes and fails. You see it twice: first relight only \
says what it would do, then it does it. Nothing outside a temporary folder is touched. Exits with \
1 when relight did not do what it must."""


@app.command(help=_HELP)
def demo(
    *,
    fault: Annotated[
        FaultOption,
        typer.Option(
            help="What breaks: the GPU memory of a node (ecc), a missing Python module (module), "
            "a worker whose launcher restarts it in place (inplace), or a task that dies without "
            "a word (deadtask)."
        ),
    ] = FaultOption.ECC,
    slurm: Annotated[
        bool,
        typer.Option(
            "--slurm",
            help="Play it on a real Slurm of four nodes that is started for this alone. Needs "
            "root; on Debian, Slurm is installed if it is missing.",
        ),
    ] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Leave no time to read along.")] = False,
) -> None:
    """Show a failure and a recovery on this machine."""
    from rich.console import Console  # noqa: PLC0415 - only the demo pays for it

    from relight.testing.demo.demos import Choices, play_demo  # noqa: PLC0415 - likewise
    from relight.testing.demo.faults import FaultName  # noqa: PLC0415 - likewise

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    console = Console(highlight=False, markup=False, emoji=False)
    choices = Choices(fault=FaultName(fault.value), on_slurm=slurm, is_fast=fast)
    try:
        is_well = play_demo(choices, console)
    except KeyboardInterrupt:
        typer.echo("Interrupted. Everything that the demo started has ended.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(0 if is_well else 1)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
