"""What each witness beside the logs said of an attempt's trouble, or that it said nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relight.engine.cases import AttemptCase, Look
from relight.model.hostlists import compress
from relight.model.instants import EPOCH, to_iso

_CLOCK = slice(11, 19)
"""Hours, minutes and seconds of an instant in ISO 8601."""


def what_witnesses_said(attempt: AttemptCase) -> Iterator[str]:
    """Yield a sentence a witness that was asked in the last trouble of an attempt.

    None is read as 'all is well': one that saw nothing may be blind to what matters.
    """
    incident = attempt.incident
    opened = incident.opened_at if incident is not None else EPOCH
    looks = [one for one in attempt.looks if one.asked_at >= opened] or list(attempt.looks)
    for witness in sorted({one.witness for one in looks}):
        yield _said(attempt, [one for one in looks if one.witness is witness])
    if attempt.blind:
        things = "1 thing" if len(attempt.blind) == 1 else f"{len(attempt.blind)} things"
        yield f"Witnesses cannot see {things} of this job: relight doctor lists them."


def _said(attempt: AttemptCase, looks: Sequence[Look]) -> str:
    last = looks[-1]
    who = last.witness.replace("_", " ").capitalize()
    often = "" if len(looks) == 1 else f" {len(looks)} times, last"
    asked = f"{who}, asked{often} at {to_iso(last.asked_at)[_CLOCK]}Z,"
    found = {known for one in looks for known in one.found}
    told = dict.fromkeys(
        one.rule + (f" ({compress(one.nodes)})" if one.nodes else "")
        for one in attempt.findings
        if one.id in found
    )
    if told:
        return f"{asked} told: {', '.join(told)}."
    if last.answered_at is None:
        return f"{asked} has not answered."
    if last.unseen:
        return f"{asked} could not tell anything, which is no sign of health: {last.unseen}"
    return f"{asked} told of nothing wrong, which proves nothing."
