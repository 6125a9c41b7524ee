"""Streaming an answer: its text is saved at intervals, and becomes a message in the end.

Text is gathered in memory. It is saved after ``every_bytes`` bytes, or if the last save was more
than ``every_ms`` ms ago: a crash loses less than ``every_bytes``, all received within ``every_ms``.
A save is a transaction of a few rows; between two saves no other writer waits.
"""

from __future__ import annotations

import os
import platform
import secrets
import time
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Self

from .. import history
from ..database import Database, Pulse
from ..errors import InvalidValue, StoreError, quote_value
from ..messages import Message, count_utf8_bytes, encode
from ..records import StoredMessage
from ..text import is_text
from .calls import Call, Face
from .lifetime import Lifetime

if TYPE_CHECKING:
    from ..formats import ChunkReader
    from ..history import drafts
    from ..messages import GivenMessage

SAVE_EVERY_BYTES = 4096
"""Bytes of text, in UTF-8, after which it is saved at once."""
SAVE_EVERY_MS = 250
"""Ms after which the next text is saved, however short it is."""
OUTSIDE_PROBLEM = "an answer grows inside of the `with` of its stream only"
ENTERED_TWICE_PROBLEM = "a stream is entered once; `streaming` gives another one"
LARGEST_PACE = 2**62
"""The largest valid number of bytes or ms."""


class StreamRequest(NamedTuple):
    """The settings of a stream."""

    face: Face
    database: Database
    session_id: str
    message: GivenMessage
    expected: str | None
    every_bytes: int
    every_ms: int
    format: str | None
    alone: bool


class ReceivedAnswer:
    """The received part of a message, and the extent to which it is saved."""

    def __init__(self, asked: StreamRequest) -> None:
        for name, given in (("every_bytes", asked.every_bytes), ("every_ms", asked.every_ms)):
            if type(given) is not int or not 0 <= given <= LARGEST_PACE:
                raise InvalidValue(
                    f"{name} must be a whole number from 0, not {quote_value(given)}"
                )
        self._asked = asked
        self._given: Message = {}
        self._texts: list[drafts.TextPiece] = []
        self._written: set[str] = set()
        self._reader: ChunkReader | None = None
        self._told: history.drafts.ToldUsage | None = None
        self._kept, self._next = 0, 1
        self._is_open = self._is_over = False
        self.id = ""
        self.stored: StoredMessage | None = None

    @property
    def message(self) -> Message:
        """The message so far."""
        return history.drafts.extend_message(self._given, self._texts)

    @property
    def is_due(self) -> bool:
        """Whether it is time to save the received text."""
        if self._unkept_bytes >= self._asked.every_bytes:
            return True
        return (time.monotonic() - self._kept_at) * 1000 >= self._asked.every_ms

    def begin(self) -> None:
        """Begin the draft. Raises InvalidValue for an answer that has ended."""
        if self._is_open or self._is_over:
            raise InvalidValue(ENTERED_TWICE_PROBLEM)
        asked, number = self._asked, secrets.randbits(63)
        self._pulse = Pulse(number, asked.database.open_lock_file)
        self._pulse.start()  # before others can see the draft
        options = {
            **{name: getattr(asked, name) for name in ("expected", "format", "alone")},
            "now": asked.face._moment(None),
            "number": number,
            "writer": f"process {os.getpid()} on {platform.node() or 'this machine'}",
            "leased": not self._pulse.is_locked,
        }
        call = Call(history.drafts.begin_draft, (asked.session_id, asked.message), options)
        try:
            draft = asked.face._write(call)
        except BaseException:
            self._pulse.stop()
            raise
        self.id, self._given = draft.draft, draft.message
        self._pulse.renew = partial(history.drafts.renew_lease, asked.database, self.id)
        self._is_open = True
        self._settle()

    def add(self, text: str, key: str) -> None:
        """Add a text to the value of a key. Raises InvalidValue if one of them is no text."""
        self._check_open()
        if not isinstance(text, str) or not is_text(key):
            raise InvalidValue(
                f"a message can only be extended by texts, not by {quote_value(text)}"
                f" for {quote_value(key)}"
            )
        if not isinstance(self._given.get(key), str | None):
            raise InvalidValue(
                f"{quote_value(key)} is not a text in this message; `update` replaces it"
            )
        self._texts.append(history.drafts.TextPiece(key, text))
        self._written.add(key)
        self._unkept_bytes += count_utf8_bytes(text)

    def take(self, chunk: object) -> str:
        """Add a chunk of a provider's stream; return the text of the answer in it.

        Raises InvalidValue.
        """
        self._check_open()
        from .. import formats  # no other stream needs them

        reader, texts = formats.read_chunk(self._reader, chunk)
        if self._asked.format not in (None, reader.format):
            raise InvalidValue(
                f"the stream is of the format {reader.format}, the message was begun as one of "
                f"{self._asked.format}"
            )
        self._reader = reader
        for each in texts:
            self.add(each.text, each.key)
        return "".join(each.text for each in texts if each.key == "content")

    @property
    def _usage(self) -> history.drafts.ToldUsage | None:
        """What the stream has told of its usage; None if no chunks were taken."""
        reader = self._reader
        if reader is None:
            return None
        told = (reader.response, reader.model, reader.provider, reader.is_whole)
        return history.drafts.ToldUsage(*told)

    def _list_messages(self) -> Message | list[Message]:
        """Return the messages of the whole answer, in the format of the provider."""
        said = self.message
        messages = self._reader.list_messages() if self._reader else []
        if len(messages) != 1:
            return messages or said
        return {**self._given, **messages[0]}

    def replace(self, changes: Message) -> None:
        """Replace the values of keys. Raises InvalidMessage, InvalidValue for a key written to."""
        self._check_open()
        given = history.drafts.update_message(self._given, changes)
        if grown := self._written & {*changes}:
            raise InvalidValue(f"{min(grown)!r:.80} was extended already, so it cannot be replaced")
        self._given = history.drafts.decode_beginning(given, self._asked.format)
        self._is_changed = True

    def keep(self, *, last: bool = False) -> None:
        """Save the text received since the last save; after the ``last`` one the draft is dead."""
        self._check_open()
        reached = len(self._texts)
        usage = self._usage
        if reached == self._kept and not (self._is_changed or last):
            return
        if self._pulse.is_locked:
            self._pulse.beat()
        runs = groupby(self._texts[self._kept :], attrgetter("key"))
        pieces = [
            history.drafts.TextPiece(key, "".join(each.text for each in run)) for key, run in runs
        ]
        changed = self._given if self._is_changed else None
        session_id = self._asked.session_id
        face = self._asked.face
        texts = (session_id, self.id, self._next, pieces, changed)
        options = {
            "now": face._moment(None),
            "leased": not self._pulse.is_locked,
            "last": last,
            "usage": usage if last or usage != self._told else None,
        }
        face._write(Call(history.drafts.save_pieces, texts, options))
        self._kept, self._next = reached, self._next + len(pieces)
        self._told = usage
        self._settle()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidValue(OUTSIDE_PROBLEM)

    def _settle(self) -> None:
        self._is_changed, self._unkept_bytes = False, 0
        self._kept_at = time.monotonic()

    def end(self) -> None:
        """Store the answer as a message; if that fails, save all of the received text."""
        self._check_open()
        asked = self._asked
        whole = self._list_messages()
        several = {"role": "assistant", "content": encode(whole)}
        given = (asked.session_id, self.id, whole)
        options = {
            "expected": asked.expected,
            "format": self._reader.format if self._reader else asked.format,
            "now": asked.face._moment(None),
            "usage": self._usage,
            "received": whole if isinstance(whole, dict) else several,
        }
        try:
            self.stored = asked.face._write(Call(history.drafts.append_draft, given, options))
        except BaseException:
            self.keep_last()
            raise

    def keep_last(self) -> None:
        """Save the last text, if possible."""
        with suppress(StoreError):
            self.keep(last=True)

    def close(self) -> None:
        """Accept no more text, since it would not be saved."""
        if self._is_open:
            self._pulse.stop()
        self._is_open, self._is_over = False, True


