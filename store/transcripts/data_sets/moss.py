"""Conversations of MOSS: turns of texts between marks, with commands of tools and their results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..conversations import GatheredSession, build_chat_message, build_result_message
from ..parser_events import (
    Event,
    SessionMessage,
    SessionNames,
    build_chat_call,
    drop_keys,
    get_fields,
    get_text,
)
from ..source import SourceValue, for_each_conversation

__all__ = ["is_moss_conversation", "parse_moss"]

FIRST_TURN = "turn_1"
SAYS_NOTHING = "None"
"""The text in a turn without thoughts, commands or results."""
MARKS = re.compile(r"^<\|[\w ]+\|>: ?|<eo[a-z]>\s*$")
"""The marks of the speaker, before a text, and of its end."""
SPOKEN = re.compile(r"\[(Human|MOSS)\]: ?(.*?)<eo[a-z]>", re.DOTALL)
"""A text of the older release, which has a conversation in one text."""
COMMAND = re.compile(r"(\w+)\(")


def is_moss_conversation(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation."""
    fields = get_fields(value)
    first = get_fields(get_fields(fields.get("chat")).get(FIRST_TURN))
    return {"Human", "MOSS"} <= first.keys() or bool(_list_plain_texts(fields))


@for_each_conversation(is_moss_conversation, "conversation with a 'chat' of turns")
def parse_moss(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a conversation; a turn's commands are one call."""
    told = item.value
    prompt = get_text(told.get("meta_instruction")) or get_text(told.get("prefix"))
    said = [{"role": "system", "content": prompt}] if prompt else []
    turns = get_fields(told.get("chat"))
    for name, turn in turns.items():
        said += _parse_moss_turn(name, get_fields(turn))
    for speaker, text in [] if turns else _list_plain_texts(told):
        role = "user" if speaker == "Human" else "assistant"
        said.append(build_chat_message(role, text.strip()))
    number = told.get("conversation_id", told.get("id"))
    name = names.name(None if number is None else f"{names.stem}-{number}")
    kept = drop_keys(told, "chat", "plain_text", "meta_instruction", "prefix")
    yield from GatheredSession("moss", name, [*map(SessionMessage, said)], told=kept).events()


def _list_plain_texts(told: JsonFields) -> list[tuple[str, str]]:
    return SPOKEN.findall(get_text(told.get("plain_text")) or "")


def _parse_moss_turn(name: str, turn: JsonFields) -> Iterator[Message]:
    """Yield the messages of a turn."""
    asked, thought, commands, results, answer = (
        _read_moss_text(turn.get(key))
        for key in ("Human", "Inner Thoughts", "Commands", "Tool Responses", "MOSS")
    )
    if asked:
        yield build_chat_message("user", asked)
    thoughts = {"reasoning_content": thought}
    if commands:
        found = COMMAND.match(commands)
        call = build_chat_call(name, found[1] if found else "command", {"command": commands})
        yield build_chat_message("assistant", None, tool_calls=[call], **thoughts)
        yield build_result_message(name, results)
        thoughts = {}
    if answer:
        yield build_chat_message("assistant", answer, **thoughts)


def _read_moss_text(text: object) -> str:
    """Return a text without its marks, "" where it says nothing."""
    said = MARKS.sub("", (get_text(text) or "").strip()).strip()
    return "" if said == SAYS_NOTHING else said
