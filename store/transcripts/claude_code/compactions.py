"""Where Claude Code compacted a session: a message of the user's tells all that was said before.

Newer programs keep some of the last messages in sight, and say which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ...messages import Message
from ...text import JsonFields
from ..events import CompactionEvent, Event, SessionMessage, SideRowsEvent, get_fields, get_list
from ..shelf import KeyNumbers


def add_summary_ranges(messages: Iterable[Message], *, compacts: bool) -> Iterator[Event]:
    """Yield the messages and, if the program compacts the context, the range of each summary."""
    places = KeyNumbers()
    for place, message in enumerate(messages):
        yield SessionMessage(message)
        facts = message["claude_code"]
        if facts.get("isCompactSummary") is True:
            through = _count_before_preserved(
                get_fields(facts.get("compactMetadata")), places, place
            )
            yield from [CompactionEvent(through)] if through else []
        for uuid in (
            [each for key in ("uuids", "copies") for each in facts.get(key, ()) if each]
            if compacts
            else ()
        ):
            places.setdefault(uuid, place)


def add_side_rows(
    events: Iterable[Event],
    places: Mapping[int, list[int]],
    rows_at: Callable[[list[int]], list[JsonFields]],
) -> Iterator[Event]:
    """Yield events, and after the n-th message the rows kept beside it, from ``places[n]``."""
    count = 0
    for event in events:
        yield event
        count += isinstance(event, SessionMessage)
        if isinstance(event, SessionMessage) and count in places:
            yield SideRowsEvent(rows_at(places[count]))


def _count_before_preserved(told: JsonFields, places: KeyNumbers, count: int) -> int:
    """Return how many messages stand before those that were kept in sight, all where none were."""
    kept = [get_fields(told.get("preservedSegment")).get("headUuid")]
    kept += get_list(get_fields(told.get("preservedMessages")).get("uuids"))
    found = (places.get(each) for each in kept if isinstance(each, str))
    return min((place for place in found if place is not None), default=count)
