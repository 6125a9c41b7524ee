"""Results of tau-bench: each is a task's trial whose ``traj`` holds plain OpenAI messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import JsonFields
from ..parser_events import (
    Event,
    SessionEvent,
    SessionNames,
    drop_keys,
    find_title,
    get_fields,
    split_metadata,
    wrap_raw_messages,
)
from ..source import SourceValue, for_each_conversation

__all__ = ["has_tau_bench_trial", "parse_tau_bench"]


def has_tau_bench_trial(value: Any) -> bool:
    """Tell whether a JSON value is a trial, or a list of them."""
    trial = value[0] if isinstance(value, list) and value else value
    if not _has_trial_messages(trial):
        return False
    return not {"task_id", "reward"}.isdisjoint(trial)


def _has_trial_messages(value: Any) -> bool:
    return isinstance(get_fields(value).get("traj"), list)


@for_each_conversation(_has_trial_messages, "record of a trial: it has no list 'traj'")
def parse_tau_bench(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a trial: its messages as they are, its other keys as metadata."""
    trial = item.value
    session_id = names.name(f"{names.stem}-{_build_trial_name(trial)}")
    metadata, notes = split_metadata(drop_keys(trial, "traj"))
    title = find_title(filter(get_fields, trial["traj"]))
    yield SessionEvent(session_id, title, None, metadata)
    yield from wrap_raw_messages(trial["traj"], session_id=session_id)
    yield from notes


def _build_trial_name(trial: JsonFields) -> str:
    return (
        f"task-{_render_trial_field(trial, 'task_id')}-trial-{_render_trial_field(trial, 'trial')}"
    )


def _render_trial_field(trial: JsonFields, key: str) -> str:
    """Return a part of the session's id."""
    return f"{trial.get(key, '')!s:.80}"
