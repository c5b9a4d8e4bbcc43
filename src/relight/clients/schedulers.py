"""What every scheduler adapter offers: eyes that only look, and hands that change.

They are two objects so that a cluster in monitor mode can be given eyes alone (law 3).
Every answer is ``Seen`` or ``Unseen``: a command that failed, timed out or printed
something unreadable was not an answer (law 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from relight.model.instants import Span
from relight.model.jobs import JobFact, NodeFact
from relight.model.orders import Outcome
from relight.model.seen import Seen, Unseen


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scheduler said to an order: done, refused, or unclear, in its own words."""

    outcome: Outcome
    text: str


class Eyes(Protocol):
    """Looks at one cluster and changes nothing."""

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return every job that the scheduler remembers, ended ones included.

        A job that has not changed since the last call is the same object, so a caller can
        tell what is new by identity.
        """
        ...

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return one job as it is now, None when the scheduler surely does not know it."""
        ...

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return every node as it is now."""
        ...


class Hands(Protocol):
    """Changes one job of one cluster. Made only where some policy may act."""

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """Put a job back into the queue as its next attempt.

        With ``incomplete_only`` the scheduler itself leaves the job alone when it no longer
        runs; the answer is done even so, and only a look tells whether anything happened.
        """
        ...

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Write note, exclusions and start time of a waiting job in one change, all or nothing.

        ``note`` and ``exclude`` replace what was there: the caller merges. ``delay`` None
        starts the job now.
        """
        ...

    def cancel(self, scheduler_id: str) -> Answer:
        """Cancel a job."""
        ...

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Send a signal to the processes of a running job, which goes on running.

        ``name`` is without ``SIG``, as ``USR1``. With ``batch_only`` the batch script alone gets
        it; else every task of the job's steps, and not the script.
        """
        ...
