"""What both tellings of the demo, the screen and the plain lines, say in the same words."""

from __future__ import annotations

from collections.abc import Iterator

from relight.clients.local.cluster import REQUEUE_WAIT
from relight.model.advice import Advice, Mode
from relight.model.findings import Evidence
from relight.model.incidents import TimeSplit
from relight.model.instants import Instant, between, in_seconds, show_span
from relight.model.orders import OrderOutcome, Verb
from relight.testing.demo.faults import Expected
from relight.testing.demo.watching import Snapshot

PLAIN_REQUEUE = in_seconds(REQUEUE_WAIT)
"""Seconds that Slurm makes a requeued job wait, before it may even start."""

NEXT_STEPS = """\
What now?

  On this machine, around a command of your own:
      relight run -- torchrun train.py

  On a Slurm cluster, only watching. Write relight.toml:
      [cluster.main]
      kind = "slurm"
      reach = "commands"
      [[opt_in]]
      cluster = "main"
      partition = "train"
      policy = "default"
      [policy.default]
      mode = "monitor"
      max_restarts = 3
  and start
      relight serve
  It changes nothing until you write mode = "act"."""


def headline(mode: Mode) -> str:
    """Return what a mode means, in a few words."""
    if mode is Mode.MONITOR:
        return "relight only says what it would do"
    return "relight may restart the job"


def introduction(called: str, told: str) -> str:
    """Return what is about to be seen."""
    return (
        f"A small training runs on three of {called}. What goes wrong: {told}. You see it "
        "twice: first relight only says what it would do (monitor), then it may act."
    )


def how_often(restarts: int) -> str:
    """Return how often a job was restarted."""
    times = {0: "not restarted", 1: "restarted once"}
    return times.get(restarts, f"restarted {restarts} times")


def describe_advice(advice: Advice) -> str:
    """Return the decision and its reason."""
    lost = advice.cost.steps_lost if advice.cost is not None else None
    price = f" Steps lost since the checkpoint: {lost}." if lost else ""
    return f"{advice.reason.sentence}{price}"


def describe_order(outcome: OrderOutcome) -> str:
    """Return an order and what became of it."""
    order = outcome.order
    without = f" without {', '.join(order.exclude)}" if order.exclude else ""
    verb = "start again" if order.verb is Verb.START else order.verb.value
    answer = f" ({outcome.answer})" if outcome.answer else ""
    return f"{verb}{without}: {outcome.outcome}{answer}"


def closing(last: Snapshot) -> str:
    """Return how an act ended, in one sentence; it is checked beside this, not by it."""
    fact = last.fact
    if fact is None:
        return "The job was not seen."
    if last.act.mode is Mode.MONITOR:
        return (
            f"Monitor mode: nothing was changed. The job is {fact.state.value.replace('_', ' ')}, "
            f"{how_often(fact.restart_count)}."
        )
    match last.act.fault.expected:
        case Expected.RECOVERED:
            return f"The job is {fact.state.value}, on {', '.join(fact.nodes)}."
        case Expected.STOPPED:
            return "Not restarted: another try would fail the same way."
        case Expected.LEFT_ALONE:
            return "Left alone: its launcher brought it back in place, and steps went on."


def spans(times: TimeSplit) -> Iterator[tuple[str, str]]:
    """Yield every instant of a recovery that is known, as the time since the fault."""
    if times.fault is None:
        return
    for name, at in _named(times):
        if at is not None:
            yield name, "0" if at == times.fault else f"+{show_span(between(times.fault, at))}"


def seconds_to_first_step(times: TimeSplit) -> float | None:
    """Return how long after the fault the first new step completed."""
    if times.fault is None or times.first_step is None:
        return None
    return in_seconds(between(times.fault, times.first_step))


def shown(text: str) -> str:
    """Return a log line with nothing in it that could act on a terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text.rstrip())


def evidence_around_root(evidence: tuple[Evidence, ...], most: int) -> tuple[Evidence, ...]:
    """Return at most ``most`` lines that include the root, the lines before it first."""
    roots = [place for place, one in enumerate(evidence) if one.is_root]
    end = max((roots[0] if roots else len(evidence) - 1) + 1, min(most, len(evidence)))
    return evidence[max(0, end - most) : end]


def _named(times: TimeSplit) -> tuple[tuple[str, Instant | None], ...]:
    return (
        ("fault", times.fault),
        ("detected", times.detected),
        ("advised", times.advised),
        ("ordered", times.ordered),
        ("nodes free", times.nodes_free),
        ("running", times.running),
        ("first step", times.first_step),
        ("caught up", times.caught_up),
    )
