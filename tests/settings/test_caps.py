from __future__ import annotations

import pytest

from relight.model.advice import Action, Mode
from relight.policy.policies import OptIn, Policy
from relight.settings.records import Cluster, Settings

TWO = Settings(
    clusters=(Cluster(name="main"), Cluster(name="lab", mode=Mode.APPROVE)),
    policies=(Policy(name="default"), Policy(name="bold", mode=Mode.ACT)),
    opt_ins=(OptIn(cluster="main", policy="bold"), OptIn(cluster="lab", policy="bold")),
)


def modes(settings: Settings, cluster: str | None) -> list[Mode]:
    return [policy.mode for policy in settings.book(cluster).policies]


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("main", [Mode.MONITOR, Mode.ACT]),
        ("lab", [Mode.MONITOR, Mode.APPROVE]),
        ("unheard-of", [Mode.MONITOR, Mode.MONITOR]),
        (None, [Mode.MONITOR, Mode.APPROVE]),
    ],
)
def test_no_policy_goes_further_than_the_clusters_mode(
    cluster: str | None, expected: list[Mode]
) -> None:
    assert modes(TWO, cluster) == expected


def test_a_clusters_book_holds_its_own_opt_ins_only() -> None:
    assert TWO.book("lab").opt_ins == (OptIn(cluster="lab", policy="bold"),)
    assert len(TWO.book().opt_ins) == 2


@pytest.mark.parametrize(
    ("cap", "policy", "expected"),
    [
        (Mode.ACT, Policy(name="default"), False),
        (Mode.ACT, Policy(name="default", mode=Mode.ACT), True),
        (Mode.ACT, Policy(name="default", mode=Mode.APPROVE), True),
        (Mode.ACT, Policy(name="default", mode=Mode.ACT, may=()), False),
        (Mode.MONITOR, Policy(name="default", mode=Mode.ACT, may=tuple(Action)), False),
    ],
)
def test_a_cluster_can_be_changed_only_where_some_policy_may(
    cap: Mode, policy: Policy, *, expected: bool
) -> None:
    settings = Settings(clusters=(Cluster(name="main", mode=cap),), policies=(policy,))
    assert settings.can_change("main") is expected
    assert not settings.can_change("unheard-of")
