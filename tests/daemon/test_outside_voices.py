"""Who is asked beside the logs: questions kept, looks taken, answers given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.clients.attribution.opinions import Asked, Opinion, ServiceFailed, Standing
from relight.daemon.asking import MOST_WAITING, Asking
from relight.daemon.attributing import AttributionLoop, Desk
from relight.daemon.backends import Backend
from relight.daemon.witnessing import Post, WitnessLoop
from relight.model.advice import Decision
from relight.model.evidence import Evidence, Window, Witness
from relight.model.findings import Domain
from relight.model.instants import Instant, seconds
from relight.model.jobs import Allocation, AttemptKey, JobKey, JobState
from relight.model.observations import Observation
from relight.model.questions import AttributionAsked, EvidenceAsked
from relight.model.stimuli import AttributionGiven, EvidenceSeen, FindingMade
from relight.settings.records import Attribution
from relight.store import Store
from relight.testing.stories import KEY, NODES, START, book, fact, finding


def evidence_asked(job: JobKey = KEY, witness: Witness = Witness.TELEMETRY) -> EvidenceAsked:
    window = Window(
        attempt=AttemptKey(job=job, attempt=0),
        allocation=Allocation(nodes=NODES),
        since=START,
        until=Instant(START + seconds(60)),
    )
    return EvidenceAsked(job=job, witness=witness, window=window)


@pytest.fixture
def asking() -> Asking:
    return Asking({"main": ["second"]})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/relight.db") as opened:
        yield opened


@pytest.fixture
def backend(store: Store, asking: Asking) -> Backend:
    made = Backend(store, {"main": book()}, "rules", lambda: START, asking)
    running = fact(JobState.RUNNING)
    made.observe(
        Observation(
            cluster="main", sequence=1, at=START, complete=True, jobs=(running,), present=("7",)
        )
    )
    return made


def soon(what: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.01)


def test_a_question_is_taken_once_and_only_for_its_cluster(asking: Asking) -> None:
    asking.ask([evidence_asked()])
    assert asking.take(Witness.TELEMETRY, frozenset({"other"})) is None
    assert asking.take(Witness.KERNEL_LOG, frozenset({"main"})) is None
    assert asking.take(Witness.TELEMETRY, frozenset({"main"})) == evidence_asked()
    assert asking.take(Witness.TELEMETRY, frozenset({"main"})) is None


def test_of_too_many_questions_the_oldest_are_dropped(asking: Asking) -> None:
    jobs = [JobKey(cluster="main", scheduler_id=str(one)) for one in range(MOST_WAITING + 1)]
    asking.ask(evidence_asked(job) for job in jobs)
    first = asking.take(Witness.TELEMETRY, frozenset({"main"}))
    assert first is not None
    assert first.job == jobs[1]


class Looking:
    """A witness that sees what it is told to."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.asked: list[Window] = []

    def look(self, window: Window) -> Evidence:
        """Return what this witness is to have seen."""
        self.asked.append(window)
        return self.evidence


def test_what_a_witness_sees_reaches_the_journal_before_that_it_has_spoken(
    asking: Asking, backend: Backend, store: Store
) -> None:
    seen = finding("gpu-xid", detector="telemetry")
    source = Looking(Evidence(findings=(seen,), blind=("No clocks.",)))
    loop = WitnessLoop(
        Post("main", Witness.TELEMETRY, source), backend, asking, lambda: Instant(START + 1)
    )
    asking.ask([evidence_asked()])
    assert loop.turn() == 0.0
    told = [record.stimulus for record in store.journal(job=KEY)][-2:]
    made, answer = told
    assert isinstance(made, FindingMade)
    assert made.finding == seen
    assert isinstance(answer, EvidenceSeen)
    assert (answer.found, answer.blind, answer.until) == (
        1,
        ("No clocks.",),
        Instant(START + seconds(60)),
    )
    assert source.asked == [evidence_asked().window]
    assert loop.turn() > 0.0


