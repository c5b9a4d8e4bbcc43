from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relight.model.advice import Disposition, ReconciliationStatus, StatusReason
from relight.model.audit import Topic
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey, JobState
from relight.model.stimuli import Tick
from relight.policy.policies import Policy, PolicyBook
from relight.store import (
    AuditFilters,
    CaseFilters,
    Change,
    JournalRecord,
    Store,
    StoreRefused,
    Tail,
)

ChangeOf = Callable[..., Change]
JOB = JobKey(cluster="main", scheduler_id="1")
ATTEMPT = AttemptKey(job=JOB, attempt=0)


def test_what_was_committed_is_read_back_unchanged(store: Store, change_of: ChangeOf) -> None:
    change = change_of(1)
    store.commit(change)
    assert store.case(JOB) == change.case
    assert store.generations(ATTEMPT) == change.advice
    assert store.audit(AuditFilters()).items == change.audit
    assert store.perception(ATTEMPT) == change.perceptions[0]
    assert store.tails(ATTEMPT) == change.tails
    assert store.policy_book(PolicyBook().revision) == PolicyBook()
    (record,) = store.journal()
    assert msgspec.structs.replace(record, seq=0) == change.journal[0]


def test_what_was_never_written_is_none_or_empty(store: Store) -> None:
    assert store.case(JOB) is None
    assert store.newest_case("main", "1") is None
    assert store.advice_of(ATTEMPT) is None
    assert store.perception(ATTEMPT) is None
    assert store.policy_book("none") is None
    assert store.tails(ATTEMPT) == ()
    assert list(store.journal()) == []
    store.commit(Change())
    assert set(store.counts().values()) == {0}


def test_the_newest_bearer_of_an_id_is_the_highest_reuse(store: Store, change_of: ChangeOf) -> None:
    for reuse in (2, 0, 1):
        store.commit(change_of(1, reuse=reuse))
    newest = store.newest_case("main", "1")
    assert newest is not None
    assert newest.key.reuse == 2


def test_a_case_is_replaced_and_a_policy_book_is_written_once(
    store: Store, change_of: ChangeOf
) -> None:
    other = PolicyBook(policies=(Policy(name="other"),))
    store.commit(change_of(1))
    store.commit(change_of(1, user="bob"))
    store.commit(Change(books=(PolicyBook(), other, other)))
    counts = store.counts()
    assert (counts["cases"], counts["policy_books"], counts["journal"]) == (1, 2, 2)
    assert store.policy_books()[other.revision] == other


def test_every_generation_of_advice_stays_and_only_the_newest_is_active(
    store: Store, change_of: ChangeOf
) -> None:
    for generation in (1, 2, 3):
        store.commit(change_of(1, generation=generation))
    store.commit(change_of(1, generation=2))
    assert [advice.generation for advice in store.generations(ATTEMPT)] == [1, 2, 3]
    assert [advice.generation for advice in store.advice(active_only=True).items] == [3]
    (newest,) = change_of(1, generation=3).advice
    done = ReconciliationStatus(
        disposition=Disposition.CONVERGED, reason=StatusReason.DESIRED_STATE_OBSERVED
    )
    store.commit(Change(advice=(msgspec.structs.replace(newest, status=done),)))
    assert store.advice(active_only=True).items == ()
    found = store.advice_of(ATTEMPT)
    assert found is not None
    assert found.status == done


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (CaseFilters(), ["3", "1", "4", "2"]),
        (CaseFilters(open=True), ["3", "1"]),
        (CaseFilters(open=False), ["4", "2"]),
        (CaseFilters(user="bob"), ["4"]),
        (CaseFilters(state=JobState.COMPLETED), ["4", "2"]),
        (CaseFilters(cluster="elsewhere"), []),
        (CaseFilters(scheduler_id="3", partition="train"), ["3"]),
        (CaseFilters(with_incident=True), []),
    ],
)
def test_cases_are_listed_open_ones_first_then_newest_and_narrowed(
    store: Store, change_of: ChangeOf, filters: CaseFilters, expected: list[str]
) -> None:
    for number in (1, 2, 3, 4):
        ended = JobState.COMPLETED if number % 2 == 0 else JobState.RUNNING
        user = "bob" if number == 4 else "ada"
        store.commit(change_of(number, state=ended, user=user))
    assert [case.key.scheduler_id for case in store.cases(filters).items] == expected
    assert [case.key.scheduler_id for case in store.open_cases("main")] == ["1", "3"]


