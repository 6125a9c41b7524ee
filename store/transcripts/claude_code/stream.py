"""The output of ``claude -p --output-format stream-json``: an answer of the API, block by block.

Each row has a block of an answer, or a message of the user's side. The blocks are joined to the
messages of the API, in its own format. The prompt is usually not printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    UsageTokens,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_text,
    list_omission_notes,
    parse_iso_milliseconds,
    split_metadata,
)
from ..source import TranscriptSource
from ..usages import parse_anthropic_usage

STREAM_MESSAGE_TYPES = ("user", "assistant")
STREAM_EXTRA_KEY = "stream_json"
"""The key of a message for what its rows say beyond it."""
_STREAM_ROW_KEYS = ("type", "message", "session_id", "parent_tool_use_id", "timestamp", "uuid")
_STREAM_RESULT_KEYS = ("type", "session_id", "result", "uuid")
_STREAM_INIT_KEYS = ("type", "subtype", "session_id", "uuid", "cwd")


def is_stream_json_row(value: Any) -> bool:
    """Tell whether a JSON value is a row of such a stream."""
    fields = get_fields(value)
    if not isinstance(fields.get("session_id"), str):
        return False
    if fields.get("type") in STREAM_MESSAGE_TYPES:
        return bool(get_fields(fields.get("message")))
    return fields.get("type") == "system" and "uuid" in fields


def find_stream_json_lookalike(value: Any) -> str | None:
    """Return the program whose rows only look like these, None where they can be read."""
    return "Cursor Agent" if get_fields(value).get("type") == "tool_call" else None


def parse_stream_json(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each followed by its subagents, then notes."""
    streams: dict[tuple[str, str | None], _StreamSession] = {}
    left: Counter[tuple[str, str]] = Counter()
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
            continue
        row = get_fields(item.value)
        name = get_text(row.get("session_id")) or source.stem
        place = name, get_text(row.get(PARENT_CALL_KEY))
        stream = streams.setdefault(place, _StreamSession(*place))
        if not stream.take(row):
            subtype = str(row.get("subtype") or "")
            left[str(row.get("type")), subtype] += 1
    for stream in sorted(streams.values(), key=lambda each: each.session_id):
        yield from stream.events()
    yield from list_omission_notes(left, "row")


PARENT_CALL_KEY = "parent_tool_use_id"
"""The key of a row of a subagent for the call that began it."""


class _StreamSession:
    """The rows of one session, or of one of its subagents.

    ``_open`` is the answer that is being streamed: the last that began.
    """

    def __init__(self, session_id: str, call: str | None) -> None:
        self.session_id = session_id
        self._call = call
        self._said: list[JsonFields | CompactionEvent] = []
        self._answers: dict[str, JsonFields] = {}
        self._open: JsonFields = {}
        self._init: JsonFields = {}
        self._results: list[JsonFields] = []

    def take(self, row: JsonFields) -> bool:
        """Take a row; return whether anything of it is kept."""
        match row.get("type"), row.get("subtype"):
            case (("user" | "assistant"), _):
                self._speak(row, get_fields(row.get("message")))
            case "system", "init":
                self._init = self._init or row
            case "system", "compact_boundary":
                before = sum(isinstance(each, dict) for each in self._said)
                self._said.append(CompactionEvent(before))
            case "result", _:
                self._results.append(row)
            case "stream_event", _:
                self._stream(get_fields(row.get("event")))
            case _:
                return False
        return True

    def _speak(self, row: JsonFields, message: JsonFields) -> None:
        name = get_text(message.get("id"))
        known = self._answers.get(name) if name else None
        if known is None:
            known = self._new(row, message)
        else:
            known["content"] = [*_list_stream_blocks(known), *_list_stream_blocks(message)]
            known[STREAM_EXTRA_KEY]["uuids"].append(row.get("uuid"))
            known |= {
                key: known.get(key) if held is None else held
                for key, held in [(key, held) for key, held in message.items() if key != "content"]
            }
        if name:
            self._answers[name] = self._open = known

    def _new(self, row: JsonFields, message: JsonFields) -> JsonFields:
        beyond = drop_empty_fields(drop_keys(row, *_STREAM_ROW_KEYS))
        uuids = {"uuids": [row.get("uuid")]}
        made = {"role": row["type"], **message, STREAM_EXTRA_KEY: uuids | beyond}
        at = parse_iso_milliseconds(row.get("timestamp"))
        if at is not None:
            made["timestamp"] = at
        self._said.append(made)
        return made

    def _stream(self, event: JsonFields) -> None:
        """Take the end of an answer: only it tells its cost."""
        if event.get("type") == "message_delta" and self._open:
            self._open |= drop_empty_fields(get_fields(event.get("delta")))
            told = get_fields(self._open.get("usage"))
            self._open["usage"] = {**told, **get_fields(event.get("usage"))}

    def events(self) -> Iterator[Event]:
        """Yield the session, if anything was said."""
        messages = [each for each in self._said if isinstance(each, dict)]
        if not messages:
            return
        metadata, notes = split_metadata(self._metadata())
        root = get_text(self._init.get("cwd"))
        yield SessionEvent(self._name, find_title(messages), root, metadata)
        yield from self._told(self._rest(messages))
        yield from notes

    @property
    def _name(self) -> str:
        return f"{self.session_id}/agent-{self._call}" if self._call else self.session_id

    def _metadata(self) -> JsonFields:
        link = {"parent_session": self.session_id, "parent_call": self._call} if self._call else {}
        results = [drop_keys(each, *_STREAM_RESULT_KEYS) for each in self._results]
        told = {"results": results} if results else {}
        return {**link, **drop_keys(self._init, *_STREAM_INIT_KEYS), **told}

    def _told(self, rest: UsageTokens) -> Iterator[Event]:
        last = next(reversed(self._answers.values()), None)
        for each in self._said:
            if isinstance(each, CompactionEvent):
                yield each
                continue
            spent = [one for one in parse_anthropic_usage(each) if any(one.tokens)]
            if each is last and any(rest):
                of_last = next(parse_anthropic_usage(each))
                spent.append(of_last._replace(tokens=rest, told={}))
            yield SessionMessage(each, "anthropic", spent=tuple(spent))

    def _rest(self, messages: list[JsonFields]) -> UsageTokens:
        """Return what the results tell of the cost beyond the answers: these say it too early."""
        whole = UsageTokens()
        for result in self._results:
            whole = whole.plus(next(parse_anthropic_usage(result)).tokens)
        for message in messages:
            whole = whole.less(next(parse_anthropic_usage(message)).tokens)
        return whole


def _list_stream_blocks(message: JsonFields) -> list[Any]:
    return [*wrap_in_list(message.get("content"))] if message.get("content") else []
