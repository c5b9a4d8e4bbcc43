from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from relight.serve.tokens import FILE, TokenUnusable, keep_token


def test_the_token_is_made_once_for_owner_and_group_and_kept(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        first = keep_token(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o640
    assert (tmp_path / FILE).read_text() == f"{first.value}\n"
    assert len(first.value) >= 40
    assert first.path == str(tmp_path / FILE)
    assert keep_token(tmp_path) == first
    (tmp_path / FILE).unlink()
    assert keep_token(tmp_path).value != first.value


def test_the_token_is_not_shown_where_the_object_is(tmp_path: Path) -> None:
    token = keep_token(tmp_path)
    assert token.value not in repr(token)


def test_what_a_crash_left_half_written_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "token.new").write_text("half")
    keep_token(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / FILE]


def _readable(path: Path) -> None:
    path.write_text("x" * 43)
    path.chmod(0o644)


def _empty(path: Path) -> None:
    path.touch(0o640)


def _large(path: Path) -> None:
    path.touch(0o640)
    os.truncate(path, 1 << 40)


def _link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def _pipe(path: Path) -> None:
    os.mkfifo(path, 0o640)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [_readable, _empty, _large, _link, _pipe, _folder])
def test_a_file_that_cannot_be_trusted_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / FILE)
    with pytest.raises(TokenUnusable, match="token"):
        keep_token(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / FILE]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    keep_token(tmp_path)
    os.chown(tmp_path / FILE, 12_345, 12_345)
    with pytest.raises(TokenUnusable, match="delete it"):
        keep_token(tmp_path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(TokenUnusable, match=r"cannot be written .* store\.path"):
        keep_token(tmp_path / "none")
