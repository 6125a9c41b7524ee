"""Summaries and the requests for them, the check of a returned summary, and its text in a view."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from ..messages import Message
from ..phrases import PHRASES, REQUIRED, Language, render_phrase
from ..policy import Policy
from ..tools import TOOL_KINDS
from .message_texts import count_fitting, cut_at_line_end, flatten_to_line, scrub_text

DEFAULT_POLICY = Policy(language="en")
"""The policy of a request that was given none."""
TIMED_OUT_NOTICE = REQUIRED["timed_out"].text
"""The notice in place of a summary that came too late."""
EMPTY_SUMMARY_ERROR = PHRASES["empty_summary"]["zh"]
"""The error for an empty answer where the policy's language is Chinese."""

_LABEL = re.compile(r"\A\s*对话摘要\s*[:：]")
_PAIRS_READ = 100_000
_ITEM_LIMIT = 500


class KeyAction(NamedTuple):
    """The use of a tool and its outcome.

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

    ``notice`` is the end of the body where it says why there is no summary of the last messages;
    the next summary does not carry it on. ``shown`` is the text in a view where that is less than
    the whole summary: what the store found out itself is kept with a summarizer's text.
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
    """The input of a summarizer: the raw messages of positions ``first`` to ``last``.

    ``prompt`` already holds the transcript, the previous summary and the limit; times are ms since
    the epoch; ``policy`` gives the kind of a tool, before the store's ``tool_kinds``, and decides
    which results failed. ``turn_goes_on``: the last turn in the messages is not finished, the
    messages after them continue it. Files below ``project_root`` are shown relative to it.
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
    policy: Policy = DEFAULT_POLICY
    tool_kinds: Mapping[str, str] = TOOL_KINDS
    turn_goes_on: bool = False
    project_root: str | None = None


Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Makes a summary; an AsyncStore awaits an awaitable result."""


def build_title(started_at: int | None, ended_at: int | None, zone: tzinfo = UTC) -> str:
    """Return the title of a summary from two moments in ms, as clocks of a zone show them.

    Where a moment is unknown, the other is used for both. Within a day the hours are enough.
    """
    start = convert_to_datetime(started_at) or convert_to_datetime(ended_at)
    end = convert_to_datetime(ended_at) or start
    if start is None or end is None:
        return REQUIRED["title"].text
    start, end = start.astimezone(zone), end.astimezone(zone)
    form = "%H:%M" if start.date() == end.date() else "%Y-%m-%d %H:%M"
    times = REQUIRED["times"].text.format(start=f"{start:{form}}", end=f"{end:{form}}")
    return f"{REQUIRED['title'].text} {times}"


def convert_to_datetime(milliseconds: int | None) -> datetime | None:
    """Return a moment in UTC; None for none, and for a time that no calendar has."""
    if milliseconds is None:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


# The text of a summary in a view.

PURPOSE_BEGINNINGS: Mapping[Language, tuple[str, ...]] = {
    "en": ("to ",),
    "zh": tuple(render_phrase(code, "zh", target="") for code in PHRASES if code.startswith("to_")),
}
"""The beginnings of the purpose of a tool."""

BODY_HEADING = REQUIRED["body"].text + "\n"
ACTIONS_HEADING = REQUIRED["actions"].text
CHANGES_HEADING = REQUIRED["changes"].text


def render_summary(summary: Summary, language: Language = "en") -> str:
    """Return the text of a summary in a view.

    The body has a heading only after lists.
    """
    if summary.shown is not None:
        return summary.shown
    parts = [f"# {summary.title}"] if summary.title else []
    actions = [render_action(action, language) for action in summary.key_actions]
    if actions:
        parts.append("\n".join([ACTIONS_HEADING, *actions]))
    changes = [render_change(change) for change in summary.file_changes]
    if changes:
        parts.append("\n".join([CHANGES_HEADING, *changes]))
    if summary.body:
        parts.append(f"{BODY_HEADING if actions or changes else ''}{summary.body}")
    return "\n\n".join(parts)


def measure_summary(summary: Summary, language: Language = "en") -> int:
    """Return the code points of a summary in a view without its title: its limit counts these."""
    title = f"# {summary.title}\n\n" if summary.title else ""
    return len(render_summary(summary, language).removeprefix(title))


def render_action(action: KeyAction, language: Language = "en") -> str:
    """Return the line of a key action; the purpose of a tool reads on from its name.

    A summarizer may write the purpose in English, whatever the language (S3.49).
    """
    languages = (
        each for each in PURPOSE_BEGINNINGS if action.result.startswith(PURPOSE_BEGINNINGS[each])
    )
    purpose_language = next(languages, None)
    used = "- " + render_phrase("used", purpose_language or language, tool=f"`{action.tool}`")
    if not action.result:
        return used
    between = " " if purpose_language else render_phrase("colon", language)
    return f"{used}{between}{action.result}"


def render_change(change: FileChange) -> str:
    """Return the line of a file change."""
    return "- " + REQUIRED["change"].text.format(path=change.path, action=change.action)


ListEntryT = TypeVar("ListEntryT", KeyAction, FileChange)


def select_newest_fitting(
    entries: Sequence[ListEntryT], line_of: Callable[[ListEntryT], str], room: int
) -> tuple[ListEntryT, ...]:
    """Return as many of the last entries as fit with their lines and a heading."""
    room -= len(f"{CHANGES_HEADING}\n\n")
    sizes = (len(line_of(entry)) + 1 for entry in reversed(entries))
    first = len(entries) - count_fitting(sizes, room)
    return tuple(entries[first:])


# The check of a returned summary, which may be any object at all.


def normalize_summary(result: object, request: SummaryRequest) -> Summary:
    """Return the result of a summarizer as a clean summary within the request's limit.

    The title does not count. A text that is too long is cut; of lists that are too long a view
    shows the last entries. Raises ValueError, naming the problem, for anything but text and
    `Summary`, and for a body with nothing to read in it.
    """
    if inspect.iscoroutine(result):
        result.close()
    if isinstance(result, str):
        result = Summary(result)
    if not isinstance(result, Summary):
        raise ValueError(
            f"a summarizer returns text or a Summary, this one returned {_name_type(result)}"
        )
    if not isinstance(result.body, str):
        raise ValueError(f"the body of a summary is text, this one is {_name_type(result.body)}")
    language = request.policy.language
    body = scrub_text(result.body).strip()
    # White space, invisible characters and the bare label are nothing to read.
    if not any(each.isprintable() and not each.isspace() for each in _LABEL.sub("", body)):
        raise ValueError(render_phrase("empty_summary", language))
    actions, changes = "key actions", "file changes"
    summary = Summary(
        body,
        _clean_item(result.title, "the title"),
        tuple(KeyAction(*pair) for pair in _clean_pairs(result.key_actions, actions)),
        tuple(FileChange(*pair) for pair in _clean_pairs(result.file_changes, changes)),
        _clean_item(result.model, "the model"),
        _clean_item(result.prompt_version, "the prompt version"),
    )
    if result.shown is not None:
        if not isinstance(result.shown, str):
            raise ValueError(
                f"what is shown of a summary is text, this is {_name_type(result.shown)}"
            )
        summary = summary._replace(shown=scrub_text(result.shown).strip() or None)
    if measure_summary(summary, language) <= request.max_chars:
        return summary
    return _fit_to_limit(summary, request.max_chars, language)


def _name_type(value: object) -> str:
    return type(value).__name__


def _clean_item(value: object, name: str) -> str | None:
    """Return an optional text in one line, None for an empty one."""
    return None if value is None else _clean_text(value, name) or None


def _clean_pairs(pairs: Iterable[Any], name: str) -> Iterator[tuple[str, str]]:
    try:
        read = [(first, second) for first, second in islice(pairs, _PAIRS_READ)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"the {name} of a summary are a list of pairs of texts") from error
    for first, second in read:
        yield _clean_text(first, f"the {name}"), _clean_text(second, f"the {name}")


def _clean_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} of a summary must be text, this is {_name_type(value)}")
    return flatten_to_line(scrub_text(value), _ITEM_LIMIT)


def _fit_to_limit(summary: Summary, max_chars: int, language: Language) -> Summary:
    """Cut the body where it alone is too long, then give the lists the room that it leaves."""
    body = cut_at_line_end(summary.body, max_chars)
    if summary.shown is not None:
        return summary._replace(body=body, shown=cut_at_line_end(summary.shown, max_chars))
    bare = summary._replace(body=body, key_actions=(), file_changes=())
    room = max_chars - len(bare.body) - len(BODY_HEADING)
    changes = select_newest_fitting(summary.file_changes, render_change, room)
    room -= measure_summary(Summary("", file_changes=changes))
    line_of = partial(render_action, language=language)
    actions = select_newest_fitting(summary.key_actions, line_of, room - 2)
    shown = bare._replace(key_actions=actions, file_changes=changes)
    return summary._replace(body=body, shown=render_summary(shown, language))
