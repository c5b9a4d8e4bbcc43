"""``relight job``: one job and its attempts."""

from __future__ import annotations

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, JobText, Url, backend, job_named
from relight.cli.screens import show_json, show_lines, show_table
from relight.clients.backend.answers import JobLine
from relight.engine.cases import AttemptCase
from relight.model.hostlists import compress
from relight.model.instants import Instant, to_iso

app = typer.Typer(add_completion=False)

COLUMNS = ("attempt", "state", "nodes", "running since", "ended", "step", "advice")


@app.command()
def job(job_text: JobText, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one job and its attempts."""
    client = backend(url)
    answer = client.job(job_named(client, job_text))
    if as_json:
        show_json(answer)
        return
    show_lines((0, "", line) for line in _head(answer.job))
    show_table(COLUMNS, map(_row, answer.case.attempts), "no attempt was seen yet")
    show_lines([(0, "", f"The whole story: relight why {answer.job.key}")])


def _head(line: JobLine) -> tuple[str, ...]:
    watched = f"policy {line.policy}" if line.opted_in else "not opted in"
    whose = f"of {line.user or 'an unknown user'} in {line.partition or 'no partition'}"
    return (
        f"{line.key} {line.name}, {whose}, {watched}",
        line.says or "relight has nothing to say of it",
    )


def _row(attempt: AttemptCase) -> tuple[str, ...]:
    step = attempt.progress.best_step
    return (
        str(attempt.number),
        attempt.fact.state.value,
        compress(attempt.allocation.nodes or attempt.fact.nodes),
        _when(attempt.running_at),
        _when(attempt.ended_at),
        "" if step is None else str(step),
        attempt.advice.decision.value if attempt.advice else "",
    )


def _when(at: Instant | None) -> str:
    return "" if at is None else to_iso(at)[:19] + "Z"
