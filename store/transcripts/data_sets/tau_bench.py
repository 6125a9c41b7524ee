"""Results of tau-bench: each is a task's trial whose ``traj`` holds plain OpenAI messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import Fields
from ..events import (
    Event,
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


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a trial, or a list of them."""
    trial = value[0] if isinstance(value, list) and value else value
    if not _has_messages(trial):
        return False
    return not {"task_id", "reward"}.isdisjoint(trial)


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each trial: its messages as they are, its other keys as metadata."""
    expected = "record of a trial: it has no list 'traj'"
    return conversations(source, _has_messages, expected, _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    trial = item.value
    session_id = names.name(f"{names.stem}-{_name_of(trial)}")
    metadata, notes = split_metadata(without(trial, "traj"))
    title = title_of(filter(fields_of, trial["traj"]))
    yield Opened(session_id, title, None, metadata)
    yield from as_messages(trial["traj"], session_id=session_id)
    yield from notes


def _has_messages(value: Any) -> bool:
    return isinstance(fields_of(value).get("traj"), list)


def _name_of(trial: Fields) -> str:
    return f"task-{_part(trial, 'task_id')}-trial-{_part(trial, 'trial')}"


def _part(trial: Fields, key: str) -> str:
    """Return a part of the session's id."""
    return f"{trial.get(key, '')!s:.80}"
