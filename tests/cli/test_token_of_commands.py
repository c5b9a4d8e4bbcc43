from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from relight.cli import app
from relight.cli.tokens import NoToken, token_for

HERE = "http://127.0.0.1:8474"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write settings that name a state folder, where they are found; return the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relight.toml").write_text(
        f'[cluster.main]\nkind = "slurm"\n[store]\npath = "{tmp_path}/state"\n'
    )
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


def test_the_variable_wins_over_the_file_and_the_file_over_the_settings(
    state: Path, tmp_path: Path
) -> None:
    (state / "token").write_text("of-the-settings\n")
    (tmp_path / "mine").write_text("of-the-file\n")
    environ = {"RELIGHT_TOKEN": "of-the-variable", "RELIGHT_TOKEN_FILE": str(tmp_path / "mine")}
    assert token_for(HERE, environ) == "of-the-variable"
    del environ["RELIGHT_TOKEN"]
    assert token_for(HERE, environ) == "of-the-file"
    assert token_for(HERE, {}) == "of-the-settings"
    elsewhere = tmp_path / "other.toml"
    elsewhere.write_text(f'[cluster.a]\nkind = "slurm"\n[store]\npath = "{tmp_path}/other"\n')
    assert token_for(HERE, {"RELIGHT_CONFIG": str(elsewhere)}) == ""


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [
        ("http://127.0.0.1:1", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://example.org:1", False),
        ("http://127.0.0.1.example.org", False),
        ("http://127.0.0.1@example.org", False),
        ("http://[", False),
        ("nonsense", False),
    ],
)
def test_the_token_of_this_machine_is_sent_to_no_other(
    state: Path, url: str, *, is_sent: bool
) -> None:
    (state / "token").write_text("secret")
    assert token_for(url, {}) == ("secret" if is_sent else "")
    assert token_for(url, {"RELIGHT_TOKEN": "named"}) == "named"


def _nothing(_: Path) -> None:
    """Leave no file."""


def _link_to_a_secret(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00\n" * 100)


@pytest.mark.parametrize("make", [_nothing, _link_to_a_secret, _pipe, _garbage])
def test_a_file_of_the_settings_that_is_no_token_is_not_sent(
    state: Path, make: Callable[[Path], None]
) -> None:
    make(state / "token")
    assert token_for(HERE, {}) == ""


def test_settings_that_cannot_be_read_give_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relight.toml").write_text("[")
    assert token_for(HERE, {}) == ""


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"RELIGHT_TOKEN": "two words"}, "RELIGHT_TOKEN holds no token"),
        ({"RELIGHT_TOKEN": "a\nHost: evil"}, "RELIGHT_TOKEN holds no token"),
        ({"RELIGHT_TOKEN": "größe"}, "RELIGHT_TOKEN holds no token"),
        ({"RELIGHT_TOKEN_FILE": "/no/such/file"}, "No such file"),
        ({"RELIGHT_TOKEN_FILE": "/etc/passwd"}, "holds no token"),
        ({"RELIGHT_TOKEN_FILE": "/"}, "directory"),
        ({"RELIGHT_TOKEN_FILE": "/dev/zero"}, "not a regular file"),
    ],
)
def test_what_is_named_and_is_no_token_is_said(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(NoToken, match=sentence):
        token_for(HERE, environ)


@pytest.mark.parametrize("words", [("jobs",), ("why", "123"), ("approve", "123", "--why", "x")])
def test_a_command_without_the_token_says_where_it_is_and_how_to_give_it(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELIGHT_URL", url)
    for name in ("RELIGHT_TOKEN", "RELIGHT_TOKEN_FILE", "RELIGHT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    assert app.run(words) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "carries no token: the token is in /state/token" in said.err
    assert "RELIGHT_TOKEN_FILE" in said.err


def test_a_command_finds_the_token_by_the_settings(
    url: str, token: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "token").write_text(token)
    monkeypatch.setenv("RELIGHT_URL", url)
    assert app.run(["jobs"]) == 0
