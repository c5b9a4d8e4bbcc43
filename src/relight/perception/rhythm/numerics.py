"""Judges the numbers that progress lines tell: losses, gradient norms, loss scales.

A single line proves nothing: mixed precision finds its scale by overflowing, and a loss
without a number is averaged away or skipped by many frameworks. So each rule wants a row of
lines, and tells one row once.
"""

from __future__ import annotations

from math import isfinite
from statistics import median

from relight.model.pulses import Pulse
from relight.perception.rhythm.states import SIGMA, Numbers, Trouble

NOT_A_NUMBER = "loss-not-a-number"
SPIKE = "loss-spike"
FLOOR = "loss-scale-floor"

BAD_LOSSES = 3
"""Progress lines in a row without a number for a loss: the weights themselves are gone."""
BAD_NORMS = 40
"""Gradient norms in a row that are none while the loss is one: a scale of 2 to the 32nd halves
thirty-two times before it is at one, and prints such a norm each time."""
LEAST_SCALE = 1.0
"""PyTorch, Megatron and DeepSpeed do not scale below it unless they are told to."""
OVERFLOWS = 6
"""Steps skipped in a row at the least scale: halving it has not helped."""
WINDOW = 64
FEWEST = 20
"""Losses that make a usual one; what is called its spread is then off by a fifth."""
SIGMAS = 10.0
"""Robust standard deviations above the usual loss; PaLM's and OPT's reports tell of spikes far
beyond, and the noise of small batches stays below."""
LASTING = 5
"""Lines in a row above: single bad batches come and go."""
_BEARABLE = 0.1
"""Of the usual loss: what is less above it is no spike, however quiet the loss was."""
_ROUNDING = 1.2e-7
"""Of the highest loss: below what single precision tells apart, a loss is nought (IEEE 754)."""
_MOST_LOSS = 1e30


class NumbersTally:
    """Judges on from what is remembered; ``troubles`` are those found since."""

    def __init__(self, numbers: Numbers) -> None:
        self._losses = list(numbers.losses)
        self._highest = numbers.highest
        self._scale = numbers.scale
        self._was_skipped = numbers.was_skipped
        self._bad_losses = numbers.bad_losses
        self._bad_norms = numbers.bad_norms
        self._overflows = numbers.overflows
        self._above = numbers.above
        self._below = numbers.below
        self._is_spiking = numbers.is_spiking
        self._first = dict(numbers.first)
        self.troubles: list[Trouble] = []

    def frozen(self) -> Numbers:
        """Return what is to be remembered."""
        return Numbers(
            losses=tuple(self._losses),
            highest=self._highest,
            scale=self._scale,
            was_skipped=self._was_skipped,
            bad_losses=self._bad_losses,
            bad_norms=self._bad_norms,
            overflows=self._overflows,
            above=self._above,
            below=self._below,
            is_spiking=self._is_spiking,
            first=self._first,
        )

    def forget(self) -> None:
        """Begin anew: the run has gone back to an earlier state of its weights."""
        self._losses = []
        self._bad_losses = self._bad_norms = self._overflows = self._above = self._below = 0
        self._is_spiking = False

    def skipped(self, pulse: Pulse) -> None:
        """Take in that the update of a step was left out."""
        self._scaled(pulse.scale)
        self._was_skipped = True
        if self._scale is None or self._scale > LEAST_SCALE:
            self._overflows = 0
            return
        self._overflows += 1
        if self._overflows == 1:
            self._began(FLOOR, pulse)
        if self._overflows == OVERFLOWS:
            self._tell(
                FLOOR,
                pulse,
                f"{OVERFLOWS} steps in a row were skipped at a loss scale of {self._scale:g},"
                " the least there is: the gradients overflow.",
            )

    def stepped(self) -> None:
        """Take in that a step was told: a row of skipped ones ends where it was not skipped."""
        if not self._was_skipped:
            self._overflows = 0
        self._was_skipped = False

    def measured(self, pulse: Pulse) -> None:
        """Take in the numbers of a step."""
        self._scaled(pulse.scale)
        if pulse.loss is not None:
            self._loss(pulse, pulse.loss)
        if pulse.grad_norm is not None:
            self._norm(pulse, pulse.grad_norm)

    def _scaled(self, scale: float | None) -> None:
        if scale is not None and isfinite(scale):
            self._scale = scale

    def _loss(self, pulse: Pulse, loss: float) -> None:
        if isfinite(loss):
            self._bad_losses = 0
            self._height(pulse, loss)
            return
        self._bad_losses += 1
        if self._bad_losses == 1:
            self._began(NOT_A_NUMBER, pulse)
        if self._bad_losses == BAD_LOSSES:
            self._tell(
                NOT_A_NUMBER,
                pulse,
                f"The loss has not been a number for {BAD_LOSSES} progress lines in a row.",
            )

    def _norm(self, pulse: Pulse, norm: float) -> None:
        if isfinite(norm):
            self._bad_norms = 0
            return
        self._bad_norms += 1
        if self._bad_norms == 1 and not self._bad_losses:
            self._began(NOT_A_NUMBER, pulse)
        if self._bad_norms == BAD_NORMS and self._bad_losses < BAD_LOSSES:
            self._tell(
                NOT_A_NUMBER,
                pulse,
                f"The gradient norm has not been a number for {BAD_NORMS} progress lines in a row.",
            )

    def _height(self, pulse: Pulse, loss: float) -> None:
        """Compare a loss with those before; what is far above is not counted among them."""
        if abs(loss) > _MOST_LOSS:
            return
        if len(self._losses) >= FEWEST and self._is_above(loss):
            self._rises(pulse, loss)
            return
        self._above = 0
        self._below += 1
        if self._below >= LASTING:
            self._is_spiking = False
        self._losses.append(loss)
        self._highest = max(self._highest, abs(loss))
        del self._losses[:-WINDOW]

    def _is_above(self, loss: float) -> bool:
        if loss <= max(self._losses):
            return False
        usual = median(self._losses)
        if loss - usual <= max(_BEARABLE * abs(usual), _ROUNDING * self._highest):
            return False
        sigma = SIGMA * median(abs(one - usual) for one in self._losses)
        return loss - usual > SIGMAS * sigma

    def _rises(self, pulse: Pulse, loss: float) -> None:
        self._above += 1
        self._below = 0
        if self._above == 1:
            self._began(SPIKE, pulse)
        if self._above == LASTING and not self._is_spiking:
            self._is_spiking = True
            usual = median(self._losses)
            self._tell(
                SPIKE,
                pulse,
                f"The loss has stood far above its usual {usual:.4g} for {LASTING} progress lines"
                f" in a row; it is {loss:.4g}.",
            )
        elif self._above >= WINDOW:
            # What lasts this long is the usual by now.
            self._losses = []
            self._above = 0

    def _began(self, rule: str, pulse: Pulse) -> None:
        if pulse.step is None:
            self._first.pop(rule, None)
        else:
            self._first[rule] = pulse.step

    def _tell(self, rule: str, pulse: Pulse, what: str) -> None:
        step = self._first.get(rule, pulse.step)
        since = "" if step is None else f" It began at step {step}."
        self.troubles.append(
            Trouble(
                rule=rule,
                step=step,
                at=pulse.at,
                sentence=what + since,
                text=pulse.text,
                place=pulse.place,
            )
        )
