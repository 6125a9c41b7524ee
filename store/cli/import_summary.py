"""What an import brought, in a few lines: programs, tokens, cost, tools, and the newest session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

from .. import Store
from ..errors import SessionNotFound
from ..importing import ImportReport
from ..records import Session, UsageTotal
from ..text import format_count
from . import render
from .options import fill_titles
from .terminal import CUT_MARK

MAX_NAMES = 5
"""Programs and tools that are named, at most."""
NAME_WIDTH = 10
"""Columns for the name of a line."""


class ImportedFacts(NamedTuple):
    """A session with new messages, its totals by model, and the tools of its new calls."""

    session: Session
    totals: list[UsageTotal]
    tools: Counter[str]


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
    found = [*_load_imported_sessions(store, begins)]
    totals = [total for each in found for total in each.totals]
    tools = sum((each.tools for each in found), Counter[str]())
    lines = {
        "sessions": f"{len(kinds):,}: {_join_counts(Counter(kinds.values()))}",
        "tokens": render.describe_token_sums(totals) if totals else "the files tell none",
        "cost": render.format_costs(totals) or "the files tell none",
        "tools": _join_counts(tools) or "none",
    }
    if found:
        newest = max((each.session for each in found), key=attrgetter("updated_at"))
        lines["newest"] = _describe_newest_session(store, newest, kinds[newest.id])
    room = render.count_columns() - NAME_WIDTH
    return [
        f"{name:<{NAME_WIDTH}}{render.shorten_to_line(text, room)}" for name, text in lines.items()
    ]


def _load_imported_sessions(store: Store, begins: dict[str, int]) -> Iterator[ImportedFacts]:
    """Yield the facts of sessions; calls are counted from the first new message on."""
    for session_id, begin in begins.items():
        with suppress(SessionNotFound):  # erased meanwhile
            calls = (each for each in store.calls(session_id) if each.seq > begin)
            tools = Counter(each.name or "?" for each in calls)
            yield ImportedFacts(store.session(session_id), store.usage_totals(session_id), tools)


def _join_counts(counts: Counter[str]) -> str:
    """Return names with their counts, the most frequent first."""
    named = [f"{name} {count:,}" for name, count in counts.most_common(MAX_NAMES)]
    return ", ".join([*named, CUT_MARK] if len(counts) > MAX_NAMES else named)


def _describe_newest_session(store: Store, session: Session, kind: str) -> str:
    """Return the title, the program, the length and the time of a session."""
    (newest,) = fill_titles(store, [session])
    title = render.shorten_to_line(newest.title or newest.id, 32)
    length = format_count(newest.head, "message")
    return f"{title} ({kind}, {length}, {render.format_moment(newest.updated_at)})"
