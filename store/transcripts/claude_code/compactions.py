"""Where Claude Code compacted a session: a message of the user's tells all that was said before.

Newer programs keep some of the last messages in sight, and say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...messages import Message
from ...text import Fields
from ..events import Beside, Compacted, Event, Said, fields_of, list_of


def said(messages: Sequence[Message]) -> Iterator[Event]:
    """Yield what was said, and behind a summary what it stands for."""
    for place, message in enumerate(messages):
        yield Said(message)
        facts = message["claude_code"]
        if facts.get("isCompactSummary") is True:
            through = _first_preserved(fields_of(facts.get("compactMetadata")), messages[:place])
            yield from [Compacted(through)] if through else []


BesideCount = Mapping[int, list[Fields]]
"""What stood beside messages, by how many there are with each."""


def with_beside(events: Iterable[Event], beside: BesideCount) -> Iterator[Event]:
    """Yield events, and behind each message what stood beside it."""
    count = 0
    for event in events:
        yield event
        count += isinstance(event, Said)
        if isinstance(event, Said) and count in beside:
            yield Beside(beside[count])


def _first_preserved(told: Fields, before: Sequence[Message]) -> int:
    """Return how many messages stand before those that were kept in sight, all where none were."""
    kept = [fields_of(told.get("preservedSegment")).get("headUuid")]
    kept += list_of(fields_of(told.get("preservedMessages")).get("uuids"))
    uuids = {each for each in kept if isinstance(each, str)}
    held = (
        place
        for place, message in enumerate(before)
        if not uuids.isdisjoint(_uuids_of(message["claude_code"]))
    )
    return next(held, len(before))


def _uuids_of(facts: Fields) -> list[str]:
    return [each for key in ("uuids", "copies") for each in facts.get(key, ()) if each]
