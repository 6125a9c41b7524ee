"""What the providers refuse of a request: the strictest reading of their rules.

Written without looking at the store's formats: pairing, order, ids, taking turns, empty content.
Where a provider's own types are installed, they judge the shapes, too.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from refusals import refusals

Message = dict[str, Any]
WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
USER_BLOCKS = {"text", "image", "document", "search_result", "tool_result", "container_upload"}


def complaints(format_name: str, messages: list[Message], system: Any = None) -> list[str]:
    """Why a provider would refuse a request; open calls at the very end are no reason."""
    found = [*JUDGES[format_name](messages), *_system(format_name, system)]
    try:
        json.dumps([messages, system], ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        found.append(f"cannot be sent: {error}")
    return found


def _system(name: str, system: Any) -> Iterator[str]:
    if system is None:
        return
    if name == "anthropic":
        for block in system:
            if block.get("type") != "text" or not block["text"].strip():
                yield f"system block {block!r:.100}"
    elif name == "gemini":
        if not isinstance(system, str) or not system.strip():
            yield f"system {system!r:.100}"
    else:
        yield f"{name} has no place for system text"


def _ids(ids: list[str], shape: re.Pattern[str]) -> Iterator[str]:
    for name, times in Counter(ids).items():
        if times > 1:
            yield f"id {name!r} {times} times"
        if not isinstance(name, str) or not shape.fullmatch(name):
            yield f"id {name!r}"


def openai(messages: list[Message]) -> Iterator[str]:
    """The chat API."""
    yield from refusals(messages)
    calls = [call for each in messages for call in each.get("tool_calls", ())]
    yield from _ids([call["id"] for call in calls], re.compile(r"(?s).{1,40}"))
    for call in calls:
        name = call[call["type"]]["name"]
        if not WORD.fullmatch(name):
            yield f"name {name!r}"


def anthropic(messages: list[Message]) -> Iterator[str]:  # noqa: C901 - rule by rule
    """The Messages API."""
    if messages and messages[0]["role"] != "user":
        yield "the user does not begin"
    ids = []
    cached = 0
    for place, message in enumerate(messages):
        role, blocks = message["role"], message["content"]
        if message.keys() != {"role", "content"} or role not in ("user", "assistant"):
            yield f"{place}: {message.keys()} {role}"
        if place and messages[place - 1]["role"] == role:
            yield f"{place}: {role} twice"
        if not isinstance(blocks, list) or not blocks:
            yield f"{place}: empty"
            continue
        for block in blocks:
            cached += "cache_control" in block
            yield from (f"{place}: {problem}" for problem in _anthropic_block(role, block))
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        ids += calls
        following = messages[place + 1]["content"] if place + 1 < len(messages) else None
        if calls and following is not None:
            first = following[: len(calls)]
            answers = [block.get("tool_use_id") for block in first]
            if sorted(map(str, answers)) != sorted(calls):
                yield f"{place}: calls {calls}, first answered {answers}"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        before = messages[place - 1]["content"] if place else []
        made = [block["id"] for block in before if block["type"] == "tool_use"]
        if sorted(results) != sorted(made):
            yield f"{place}: results {results} of calls {made}"
        if role == "assistant" and blocks[-1].get("text", "")[-1:].isspace():
            yield f"{place}: ends with white space"
        ids += [block["id"] for block in blocks if block["type"] in SERVER_CALLS]
        callers = [block["caller"] for block in blocks if "caller" in block]
        for caller in callers:
            if caller.get("tool_id") not in (None, *ids):
                yield f"{place}: called by {caller}, which is not there"
    yield from _ids(ids, WORD)
    yield from _of_server(messages)
    if cached > 4:
        yield f"{cached} markers"


SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def _of_server(messages: list[Message]) -> Iterator[str]:
    """A call of the server's own has its result behind it, unless the server is to go on."""
    open_calls: dict[str, int] = {}
    for place, message in enumerate(messages):
        for block in message["content"]:
            if block["type"] in SERVER_CALLS:
                open_calls[block["id"]] = place
            elif block["type"].endswith("_tool_result"):
                made = open_calls.pop(block["tool_use_id"], None)
                if made is None or message["role"] == "user":
                    yield f"{place}: {block['type']} of no call"
    behind = messages[-1]["content"] if messages and messages[-1]["role"] == "user" else []
    results_alone = all(block["type"] == "tool_result" for block in behind)
    last = len(messages) - (2 if behind else 1)
    for name, place in open_calls.items():
        if place != last or not results_alone:
            yield f"{place}: {name} has no result of the server"


def _anthropic_block(role: str, block: Message) -> Iterator[str]:
    kind = block["type"]
    if role == "user" and kind not in USER_BLOCKS and not kind.endswith("_result"):
        yield f"{kind} of the user's"
    if role == "assistant" and kind in ("image", "document", "tool_result"):
        yield f"{kind} of the assistant's"
    if kind == "text" and not block["text"].strip():
        yield "blank text"
    if kind == "thinking" and not block.get("signature"):
        yield "unsigned thinking"
    if kind == "tool_use" and (
        not isinstance(block["input"], dict) or not WORD.fullmatch(block["name"])
    ):
        yield f"call {block!r:.200}"
    if kind == "tool_result":
        content = block.get("content", "x")
        if not content or (content == "x" and block.get("is_error")):
            yield "empty result"
        for part in content if isinstance(content, list) else ():
            if part["type"] == "text" and not part["text"].strip():
                yield "blank text in a result"


