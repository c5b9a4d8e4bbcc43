from __future__ import annotations

import bz2
import gzip
import lzma
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from relight.sources.archives.opening import RefusedError, Source, open_source
from relight.sources.archives.texts import names_no_log, no_log

LINES = b"".join(b"step %d of 100000, loss 2.71\n" % number for number in range(60_000))


def read(source: Source) -> bytes:
    try:
        return b"".join(source.pieces())
    finally:
        source.close()


def opened(path: Path | str) -> Source:
    return open_source(str(path), lambda _: None)


def written(folder: Path, data: bytes) -> Path:
    file = folder / "some.log"
    file.write_bytes(data)
    return file


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress),
    ("xz", lambda data: lzma.compress(data, preset=0)),
    ("bzip2", bz2.compress),
]


@pytest.mark.parametrize(("_name", "pack"), PACKERS)
def test_what_is_compressed_is_read_whatever_it_is_called(
    _name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    source = opened(written(tmp_path, pack(LINES)))
    assert read(source) == LINES
    assert (source.trouble, source.is_binary) == ("", False)


@pytest.mark.parametrize(("_name", "pack"), PACKERS)
def test_all_members_are_read_and_what_stands_behind_them_is_passed_over(
    _name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    data = pack(LINES) + pack(b"one more\n") + b"\x00" * 512
    source = opened(written(tmp_path, data))
    assert read(source) == LINES + b"one more\n"
    assert source.trouble == ""


@pytest.mark.parametrize(("_name", "pack"), PACKERS)
def test_a_member_behind_padding_is_read_and_text_behind_the_end_is_told(
    _name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    padded = pack(b"one\n") + b"\x00" * 9_000 + pack(b"two\n")
    assert read(opened(written(tmp_path, padded))) == b"one\ntwo\n"
    source = opened(written(tmp_path, pack(b"one\n") + b"FATAL: appended as it is\n"))
    assert read(source) == b"one\n"
    assert "something else follows" in source.trouble


def test_frames_of_zstd_without_text_are_read_over(tmp_path: Path) -> None:
    skipped = b"\x5a\x2a\x4d\x18" + (5_000).to_bytes(4, "little") + b"x" * 5_000
    whole = skipped + zstandard.compress(b"one\n") + skipped + zstandard.compress(b"two\n")
    source = opened(written(tmp_path, whole))
    assert read(source) == b"one\ntwo\n"
    assert (source.trouble, source.is_binary) == ("", False)


def test_many_small_members_are_read_in_time(tmp_path: Path) -> None:
    data = gzip.compress(b"a line\n") * 30_000
    assert read(opened(written(tmp_path, data))) == b"a line\n" * 30_000


@pytest.mark.parametrize(("name", "pack"), PACKERS)
def test_of_a_truncated_one_all_that_came_before_is_read_and_it_is_said(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    packed = pack(LINES)
    source = opened(written(tmp_path, packed[: len(packed) // 2]))
    data = read(source)
    assert LINES.startswith(data)
    assert "damaged: it ends in the middle" in source.trouble
    if name in ("gzip", "xz"):
        assert len(data) > len(LINES) // 4


@pytest.mark.parametrize(("_name", "pack"), PACKERS)
def test_of_a_damaged_one_what_came_before_is_read_and_it_is_said(
    _name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    packed = bytearray(pack(LINES))
    middle = len(packed) // 2
    packed[middle : middle + 64] = bytes(64)
    source = opened(written(tmp_path, bytes(packed)))
    assert len(read(source)) <= len(LINES)
    assert "damaged" in source.trouble


def test_no_piece_of_a_bomb_is_large(tmp_path: Path) -> None:
    for pack, most in ((gzip.compress, 3), (zstandard.ZstdCompressor().compress, 18)):
        source = opened(written(tmp_path, pack(b"a\n" * 16 * 1024 * 1024)))
        assert max(len(piece) for piece in source.pieces()) <= most * 1024 * 1024
        source.close()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"PK\x03\x04" + bytes(100), "zip archive"),
        (b"\x7fELF" + bytes(100), "a program"),
        (b"\x80\x04\x95" + bytes(100), "pickle"),
        (b"\xff\xfeh\x00i\x00", "UTF-16"),
        (bytes(range(256)) * 50, "binary data"),
        (os.urandom(100_000), "binary data"),
        (b"x" * 257 + b"ustar\x00" + b"x" * 300, "tar archive"),
        (b"some text\n" + b"\x00\x01\x02\x03" * 100, "binary data"),
    ],
)
def test_a_binary_file_is_told_and_gives_nothing(data: bytes, what: str, tmp_path: Path) -> None:
    source = opened(written(tmp_path, data))
    assert read(source) == b""
    assert source.is_binary
    assert what in source.trouble
    packed = opened(written(tmp_path, gzip.compress(data)))
    assert read(packed) == b""
    assert packed.is_binary


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain\n",
        "größe 東京 \x1b[31mred\x1b[0m\x07\n".encode(),
        "Gr\xf6\xdfe\n".encode("latin-1") * 100,
        b"\x00" * 70_000 + b"after a hole\n",
        b"before\n" + b"\x00" * 4_096 + b"after\n",
        b"10%|#   |\r20%|##  |\b\b\r\n",
    ],
)
def test_a_log_is_a_log(data: bytes, tmp_path: Path) -> None:
    source = opened(written(tmp_path, data))
    assert read(source) == data
    assert (source.is_binary, source.trouble) == (False, "")


def test_a_growing_file_is_read_to_the_size_it_had(tmp_path: Path) -> None:
    file = written(tmp_path, b"a\n" * 10)
    source = opened(file)
    with file.open("ab") as grown:
        grown.write(b"later\n")
    assert read(source) == b"a\n" * 10


def test_a_shrinking_file_ends_early_and_that_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, b"a\n" * 10)
    source = opened(file)
    file.write_bytes(b"b\n")
    assert read(source) == b"b\n"
    assert "became shorter" in source.trouble


def test_only_files_are_opened_and_nothing_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path, why in [
            (tmp_path / "pipe", "a named pipe"),
            (tmp_path / "socket", "a socket"),
            (Path("/dev/zero"), "a device"),
            (Path("/proc/self/maps"), "made by the kernel"),
            (tmp_path, "a directory"),
            (tmp_path / "none", "no such file"),
            (tmp_path / ("x" * 300), "name too long"),
        ]:
            with pytest.raises(RefusedError, match=why):
                opened(path)
    with pytest.raises(RefusedError, match="null"):
        opened("a\x00b")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(RefusedError, match="symbolic links"):
        opened(tmp_path / "loop")


def test_a_pipe_that_the_shell_hands_over_is_read() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(gzip.compress(LINES))

    writer = threading.Thread(target=write)
    writer.start()
    source = opened(f"/dev/fd/{reading}")
    assert read(source) == LINES
    writer.join()
    os.close(reading)
    with pytest.raises(RefusedError, match="bad file descriptor"):
        opened("/dev/fd/999999")


@pytest.mark.parametrize(
    ("name", "is_none"),
    [
        ("train.log", False),
        ("slurm-1.out", False),
        ("stdout", False),
        ("error.json", False),
        ("rank_0.log.json", False),
        ("train_log.jsonl.gz", False),
        ("train.py", True),
        ("config.json", True),
        ("requirements.txt", True),
        ("metrics.csv.gz", True),
        ("model.safetensors", True),
        ("shard-0001.jsonl", True),
        ("notes.txt", False),
    ],
)
def test_some_names_are_those_of_no_log(name: str, is_none: bool) -> None:  # noqa: FBT001 - a table
    assert names_no_log(name) is is_none


def test_what_has_no_bytes_is_no_binary() -> None:
    assert no_log(b"") == ""
