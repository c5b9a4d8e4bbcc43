"""What detectors tell that no single line does, in words for who looks a cause up.

The detectors stand in ``relight.perception``; here stands what each of their names means.
"""

from __future__ import annotations

from relight.rules.causes.loading import Cause, load_causes

__all__ = ["Cause", "load_causes"]
