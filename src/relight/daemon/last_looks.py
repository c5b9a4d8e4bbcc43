"""Eyes that see to it that no new order is given once relight is to end."""

from __future__ import annotations

from relight.clients.schedulers import Eyes
from relight.model.jobs import JobFact, NodeFact
from relight.model.seen import Seen, Unseen


class EyesUntilStopped:
    """Hands every look on, but no look at a single job once relight is to end.

    Such a look comes before each order (law 2), and what is unseen justifies none (law 1): so a
    controller that is amid many orders ends after the one under way. The next start goes on.
    """

    def __init__(self, eyes: Eyes) -> None:
        self._eyes = eyes
        self._has_stopped = False

    def stop(self) -> None:
        """Let no further look at a single job be taken."""
        self._has_stopped = True

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return every job that the scheduler remembers."""
        return self._eyes.jobs()

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return one job as it is now, unseen once relight is to end."""
        if self._has_stopped:
            return Unseen("relight is ending")
        return self._eyes.job(scheduler_id)

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return every node as it is now."""
        return self._eyes.nodes()
