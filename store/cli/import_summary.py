"""What an import brought, in a few lines: programs, tokens, cost, tools, and the newest session."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from .. import Store
from ..errors import SessionNotFound
from ..importing import ImportReport
from ..text import format_count
from . import render
from .options import fill_titles, list_every_session
from .terminal import CUT_MARK

MAX_NAMES = 5
"""Programs and tools that are named, at most."""
NAME_WIDTH = 10
"""Columns for the name of a line."""


def summarize_import(store: Store, reports: list[ImportReport]) -> list[str]:
    """Return the lines on the sessions with new messages; none if there are no such sessions.

    Tokens and costs are those of whole sessions, calls are counted in new messages only.
    """
    kinds: dict[str, str] = {}
    begins: dict[str, int] = {}
    for report in reports:
        for each in filter(lambda session: session.appended, report.sessions):
            kinds.setdefault(each.id, report.kind)
            begins.setdefault(each.id, each.head - each.appended)
    if not kinds:
        return []
    totals = [each for each in store.usage_totals(by="session") if each.name in kinds]
    lines = {
        "sessions": f"{len(kinds):,}: {_join_counts(Counter(kinds.values()))}",
        "tokens": render.describe_token_sums(totals) if totals else "the files tell none",
        "cost": render.format_costs(totals) or "the files tell none",
        "tools": _join_counts(_count_new_calls(store, begins)) or "none",
        "newest": _describe_newest_session(store, kinds),
    }
    room = render.count_columns() - NAME_WIDTH
    return [
        f"{name:<{NAME_WIDTH}}{render.shorten_to_line(text, room)}" for name, text in lines.items()
    ]


def _count_new_calls(store: Store, begins: dict[str, int]) -> Counter[str]:
    """Return the calls of each tool in the messages after a position of each session."""
    counts: Counter[str] = Counter()
    for session_id, begin in begins.items():
        with suppress(SessionNotFound):  # erased meanwhile
            calls = store.calls(session_id)
            counts.update(each.name or "?" for each in calls if each.seq > begin)
    return counts


def _join_counts(counts: Counter[str]) -> str:
    """Return names with their counts, the most frequent first."""
    named = [f"{name} {count:,}" for name, count in counts.most_common(MAX_NAMES)]
    return ", ".join([*named, CUT_MARK] if len(counts) > MAX_NAMES else named)


def _describe_newest_session(store: Store, kinds: dict[str, str]) -> str:
    """Return the title, the program, the length and the time of the session last active."""
    found = [next(each for each in list_every_session(store) if each.id in kinds)]
    (newest,) = fill_titles(store, found)
    title = render.shorten_to_line(newest.title or newest.id, 32)
    length = format_count(newest.head, "message")
    moment = render.format_moment(newest.updated_at)
    return f"{title} ({kinds[newest.id]}, {length}, {moment})"
