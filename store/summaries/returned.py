"""What a summarizer gave back, made fit to be stored: it may be anything at all."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from ..ready import PHRASES, Language, phrase
from .texts import cut_at_line_end, flatten_to_line, scrub_text
from .values import (
    BODY_HEADING,
    FileChange,
    KeyAction,
    Summary,
    SummaryRequest,
    measure_summary,
    newest_with_room,
    render_action,
    render_change,
    render_summary,
)

EMPTY_SUMMARY_ERROR = PHRASES["empty_summary"]["zh"]
"""What is said of an empty answer where the policy speaks Chinese."""

_LABEL = re.compile(r"\A\s*对话摘要\s*[:：]")
_PAIRS_READ = 100_000
_WORD_LIMIT = 500


def normalize_summary(result: object, request: SummaryRequest) -> Summary:
    """Return what a summarizer gave as a clean summary within the request's limit.

    The title does not count. A text that is too long is cut; of lists that are too long a view
    shows the last entries. Raises ValueError, naming the problem, for anything but text and
    `Summary`, and for a body with nothing to read in it.
    """
    language = request.policy.language
    summary = _cleaned(_summary(result), language)
    return _bounded(summary, request.max_chars, language)


def _summary(result: object) -> Summary:
    if inspect.iscoroutine(result):
        result.close()
    if isinstance(result, str):
        return Summary(result)
    if not isinstance(result, Summary):
        raise ValueError(
            f"a summarizer returns text or a Summary, this one returned {_type(result)}"
        )
    if not isinstance(result.body, str):
        raise ValueError(f"the body of a summary is text, this one is {_type(result.body)}")
    return result


def _type(value: object) -> str:
    return type(value).__name__


def _says_something(text: str) -> bool:
    """Tell whether there is anything to see.

    White space, invisible characters and the bare label are nothing.
    """
    said = _LABEL.sub("", text)
    return any(each.isprintable() and not each.isspace() for each in said)


def _cleaned(summary: Summary, language: Language) -> Summary:
    return Summary(
        _body(summary, language),
        _optional(summary.title, "the title"),
        tuple(KeyAction(*pair) for pair in _pairs(summary.key_actions, "key actions")),
        tuple(FileChange(*pair) for pair in _pairs(summary.file_changes, "file changes")),
        _optional(summary.model, "the model"),
        _optional(summary.prompt_version, "the prompt version"),
        shown=_shown(summary),
    )


def _shown(summary: Summary) -> str | None:
    """Return what a view shows of a summary, where a summarizer says so."""
    if summary.shown is None:
        return None
    if not isinstance(summary.shown, str):
        raise ValueError(f"what is shown of a summary is text, this is {_type(summary.shown)}")
    return scrub_text(summary.shown).strip() or None


def _body(summary: Summary, language: Language) -> str:
    body = scrub_text(summary.body).strip()
    if not _says_something(body):
        raise ValueError(phrase("empty_summary", language))
    return body


def _optional(value: object, what: str) -> str | None:
    if value is None:
        return None
    return _word(value, what) or None


Pair = tuple[str, str]


def _pairs(given: Iterable[Any], what: str) -> Iterator[Pair]:
    part = f"the {what}"
    for first, second in _given_pairs(given, what):
        yield _word(first, part), _word(second, part)


def _given_pairs(given: Iterable[Any], what: str) -> list[Any]:
    try:
        return [(first, second) for first, second in islice(given, _PAIRS_READ)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"the {what} of a summary are a list of pairs of texts") from error


def _word(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} of a summary must be text, this is {_type(value)}")
    return flatten_to_line(scrub_text(value), _WORD_LIMIT)


def _bounded(summary: Summary, max_chars: int, language: Language) -> Summary:
    """Cut the body where it alone is too long, then let the lists have what it leaves."""
    if measure_summary(summary, language) <= max_chars:
        return summary
    body = cut_at_line_end(summary.body, max_chars)
    if summary.shown is not None:
        return summary._replace(body=body, shown=cut_at_line_end(summary.shown, max_chars))
    bare = summary._replace(body=body, key_actions=(), file_changes=())
    room = max_chars - len(bare.body) - len(BODY_HEADING)
    changes = newest_with_room(summary.file_changes, render_change, room)
    room -= measure_summary(Summary("", file_changes=changes))
    actions = newest_with_room(
        summary.key_actions, partial(render_action, language=language), room - 2
    )
    shown = bare._replace(key_actions=actions, file_changes=changes)
    return summary._replace(body=body, shown=render_summary(shown, language))
