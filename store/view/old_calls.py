"""Arguments of old calls, cut: what a model wrote into a file is in the file.

Each text among the arguments keeps its beginning, and the arguments stay the JSON that they were.
"""

from __future__ import annotations

import json
from typing import Any

from ..history import load_calls
from ..messages import Message
from ..ready import Language, phrase
from ..text import shortened
from ..tokens import estimate, message_tokens
from .context import ViewContext
from .log_messages import attempt_rule

LONGEST_TEXT = 100
"""Code points that a text among the arguments keeps."""


def cut_calls(calls: list[Any], language: Language) -> list[Any]:
    """Return calls whose arguments are cut."""
    ellipsis = phrase("ellipsis", language)
    return attempt_rule(
        "arguments", lambda: [_cut_call(call, ellipsis) for call in calls], otherwise=calls
    )


def saved_by_cuts(context: ViewContext, before: int) -> dict[int, int]:
    """Return about how many tokens cuts save, by the positions of messages before one."""
    found: dict[int, int] = {}
    for run in context.shown(context.visible.first_kept, before - 1):
        for seq, calls in load_calls(
            context.connection, run.within(context.pointer.tree_id)
        ).items():
            found[seq] = _tokens(calls) - _tokens(cut_calls(calls, context.policy.language))
    return {seq: saved for seq, saved in found.items() if saved > 0}


def _tokens(calls: list[Any]) -> int:
    message: Message = {"tool_calls": calls}
    return message_tokens(message, estimate)


def _cut_call(call: Any, ellipsis: str) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    return call | {"function": function | _cut_arguments(function.get("arguments"), ellipsis)}


def _cut_arguments(arguments: object, ellipsis: str) -> dict[str, str]:
    """Return what changes of a function that is called with arguments: nothing of short ones."""
    if not isinstance(arguments, str) or len(arguments) <= LONGEST_TEXT:
        return {}
    return {"arguments": _cut_json(arguments, ellipsis)}


def _cut_json(arguments: str, ellipsis: str) -> str:
    """Return JSON with its texts cut; what is none stays, since what it means is not known."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return json.dumps(_cut(value, ellipsis), ensure_ascii=False)


def _cut(value: Any, ellipsis: str) -> Any:
    """Return a value whose texts are cut, however deep."""
    if isinstance(value, str):
        return shortened(value, LONGEST_TEXT, ellipsis=ellipsis)
    if isinstance(value, list):
        return [_cut(each, ellipsis) for each in value]
    if isinstance(value, dict):
        return {key: _cut(each, ellipsis) for key, each in value.items()}
    return value
