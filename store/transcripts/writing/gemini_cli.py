"""Lines of a Gemini CLI session, which `gemini --resume` goes on with.

The loader takes each line with an id as a message, and sends an answer, then the results of its
calls, which the answer's line has. A replaced context (``messages`` in ``$set``) takes the place of
all before it. The program has a system prompt of its own; that of a session is a message of the
user's. It leaves out messages of users that begin with ``/`` or ``?``: those are its commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import count

from ...records import Message
from ...text import JsonFields
from .gemini_contents import ResponseParts, get_content_parts, split_user_parts
from .sessions import TimedMessage, WritableLine, WritableSession, render_iso_moment


def build_gemini_cli_lines(about: WritableSession, told: WritableLine) -> Iterator[JsonFields]:
    """Yield the lines of a session, of contents as Gemini's API takes them."""
    numbers = count()
    yield {
        "sessionId": str(about.id),
        "projectHash": sha256(about.cwd.encode()).hexdigest(),
        "startTime": render_iso_moment(about.began),
        "lastUpdated": render_iso_moment(about.began),
        "kind": "main",
    }
    if about.title:
        yield {"$set": {"summary": about.title}}
    yield from _build_lines(about, numbers, told.hidden)
    if told.stands:
        stands = ((told.hidden_until, each) for each in told.stands)
        yield {"$set": {"messages": [*_build_lines(about, numbers, stands)]}}
    yield from _build_lines(about, numbers, told.said)


def name_gemini_project(cwd: str) -> str:
    """Return the folder that the program makes for a project, if no other project has it."""
    name = re.split(r"[/\\]", cwd.rstrip("/\\"))[-1].lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "project"


def name_gemini_file(about: WritableSession) -> str:
    """Return the name of a session's file in the folder of its project."""
    began = render_iso_moment(about.began)[:16].replace(":", "-")
    return f"session-{began}-{str(about.id)[:8]}.jsonl"


def _build_lines(
    about: WritableSession, numbers: Iterator[int], said: Iterable[TimedMessage]
) -> Iterator[JsonFields]:
    """Yield the lines of contents: an answer waits for the results of its calls."""
    answer: JsonFields | None = None
    for moment, content in said:
        parts = get_content_parts(content)
        if content["role"] == "model":
            yield from filter(None, [answer])
            answer = _build_line(about, next(numbers), moment, "gemini", parts)
            continue
        responses, words = split_user_parts(parts)
        if answer is not None:
            called = [part["functionCall"] for part in answer["content"] if "functionCall" in part]
            answer |= _build_calls(called, responses, render_iso_moment(moment))
            yield answer
            answer = None
        if words:
            yield _build_line(about, next(numbers), moment, "user", words)
    yield from filter(None, [answer])


def _build_line(
    about: WritableSession, number: int, moment: int, kind: str, parts: list[Message]
) -> JsonFields:
    line = {"id": about.row_id(number), "timestamp": render_iso_moment(moment), "type": kind}
    return {**line, "content": parts} | ({"model": about.model} if kind == "gemini" else {})


def _build_calls(
    called: Iterable[JsonFields], responses: Iterable[ResponseParts], moment: str
) -> JsonFields:
    """Return the calls of an answer with their results; nothing where there are none."""
    answered = {each.response["id"]: each for each in responses}
    calls = [
        {
            **{key: call[key] for key in ("id", "name", "args")},
            "result": [{"functionResponse": result.drop_names()}, *result.media],
            "status": result.state,
            "timestamp": moment,
        }
        for call in called
        if (result := answered.get(call["id"]))
    ]
    return {"toolCalls": calls} if calls else {}
