"""``relight reject``: say no to an advice."""

from __future__ import annotations

from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AttemptText, Url
from relight.cli.words import say
from relight.model.stimuli import Word

app = typer.Typer(add_completion=False)


@app.command()
def reject(
    attempt_text: AttemptText,
    *,
    why: Annotated[str, typer.Option(help="The reason, for the audit.")],
    who: Annotated[str, typer.Option(help="In whose name; by default the one who runs it.")] = "",
    url: Url = DEFAULT_URL,
) -> None:
    """Say no to an advice that waits for a person."""
    say(Word.REJECT, attempt_text, why=why, who=who, url=url)
