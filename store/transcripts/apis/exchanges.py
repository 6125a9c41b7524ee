"""Requests to the APIs and their answers, one per row, as written by a recorder between both sides.

Each request sends all earlier messages again. So a request that begins with all of a conversation
is its next turn; one that begins with a part of it, past an answer, continues it there. A
compaction by the provider replaces the messages before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    CompactionEvent,
    Event,
    ForkPoint,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_list,
    get_text,
    note_omission,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource
from .answers import (
    APIS,
    Api,
    parse_answer_cost,
    parse_answer_timestamp,
    parse_body,
    parse_stream_events,
)

__all__ = ["is_exchange", "parse_exchanges"]

OMITTED_KEYS = (
    "status",
    "cache_control",
    "annotations",
    "citations",
    "logprobs",
    "caller",
    "phase",
)
"""Keys that clients leave out, or set anew, where they send a message again."""
EQUAL_TEXT_TYPES = ("text", "input_text", "output_text")


def count_shared_messages(line: list[Any], sent: list[Any]) -> int:
    """Return with how many messages of a line a request begins."""
    count = 0
    for one, other in zip(line, sent, strict=False):
        if not is_equal_message(one, other):
            break
        count += 1
    return count


def is_equal_message(one: Any, other: Any) -> bool:
    """Tell whether two messages are one."""
    named = get_fields(one).get("id"), get_fields(other).get("id")
    if None not in named:
        return named[0] == named[1]
    return bool(_normalize_message(one) == _normalize_message(other))


def _normalize_message(message: Any) -> Any:
    """Return what makes a message the one that it is."""
    fields = dict(_drop_omitted_keys(drop_keys(get_fields(message), "id")))
    if "role" in fields:
        fields.pop("type", None)
    if "content" in fields:
        fields["content"] = [
            (
                part["text"]
                if get_fields(part).get("type") in EQUAL_TEXT_TYPES and "text" in part
                else part
            )
            for part in wrap_in_list(fields["content"])
        ]
    return fields


def _drop_omitted_keys(value: Any) -> Any:
    """Return a value without what clients leave out."""
    if isinstance(value, list):
        return [*map(_drop_omitted_keys, value)]
    if not isinstance(value, dict):
        return value
    said = {key: _drop_omitted_keys(held) for key, held in value.items()}
    return drop_empty_fields(drop_keys(said, *OMITTED_KEYS))


FIRST_ERROR_CODE = 400
"""Codes from here on say that a request was refused."""


class Exchange(NamedTuple):
    """A request and its answer."""

    api: Api
    asked: list[Any]
    request: JsonFields
    answer: JsonFields


class RecordedConversation:
    """The messages since its first request: the whole line, and the part that is its own."""

    def __init__(
        self, session_id: str, request: JsonFields, stem: ForkPoint | None, line: list[Any]
    ) -> None:
        self.id = session_id
        self.line = line
        self.answered_at = len(line)
        self._request, self._stem = request, stem
        self._own: list[SessionMessage | CompactionEvent] = []
        told = (place for place, each in enumerate(line) if _is_compaction_item(each))
        self._compacted = max(told, default=None)

    def add(self, exchange: Exchange, known: int) -> None:
        """Add the next request, whose first ``known`` messages are known, and its answer."""
        name, moment = exchange.api.format, parse_answer_timestamp(exchange.answer)
        for message in exchange.asked[known:]:
            self._say(SessionMessage(message, name, moment))
        answered = _list_answer_messages(exchange)
        spent = parse_answer_cost(exchange.api, exchange.answer)
        for number, message in enumerate(answered, 1):
            is_last = number == len(answered)
            self._say(SessionMessage(message, name, moment, spent if is_last else ()))
        self.answered_at = self.answered_at or len(self.line)

    def _say(self, said: SessionMessage) -> None:
        if _is_compaction_item(said.message):
            own = sum(isinstance(each, SessionMessage) for each in self._own)
            self._own.append(CompactionEvent(own))
            self._compacted = len(self.line)
        self._own.append(said)
        self.line.append(said.message)

    def shared(self, asked: list[Any]) -> tuple[int, int]:
        """Return how much of the line a request begins with, and of how many messages that is."""
        begins = count_shared_messages(self.line, asked)
        place = self._place_of_compaction(asked)
        if self._compacted is None or place is None:
            return begins, begins
        behind = count_shared_messages(self.line[self._compacted :], asked[place:])
        return self._compacted + behind, place + behind

    def _place_of_compaction(self, asked: list[Any]) -> int | None:
        if self._compacted is None:
            return None
        last = self.line[self._compacted]
        places = (place for place, each in enumerate(asked) if is_equal_message(last, each))
        return next(places, None)

    def events(self) -> Iterator[Event]:
        """Yield the session."""
        metadata, notes = split_metadata(self._request)
        title = find_title(get_fields(each) for each in self.line)
        yield SessionEvent(self.id, title, None, metadata, stem=self._stem)
        yield from self._own
        yield from notes


def is_exchange(value: Any) -> bool:
    """Tell a request to a provider, with its answer."""
    return _parse_exchange(value) is not None


def parse_exchanges(source: TranscriptSource) -> Iterator[Event]:
    """Return the conversations of a file, and a note for each thing that is no exchange."""
    reading = _ExchangeReader(source.stem)
    for item in source.values():
        yield from [item] if isinstance(item, NoteEvent) else reading.take(item)
    yield from reading.events()


class _SharedStart(NamedTuple):
    """How much of a conversation's line a request begins with, and how many messages of it."""

    length: int
    known: int
    conversation: RecordedConversation | None

    @property
    def is_past_answer(self) -> bool:
        """Whether it continues after an answer, or repeats all of a request without an answer."""
        if self.conversation is None or not self.length:
            return False
        is_whole = self.length == len(self.conversation.line)
        return is_whole or self.length >= self.conversation.answered_at > 0


