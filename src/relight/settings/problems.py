"""What is wrong with a configuration: every problem at once, each with its place and its cure."""

from __future__ import annotations

from relight.model.records import Record


class Problem(Record, frozen=True, kw_only=True):
    """One thing that is wrong.

    ``path`` is the key's, such as ``policy.default.max_restarts``, empty when the whole file
    is meant. ``source`` is the file or the environment variable that it was read from,
    ``line`` its line there, from 1. ``cure`` says what is allowed or what to do next.
    """

    what: str
    path: str = ""
    source: str = ""
    line: int | None = None
    cure: str = ""

    def __str__(self) -> str:
        """Return the problem as one line: place, key, what is wrong, what to do."""
        place = f"{self.source}:{self.line}" if self.line is not None else self.source
        head = ": ".join(part for part in (place, self.path, self.what) if part)
        return f"{head}; {self.cure}" if self.cure else head


class SettingsError(Exception):
    """A configuration that cannot be used, with all its problems: fix it and start again."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
