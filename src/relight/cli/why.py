"""``relight why``: the story of one job."""

from __future__ import annotations

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, JobText, Url, backend, job_named
from relight.cli.screens import show_json, show_lines
from relight.cli.stories import story

app = typer.Typer(add_completion=False)


@app.command()
def why(job_text: JobText, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Tell the story of one job in plain sentences, in the order in which it happened."""
    client = backend(url)
    key = job_named(client, job_text)
    case = client.job(key).case
    chapters = story(case, list(client.audit({"job": str(key)})))
    if as_json:
        show_json(chapters)
        return
    for chapter in chapters:
        show_lines([(0, "bold", chapter.title)])
        show_lines((2 + line.depth * 2, "", line.text) for line in chapter.lines)
