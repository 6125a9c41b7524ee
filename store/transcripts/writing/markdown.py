"""A session as a page for people: who said what, and when; calls and results folded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...messages import Message, content_text, moment_of
from ...text import Fields, one_line
from ..events import fields_of, list_of
from .about import iso

NAMES = {"user": "User", "assistant": "Assistant", "tool": "Result", "system": "System"}
LINE = 100
"""Characters of what stands on a fold."""


def markdown(title: str, messages: Iterable[Message]) -> Iterator[str]:
    """Yield the paragraphs of a page."""
    yield f"# {_writable(_plain(title))}\n"
    for message in messages:
        yield _writable("\n".join(_paragraphs(message)))


def _writable(text: str) -> str:
    """Return a text without halves of characters, which no file holds."""
    return text.encode("utf-8", "replace").decode()


def _paragraphs(message: Message) -> Iterator[str]:
    """Yield what a message says, under a heading; a result is folded."""
    role = str(message.get("role"))
    text = _text(message.get("content"))
    if role == "tool":
        yield from _folded(f"Result {one_line(text, LINE)}", text)
        return
    yield f"## {NAMES.get(role, role)}{_moment(message)}\n"
    if text:
        yield f"{text}\n"
    for call in map(fields_of, list_of(message.get("tool_calls"))):
        function = fields_of(call.get("function"))
        asked = _asked(function)
        yield from _folded(f"{function.get('name')} {one_line(asked, LINE)}", asked)


def _moment(message: Message) -> str:
    moment = moment_of(message)
    return "" if moment is None else f" · {iso(moment)[:19].replace('T', ' ')}"


def _asked(function: Fields) -> str:
    arguments = function.get("arguments")
    return arguments if isinstance(arguments, str) else _json(arguments)


def _text(content: Any) -> str:
    """Return what a content says; of parts that are no text, what they are."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else _json(content)
    return "\n\n".join(map(_part, content))


def _part(part: Any) -> str:
    text = content_text([part])
    if text or not isinstance(part, dict):
        return text or _json(part)
    return f"*[{part.get('type')}]*"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _folded(head: str, text: str) -> Iterator[str]:
    """Yield a text in a fence that is longer than any it holds, under a line that opens it."""
    runs = re.findall("`{3,}", text)
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    yield f"<details><summary>{_escaped(head)}</summary>\n"
    yield f"{fence}\n{text}\n{fence}\n"
    yield "</details>\n"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    return one_line(text, LINE)
