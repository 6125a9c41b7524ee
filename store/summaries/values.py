"""What goes to a summarizer, what comes from it, and how a summary looks in a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple, TypeVar

from ..messages import Message

TIMED_OUT_NOTICE = "Summary generation timed out, keeping recent history only."
"""What stands in the place of a summary that came too late (S4.34)."""


class KeyAction(NamedTuple):
    """What a tool was used for and what came of it; ``result`` reads on from the tool's name (S3.13)."""

    tool: str
    result: str


class FileChange(NamedTuple):
    """A file that was ``created``, ``modified`` or ``deleted`` (S3.13)."""

    path: str
    action: str


class Summary(NamedTuple):
    """Text standing for messages; ``model`` and ``prompt_version`` tell what made it."""

    body: str
    title: str | None = None
    key_actions: tuple[KeyAction, ...] = ()
    file_changes: tuple[FileChange, ...] = ()
    model: str | None = None
    prompt_version: str | None = None


class SummaryRequest(NamedTuple):
    """What a summarizer is given: the raw messages of positions ``first`` to ``last``, and what it may make of them.

    ``prompt`` holds the transcript, the previous summary and the limit already; times are ms since the epoch.
    """

    messages: Sequence[Message]
    previous_summary: str | None
    transcript: str
    prompt: str
    max_chars: int
    first: int
    last: int
    parts_to_keep: tuple[str, ...] = ("text",)
    started_at: int | None = None
    ended_at: int | None = None


Summarizer = Callable[[SummaryRequest], str | Summary]


def title(started_at: int | None, ended_at: int | None) -> str:
    """Return the title of a summary from two moments in ms, in UTC (S3.34).

    Within a day the hours are enough, else the days are said too (A3.18); where a moment is unknown the other serves.
    """
    start, end = _moment(started_at), _moment(ended_at)
    start, end = start or end, end or start
    if start is None or end is None:
        return "Summary of conversation"
    form = "%H:%M" if start.date() == end.date() else "%Y-%m-%d %H:%M"
    return f"Summary of conversation from {start:{form}} to {end:{form}}"


def _moment(milliseconds: int | None) -> datetime | None:
    if milliseconds is None:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:  # a time that no calendar has is as good as none
        return None


BODY_HEADING = "**Summary:**\n"
ACTIONS_HEADING = "**Key Actions:**"
CHANGES_HEADING = "**Files Changed:**"


def rendered(summary: Summary) -> str:
    """Return the text that is placed into a view: the layout of S3.49 where there is more than a body."""
    sections = [f"# {summary.title}"] if summary.title else []
    if summary.key_actions:
        sections.append("\n".join([ACTIONS_HEADING, *map(action_line, summary.key_actions)]))
    if summary.file_changes:
        sections.append("\n".join([CHANGES_HEADING, *map(change_line, summary.file_changes)]))
    if summary.body:
        listed = summary.key_actions or summary.file_changes
        sections.append(f"{BODY_HEADING}{summary.body}" if listed else summary.body)
    return "\n\n".join(sections)


def rendered_size(summary: Summary) -> int:
    """Return the code points of a summary in a view, title aside: what its limit is about (A3.6)."""
    return len(rendered(summary._replace(title=None)))


def action_line(action: KeyAction) -> str:
    """Return the line of a key action (S3.49)."""
    if not action.result:
        return f"- Used `{action.tool}`"
    return f"- Used `{action.tool}`{' ' if action.result.startswith('to ') else ': '}{action.result}"


def change_line(change: FileChange) -> str:
    """Return the line of a file change (S3.49)."""
    return f"- {change.path} ({change.action})"


Item = TypeVar("Item")


def newest(items: Sequence[Item], line: Callable[[Item], str], room: int) -> tuple[Item, ...]:
    """Return as many of the last items as have room for their lines, a heading and the space around it."""
    room -= len(f"{CHANGES_HEADING}\n\n")
    sizes = accumulate(len(line(item)) + 1 for item in reversed(items))
    count = next((index for index, size in enumerate(sizes) if size > room), len(items))
    return tuple(items[len(items) - count :])
