"""Translate events of OpenHands to messages of the OpenAI chat shape, one by one, purely.

V1 events have a ``kind``; those of V0 are an ``action`` or an ``observation``. The content sent to
the model is the message; the other fields of an event are its extra.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ...records import Message
from ...text import JsonFields, get_at_path, wrap_in_list
from ..parser_events import build_text_part, find_first_text, get_fields, get_text, simplify_content

ProgramEvent = JsonFields

OPENHANDS_REASONING_KEYS = (
    "reasoning_content",
    "thinking_blocks",
    "responses_reasoning_item",
    "reasoning_details",
)
"""Keys of a V1 event or message that hold a model's thoughts; they stay keys of the message."""

ACTION_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell"}
"""Action of events without a call → the agent's name of the tool; others keep their name."""

_OUTPUT_ENDINGS = {
    "working_dir": "\n[Current working directory: {}]",
    "py_interpreter_path": "\n[Python interpreter: {}]",
    "exit_code": "\n[Command finished with exit code {}]",
}
EventFieldPaths = tuple[tuple[str, ...], ...]

_MODEL_PATHS: EventFieldPaths = (
    ("tool_call_metadata", "model_response", "model"),
    ("value", "usage_to_metrics", "default", "model_name"),
    ("value", "agent", "llm", "model"),
)
"""The places in an event that may name the model, the most reliable one first."""
_PROJECT_ROOT_PATHS: EventFieldPaths = (
    ("extras", "working_dir"),
    ("extras", "repo_directory"),
    ("value", "workspace", "working_dir"),
    ("extras", "metadata", "working_dir"),
    ("observation", "metadata", "working_dir"),
)
"""The places in an event that may name the folder, in the same order."""

_V1_TEXT_KEYS = ("kind", "source", "timestamp")  # every event of V1 has them
_RUNNING_EXIT_CODE = -1  # the exit code of a command that has not ended


class ConversationFacts(NamedTuple):
    """The fields of an event about its whole conversation, each None if missing."""

    model: str | None
    root: str | None
    name: str | None


def is_v1_event(event: Any) -> bool:
    """Tell whether a JSON value is an event of V1."""
    if not isinstance(event, dict):
        return False
    return all(isinstance(event.get(key), str) for key in _V1_TEXT_KEYS)


def is_v0_event(event: Any) -> bool:
    """Tell whether a JSON value is an event of V0."""
    if not isinstance(event, dict) or not isinstance(event.get("source"), str):
        return False
    return is_v0_action(event) or (isinstance(event.get("observation"), str) and "content" in event)


def is_v0_action(event: ProgramEvent) -> bool:
    """Tell whether an event of V0 is an action; any other is an observation."""
    return isinstance(event.get("action"), str) and "args" in event


def omit_event_keys(event: ProgramEvent, *used: str) -> JsonFields:
    """Return the fields of an event without the keys that were used."""
    return {
        key: held
        for key, held in event.items()
        if key not in used and held is not None and held != []
    }


def parse_openhands_parts(content: object) -> list[Any]:
    """Return content as parts of the chat; one part of V1 may hold several images."""
    if content is None:
        return []
    return [made for part in wrap_in_list(content) for made in _parse_openhands_part(part)]


def find_conversation_facts(event: ProgramEvent) -> ConversationFacts:
    """Return the facts in an event about its conversation: the model, the folder, the id."""
    return ConversationFacts(
        _find_text_at_paths(_MODEL_PATHS, event),
        _find_text_at_paths(_PROJECT_ROOT_PATHS, event),
        (
            None
            if event.get("key") != "full_state"
            else get_text(get_fields(event.get("value")).get("id"))
        ),
    )


def _find_text_at_paths(places: EventFieldPaths, event: ProgramEvent) -> str | None:
    return find_first_text(get_at_path(place, event) for place in places)


# Events of V1.


def parse_prompt_event(event: ProgramEvent) -> Message:
    """Return the system prompt of V1."""
    prompts = [get_fields(event.get(key)) for key in ("system_prompt", "dynamic_context")]
    content = simplify_content(parse_openhands_parts([each for each in prompts if each]))
    return {"role": "system", "content": content or ""}


def parse_message_event(event: ProgramEvent) -> Message:
    """Return the message that a V1 event holds, with the additions of skills."""
    given = get_fields(event.get("llm_message"))
    speaker = "assistant" if event.get("source") == "agent" else "user"
    added = parse_openhands_parts(event.get("extended_content"))
    content = simplify_content([*parse_openhands_parts(given.get("content")), *added]) or None
    calls = given.get("tool_calls")
    message: Message = {"role": get_text(given.get("role")) or speaker, "content": content}
    if isinstance(calls, list) and calls:
        message["tool_calls"] = list(map(parse_openhands_call, calls))
    elif content is None:
        message["content"] = ""
    return message | omit_event_keys(given, "role", "content", "tool_calls")


def build_action_message(event: ProgramEvent, call: Any) -> Message:
    """Return the answer that a V1 action begins, with its first call."""
    content = simplify_content(parse_openhands_parts(event.get("thought")))
    message: Message = {"role": "assistant", "content": content, "tool_calls": [call]}
    return message | {key: event[key] for key in OPENHANDS_REASONING_KEYS if event.get(key)}


def parse_action_call(event: ProgramEvent) -> Any:
    """Return the call of a V1 action."""
    call = event.get("tool_call")
    given: JsonFields = get_fields(call)
    if not isinstance(call, dict):
        given = {"id": event.get("tool_call_id"), "name": event.get("tool_name")}
    if not call:
        given = given | {"arguments": event.get("action")}
    return parse_openhands_call(given)


