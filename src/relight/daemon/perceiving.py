"""Reads the files of every watched attempt and gives what they tell to the backend.

Positions are saved in the transaction that saves the findings, so a process that dies and
starts again reads on from there; a line that is read twice makes the same finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from relight.controller.isolation import for_each
from relight.daemon.backends import Backend
from relight.engine.cases import AttemptCase, Case
from relight.model.allowances import Allowances
from relight.model.findings import Kind, Role
from relight.model.incidents import Phase
from relight.model.instants import EPOCH, Instant, between, in_seconds, later, seconds
from relight.model.jobs import AttemptKey, JobState
from relight.model.signals import FileUnseen, Reading
from relight.model.stimuli import FindingMade, ProgressSeen, Stimulus
from relight.perception.attempts import Perceived, PerceptionState, conclude, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.lines import FileState
from relight.policy.policies import PolicyBook
from relight.sources.files import AttemptLogs
from relight.sources.owner_readers import OwnerReaders
from relight.store.changes import SavedPerception, Tail
from relight.store.stores import Store

BUDGET = 8 * 1024 * 1024
"""Bytes of one attempt read in one round, so that a flood in one job starves no other."""
PROGRESS_EVERY = seconds(60)
LISTENED_EVERY = seconds(5)
"""While trouble settles, this often it is told that the files were listened to."""
UNSEEN_AFTER = seconds(30)
"""An attempt may run this long before files that are not there yet are called unseen."""
USUAL_WAIT = 1.0
"""Seconds between two rounds while nothing is wrong."""
BRISK_WAIT = 0.2
TAILS_EVERY = seconds(2)
"""While trouble settles, the last lines are saved this often: a restart may truncate them."""
MET_LATE = seconds(10)
QUIET = seconds(0.4)
"""An ended attempt's files are at their end when nothing came for this long."""

_log = structlog.get_logger("relight.perceiving")


@dataclass(slots=True)
class _Watch:
    """What is remembered of one attempt between rounds."""

    state: PerceptionState
    ears: Ears
    told: ProgressSeen | None = None
    told_at: Instant | None = None
    quiet_since: Instant | None = None
    is_catching_up: bool = False
    """Met late: what the files hold already may be of attempts or jobs before it."""
    is_stale: bool = False
    """Something was read since tails and positions were last saved."""
    is_saved: bool = False
    """The store knows where this attempt's files stood at first: it is not met late again."""
    tails_due: Instant = EPOCH


