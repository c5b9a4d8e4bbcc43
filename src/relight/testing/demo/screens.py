"""The demo on a terminal: one picture of everything, drawn anew at each look."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from relight.model.advice import Mode
from relight.model.instants import between, in_seconds
from relight.model.jobs import JobState, NodeFact
from relight.testing.demo.sentences import (
    PLAIN_REQUEUE,
    closing,
    describe_advice,
    describe_order,
    evidence_around_root,
    headline,
    how_often,
    seconds_to_first_step,
    shown,
    spans,
)
from relight.testing.demo.watching import Act, Point, Snapshot

WIDEST = 110
"""Columns; more would only pull things apart."""

_ROOMY_ROWS = 30
_LABEL = 8
_LEAST_SECONDS = 12.0
_LEVELS = "▁▂▃▄▅▆▇█"
_MODE_STYLE = {
    Mode.MONITOR: "bold black on yellow",
    Mode.APPROVE: "bold black on cyan",
    Mode.ACT: "bold white on dark_green",
}
_STATE_STYLE = {
    JobState.RUNNING: "green",
    JobState.COMPLETED: "bold green",
    JobState.PENDING: "yellow",
    JobState.COMPLETING: "yellow",
}


class ScreenTeller:
    """Tells an act as one picture that changes, and leaves its last state on the screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def begin(self, act: Act) -> None:
        """Make room for an act; what it is stands in the picture."""
        del act
        self._console.print()
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, now: Snapshot) -> None:
        """Draw the picture anew."""
        self._draw(picture(now, self._console))

    def end(self, last: Snapshot) -> None:
        """Draw the last picture, with how the act ended, and leave it."""
        self._draw(picture(last, self._console, is_last=True))
        self.close()

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, drawn: RenderableType) -> None:
        if self._live is not None:
            self._live.update(drawn, refresh=True)


def picture(now: Snapshot, console: Console, *, is_last: bool = False) -> RenderableType:
    """Return everything as it is now, to fit the terminal."""
    width = min(console.width, WIDEST)
    rows = console.height
    is_roomy = rows >= _ROOMY_ROWS
    table = Table.grid(padding=(0, 1, 0, 0))
    table.width = width
    table.add_column(width=_LABEL, style="bold cyan", no_wrap=True)
    table.add_column(ratio=1)
    inner = width - _LABEL - 2
    table.add_row("\nNODES", _nodes(now, inner))
    table.add_row("JOB", Group(*_job(now, inner)))
    most = 8 if is_roomy else max(2, min(4, rows - 20))
    for label, lines in (
        ("FOUND", _found(now, most)),
        ("ADVICE", _advice(now)),
        ("ORDERS", _orders(now)),
        ("TIME", _time(now, inner)),
    ):
        drawn = list(lines)
        if drawn:
            table.add_row(label, Group(*drawn))
    parts: list[RenderableType] = [_header(now, width), *([Text()] if is_roomy else []), table]
    if is_last:
        parts.append(Text(closing(now), style="bold"))
    return Group(*parts)


def _header(now: Snapshot, width: int) -> RenderableType:
    mode = now.act.mode
    left = f" relight demo  act {now.act.number} of 2  {mode.upper()}: {headline(mode)}"
    right = f"{in_seconds(between(now.began, now.at)):5.1f} s "
    room = width - len(left) - len(right)
    text = left + " " * room + right if room > 0 else left[:width].ljust(width)
    return Text(text, style=_MODE_STYLE[mode], no_wrap=True, overflow="crop")


