"""Slurm's host list notation: ``node-[001-003,007],gpu1`` and back.

Written from the notation described in Slurm's ``scontrol show hostnames`` manual page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_HOSTS = 200_000
"""A list that names more hosts is refused: the largest known clusters have a tenth of it."""

_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_NOT_A_LIST = frozenset({"", "None", "(null)", "None assigned", "n/a", "N/A"})
_TRAILING_NUMBER = re.compile(r"(.*?)([0-9]{1,18})")
_MOST_DIGITS = 18
"""Digits of one number: more than any host has, fewer than Python refuses to convert."""
_MOST_BRACKETS = 8
"""Bracketed ranges in one word; Slurm itself stops at three dimensions of numbers."""


class HostlistError(ValueError):
    """A text that is not a host list."""


def expand(text: str) -> tuple[str, ...]:
    """Return the hosts that a list names, in its order, each once.

    Slurm's placeholders for "no nodes", such as ``None assigned``, name no host.

    Raises:
        HostlistError: unbalanced brackets, an empty or reversed range, a strange character,
            or more than ``MOST_HOSTS`` hosts.

    """
    if text.strip() in _NOT_A_LIST:
        return ()
    hosts: dict[str, None] = {}
    for word in _split_outside_brackets(text.strip()):
        for host in _expand_word(word, text):
            hosts[host] = None
            if len(hosts) > MOST_HOSTS:
                raise HostlistError(f'"{text[:80]}" names more than {MOST_HOSTS} hosts')
    return tuple(hosts)


def compress(hosts: Iterable[str]) -> str:
    """Return the usual notation for ``hosts``: sorted, ranges in brackets, by digit count."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for host in sorted(set(hosts)):
        match = _TRAILING_NUMBER.fullmatch(host)
        if match is None:
            plain.append(host)
        else:
            prefix, digits = match.groups()
            groups.setdefault((prefix, len(digits)), []).append(int(digits))
    words = [*plain]
    for (prefix, width), numbers in groups.items():
        ranges = list(_ranges(sorted(numbers)))
        body = ",".join(_show_range(first, last, width) for first, last in ranges)
        single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        words.append(prefix + (body if single else f"[{body}]"))
    return ",".join(sorted(words))


def _split_outside_brackets(text: str) -> list[str]:
    words: list[str] = []
    depth = 0
    start = 0
    for position, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and depth == 0:
            words.append(text[start:position])
            start = position + 1
        if depth not in (0, 1):
            raise HostlistError(f'"{text[:80]}" has brackets that do not match')
    if depth:
        raise HostlistError(f'"{text[:80]}" has brackets that do not match')
    words.append(text[start:])
    return words


def _expand_word(word: str, whole: str) -> list[str]:
    head, *ranges = word.split("[")
    if len(ranges) > _MOST_BRACKETS:
        raise HostlistError(f'"{word[:80]}" has more than {_MOST_BRACKETS} ranges')
    hosts = [_plain(head, whole)] if head or not ranges else [""]
    for part in ranges:
        body, _, tail = part.partition("]")
        numbers = _numbers(body, whole)
        if len(hosts) * len(numbers) > MOST_HOSTS:
            raise HostlistError(f'"{whole[:80]}" names more than {MOST_HOSTS} hosts')
        end = _plain(tail, whole) if tail else ""
        hosts = [host + number + end for host in hosts for number in numbers]
    return hosts


def _plain(text: str, whole: str) -> str:
    if not _PLAIN.fullmatch(text):
        raise HostlistError(f'"{text[:80]}" in "{whole[:80]}" is not a host name')
    return text


def _numbers(body: str, whole: str) -> list[str]:
    numbers: list[str] = []
    for part in body.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
            raise HostlistError(f'"{part[:80]}" in "{whole[:80]}" is not a range of numbers')
        if max(len(first), len(last)) > _MOST_DIGITS:
            raise HostlistError(f'"{part[:80]}" in "{whole[:80]}" is too long a number')
        low, high = int(first), int(last)
        if high < low or high - low + len(numbers) >= MOST_HOSTS:
            raise HostlistError(f'"{part[:80]}" in "{whole[:80]}" is reversed or too long')
        numbers += [str(number).zfill(len(first)) for number in range(low, high + 1)]
    return numbers


def _ranges(numbers: list[int]) -> Iterable[tuple[int, int]]:
    first = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            yield first, previous
            first = number
        previous = number
    yield first, previous


def _show_range(first: int, last: int, width: int) -> str:
    low, high = str(first).zfill(width), str(last).zfill(width)
    return low if first == last else f"{low}-{high}"
