"""What was about to be done survives whatever happens to the process and to the file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from relight.clients.schedulers import Answer
from relight.controller.acting import carry_out
from relight.controller.outbox import FORGOTTEN_AFTER, REPEAT_AFTER, Line, Outbox
from relight.controller.reconciling import Past
from relight.model.advice import Advice, Decision, Mode
from relight.model.instants import Instant, Span, seconds
from relight.model.jobs import AttemptKey
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.reasons import Reason
from relight.testing.stories import START

ATTEMPT = AttemptKey.parse("main:7-0")
REQUEUE = Order(attempt=ATTEMPT, generation=1, verb=Verb.REQUEUE)
WHILE_RUNNING = msgspec.structs.replace(REQUEUE, target="while-running", incomplete_only=True)
START_ORDER = Order(attempt=ATTEMPT, generation=1, verb=Verb.START, target="generation-1")
ADVICE = Advice(
    attempt=ATTEMPT,
    generation=1,
    decision=Decision.RESTART,
    mode=Mode.ACT,
    reason=Reason(code="restart", sentence="Restart."),
    made_at=START,
)


def outcome(order: Order, became: Outcome, at: Instant = START) -> OrderOutcome:
    return OrderOutcome(order=order, outcome=became, answer="", ordered_at=at, answered_at=at)


def after(span: int) -> Instant:
    return Instant(START + span)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "outbox.jsonl"


@pytest.fixture
def outbox(path: Path) -> Iterator[Outbox]:
    box = Outbox(path)
    yield box
    box.close()


def reopened(path: Path) -> Outbox:
    box = Outbox(path)
    box.close()
    return box


@pytest.mark.parametrize(
    ("became", "waited", "may"),
    [
        (None, Span(0), False),
        (None, Span(REPEAT_AFTER - 1), False),
        (None, REPEAT_AFTER, True),
        (Outcome.UNCLEAR, Span(REPEAT_AFTER - 1), False),
        (Outcome.UNCLEAR, REPEAT_AFTER, True),
        (Outcome.DONE, REPEAT_AFTER, False),
        (Outcome.DONE, seconds(86_400), False),
        (Outcome.REFUSED, seconds(86_400), False),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_an_order_is_given_again_only_when_it_was_never_answered(  # noqa: PLR0913 - fixtures and columns of the table
    *, outbox: Outbox, path: Path, became: Outcome | None, waited: Span, may: bool, restarted: bool
) -> None:
    assert outbox.may_order(REQUEUE, START)
    outbox.intend(REQUEUE, START)
    if became is not None:
        outbox.record(outcome(REQUEUE, became), reported=True)
    box = reopened(path) if restarted else outbox
    assert box.may_order(REQUEUE, after(waited)) is may
    assert box.may_order(START_ORDER, START)
    other = msgspec.structs.replace(REQUEUE, attempt=AttemptKey.parse("main:7-1"))
    assert box.may_order(other, START)


@pytest.mark.parametrize(
    ("orders", "past"),
    [
        ([], Past.NEVER),
        ([(REQUEUE, None)], Past.ORDERED),
        ([(REQUEUE, Outcome.UNCLEAR)], Past.ORDERED),
        ([(REQUEUE, Outcome.DONE)], Past.ORDERED),
        ([(REQUEUE, Outcome.REFUSED)], Past.REFUSED),
        ([(START_ORDER, Outcome.DONE)], Past.NEVER),
        ([(WHILE_RUNNING, Outcome.REFUSED)], Past.NEVER),
        ([(WHILE_RUNNING, Outcome.REFUSED), (REQUEUE, None)], Past.ORDERED),
        ([(WHILE_RUNNING, Outcome.DONE), (REQUEUE, Outcome.REFUSED)], Past.ORDERED),
        ([(WHILE_RUNNING, Outcome.REFUSED), (REQUEUE, Outcome.REFUSED)], Past.REFUSED),
    ],
)
def test_the_requeue_of_an_attempt_was_ours_unless_it_was_refused(
    outbox: Outbox, path: Path, orders: list[tuple[Order, Outcome | None]], past: Past
) -> None:
    for order, became in orders:
        outbox.intend(order, START)
        if became is not None:
            outbox.record(outcome(order, became), reported=False)
    for box in (outbox, reopened(path)):
        assert box.past_requeue(ADVICE) is past
        for other in ("main:7-1", "main:77-0", "main:7~1-0"):
            elsewhere = msgspec.structs.replace(ADVICE, attempt=AttemptKey.parse(other))
            assert box.past_requeue(elsewhere) is Past.NEVER


def test_a_requeue_refused_while_the_attempt_ran_counts_only_while_it_runs(outbox: Outbox) -> None:
    outbox.intend(WHILE_RUNNING, START)
    outbox.record(outcome(WHILE_RUNNING, Outcome.REFUSED), reported=False)
    living = msgspec.structs.replace(ADVICE, while_living=True)
    assert outbox.past_requeue(living) is Past.REFUSED
    assert outbox.past_requeue(msgspec.structs.replace(living, while_living=False)) is Past.NEVER


@pytest.mark.parametrize(
    ("order", "became", "waited", "forgotten"),
    [
        (REQUEUE, Outcome.DONE, FORGOTTEN_AFTER, True),
        (REQUEUE, Outcome.DONE, Span(FORGOTTEN_AFTER - 1), False),
        (REQUEUE, Outcome.UNCLEAR, FORGOTTEN_AFTER, False),
        (REQUEUE, Outcome.REFUSED, FORGOTTEN_AFTER, False),
        (REQUEUE, None, FORGOTTEN_AFTER, False),
        (START_ORDER, Outcome.DONE, FORGOTTEN_AFTER, False),
    ],
)
def test_only_a_requeue_that_was_done_long_ago_can_have_been_forgotten(
    *, outbox: Outbox, order: Order, became: Outcome | None, waited: Span, forgotten: bool
) -> None:
    assert not outbox.is_forgotten(order, START)
    outbox.intend(order, START)
    if became is not None:
        outbox.record(outcome(order, became), reported=True)
    assert outbox.is_forgotten(order, after(waited)) is forgotten


def test_results_that_the_backend_does_not_know_survive_a_restart(
    outbox: Outbox, path: Path
) -> None:
    told, untold = outcome(REQUEUE, Outcome.DONE), outcome(START_ORDER, Outcome.UNCLEAR)
    outbox.intend(REQUEUE, START)
    assert outbox.unreported() == ()
    outbox.record(told, reported=False)
    outbox.record(untold, reported=False)
    assert outbox.unreported() == (told, untold)
    outbox.record(told, reported=True)
    assert outbox.unreported() == (untold,)
    assert reopened(path).unreported() == (untold,)


@pytest.mark.parametrize(
    "rest",
    [
        b'{"order":{"att',
        b"\x00" * 4_096,
        b"\xff\xfe garbage",
        b"null",
        b"[]",
        b'{"order":{}}',
        b'{"at":1}',
        b"{" * 100_000,
        b"x" * 1_000_000,
        b"\r\n\r\n",
    ],
    ids=lambda rest: f"{rest[:12]!r} ({len(rest)})",
)
@pytest.mark.parametrize("behind", [b"", b"\n"])
def test_what_cannot_be_read_in_the_file_hides_nothing_else(
    outbox: Outbox, path: Path, rest: bytes, behind: bytes
) -> None:
    outbox.intend(REQUEUE, START)
    outbox.close()
    with path.open("ab") as file:
        file.write(rest + behind)
    again = Outbox(path)
    assert again.past_requeue(ADVICE) is Past.ORDERED
    again.intend(START_ORDER, START)
    again.close()
    last = Outbox(path)
    assert not last.may_order(START_ORDER, START)
    assert not last.may_order(REQUEUE, START)
    last.close()
    for line in path.read_bytes().splitlines():
        msgspec.json.decode(line, type=Line)


def test_a_file_cut_anywhere_loses_only_the_line_that_was_cut(outbox: Outbox, path: Path) -> None:
    outbox.intend(REQUEUE, START)
    first = path.stat().st_size
    outbox.intend(START_ORDER, START)
    outbox.close()
    whole = path.read_bytes()
    for length in range(first, len(whole), 7):
        path.write_bytes(whole[:length])
        box = reopened(path)
        assert box.past_requeue(ADVICE) is Past.ORDERED
        assert box.may_order(START_ORDER, START) is (length < len(whole) - 1)


def test_rewriting_keeps_the_newest_line_of_each_order_and_leaves_no_rest(
    outbox: Outbox, path: Path
) -> None:
    for second in range(50):
        outbox.intend(REQUEUE, after(seconds(second)))
    outbox.record(outcome(REQUEUE, Outcome.DONE), reported=True)
    outbox.close()
    path.with_suffix(".new").write_bytes(b"left behind by a process that died here")
    reopened(path)
    lines = path.read_bytes().splitlines()
    assert len(lines) == 1
    assert msgspec.json.decode(lines[0], type=Line).reported
    assert [one.name for one in path.parent.iterdir()] == [path.name]


class HandsThatCount:
    """Hands that say done to everything, and count how often they were asked."""

    def __init__(self) -> None:
        self.asked = 0

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """Put a job back into the queue."""
        del scheduler_id, incomplete_only
        return self._done()

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Start a waiting job on other nodes."""
        del scheduler_id, note, exclude, delay
        return self._done()

    def cancel(self, scheduler_id: str) -> Answer:
        """Cancel a job."""
        del scheduler_id
        return self._done()

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Send a signal."""
        del scheduler_id, name, batch_only
        return self._done()

    def _done(self) -> Answer:
        self.asked += 1
        return Answer(Outcome.DONE, "")


def test_the_intent_is_on_the_disk_before_the_scheduler_is_asked(
    outbox: Outbox, path: Path
) -> None:
    class Looking(HandsThatCount):
        def _done(self) -> Answer:
            line = msgspec.json.decode(path.read_bytes().splitlines()[-1], type=Line)
            assert line.order == REQUEUE
            assert line.outcome is None
            return super()._done()

    hands = Looking()
    done = carry_out(REQUEUE, hands, outbox, lambda: START)
    assert (hands.asked, done.outcome) == (1, Outcome.DONE)
    assert outbox.unreported() == (done,)


ON_A_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from relight.clients.schedulers import Answer
from relight.controller.acting import carry_out
from relight.controller.outbox import Outbox
from relight.controller.reconciling import Past
from relight.model.advice import Advice, Decision, Mode
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey
from relight.model.orders import Order, Outcome, Verb
from relight.model.reasons import Reason

class Hands:
    asked = 0
    def requeue(self, scheduler_id, *, incomplete_only):
        Hands.asked += 1
        return Answer(Outcome.DONE, "")

def order(job):
    return Order(attempt=AttemptKey.parse(job), generation=1, verb=Verb.REQUEUE)

def advice(job):
    return Advice(attempt=AttemptKey.parse(job), generation=1, decision=Decision.RESTART,
                  mode=Mode.ACT, reason=Reason(code="r", sentence="s"), made_at=Instant(0))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
box = Outbox(path)
carry_out(order("main:1-0"), Hands(), box, lambda: Instant(0))
room = path.stat().st_size + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
try:
    carry_out(order("main:2-0"), Hands(), box, lambda: Instant(0))
except OSError as error:
    print("refused", Hands.asked, box.past_requeue(advice("main:2-0")).value)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
box.intend(order("main:3-0"), Instant(0))
box.close()
again = Outbox(path)
print(*(again.past_requeue(advice(f"main:{n}-0")).value for n in (1, 2, 3)), Hands.asked)
"""


@pytest.mark.parametrize("room", [0, 1, 40])
def test_on_a_full_disk_the_scheduler_is_not_asked_and_nothing_is_believed_to_be_written(
    path: Path, room: int
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, str(path), str(room)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == ["refused 1 never", "ordered never ordered 1"]


def test_a_folder_that_cannot_be_written_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Outbox(tmp_path / "file" / "outbox.jsonl")


def test_every_line_is_whole_when_a_process_is_killed_between_two(
    outbox: Outbox, path: Path
) -> None:
    outbox.intend(REQUEUE, START)
    size = os.stat(path).st_size  # noqa: PTH116 - what the kernel has, not what a buffer holds
    assert size == len(path.read_bytes())
    assert path.read_bytes().endswith(b"\n")
