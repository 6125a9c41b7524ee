"""Trajectories of SWE-agent.

``history`` holds the messages, with tool calls or, in 0.x, with actions as text. ``trajectory``
tells the same steps again, often with the whole prompt at each step: it is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import JsonFields
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    drop_keys,
    find_title,
    get_fields,
    split_metadata,
    wrap_raw_messages,
)
from ..source import SourceValue, for_each_conversation

__all__ = ["is_swe_agent_trajectory", "parse_swe_agent"]

STEP_PROMPT_KEYS = ("query", "messages")
"""Keys under which a step may keep the whole prompt it was given."""


def is_swe_agent_trajectory(value: Any) -> bool:
    """Tell whether a JSON value is such a trajectory."""
    if not isinstance(value, dict):
        return False
    history, steps = value.get("history"), value.get("trajectory")
    if isinstance(history, list) and history:
        return {"role", "content"} <= get_fields(history[0]).keys()
    if not isinstance(steps, list) or not steps:
        return False
    return {"action", "observation"} <= get_fields(steps[0]).keys()


def _has_swe_agent_messages(value: Any) -> bool:
    return _find_swe_agent_messages(get_fields(value)) is not None


@for_each_conversation(
    _has_swe_agent_messages,
    "trajectory that can be read: it has no list 'history', and no step keeps the messages "
    "it was given",
)
def parse_swe_agent(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a file, its messages as they are, all but the steps as metadata."""
    fields = get_fields(item.value)
    steps, messages = _find_list_field(fields, "trajectory"), _find_swe_agent_messages(fields) or []
    session_id = names.name()
    metadata, notes = split_metadata(drop_keys(fields, "history", "trajectory"))
    objects = filter(get_fields, messages)
    yield SessionEvent(
        session_id,
        find_title(message for message in objects if not message.get("is_demo")),
        None,
        metadata,
    )
    yield from wrap_raw_messages(messages, session_id=session_id)
    if steps:
        text = f"left out the trajectory of {len(steps)} steps: the messages tell the same"
        yield NoteEvent(item.row, text)
    yield from notes


def _find_swe_agent_messages(fields: JsonFields) -> list[Any] | None:
    history = _find_list_field(fields, "history")
    if history is None:
        # This is for files without a history.
        steps = _find_list_field(fields, "trajectory") or []
        for step in map(get_fields, reversed(steps)):
            prompts = (_find_list_field(step, key) for key in STEP_PROMPT_KEYS)
            prompt = next((each for each in prompts if each is not None), None)
            if prompt is not None:
                answer = step.get("response")
                if not isinstance(answer, str):
                    return prompt
                return [*prompt, {"role": "assistant", "content": answer}]
        return None
    return history


def _find_list_field(fields: JsonFields, key: str) -> list[Any] | None:
    held = fields.get(key)
    return held if isinstance(held, list) else None
