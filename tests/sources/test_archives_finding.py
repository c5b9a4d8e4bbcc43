from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from relight.sources.archives import finding
from relight.sources.archives.finding import Found, find

NOBODY = 65_534


def made(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a line\n")


def names(found: Found, folder: Path) -> list[str]:
    return [path.removeprefix(f"{folder}/") for path in found.paths]


def test_files_come_in_the_order_in_which_they_are_named_each_once(tmp_path: Path) -> None:
    made(tmp_path, "b.log", "a.log")
    (tmp_path / "same.log").symlink_to(tmp_path / "a.log")
    found = find([f"{tmp_path}/{name}" for name in ("b.log", "a.log", "b.log", "same.log")])
    assert names(found, tmp_path) == ["b.log", "a.log"]
    assert found.refused == ()


def test_a_directory_gives_its_logs_and_passes_over_the_rest(tmp_path: Path) -> None:
    made(
        tmp_path,
        *(
            "rank_10.log",
            "rank_9.log",
            "sub/deeper/rank_0.log",
            "slurm-1.out",
            "attempt_0/0/error.json",
        ),
        *("train.py", "config.json", ".git/HEAD.log", "__pycache__/x.log", "requirements.txt"),
    )
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "shard").write_bytes(os.urandom(4_096))
    (tmp_path / "empty.log").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "broken.log").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe.log")
    found = find([str(tmp_path)])
    assert names(found, tmp_path) == [
        *("attempt_0/0/error.json", "rank_9.log", "rank_10.log", "slurm-1.out"),
        "sub/deeper/rank_0.log",
    ]
    assert [(Path(path).name, why) for path, why in found.refused] == [
        ("broken.log", "no such file or directory")
    ]
    assert found.passed_over == 8


def test_a_directory_or_a_glob_without_a_log_is_fruitless(tmp_path: Path) -> None:
    made(tmp_path, "train.py")
    found = find([str(tmp_path), f"{tmp_path}/*.log"])
    assert found.fruitless == (
        (str(tmp_path), "there is no log in this directory"),
        (f"{tmp_path}/*.log", "no file has such a name"),
    )
    assert found.refused == ()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.log", ["a.log", "b.log"]),
        ("[a]*", ["a.log"]),
        ("[!a].log", ["b.log"]),
        ("?.log", ["a.log", "b.log"]),
        ("**/*.log", ["a.log", "b.log", "sub/c.log", "sub/sub/d.log"]),
        ("sub/**", ["sub/c.log", "sub/sub/d.log"]),
        ("s*/?.log", ["sub/c.log"]),
    ],
)
def test_a_glob_that_the_shell_did_not_expand_is_expanded(
    pattern: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "a.log", "b.log", "sub/c.log", "sub/sub/d.log")
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    assert names(find([f"{tmp_path}/{pattern}"]), tmp_path) == expected
    monkeypatch.chdir(tmp_path)
    assert list(find([pattern]).paths) == expected


def test_what_is_not_there_is_refused_and_the_rest_is_found(tmp_path: Path) -> None:
    made(tmp_path, "a.log", "odd[1].log")
    words = [f"{tmp_path}/{name}" for name in ("none.log", "a.log", "*.err", "odd[1].log")]
    found = find([*words, "a\x00b", "x" * 5_000])
    assert names(found, tmp_path) == ["a.log", "odd[1].log"]
    assert [why for _, why in found.refused] == [
        "no such file or directory",
        "embedded null byte",
        "file name too long",
    ]


def test_a_name_may_hold_anything(tmp_path: Path) -> None:
    strange = [os.fsencode(tmp_path) + b"/" + name for name in (b"a\xff.log", b"b\n\x1b[2J.log")]
    for name in strange:
        Path(os.fsdecode(name)).write_text("a line\n")
    assert [os.fsencode(path) for path in find([str(tmp_path)]).paths] == strange


def test_a_search_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, *(f"{number}.log" for number in range(9)))
    monkeypatch.setattr(finding, "MOST_FILES", 5)
    found = find([str(tmp_path)])
    assert len(found.paths) == 5
    assert len(found.refused) == 1
    assert "the search ended here" in found.refused[0][1]
    monkeypatch.setattr(finding, "MOST_ENTRIES", 3)
    assert len(find([str(tmp_path)]).paths) == 3


@pytest.fixture
def as_somebody() -> Iterator[Path]:
    """Give a folder of an ordinary user's, and that user's rights."""
    with TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            yield Path(folder)
            return
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


def test_what_may_not_be_read_is_told(as_somebody: Path) -> None:
    made(as_somebody, "closed/a.log", "closed.log", "open.log")
    (as_somebody / "closed").chmod(0)
    (as_somebody / "closed.log").chmod(0)
    found = find([str(as_somebody)])
    (as_somebody / "closed").chmod(0o700)
    assert names(found, as_somebody) == ["open.log"]
    assert [why for _, why in found.refused] == ["permission denied"] * 2


@pytest.mark.parametrize(
    ("word", "why"),
    [("**/[z-a]*", "brackets"), ("*" * 40 + ".nolog", "no file"), ("**/" * 40 + "x", "no file")],
)
def test_a_strange_glob_is_fruitless_and_ends(
    word: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "a" * 60 + ".log")
    monkeypatch.chdir(tmp_path)
    ((_, told),) = find([word]).fruitless
    assert why in told


def test_a_link_to_a_checkpoint_that_is_gone_is_passed_over_in_a_directory(tmp_path: Path) -> None:
    made(tmp_path, "a.log")
    (tmp_path / "latest_ckpt.pt").symlink_to(tmp_path / "gone")
    found = find([str(tmp_path)])
    assert (names(found, tmp_path), found.refused, found.passed_over) == (["a.log"], (), 1)
