"""Results of tau-bench: records of a task's trial whose ``traj`` holds plain OpenAI messages; each is a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .events import Event, Noted, Opened, SessionNames, said, sketch, split_metadata, title_of
from .source import Source, Value


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a record of a trial, or a list of them."""
    record = value[0] if isinstance(value, list) and value else value
    return (
        isinstance(record, dict)
        and isinstance(record.get("traj"), list)
        and not {"task_id", "reward"}.isdisjoint(record)
    )


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each record, its messages as they are; the record's other keys are its metadata."""
    names = SessionNames()
    for item in source.values():
        if isinstance(item, Noted):
            yield item
            continue
        for record in item.value if isinstance(item.value, list) else [item.value]:
            yield from _trial(Value(item.line, record), source.stem, names)


def _trial(item: Value, stem: str, names: SessionNames) -> Iterator[Event]:
    record = item.value
    if not isinstance(record, dict) or not isinstance(record.get("traj"), list):
        yield Noted(item.line, f"{sketch(record)} is no record of a trial: it has no list 'traj'", True)
        return
    session_id = names.name(f"{stem}-task-{record.get('task_id', '')!s:.80}-trial-{record.get('trial', '')!s:.80}")
    metadata, notes = split_metadata(record, without=["traj"])
    yield Opened(session_id, title_of(each for each in record["traj"] if isinstance(each, dict)), None, metadata)
    yield from said(record["traj"], where=session_id)
    yield from notes
