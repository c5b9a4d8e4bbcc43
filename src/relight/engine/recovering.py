"""Did it come back? Restarted is not recovered (law 14)."""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase
from relight.engine.turns import Turn, close, moved
from relight.model.audit import Topic
from relight.model.incidents import Incident, Phase

_FOLLOWED = frozenset({Phase.ADVISED, Phase.ACTING, Phase.RECOVERING})


def follow_recovery(turn: Turn, number: int) -> None:
    """Move the incident of a failed attempt on, by what the attempt after it has shown."""
    failed, later = turn.case.attempt(number), turn.case.attempt(number + 1)
    if failed is None or later is None or failed.incident is None:
        return
    incident = failed.incident
    if incident.phase not in _FOLLOWED:
        return
    if later.running_at is not None and incident.phase is not Phase.RECOVERING:
        times = msgspec.structs.replace(
            incident.times, nodes_free=failed.nodes_free_at, running=later.running_at
        )
        incident = moved(incident, Phase.RECOVERING, times=times)
        turn.change(number, incident=incident)
    if incident.phase is Phase.RECOVERING:
        _judge_steps(turn, failed, later, incident)


def _judge_steps(turn: Turn, failed: AttemptCase, later: AttemptCase, incident: Incident) -> None:
    step = later.progress.best_step
    if step is None:
        if later.ended_seen_at is not None and later.logs_read:
            close(
                turn,
                failed.number,
                "not-recovered",
                f"Attempt {later.number} ended before it completed a step.",
            )
        return
    if incident.times.first_step is None:
        incident = _first_step(turn, failed, later, incident)
    best = _best_step_until(turn, failed.number)
    if incident.phase is not Phase.CLOSED and (best is None or step > best):
        times = msgspec.structs.replace(
            incident.times, caught_up=later.progress.last_step_at or turn.now
        )
        turn.change(failed.number, incident=msgspec.structs.replace(incident, times=times))
        beyond = f" beyond the failed attempt's last, {best}" if best is not None else ""
        close(turn, failed.number, "recovered", f"Caught up: step {step} completed{beyond}.")


def _first_step(
    turn: Turn, failed: AttemptCase, later: AttemptCase, incident: Incident
) -> Incident:
    progress = later.progress
    checkpoint = _best_checkpoint_until(turn, failed.number)
    times = msgspec.structs.replace(incident.times, first_step=progress.first_step_at or turn.now)
    scratch = checkpoint is not None and _began_from_scratch(turn, later)
    incident = msgspec.structs.replace(incident, times=times, false_recovery=scratch)
    turn.change(failed.number, incident=incident)
    if scratch:
        close(
            turn,
            failed.number,
            "false-recovery",
            f"Attempt {later.number} began again from step {progress.first_step}, although a "
            f"checkpoint of step {checkpoint} exists: look at how the job resumes.",
        )
        closed = turn.case.attempt(failed.number)
        return closed.incident if closed is not None and closed.incident is not None else incident
    resumed = _resumed_sentence(later, checkpoint)
    turn.tell(
        failed.number,
        Topic.RECOVERY,
        "recovered",
        f"Attempt {later.number} completed step {progress.first_step}{resumed}.",
    )
    return incident


def _resumed_sentence(later: AttemptCase, checkpoint: int | None) -> str:
    if later.progress.resumed_from:
        return f", resumed from the checkpoint of step {later.progress.resumed_from}"
    if checkpoint is None:
        return "; there was no checkpoint to resume from"
    return ""


def _began_from_scratch(turn: Turn, later: AttemptCase) -> bool:
    if later.progress.resumed_from is not None:
        return later.progress.resumed_from == 0
    first = later.progress.first_step
    begin = turn.case.attempts[0].progress.first_step
    return first is not None and begin is not None and first <= begin


def _best_step_until(turn: Turn, number: int) -> int | None:
    steps = [
        one.progress.best_step
        for one in turn.case.attempts
        if one.number <= number and one.progress.best_step is not None
    ]
    return max(steps, default=None)


def _best_checkpoint_until(turn: Turn, number: int) -> int | None:
    steps = [
        one.progress.best_checkpoint
        for one in turn.case.attempts
        if one.number <= number and one.progress.best_checkpoint is not None
    ]
    return max(steps, default=None)
