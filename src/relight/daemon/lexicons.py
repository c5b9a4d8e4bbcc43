"""The rules that a service hears, compiled, and kept from one start to the next."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from relight.perception.ears import Lexicon
from relight.perception.matching import LateMatcher
from relight.rules.loading import load
from relight.sources.shelves import shelf_of_user


def lexicon_of(directories: Iterable[str] = ()) -> Lexicon:
    """Return the packaged rules and those of ``directories``, to be listened for.

    Raises:
        RuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    lexicon = Lexicon(load(Path(one) for one in directories))
    shelf = shelf_of_user(os.environ)
    if shelf is not None and isinstance(lexicon.matcher, LateMatcher):
        lexicon.matcher.use_shelf(shelf)
    return lexicon
