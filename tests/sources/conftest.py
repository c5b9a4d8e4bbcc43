"""Folders that other users can reach, and files of theirs: the readers run with real rights."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from relight.sources.owner_readers import OwnerReaders, ReaderLimits


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder that every user can enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="relight-sources-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.fixture
def readers(folder: Path) -> Iterator[OwnerReaders]:
    with OwnerReaders((str(folder),), ReaderLimits(patience=3.0)) as pool:
        yield pool
