"""Requests to the APIs and their answers, one per row, as written by a recorder between both sides.

Each request sends all earlier messages again. So a request that begins with all of a conversation
is its next turn; one that begins with a part of it, past an answer, continues it there. A
compaction by the provider replaces the messages before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from ...text import Fields
from ..events import (
    Compacted,
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    Stem,
    fields_of,
    left_out,
    list_of,
    split_metadata,
    text_of,
    title_of,
    without,
)
from ..source import Source, Value
from .answers import APIS, Api, body_of, cost_of, moment_of
from .likeness import is_same, shared
from .streams import events_of

ERROR = 400
"""Codes from here on say that a request was refused."""


class Exchange(NamedTuple):
    """A request and its answer."""

    api: Api
    asked: list[Any]
    request: Fields
    answer: Fields


class Conversation:
    """The messages since its first request: the whole line, and the part that is its own."""

    def __init__(
        self, session_id: str, request: Fields, stem: Stem | None, line: list[Any]
    ) -> None:
        self.id = session_id
        self.line = line
        self.answered_at = len(line)
        self._request, self._stem = request, stem
        self._own: list[Said | Compacted] = []
        told = (place for place, each in enumerate(line) if _is_compaction(each))
        self._compacted = max(told, default=None)

    def add(self, exchange: Exchange, known: int) -> None:
        """Add the next request, whose first ``known`` messages are known, and its answer."""
        name, moment = exchange.api.format, moment_of(exchange.answer)
        for message in exchange.asked[known:]:
            self._say(Said(message, name, moment))
        answered = _answered(exchange)
        spent = cost_of(exchange.api, exchange.answer)
        for number, message in enumerate(answered, 1):
            is_last = number == len(answered)
            self._say(Said(message, name, moment, spent if is_last else ()))
        self.answered_at = self.answered_at or len(self.line)

    def _say(self, said: Said) -> None:
        if _is_compaction(said.message):
            own = sum(isinstance(each, Said) for each in self._own)
            self._own.append(Compacted(own))
            self._compacted = len(self.line)
        self._own.append(said)
        self.line.append(said.message)

    def shared(self, asked: list[Any]) -> tuple[int, int]:
        """Return how much of the line a request begins with, and of how many messages that is."""
        begins = shared(self.line, asked)
        place = self._place_of_compaction(asked)
        if self._compacted is None or place is None:
            return begins, begins
        behind = shared(self.line[self._compacted :], asked[place:])
        return self._compacted + behind, place + behind

    def _place_of_compaction(self, asked: list[Any]) -> int | None:
        if self._compacted is None:
            return None
        last = self.line[self._compacted]
        places = (place for place, each in enumerate(asked) if is_same(last, each))
        return next(places, None)

    def events(self) -> Iterator[Event]:
        """Yield the session."""
        metadata, notes = split_metadata(self._request)
        title = title_of(fields_of(each) for each in self.line)
        yield Opened(self.id, title, None, metadata, stem=self._stem)
        yield from self._own
        yield from notes


def looks(value: Any) -> bool:
    """Tell a request to a provider, with its answer."""
    return _exchange(value) is not None


def parse(source: Source) -> Iterator[Event]:
    """Return the conversations of a file, and a note for each thing that is no exchange."""
    reading = _Reading(source.stem)
    for item in source.values():
        yield from [item] if isinstance(item, Noted) else reading.take(item)
    yield from reading.events()


class _Begun(NamedTuple):
    """How much of a conversation's line a request begins with, and how many messages of it."""

    length: int
    known: int
    conversation: Conversation | None

    @property
    def is_past_answer(self) -> bool:
        """Whether it continues after an answer, or repeats all of a request without an answer."""
        if self.conversation is None or not self.length:
            return False
        is_whole = self.length == len(self.conversation.line)
        return is_whole or self.length >= self.conversation.answered_at > 0


class _Reading:
    """The conversations of a file, as far as it is read."""

    def __init__(self, stem: str) -> None:
        self._names = SessionNames(stem)
        self._conversations: list[Conversation] = []
        self._answers: dict[str, tuple[Conversation, int]] = {}
        self._refused = 0

    def take(self, item: Value) -> Iterator[Noted]:
        """Take the next exchange; yield a note where it is none."""
        exchange = _exchange(item.value)
        if exchange is None:
            yield Noted(item.row, f"line {item.row} is no request with its answer", broken=True)
            return
        self._refused += not _answered(exchange) and _is_refused(item.value)
        conversation, known = self._conversation(exchange)
        conversation.add(exchange, known)
        name = text_of(exchange.answer.get("id"))
        if name:
            self._answers[name] = conversation, len(conversation.line)

    def events(self) -> Iterator[Event]:
        """Yield every session."""
        for conversation in self._conversations:
            yield from conversation.events()
        if self._refused:
            yield left_out(self._refused, "answer that says why a request was refused", "")

    def _conversation(self, exchange: Exchange) -> tuple[Conversation, int]:
        """Return the conversation that an exchange is of, and how much of its request is known."""
        before = self._answers.get(str(exchange.request.get("previous_response_id")))
        if before:
            return self._from(*before, exchange), 0
        found = [_Begun(*each.shared(exchange.asked), each) for each in self._conversations]
        past = (each for each in found if each.is_past_answer)
        none = _Begun(0, 0, None)
        best = max(past, key=attrgetter("length"), default=none)
        return self._from(best.conversation, best.length, exchange), best.known

    def _from(
        self, conversation: Conversation | None, length: int, asked: Exchange
    ) -> Conversation:
        """Return a conversation, or a new one that continues it where it has gone on."""
        if conversation and len(conversation.line) == length:
            return conversation
        stem = Stem(conversation.id, length) if conversation else None
        line = conversation.line[:length] if conversation else []
        told = without(asked.request, asked.api.asked, "stream", "previous_response_id")
        made = Conversation(self._names.name(), told, stem, line)
        self._conversations.append(made)
        return made


def _exchange(value: Any) -> Exchange | None:
    """Return a request with its answer, None where a value is none."""
    fields = fields_of(value)
    request, response = fields_of(fields.get("request")), fields_of(fields.get("response"))
    sent = body_of(request.get("body", request))
    got = body_of(response.get("body", response))
    if not isinstance(sent, dict):
        return None
    address = str(request.get("uri") or request.get("url"))
    fitting = (each for each in APIS if _is_of(each, address, sent, got))
    api = next(fitting, None)
    if api is None:
        return None
    answer = got if isinstance(got, dict) else api.whole(events_of(got))
    held = sent[api.asked]
    return Exchange(
        api, ([{"role": "user", "content": held}] if isinstance(held, str) else held), sent, answer
    )


def _is_of(api: Api, address: str, sent: Fields, got: Fields | str) -> bool:
    held = sent.get(api.asked)
    if not isinstance(held, str):
        messages = list_of(held) or [None]
        if not all(map(fields_of, messages)):
            return False
    return api.address in address or api.answered in fields_of(got)


def _answered(exchange: Exchange) -> list[Any]:
    """Return the messages of an answer; of a compaction only its item, as the rest is known."""
    said = exchange.api.said(exchange.answer)
    if exchange.answer.get("object") == "response.compaction":
        return [*filter(_is_compaction, said)]
    return said


def _is_compaction(message: Any) -> bool:
    fields = fields_of(message)
    return fields.get("type") == "compaction" and "role" not in fields


def _is_refused(value: Any) -> bool:
    told = fields_of(fields_of(value).get("response")).get("status")
    code = fields_of(told).get("code", told)
    return type(code) is int and code >= ERROR