class _ExchangeReader:
    """The conversations of a file, as far as it is read."""

    def __init__(self, stem: str) -> None:
        self._names = SessionNames(stem)
        self._conversations: list[RecordedConversation] = []
        self._answers: dict[str, tuple[RecordedConversation, int]] = {}
        self._refused = 0

    def take(self, item: SourceValue) -> Iterator[NoteEvent]:
        """Take the next exchange; yield a note where it is none."""
        exchange = _parse_exchange(item.value)
        if exchange is None:
            yield NoteEvent(item.row, f"line {item.row} is no request with its answer", broken=True)
            return
        self._refused += not _list_answer_messages(exchange) and _is_refused_request(item.value)
        conversation, known = self._conversation(exchange)
        conversation.add(exchange, known)
        name = get_text(exchange.answer.get("id"))
        if name:
            self._answers[name] = conversation, len(conversation.line)

    def events(self) -> Iterator[Event]:
        """Yield every session."""
        for conversation in self._conversations:
            yield from conversation.events()
        if self._refused:
            yield note_omission(self._refused, "answer that says why a request was refused", "")

    def _conversation(self, exchange: Exchange) -> tuple[RecordedConversation, int]:
        """Return the conversation that an exchange is of, and how much of its request is known."""
        before = self._answers.get(str(exchange.request.get("previous_response_id")))
        if before:
            return self._from(*before, exchange), 0
        found = [_SharedStart(*each.shared(exchange.asked), each) for each in self._conversations]
        past = (each for each in found if each.is_past_answer)
        none = _SharedStart(0, 0, None)
        best = max(past, key=attrgetter("length"), default=none)
        return self._from(best.conversation, best.length, exchange), best.known

    def _from(
        self, conversation: RecordedConversation | None, length: int, asked: Exchange
    ) -> RecordedConversation:
        """Return a conversation, or a new one that continues it where it has gone on."""
        if conversation and len(conversation.line) == length:
            return conversation
        stem = ForkPoint(conversation.id, length) if conversation else None
        line = conversation.line[:length] if conversation else []
        told = drop_keys(asked.request, asked.api.asked, "stream", "previous_response_id")
        made = RecordedConversation(self._names.name(), told, stem, line)
        self._conversations.append(made)
        return made


def _parse_exchange(value: Any) -> Exchange | None:
    """Return a request with its answer, None where a value is none."""
    fields = get_fields(value)
    request, response = get_fields(fields.get("request")), get_fields(fields.get("response"))
    sent = parse_body(request.get("body", request))
    got = parse_body(response.get("body", response))
    if not isinstance(sent, dict):
        return None
    address = str(request.get("uri") or request.get("url"))
    fitting = (each for each in APIS if _is_exchange_of_api(each, address, sent, got))
    api = next(fitting, None)
    if api is None:
        return None
    answer = got if isinstance(got, dict) else api.whole(parse_stream_events(got))
    held = sent[api.asked]
    return Exchange(
        api, [{"role": "user", "content": held}] if isinstance(held, str) else held, sent, answer
    )


def _is_exchange_of_api(api: Api, address: str, sent: JsonFields, got: JsonFields | str) -> bool:
    held = sent.get(api.asked)
    if not isinstance(held, str):
        messages = get_list(held) or [None]
        if not all(map(get_fields, messages)):
            return False
    return api.address in address or api.answered in get_fields(got)


def _list_answer_messages(exchange: Exchange) -> list[Any]:
    """Return the messages of an answer; of a compaction only its item, as the rest is known."""
    said = exchange.api.said(exchange.answer)
    if exchange.answer.get("object") == "response.compaction":
        return [*filter(_is_compaction_item, said)]
    return said


def _is_compaction_item(message: Any) -> bool:
    fields = get_fields(message)
    return fields.get("type") == "compaction" and "role" not in fields


def _is_refused_request(value: Any) -> bool:
    told = get_fields(get_fields(value).get("response")).get("status")
    code = get_fields(told).get("code", told)
    return type(code) is int and code >= FIRST_ERROR_CODE
