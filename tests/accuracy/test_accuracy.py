"""The measuring of accuracy: what counts as right, and what is printed of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from accuracy.__main__ import main
from accuracy.answers import FATAL, Answer, always_restart, grep
from accuracy.labels import Label, LabelError, cases_of, corpora, timelines_of
from accuracy.scoring import Score, score, shares


def label(**fields: object) -> Label:
    base: dict[str, object] = {
        "id": "c1",
        "kind": "crash",
        "family": "device_oom",
        "domain": "user",
        "retry": "stop",
        "acceptable_retry": ("stop", "restart"),
        "ranks": (3,),
        "ranks_optional": (4,),
        "nodes": ("n1",),
        "root_line": 5,
        "root_lines_ok": (5, 7),
        "step_last": 9,
    }
    return Label(**{**base, **fields})  # type: ignore[arg-type]  # a table of fields


RIGHT = Answer(
    kind="crash",
    domain="user",
    family="device_oom",
    decision="stop",
    root_line=5,
    ranks=(3,),
    nodes=("n1",),
    last_step=9,
)


def scored(changes: dict[str, object], **fields: object) -> Score:
    answer = {key: getattr(RIGHT, key) for key in RIGHT.__struct_fields__}
    return score(Answer(**{**answer, **changes}), label(**fields))


def test_the_right_answer_is_right_in_everything() -> None:
    assert scored({}).wrong == ()
    assert set(scored({}).right) == {
        "kind", "ending", "domain", "family", "root line", "rank", "node", "decision", "last step"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fields", "wrong"),
    [
        ({"kind": "hang"}, {}, ("kind",)),
        ({"kind": "hang"}, {"acceptable_service_kind": ("hang",)}, ()),
        ({"ending": "finished"}, {}, ("ending",)),
        ({"domain": "storage"}, {}, ("domain",)),
        ({"domain": "storage"}, {"acceptable_domain": ("storage",)}, ()),
        ({"family": "segfault"}, {}, ("family",)),
        ({"root_line": 7}, {}, ()),
        ({"root_line": 6}, {}, ("root line",)),
        ({"root_line": None}, {}, ("root line",)),
        ({"root_line": 6}, {"root_line": None, "root_lines_ok": ()}, ()),
        ({"ranks": (3, 4)}, {}, ()),
        ({"ranks": (4,)}, {}, ("rank",)),
        ({"ranks": (3, 5)}, {}, ("rank",)),
        ({"ranks": (4,)}, {"ranks": ()}, ()),
        ({"nodes": ("n1", "n2")}, {}, ("node",)),
        ({"nodes": ()}, {}, ("node",)),
        ({"decision": "restart"}, {}, ()),
        ({"decision": "hold"}, {}, ()),
        ({"decision": "restart_excluding_node"}, {}, ("decision",)),
        ({"last_step": 8}, {}, ("last step",)),
        ({"last_step": 8}, {"step_last_ok": (8, None)}, ()),
        ({"last_step": 8}, {"has_step": False}, ()),
    ],
)
def test_an_answer_is_right_when_the_label_accepts_it(
    changes: dict[str, object], fields: dict[str, object], wrong: tuple[str, ...]
) -> None:
    assert scored(changes, **fields).wrong == wrong


def test_what_may_not_be_named_is_a_stray() -> None:
    assert scored({"ranks": (3, 4, 5), "nodes": ("n1", "n9")}).strays == ("rank 5", "node n9")


@pytest.mark.parametrize(
    ("kind", "decision", "accepted", "stop", "alarm"),
    [
        ("crash", "stop", ("restart",), True, False),
        ("crash", "stop", ("stop",), False, False),
        ("none", "stop", ("none",), True, True),
        ("none", "restart", ("none",), False, True),
        ("finished", "none", ("none",), False, False),
        ("cancelled", "restart", ("none",), False, False),
    ],
)
def test_a_stop_nobody_accepts_and_an_alarm_about_nothing_are_counted_apart(
    kind: str, decision: str, accepted: tuple[str, ...], *, stop: bool, alarm: bool
) -> None:
    said: dict[str, object] = {"decision": decision, "kind": "crash" if kind == "crash" else "none"}
    told = scored(said, kind=kind, retry=accepted[0], acceptable_retry=accepted)
    assert (told.false_stop, told.false_alarm) == (stop, alarm)


def test_shares_count_only_what_was_asked_for() -> None:
    found = shares([scored({}), scored({"nodes": ()}), scored({}, nodes=())])
    assert (found["node"].right, found["node"].asked) == (1, 2)
    assert found["node"].percent == 50
    assert shares([])["node"].percent is None


def corpus(folder: Path) -> Path:
    (folder / "cases").mkdir(parents=True)
    logs = {
        "gone": "step 1 loss 2.0\nCUDA error: uncorrectable ECC error encountered\n",
        "well": "\n".join(f"step {number} loss 2.0" for number in range(9)),
    }
    labels = [
        {"id": "gone", "kind": "crash", "family": "gpu_ecc_uncorrectable", "domain": "hardware",
         "retry": "restart_excluding_node", "root_line": 2, "step_last": 1},
        {"id": "well", "kind": "none", "family": "healthy_running", "domain": "none",
         "retry": "none", "step_last": 8},
    ]  # fmt: skip
    for name, text in logs.items():
        (folder / "cases" / f"{name}.log").write_text(text)
    (folder / "labels.jsonl").write_text("\n".join(json.dumps(one) for one in labels) + "\n\n")
    return folder


def test_a_corpus_is_measured_and_its_misses_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = corpus(tmp_path / "mine")
    assert main(["--corpus", str(folder)]) == 0
    page = capsys.readouterr().out
    assert "| mine | relight | 2 |" in page
    assert "| mine | grep | 2 |" in page
    assert "| mine | always restart | 2 |" in page
    assert main(["--corpus", str(folder), "--floor", "domain=100.1"]) == 1
    assert "domain: 100.0 % is below the floor of 100.1 %" in capsys.readouterr().err
    assert main(["--corpus", str(folder), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert {one["case"]["label"]["id"] for one in measured["measured"][0]["outcomes"]} == {
        "gone",
        "well",
    }
    assert main(["--corpus", str(folder), "--case", "gone"]) == 0
    assert '"domain": "hardware"' in capsys.readouterr().out
    assert main(["--corpus", str(folder), "--case", "nobody"]) == 2


def test_a_corpus_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "mine")
    (folder / "cases" / "gone.log").unlink()
    with pytest.raises(LabelError, match=r"gone\.log is missing"):
        cases_of(folder)
    (folder / "labels.jsonl").write_text('{"id": 3}\n')
    with pytest.raises(LabelError, match=r"labels\.jsonl, line 1"):
        cases_of(folder)
    with pytest.raises(LabelError, match="cannot be read"):
        cases_of(tmp_path / "nowhere")
    assert main(["--corpus", str(folder)]) == 2


def test_healthy_runs_are_cases_in_which_any_alarm_is_false(tmp_path: Path) -> None:
    (tmp_path / "timelines").mkdir()
    index = [
        {"id": "a", "kind": "healthy", "last_step": 9, "step_unit": "iteration (0-based)"},
        {"id": "b", "kind": "crash", "last_step": 9, "step_unit": "step"},
        {"id": "c", "kind": "healthy", "last_step": 9, "step_unit": "tokens", "complete": False},
    ]
    for one in index:
        (tmp_path / "timelines" / f"{one['id']}.log").write_text("step 9\n")
    (tmp_path / "timelines" / "index.jsonl").write_text("\n".join(map(json.dumps, index)))
    first, second = (case.label for case in timelines_of(tmp_path))
    assert (first.kind, first.has_step, first.steps) == ("finished", True, frozenset({8, 9, 10}))
    assert (second.kind, second.has_step) == ("none", False)


def test_corpora_are_those_named_else_the_projects_own_and_one_beside_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    own = corpus(root / "corpus" / "gpu")
    assert corpora([], root) == [own]
    beside = corpus(tmp_path / "shared" / "corpus")
    assert corpora([], root) == [own, beside]
    assert corpora([tmp_path], root) == [tmp_path]


def test_the_baselines_are_a_grep_for_thirty_strings_and_a_restart(tmp_path: Path) -> None:
    assert len(FATAL) == 30
    log = tmp_path / "log"
    log.write_text("all well\nSegmentation fault\nNo space left on device\n")
    assert grep(log) == Answer(kind="crash", decision="restart", root_line=2)
    log.write_text("all well\n")
    assert grep(log) == Answer(kind="none", decision="none")
    assert always_restart(log).decision == "restart"
