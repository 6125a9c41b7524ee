"""Where Copilot CLI compacted a session: between two events, while the session went on."""

from __future__ import annotations

from collections.abc import Iterable

from ...text import Fields
from ..events import Compacted, text_of

BEGUN, DONE = "session.compaction_start", "session.compaction_complete"


def compactions_on(path: Iterable[tuple[Fields, bool]]) -> dict[int, Compacted]:
    """Return the compactions of a path of events, each under the number of messages before it.

    Each event comes with a flag, true for a message. Messages written during a compaction stay in
    sight.
    """
    found: dict[int, Compacted] = {}
    count = begun = 0
    for event, is_said in path:
        count += is_said
        if event["type"] == BEGUN:
            begun = count
        if event["type"] == DONE:
            found |= _at(count, begun or count, event["data"])
            begun = 0
    return found


def _at(count: int, through: int, data: Fields) -> dict[int, Compacted]:
    summary = text_of(data.get("summaryContent"))
    return {count: Compacted(through, summary)} if summary and through else {}