def test_pages_together_hold_every_row_once(store: Store, change_of: ChangeOf) -> None:
    for number in range(1, 12):
        ended = JobState.COMPLETED if number % 3 == 0 else JobState.RUNNING
        store.commit(change_of(number, state=ended))
    cases, advice, audit = [], [], []
    cursor = None
    while cursor != "":
        found = store.cases(CaseFilters(), 2, cursor or "")
        cases += [case.key.scheduler_id for case in found.items]
        cursor = found.next
    cursor = None
    while cursor != "":
        given_advice = store.advice(limit=3, cursor=cursor or "")
        advice += [one.attempt.job.scheduler_id for one in given_advice.items]
        cursor = given_advice.next
    cursor = None
    while cursor != "":
        entries = store.audit(AuditFilters(), 4, cursor or "", newest_first=True)
        audit += [entry.job.scheduler_id for entry in entries.items]
        cursor = entries.next
    newest_first = [str(number) for number in range(11, 0, -1)]
    assert sorted(cases, key=int) == newest_first[::-1]
    assert advice == audit == newest_first


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (AuditFilters(), ["1", "2", "3"]),
        (AuditFilters(job=JOB), ["1"]),
        (AuditFilters(since=Instant(2_000_000)), ["2", "3"]),
        (AuditFilters(until=Instant(2_000_000)), ["1", "2"]),
        (AuditFilters(topic=Topic.ORDER), []),
        (AuditFilters(attempt=1), []),
        (AuditFilters(cluster="main", attempt=0, topic=Topic.ADVICE), ["1", "2", "3"]),
    ],
)
def test_the_audit_is_narrowed_by_job_attempt_topic_and_time(
    store: Store, change_of: ChangeOf, filters: AuditFilters, expected: list[str]
) -> None:
    for number in (1, 2, 3):
        store.commit(change_of(number))
    assert [entry.job.scheduler_id for entry in store.audit(filters).items] == expected


def test_the_journal_is_read_in_order_of_all_of_a_cluster_or_of_a_job(
    store: Store, change_of: ChangeOf
) -> None:
    one = change_of(1).journal
    store.commit(Change(journal=one * 1_201))
    other = JobKey(cluster="other", scheduler_id="2")
    tick = Tick(job=other, seen_at=Instant(1))
    store.commit(Change(journal=(JournalRecord(stimulus=tick),)))
    sequence = [record.seq for record in store.journal()]
    assert sequence == list(range(1, 1_203))
    assert [record.seq for record in store.journal(cluster="other")] == [1_202]
    assert [record.seq for record in store.journal(job=JOB, after_seq=1_200)] == [1_201]


@pytest.mark.parametrize("cursor", ["x", "!!", "MQ", "MS4y.", "é", "OTk5OTk5OTk5OTk5OTk5OTk5OS4x"])
def test_a_foreign_page_token_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(StoreRefused, match="not a page token"):
        store.cases(CaseFilters(), 10, cursor)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(), name=st.text(max_size=400), word=st.text(max_size=70))
def test_any_text_is_kept_or_refused_and_never_breaks_the_store(
    store: Store, change_of: ChangeOf, text: str, name: str, word: str
) -> None:
    job = JobKey(cluster="main", scheduler_id=word)
    change = change_of(1, user=name)
    tail = Tail(attempt=AttemptKey(job=job, attempt=0), file=name, text=text)
    assert change.case is not None
    case = msgspec.structs.replace(change.case, key=job)
    try:
        store.commit(Change(case=case, tails=(tail,)))
    except StoreRefused:
        return
    assert store.case(job) == case
    assert any(found == tail for found in store.tails(tail.attempt))
    assert case in store.cases(CaseFilters(user=name), 1_000).items


def test_text_that_is_not_utf_8_is_refused_and_nothing_of_the_change_is_written(
    store: Store, change_of: ChangeOf
) -> None:
    with pytest.raises(StoreRefused, match="UTF-8"):
        store.commit(change_of(1, user="\udc80"))
    assert set(store.counts().values()) == {0}


def test_readers_go_on_while_many_threads_write(store: Store, change_of: ChangeOf) -> None:
    failures: list[BaseException] = []

    def write(first: int) -> None:
        try:
            for number in range(first, first + 10):
                store.commit(change_of(number))
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    writers = [threading.Thread(target=write, args=(10 * index,)) for index in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        counts = store.counts()
        assert counts["journal"] == counts["audit"] == counts["cases"]
    for writer in writers:
        writer.join()
    assert failures == []
    assert store.counts()["journal"] == 40
