"""Moments as ms since the epoch. Clocks are read by the faces only; everything below is given its ``now``."""

from __future__ import annotations

import math
import time
from datetime import datetime

from .errors import InvalidValue

Now = int | float | datetime | None
"""A moment as a caller may give it: ms since the epoch, an aware datetime, or None for the present."""


def milliseconds(now: Now) -> int:
    """Return a moment in ms since the epoch; None is the present. Raises InvalidValue for anything unclear."""
    if now is None:
        return time.time_ns() // 1_000_000
    if isinstance(now, datetime):
        if now.tzinfo is None:
            raise InvalidValue(f"{now!r} has no time zone; give one, or give ms since the epoch")
        return round(now.timestamp() * 1000)
    if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
        raise InvalidValue(f"a moment is ms since the epoch or an aware datetime, not {now!r}")
    return math.ceil(now)


def given(now: Now) -> int:
    """Return the moment that a face handed down, in ms."""
    if now is None:
        raise InvalidValue("an operation below the faces is given its moment; pass now=")
    return milliseconds(now)