class Perceiver:
    """Perceives every open case of a backend, a round at a time, in one thread."""

    def __init__(  # noqa: PLR0913 - the parts of the daemon that it works with
        self,
        backend: Backend,
        store: Store,
        lexicon: Lexicon,
        readers: Mapping[str, OwnerReaders],
        clock: Callable[[], Instant],
        *,
        books: Mapping[str, PolicyBook] | None = None,
    ) -> None:
        self._backend = backend
        self._books = books or {}
        self._store = store
        self._lexicon = lexicon
        self._readers = readers
        self._clock = clock
        self._watches: dict[AttemptKey, _Watch] = {}
        self._is_stopping = False

    def ask_to_stop(self) -> None:
        """Let the attempt that is read now be the last of this round."""
        self._is_stopping = True

    def round(self) -> float:
        """Read what is new in every watched attempt; return the seconds to the next round."""
        wanted = [
            (case, attempt)
            for case in self._backend.open_cases()
            if case.choice.opted_in
            and not case.choice.errors
            and case.key.cluster in self._readers
            and (attempt := _to_read(case)) is not None
        ]
        keys = {case.key_of(attempt.number) for case, attempt in wanted}
        for key in self._watches.keys() - keys:
            del self._watches[key]
        for_each(wanted, lambda one: self._read(*one))
        return min((self._wait(case, attempt) for case, attempt in wanted), default=USUAL_WAIT)

    def _wait(self, case: Case, attempt: AttemptCase) -> float:
        """Return how soon an attempt is to be read again: its end is waited for exactly."""
        watch = self._watches.get(case.key_of(attempt.number))
        if attempt.ended_seen_at is not None and watch is not None and watch.quiet_since:
            left = QUIET - between(watch.quiet_since, self._clock())
            return min(BRISK_WAIT, max(0.0, in_seconds(left)))
        is_urgent = attempt.ended_seen_at is not None or _is_troubled(attempt)
        return BRISK_WAIT if is_urgent else USUAL_WAIT

    def _read(self, case: Case, attempt: AttemptCase) -> None:
        if self._is_stopping:
            return
        key = case.key_of(attempt.number)
        watch = self._watches.pop(key, None) or self._watch(case, key)
        self._listen(case, attempt, watch)
        # Only now: what could not be committed is heard again from what is stored.
        self._watches[key] = watch

    def _listen(self, case: Case, attempt: AttemptCase, watch: _Watch) -> None:
        now = self._clock()
        heard: Sequence[Reading | FileUnseen] = ()
        is_over = attempt.running_at is None or case.attempt(attempt.number + 1) is not None
        if not (is_over and _overtaken(case, attempt)):
            heard = self._hear(case, attempt, watch)
        perceived = perceive(
            watch.state,
            heard,
            now,
            watch.ears,
            allowances=self._allowances(case) if _is_at_work(attempt) else None,
            earlier=_usual_before(case, attempt),
        )
        watch.state = perceived.state
        watch.is_stale = watch.is_stale or any(
            isinstance(one, Reading) and one.data for one in heard
        )
        if watch.is_catching_up:
            # What stands there may be of attempts that nobody watched: none of it is blamed.
            perceived = msgspec.structs.replace(perceived, findings=())
            watch.is_catching_up = any(isinstance(one, Reading) and not one.at_end for one in heard)
        final = _writes_no_more(case, attempt) and self._is_drained(watch, heard, now)
        if final:
            last = conclude(watch.state, now, watch.ears)
            watch.state = last.state
            perceived = msgspec.structs.replace(
                last, findings=(*perceived.findings, *last.findings)
            )
        self._tell(case, attempt, watch, perceived, final=final)

    def _allowances(self, case: Case) -> Allowances:
        """Return how long an attempt may be silent under the job's policy."""
        policy = self._books.get(case.key.cluster, PolicyBook()).policy(case.choice.policy)
        return Allowances() if policy is None else policy.allowances

    def _watch(self, case: Case, key: AttemptKey) -> _Watch:
        ears = Ears(self._lexicon, key)
        saved = self._store.perception(key)
        if saved is not None:
            state = msgspec.json.decode(saved.state, type=PerceptionState)
            return _Watch(state=state, ears=ears, is_saved=True)
        inherited = self._inherited(case, key)
        attempt = case.attempt(key.attempt)
        return _Watch(
            state=inherited or PerceptionState(),
            ears=ears,
            is_catching_up=inherited is None
            and attempt is not None
            and _was_met_late(attempt, self._clock()),
        )

    def _inherited(self, case: Case, key: AttemptKey) -> PerceptionState | None:
        """Begin where the attempt before ended: its job may append to the same files."""
        if key.attempt == 0:
            return None
        before = self._store.perception(case.key_of(key.attempt - 1))
        if before is None:
            return None
        old = msgspec.json.decode(before.state, type=PerceptionState)
        return PerceptionState(
            files={
                name: FileState(mark=file.mark, next_offset=file.next_offset, line=file.line)
                for name, file in old.files.items()
            }
        )

    def _hear(
        self, case: Case, attempt: AttemptCase, watch: _Watch
    ) -> Sequence[Reading | FileUnseen]:
        logs = AttemptLogs(self._readers[case.key.cluster], attempt.fact.uid)
        named = logs.files(attempt.fact, attempt.allocation.nodes, case.choice.logs)
        readings, unseen = logs.read(named.files, watch.state.marks, BUDGET)
        return [*readings, *named.unseen, *unseen]

    def _is_drained(
        self, watch: _Watch, heard: Sequence[Reading | FileUnseen], now: Instant
    ) -> bool:
        readings = [one for one in heard if isinstance(one, Reading)]
        if any(one.data or not one.at_end for one in readings):
            watch.quiet_since = None
            return False
        if watch.quiet_since is None:
            watch.quiet_since = now
        return now - watch.quiet_since >= QUIET

    def _tell(
        self,
        case: Case,
        attempt: AttemptCase,
        watch: _Watch,
        perceived: Perceived,
        *,
        final: bool,
    ) -> None:
        now = self._clock()
        stimuli: list[Stimulus] = [
            FindingMade(
                job=case.key,
                seen_at=now,
                at=one.at,
                source=one.place.file if one.place is not None else "",
                finding=one,
            )
            for one in perceived.findings
            if one.role is not Role.BENIGN
        ]
        seen = _progress(case, attempt, watch, now, final=False)
        if self._is_worth_telling(watch, seen, attempt, found=bool(stimuli)):
            stimuli.insert(0, seen)  # what was read with a finding mostly stood before it
        if final:
            seen = _progress(case, attempt, watch, now, final=True)
            stimuli.append(seen)
        troubled = watch.is_stale and _is_troubled(attempt) and now >= watch.tails_due
        is_first = watch.is_stale and not watch.is_saved
        if not stimuli and not troubled and not is_first:
            return
        key = case.key_of(attempt.number)
        self._backend.take(
            *stimuli,
            perceptions=[
                SavedPerception(
                    attempt=key, state=msgspec.json.encode(watch.state), marks=watch.state.marks
                )
            ],
            tails=[
                Tail(attempt=key, file=file, text="\n".join(lines))
                for file, lines in watch.state.tails.items()
            ]
            if final or perceived.findings or troubled
            else (),
        )
        watch.is_stale = False
        watch.is_saved = True
        watch.tails_due = later(now, TAILS_EVERY)
        if stimuli:
            watch.told, watch.told_at = seen, now

    def _is_worth_telling(
        self, watch: _Watch, seen: ProgressSeen, attempt: AttemptCase, *, found: bool
    ) -> bool:
        """Tell whether progress is new enough: at once where it matters, else once a minute."""
        told = watch.told
        if told is None:
            return _differs(seen, attempt) or _is_troubled(attempt)
        since = watch.told_at
        is_due = since is None or between(since, seen.seen_at) >= LISTENED_EVERY
        if is_due and _is_troubled(attempt):
            return True
        if _same(seen, told):
            return False
        at_once = (
            found
            or _is_troubled(attempt)
            or told.progress.best_step is None
            or seen.progress.best_checkpoint != told.progress.best_checkpoint
            or seen.logs_unseen != told.logs_unseen
            or attempt.number > 0
        )
        return at_once or since is None or between(since, seen.seen_at) >= PROGRESS_EVERY


