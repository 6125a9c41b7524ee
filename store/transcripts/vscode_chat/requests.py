"""A request of VS Code's chat as messages: what was asked, each answer, the results of its calls.

An agent keeps the rounds of its model (``toolCallRounds``), with arguments and results as they
were. Else there is only what the screen showed: markdown, thoughts, and tools that were used. What
else a request says is kept under one extra key, ``vscode_chat``, of the question.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import fields_of, list_of, telling, text_of, without
from .parts import answers_of
from .results import text_in

PENDING = (0, 4)
"""States of an answer that is still being written: it is pending, or it needs input."""

_SAID = ("requestId", "message", "response", "timestamp", "agent", "result")
_ROUNDS = ("toolCallRounds", "toolCallResults")
_OF_ROUND = ("response", "toolCalls", "thinking", "timestamp")


def is_request(value: object) -> bool:
    """Tell whether a JSON value is a request whose question can be read."""
    return _asked(fields_of(value)) is not None


def is_pending(request: Fields) -> bool:
    """Tell whether the answer to a request is still being written."""
    return fields_of(request.get("modelState")).get("value") in PENDING


def messages_of(name: str, request: Fields) -> list[Message]:
    """Return the messages of a request; while its answer is being written, only the question."""
    result = fields_of(request.get("result"))
    told = {**result, "metadata": telling(without(_metadata(request), *_ROUNDS))}
    agent = fields_of(request.get("agent")).get("id")
    extra = {**without(request, *_SAID), "agent": agent, "result": telling(told)}
    question = (
        {"role": "user", "content": _asked(request) or "", "vscode_chat": telling(extra)}
        | {"id": name}
        | _moment_of(request)
    )
    if is_pending(request):
        return [question]
    rounds = list(map(fields_of, list_of(_metadata(request).get("toolCallRounds"))))
    answers = list(_of_rounds(rounds, request) if rounds else answers_of(name, request))
    for number, message in enumerate(answers, 1):
        message["id"] = f"{name}-{number}"
    _add_cost(answers, request)
    return [question, *(_moment_of(request) | answer for answer in answers)]


def model_of(request: Fields) -> str | None:
    """Return the model that answered."""
    return text_of(request.get("modelId"))


def _asked(request: Fields) -> str | None:
    asked = request.get("message")
    text = asked if isinstance(asked, str) else fields_of(asked).get("text")
    return text if isinstance(text, str) else None


def _metadata(request: Fields) -> Fields:
    return fields_of(fields_of(request.get("result")).get("metadata"))


def _moment_of(fields: Fields) -> Fields:
    """Return when something was said, in ms; nothing where it does not tell."""
    moment = fields.get("timestamp")
    return {"timestamp": moment} if type(moment) is int and 0 < moment < 2**53 else {}


def _of_rounds(rounds: list[Fields], request: Fields) -> Iterator[Message]:
    results = fields_of(_metadata(request).get("toolCallResults"))
    for each in rounds:
        calls = list(map(fields_of, list_of(each.get("toolCalls"))))
        thinking = fields_of(each.get("thinking"))
        thought = thinking.get("text")
        extra = without(each, *_OF_ROUND) | {"thinking": without(thinking, "text")}
        more = {
            "tool_calls": list(map(_call, calls)),
            "reasoning_content": "\n".join(map(str, thought))
            if isinstance(thought, list)
            else thought,
            "vscode_chat": telling(extra),
        }
        said: Message = {"role": "assistant", "content": text_of(each.get("response"))}
        yield (said | _moment_of(each) | telling(more))
        names = (text_of(call.get("id")) for call in calls)
        yield from (_result(name, results[name]) for name in names if name in results)


def _call(call: Fields) -> Fields:
    name = text_of(call.get("name")) or ""
    function = {"name": name, "arguments": text_of(call.get("arguments")) or "{}"}
    return {"id": text_of(call.get("id")) or "", "type": "function", "function": function}


def _result(name: str | None, told: Any) -> Message:
    return {"role": "tool", "tool_call_id": name, "content": text_in(told)}


def _add_cost(answers: list[Message], request: Fields) -> None:
    """Add to the last answer what the file tells once of all: who answered, and its tokens."""
    result = fields_of(request.get("result"))
    usage = fields_of(request.get("usage")) or result.get("usage")
    told = telling({"model": model_of(request), "usage": usage})
    last = [answer for answer in answers if answer["role"] == "assistant"][-1:]
    for answer in last if told else ():
        answer["vscode_chat"] = answer.get("vscode_chat", {}) | told
