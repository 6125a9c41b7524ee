"""Events of OpenHands as messages of the OpenAI chat shape: a pure translation, event by event.

V1 events say their ``kind``; those of V0 are an ``action`` or an ``observation``. What the model was sent is the
message; what else an event says is among its facts.
"""

from __future__ import annotations

import json
from typing import Any

from .events import fields_of, simplest, text_of

Event = dict[str, Any]
Message = dict[str, Any]

REASONING = ("reasoning_content", "thinking_blocks", "responses_reasoning_item", "reasoning_details")
"""Keys of a V1 event or message that hold what a model thought; they stay keys of the message."""

ACTION_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell"}
"""Action → what its agent calls the tool; any other action is its own name. Only for events that name no call."""

_ENDINGS = (
    ("working_dir", "\n[Current working directory: {}]"),
    ("py_interpreter_path", "\n[Python interpreter: {}]"),
    ("exit_code", "\n[Command finished with exit code {}]"),
)
_RUNNING = -1  # the exit code of a command that has not ended


def is_v1(event: Any) -> bool:
    """Tell whether a JSON value is an event of V1."""
    return isinstance(event, dict) and all(isinstance(event.get(key), str) for key in ("kind", "source", "timestamp"))


def is_v0(event: Any) -> bool:
    """Tell whether a JSON value is an event of V0."""
    if not isinstance(event, dict) or not isinstance(event.get("source"), str):
        return False
    return is_action(event) or (isinstance(event.get("observation"), str) and "content" in event)


def is_action(event: Event) -> bool:
    """Tell whether an event of V0 is an action; any other is an observation."""
    return isinstance(event.get("action"), str) and "args" in event


def facts_of(event: Event, *used: str) -> dict[str, Any]:
    """Return what an event says beyond the keys that were used."""
    return {key: value for key, value in event.items() if key not in used and value is not None and value != []}


def parts_of(content: object) -> list[Any]:
    """Return content as parts of the chat; images come several in one part of V1."""
    if content is None:
        return []
    parts = content if isinstance(content, list) else [content]
    return [made for part in parts for made in _parts(part)]


def system_message(event: Event) -> Message:
    """Return the system prompt of V1."""
    prompts = [fields_of(event.get(key)) for key in ("system_prompt", "dynamic_context")]
    return {"role": "system", "content": simplest(parts_of([each for each in prompts if each])) or ""}


def spoken_message(event: Event) -> Message:
    """Return the message that a V1 event holds, with what skills added to it."""
    given = fields_of(event.get("llm_message"))
    content = [*parts_of(given.get("content")), *parts_of(event.get("extended_content"))]
    role = text_of(given.get("role")) or ("assistant" if event.get("source") == "agent" else "user")
    calls = given.get("tool_calls")
    made = {"tool_calls": list(map(call_of, calls))} if isinstance(calls, list) and calls else {}
    used = ("role", "content", "tool_calls")
    return {"role": role, "content": simplest(content) or ("" if not made else None)} | made | facts_of(given, *used)


def call_of(call: Any) -> Any:
    """Return a call of V1 as a tool call; one that has the chat's shape already stays as it is."""
    if not isinstance(call, dict) or "function" in call:
        return call
    given = call.get("arguments")
    function = {"name": call.get("name"), "arguments": given if isinstance(given, str) else _json(given)}
    return facts_of(call, "name", "arguments") | {"type": "function", "function": function}


def result_message(event: Event) -> Message:
    """Return the result that a V1 event tells: of a tool, of a user who refused, of an agent that failed."""
    observation = fields_of(event.get("observation"))
    failed = observation.get("is_error") is True or event.get("kind") != "ObservationEvent"
    message: Message = {"role": "tool", "content": simplest(_result_parts(event, observation)) or ""}
    message |= {"name": event["tool_name"]} if text_of(event.get("tool_name")) else {}
    message |= {"tool_call_id": event["tool_call_id"]} if text_of(event.get("tool_call_id")) else {}
    return message | ({"messageStatus": "error"} if failed else {})


