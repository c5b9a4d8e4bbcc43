"""The backend in one process: stimuli in, decided and committed at once, advice out.

One lock, one order of events. What was not written, in one transaction, did not happen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import structlog

from relight.clients.backend.answers import ClusterHealth, Health, Trouble
from relight.controller.isolation import for_each
from relight.daemon.arrivals import (
    furthest_mode,
    health_after,
    is_follower,
    is_unreadable,
    is_urgent,
    key_of,
)
from relight.daemon.asking import Asking
from relight.daemon.node_news import node_news
from relight.engine.cases import Case
from relight.engine.identity import Identity, identify
from relight.engine.step import CORE_VERSION, Step, step
from relight.model.advice import Advice, ReconciliationStatus
from relight.model.audit import AuditEntry
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobFact, JobKey, NodeFact
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome
from relight.model.questions import CapacityAsked, Question
from relight.model.stimuli import (
    AttemptSeen,
    CapacitySeen,
    JobGone,
    OrderDone,
    PersonSaid,
    StatusSeen,
    Stimulus,
    Tick,
    Word,
)
from relight.policy.capacity import count_nodes
from relight.policy.opt_in import choose
from relight.policy.policies import PolicyBook
from relight.serve.ports import Declined
from relight.store.changes import Change, JournalRecord, SavedPerception, Tail
from relight.store.errors import StoreRefused
from relight.store.stores import Store
from relight.store.writing import is_open

_log = structlog.get_logger("relight.backend")


class Backend:
    """Takes in what is seen, decides, and answers what is advised. Safe for any thread."""

    def __init__(
        self,
        store: Store,
        books: Mapping[str, PolicyBook],
        rules_revision: str,
        clock: Callable[[], Instant],
        asking: Asking | None = None,
    ) -> None:
        self._store = store
        self._asking = asking or Asking({})
        self._books = dict(books)
        self._rules_revision = rules_revision
        self._clock = clock
        self._lock = threading.RLock()
        self._cases: dict[JobKey, Case] = {}
        self._set_aside: dict[JobKey, Trouble] = {}
        self._newest_open: dict[tuple[str, str], JobKey] = {}
        self._stirred: Callable[[], None] = lambda: None
        self._nodes: dict[str, dict[str, NodeFact]] = {name: {} for name in books}
        self._told_nodes: dict[str, dict[str, NodeFact]] = {}
        self._health = {
            name: ClusterHealth(name=name, mode=furthest_mode(book))
            for name, book in self._books.items()
        }
        for name in self._books:
            for case in store.open_cases(name):
                self._keep(case)

    def when_stirred(self, call: Callable[[], None]) -> None:
        """Call ``call`` whenever advice changed, an attempt ended or a log told of trouble."""
        self._stirred = call

    def health(self) -> Health:
        """Return how every cluster is."""
        return Health(
            clusters=tuple(self._health.values()), troubles=tuple(self._set_aside.values())
        )

    def open_cases(self) -> tuple[Case, ...]:
        """Return every case of which something can still come."""
        with self._lock:
            return tuple(self._cases.values())

    def observe(self, observation: Observation) -> None:
        """Take in what a controller has seen of a cluster."""
        with self._lock:
            before = self._health.get(observation.cluster)
            if before is not None:
                self._health[observation.cluster] = health_after(before, observation)
            for node in observation.nodes:
                self._note_node(observation, node)
            if observation.nodes:
                self._answer_waiting(observation.cluster)
            for_each(observation.jobs, lambda fact: self._note_job(observation, fact))
            if observation.complete:
                self._note_gone(observation)

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return the active advice of a cluster, of all where the name is empty."""
        with self._lock:
            return tuple(
                attempt.advice
                for case in self._cases.values()
                if cluster in ("", case.key.cluster)
                for attempt in case.attempts
                if attempt.advice is not None and attempt.advice.is_active
            )

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Take in how far the world has followed an advice; of an unknown job nothing is kept."""
        self._take_of_known(
            StatusSeen(
                job=attempt.job, seen_at=self._clock(), attempt=attempt.attempt, status=status
            )
        )

    def outcome(self, outcome: OrderOutcome) -> None:
        """Take in what became of an order; of an unknown job nothing is kept."""
        job = outcome.order.attempt.job
        self._take_of_known(
            OrderDone(job=job, seen_at=self._clock(), outcome=outcome, source="controller")
        )

    def person_said(
        self, attempt: AttemptKey, *, generation: int, word: Word, who: str, why: str
    ) -> None:
        """Take in a person's yes or no.

        Raises:
            Declined: there is no such advice, or it does not wait for a word.

        """
        with self._lock:
            case = self._cases.get(attempt.job)
            known = case.attempt(attempt.attempt) if case is not None else None
            advice = known.advice if known is not None else None
            if advice is None or not advice.is_active:
                raise Declined("no-active-advice", f"There is no active advice on {attempt}.")
            if advice.generation != generation:
                raise Declined(
                    "advice-changed",
                    f"The advice on {attempt} has changed: it is at generation "
                    f"{advice.generation}, not {generation}.",
                    "Look at it again with: relight advice",
                )
            self.take(
                PersonSaid(
                    job=attempt.job,
                    seen_at=self._clock(),
                    attempt=attempt.attempt,
                    generation=generation,
                    word=word,
                    who=who,
                    why=why,
                    source="api",
                )
            )

    def wake_due(self) -> None:
        """Give a Tick to every case whose instant has come."""
        now = self._clock()
        with self._lock:
            due = [
                case.key
                for case in self._cases.values()
                if case.wake_at is not None and case.wake_at <= now
            ]
            for_each(due, lambda key: self.take(Tick(job=key, seen_at=now, source="clock")))

    def take(
        self,
        *stimuli: Stimulus,
        perceptions: Sequence[SavedPerception] = (),
        tails: Sequence[Tail] = (),
    ) -> None:
        """Decide on stimuli of one job in their order, and commit all that follows at once.

        Raises:
            StoreBusy: nothing was written and nothing has changed; give them again.
            StoreBroken: likewise, and a person is needed.

        """
        if not stimuli and not perceptions:
            return
        with self._lock:
            self._take(stimuli, perceptions, tails)

    def _take_of_known(self, stimulus: Stimulus) -> None:
        """Take in a word about a job that was seen: any other would begin a case without one."""
        with self._lock:
            if stimulus.job in self._cases or self._store.case(stimulus.job) is not None:
                self.take(stimulus)

    def _take(
        self,
        stimuli: Sequence[Stimulus],
        perceptions: Sequence[SavedPerception],
        tails: Sequence[Tail],
    ) -> None:
        if any(one.attempt.job in self._set_aside for one in perceptions):
            return  # what was found could not be decided on: it is read again after a new start
        if not stimuli:
            self._store.commit(Change(perceptions=tuple(perceptions), tails=tuple(tails)))
            return
        key = stimuli[0].job
        book = self._books.get(key.cluster, PolicyBook())
        case = self._case(key)
        journal: list[JournalRecord] = []
        advice: dict[tuple[str, int], Advice] = {}
        entries: list[AuditEntry] = []
        asked: list[Question] = []
        waiting = deque(stimuli)
        while waiting:
            stimulus = waiting.popleft()
            taken = self._step(case, stimulus, book)
            if taken is None:
                return
            case = taken.case
            journal.append(self._recorded(stimulus, book))
            advice.update({(one.id, one.generation): one for one in taken.advice})
            entries += taken.entries
            asked += taken.questions
            waiting.extendleft(self._answers(taken.questions, case))
        change = Change(
            journal=tuple(journal),
            case=case,
            advice=tuple(advice.values()),
            audit=tuple(entries),
            books=(book,),
            perceptions=tuple(perceptions),
            tails=tuple(tails),
        )
        try:
            self._store.commit(change)
        except StoreRefused as error:
            self._put_aside(key, error)
            return
        self._keep(case)
        self._asking.ask(asked)
        if advice or asked or any(is_urgent(one) for one in stimuli):
            self._stirred()
        for entry in entries:
            _log.info(entry.reason.sentence, job=str(entry.job), code=entry.reason.code)

    def _step(self, case: Case, stimulus: Stimulus, book: PolicyBook) -> Step | None:
        """Take one step, or set the job aside for good when the core itself fails on it.

        A fault of ours in one job must not stop the others, nor be acted upon.
        """
        if case.key in self._set_aside:
            return None
        try:
            return step(case, stimulus, book)
        except Exception as error:  # noqa: BLE001 - whatever it is, it stays this job's
            _log.exception("deciding on a job failed", job=str(case.key))
            self._put_aside(case.key, error)
            return None

    def _put_aside(self, key: JobKey, error: Exception) -> None:
        """Leave a job alone until relight is started again, and say so in health."""
        self._set_aside[key] = Trouble(
            name="deciding on a job, which is left alone until relight is started again,",
            since=self._clock(),
            error=type(error).__name__,
            message=f"job {key}: {error}",
        )
        self._cases.pop(key, None)

    def _case(self, key: JobKey) -> Case:
        return self._cases.get(key) or self._store.case(key) or Case(key=key)

    def _keep(self, case: Case) -> None:
        name = (case.key.cluster, case.key.scheduler_id)
        if is_open(case):
            self._cases[case.key] = case
            newest = self._newest_open.get(name, case.key)
            self._newest_open[name] = max(newest, case.key)
        else:
            self._cases.pop(case.key, None)
            if self._newest_open.get(name) == case.key:
                del self._newest_open[name]

    def _recorded(self, stimulus: Stimulus, book: PolicyBook) -> JournalRecord:
        return JournalRecord(
            stimulus=stimulus, book=book.revision, core=CORE_VERSION, rules=self._rules_revision
        )

    def _answers(self, questions: Sequence[Question], case: Case) -> list[Stimulus]:
        """Answer what can be answered at once; a cluster whose nodes are unseen answers nothing."""
        latest = case.latest
        nodes = self._nodes.get(case.key.cluster, {})
        if latest is None or not nodes:
            return []
        answers: list[Stimulus] = []
        held = tuple(reversed(case.attempts))
        for question in questions:
            if not isinstance(question, CapacityAsked):
                continue
            own = next((one.allocation.nodes for one in held if one.allocation.nodes), ())
            found = count_nodes(nodes.values(), latest.fact, own, question.without)
            answers.append(
                CapacitySeen(
                    job=case.key,
                    seen_at=self._clock(),
                    source="nodes",
                    without=question.without,
                    fit_now=found.fit_now,
                    fit_ever=found.fit_ever,
                )
            )
        return answers

    def _answer_waiting(self, cluster: str) -> None:
        """Answer the questions about capacity that came before the nodes were seen."""
        for case in tuple(self._cases.values()):
            known = case.capacity.without if case.capacity is not None else ()
            if case.key.cluster == cluster and case.asked_without not in ((), known):
                asked = CapacityAsked(job=case.key, without=case.asked_without)
                self.take(*self._answers([asked], case))

    def _note_node(self, observation: Observation, node: NodeFact) -> None:
        """Tell a node's news to the jobs on it; what not all were told is news the next time."""
        self._nodes.setdefault(observation.cluster, {})[node.name] = node
        told = self._told_nodes.setdefault(observation.cluster, {})
        before = told.get(node.name)
        for case in tuple(self._cases.values()):
            if case.key.cluster == observation.cluster:
                self.take(*node_news(case, before, node, observation.at))
        told[node.name] = node

    def _note_job(self, observation: Observation, fact: JobFact) -> None:
        cluster = observation.cluster
        book = self._books.get(cluster)
        if book is None or is_follower(fact) or is_unreadable(fact):
            return
        known = self._newest(cluster, fact.scheduler_id)
        choice = choose(fact, book)
        is_watched = choice.opted_in or bool(choice.errors)
        if known is None and not is_watched:
            return
        latest = known.latest.fact if known is not None and known.latest is not None else None
        identity = identify(latest, fact)
        key = known.key if known is not None else key_of(fact)
        if identity is Identity.STALE or latest == fact:
            return
        if identity is Identity.NEW_JOB and known is not None:
            if known.key in self._cases:
                self.take(JobGone(job=known.key, seen_at=observation.at, source="controller"))
            if not is_watched:
                return
            key = key_of(fact, known.key.reuse + 1)
        self.take(
            AttemptSeen(
                job=key,
                seen_at=observation.at,
                at=fact.ended_at or fact.started_at or fact.submitted_at,
                source="controller",
                fact=fact,
            )
        )

    def _newest(self, cluster: str, scheduler_id: str) -> Case | None:
        key = self._newest_open.get((cluster, scheduler_id))
        known = self._cases.get(key) if key is not None else None
        return known or self._store.newest_case(cluster, scheduler_id)

    def _note_gone(self, observation: Observation) -> None:
        present = frozenset(observation.present)
        gone = [
            case.key
            for case in self._cases.values()
            if case.key.cluster == observation.cluster
            and case.key.scheduler_id not in present
            and not case.is_gone
        ]
        for_each(
            gone,
            lambda key: self.take(JobGone(job=key, seen_at=observation.at, source="controller")),
        )
