"""One job's trouble must not become another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def for_each(items: Iterable[Item], do: Callable[[Item], object]) -> None:
    """Do something for every item, even when it fails for some.

    Raises:
        ExceptionGroup: it failed for one or more items; the others are done.

    """
    errors: list[Exception] = []
    for item in items:
        try:
            do(item)
        except Exception as error:  # noqa: BLE001 - raised again below, when all had their turn
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of the jobs could not be served", errors)
