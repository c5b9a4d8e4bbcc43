"""The perceiver over real files, a real store and a real backend: nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from relight.daemon.backends import Backend
from relight.daemon.perceiving import PROGRESS_EVERY, QUIET, UNSEEN_AFTER, Perceiver
from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Decision
from relight.model.instants import Instant, in_seconds, later, seconds
from relight.model.jobs import AttemptKey, JobFact, JobState, OutputPaths
from relight.model.observations import Observation
from relight.model.stimuli import FindingMade, ProgressSeen
from relight.perception.ears import Lexicon
from relight.rules.loading import load
from relight.sources.owner_readers import OwnerReaders, ReaderLimits
from relight.store import Change, Store, StoreBusy
from relight.testing.stories import KEY, START, book, fact

LEXICON = Lexicon(load())
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
HARMLESS = "/opt/venv/lib/python3.11/site-packages/torch/a.py:1: FutureWarning: it is deprecated.\n"
ECC_RULE = "gpu-ecc-uncorrectable"


def step(number: int) -> str:
    return f"completed step: {number}, seconds: 1.000, TFLOP/s/device: 345.678\n"


def steps(first: int, last: int) -> str:
    return "".join(step(number) for number in range(first, last + 1))


class FragileStore(Store):
    """A store whose next commits fail, as they do while another process holds the database."""

    failures = 0

    def commit(self, change: Change) -> None:
        """Write all of a change, or fail as scripted."""
        if self.failures:
            self.failures -= 1
            raise StoreBusy("another process holds the database: try again")
        super().commit(change)


@dataclass
class Site:
    """One job's files, and everything that reads them, in its present life."""

    folder: Path
    readers: OwnerReaders
    now: Instant = START
    facts: dict[str, JobFact] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log = self.folder / "job-7.out"
        self.begin()

    def begin(self) -> None:
        """Open the store and begin a life over it."""
        self.store = FragileStore.open(str(self.folder / "relight.db"))
        self.backend = Backend(self.store, {"main": book()}, "rules", lambda: self.now)
        self.perceiver = Perceiver(
            self.backend, self.store, LEXICON, {"main": self.readers}, lambda: self.now
        )

    def restart(self) -> None:
        """End this life and begin another over the same store."""
        self.store.close()
        self.begin()

    def see(self, state: JobState, attempt: int = 0, **fields: object) -> None:
        """Let the controller see something."""
        output = OutputPaths(stdout=str(self.log), work_dir=str(self.folder), expanded=True)
        seen = fact(state, attempt, uid=os.geteuid(), output=output, **fields)
        self.backend.observe(
            Observation(
                cluster="main", sequence=1, at=self.now, complete=True, jobs=(seen,), present=("7",)
            )
        )

    def write(self, text: str, *, anew: bool = False) -> None:
        """Let the job write; anew where its scheduler truncates the file."""
        with self.log.open("w" if anew else "a") as file:
            file.write(text)

    def round(self, times: int = 1, every: float = 0.2) -> None:
        """Do rounds of perception, letting time pass after each."""
        for _ in range(times):
            self.perceiver.round()
            self.wait(every)

    def wait(self, count: float) -> None:
        """Let time pass."""
        self.now = later(self.now, seconds(count))
        self.backend.wake_due()

    @property
    def case(self) -> Case:
        """Return the stored case of a job."""
        case = self.store.case(KEY)
        assert case is not None
        return case

    def attempt(self, number: int = 0) -> AttemptCase:
        """Return the stored case of an attempt."""
        found = self.case.attempt(number)
        assert found is not None
        return found

    def found(self, number: int = 0) -> list[tuple[str, int]]:
        """Return the rule and line number of every finding of an attempt, in their order."""
        return [
            (one.rule, one.place.line)
            for one in self.attempt(number).findings
            if one.place is not None
        ]

    def heard(self) -> Counter[str]:
        """Return how often each finding was written to the journal."""
        return Counter(
            record.stimulus.finding.id
            for record in self.store.journal()
            if isinstance(record.stimulus, FindingMade)
        )

    def told(self) -> list[ProgressSeen]:
        """Return the progress that was written to the journal."""
        return [
            record.stimulus
            for record in self.store.journal()
            if isinstance(record.stimulus, ProgressSeen)
        ]


@pytest.fixture
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="relight-perceiver-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        with OwnerReaders((str(folder),), ReaderLimits(patience=5.0)) as readers:
            built = Site(folder, readers)
            yield built
            built.store.close()


