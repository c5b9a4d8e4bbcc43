"""``relight run``: supervise one command on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from relight.cli.config import ConfigOption
from relight.cli.screens import plain
from relight.model.advice import Mode
from relight.model.instants import to_iso
from relight.policy.policies import Policy
from relight.settings.loading import load
from relight.settings.problems import Problem, SettingsError

NOT_FOUND = 127
NOT_EXECUTABLE = 126

app = typer.Typer(name="run")


_HELP = """\
Run one command on this machine and bring it back to life when it fails.

The command's output is passed on as it is; what relight says goes to standard error, in lines \
that begin with "relight: ".

It acts, since you asked for that by calling it: the command is started again within its limits, \
but never after an error that would only come again. With --monitor it only says so. \
RELIGHT_RESTART_COUNT tells the command which attempt it is, from 0: go on from your newest \
checkpoint.

Ctrl-C and SIGTERM go to the command and end the run; a second one kills it. The exit code is \
the command's last one; 126 and 127 say that it cannot be run.

The files of a run that went wrong are kept below $XDG_STATE_HOME/relight/runs; those of one that \
went well only where --logs says so."""


@app.command(help=_HELP, context_settings={"allow_interspersed_args": False})
def run(  # noqa: PLR0913 - the options of the command line
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments.")
    ],
    *,
    max_restarts: Annotated[
        int | None,
        typer.Option(min=0, help="Restarts without progress before giving up; 3 by default."),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="A policy of relight.toml to take limits and waits from.")
    ] = "",
    config: ConfigOption = None,
    monitor: Annotated[
        bool, typer.Option("--monitor", help="Only say what would be done; restart nothing.")
    ] = False,
    logs: Annotated[
        Path | None,
        typer.Option(help="Keep the files of this run in a new folder below this one."),
    ] = None,
) -> None:
    """Run one command on this machine and bring it back to life when it fails."""
    _check_command(command[0])
    from relight.daemon.clock import now  # noqa: PLC0415 - only a run that starts pays for it
    from relight.daemon.local_runs import Plan, supervise  # noqa: PLC0415 - likewise

    name = f"{to_iso(now())[:19].replace(':', '')}-{os.getpid()}"
    folder = (logs or _state_folder()).absolute() / name
    chosen = _policy(config, policy, max_restarts, monitor=monitor)
    end = supervise(Plan(command=tuple(command), policy=chosen, folder=folder), _say)
    if end.code or end.restarts:
        _say(f"Exit code {end.code}. The files of this run are in {folder}")
    elif logs is None:
        shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(end.code)


def _say(sentence: str) -> None:
    sys.stderr.write(f"relight: {plain(sentence)}\n")
    sys.stderr.flush()


def _check_command(program: str) -> None:
    if shutil.which(program):
        return
    is_there = "/" in program and Path(program).exists()
    what = "it cannot be executed" if is_there else "there is no such command"
    _say(f"{program}: {what}; give a program and its arguments after --")
    raise typer.Exit(NOT_EXECUTABLE if is_there else NOT_FOUND)


def _policy(config: Path | None, name: str, max_restarts: int | None, *, monitor: bool) -> Policy:
    policy = _configured(config, name or "default") if config or name else Policy(name="run")
    limit = policy.max_restarts if max_restarts is None else max_restarts
    mode = Mode.MONITOR if monitor else Mode.ACT
    return msgspec.structs.replace(policy, mode=mode, max_restarts=limit)


def _configured(config: Path | None, name: str) -> Policy:
    settings = load(config, os.environ)
    for policy in settings.policies:
        if policy.name == name:
            return policy
    known = ", ".join(policy.name for policy in settings.policies)
    raise SettingsError(
        (
            Problem(
                source=settings.origin,
                path=f"policy.{name}",
                what="does not exist",
                cure=f"known are {known}",
            ),
        )
    )


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if base.startswith("/") else Path("~/.local/state").expanduser()
    return root / "relight" / "runs"
