"""Reads the files of one user for relight: a program of its own, started by ``reader_process``.

It is started with relight's rights, so that the interpreter and this file need not be readable
to the user, and gives them up for good before the first request. From then on the kernel decides
with the user's own rights what a name, a symbolic link or a hard link may lead to.

It imports the standard library alone, and all of it before the rights go: afterwards the
installation may be out of reach. It ends when its input ends, and the kernel kills it when
relight dies.

A frame is four bytes of length (big endian) and that many bytes of JSON; the answer to a read
is followed by ``size`` raw bytes. Names that are not UTF-8 are neither asked for nor answered.

Arguments: the user's id (or ``own`` to keep the rights it has), the process id of relight, then
the folders below which files may be read.
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import hashlib
import json
import os
import pwd
import re
import resource
import signal
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ANCHOR_BYTES = 256
"""How many bytes before an offset tell whether the file is still the one that was read."""

MOST_BYTES = 1 << 20
"""The most bytes of one answer."""

MOST_FOUND = 2_000
"""The most files of one look."""

MOST_VISITED = 100_000
"""The most folder entries that one look goes through."""

MOST_PARTS = 100
"""The most folders and names that a glob is made of."""

DEEPEST = 32
"""How far below its start ``**`` looks."""

LONGEST_NAME = 4_096
"""Linux' PATH_MAX, in bytes."""

LENGTH = struct.Struct(">I")
NOT_THERE_YET = "not there yet"
OUTSIDE = "it lies outside the folders that relight may read (log_roots)"

_OVERFLOW_ID = 65_534
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class RefusedError(Exception):
    """Something that will not be read, and why, in one sentence."""


class Spot(NamedTuple):
    """Where reading of a file stopped: the fields of ``relight.model.signals.Mark``."""

    offset: int
    device: int
    inode: int
    anchor: str


# --- rights ---------------------------------------------------------------------------------


def drop_rights(uid: int) -> None:
    """Become ``uid`` for good, with that user's groups and no capability.

    A user without a passwd entry has no group that could be trusted: it gets the overflow one.

    Raises:
        RefusedError: something of the old rights was left.

    """
    try:
        entry = pwd.getpwuid(uid)
        gid, groups = entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)
    except KeyError:
        gid, groups = _OVERFLOW_ID, [_OVERFLOW_ID]
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if (
        os.getresuid() != (uid, uid, uid)
        or os.getresgid() != (gid, gid, gid)
        or set(os.getgroups()) != set(groups)
        or (uid != 0 and not _is_powerless())
    ):
        raise RefusedError(f"the rights of uid {uid} could not be taken on")


def _is_powerless() -> bool:
    try:
        os.setuid(0)
    except PermissionError:
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123  no pathlib: each import costs at each start
            return re.search(rb"^CapEff:\s*0+$", status.read(), re.MULTILINE) is not None
    return False


def tie_to(parent: int) -> None:
    """Die with ``parent``, gain no rights by any exec, leave no core, write no file.

    Called after the change of user, which clears the death signal (prctl(2)).

    Raises:
        RefusedError: the kernel did not take it, or the parent is gone already.

    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise RefusedError("the kernel refused to tie the reader to relight's life")
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise RefusedError("the kernel refused no_new_privs")
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    if os.getppid() != parent:
        raise RefusedError("relight is gone")


# --- reading --------------------------------------------------------------------------------


def read(path: str, spot: Spot, limit: int, roots: list[str]) -> tuple[dict[str, object], bytes]:
    """Return what lies after ``spot`` in a file, at most ``limit`` bytes, and the next spot.

    Raises:
        RefusedError: the file is not there, not readable, not a regular one or outside ``roots``.

    """
    descriptor = _open(path)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
            raise RefusedError(f"it is {kind}, not a regular file")
        # The descriptor's own name: the path may lead elsewhere by now.
        own_name = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115  no pathlib, as above
        if not _is_below(own_name, roots):
            raise RefusedError(OUTSIDE)
        return _next_bytes(descriptor, found, spot, min(limit, MOST_BYTES))
    except OSError as error:
        raise RefusedError(f"it could not be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if "\x00" in path or len(os.fsencode(path)) > LONGEST_NAME or not path.startswith("/"):
        raise RefusedError("its name is not an absolute path of at most 4,096 bytes")
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        raise RefusedError(NOT_THERE_YET) from None
    except PermissionError:
        raise RefusedError(f"uid {os.geteuid()}, whose job names it, may not read it") from None
    except OSError as error:
        raise RefusedError(f"it could not be opened: {error.strerror}") from error


def _is_below(path: str, roots: list[str]) -> bool:
    """Return whether a path without symbolic links lies below a root, which may have some.

    The roots as written come first: resolving one touches its file system, and a root whose
    server hangs must not block the files below the others.
    """
    return _has_prefix(path, roots) or _has_prefix(path, map(os.path.realpath, roots))


def _has_prefix(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _next_bytes(
    descriptor: int, found: os.stat_result, spot: Spot, limit: int
) -> tuple[dict[str, object], bytes]:
    offset = spot.offset
    before = b""
    data = b""
    is_same = spot.inode in {0, found.st_ino} and offset <= found.st_size
    if is_same:
        lead = min(offset, ANCHOR_BYTES)
        both = os.pread(descriptor, lead + min(limit, found.st_size - offset), offset - lead)
        before, data = both[:lead], both[lead:]
        # The anchor decides; a device number alone changes when a network folder is mounted anew.
        is_same = not spot.anchor or anchor_of(before) == spot.anchor
    if not is_same:
        offset, before = 0, b""
        data = os.pread(descriptor, min(limit, found.st_size), 0)
    end = offset + len(data)
    answer = {
        "offset": offset,
        "restarted": not is_same and spot.offset > 0,
        "at_end": end >= found.st_size,
        "size": len(data),
        "mark": {
            "offset": end,
            "device": found.st_dev,
            "inode": found.st_ino,
            "anchor": anchor_of((before + data[-ANCHOR_BYTES:])[-ANCHOR_BYTES:]),
        },
    }
    return answer, data


def anchor_of(last: bytes) -> str:
    """Return what tells a file's last bytes before an offset again; empty for none."""
    return hashlib.blake2b(last, digest_size=8).hexdigest() if last else ""


