"""The program ``relight``: which commands there are, and how a failure ends.

Exit codes: 0 all went well, 1 it failed, 2 the command line is wrong, 4 what was named does
not exist, 5 no backend answers, 6 it did not end in time and was cut off.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from relight import __version__
from relight.cli.failures import code_of, is_told, message_of

COMMANDS = {
    "serve": "Run relight: watch clusters, decide, serve the API.",
    "run": "Run one command on this machine and bring it back to life.",
    "demo": "Show a failure and a recovery on this machine.",
    "diagnose": "Tell from its logs what went wrong in a run.",
    "jobs": "List jobs, those that are open first.",
    "job": "Show one job and its attempts.",
    "why": "Tell the story of one job in plain sentences.",
    "incidents": "List what went wrong.",
    "advice": "List what relight advises.",
    "approve": "Say yes to an advice that waits for a person.",
    "reject": "Say no to an advice that waits for a person.",
    "audit": "List the record of everything that was seen, decided and done.",
    "replay": "Make every past decision again and compare.",
    "rules": "Show, explain and check the rules that are heard.",
    "config": "Check the settings and explain their keys.",
    "db": "Look after the database.",
    "doctor": "Look at everything that relight needs, and say what to do about it.",
}
"""Every command and its one line of help; the file of a command bears its name."""

EPILOG = (
    "Exit codes: 0 all went well, 1 it failed, 2 the command line is wrong, "
    "4 what was named does not exist, 5 no backend answers, 6 it did not end in time."
)


def main() -> None:
    """Run the command line of this process and exit.

    A terminal that cannot show a character gets its number instead.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code; known failures are told in one sentence."""
    try:
        build(words)(args=list(words), prog_name="relight")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        if not is_told(error):
            raise
        typer.echo(f"relight: {message_of(error)}", err=True)
        return code_of(error)
    return 0


def build(words: Sequence[str]) -> typer.Typer:
    """Return the application for a command line: only the command that it calls is imported."""
    app = typer.Typer(
        name="relight",
        help="Brings distributed training back to life after a failure.",
        epilog=EPILOG,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    called = next((word for word in words if not word.startswith("-")), "")
    for name, line in COMMANDS.items():
        if name == called:
            _register(app, name)
        else:
            app.command(name, help=line)(_only_listed)
    return app


def _register(app: typer.Typer, name: str) -> None:
    part = import_module(f"relight.cli.{name}").app
    if part.registered_callback is None and len(part.registered_commands) == 1:
        only = part.registered_commands[0]
        app.command(name, context_settings=only.context_settings, help=only.help)(only.callback)
    else:
        app.add_typer(part, name=name)


def _only_listed() -> None:
    raise AssertionError("a command that is only listed was called")


def _show_version(asked: bool) -> None:  # noqa: FBT001 - the shape of an option's callback
    if asked:
        typer.echo(f"relight {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Bring distributed training back to life after a failure."""


if __name__ == "__main__":
    main()