def responses(items: list[Message]) -> Iterator[str]:  # noqa: C901 - rule by rule
    """The Responses API."""
    open_calls: dict[str, str] = {}
    ids = []
    programs = {each["call_id"] for each in items if each.get("type") == "program"}
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        caller = item.get("caller") or {}
        if caller.get("caller_id") not in (None, *programs):
            yield f"{place}: called by {caller}, which is not there"
        if not WORD.fullmatch(item.get("id", "none")):
            yield f"{place}: id {item['id']!r}"
        following = items[place + 1] if place + 1 < len(items) else {}
        if kind == "message":
            if item["role"] not in ("system", "developer", "user", "assistant"):
                yield f"{place}: role {item['role']}"
            if not isinstance(item["content"], str | list) or item["content"] == []:
                yield f"{place}: content {item['content']!r:.100}"
            if open_calls:
                yield f"{place}: speech before results of {[*open_calls]}"
        elif kind == "reasoning":
            after = following.get("type", "")
            spoken = after == "message" and following["role"] == "assistant"
            is_call = after.endswith("_call") or after == "program"
            if not spoken and after != "reasoning" and not is_call:
                yield f"{place}: reasoning before {after!r}"
        elif kind.endswith("_call") and isinstance(item.get("call_id"), str):
            open_calls[item["call_id"]] = kind
            ids.append(item["call_id"])
            if kind == "function_call" and (
                not isinstance(item["arguments"], str) or not WORD.fullmatch(item["name"])
            ):
                yield f"{place}: call {item!r:.200}"
        elif kind == "tool_search_call" and following.get("type") != "tool_search_output":
            yield f"{place}: a search without its result"
        elif kind == "tool_search_output" and item.get("call_id") is None:
            if not place or items[place - 1].get("type") != "tool_search_call":
                yield f"{place}: a result of no search"
        elif kind == "mcp_approval_response":
            asked = [each.get("id") for each in items[:place]]
            if item["approval_request_id"] not in asked:
                yield f"{place}: an answer to no request"
        elif kind == "program_output":
            if item["call_id"] not in programs:
                yield f"{place}: {kind} of no program"
        elif kind.endswith("_output") and isinstance(item.get("call_id"), str):
            call = "tool_search_call" if kind == "tool_search_output" else kind[: -len("_output")]
            if open_calls.pop(item["call_id"], None) != call:
                yield f"{place}: {kind} of no call"
            if kind == "function_call_output" and not isinstance(item["output"], str | list):
                yield f"{place}: output {item['output']!r:.100}"
    yield from _ids(ids, WORD)


def gemini(contents: list[Message]) -> Iterator[str]:  # noqa: C901 - rule by rule
    """The generateContent API."""
    if contents and contents[0]["role"] != "user":
        yield "the user does not begin"
    ids = []
    for place, content in enumerate(contents):
        if content.keys() != {"role", "parts"} or content["role"] not in ("user", "model"):
            yield f"{place}: {content.keys()}"
        if place and contents[place - 1]["role"] == content["role"]:
            yield f"{place}: {content['role']} twice"
        if not content["parts"]:
            yield f"{place}: empty"
        for part in content["parts"]:
            if part.get("text", "x") == "" and not _signed(part):
                yield f"{place}: empty text"
        made = _held(content, "functionCall")
        ids += [call["id"] for call in made]
        for call in made:
            if not isinstance(call["args"], dict) or not GEMINI_NAME.fullmatch(call["name"]):
                yield f"{place}: call {call!r:.200}"
        if made and not _signed(next(part for part in content["parts"] if "functionCall" in part)):
            yield f"{place}: the first call has no signature"
        before = _held(contents[place - 1], "functionCall") if place else []
        answers = _held(content, "functionResponse")
        asked = [(call["id"], call["name"]) for call in before]
        answered = [(answer["id"], answer["name"]) for answer in answers]
        if asked != answered:
            yield f"{place}: calls {asked}, responses {answered}"
        if any(not isinstance(answer["response"], dict) for answer in answers):
            yield f"{place}: a response is an object"
    yield from _ids(ids, WORD)


def _signed(part: Message) -> bool:
    """In the spelling of the API or of its client."""
    return bool(part.get("thoughtSignature") or part.get("thought_signature"))


def _held(content: Message, key: str) -> list[Message]:
    return [part[key] for part in content["parts"] if key in part]


JUDGES: dict[str, Callable[[list[Message]], Iterator[str]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "responses": responses,
    "gemini": gemini,
}

# --- the providers' own types ---------------------------------------------------------------------


@cache
def own_types(format_name: str) -> TypeAdapter[Any] | None:
    """What a provider's client says that a message is; None where it is not installed."""
    try:
        return TypeAdapter(TYPES[format_name]())
    except ImportError:
        return None


def _of_openai() -> Any:
    from openai.types.chat import ChatCompletionMessageParam

    return ChatCompletionMessageParam


def _of_responses() -> Any:
    from openai.types.responses import ResponseInputItemParam

    return ResponseInputItemParam


def _of_anthropic() -> Any:
    from anthropic.types.beta import BetaMessageParam

    return BetaMessageParam


def _of_gemini() -> Any:
    from google.genai.types import Content

    return Content


TYPES: dict[str, Callable[[], Any]] = {
    "openai": _of_openai,
    "responses": _of_responses,
    "anthropic": _of_anthropic,
    "gemini": _of_gemini,
}


def misfits(format_name: str, messages: list[Message]) -> list[str]:
    """What a provider's own types refuse of a request."""
    types = own_types(format_name)
    assert types is not None
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, message in enumerate(messages):
            try:
                _exhausted(types.validate_python(message))
            except ValidationError as error:
                found.append(f"{place}: {message!r:.200}: {error.errors()[:1]!r:.300}")
    return found


def _exhausted(value: Any) -> None:
    """Walk through what is validated only when it is read."""
    if isinstance(value, dict):
        for held in value.values():
            _exhausted(held)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for held in value:
            _exhausted(held)
