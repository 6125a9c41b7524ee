"""Time zones by their names."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_name(name: str) -> str:
    """Return the name of a time zone. Raises ValueError where none has it."""
    try:
        zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("no time zone has this name here (tzdata may be missing)") from error
    return name


def zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name; UTC is known everywhere."""
    return UTC if name == "UTC" else ZoneInfo(name)