def observed_content(event: Event) -> object:
    """Return what a V0 observation says, with the ending that its agent was shown."""
    extras = fields_of(event.get("extras"))
    urls = extras.get("image_urls")
    images = [{"type": "image", "image_urls": urls}] if isinstance(urls, list) else []
    parts = [*_framed(parts_of(event.get("content")), extras), *parts_of(images)]
    return simplest(parts) or ""


def message_content(args: Event) -> object:
    """Return what a V0 message or system prompt says, with its images."""
    urls = args.get("image_urls")
    images = [{"type": "image", "image_urls": urls}] if isinstance(urls, list) else []
    return simplest([*parts_of(args.get("content")), *parts_of(images)]) or ""


def given_answer(metadata: Event) -> Message | None:
    """Return the model's answer as the metadata of a V0 call keep it, None where they keep none."""
    choices = fields_of(metadata.get("model_response")).get("choices")
    first = fields_of(choices[0]) if isinstance(choices, list) and choices else {}
    given = fields_of(first.get("message"))
    calls = given.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return None
    message: Message = {"role": "assistant", "content": given.get("content"), "tool_calls": list(calls)}
    return message | facts_of(given, *message)


def made_answer(event: Event, metadata: Event) -> Message:
    """Return a V0 action as an answer with one call, made of what the event says."""
    args = fields_of(event.get("args"))
    name = text_of(metadata.get("function_name")) or ACTION_TOOLS.get(event["action"], event["action"])
    arguments = {key: value for key, value in args.items() if key != "thought" and value is not None}
    call_id = text_of(metadata.get("tool_call_id")) or event_call_id(event.get("id"))
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": _json(arguments)}}
    return {"role": "assistant", "content": thought_of(args), "tool_calls": [call]}


def thought_of(args: Event) -> str | None:
    """Return what an agent said with an action; newer events keep it as an object."""
    thought = args.get("thought")
    return text_of(thought) or text_of(fields_of(thought).get("text"))


def event_call_id(number: object) -> str:
    """Return the id of a call that has none, by its event: observations name that as their cause."""
    return f"event-{number!s:.80}"


def _result_parts(event: Event, observation: Event) -> list[Any]:
    if event.get("kind") == "UserRejectObservation":
        return parts_of(f"Action rejected: {event.get('rejection_reason', '')}")
    if not observation:
        return parts_of(event.get("error"))
    said = (observation.get(key) for key in ("content", "output", "message", "error"))
    content = next((each for each in said if each), None)
    if content is None and not observation.keys() & {"content", "output"}:
        content = _json(observation)
    return [*_framed(parts_of(content), observation), *parts_of(event.get("extended_content"))]


def _framed(parts: list[Any], said: Event) -> list[Any]:
    """Return a command's output with the lines around it that the model was shown."""
    metadata = fields_of(said.get("metadata"))
    ended = {key: metadata.get(key) for key, _ in _ENDINGS}
    if type(ended["exit_code"]) is not int:
        ended["exit_code"] = said.get("exit_code")
    if type(ended["exit_code"]) is not int or ended["exit_code"] == _RUNNING:
        ended["exit_code"] = None
    lines = (line.format(ended[key]) for key, line in _ENDINGS if ended[key] not in (None, ""))
    ending = (text_of(metadata.get("suffix")) or "") + "".join(lines)
    prefix = text_of(metadata.get("prefix"))
    return [*parts_of(prefix), *parts, *parts_of(ending or None)]


def _parts(part: Any) -> list[Any]:
    if isinstance(part, str):
        return [{"type": "text", "text": part}]
    if not isinstance(part, dict):
        return [{"type": "text", "text": _json(part)}]
    if part.get("type") == "image" and isinstance(part.get("image_urls"), list):
        return [{"type": "image_url", "image_url": {"url": url}} for url in part["image_urls"] if text_of(url)]
    return [{key: value for key, value in part.items() if key != "cache_prompt" or value}]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
