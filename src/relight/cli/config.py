"""``relight config``: check the settings file, and explain its keys."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from relight.model.advice import Mode
from relight.policy.opt_in import quoted
from relight.policy.policies import Policy, Response
from relight.settings.explaining import explain, markdown, matching, nearest
from relight.settings.keys import KEYS
from relight.settings.loading import load
from relight.settings.problems import SettingsError
from relight.settings.records import Cluster, Settings

app = typer.Typer(name="config", help="Check the settings and explain their keys.")

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="The settings file; without it the usual places are searched."),
]


@app.command("check")
def check(config: ConfigOption = None) -> None:
    """Print every problem of the settings and exit with 1, or say that all is well."""
    try:
        settings = load(config, os.environ)
    except SettingsError as error:
        count = len(error.problems)
        typer.echo(f"{error}\n{count} problem{'s' if count > 1 else ''}", err=True)
        raise typer.Exit(1) from None
    typer.echo("\n".join(summary(settings)))


@app.command("explain")
def explain_keys(
    key: Annotated[
        str, typer.Argument(help="A key, such as policy.default.settle, or a section.")
    ] = "",
    *,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all as the tables of the documentation.")
    ] = False,
) -> None:
    """Explain one key, a section, or all: meaning, what is allowed, the default and why."""
    if as_markdown:
        typer.echo(markdown())
        return
    keys = matching(key) if key else KEYS
    if not keys:
        guess = nearest(key)
        hint = f"did you mean {guess}?" if guess else "relight config explain lists all keys"
        typer.echo(f"{quoted(key)} is not a key; {hint}", err=True)
        raise typer.Exit(2)
    typer.echo("\n\n".join(explain(one) for one in keys))


def summary(settings: Settings) -> list[str]:
    """Return what the settings amount to, and say aloud which clusters can be changed."""
    return [
        f"ok: {settings.origin}",
        *(line for cluster in settings.clusters for line in _cluster(settings, cluster)),
        *_unused(settings),
        f"state: {settings.store.path}",
        f"database: {settings.store.database}",
        f"listens on: {settings.serve.host} port {settings.serve.port}",
    ]


def _unused(settings: Settings) -> list[str]:
    """Return a line for each server or service that no cluster names: it is never asked."""
    named = {one.telemetry for one in settings.clusters}
    asked = {name for one in settings.clusters for name in one.attribution}
    unused = [
        *(
            (f"telemetry.{one.name}", "telemetry")
            for one in settings.telemetry
            if one.name not in named
        ),
        *(
            (f"attribution.{one.name}", "attribution")
            for one in settings.attribution
            if one.name not in asked
        ),
    ]
    return [f"note: {table} is never asked: no cluster names it in {key}" for table, key in unused]


def _cluster(settings: Settings, cluster: Cluster) -> list[str]:
    book = settings.book(cluster.name)
    opt_ins = f"{len(book.opt_ins)} opt-in{'' if len(book.opt_ins) == 1 else 's'}"
    head = f"cluster {cluster.name} ({cluster.kind}, {opt_ins}):"
    if not settings.can_change(cluster.name):
        return [f"{head} MONITOR ONLY, relight says what it would do and changes nothing"]
    where = f"in {', '.join(cluster.partitions)}" if cluster.partitions else "in every partition"
    by_mode = {
        mode: ", ".join(one.name for one in book.policies if one.mode is mode and one.may)
        for mode in (Mode.ACT, Mode.APPROVE)
    }
    can = [
        f"{'ACTS' if mode is Mode.ACT else 'ACTS AFTER A YES'} under {names}"
        for mode, names in by_mode.items()
        if names
    ]
    living = ", ".join(one.name for one in book.policies if _ends_living(one))
    told = (
        [f"  LIVING JOBS that hang, or worse, are restarted too under {living}"] if living else []
    )
    return [f"{head} {where} {' and '.join(can)}", *told]


def _ends_living(policy: Policy) -> bool:
    """Tell whether a policy may end an attempt that runs, because of how it does."""
    answers = (policy.hang, policy.slow, policy.numeric)
    return policy.mode is not Mode.MONITOR and any(one is not Response.REPORT for one in answers)
