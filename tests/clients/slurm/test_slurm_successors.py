from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.clients.slurm.successors import Successors, waits_for
from relight.model.instants import Instant
from relight.model.jobs import JobFact


def job(scheduler_id: str, dependencies: str = "", *, name: str = "x", uid: int = 1) -> JobFact:
    array, _, task = scheduler_id.partition("_")
    return JobFact(
        cluster="main",
        scheduler_id=scheduler_id,
        array_job=array if task else "",
        array_task=task,
        name=name,
        uid=uid,
        dependencies=dependencies,
        submitted_at=Instant(int(array) * 1_000_000),
    )


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", ()),
        ("afterok:1(unfulfilled)", ("1",)),
        ("afterany:1(unfulfilled),afternotok:2(failed)", ("1", "2")),
        ("afterok:1:2:3", ("1", "2", "3")),
        ("afterok:1?afterok:2", ("1", "2")),
        ("after:5+10(unfulfilled)", ("5",)),
        ("after:5+10:6", ("5", "6")),
        ("aftercorr:8_*(unfulfilled)", ("8_*",)),
        ("afterany:8_1(unfulfilled)", ("8_1",)),
        ("singleton(unfulfilled)", ()),
        ("expand:7", ()),
        ("nonsense", ()),
    ],
)
def test_a_dependency_text_names_the_jobs_that_are_waited_for(
    text: str, ids: tuple[str, ...]
) -> None:
    assert waits_for(text) == ids


def test_an_edge_outlasts_its_text_and_its_successor_but_not_its_job() -> None:
    chains = Successors()
    chains.learn([job("1"), job("2", "afterany:1(unfulfilled)")])
    chains.learn([job("1"), job("2")])
    chains.learn([job("1")])
    assert chains.of(job("1")) == ("2",)
    chains.learn([job("2")])
    chains.learn([job("1")])
    assert chains.of(job("1")) == ()


def test_whoever_waits_for_an_array_waits_for_each_task() -> None:
    chains = Successors()
    chains.learn(
        [
            *(job("8_0"), job("8_1"), job("9", "afterany:8_*(unfulfilled)")),
            *(job("10", "afterok:8_1(unfulfilled)"), job("11", "afterok:8(unfulfilled)")),
        ]
    )
    assert set(chains.of(job("8_0"))) == {"9", "11"}
    assert set(chains.of(job("8_1"))) == {"9", "10", "11"}


def test_a_singleton_waits_for_earlier_jobs_of_its_user_and_name() -> None:
    chains = Successors()
    waiting = "singleton(unfulfilled)"
    chains.learn(
        [
            *(job("1", name="run"), job("2", waiting, name="run"), job("3", waiting, name="run")),
            *(job("4", name="run"), job("5", name="other"), job("6", name="run", uid=2)),
        ]
    )
    assert set(chains.of(job("1"))) == {"2", "3"}
    assert chains.of(job("2")) == ("3",)
    assert [chains.of(job(later)) for later in ("3", "4", "5", "6")] == [()] * 4


@given(st.text(max_size=200))
def test_any_text_names_jobs_or_none(text: str) -> None:
    assert all(found[0].isdecimal() for found in waits_for(text))
