"""Moments as ms since the epoch, days and time zones by their names.

Only the faces read the clock; everything below gets its ``now`` from them.
"""

from __future__ import annotations

import math
import re
import time
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple, TypeGuard

from .errors import InvalidValue, quote_value

Now = int | float | datetime | None
"""A moment as a caller may give it: ms since the epoch, an aware datetime, None for the present."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SECONDS_LIMIT = 10**11
"""A number below it counts seconds: as ms it would be before March 1973, as seconds up to 5138."""

ONE_DAY = timedelta(days=1)

LONGEST_TIME = 2**62
"""The limit of moments (ms) in calculations: a farther one is as good, and columns hold this."""

_DAYS_AGO = re.compile(r"(\d{1,4})\s*(?:d|days?)(?: ago)?")
_DAY_WORDS = {"today": 0, "yesterday": 1}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Day(NamedTuple):
    """A day here, from its first moment (ms) to the first of the next day."""

    name: str
    first: int
    end: int

    def has(self, at: int) -> bool:
        """Tell whether a moment (ms) is on the day."""
        return self.first <= at < self.end


def resolve_now(now: Now) -> int:
    """Return a moment in ms since the epoch, rounded up; None is the present.

    Raises InvalidValue for a time without a zone, for a value that is not a moment, and for a
    number that counts seconds.
    """
    if now is None:
        return time.time_ns() // 1_000_000
    if isinstance(now, datetime):
        return -((EPOCH - _require_zone(now)) // timedelta(milliseconds=1))
    if not _is_finite(now) or abs(now) >= 2**63:
        raise InvalidValue(
            f"a time must be ms since the epoch or an aware datetime, not {quote_value(now)}"
        )
    if now < SECONDS_LIMIT:
        raise InvalidValue(
            f"a time must be ms since the epoch, but {now!r} looks like seconds; "
            "pass time.time() * 1000, an aware datetime, or nothing for the present"
        )
    return math.ceil(now)


def format_moment(at: int) -> str:
    """Return a moment (ms) as UTC to the minute; as a number if no calendar has it."""
    try:
        return f"{EPOCH + timedelta(milliseconds=at):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return str(at)


def parse_moment(value: object) -> int | None:
    """Return the moment (ms) in a value of a message, None if it has none.

    Numbers are ms, floored, or seconds if they are below 10^11; texts are ISO 8601 with a zone, and
    datetimes have one.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return None if value.tzinfo is None else round(_require_zone(value).timestamp() * 1000)
    if not _is_finite(value):
        return None
    if abs(value) < SECONDS_LIMIT:
        return round(value * 1000)
    whole = math.floor(value)
    return whole if -(2**63) <= whole < 2**63 else None


def parse_day(text: str, today: date) -> Day:
    """Return the day that a text names, in the zone of this machine. Raises InvalidValue."""
    wanted = text.strip().lower()
    days = _count_days_ago(wanted, today)
    try:
        day = datetime.fromisoformat(wanted).date() if days is None else today - timedelta(days)
        begins = [datetime.combine(each, datetime.min.time()) for each in (day, day + ONE_DAY)]
        first, end = (resolve_now(each.astimezone()) for each in begins)
    except (ValueError, OverflowError):
        raise InvalidValue(
            "day must be today, yesterday, monday … sunday, an age such as 3d, or a date"
            f" such as 2026-03-14, not {text!r}"
        ) from None
    return Day(day.isoformat(), first, end)


def _count_days_ago(wanted: str, today: date) -> int | None:
    if wanted in _WEEKDAYS:
        return (today.weekday() - _WEEKDAYS.index(wanted)) % 7
    ago = _DAYS_AGO.fullmatch(wanted)
    return int(ago[1]) if ago else _DAY_WORDS.get(wanted)


def is_moment(value: object) -> TypeGuard[int]:
    """Tell a whole number of ms that is already a moment, as most are."""
    return type(value) is int and SECONDS_LIMIT <= value < 2**63


def shift_moment(moment: int, time: int) -> int:
    """Return the moment so many ms later, earlier for a negative time, within `LONGEST_TIME`."""
    return max(-LONGEST_TIME, min(moment + time, LONGEST_TIME))


def _require_zone(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise InvalidValue(f"{now!r} has no time zone; add one, or pass ms since the epoch")
    return now


def _is_finite(now: object) -> TypeGuard[int | float]:
    if isinstance(now, bool) or not isinstance(now, int | float):
        return False
    return isinstance(now, int) or math.isfinite(now)


def require_moment(now: Now) -> int:
    """Return the moment that a face passed down, in ms."""
    if now is None:
        raise InvalidValue("an internal operation needs its time; pass now=")
    return now if type(now) is int else resolve_now(now)


def check_zone_name(name: str) -> str:
    """Return the name of a time zone. Raises ValueError if there is no such zone."""
    try:
        load_zone(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("no time zone has this name here (tzdata may be missing)") from error
    return name


def load_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name; UTC is known everywhere."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)
