from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.advice import Mode
from relight.model.jobs import JobFact
from relight.policy.opt_in import MOST_COMMENT, Choice, choose, covers
from relight.policy.policies import OptIn, Policy, PolicyBook

BOOK = PolicyBook(
    policies=(
        Policy(name="default", max_restarts=3),
        Policy(name="patient", max_restarts=10, mode=Mode.ACT),
    )
)
TRAIN = OptIn(cluster="main", partition="train", policy="patient")
OPERATED = msgspec.structs.replace(BOOK, opt_ins=(TRAIN,))


def job(comment: str = "", *, partition: str = "train", name: str = "llm") -> JobFact:
    return JobFact(
        cluster="main",
        scheduler_id="7",
        partition=partition,
        name=name,
        user="ann",
        account="lab",
        comment=comment,
    )


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ('{"relight": {}}', Choice(opted_in=True, policy="default")),
        ('{"relight": true}', Choice(opted_in=True, policy="default")),
        (
            '{"relight": {"policy": "patient", "max_restarts": 5}}',
            Choice(opted_in=True, policy="patient", max_restarts=5),
        ),
        (
            '{"relight": {"max_restarts": 0}}',
            Choice(opted_in=True, policy="default", max_restarts=0),
        ),
        (
            '{"relight": {"logs": "/l/%j", "checkpoint": "/c", "flight_recorder": "/f"}}',
            Choice(
                opted_in=True, policy="default", logs="/l/%j", checkpoint="/c", flight_recorder="/f"
            ),
        ),
        (
            '{"APS": {"auto_resume_mode": "requeue", "max_requeue_times": 2}}',
            Choice(opted_in=True, policy="default", max_restarts=2),
        ),
        ('{"APS": {"auto_resume_mode": "requeue"}}', Choice(opted_in=True, policy="default")),
        ('{"wandb": {"a": 1, "a": 2}, "relight": {}}', Choice(opted_in=True, policy="default")),
        ('{"relight": false}', Choice(notes=("the job's comment opts it out",))),
        ('{"relight": {"opt_out": true}}', Choice(notes=("the job's comment opts it out",))),
        ('{"relight": {"opt_out": false}}', Choice(opted_in=True, policy="default")),
    ],
)
def test_a_comment_that_can_be_read_says_how_its_job_is_watched(
    comment: str, expected: Choice
) -> None:
    assert choose(job(comment), BOOK) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "(null)",
        "second try with a smaller learning rate",
        "gaps in the data",
        "relighting",
        "my-relight-demo",
        "[1, 2]",
        "17",
        '{"note": "relight me"}',
        "{broken json",
    ],
)
def test_free_text_is_no_error_and_opts_nothing_in(comment: str) -> None:
    assert choose(job(comment), BOOK) == Choice()
    assert choose(job(comment), OPERATED) == Choice(opted_in=True, policy="patient")


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("{relight: {policy: default}}", "is not JSON: Expecting property name enclosed in"),
        ("{relight: {policy: default}}", "at character 2;"),
        ('{"relight": {}', "at character 15"),
        ("please use APS", "is not JSON"),
        ('"relight"', "not a JSON object"),
        ('{"Relight": {}}', 'did you mean "relight"?'),
        ('{"aps": {}}', 'did you mean "APS"?'),
        ('{"relight": "default"}', 'relight is the text "default"'),
        ('{"relight": null}', "relight is null"),
        ('{"relight": {"max_restart": 3}}', 'relight.max_restart is not a key: did you mean "max'),
        ('{"relight": {"zzz": 3}}', "relight.zzz is not a key: known are policy, max_restarts"),
        ('{"relight": {"max_restarts": true}}', "relight.max_restarts is true: write a whole"),
        ('{"relight": {"max_restarts": "3"}}', 'relight.max_restarts is the text "3"'),
        ('{"relight": {"max_restarts": -1}}', "relight.max_restarts is -1"),
        ('{"relight": {"max_restarts": 3.0}}', "relight.max_restarts is 3.0"),
        ('{"relight": {"max_restarts": NaN}}', "relight.max_restarts is nan"),
        ('{"relight": {"max_restarts": 1e999}}', "relight.max_restarts is inf"),
        ('{"relight": {"max_restarts": null}}', "relight.max_restarts is null"),
        ('{"relight": {"max_restarts": [3]}}', "relight.max_restarts is a list"),
        ('{"relight": {"max_restarts": 1, "max_restarts": 2}}', "max_restarts is written more tha"),
        ('{"relight": {}, "relight": false}', "relight is written more than once"),
        ('{"relight": {"policy": "defualt"}}', 'relight.policy names the policy "defualt"'),
        ('{"relight": {"policy": "defualt"}}', 'did you mean "default"?'),
        ('{"relight": {"policy": 3}}', "relight.policy is 3"),
        ('{"relight": {"logs": "/a\\u0000b"}}', "relight.logs is the text"),
        ('{"relight": {"logs": "\\ud800"}}', "relight.logs is the text"),
        ('{"relight": {"opt_out": "yes"}}', "relight.opt_out is the text"),
        (
            '{"APS": {"auto_resume_mode": "singleton_dependency"}}',
            "APS.auto_resume_mode is the tex",
        ),
        ('{"APS": {"max_requeue_times": 3}}', "APS.auto_resume_mode is missing"),
        ('{"APS": {"auto_resume_mode": "requeue", "max_requeue_times": "3"}}', "APS.max_requeue_t"),
        ('{"APS": {"auto_resume_mode": "requeue", "max_requeue": 3}}', "APS.max_requeue is not a"),
        ('{"APS": 1}', "APS is 1"),
        ('{"relight": ' + "[" * 60_000, "is nested too deeply"),
        ('{"relight": {"max_restarts": ' + "9" * 5_000 + "}}", "number that is too long"),
        ("x" * (MOST_COMMENT + 1), f"has {MOST_COMMENT + 1} characters"),
    ],
)
def test_a_comment_that_cannot_be_read_fully_is_listed_with_what_is_wrong(
    comment: str, said: str
) -> None:
    choice = choose(job(comment), OPERATED)
    assert choice.opted_in
    assert said in "\n".join(choice.errors)
    assert choice.max_restarts is None


