"""What goes to a summarizer, what comes from it, and how a summary looks in a view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, TypeVar

from ..messages import Message
from ..policy import Policy
from ..ready import PHRASES, REQUIRED, Language, phrase
from ..tools import TOOL_KINDS
from .texts import count_fitting

ENGLISH = Policy(language="en")
"""What a request goes by that nobody gave a policy."""
TIMED_OUT_NOTICE = REQUIRED["timed_out"].text
"""What stands in place of a summary that came too late."""


class KeyAction(NamedTuple):
    """What a tool was used for and what came of it.

    ``result`` reads on from the tool's name.
    """

    tool: str
    result: str


class FileChange(NamedTuple):
    """A file that was ``created``, ``modified`` or ``deleted``."""

    path: str
    action: str


class Summary(NamedTuple):
    """Text standing for messages; ``model`` and ``prompt_version`` tell what made it.

    ``notice`` is the end of the body where that says why there is no summary of the last messages;
    the next summary does not carry it on. ``shown`` is the text in a view where that is less than
    all of it: what the store found out itself is kept beside what a summarizer wrote.
    """

    body: str
    title: str | None = None
    key_actions: tuple[KeyAction, ...] = ()
    file_changes: tuple[FileChange, ...] = ()
    model: str | None = None
    prompt_version: str | None = None
    notice: str | None = None
    shown: str | None = None


class SummaryRequest(NamedTuple):
    """What a summarizer is given: the raw messages of positions ``first`` to ``last``.

    ``prompt`` holds the transcript, the previous summary and the limit already; times are ms since
    the epoch; ``policy`` says of what kind a tool is, before the store's ``tool_kinds``, and which
    results failed. ``turn_goes_on``: the last turn in the messages is not finished, what follows
    goes on with it. Files below ``project_root`` are told as they are seen from there.
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
    policy: Policy = ENGLISH
    tool_kinds: Mapping[str, str] = TOOL_KINDS
    turn_goes_on: bool = False
    project_root: str | None = None


Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Makes a summary; what has to be awaited for it is awaited where an AsyncStore asks."""


def build_title(started_at: int | None, ended_at: int | None, zone: tzinfo = UTC) -> str:
    """Return the title of a summary from two moments in ms, as clocks of a zone say them.

    Where a moment is unknown, the other stands for both.
    """
    start = moment(started_at) or moment(ended_at)
    end = moment(ended_at) or start
    if start is None or end is None:
        return REQUIRED["title"].text
    return f"{REQUIRED['title'].text} {_span(start.astimezone(zone), end.astimezone(zone))}"


def _span(start: datetime, end: datetime) -> str:
    """Return two moments as text; within a day the hours are enough, else the days are said too."""
    form = "%Y-%m-%d %H:%M"
    if start.date() == end.date():
        form = "%H:%M"
    return REQUIRED["times"].text.format(start=f"{start:{form}}", end=f"{end:{form}}")


def moment(milliseconds: int | None) -> datetime | None:
    """Return a moment in UTC; None for none, and for a time that no calendar has."""
    if milliseconds is None:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


PURPOSES: Mapping[Language, tuple[str, ...]] = {
    "en": ("to ",),
    "zh": tuple(phrase(code, "zh", target="") for code in PHRASES if code.startswith("to_")),
}
"""How it begins what a tool was used for."""

BODY_HEADING = REQUIRED["body"].text + "\n"
ACTIONS_HEADING = REQUIRED["actions"].text
CHANGES_HEADING = REQUIRED["changes"].text


def render_summary(summary: Summary, language: Language = "en") -> str:
    """Return the text that is placed into a view.

    The body has a heading only where lists stand above it.
    """
    if summary.shown is not None:
        return summary.shown
    heading = f"# {summary.title}" if summary.title else ""
    lines = (render_action(action, language) for action in summary.key_actions)
    actions = _listed(ACTIONS_HEADING, lines)
    changes = _listed(CHANGES_HEADING, map(render_change, summary.file_changes))
    body = summary.body
    if body and (actions or changes):
        body = BODY_HEADING + body
    return "\n\n".join(filter(None, (heading, actions, changes, body)))


def _listed(heading: str, lines: Iterable[str]) -> str:
    text = "\n".join([heading, *lines])
    return "" if text == heading else text


def measure_summary(summary: Summary, language: Language = "en") -> int:
    """Return the code points of a summary in a view without its title: what its limit counts."""
    title = f"# {summary.title}\n\n" if summary.title else ""
    return len(render_summary(summary, language).removeprefix(title))


def render_action(action: KeyAction, language: Language = "en") -> str:
    """Return the line of a key action; what a tool was used for reads on from its name.

    A summarizer may say that in English, whatever the language (S3.49).
    """
    begun = (each for each in PURPOSES if action.result.startswith(PURPOSES[each]))
    purpose = next(begun, None)
    used = "- " + phrase("used", purpose or language, tool=f"`{action.tool}`")
    if not action.result:
        return used
    between = " " if purpose else phrase("colon", language)
    return f"{used}{between}{action.result}"


def render_change(change: FileChange) -> str:
    """Return the line of a file change."""
    return "- " + REQUIRED["change"].text.format(path=change.path, action=change.action)


Entry = TypeVar("Entry", KeyAction, FileChange)


def newest_with_room(
    entries: Sequence[Entry], line_of: Callable[[Entry], str], room: int
) -> tuple[Entry, ...]:
    """Return as many of the last entries as have room for their lines and a heading."""
    room -= len(f"{CHANGES_HEADING}\n\n")
    sizes = (len(line_of(entry)) + 1 for entry in reversed(entries))
    first = len(entries) - count_fitting(sizes, room)
    return tuple(entries[first:])
