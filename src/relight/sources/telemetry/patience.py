"""How much time is left for all the questions of one look."""

from __future__ import annotations

import time
from collections.abc import Callable

from relight.clients.prometheus import ServerUnreachable


class Patience:
    """Runs out ``seconds`` after it was made, by a clock that nobody sets."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._ends_at = clock() + seconds

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            ServerUnreachable: there are none.

        """
        left = self._ends_at - self._clock()
        if left <= 0:
            raise ServerUnreachable(
                f"the metrics server did not answer all questions within {self._seconds:.3g} s"
            )
        return left
