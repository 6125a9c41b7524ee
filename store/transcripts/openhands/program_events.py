"""Translate events of OpenHands to messages of the OpenAI chat shape, one by one, purely.

V1 events have a ``kind``; those of V0 are an ``action`` or an ``observation``. The content sent to
the model is the message; the other fields of an event are its extra.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ...messages import Message
from ...text import Fields, as_list, get_at_path
from ..events import fields_of, first_text, simplest_content, text_of, text_part

ProgramEvent = Fields

REASONING = (
    "reasoning_content",
    "thinking_blocks",
    "responses_reasoning_item",
    "reasoning_details",
)
"""Keys of a V1 event or message that hold a model's thoughts; they stay keys of the message."""

ACTION_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell"}
"""Action of events without a call → the agent's name of the tool; others keep their name."""

_ENDINGS = {
    "working_dir": "\n[Current working directory: {}]",
    "py_interpreter_path": "\n[Python interpreter: {}]",
    "exit_code": "\n[Command finished with exit code {}]",
}
Places = tuple[tuple[str, ...], ...]

_MODELS: Places = (
    ("tool_call_metadata", "model_response", "model"),
    ("value", "usage_to_metrics", "default", "model_name"),
    ("value", "agent", "llm", "model"),
)
"""The places in an event that may name the model, the most reliable one first."""
_ROOTS: Places = (
    ("extras", "working_dir"),
    ("extras", "repo_directory"),
    ("value", "workspace", "working_dir"),
    ("extras", "metadata", "working_dir"),
    ("observation", "metadata", "working_dir"),
)
"""The places in an event that may name the folder, in the same order."""

_V1_TEXTS = ("kind", "source", "timestamp")  # every event of V1 has them
_RUNNING = -1  # the exit code of a command that has not ended


class Known(NamedTuple):
    """The fields of an event about its whole conversation, each None if missing."""

    model: str | None
    root: str | None
    name: str | None


def is_v1(event: Any) -> bool:
    """Tell whether a JSON value is an event of V1."""
    if not isinstance(event, dict):
        return False
    return all(isinstance(event.get(key), str) for key in _V1_TEXTS)


def is_v0(event: Any) -> bool:
    """Tell whether a JSON value is an event of V0."""
    if not isinstance(event, dict) or not isinstance(event.get("source"), str):
        return False
    return is_action(event) or (isinstance(event.get("observation"), str) and "content" in event)


def is_action(event: ProgramEvent) -> bool:
    """Tell whether an event of V0 is an action; any other is an observation."""
    return isinstance(event.get("action"), str) and "args" in event


def rest_of(event: ProgramEvent, *used: str) -> Fields:
    """Return the fields of an event without the keys that were used."""
    return {
        key: held
        for key, held in event.items()
        if key not in used and held is not None and held != []
    }


def parts_of(content: object) -> list[Any]:
    """Return content as parts of the chat; one part of V1 may hold several images."""
    if content is None:
        return []
    return [made for part in as_list(content) for made in _parts(part)]


def known_from(event: ProgramEvent) -> Known:
    """Return the facts in an event about its conversation: the model, the folder, the id."""
    return Known(
        _first_at(_MODELS, event),
        _first_at(_ROOTS, event),
        (
            None
            if event.get("key") != "full_state"
            else text_of(fields_of(event.get("value")).get("id"))
        ),
    )


def _first_at(places: Places, event: ProgramEvent) -> str | None:
    return first_text(get_at_path(place, event) for place in places)


# Events of V1.


def system_message(event: ProgramEvent) -> Message:
    """Return the system prompt of V1."""
    prompts = [fields_of(event.get(key)) for key in ("system_prompt", "dynamic_context")]
    content = simplest_content(parts_of([each for each in prompts if each]))
    return {"role": "system", "content": content or ""}


def spoken_message(event: ProgramEvent) -> Message:
    """Return the message that a V1 event holds, with the additions of skills."""
    given = fields_of(event.get("llm_message"))
    speaker = "assistant" if event.get("source") == "agent" else "user"
    added = parts_of(event.get("extended_content"))
    content = simplest_content([*parts_of(given.get("content")), *added]) or None
    calls = given.get("tool_calls")
    message: Message = {"role": text_of(given.get("role")) or speaker, "content": content}
    if isinstance(calls, list) and calls:
        message["tool_calls"] = list(map(call_of, calls))
    elif content is None:
        message["content"] = ""
    return message | rest_of(given, "role", "content", "tool_calls")


def acted_message(event: ProgramEvent, call: Any) -> Message:
    """Return the answer that a V1 action begins, with its first call."""
    content = simplest_content(parts_of(event.get("thought")))
    message: Message = {"role": "assistant", "content": content, "tool_calls": [call]}
    return message | {key: event[key] for key in REASONING if event.get(key)}


def action_call(event: ProgramEvent) -> Any:
    """Return the call of a V1 action."""
    call = event.get("tool_call")
    given: Fields = fields_of(call)
    if not isinstance(call, dict):
        given = {"id": event.get("tool_call_id"), "name": event.get("tool_name")}
    if not call:
        given = given | {"arguments": event.get("action")}
    return call_of(given)


