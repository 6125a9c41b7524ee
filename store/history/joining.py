"""Messages that stand at several positions, put together again.

A message of another format may be several rows (how: `store.formats`); each says which part of how
many it is. What went in is known by its last position, so whoever goes back there has all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import VERIFY, Damaged
from ..messages import WIRE
from ..records import StoredMessage


class Part(NamedTuple):
    """Which part of a message a row is, counted from 0, and how many there are."""

    number: int = 0
    of: int = 1


WHOLE = Part()


def part_of(row: StoredMessage, wire_format: str | None) -> Part:
    """Return which part of a message a row is."""
    held = row.message.get(WIRE) if wire_format else None
    if not isinstance(held, dict) or "part" not in held:
        return WHOLE
    try:
        number, of = held["part"]
        if 0 <= number < of:
            return Part(number, of)
    except (TypeError, ValueError) as error:
        raise _no_part(row) from error
    raise _no_part(row)


def _no_part(row: StoredMessage) -> Damaged:
    return Damaged(f"position {row.seq} is not part of a message; {VERIFY}")


def joined(rows: list[StoredMessage], formats: Sequence[str | None]) -> list[StoredMessage]:
    """Return rows, each with the format in which it came, as the messages that went in."""
    if not any(formats):
        return rows
    return [_whole(*each) for each in _groups(rows, formats)]


def _groups(
    rows: list[StoredMessage], formats: Sequence[str | None]
) -> Iterator[tuple[list[StoredMessage], str | None]]:
    """Yield the rows of each message."""
    group: list[StoredMessage] = []
    before: tuple[str | None, Part] = (None, WHOLE)
    for row, wire_format in zip(rows, formats, strict=True):
        place = (wire_format, part_of(row, wire_format))
        if group and place != _next(*before):
            yield group, before[0]
            group = []
        group.append(row)
        before = place
    if group:
        yield group, before[0]


def _next(wire_format: str | None, part: Part) -> tuple[str | None, Part]:
    """Return what the row behind a part is, if it is of the same message: none is number 0."""
    return wire_format, Part(part.number + 1, part.of)


def _whole(rows: list[StoredMessage], wire_format: str | None) -> StoredMessage:
    last = rows[-1]
    if wire_format is None:
        return last
    from ..formats import given_back

    return last._replace(message=given_back(wire_format, [each.message for each in rows]))
