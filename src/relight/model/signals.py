"""What a log source hands to perception: bytes with their place, or why there are none."""

from __future__ import annotations

from relight.model.records import Record


class Mark(Record, frozen=True, kw_only=True):
    """Where reading of one file stopped, and how to tell that it is still the same file.

    ``anchor`` is a digest of the last bytes before ``offset``: a file that was truncated and
    has grown past ``offset`` again does not have them there.
    """

    offset: int = 0
    device: int = 0
    inode: int = 0
    anchor: str = ""


class Reading(Record, frozen=True, kw_only=True):
    """The next bytes of one file of one attempt.

    ``offset`` is where ``data`` begins. ``restarted`` says that the file is not the one read
    before (truncated or replaced): offsets count from its start again. ``rank`` and ``node``
    are set where the file's name tells them. ``at_end`` says that nothing lay beyond.
    ``mark`` is where to go on after these bytes.
    """

    file: str
    offset: int
    data: bytes
    mark: Mark
    restarted: bool = False
    rank: int | None = None
    node: str | None = None
    at_end: bool = True


class FileUnseen(Record, frozen=True, kw_only=True):
    """A file that could not be read, and why, in one sentence."""

    file: str
    why: str
