"""Where Claude Code compacted a session: a message of the user's tells all that was said before.

Newer programs keep some of the last messages in sight, and say which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ...messages import Message
from ...text import Fields
from ..events import Beside, Compacted, Event, Said, fields_of, list_of
from ..shelf import Numbers


def said(messages: Iterable[Message], *, compacts: bool) -> Iterator[Event]:
    """Yield the messages and, if the program compacts the context, the range of each summary."""
    places = Numbers()
    for place, message in enumerate(messages):
        yield Said(message)
        facts = message["claude_code"]
        if facts.get("isCompactSummary") is True:
            through = _first_preserved(fields_of(facts.get("compactMetadata")), places, place)
            yield from [Compacted(through)] if through else []
        for uuid in (
            [each for key in ("uuids", "copies") for each in facts.get(key, ()) if each]
            if compacts
            else ()
        ):
            places.setdefault(uuid, place)


def with_beside(
    events: Iterable[Event],
    places: Mapping[int, list[int]],
    rows_at: Callable[[list[int]], list[Fields]],
) -> Iterator[Event]:
    """Yield events, and after the n-th message the rows kept beside it, from ``places[n]``."""
    count = 0
    for event in events:
        yield event
        count += isinstance(event, Said)
        if isinstance(event, Said) and count in places:
            yield Beside(rows_at(places[count]))


def _first_preserved(told: Fields, places: Numbers, count: int) -> int:
    """Return how many messages stand before those that were kept in sight, all where none were."""
    kept = [fields_of(told.get("preservedSegment")).get("headUuid")]
    kept += list_of(fields_of(told.get("preservedMessages")).get("uuids"))
    found = (places.get(each) for each in kept if isinstance(each, str))
    return min((place for place in found if place is not None), default=count)
