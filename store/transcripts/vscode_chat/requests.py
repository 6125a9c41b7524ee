"""A request of VS Code's chat as messages: what was asked, each answer, the results of its calls.

An agent keeps the rounds of its model (``toolCallRounds``), with arguments and results as they
were. Else there is only what the screen showed: markdown, thoughts, and tools that were used. What
else a request says is kept under one extra key, ``vscode_chat``, of the question.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...messages import Message
from ...text import JsonFields
from ..events import drop_empty_fields, drop_keys, get_fields, get_list, get_text
from .parts import parse_shown_answers
from .results import render_vscode_result

PENDING_ANSWER_STATES = (0, 4)
"""States of an answer that is still being written: it is pending, or it needs input."""

_REQUEST_MESSAGE_KEYS = ("requestId", "message", "response", "timestamp", "agent", "result")
_ROUNDS_METADATA_KEYS = ("toolCallRounds", "toolCallResults")
_ROUND_MESSAGE_KEYS = ("response", "toolCalls", "thinking", "timestamp")


def is_vscode_request(value: object) -> bool:
    """Tell whether a JSON value is a request whose question can be read."""
    return _find_request_text(get_fields(value)) is not None


def is_pending_request(request: JsonFields) -> bool:
    """Tell whether the answer to a request is still being written."""
    return get_fields(request.get("modelState")).get("value") in PENDING_ANSWER_STATES


def parse_vscode_request(name: str, request: JsonFields) -> list[Message]:
    """Return the messages of a request; while its answer is being written, only the question."""
    result = get_fields(request.get("result"))
    told = {
        **result,
        "metadata": drop_empty_fields(
            drop_keys(_find_result_metadata(request), *_ROUNDS_METADATA_KEYS)
        ),
    }
    agent = get_fields(request.get("agent")).get("id")
    extra = {
        **drop_keys(request, *_REQUEST_MESSAGE_KEYS),
        "agent": agent,
        "result": drop_empty_fields(told),
    }
    question = (
        {
            "role": "user",
            "content": _find_request_text(request) or "",
            "vscode_chat": drop_empty_fields(extra),
        }
        | {"id": name}
        | _parse_vscode_timestamp(request)
    )
    if is_pending_request(request):
        return [question]
    rounds = list(map(get_fields, get_list(_find_result_metadata(request).get("toolCallRounds"))))
    answers = list(
        _parse_tool_rounds(rounds, request) if rounds else parse_shown_answers(name, request)
    )
    for number, message in enumerate(answers, 1):
        message["id"] = f"{name}-{number}"
    _add_vscode_cost(answers, request)
    return [question, *(_parse_vscode_timestamp(request) | answer for answer in answers)]


def find_request_model(request: JsonFields) -> str | None:
    """Return the model that answered."""
    return get_text(request.get("modelId"))


def _find_request_text(request: JsonFields) -> str | None:
    asked = request.get("message")
    text = asked if isinstance(asked, str) else get_fields(asked).get("text")
    return text if isinstance(text, str) else None


def _find_result_metadata(request: JsonFields) -> JsonFields:
    return get_fields(get_fields(request.get("result")).get("metadata"))


def _parse_vscode_timestamp(fields: JsonFields) -> JsonFields:
    """Return when something was said, in ms; nothing where it does not tell."""
    moment = fields.get("timestamp")
    return {"timestamp": moment} if type(moment) is int and 0 < moment < 2**53 else {}


def _parse_tool_rounds(rounds: list[JsonFields], request: JsonFields) -> Iterator[Message]:
    results = get_fields(_find_result_metadata(request).get("toolCallResults"))
    for each in rounds:
        calls = list(map(get_fields, get_list(each.get("toolCalls"))))
        thinking = get_fields(each.get("thinking"))
        thought = thinking.get("text")
        extra = drop_keys(each, *_ROUND_MESSAGE_KEYS) | {"thinking": drop_keys(thinking, "text")}
        more = {
            "tool_calls": list(map(_parse_round_call, calls)),
            "reasoning_content": "\n".join(map(str, thought))
            if isinstance(thought, list)
            else thought,
            "vscode_chat": drop_empty_fields(extra),
        }
        said: Message = {"role": "assistant", "content": get_text(each.get("response"))}
        yield (said | _parse_vscode_timestamp(each) | drop_empty_fields(more))
        names = (get_text(call.get("id")) for call in calls)
        yield from (
            {"role": "tool", "tool_call_id": name, "content": render_vscode_result(results[name])}
            for name in names
            if name in results
        )


def _parse_round_call(call: JsonFields) -> JsonFields:
    name = get_text(call.get("name")) or ""
    function = {"name": name, "arguments": get_text(call.get("arguments")) or "{}"}
    return {"id": get_text(call.get("id")) or "", "type": "function", "function": function}


def _add_vscode_cost(answers: list[Message], request: JsonFields) -> None:
    """Add to the last answer what the file tells once of all: who answered, and its tokens."""
    result = get_fields(request.get("result"))
    usage = get_fields(request.get("usage")) or result.get("usage")
    told = drop_empty_fields({"model": find_request_model(request), "usage": usage})
    last = [answer for answer in answers if answer["role"] == "assistant"][-1:]
    for answer in last if told else ():
        answer["vscode_chat"] = answer.get("vscode_chat", {}) | told
