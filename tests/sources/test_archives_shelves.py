from __future__ import annotations

import os
from pathlib import Path

import pytest

from relight.perception.matching import (
    FEW_BYTES,
    HAS_HYPERSCAN,
    LateMatcher,
    SetMatcher,
    shelf_key,
)
from relight.rules.loading import RuleError, load
from relight.sources.archives import rulebooks
from relight.sources.archives.rulebooks import rules_of
from relight.sources.shelves import MOST_FILES, FileShelf, cache_folder

needs_hyperscan = pytest.mark.skipif(not HAS_HYPERSCAN, reason="Hyperscan exists for x86-64 only")


class Thing:
    """Something with expressions."""

    def __init__(self, *patterns: str) -> None:
        self.patterns = patterns


THINGS = (Thing("foo", "bar$"), Thing("ba[rz]"))
BLOCK = b"foo bar\nbaz\nnothing\n"
EXPECTED = [(0, 0), (0, 1), (8, 1)]


def test_what_is_put_comes_back_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "new" / "folder")
    assert shelf.get("key") is None
    assert shelf.put("key", b"data")
    assert shelf.put("key", b"newer")
    assert shelf.get("key") == b"newer"
    [file] = (tmp_path / "new" / "folder").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign", "writable", "linked"])
def test_what_cannot_be_trusted_is_not_there(damage: str, tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path)
    tmp_path.chmod(0o700)
    shelf.put("key", b"data" * 100)
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(content[:-1])
        case "flipped":
            file.write_bytes(content[:-1] + b"X")
        case "empty":
            file.write_bytes(b"")
        case "foreign":
            file.write_bytes(b"data" * 100)
        case "writable":
            file.chmod(0o666)
        case _:
            file.rename(tmp_path / "elsewhere")
            file.symlink_to(tmp_path / "elsewhere")
    assert shelf.get("key") is None
    assert shelf.put("key", b"anew")
    assert shelf.get("key") == b"anew"


def test_a_folder_that_others_may_write_to_is_left_alone(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path)
    tmp_path.chmod(0o700)
    shelf.put("key", b"data")
    tmp_path.chmod(0o777)
    assert shelf.get("key") is None
    assert not shelf.put("other", b"data")
    assert not FileShelf(Path("/proc/relight")).put("key", b"data")
    (tmp_path / "file").touch()
    assert not FileShelf(tmp_path / "file").put("key", b"data")


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "shelf")
    for number in range(MOST_FILES + 3):
        shelf.put(f"key{number}", b"data")
        for file in (tmp_path / "shelf").glob(f"key{number}.*"):
            os.utime(file, (number, number))
    assert len(list((tmp_path / "shelf").iterdir())) == MOST_FILES
    assert shelf.get("key0") is None
    assert shelf.get(f"key{MOST_FILES + 2}") == b"data"


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/relight"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/relight"),
        ({"HOME": "/h"}, "/h/.cache/relight"),
        ({}, None),
        ({"HOME": ""}, None),
    ],
)
def test_the_folder_is_the_one_of_the_desktop_standard(
    environ: dict[str, str], folder: str | None
) -> None:
    assert cache_folder(environ) == (None if folder is None else Path(folder))


@needs_hyperscan
def test_a_matcher_takes_from_the_shelf_and_stocks_it(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "shelf")
    first = LateMatcher(THINGS)
    first.use_shelf(shelf)
    assert first.scan(BLOCK) == EXPECTED
    assert shelf.get(shelf_key(THINGS)) is None
    first.stock()
    assert shelf.get(shelf_key(THINGS)) is not None
    second = LateMatcher(THINGS)
    second.use_shelf(shelf)
    assert second.scan(BLOCK) == EXPECTED
    assert shelf_key(THINGS) != shelf_key(THINGS[:1])


@needs_hyperscan
def test_what_hyperscan_does_not_take_is_made_anew(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "shelf")
    shelf.put(shelf_key(THINGS), b"no database")
    matcher = LateMatcher(THINGS)
    matcher.use_shelf(shelf)
    assert matcher.scan(BLOCK) == EXPECTED
    matcher.stock()
    assert matcher.scan(BLOCK) == EXPECTED
    assert shelf.get(shelf_key(THINGS)) != b"no database"


@needs_hyperscan
def test_who_reads_much_gets_the_engine_that_scans_fast(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "shelf")
    matcher = LateMatcher(THINGS)
    matcher.use_shelf(shelf)
    block = b"nothing of that sort\n" * (FEW_BYTES // 20)
    assert len(block) > FEW_BYTES
    assert matcher.scan(block) == []
    assert shelf.get(shelf_key(THINGS)) is None
    assert matcher.scan(BLOCK) == EXPECTED
    assert shelf.get(shelf_key(THINGS)) is not None
    assert SetMatcher(THINGS).scan(BLOCK) == EXPECTED


RULE = """
[[rule]]
id = "our-own"
family = "user_code_exception"
kind = "crash"
role = "root"
domain = "user"
remedy = "stop"
title = "Our own"
sentence = "Our own trouble."
patterns = ['our own trouble \\d']
evidence = "our program"
why = "Our own program says so."
hits = ["our own trouble 1", "our own trouble 22"]
misses = [{ text = "our own trouble", why = "no number" }]
"""


def test_rules_are_kept_and_any_change_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, site = FileShelf(tmp_path / "shelf"), tmp_path / "site"
    site.mkdir()
    (site / "ours.toml").write_text(RULE)
    packaged = rules_of((), shelf)
    assert packaged == load()
    ours = rules_of((site,), shelf)
    assert ours == load((site,))
    assert [rule.id for rule in ours if rule not in packaged] == ["our-own"]
    with monkeypatch.context() as patched:
        patched.setattr("relight.rules.loading.load", lambda _: pytest.fail("was loaded again"))
        assert rules_of((site,), shelf) == ours
    (site / "ours.toml").write_text(RULE.replace("our-own", "our-other"))
    assert rules_of((site,), shelf)[-1].id == "our-other"
    for key in (rulebooks._key((site,)), rulebooks._key(())):  # noqa: SLF001 - to damage what it names
        shelf.put(key, b"\x00no rules")
    assert rules_of((site,), shelf)[-1].id == "our-other"


def test_rules_that_cannot_be_used_are_refused_with_or_without_a_shelf(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for shelf in (None, FileShelf(tmp_path / "shelf")):
        for place in (tmp_path / "none", tmp_path):
            with pytest.raises(RuleError):
                rules_of((place,), shelf)
