"""A person's yes or no to an advice."""

from __future__ import annotations

import getpass

from relight.cli.asking import attempt_named, backend
from relight.cli.screens import show_lines
from relight.clients.backend.answers import WordSaid
from relight.model.stimuli import Word


def say(word: Word, attempt_text: str, *, why: str, who: str, url: str) -> None:
    """Say a word about the newest generation of an advice, and print what became of it.

    Without ``who`` it is said in the name of the user who runs this.
    """
    client = backend(url)
    attempt = attempt_named(client, attempt_text)
    newest = client.advice_of(attempt).advice
    said = WordSaid(word=word, who=who or getpass.getuser(), why=why, generation=newest.generation)
    accepted = client.say(attempt, said)
    show_lines([(0, "", f"{accepted.sentence}: {newest.reason.sentence}")])
