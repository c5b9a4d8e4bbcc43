from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import pytest

from relight import __version__
from relight.cli import app
from relight.cli.screens import plain
from relight.serve.ports import Daemon
from relight.store import Change, Store

Said = tuple[int, str, str]
Say = Callable[..., Said]
RELIGHT = [sys.executable, "-m", "relight.cli.app"]


class Told(Daemon, Protocol):
    """The daemon of the fixture, with what it was told."""

    told: list[object]


@pytest.fixture
def say(
    url: str, token: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Say:
    monkeypatch.setenv("RELIGHT_URL", url)
    monkeypatch.setenv("RELIGHT_TOKEN", token)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> Said:
        code = app.run(words)
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return run


def test_jobs_are_listed_open_ones_first_with_what_relight_says(say: Say) -> None:
    code, out, _ = say("jobs")
    assert code == 0
    lines = out.splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == [
        "job", "attempt", "state", "step", "what relight says",
    ]  # fmt: skip
    assert lines[3].split()[:4] == ["main:123", "1", "running", "40"]
    assert "Recovered: step 21" in lines[3]
    assert say("jobs", "--open", "--limit", "1")[1].count("main:") == 1
    assert say("jobs", "--user", "nobody")[1] == "no job matches\n"


@pytest.mark.parametrize(
    "words",
    [
        ("jobs",),
        ("job", "123"),
        ("why", "123"),
        ("incidents",),
        ("advice",),
        ("advice", "--all"),
        ("audit", "--job", "123"),
    ],
)
def test_every_listing_is_also_json_in_plain_ascii(say: Say, words: tuple[str, ...]) -> None:
    code, out, _ = say(*words, "--json")
    assert code == 0
    assert json.loads(out)
    assert out.isascii()


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("123", 0, "main:123 llama"),
        ("main:123", 0, "main:123 llama"),
        ("8_1", 0, "main:8_1"),
        ("east:124", 0, "east:124"),
        ("124", 2, "several clusters"),
        ("999", 4, "no watched job bears the id 999"),
        ("main:999", 4, "no job main:999"),
        ("a:b:c", 2, "does not name a job"),
    ],
)
def test_a_job_is_named_short_or_in_full(say: Say, text: str, code: int, word: str) -> None:
    got, out, err = say("job", text)
    assert got == code
    assert word in out + err


def test_why_tells_the_story_in_its_order(say: Say) -> None:
    code, out, _ = say("why", "123")
    assert code == 0
    story = [
        "opted in under policy default, at most 2 restarts",
        "Attempt 0",
        " on node-[01-04]",
        "What happened: A GPU of node-03 has an uncorrectable memory error",
        "confidence 92%",
        "Suspect node-03 (100%): rank 5 ran there and failed first",
        "Traceback",
        "» [rank5]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "Set aside nccl-watchdog-timeout: a timeout shows that another rank was gone",
        "restart excluding node. Restart without node-03, whose GPU failed first.",
        "Steps lost: 5.",
        "order start without node-03, done",
        "The job runs again without node-03.",
        "Attempt 1 completed step 21 after resuming from step 20.",
        "Time: fault at",
        "Recovered: step 21 was completed 55 s after the failure.",
        "\nAttempt 1\n",
        "resumed from the checkpoint of step 20",
    ]
    places = [out.find(sentence) for sentence in story]
    assert -1 not in places, story[places.index(-1)]
    assert places == sorted(places)


def test_a_job_that_is_opted_in_with_errors_or_not_at_all_says_so(say: Say) -> None:
    assert "opted in, but with errors, so it is left alone" in say("why", "8_1")[1]
    assert "It is not opted in" in say("why", "east:77")[1]


def test_incidents_advice_and_audit_are_tables(say: Say) -> None:
    assert "The program raised KeyError." in say("incidents")[1]
    advice = say("advice")[1]
    assert "main:124-0" in advice
    assert "main:123-0" not in advice
    assert "main:123-0" in say("advice", "--all")[1]
    audit = say("audit", "--job", "main:123", "--topic", "order")[1].splitlines()
    assert len(audit) == 2
    assert audit[1].startswith("2026-03-01T10:01:11")
    newest = say("audit", "--limit", "2", "--cluster", "main")[1]
    assert newest.index("same error came again") < newest.index("seen.")


