"""What the lines of a life tell of loss, gradient norm and loss scale."""

from __future__ import annotations

from accuracy.chances import Chances
from accuracy.traits import Traits
from accuracy.troubles import Injected, Trouble

_HORIZON = 400.0
"""Reports in which the loss comes near to half way down."""
_OUTLIER = 5e-4
"""Reports whose loss stands out and is back at once: one bad batch."""
_RAISED_EVERY = 2_000
"""Steps after which a dynamic loss scale is doubled, which soon overflows: NVIDIA's Apex."""


class Losses:
    """The numbers that a report tells, one report after another."""

    def __init__(self, kind: Traits, chances: Chances) -> None:
        self.is_skipped = False
        self._kind = kind
        self._chances = chances
        self._scale = kind.scale
        self._reports = 0
        self._jump = 1.0 + chances.between(0.8, 4)

    def at(self, step: int, wrong: Injected, now: float) -> dict[str, float | None]:
        """Return loss, gradient norm and scale of a report of ``step`` at ``now``."""
        kind, chances = self._kind, self._chances
        self._reports += 1
        self.is_skipped = False
        if kind.loss is None:
            return {}
        is_wrong = now >= wrong.at
        if is_wrong and wrong.trouble is Trouble.OVERFLOWS:
            return self._overflown()
        loss = self._usual(kind.loss)
        if chances.happens(_OUTLIER):
            loss *= chances.between(1.3, 2)
        if is_wrong and wrong.trouble is Trouble.SPIKE:
            loss = abs(loss) * self._jump + kind.loss * kind.loss_scatter
        if is_wrong and wrong.trouble is Trouble.NOT_A_NUMBER:
            loss = float("nan")
        norm = chances.log_between(0.2, 3)
        if self._scale is not None and step % _RAISED_EVERY < kind.every:
            self.is_skipped = step >= _RAISED_EVERY
            norm = float("inf") if self.is_skipped else norm
        return {"loss": loss, "grad_norm": norm, "scale": self._scale}

    def _usual(self, begun: float) -> float:
        kind = self._kind
        scatter = kind.loss_scatter / kind.every**0.25
        if kind.around_zero:
            return 0.05 * self._chances.normal()
        down = 0.25 + 0.75 / (1 + self._reports / _HORIZON)
        return begun * down * self._chances.scatter(scatter)

    def _overflown(self) -> dict[str, float | None]:
        self.is_skipped = True
        self._scale = max((self._scale or 2.0**16) / 2.0**self._kind.every, 1.0)
        return {"loss": self._kind.loss, "grad_norm": float("inf"), "scale": self._scale}
