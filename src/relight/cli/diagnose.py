"""``relight diagnose``: what went wrong in a run, from its logs alone."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url
from relight.cli.diagnosing import Diagnosing
from relight.cli.rule_sets import Rules, directories
from relight.model.hostlists import HostlistError, expand
from relight.model.jobs import Allocation

INTERRUPTED = 130

app = typer.Typer(name="diagnose")

_HELP = """\
Tell from its logs what went wrong in a run, whose fault it is, and what relight would do.

FILE is a log, a directory of logs, a glob, or - for standard input; compressed ones (gzip, zstd, \
xz, bzip2) are read as they are. All files are one job's, unless their names tell several.

Nothing is asked of a server, a scheduler or a network, but with --job.

Exit codes: 0 nothing is wrong or nothing is to be done, 10 restart, 11 restart without a node, \
12 stop, 13 hold, 2 the command line is wrong, 3 part of the input could not be read."""


@app.command(help=_HELP)
def diagnose(  # noqa: PLR0913 - the options of the command line
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Logs; standard input without any."),
    ] = None,
    *,
    nodes: Annotated[
        str,
        typer.Option(help="The nodes that the job had, in their order: node-[001-128]."),
    ] = "",
    tasks_per_node: Annotated[
        int,
        typer.Option(
            min=0, help="Ranks that each node has, so that a rank names its node; with --nodes."
        ),
    ] = 0,
    job: Annotated[
        str,
        typer.Option(
            help="A job: its nodes are asked of relight serve or else of the scheduler, and "
            "without FILE its logs are read."
        ),
    ] = "",
    url: Url = DEFAULT_URL,
    flight_recorder: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="The job's dumps of NCCL's flight recorder: a folder, a prefix that ranks "
            "follow (/srv/dumps/nccl_trace_rank_) or a glob; beside logs or, without FILE, alone.",
        ),
    ] = "",
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Tell from its logs what went wrong in a run."""
    words = tuple(files or ())
    allocation = _allocation(nodes, tasks_per_node)
    with _quiet_interrupt():
        if job:
            from relight.cli.job_logs import ask  # noqa: PLC0415 - it loads what asks

            asked = ask(job, url)
            allocation = allocation if allocation.nodes else asked.allocation
            words = words or asked.words
            if not words:
                raise typer.BadParameter(f"{asked.unknown}: name them as FILE")
        elif not words and not flight_recorder:
            words = _standard_input()
        diagnosing = Diagnosing(
            directories(rules), as_json=as_json, flight_recorder=flight_recorder
        )
        code = diagnosing.run(words, allocation)
    raise typer.Exit(code)


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """End at once and without a word on Ctrl-C; nothing is under way that could be harmed.

    An exception would not do: raised while Hyperscan calls back it is lost.
    """
    before = signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_: int, __: FrameType | None) -> None:
    if "multiprocessing" in sys.modules:
        for reader in sys.modules["multiprocessing"].active_children():
            reader.kill()
    os._exit(INTERRUPTED)


def _allocation(nodes: str, tasks_per_node: int) -> Allocation:
    if tasks_per_node and not nodes:
        raise typer.BadParameter("--tasks-per-node needs --nodes: it tells how ranks lie on them")
    try:
        hosts = expand(nodes)
    except HostlistError as error:
        raise typer.BadParameter(str(error), param_hint="--nodes") from error
    return Allocation(
        nodes=hosts, tasks_per_node=tasks_per_node, ranks_are_tasks=tasks_per_node > 1
    )


def _standard_input() -> tuple[str, ...]:
    try:
        is_person = os.isatty(0)
    except OSError:
        is_person = True
    if is_person:
        raise typer.BadParameter(
            "name a FILE, a directory or a glob, or pipe a log into relight diagnose"
        )
    return ("-",)
