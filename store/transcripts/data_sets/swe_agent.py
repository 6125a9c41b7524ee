"""Trajectories of SWE-agent.

``history`` holds the messages, with tool calls or, in 0.x, with actions as text. ``trajectory``
tells the same steps again, often with the whole prompt at each step: it is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    SessionNames,
    as_messages,
    fields_of,
    split_metadata,
    title_of,
    without,
)
from ..several import conversations
from ..source import Source, Value

PROMPTS = ("query", "messages")
"""Keys under which a step may keep the whole prompt it was given."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a trajectory."""
    if not isinstance(value, dict):
        return False
    history, steps = value.get("history"), value.get("trajectory")
    if isinstance(history, list) and history:
        return {"role", "content"} <= fields_of(history[0]).keys()
    if not isinstance(steps, list) or not steps:
        return False
    return {"action", "observation"} <= fields_of(steps[0]).keys()


def parse(source: Source) -> Iterator[Event]:
    """Return the session of a file, its messages as they are, all but the steps as metadata."""
    problem = "it has no list 'history', and no step keeps the messages it was given"
    return conversations(source, _is_read, f"trajectory that can be read: {problem}", _session)


def _is_read(value: Any) -> bool:
    return _messages_of(fields_of(value)) is not None


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    steps, messages = _list(fields, "trajectory"), _messages_of(fields) or []
    session_id = names.name()
    metadata, notes = split_metadata(without(fields, "history", "trajectory"))
    objects = filter(fields_of, messages)
    yield Opened(
        session_id,
        title_of(message for message in objects if not message.get("is_demo")),
        None,
        metadata,
    )
    yield from as_messages(messages, session_id=session_id)
    if steps:
        text = f"left out the trajectory of {len(steps)} steps: the messages tell the same"
        yield Noted(item.row, text)
    yield from notes


def _messages_of(fields: Fields) -> list[Any] | None:
    history = _list(fields, "history")
    return _last_prompt(_list(fields, "trajectory") or []) if history is None else history


def _list(fields: Fields, key: str) -> list[Any] | None:
    held = fields.get(key)
    return held if isinstance(held, list) else None


def _last_prompt(steps: list[Any]) -> list[Any] | None:
    """Return the messages of the last step that kept its prompt; None where no step did.

    This is for files without a history.
    """
    for step in map(fields_of, reversed(steps)):
        prompts = (_list(step, key) for key in PROMPTS)
        prompt = next((each for each in prompts if each is not None), None)
        if prompt is not None:
            return prompt + _answer_of(step)
    return None


def _answer_of(step: Fields) -> list[Any]:
    answer = step.get("response")
    if not isinstance(answer, str):
        return []
    return [{"role": "assistant", "content": answer}]
