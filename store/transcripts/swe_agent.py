"""Trajectories of SWE-agent: ``history`` holds the messages, with tool calls or, in 0.x, with actions as text.

``trajectory`` tells the same steps again, often with the whole prompt at each step: it is left out, and said so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .events import Event, Noted, Opened, SessionNames, said, sketch, split_metadata, title_of
from .source import Source, Value

PROMPTS = ("query", "messages")
"""Keys under which a step may keep the whole prompt it was given."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a trajectory."""
    if not isinstance(value, dict):
        return False
    history, steps = value.get("history"), value.get("trajectory")
    if isinstance(history, list) and history:
        return isinstance(history[0], dict) and isinstance(history[0].get("role"), str)
    return (
        isinstance(steps, list)
        and bool(steps)
        and isinstance(steps[0], dict)
        and {"action", "observation"} <= set(steps[0])
    )


def parse(source: Source) -> Iterator[Event]:
    """Return the session of a file, its messages as they are; everything but the steps is its metadata."""
    names = SessionNames()
    for item in source.values():
        yield from [item] if isinstance(item, Noted) else _session(item, source.stem, names)


def _session(item: Value, stem: str, names: SessionNames) -> Iterator[Event]:
    record = item.value if isinstance(item.value, dict) else {}
    steps = record["trajectory"] if isinstance(record.get("trajectory"), list) else []
    history = record["history"] if isinstance(record.get("history"), list) else _last_prompt(steps)
    if history is None:
        problem = "it has no list 'history', and no step keeps the messages it was given"
        yield Noted(item.line, f"{sketch(item.value)} is no trajectory that can be read: {problem}", True)
        return
    session_id = names.name(stem)
    metadata, notes = split_metadata(record, without=["history", "trajectory"])
    prompts = (each for each in history if isinstance(each, dict) and not each.get("is_demo"))
    yield Opened(session_id, title_of(prompts), None, metadata)
    yield from said(history, where=session_id)
    if steps:
        yield Noted(item.line, f"left out the trajectory of {len(steps)} steps: the messages tell the same", False)
    yield from notes


def _last_prompt(steps: list[Any]) -> list[Any] | None:
    """Return the messages of the last step that kept its prompt, with the answer, for files without a history."""
    for step in reversed(steps):
        prompt = (
            next((step[key] for key in PROMPTS if isinstance(step.get(key), list)), None)
            if isinstance(step, dict)
            else None
        )
        if prompt is not None:
            answer = step.get("response")
            return [*prompt, {"role": "assistant", "content": answer}] if isinstance(answer, str) else prompt
    return None
