"""What a key of the configuration is, and the kinds of value that several keys have."""

from __future__ import annotations

from dataclasses import dataclass

from relight.model.advice import Mode
from relight.model.instants import seconds
from relight.settings.shapes import Shape, Text, Word

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
NAME_WORDS = "letters, digits, dots, dashes and underscores, at most 64"

HOUR = seconds(3_600)
DAY = 24 * HOUR
MODE = Word(choices=tuple(mode.value for mode in Mode))
NAMED = Text(words=f"a name: {NAME_WORDS}", pattern=NAME)
RESPONSE = Word(choices=("report", "restart"))
URL = Text(words="an http or https address", pattern=r"https?://[^\s@]{1,1000}")
PATTERN = Text(words="a shell-style pattern, such as train or llm-*")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: ``default`` is written as in the file, or says in words what holds without it.

    ``precedent`` is where the default comes from. A ``required`` key has no default.
    """

    pattern: str
    shape: Shape
    default: str
    meaning: str
    precedent: str
    required: bool = False

    @property
    def section(self) -> str:
        """Return the first part of the pattern."""
        return self.pattern.partition(".")[0]

    @property
    def leaf(self) -> str:
        """Return the last part of the pattern: the key's own name."""
        return self.pattern.rpartition(".")[2]

    @property
    def variable(self) -> str:
        """Return the environment variable that overrides it, empty when none does."""
        if self.section == "opt_in":
            return ""
        return "RELIGHT_" + self.pattern.upper().replace(".", "__")