def test_every_error_of_a_comment_is_said_at_once() -> None:
    choice = choose(job('{"relight": {"polcy": 1, "max_restarts": "3", "logs": 4}}'), BOOK)
    assert len(choice.errors) == 3


def test_a_thousand_strange_keys_make_a_bounded_list_of_errors() -> None:
    choice = choose(job(json.dumps({"relight": {f"k{n}": n for n in range(1_000)}})), BOOK)
    assert len(choice.errors) == 11
    assert choice.errors[-1] == "and 990 more errors"


@pytest.mark.parametrize("asked", [4, 10**18, 10**200])
def test_a_comment_cannot_ask_for_more_than_its_policy_allows(asked: int) -> None:
    choice = choose(job(json.dumps({"relight": {"max_restarts": asked}})), BOOK)
    assert choice.max_restarts == 3
    assert "policy default allows 3" in choice.notes[0]
    assert not choice.errors


def test_the_comment_can_pick_another_policy_than_the_operator_did() -> None:
    assert choose(job('{"relight": {"policy": "default"}}'), OPERATED).policy == "default"
    assert choose(job('{"relight": {}}'), OPERATED).policy == "patient"


def test_a_comment_with_both_spellings_is_read_in_relights_own() -> None:
    choice = choose(job('{"relight": {"max_restarts": 1}, "APS": {"max_requeue_times": 9}}'), BOOK)
    assert choice.max_restarts == 1
    assert "APS is not read" in choice.notes[0]


def test_a_misspelt_relight_is_pointed_out_without_opting_in() -> None:
    choice = choose(job('{"relihgt": {"policy": "default"}}'), BOOK)
    assert not choice.opted_in
    assert 'did you mean "relight"?' in choice.notes[0]


