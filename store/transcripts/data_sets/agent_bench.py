"""Runs of AgentBench: a sample of a task, with the history of the user and the agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..conversations import GatheredSession
from ..parser_events import Event, SessionMessage, SessionNames, drop_keys, get_fields, get_objects
from ..source import SourceValue, for_each_conversation

__all__ = ["is_agent_bench_run", "parse_agent_bench"]

AGENT_ROLE = "agent"
"""What AgentBench calls the role of the model."""


def is_agent_bench_run(value: Any) -> bool:
    """Tell whether a JSON value is such a run."""
    fields = get_fields(value)
    return "index" in fields and any(map(_is_history_turn, _list_history_turns(fields)))


def _list_history_turns(run: JsonFields) -> list[JsonFields]:
    return get_objects(get_fields(run.get("output")).get("history"))


def _is_history_turn(turn: JsonFields) -> bool:
    return isinstance(turn.get("role"), str) and "content" in turn


@for_each_conversation(is_agent_bench_run, "run with the 'history' of an 'output'")
def parse_agent_bench(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a run; its outcome is kept beside it."""
    run = item.value
    said = [*map(_parse_history_turn, filter(_is_history_turn, _list_history_turns(run)))]
    told = drop_keys(run, "output") | drop_keys(run["output"], "history", "index")
    name = names.name(f"{names.stem}-{run['index']!s:.80}")
    yield from GatheredSession("agent_bench", name, said, told=told).events()


def _parse_history_turn(turn: Message) -> SessionMessage:
    """Return a message as it is, except for the name of the model's role."""
    role = "assistant" if turn["role"] == AGENT_ROLE else turn["role"]
    return SessionMessage({**turn, "role": role})
