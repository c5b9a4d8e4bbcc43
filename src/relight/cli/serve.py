"""``relight serve``: run everything in one process."""

from __future__ import annotations

import os

import typer

from relight.cli.config import ConfigOption

app = typer.Typer(name="serve")


@app.command()
def serve(config: ConfigOption = None) -> None:
    """Run relight: watch clusters, decide, serve the API."""
    from relight.daemon.logging import set_up_logging  # noqa: PLC0415 - only a server pays for it
    from relight.daemon.serving import serve as serve_until_stopped  # noqa: PLC0415 - likewise
    from relight.settings.loading import load  # noqa: PLC0415 - likewise

    set_up_logging()
    settings = load(config, os.environ)
    serve_until_stopped(settings, lambda sentence: typer.echo(sentence, err=True))