def test_findings_and_progress_of_a_running_job_reach_its_case(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(steps(1, 5))
    site.round()
    assert site.attempt().progress.best_step == 5
    assert site.attempt().progress.first_step == 1
    site.write(ECC)
    site.round()
    assert site.found() == [(ECC_RULE, 6)]
    site.see(JobState.FAILED, exit_status=1)
    site.round(5)
    assert site.attempt().logs_read
    advice = site.attempt().advice
    assert advice is not None
    assert advice.decision is Decision.RESTART
    assert ECC.strip() in [one.text for one in site.attempt().findings[0].evidence]


def test_lines_that_are_known_to_be_harmless_use_up_no_room_of_a_case(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(step(1) + HARMLESS * 300)
    site.round()
    assert site.found() == []
    assert not site.heard()
    site.write(ECC)
    site.round()
    assert site.found() == [(ECC_RULE, 302)]


def test_progress_of_a_healthy_attempt_is_told_at_most_once_a_minute(site: Site) -> None:
    site.see(JobState.RUNNING)
    for number in range(1, 100):
        site.write(step(number))
        site.round(every=3)
    spans = [
        second.seen_at - first.seen_at
        for first, second in zip(site.told(), site.told()[1:], strict=False)
    ]
    assert 4 <= len(spans) <= 6
    assert min(spans) >= PROGRESS_EVERY


def test_progress_is_told_at_once_while_trouble_settles(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(step(1))
    site.round()
    site.write(ECC)
    site.round()
    for number in (2, 3, 4):
        site.write(step(number))
        site.round(every=1)
        assert site.attempt().progress.best_step == number


def test_an_ended_attempt_is_read_to_its_end_before_it_is_final(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(step(1))
    site.round()
    site.see(JobState.FAILED)
    site.write(step(2))
    site.round()
    assert not site.attempt().logs_read, "something came"
    site.round(every=in_seconds(QUIET) / 2)
    assert not site.attempt().logs_read, "quiet, but not for long enough"
    site.write(ECC)
    site.round(every=in_seconds(QUIET) * 2)
    assert not site.attempt().logs_read, "something came again"
    site.round(every=in_seconds(QUIET))
    site.round()
    assert site.attempt().logs_read
    assert site.attempt().progress.best_step == 2
    assert site.found() == [(ECC_RULE, 3)]


def test_a_last_line_without_line_end_is_heard_when_the_attempt_is_over(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(step(1) + ECC.rstrip())
    site.round(3)
    assert site.found() == []
    site.see(JobState.FAILED)
    site.round(5)
    assert site.found() == [(ECC_RULE, 2)]


PIECES = [
    steps(1, 3),
    ECC[:20],
    ECC[20:] + steps(4, 5),
    "noise\n" * 50,
    ECC,
    OOM[:-1],
    "\n" + step(6),
]


@pytest.mark.parametrize("life", range(len(PIECES) + 1))
def test_a_restart_anywhere_loses_and_doubles_nothing(site: Site, life: int) -> None:
    site.see(JobState.RUNNING)
    for number, piece in enumerate(PIECES):
        if number == life:
            site.restart()
        site.write(piece)
        site.round()
    if life == len(PIECES):
        site.restart()
    site.see(JobState.FAILED)
    site.round(5)
    lines = "".join(PIECES).splitlines(keepends=True)
    expected = [number for number, line in enumerate(lines, 1) if line in (ECC, OOM)]
    assert [line for _, line in site.found()] == expected
    assert site.attempt().progress.best_step == 6
    assert site.attempt().progress.first_step == 1
    assert set(site.heard().values()) == {1}
    assert [one.final for one in site.told()].count(True) == 1


@pytest.mark.parametrize("failures", [3])
@pytest.mark.parametrize("at", range(len(PIECES)))
def test_a_store_that_fails_for_a_while_costs_no_finding(
    site: Site, at: int, failures: int
) -> None:
    site.see(JobState.RUNNING)
    for number, piece in enumerate(PIECES):
        site.write(piece)
        if number == at:
            site.store.failures = failures
            for _ in range(failures):
                with contextlib.suppress(ExceptionGroup):  # a round without news commits nothing
                    site.round()
            site.store.failures = 0
        site.round()
    site.see(JobState.FAILED)
    site.round(5)
    assert [rule for rule, _ in site.found()].count(ECC_RULE) == 2
    assert len(site.found()) == 3
    assert site.attempt().progress.best_step == 6


@pytest.mark.parametrize("appends", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_each_attempt_is_given_its_own_lines(*, site: Site, appends: bool, restarted: bool) -> None:
    site.see(JobState.RUNNING)
    site.write(steps(1, 9) + ECC)
    site.round()
    site.see(JobState.FAILED)
    site.round(5)
    assert site.attempt(0).logs_read
    site.see(JobState.PENDING, 1)
    site.round()
    if restarted:
        site.restart()
    site.write("started again\n" + step(6), anew=not appends)
    site.see(JobState.RUNNING, 1)
    site.round()
    site.write(OOM)
    site.see(JobState.FAILED, 1)
    site.round(5)
    assert [rule for rule, _ in site.found(0)] == [ECC_RULE]
    second = site.attempt(1)
    assert second.logs_read
    assert [line for _, line in site.found(1)] == [13 if appends else 3]
    assert ECC_RULE not in [rule for rule, _ in site.found(1)]
    assert (second.progress.first_step, second.progress.best_step) == (6, 6)
    assert site.attempt(0).progress.best_step == 9


def test_lines_of_the_next_attempt_are_not_read_into_the_one_before(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(steps(1, 3))
    site.round()
    site.see(JobState.RUNNING, 1)
    site.write(ECC + step(3))
    site.round(5)
    assert site.found(0) == []
    assert site.attempt(0).logs_read
    assert [rule for rule, _ in site.found(1)] == [ECC_RULE]


def test_an_attempt_that_ended_before_it_was_seen_running_is_read_all_the_same(site: Site) -> None:
    site.see(JobState.PENDING)
    site.round()
    site.write(step(1) + ECC)
    site.see(JobState.FAILED, exit_status=1)
    site.round(5)
    assert site.attempt().logs_read
    assert site.found() == [(ECC_RULE, 2)]
    assert site.attempt().advice is not None


def test_a_job_cancelled_in_the_queue_waits_for_no_logs(site: Site) -> None:
    site.see(JobState.PENDING)
    site.see(JobState.CANCELLED, nodes=())
    site.round(4)
    assert site.backend.open_cases() == ()
    assert site.attempt().logs_unseen == ""


def test_files_that_are_not_there_yet_are_not_called_unseen_at_once(site: Site) -> None:
    site.see(JobState.RUNNING, started_at=START)
    site.round()
    assert site.attempt().logs_unseen == ""
    site.wait(in_seconds(UNSEEN_AFTER))
    site.round()
    assert "not there yet" in site.attempt().logs_unseen
    site.write(step(1))
    site.round()
    assert site.attempt().logs_unseen == ""
    assert site.attempt().progress.best_step == 1


def test_a_failure_whose_files_never_appeared_is_left_to_a_person(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.round()
    site.see(JobState.FAILED, exit_status=1)
    site.round(5)
    attempt = site.attempt()
    assert attempt.logs_read
    assert "not there yet" in attempt.logs_unseen
    assert attempt.advice is not None
    assert attempt.advice.decision is Decision.NONE


@pytest.mark.parametrize("comment", ["", '{"relight": {"max_restart": 1}}'])
def test_the_files_of_a_job_that_is_not_watched_are_not_opened(site: Site, comment: str) -> None:
    site.write(ECC)
    site.see(JobState.RUNNING, comment=comment)
    site.round(3)
    assert site.readers.pids == {}
    assert site.store.perception(AttemptKey(job=KEY, attempt=0)) is None


def test_one_job_whose_log_floods_is_read_over_several_rounds_and_fully(site: Site) -> None:
    flood = ("x" * 1_000 + "\n") * 9_000
    site.see(JobState.RUNNING)
    site.write(flood + ECC)
    site.round()
    assert site.found() == []
    site.round()
    assert site.found() == [(ECC_RULE, 9_001)]


def test_the_last_lines_are_kept_for_a_person_with_the_finding(site: Site) -> None:
    site.see(JobState.RUNNING)
    site.write(steps(1, 3) + ECC)
    site.round()
    tails = site.store.tails(AttemptKey(job=KEY, attempt=0))
    assert [tail.file for tail in tails] == [str(site.log)]
    assert tails[0].text.splitlines()[-1] == ECC.strip()