class StreamState:
    """The properties of a stream."""

    def __init__(self, answer: ReceivedAnswer | None = None) -> None:
        self._begun = answer

    @property
    def _answer(self) -> ReceivedAnswer:
        """The received answer; an awaited stream has one once begun. Raises InvalidValue."""
        if self._begun is None:
            raise InvalidValue(OUTSIDE_PROBLEM)
        return self._begun

    @property
    def draft(self) -> str:
        """The id of the draft in which the answer is saved."""
        return self._answer.id

    @property
    def message(self) -> Message:
        """The message so far."""
        return self._answer.message

    @property
    def stored(self) -> StoredMessage | None:
        """The message as stored at the end; None until then."""
        return self._answer.stored


class Streaming(StreamState):
    """An answer that is being streamed, as in ``with store.streaming(…) as answer``.

    Its methods raise StoreError outside of the ``with``, and in any thread except the one that
    entered it.
    """

    def __init__(self, asked: StreamRequest) -> None:
        super().__init__(ReceivedAnswer(asked))
        self._lifetime = Lifetime("the methods of a stream")

    def write(self, text: str, key: str = "content") -> None:
        """Add a text to the message's content, or to the value of another key.

        Saves the received text when it is time. Raises InvalidValue for a value that is no text,
        and for a key that holds none; on saving, StoreError and its children: DraftEnded if
        somebody finished or discarded the draft meanwhile.
        """
        self._lifetime.check()
        self._answer.add(text, key)
        if self._answer.is_due:
            self._answer.keep()

    def take(self, chunk: object) -> str:
        """Add a chunk of a provider's stream; return the text of the answer in it.

        ``chunk`` is a chunk from a client of OpenAI (chat or Responses), Anthropic or Gemini, as an
        object or a dict. At the end the whole answer is stored in the provider's format, its calls
        included, with the keys in which the message began, and the usage that the stream told is
        recorded. Of a stream that breaks off the text is saved, and counted in the recorded usage,
        whose ``details["estimated"]`` is then true. Raises the exceptions of `write`.
        """
        self._lifetime.check()
        text = self._answer.take(chunk)
        if self._answer.is_due:
            self._answer.keep()
        return text

    def update(self, message: Message) -> None:
        """Replace other keys of the message, such as ``tool_calls``, by the given ones.

        Raises the exceptions of `write`, and InvalidMessage.
        """
        self._lifetime.check()
        self._answer.replace(message)
        if self._answer.is_due:
            self._answer.keep()

    def keep(self) -> None:
        """Save the received text at once. Raises StoreError and its children."""
        self._lifetime.check()
        self._answer.keep()

    def __enter__(self) -> Self:
        self._answer.begin()
        self._lifetime = Lifetime("the methods of a stream")
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        try:
            if error is not None:
                self._answer.keep_last()
                return
            try:
                self._lifetime.check()
            except StoreError:
                self._answer.keep_last()
                raise
            self._answer.end()
        finally:
            self._answer.close()