@pytest.mark.parametrize("attempt", ["main:124-0", "main:124"])
@pytest.mark.parametrize("word", ["approve", "reject"])
def test_a_person_says_yes_or_no(say: Say, daemon: Told, attempt: str, word: str) -> None:
    code, out, _ = say(word, attempt, "--why", "I looked", "--who", "ada")
    assert code == 0
    assert "Stop: the same error came again" in out
    assert daemon.told == [("main:124-0", 2, word, "ada (claimed)", "I looked")]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("approve", "123", "--why", "x"), 4, "no advice on main:123 is open"),
        (("approve", "123-0", "--why", "x"), 1, "does not wait for a person"),
        (("approve", "main:124-0"), 2, "--why"),
        (("jobs", "--colour"), 2, "--colour"),
        (("jobs", "--limit", "0"), 2, "limit"),
        (("audit", "--since", "yesterday"), 1, "ISO 8601"),
        (("fly",), 2, "fly"),
        (("jobs", "--url", "http://127.0.0.1:1"), 5, "relight serve"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_an_exit_code(
    say: Say, words: tuple[str, ...], code: int, sentence: str
) -> None:
    got, out, err = say(*words)
    assert got == code
    assert sentence in err
    assert out == ""
    assert "Traceback" not in err


HOSTILE = ("\x1b", "\x9b", "\x07", "\r", "\u202e")


@pytest.mark.parametrize("words", [("jobs",), ("job", "8_1"), ("why", "8_1"), ("audit",)])
@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_names_and_lines_cannot_act_on_the_terminal(
    say: Say, words: tuple[str, ...], extra: tuple[str, ...]
) -> None:
    code, out, _ = say(*words, *extra)
    assert code == 0
    assert not [mark for mark in HOSTILE if mark in out]
    if words == ("job", "8_1") and not extra:
        assert r"[red]evil[/red]\x1b]0;title\x07" in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 東京", "größe 東京"),
        ("a\tb\nc", r"a\tb\nc"),
        ("\x1b[2J\x00\x7f\x85", r"\x1b[2J\x00\x7f\x85"),
        ("a\u202eb\u2028c\ufeff", r"a\u202eb\u2028c\ufeff"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("\udc80\U000e0001", r"\udc80\U000e0001"),
    ],
)
def test_everything_without_a_shape_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert plain(text) == shown


def _relight(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RELIGHT, *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, **environ},
    )


def test_the_real_program_lists_jobs_without_colour_into_a_pipe(url: str, token: str) -> None:
    done = _relight("jobs", RELIGHT_URL=url, RELIGHT_TOKEN=token)
    assert (done.returncode, done.stderr) == (0, "")
    assert "main:123" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_real_program_fits_the_width_of_a_terminal(url: str, token: str) -> None:
    ours, theirs = pty.openpty()
    asked = {"RELIGHT_URL": url, "RELIGHT_TOKEN": token}
    environ = {**os.environ, "COLUMNS": "70", "TERM": "xterm", **asked}
    done = subprocess.run(
        [*RELIGHT, "jobs"], stdout=theirs, stderr=theirs, timeout=30, check=False, env=environ
    )
    os.close(theirs)
    text = os.read(ours, 65_536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "\x1b[1m" in text
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line.rstrip("\r")) for line in bare.split("\n")) <= 70
    assert "main:8_1" in bare


def test_the_real_program_without_a_backend_ends_with_5_and_a_sentence() -> None:
    done = _relight("jobs", RELIGHT_URL="http://127.0.0.1:1")
    assert done.returncode == 5
    assert done.stderr.startswith("relight: no backend answers at http://127.0.0.1:1")
    assert len(done.stderr.splitlines()) == 1


def test_help_starts_fast_because_commands_are_imported_late() -> None:
    took = []
    for _ in range(3):
        started = time.perf_counter()
        done = _relight("--help")
        took.append(time.perf_counter() - started)
        assert done.returncode == 0
    probe = "import sys, relight.cli.app as a; a.run(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = done.stdout.split()
    for heavy in ("sqlalchemy", "litestar", "uvicorn", "urllib3", "alembic"):
        assert heavy not in loaded
    assert min(took) < 1.0, "0.17 s on an idle machine; the bound leaves room for a busy one"


def test_help_lists_every_command_and_the_exit_codes(say: Say) -> None:
    code, out, _ = say("--help")
    assert code == 0
    for name, line in app.COMMANDS.items():
        assert re.search(rf"\b{name}\b.*{re.escape(line)}", out)
    assert "5 no backend answers" in out
    assert say("--version") == (0, f"relight {__version__}\n", "")
    assert say()[0] == 2


@pytest.mark.parametrize(
    "name", [name for name in app.COMMANDS if find_spec(f"relight.cli.{name}") is not None]
)
def test_every_command_explains_itself(say: Say, name: str) -> None:
    code, out, _ = say(name, "--help")
    assert code == 0
    assert f"relight {name}" in out


def test_an_error_of_somebody_else_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app, "build", fail)
    with pytest.raises(ZeroDivisionError):
        app.run(["jobs"])


def test_the_database_is_made_and_counted(say: Say, tmp_path: Path) -> None:
    path = str(tmp_path / "new.db")
    assert say("db", "show", "--store", path)[0] == 1
    assert say("db", "upgrade", "--store", path)[0] == 0
    code, out, _ = say("db", "show", "--store", path, "--json")
    assert code == 0
    assert json.loads(out)["cases"] == 0


def test_replay_of_an_empty_journal_is_all_as_stored(say: Say, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    Store.open(str(path)).close()
    code, out, _ = say("replay", "--store", str(path))
    assert code == 0
    assert "0 records" in out
    assert "all as stored" in out


def test_replay_says_what_differs_and_ends_with_1(say: Say, tmp_path: Path, store: Store) -> None:
    path = tmp_path / "told.db"
    (page, *_) = [store.advice()]
    with Store.open(str(path)) as told:
        told.commit(Change(advice=page.items))
    code, out, _ = say("replay", "--store", str(path))
    assert code == 1
    assert "3 differ" in out
    assert "advice on main:123-0, generation 1" in out
    assert "now none" in out


def test_replay_without_a_database_says_which_one_is_missing(say: Say, tmp_path: Path) -> None:
    code, _, err = say("replay", "--store", str(tmp_path / "none.db"))
    assert code == 1
    assert "there is no database at" in err