def test_an_opt_in_whose_policy_is_gone_leaves_the_job_alone() -> None:
    book = PolicyBook(opt_ins=(msgspec.structs.replace(TRAIN, policy="gone"),))
    assert "the operator's opt-in names the policy" in choose(job(), book).errors[0]


def test_the_first_opt_in_that_covers_the_job_wins() -> None:
    book = msgspec.structs.replace(
        BOOK,
        opt_ins=(
            OptIn(cluster="main", name="eval-*", policy="default"),
            TRAIN,
            OptIn(cluster="main", policy="default"),
        ),
    )
    assert choose(job(), book).policy == "patient"


@pytest.mark.parametrize(
    ("opt_in", "is_covered"),
    [
        (OptIn(cluster="main", policy="p"), True),
        (OptIn(cluster="other", policy="p"), False),
        (OptIn(cluster="main", policy="p", partition="tr*"), True),
        (OptIn(cluster="main", policy="p", partition="TRAIN"), False),
        (OptIn(cluster="main", policy="p", user="ann", account="lab", name="l?m"), True),
        (OptIn(cluster="main", policy="p", user="ann", account="other"), False),
        (OptIn(cluster="main", policy="p", name="[kl]lm"), True),
        (OptIn(cluster="main", policy="p", name="lm"), False),
    ],
)
def test_all_that_an_opt_in_gives_must_match(opt_in: OptIn, *, is_covered: bool) -> None:
    assert covers(opt_in, job()) is is_covered


def test_a_job_that_waits_for_several_partitions_is_covered_when_all_match() -> None:
    assert not covers(TRAIN, job(partition="train,debug"))
    assert covers(msgspec.structs.replace(TRAIN, partition="tr*"), job(partition="train,try"))


def test_a_hostile_name_is_matched_in_linear_time() -> None:
    greedy = OptIn(cluster="main", policy="p", name="*a*a*a*a*a*a*a*a*b")
    began = time.perf_counter()
    assert not covers(greedy, job(name="a" * 100_000))
    assert time.perf_counter() - began < 2


SPOKEN = st.sampled_from(["relight", "APS", "policy", "max_restarts", "max_requeue_times"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(["default", "patient", "requeue"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(SPOKEN | st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(["default", "patient"]) | VALUES,
        "max_restarts": st.integers(0) | VALUES,
        "logs": st.text() | VALUES,
    },
)
COMMENTS = (
    st.text(st.characters(exclude_categories=()))
    | VALUES.map(json.dumps)
    | PARTS.map(lambda part: json.dumps({"relight": part}))
    | st.builds(
        lambda part, cut: json.dumps({"relight": part})[:cut], PARTS, st.integers(0, max_value=80)
    )
)


@given(COMMENTS, st.sampled_from([BOOK, OPERATED]))
def test_any_text_as_a_comment_never_raises_and_never_widens(
    comment: str, book: PolicyBook
) -> None:
    choice = choose(job(comment), book)
    policy = book.policy(choice.policy)
    if choice.opted_in and not choice.errors:
        assert policy is not None
        assert choice.max_restarts is None or 0 <= choice.max_restarts <= policy.max_restarts
    else:
        assert choice.max_restarts is None
    assert msgspec.json.decode(msgspec.json.encode(choice), type=Choice) == choice


@given(st.text(), st.text())
def test_any_pattern_can_be_held_against_any_name(pattern: str, name: str) -> None:
    covers(OptIn(cluster="main", policy="p", name=pattern), job(name=name))


def test_a_comment_cannot_pick_a_policy_that_goes_further_than_the_operators() -> None:
    book = PolicyBook(
        policies=(Policy(name="watch"), Policy(name="bold", mode=Mode.ACT)),
        opt_ins=(OptIn(cluster="main", policy="watch"),),
    )
    fact = JobFact(cluster="main", scheduler_id="1", comment='{"relight": {"policy": "bold"}}')
    choice = choose(fact, book)
    assert choice.policy == "watch"
    assert any("goes further" in note for note in choice.notes)
