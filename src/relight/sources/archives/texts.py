"""Tells a log from what is none: by its first bytes, and in a directory by its name."""

from __future__ import annotations

import re

SNIFFED = 64 * 1024
"""Bytes that are looked at."""

_MOST_CONTROLS = 0.03
"""Share of bytes that no text has. Compressed or encrypted data has 9 %, tensors more, and a
log with terminal colours none at all: escape, bell and backspace are not counted."""

_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\x0b\x0c\r\x1b\x07\x08"))
_HOLE = re.compile(rb"\x00{64,}")
"""A log that was truncated while its writer went on has a hole of zeros (seen on NFS)."""

_KNOWN = (
    (b"PK\x03\x04", "a zip archive, such as a PyTorch checkpoint"),
    (b"\x7fELF", "a program"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89PNG\r\n", "a picture"),
    (b"PAR1", "a Parquet file"),
    (b"\xff\xfe", "UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"),
)
_TAR_AT = 257
_TAR = b"ustar"

_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)$", re.IGNORECASE)
_OTHER_NAMES = re.compile(
    r"""
    (?: requirements | constraints | merges | vocab | environment | license )[^/]*\.txt
    | .*\.(?: py[ci]? | ipynb | (?:ba)?sh | sbatch | slurm | cc? | cpp | cuh? | h(?:pp)? | so | o
        | a | rs | go | [jt]s                                                           # code
        | md | rst | tex | pdf | html | css | png | jpe?g | gif | svg | mp4             # to read
        | toml | ya?ml | ini | cfg | conf | lock | json | pid                           # settings
        | [ct]sv | jsonl | parquet | arrow | npy | npz | h5 | hdf5 | db | sqlite | idx  # data
        | pth? | ckpt | bin | safetensors | pkl | onnx | distcp | metadata              # weights
        | model | spm | tiktoken | tar | tgz | zip | whl | nsys-rep | qdrep
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LOG_NAMES = re.compile(r"error\.json|.*(?:log|stdout|stderr)[^/]*\.jsonl?", re.IGNORECASE)
"""torchrun's error file of a worker, and logs as JSON."""


def no_log(head: bytes) -> str:
    """Return what a file that begins with ``head`` is instead of a log, empty for a log."""
    for magic, name in _KNOWN:
        if head.startswith(magic):
            return name
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "a tar archive: unpack it first"
    text = _HOLE.sub(b"", head)
    controls = len(text) - len(text.translate(None, _CONTROLS))
    return "binary data" if controls > _MOST_CONTROLS * len(text) else ""


def names_no_log(name: str) -> bool:
    """Return whether a file of a run's directory is by its name something else than a log."""
    bare = _PACKED.sub("", name)
    return _OTHER_NAMES.fullmatch(bare) is not None and _LOG_NAMES.fullmatch(bare) is None