def _nodes(now: Snapshot, width: int) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    each = min(20, (width - len(now.nodes)) // max(1, len(now.nodes)))
    grid.add_row(*(_node(node, now, each) for node in now.nodes))
    return grid


def _node(node: NodeFact, now: Snapshot, width: int) -> RenderableType:
    fact = now.fact
    is_mine = fact is not None and node.name in fact.nodes and fact.state is JobState.RUNNING
    does = f"rank {fact.nodes.index(node.name)}" if fact is not None and is_mine else "free"
    if not is_mine and not node.is_idle:
        does = "ending"
    verdict = now.incident.verdict if now.incident is not None else None
    suspects = [one.node for one in verdict.suspects] if verdict is not None else []
    standing, style = "", "green" if is_mine else "dim"
    if fact is not None and node.name in fact.excluded_nodes:
        standing, style = "excluded", "bold red"
    elif node.name in suspects:
        standing, style = "suspect", "bold yellow"
    body = Text(does, style="" if is_mine else "dim")
    body.append(f"\n{standing}", style=style)
    title = Text(node.name, style=style)
    return Panel(body, title=title, title_align="left", width=width, border_style=style, height=4)


def _job(now: Snapshot, width: int) -> Iterator[RenderableType]:
    fact, pace = now.fact, now.act.pace
    if fact is None:
        yield Text("not seen yet", style="dim")
        return
    state = fact.state.value.replace("_", " ")
    line = Text(f"{fact.name} (job {fact.scheduler_id})  ")
    line.append(state.upper(), style=_STATE_STYLE.get(fact.state, "bold red"))
    line.append(f"  attempt {fact.restart_count}")
    line.append(f"  {how_often(fact.restart_count)}", style="dim")
    yield line
    step, saved = now.step or 0, now.checkpoint
    kept = f"checkpoint {saved}" if saved is not None else "no checkpoint"
    bar = Table.grid(padding=(0, 2, 0, 0))
    room = max(10, width - 36)
    bar.add_row(
        Text(f"step {step:>3}/{pace.steps}"),
        ProgressBar(total=pace.steps, completed=step, width=room, complete_style="green"),
        Text(kept, style="dim"),
    )
    yield bar
    yield _sparkline(now, max(10, width - 18))


def _sparkline(now: Snapshot, width: int) -> Text:
    """Return step against time; a dot where the job did not run, though it is not done."""
    whole = max(_LEAST_SECONDS, in_seconds(between(now.began, now.at)))
    columns: list[Point | None] = [None] * width
    for point in now.points:
        place = int(in_seconds(between(now.began, point.at)) / whole * (width - 1))
        columns[min(place, width - 1)] = point
    text = Text()
    last: Point | None = None
    reached = max((place for place, one in enumerate(columns) if one is not None), default=-1)
    for point_here in columns[: reached + 1]:
        last = point_here or last
        text.append(*_column(last, now.act.pace.steps))
    text.append(" " * (width - reached - 1))
    text.append("  step over time", style="dim")
    return text


def _unbroken(text: str) -> str:
    return text.replace(" ", "\u00a0")


def _column(point: Point | None, steps: int) -> tuple[str, str]:
    if point is None or (point.step is None and point.is_running):
        return " ", ""
    if not point.is_running:
        return "·", "red"
    level = min(len(_LEVELS) - 1, int((point.step or 0) / steps * len(_LEVELS)))
    return _LEVELS[level], "green"


def _found(now: Snapshot, most: int) -> Iterator[RenderableType]:
    verdict = now.incident.verdict if now.incident is not None else None
    if verdict is None:
        return
    line = Text(f"{verdict.sentence[:1].upper()}{verdict.sentence[1:]}", style="bold")
    line.append(f"  {verdict.domain.value.replace('_', ' ')}, ", style="dim")
    line.append(f"{verdict.confidence:.0%} sure", style="dim")
    yield line
    for one in evidence_around_root(verdict.evidence, most):
        mark, style = ("» ", "bold red") if one.is_root else ("  ", "dim")
        yield Text(mark + shown(one.text), style=style, no_wrap=True, overflow="ellipsis")


def _advice(now: Snapshot) -> Iterator[RenderableType]:
    advice = now.troubled.advice if now.troubled is not None else None
    if advice is None:
        if now.incident is not None and now.incident.closed is not None:
            yield Text(now.incident.closed.sentence)
        return
    yield Text(describe_advice(advice))
    if now.act.mode is Mode.MONITOR and advice.is_active:
        yield Text("Only said, not done: this is monitor mode.", style="bold yellow")


def _orders(now: Snapshot) -> Iterator[RenderableType]:
    orders = now.troubled.orders if now.troubled is not None else ()
    if orders:
        yield Text("   ".join(describe_order(one) for one in orders), style="green")


def _time(now: Snapshot, width: int) -> Iterator[RenderableType]:
    incident = now.incident
    if incident is None or now.act.mode is Mode.MONITOR:
        return
    split = Text()
    for name, since in spans(incident.times):
        split.append(_unbroken(f"{name} "), style="dim")
        split.append(f"{_unbroken(since)}  ")
    yield split
    first = seconds_to_first_step(incident.times)
    if first is None:
        return
    room = max(10, width - 44)
    for name, length, style, note in (
        ("relight", first, "green", f"{first:.1f} s to the first new step"),
        ("plain requeue", PLAIN_REQUEUE, "red", f"{PLAIN_REQUEUE:.0f} s before it may start"),
    ):
        line = Text(f"{name:<14}", style="dim")
        line.append("█" * max(1, round(length / max(PLAIN_REQUEUE, first) * room)), style=style)
        line.append(f" {note}")
        yield line
