"""The output of ``claude -p --output-format stream-json``: an answer of the API, block by block.

Each row has a block of an answer, or a message of the user's side. The blocks are joined to the
messages of the API, in its own format. The prompt is usually not printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...text import Fields, as_list
from ..costs import Tokens
from ..events import (
    Compacted,
    Event,
    Noted,
    Opened,
    Said,
    fields_of,
    iso_milliseconds,
    omissions,
    split_metadata,
    telling,
    text_of,
    title_of,
    without,
)
from ..source import Source
from ..spent import of_anthropic

SPEAKERS = ("user", "assistant")
EXTRA = "stream_json"
"""The key of a message for what its rows say beyond it."""
_OF_ROW = ("type", "message", "session_id", "parent_tool_use_id", "timestamp", "uuid")
_OF_RESULT = ("type", "session_id", "result", "uuid")
_OF_INIT = ("type", "subtype", "session_id", "uuid", "cwd")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a row of such a stream."""
    fields = fields_of(value)
    if not isinstance(fields.get("session_id"), str):
        return False
    if fields.get("type") in SPEAKERS:
        return bool(fields_of(fields.get("message")))
    return fields.get("type") == "system" and "uuid" in fields


def foreign(value: Any) -> str | None:
    """Return the program whose rows only look like these, None where they can be read."""
    return "Cursor Agent" if fields_of(value).get("type") == "tool_call" else None


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file, each followed by its subagents, then notes."""
    streams: dict[tuple[str, str | None], _Stream] = {}
    left: Counter[tuple[str, str]] = Counter()
    for item in source.values():
        if isinstance(item, Noted):
            yield item
            continue
        row = fields_of(item.value)
        name = text_of(row.get("session_id")) or source.stem
        place = name, text_of(row.get(CALL))
        stream = streams.setdefault(place, _Stream(*place))
        if not stream.take(row):
            subtype = str(row.get("subtype") or "")
            left[str(row.get("type")), subtype] += 1
    for stream in sorted(streams.values(), key=lambda each: each.session_id):
        yield from stream.events()
    yield from omissions(left, "row")


CALL = "parent_tool_use_id"
"""The key of a row of a subagent for the call that began it."""


class _Stream:
    """The rows of one session, or of one of its subagents.

    ``_open`` is the answer that is being streamed: the last that began.
    """

    def __init__(self, session_id: str, call: str | None) -> None:
        self.session_id = session_id
        self._call = call
        self._said: list[Fields | Compacted] = []
        self._answers: dict[str, Fields] = {}
        self._open: Fields = {}
        self._init: Fields = {}
        self._results: list[Fields] = []

    def take(self, row: Fields) -> bool:
        """Take a row; return whether anything of it is kept."""
        match row.get("type"), row.get("subtype"):
            case (("user" | "assistant"), _):
                self._speak(row, fields_of(row.get("message")))
            case "system", "init":
                self._init = self._init or row
            case "system", "compact_boundary":
                before = sum(isinstance(each, dict) for each in self._said)
                self._said.append(Compacted(before))
            case "result", _:
                self._results.append(row)
            case "stream_event", _:
                self._stream(fields_of(row.get("event")))
            case _:
                return False
        return True

    def _speak(self, row: Fields, message: Fields) -> None:
        name = text_of(message.get("id"))
        known = self._answers.get(name) if name else None
        if known is None:
            known = self._new(row, message)
        else:
            known["content"] = [*_blocks(known), *_blocks(message)]
            known[EXTRA]["uuids"].append(row.get("uuid"))
            known |= {
                key: known.get(key) if held is None else held
                for key, held in [(key, held) for key, held in message.items() if key != "content"]
            }
        if name:
            self._answers[name] = self._open = known

    def _new(self, row: Fields, message: Fields) -> Fields:
        beyond = telling(without(row, *_OF_ROW))
        uuids = {"uuids": [row.get("uuid")]}
        made = {"role": row["type"], **message, EXTRA: uuids | beyond}
        at = iso_milliseconds(row.get("timestamp"))
        if at is not None:
            made["timestamp"] = at
        self._said.append(made)
        return made

    def _stream(self, event: Fields) -> None:
        """Take the end of an answer: only it tells its cost."""
        if event.get("type") == "message_delta" and self._open:
            self._open |= telling(fields_of(event.get("delta")))
            told = fields_of(self._open.get("usage"))
            self._open["usage"] = {**told, **fields_of(event.get("usage"))}

    def events(self) -> Iterator[Event]:
        """Yield the session, if anything was said."""
        messages = [each for each in self._said if isinstance(each, dict)]
        if not messages:
            return
        metadata, notes = split_metadata(self._metadata())
        root = text_of(self._init.get("cwd"))
        yield Opened(self._name, title_of(messages), root, metadata)
        yield from self._told(self._rest(messages))
        yield from notes

    @property
    def _name(self) -> str:
        return f"{self.session_id}/agent-{self._call}" if self._call else self.session_id

    def _metadata(self) -> Fields:
        link = {"parent_session": self.session_id, "parent_call": self._call} if self._call else {}
        results = [without(each, *_OF_RESULT) for each in self._results]
        told = {"results": results} if results else {}
        return {**link, **without(self._init, *_OF_INIT), **told}

    def _told(self, rest: Tokens) -> Iterator[Event]:
        last = next(reversed(self._answers.values()), None)
        for each in self._said:
            if isinstance(each, Compacted):
                yield each
                continue
            spent = [one for one in of_anthropic(each) if any(one.tokens)]
            if each is last and any(rest):
                of_last = next(of_anthropic(each))
                spent.append(of_last._replace(tokens=rest, told={}))
            yield Said(each, "anthropic", spent=tuple(spent))

    def _rest(self, messages: list[Fields]) -> Tokens:
        """Return what the results tell of the cost beyond the answers: these say it too early."""
        whole = Tokens()
        for result in self._results:
            whole = whole.plus(next(of_anthropic(result)).tokens)
        for message in messages:
            whole = whole.less(next(of_anthropic(message)).tokens)
        return whole


def _blocks(message: Fields) -> list[Any]:
    return [*as_list(message.get("content"))] if message.get("content") else []
