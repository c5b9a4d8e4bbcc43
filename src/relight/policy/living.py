"""What is done about an attempt that lives and does not do well, as its policy says."""

from __future__ import annotations

from relight.model.advice import Decision, Forewarning
from relight.model.findings import Domain, Remedy
from relight.model.instants import seconds
from relight.model.reasons import Reason
from relight.model.verdicts import Verdict
from relight.policy.advising import Ruling
from relight.policy.policies import Policy

HANG_REPORTED, SLOWDOWN_REPORTED = "hang-reported", "slowdown-reported"
NUMERIC_REPORTED, NUMERIC_STOP = "numeric-reported", "numeric-stop"
REPORTED = frozenset({HANG_REPORTED, SLOWDOWN_REPORTED})
"""What is told of trouble that lasts: its incident stays open until the trouble is over."""

CONFIDENT = 0.6
"""Confidence from which a slow node is left out: above what one finding that may be the cause
gives, so that telemetry must have pointed at the node."""

_EXCLUDES = frozenset({Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN})


def reported(code: str, verdict: Verdict, why: str = "") -> Ruling:
    """Return the ruling that tells a person and leaves the attempt as it is."""
    more = f" {why}" if why else ""
    return Ruling(
        decision=Decision.NONE,
        reason=Reason(code=code, sentence=f"Told, not acted on: {verdict.sentence}.{more}"),
    )


def stopped(verdict: Verdict, policy: Policy) -> Ruling:
    """Return the ruling that ends an attempt which computes nonsense."""
    return Ruling(
        decision=Decision.STOP,
        reason=Reason(
            code=NUMERIC_STOP,
            sentence=f"Stop, as policy {policy.name} says (numeric): {verdict.sentence}.",
        ),
    )


def names_slow_node(verdict: Verdict) -> bool:
    """Tell whether a verdict names the node that holds a job back, surely enough to act on."""
    return (
        bool(verdict.suspects)
        and verdict.domain is Domain.HARDWARE
        and verdict.remedy in _EXCLUDES
        and verdict.confidence >= CONFIDENT
    )


def forewarning_of(policy: Policy, checkpoint: int | None) -> Forewarning | None:
    """Return what a living job is sent before a planned restart, None where nothing is.

    The form is that of sbatch's ``--signal``: ``USR1@120``, or ``B:USR1@120`` for the batch
    script alone. ``checkpoint`` is the step of the newest one that is known now.
    """
    name, at, wait = policy.signal_first.partition("@")
    if not at or not wait.isdecimal():
        return None
    return Forewarning(
        name=name.removeprefix("B:"),
        batch_only=name.startswith("B:"),
        wait=seconds(int(wait)),
        checkpoint=checkpoint,
    )