# --- looking --------------------------------------------------------------------------------


class Look:
    """One bounded look for the regular files that a glob names, below ``roots``."""

    def __init__(self, roots: list[str]) -> None:
        self.roots = roots
        self.visited = 0
        self.left_out = ""

    def find(self, pattern: str) -> list[str]:
        """Return the paths in sorted order; ``left_out`` says afterwards what is missing.

        Raises:
            RefusedError: the pattern is not an absolute path, or too deep.

        """
        parts = [part for part in pattern.split("/") if part]
        if not pattern.startswith("/") or "\x00" in pattern or not 0 < len(parts) <= MOST_PARTS:
            raise RefusedError(f"the pattern is not an absolute path of at most {MOST_PARTS} parts")
        found: dict[str, None] = {}
        for path in self._walk("", parts, 0):
            if len(found) >= MOST_FOUND:
                self.left_out = (
                    f"more than {MOST_FOUND} files have such names: the rest is not read"
                )
                break
            found[path] = None
        return sorted(found)

    def _walk(self, folder: str, parts: list[str], depth: int) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        if part == "**":
            yield from self._walk(folder, rest or ["*"], depth)
            if depth < DEEPEST:
                for name in self._names(folder, "*", folders=True):
                    yield from self._walk(f"{folder}/{name}", parts, depth + 1)
            return
        names = self._names(folder, part) if re.search(r"[*?\[]", part) else [part]
        for name in names:
            path = f"{folder}/{name}"
            if rest:
                yield from self._walk(path, rest, depth)
            elif os.path.isfile(path):  # noqa: PTH113  no pathlib: each import costs at each start
                yield path

    def _names(self, folder: str, part: str, *, folders: bool = False) -> list[str]:
        """Return the names in a folder that match; ``folders`` alone, not through links."""
        if not _is_below(os.path.realpath(folder) + "/", self.roots):
            self.left_out = "folders outside those that relight may read are not looked through"
            return []
        wanted = re.compile(fnmatch.translate(part))
        names = []
        self.visited += 1
        with contextlib.suppress(OSError), os.scandir(folder) as listing:
            for entry in listing:
                self.visited += 1
                if self.visited > MOST_VISITED:
                    self.left_out = f"the look ended after {MOST_VISITED} folder entries"
                    break
                if entry.name.startswith(".") > part.startswith("."):
                    continue
                if wanted.match(entry.name) and (
                    not folders or entry.is_dir(follow_symlinks=False)
                ):
                    names.append(entry.name)
        texts = [name for name in names if _is_text(name)]
        if len(texts) < len(names):
            self.left_out = "names that are not UTF-8 are left out"
        return sorted(texts)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- the conversation -----------------------------------------------------------------------


def _take(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(0, size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _give(answer: dict[str, object], data: bytes = b"") -> None:
    text = json.dumps(answer).encode()
    rest = memoryview(LENGTH.pack(len(text)) + text + data)
    while rest:
        rest = rest[os.write(1, rest) :]


def _answer(request: dict[str, object], roots: list[str]) -> tuple[dict[str, object], bytes]:
    pattern = request.get("pattern")
    if isinstance(pattern, str):
        look = Look(roots)
        paths = look.find(pattern)
        return {"paths": paths, "left_out": look.left_out}, b""
    mark = request["mark"]
    spot = Spot(**mark) if isinstance(mark, dict) else Spot(0, 0, 0, "")
    return read(str(request["path"]), spot, int(str(request["limit"])), roots)


def serve(roots: list[str]) -> None:
    """Answer requests from standard input until it ends."""
    while True:
        (length,) = LENGTH.unpack(_take(LENGTH.size))
        request = json.loads(_take(length))
        try:
            _give(*_answer(request, roots))
        except (RefusedError, OSError) as refusal:
            _give({"why": str(refusal)})


def main(arguments: list[str]) -> None:
    """Give up the rights, say that it is ready, and serve."""
    who, parent, *roots = arguments
    try:
        if who != "own":
            drop_rights(int(who))
        tie_to(int(parent))
    except (RefusedError, OSError) as error:
        _give({"why": str(error)})
        return
    _give({"ready": True})
    with contextlib.suppress(EOFError, BrokenPipeError):
        serve(roots)


if __name__ == "__main__":
    main(sys.argv[1:])
