"""What Cline says of its sessions and messages beyond an API's: times, costs, folders, titles.

Its command line has a file beside the messages, its extension tells of each message alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..conversations import load_side_file
from ..parser_events import (
    Event,
    SessionEvent,
    SessionMessage,
    find_first_text,
    get_fields,
    get_nested,
    get_text,
    render_titles,
)
from ..source import TranscriptSource
from ..usages import TokenKeys, build_request_usage

__all__ = ["add_cline_facts"]

COMMAND_TOKENS = TokenKeys(
    "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", beside=False
)
EXTENSION_TOKENS = TokenKeys("prompt", "completion", "cached", beside=False)
MODEL_KEYS = (("id", "modelId"), ("provider", "providerId"))
"""Where the command line, and where the extension tells its model and its provider."""
MESSAGES_END = ".messages.json"
"""How the file of a session's messages ends; the one beside it ends with ``.json``."""


def add_cline_facts(source: TranscriptSource, events: Iterable[Event]) -> Iterator[Event]:
    """Yield events, sessions with their folder and title, messages with their time and cost."""
    name = source.path.name.removesuffix(MESSAGES_END)
    beside = load_side_file(source.path.with_name(f"{name}.json"))
    for event in events:
        if isinstance(event, SessionMessage):
            yield _add_time_and_cost(event)
        elif isinstance(event, SessionEvent) and beside.get("session_id") == event.session_id:
            titles = render_titles([get_nested(beside, "metadata", "title")])
            yield event._replace(
                title=find_first_text([*titles, event.title]),
                project_root=event.project_root or get_text(beside.get("cwd")),
                titles=(*titles, *event.titles),
            )
        else:
            yield event


def _add_time_and_cost(said: SessionMessage) -> SessionMessage:
    sent_at, model = said.message.get("ts"), get_fields(said.message.get("modelInfo"))
    named = (find_first_text(map(model.get, keys)) for keys in MODEL_KEYS)
    told = get_fields(said.message.get("metrics"))
    tokens = told.get("tokens")
    keys = COMMAND_TOKENS if tokens is None else EXTENSION_TOKENS
    spent = build_request_usage(told if tokens is None else tokens, keys, *named)
    return said._replace(moment=sent_at if type(sent_at) is int else None, spent=spent)
