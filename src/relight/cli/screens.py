"""What a terminal shows: tables that fit its width, and text that cannot act on it.

Names and log lines are the user's own (law 10): a control character could move the cursor,
recolour or retitle the terminal, a bidirectional mark could make a line read otherwise. All
are shown as what they are, and nothing is read as markup.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of what has no shape of its own, and of line separators."""

_WIDTH_OF_A_PIPE = 160


def plain(text: str) -> str:
    """Return ``text`` with everything that could act on a terminal shown as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1] if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


def show_json(value: object) -> None:
    """Print a record as indented JSON, in ASCII only, so that nothing in it can act."""
    print(json.dumps(msgspec.to_builtins(value), indent=2))  # noqa: T201 - the command's output


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> None:
    """Print rows under their columns; the last column takes what width is left and wraps.

    ``empty`` is the sentence for no rows at all.
    """
    # Loading rich takes longer than a listing as JSON that needs none of it.
    from rich.table import Table  # noqa: PLC0415 - only a table pays for it
    from rich.text import Text  # noqa: PLC0415 - likewise

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns[:-1]:
        table.add_column(column, overflow="fold", no_wrap=False)
    table.add_column(columns[-1], overflow="fold", ratio=1)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    if table.row_count:
        show(table)
    else:
        show_lines([(0, "", empty)])


def show_lines(lines: Iterable[tuple[int, str, str]]) -> None:
    """Print lines of (indent, style, text), wrapped to the width below their indent."""
    from rich.padding import Padding  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    for indent, style, text in lines:
        show(Padding(Text(plain(text), style=style), (0, 0, 0, indent), expand=False))


def show(renderable: object) -> None:
    """Print something of rich's; without colour and 160 wide where it is not a terminal."""
    _console().print(renderable)


def rendered(renderable: object) -> str:
    """Return what ``show`` would print, without blanks at line ends where it is no terminal."""
    console = _console()
    with console.capture() as captured:
        console.print(renderable)
    text = captured.get()
    if console.is_terminal:
        return text
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - as above

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _WIDTH_OF_A_PIPE
    return Console(width=width, highlight=False, markup=False, emoji=False)