def call_of(call: Any) -> Any:
    """Return a call of V1 as a tool call; a call in the chat's shape is returned unchanged."""
    if not isinstance(call, dict) or "function" in call:
        return call
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        arguments = _json(arguments)
    function = {"name": call.get("name"), "arguments": arguments}
    return rest_of(call, "name", "arguments") | {"type": "function", "function": function}


def result_message(event: ProgramEvent) -> Message:
    """Return the result in a V1 event: of a tool, a refusal by the user, or an agent's failure."""
    observation = fields_of(event.get("observation"))
    content = simplest_content(_result_parts(event, observation)) or ""
    message: Message = {"role": "tool", "content": content}
    if text_of(event.get("tool_name")):
        message["name"] = event["tool_name"]
    if text_of(event.get("tool_call_id")):
        message["tool_call_id"] = event["tool_call_id"]
    if observation.get("is_error") is True or event.get("kind") != "ObservationEvent":
        message["messageStatus"] = "error"
    return message


def _result_parts(event: ProgramEvent, observation: Fields) -> list[Any]:
    if event.get("kind") == "UserRejectObservation":
        return parts_of(f"Action rejected: {event.get('rejection_reason', '')}")
    if not observation:
        return parts_of(event.get("error"))
    said = (observation.get(key) for key in ("content", "output", "message", "error"))
    content = next((each for each in said if each), None)
    if content is None and not observation.keys() & {"content", "output"}:
        content = _json(observation)
    return [*_framed(parts_of(content), observation), *parts_of(event.get("extended_content"))]


# Events of V0.


def observed_content(event: ProgramEvent) -> object:
    """Return the content of a V0 observation, with the ending shown to its agent."""
    extras = fields_of(event.get("extras"))
    parts = _framed(parts_of(event.get("content")), extras)
    return simplest_content([*parts, *_images(extras)]) or ""


def message_content(args: Fields) -> object:
    """Return the content of a V0 message or system prompt, with its images."""
    return simplest_content([*parts_of(args.get("content")), *_images(args)]) or ""


def given_answer(metadata: Fields) -> Message | None:
    """Return the model's answer from the metadata of a V0 call, None if there is none."""
    choices = fields_of(metadata.get("model_response")).get("choices")
    first = fields_of(choices[0]) if isinstance(choices, list) and choices else {}
    given = fields_of(first.get("message"))
    calls = given.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return None
    message: Message = {"role": "assistant", "content": given.get("content")}
    message["tool_calls"] = list(calls)
    return message | rest_of(given, *message)


def made_answer(event: ProgramEvent, metadata: Fields) -> Message:
    """Return a V0 action as an answer with one call, built from the fields of the event."""
    args = fields_of(event.get("args"))
    action = event["action"]
    function = {
        "name": text_of(metadata.get("function_name")) or ACTION_TOOLS.get(action, action),
        "arguments": _arguments_in(args),
    }
    call_id = text_of(metadata.get("tool_call_id")) or event_call_id(event.get("id"))
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": thought_of(args), "tool_calls": [call]}


def _arguments_in(args: Fields) -> str:
    said = {key: held for key, held in args.items() if held is not None}
    said.pop("thought", None)
    return _json(said)


def thought_of(args: Fields) -> str | None:
    """Return the text of an agent with an action; newer events keep it as an object."""
    thought = args.get("thought")
    return text_of(thought) or text_of(fields_of(thought).get("text"))


def event_call_id(number: object) -> str:
    """Return an id for a call without one: from its event, which observations name as cause."""
    return f"event-{number!s:.80}"


def _images(said: Fields) -> list[Any]:
    urls = said.get("image_urls")
    return _parts({"type": "image", "image_urls": urls}) if isinstance(urls, list) else []


# Events of both versions.


def _framed(parts: list[Any], said: Fields) -> list[Any]:
    """Return a command's output with the surrounding lines that were shown to the model."""
    metadata = fields_of(said.get("metadata"))
    endings = []
    for key, line in _ENDINGS.items():
        value = _exit_code(metadata, said) if key == "exit_code" else metadata.get(key)
        if value not in (None, ""):
            endings.append(line.format(value))
    prefix = text_of(metadata.get("prefix"))
    ending = (text_of(metadata.get("suffix")) or "") + "".join(endings)
    return [*parts_of(prefix), *parts, *parts_of(ending or None)]


def _exit_code(metadata: Fields, said: Fields) -> int | None:
    """Return the exit code of a command, None if it is unknown or the command still runs."""
    code = metadata.get("exit_code")
    if type(code) is not int:
        code = said.get("exit_code")
    return code if type(code) is int and code != _RUNNING else None


def _parts(part: Any) -> list[Any]:
    if isinstance(part, str):
        return [text_part(part)]
    if not isinstance(part, dict):
        return [text_part(_json(part))]
    if part.get("type") == "image" and isinstance(part.get("image_urls"), list):
        urls = filter(text_of, part["image_urls"])
        return [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{key: held for key, held in part.items() if key != "cache_prompt" or held}]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
