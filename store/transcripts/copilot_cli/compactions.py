"""Where Copilot CLI compacted a session: between two events, while the session went on."""

from __future__ import annotations

from collections.abc import Iterable

from ...text import JsonFields
from ..events import CompactionEvent, get_text

BEGUN, DONE = "session.compaction_start", "session.compaction_complete"


def find_path_compactions(path: Iterable[tuple[JsonFields, bool]]) -> dict[int, CompactionEvent]:
    """Return the compactions of a path of events, each under the number of messages before it.

    Each event comes with a flag, true for a message. Messages written during a compaction stay in
    sight.
    """
    found: dict[int, CompactionEvent] = {}
    count = begun = 0
    for event, is_said in path:
        count += is_said
        if event["type"] == BEGUN:
            begun = count
        if event["type"] == DONE:
            found |= _build_compaction(count, begun or count, event["data"])
            begun = 0
    return found


def _build_compaction(count: int, through: int, data: JsonFields) -> dict[int, CompactionEvent]:
    summary = get_text(data.get("summaryContent"))
    return {count: CompactionEvent(through, summary)} if summary and through else {}