def _to_read(case: Case) -> AttemptCase | None:
    """Return the attempt whose files are to be read: the oldest that is not read to its end."""
    for attempt in case.attempts[-2:]:
        began = attempt.running_at is not None or attempt.ended_seen_at is not None
        if began and not attempt.logs_read:
            return attempt
    return None


def _was_met_late(attempt: AttemptCase, now: Instant) -> bool:
    """Tell whether a living attempt had run for a while before it was first listened to."""
    if attempt.ended_seen_at is not None or attempt.running_at is None:
        return False
    return between(attempt.running_at, now) > MET_LATE


def _writes_no_more(case: Case, attempt: AttemptCase) -> bool:
    """Tell whether an attempt is over and nothing of it can write any more.

    One that was requeued while it ran goes on writing until its nodes are free: its last
    words would else be taken for the first of the next attempt.
    """
    if attempt.ended_seen_at is None:
        return False
    following = case.attempt(attempt.number + 1)
    return following is None or following.fact.state is not JobState.COMPLETING


def _overtaken(case: Case, attempt: AttemptCase) -> bool:
    """Tell whether the next attempt already writes to the files of this one."""
    following = case.attempt(attempt.number + 1)
    return attempt.running_at is None or (
        following is not None and following.running_at is not None
    )


def _is_at_work(attempt: AttemptCase) -> bool:
    """Tell whether an attempt runs, so that its silence and its pace mean something."""
    return attempt.fact.state is JobState.RUNNING and attempt.ended_seen_at is None


def _usual_before(case: Case, attempt: AttemptCase) -> float | None:
    """Return the usual seconds of one step of the last attempt before that told them."""
    for earlier in reversed(case.attempts):
        if earlier.number < attempt.number and earlier.progress.step_seconds is not None:
            return earlier.progress.step_seconds
    return None


def _is_troubled(attempt: AttemptCase) -> bool:
    """Tell whether a story is open that steps could end; a slow attempt steps all the time."""
    incident = attempt.incident
    return (
        incident is not None
        and incident.phase is not Phase.CLOSED
        and not (incident.kind is Kind.SLOW and attempt.ended_seen_at is None)
    )


def _progress(
    case: Case, attempt: AttemptCase, watch: _Watch, now: Instant, *, final: bool
) -> ProgressSeen:
    progress = watch.state.progress
    return ProgressSeen(
        job=case.key,
        seen_at=now,
        at=progress.last_step_at,
        source="logs",
        attempt=attempt.number,
        progress=progress,
        final=final,
        logs_unseen=_unseen(attempt, watch.state, now, final=final),
    )


def _unseen(attempt: AttemptCase, state: PerceptionState, now: Instant, *, final: bool) -> str:
    """Return why no file of the attempt is seen; empty while one is, or may still appear."""
    seen_any = any(name not in state.unseen for name in state.files)
    if seen_any or not state.unseen:
        return ""
    began = attempt.running_at or attempt.first_seen_at
    if not final and not state.files and now - began < UNSEEN_AFTER:
        return ""
    return "; ".join(f"{file}: {why}" for file, why in sorted(state.unseen.items())[:3])


def _same(one: ProgressSeen, other: ProgressSeen) -> bool:
    blank = msgspec.structs.replace
    return blank(one, seen_at=other.seen_at) == other


def _differs(seen: ProgressSeen, attempt: AttemptCase) -> bool:
    told, known = seen.progress, attempt.progress
    return (told.best_step, told.best_checkpoint, told.resumed_from, seen.logs_unseen) != (
        known.best_step,
        known.best_checkpoint,
        known.resumed_from,
        attempt.logs_unseen,
    )
