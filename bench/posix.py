"""The rules' expressions in the words of other programs, which know fewer of them.

Only what changes no matching line is left out: names of groups, and how greedy a repetition
is. What an expression says of bytes is kept.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\(\?P<\w+>|\(\?i?:|\(\?i\)|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\\x[0-9a-fA-F]{2}|\\.|[*+?}]\?|.",
    re.DOTALL,
)
_NAMED = re.compile(r"\(\?P<\w+>")
_CLASSES = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\s": "[[:space:]]",
    r"\S": "[^[:space:]]",
    r"\w": "[[:alnum:]_]",
    r"\W": "[^[:alnum:]_]",
    r"\t": "\t",
    r"\r": "\r",
}
_INSIDE = {r"\d": "0-9", r"\w": "[:alnum:]_", r"\s": "[:space:]", r"\t": "\t", r"\r": "\r"}
_NO_LINE_FEED = r"\n"
"""In a bracket it says 'not over the line's end', which line tools never do."""


_NEEDLESS = re.compile(r"""\\(["'<>/=!@%,;:_` ])""")


def for_ripgrep(expression: str) -> str:
    """Return the expression without names, of which two alike are an error where all are joined.

    Nor does ripgrep 13 know an escape in front of a sign that means nothing.
    """
    return _NEEDLESS.sub(r"\1", _NAMED.sub("(?:", expression))


def for_grep(expression: str) -> str:
    """Return the expression as a POSIX extended one, with GNU's word boundary.

    Raises:
        ValueError: it holds something that has no such form.

    """
    any_case = [False]
    made: list[str] = []
    for piece in _TOKEN.findall(expression):
        if piece == "(?i)":
            any_case[-1] = True
            continue
        if piece[0] == "(":
            any_case.append(any_case[-1] or piece == "(?i:")
        elif piece == ")":
            any_case.pop()
        made.append(_translated(piece, any_case=any_case[-1]))
    return "".join(made)


def _translated(piece: str, *, any_case: bool) -> str:
    if piece[0] == "(":
        return "("
    if piece[0] == "[" and len(piece) > 1:
        return _bracket(piece, any_case=any_case)
    if piece in _CLASSES:
        return _CLASSES[piece]
    if piece[0] == "\\":
        if piece[1].isalnum() and piece != r"\b":
            raise ValueError(f'"{piece}" has no form that grep -E knows')
        return piece
    if len(piece) > 1:
        return piece[0]
    if any_case and piece.isalpha():
        return f"[{piece.lower()}{piece.upper()}]"
    return piece


def _bracket(bracket: str, *, any_case: bool) -> str:
    """Return a bracket in which backslashes are gone and ``]`` and ``-`` stand where they may."""
    is_negated = bracket.startswith("[^")
    members = re.findall(r"\\.|.-[^\]]|.", bracket[2:-1] if is_negated else bracket[1:-1])
    kept: list[str] = []
    last = first = ""
    for member in members:
        plain = member[1] if member[0] == "\\" and not member[1].isalnum() else member
        if member == _NO_LINE_FEED:
            continue
        if member in _INSIDE:
            kept.append(_INSIDE[member])
        elif plain == "]":
            first = "]"
        elif plain == "-":
            last = "-"
        elif any_case and plain.isalpha():
            kept.append(plain.lower() + plain.upper())
        elif any_case and re.fullmatch("[a-z]-[a-z]", plain):
            kept.append(plain + plain.upper())
        else:
            kept.append(plain)
    body = first + "".join(kept) + last
    if not body:
        return "."
    return f"[{'^' if is_negated else ''}{body}]"
