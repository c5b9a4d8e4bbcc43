from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
_TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A program that fails as an example of the README shows, and what the README says of it."""

    error: str
    program: str
    code: int
    sentence: str
    restarts: int


HARDWARE = Example(
    error="RuntimeError: CUDA error: uncorrectable ECC error encountered",
    program=(
        "import os\n"
        "if os.environ['RELIGHT_RESTART_COUNT'] == '0':\n"
        "    raise RuntimeError('CUDA error: uncorrectable ECC error encountered')\n"
    ),
    code=0,
    sentence="Restart: a GPU met an uncorrectable memory error (ECC)",
    restarts=1,
)
DETERMINISTIC = Example(
    error="ModuleNotFoundError: No module named 'nosuchmodule'",
    program="import nosuchmodule\n",
    code=1,
    sentence="Not restarted, because it would fail again: the Python module nosuchmodule cannot",
    restarts=0,
)


def shown(error: str) -> str:
    """Return the block of the README that begins with this error."""
    (block,) = [text for text in _TEXT.findall(README.read_text()) if text.startswith(error)]
    return str(block)


@pytest.mark.parametrize("example", [HARDWARE, DETERMINISTIC], ids=["hardware", "deterministic"])
def test_an_example_of_relight_run_does_what_the_readme_says(
    example: Example, tmp_path: Path
) -> None:
    train = tmp_path / "train.py"
    train.write_text(example.program)
    done = subprocess.run(
        [sys.executable, "-m", "relight.cli.app", "run", "--", sys.executable, str(train)],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == example.code
    for text in (shown(example.error), done.stderr):
        assert example.error in text
        assert example.sentence in text
        assert f"relight: Exit code {example.code}." in text
        assert len(re.findall(r"Restart \d of 3\.", text)) == example.restarts