def parse_openhands_call(call: Any) -> Any:
    """Return a call of V1 as a tool call; a call in the chat's shape is returned unchanged."""
    if not isinstance(call, dict) or "function" in call:
        return call
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        arguments = _render_openhands_json(arguments)
    function = {"name": call.get("name"), "arguments": arguments}
    return omit_event_keys(call, "name", "arguments") | {"type": "function", "function": function}


def parse_result_event(event: ProgramEvent) -> Message:
    """Return the result in a V1 event: of a tool, a refusal by the user, or an agent's failure."""
    observation = get_fields(event.get("observation"))
    content = simplify_content(_parse_result_parts(event, observation)) or ""
    message: Message = {"role": "tool", "content": content}
    if get_text(event.get("tool_name")):
        message["name"] = event["tool_name"]
    if get_text(event.get("tool_call_id")):
        message["tool_call_id"] = event["tool_call_id"]
    if observation.get("is_error") is True or event.get("kind") != "ObservationEvent":
        message["messageStatus"] = "error"
    return message


def _parse_result_parts(event: ProgramEvent, observation: JsonFields) -> list[Any]:
    if event.get("kind") == "UserRejectObservation":
        return parse_openhands_parts(f"Action rejected: {event.get('rejection_reason', '')}")
    if not observation:
        return parse_openhands_parts(event.get("error"))
    said = (observation.get(key) for key in ("content", "output", "message", "error"))
    content = next((each for each in said if each), None)
    if content is None and not observation.keys() & {"content", "output"}:
        content = _render_openhands_json(observation)
    return [
        *_frame_command_output(parse_openhands_parts(content), observation),
        *parse_openhands_parts(event.get("extended_content")),
    ]


# Events of V0.


def parse_observation_content(event: ProgramEvent) -> object:
    """Return the content of a V0 observation, with the ending shown to its agent."""
    extras = get_fields(event.get("extras"))
    parts = _frame_command_output(parse_openhands_parts(event.get("content")), extras)
    return simplify_content([*parts, *_parse_image_urls(extras)]) or ""


def parse_v0_content(args: JsonFields) -> object:
    """Return the content of a V0 message or system prompt, with its images."""
    return (
        simplify_content([*parse_openhands_parts(args.get("content")), *_parse_image_urls(args)])
        or ""
    )


def find_model_answer(metadata: JsonFields) -> Message | None:
    """Return the model's answer from the metadata of a V0 call, None if there is none."""
    choices = get_fields(metadata.get("model_response")).get("choices")
    first = get_fields(choices[0]) if isinstance(choices, list) and choices else {}
    given = get_fields(first.get("message"))
    calls = given.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return None
    message: Message = {"role": "assistant", "content": given.get("content")}
    message["tool_calls"] = list(calls)
    return message | omit_event_keys(given, *message)


def build_v0_answer(event: ProgramEvent, metadata: JsonFields) -> Message:
    """Return a V0 action as an answer with one call, built from the fields of the event."""
    args = get_fields(event.get("args"))
    action = event["action"]
    function = {
        "name": get_text(metadata.get("function_name")) or ACTION_TOOLS.get(action, action),
        "arguments": _render_action_arguments(args),
    }
    call_id = get_text(metadata.get("tool_call_id")) or build_event_call_id(event.get("id"))
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": find_action_thought(args), "tool_calls": [call]}


def _render_action_arguments(args: JsonFields) -> str:
    said = {key: held for key, held in args.items() if held is not None}
    said.pop("thought", None)
    return _render_openhands_json(said)


def find_action_thought(args: JsonFields) -> str | None:
    """Return the text of an agent with an action; newer events keep it as an object."""
    thought = args.get("thought")
    return get_text(thought) or get_text(get_fields(thought).get("text"))


def build_event_call_id(number: object) -> str:
    """Return an id for a call without one: from its event, which observations name as cause."""
    return f"event-{number!s:.80}"


def _parse_image_urls(said: JsonFields) -> list[Any]:
    urls = said.get("image_urls")
    return (
        _parse_openhands_part({"type": "image", "image_urls": urls})
        if isinstance(urls, list)
        else []
    )


# Events of both versions.


def _frame_command_output(parts: list[Any], said: JsonFields) -> list[Any]:
    """Return a command's output with the surrounding lines that were shown to the model."""
    metadata = get_fields(said.get("metadata"))
    endings = []
    for key, line in _OUTPUT_ENDINGS.items():
        value = _find_exit_code(metadata, said) if key == "exit_code" else metadata.get(key)
        if value not in (None, ""):
            endings.append(line.format(value))
    prefix = get_text(metadata.get("prefix"))
    ending = (get_text(metadata.get("suffix")) or "") + "".join(endings)
    return [*parse_openhands_parts(prefix), *parts, *parse_openhands_parts(ending or None)]


def _find_exit_code(metadata: JsonFields, said: JsonFields) -> int | None:
    """Return the exit code of a command, None if it is unknown or the command still runs."""
    code = metadata.get("exit_code")
    if type(code) is not int:
        code = said.get("exit_code")
    return code if type(code) is int and code != _RUNNING_EXIT_CODE else None


def _parse_openhands_part(part: Any) -> list[Any]:
    if isinstance(part, str):
        return [build_text_part(part)]
    if not isinstance(part, dict):
        return [build_text_part(_render_openhands_json(part))]
    if part.get("type") == "image" and isinstance(part.get("image_urls"), list):
        urls = filter(get_text, part["image_urls"])
        return [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{key: held for key, held in part.items() if key != "cache_prompt" or held}]


def _render_openhands_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