class Scripted:
    """A service that answers as it is told to, one after the other."""

    def __init__(self, *answers: Opinion | ServiceFailed) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Asked, str]] = []

    def ask(self, asked: Asked, session: str = "") -> Opinion:
        """Return the next answer, the last one for ever."""
        self.asked.append((asked, session))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ServiceFailed):
            raise answer
        return answer


GUESS = Opinion(status=Standing.PENDING, domain=Domain.NETWORK, session="s")
SILENT = Opinion(status=Standing.PENDING, session="s")
SURE = Opinion(status=Standing.FINAL, domain=Domain.HARDWARE, decision=Decision.RESTART)


@pytest.mark.parametrize(
    ("answers", "timeout", "told"),
    [
        ((SURE,), 5.0, [("fast", Domain.HARDWARE, "")]),
        ((GUESS, SURE), 5.0, [("fast", Domain.NETWORK, ""), ("slow", Domain.HARDWARE, "")]),
        ((SILENT, SURE), 5.0, [("slow", Domain.HARDWARE, "")]),
        ((SILENT,), 0.1, [("slow", Domain.UNKNOWN, "no answer within 100 ms")]),
        ((ServiceFailed("it is down"),), 5.0, [("fast", Domain.UNKNOWN, "it is down")]),
        (
            (Opinion(status=Standing.NO_OPINION, sentence="No log."),),
            5.0,
            [("fast", Domain.UNKNOWN, "it has no opinion. No log.")],
        ),
    ],
)
def test_a_service_is_asked_until_it_is_done_and_each_answer_is_journalled(  # noqa: PLR0913, PLR0917 - fixtures and the columns of a table
    asking: Asking,
    backend: Backend,
    store: Store,
    answers: tuple[Opinion | ServiceFailed, ...],
    timeout: float,
    told: list[tuple[str, Domain, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("relight.daemon.attributing.LOOK_EVERY", 0.15)
    settings = Attribution(name="second", url="http://127.0.0.1:9", timeout=seconds(timeout))
    desk = Desk(settings, Scripted(*answers), frozenset({"main"}))
    loop = AttributionLoop(desk, backend, asking, {}, lambda: START)
    asking.ask([AttributionAsked(job=KEY, attempt=0)])
    assert loop.turn() == 0.0
    given = [
        one.stimulus for one in store.journal(job=KEY) if isinstance(one.stimulus, AttributionGiven)
    ]
    assert [(one.phase, one.domain, one.unseen) for one in given] == told
    assert all(one.provider == "second" for one in given)


def test_the_end_of_relight_does_not_wait_for_a_service(asking: Asking, backend: Backend) -> None:
    settings = Attribution(name="second", url="http://127.0.0.1:9", timeout=seconds(600))
    service = Scripted(SILENT)
    desk = Desk(settings, service, frozenset({"main"}))
    loop = AttributionLoop(desk, backend, asking, {}, lambda: START)
    asking.ask([AttributionAsked(job=KEY, attempt=0)])
    loop.start()
    soon(lambda: service.asked)
    threading.Timer(0.05, loop.ask_to_stop).start()
    assert loop.join(1.0)


class Trying(Looking):
    """A witness of whom it is known whether it could be asked."""

    why = "The server is down."

    def why_not(self) -> str:
        """Return why it cannot be asked now."""
        return self.why


def test_a_witness_that_cannot_be_asked_is_told_in_health_before_there_is_a_question(
    asking: Asking, backend: Backend
) -> None:
    now = [START]
    source = Trying(Evidence())
    post = Post("main", Witness.TELEMETRY, source)
    loop = WitnessLoop(post, backend, asking, lambda: now[0])
    assert loop.turn() > 0.0
    down = loop.source
    assert down is not None
    assert (down.name, down.seen) == ("the telemetry of cluster main", False)
    assert down.why == "The server is down."
    source.why = ""
    loop.turn()
    assert loop.source == down
    now[0] = Instant(START + seconds(30))
    loop.turn()
    assert loop.source is not None
    assert (loop.source.seen, loop.source.last_seen_at) == (True, now[0])
