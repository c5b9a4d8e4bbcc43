"""Short ways to tell a story to the core: a job, its attempts, what is found and seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from relight.engine.cases import AttemptCase, Case
from relight.engine.step import Step, step
from relight.model.advice import Action, Advice, Mode
from relight.model.findings import Domain, Evidence, Finding, Kind, Place, Remedy, Role
from relight.model.instants import Instant, seconds
from relight.model.jobs import AttemptKey, JobFact, JobKey, JobState
from relight.model.progress import Progress
from relight.model.questions import CapacityAsked
from relight.model.stimuli import (
    AttemptSeen,
    CapacitySeen,
    FindingMade,
    ProgressSeen,
    Stimulus,
    Tick,
)
from relight.policy.policies import Policy, PolicyBook

KEY = JobKey(cluster="main", scheduler_id="7")
NODES = ("node-01", "node-02", "node-03")
COMMENT = '{"relight": {"max_restarts": 3}}'
LISTENED = seconds(5)
START = Instant(1_760_000_000_000_000)


def book(mode: Mode = Mode.ACT, **fields: object) -> PolicyBook:
    """Return a book with one policy, in act mode unless told otherwise."""
    may = (Action.REQUEUE, Action.EXCLUDE, Action.CANCEL)
    policy = msgspec.structs.replace(Policy(name="default", mode=mode, may=may), **fields)
    return PolicyBook(policies=(policy,))


def fact(state: JobState, attempt: int = 0, **fields: object) -> JobFact:
    """Return what a scheduler says of the story's job."""
    base = JobFact(
        cluster="main",
        scheduler_id="7",
        user="alice",
        partition="train",
        comment=COMMENT,
        state=state,
        restart_count=attempt,
        nodes=() if state in (JobState.PENDING, JobState.HELD) else NODES,
        expected_nodes=3,
        tasks=3,
        tasks_per_node=1,
        submitted_at=START,
        started_at=None if state is JobState.PENDING else START,
    )
    return msgspec.structs.replace(base, **fields)


def finding(  # noqa: PLR0913 - the fields that stories differ in
    rule: str,
    *,
    attempt: int = 0,
    role: Role = Role.ROOT,
    domain: Domain = Domain.HARDWARE,
    remedy: Remedy = Remedy.RESTART_EXCLUDING_NODE,
    kind: Kind = Kind.CRASH,
    ranks: tuple[int, ...] = (),
    tasks: tuple[int, ...] = (),
    nodes: tuple[str, ...] = (),
    seen_at: Instant = START,
    offset: int = 0,
    task_gone: bool = False,
    detector: str = "signatures",
) -> Finding:
    """Return a finding with one line of evidence."""
    place = Place(file="job-7.out", offset=offset, line=offset + 1)
    return Finding(
        id=f"{rule}-{attempt}-{offset}",
        detector=detector,
        rule=rule,
        family=rule,
        kind=kind,
        role=role,
        domain=domain,
        remedy=remedy,
        attempt=AttemptKey(job=KEY, attempt=attempt),
        seen_at=seen_at,
        sentence=f"the text of {rule}",
        place=place,
        ranks=ranks,
        tasks=tasks,
        nodes=nodes,
        evidence=(Evidence(text=f"line of {rule}", place=place, is_root=True),),
        fingerprint=rule,
        task_gone=task_gone,
    )


@dataclass
class Story:
    """A job's life as the core sees it; every move is one stimulus at the story's clock."""

    policy_book: PolicyBook = field(default_factory=book)
    case: Case = field(default_factory=lambda: Case(key=KEY))
    now: Instant = START
    fit_now: int | None = 3
    fit_ever: int | None = 3
    is_listened_to: bool = True
    sentences: list[str] = field(default_factory=list)

    def wait(self, count: float) -> Story:
        """Let time pass: the logs are listened to, and the case is woken when it asks to be."""
        end = Instant(self.now + seconds(count))
        while self.now < end:
            pause = Instant(min(end, self.now + LISTENED))
            while self.case.wake_at is not None and self.case.wake_at <= pause:
                self.now = Instant(max(self.now, self.case.wake_at))
                before = self.case.wake_at
                self.take(Tick(job=KEY, seen_at=self.now))
                assert self.case.wake_at != before, "woken, it asks for the same instant again"
            self.now = pause
            self._listen()
        return self

    def _listen(self) -> None:
        latest = self.case.latest
        if self.is_listened_to and latest is not None and latest.ended_seen_at is None:
            silence = ProgressSeen(job=KEY, seen_at=self.now, attempt=latest.number)
            self.take(msgspec.structs.replace(silence, logs_unseen=latest.logs_unseen))

    def see(self, state: JobState, attempt: int = 0, **fields: object) -> Story:
        """Let the scheduler say something of the job."""
        said = fact(state, attempt, **fields)
        self.take(AttemptSeen(job=KEY, seen_at=self.now, fact=said))
        return self

    def find(self, rule: str, **fields: object) -> Story:
        """Let a detector conclude something."""
        made = finding(rule, seen_at=self.now, **fields)  # type: ignore[arg-type]  # passed on as given
        self.take(FindingMade(job=KEY, seen_at=self.now, finding=made))
        return self

    def progress(
        self, attempt: int = 0, *, final: bool = False, logs_unseen: str = "", **fields: object
    ) -> Story:
        """Let the log tell how far an attempt has come."""
        told = msgspec.structs.replace(Progress(), **fields)
        self.take(
            ProgressSeen(
                job=KEY,
                seen_at=self.now,
                attempt=attempt,
                progress=told,
                final=final,
                logs_unseen=logs_unseen,
            )
        )
        return self

    def take(self, stimulus: Stimulus) -> Step:
        """Give one stimulus to the core and answer what it asks about capacity."""
        taken = step(self.case, stimulus, self.policy_book)
        self.case = taken.case
        self.sentences += [entry.reason.sentence for entry in taken.entries]
        for question in taken.questions:
            if isinstance(question, CapacityAsked) and self.fit_now is not None:
                self.take(
                    CapacitySeen(
                        job=KEY,
                        seen_at=self.now,
                        without=question.without,
                        fit_now=self.fit_now,
                        fit_ever=self.fit_ever,
                    )
                )
        return taken

    def attempt(self, number: int = 0) -> AttemptCase:
        """Return an attempt that the story has told of."""
        found = self.case.attempt(number)
        assert found is not None, f"attempt {number} was never seen"
        return found

    def advice(self, number: int = 0) -> Advice:
        """Return the advice on an attempt that has one."""
        advice = self.attempt(number).advice
        assert advice is not None, f"attempt {number} has no advice"
        return advice
