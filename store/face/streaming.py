"""An answer while it comes: what came is kept every so often, and is a message in the end.

What is written is gathered in memory. It is kept when it has become much, or when the last time is
some while ago: so a crash loses less than ``every_bytes``, all of which came within ``every_ms`` of
each other. To keep it takes a transaction of a few rows; in between no other writer waits.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Self

from .. import history
from ..errors import InvalidValue, StoreError, quoted
from ..messages import Message, utf8_size
from ..records import StoredMessage
from ..text import is_text
from .binding import Call, Face
from .lifetime import Lifetime

if TYPE_CHECKING:
    from ..history import drafts
    from ..messages import GivenMessage

EVERY_BYTES = 4096
"""Bytes of text, in UTF-8, that are kept at once."""
EVERY_MS = 250
"""Ms after which the next text is kept, however little has come."""
OUTSIDE = "an answer grows inside of the `with` of its stream only"
ONCE = "a stream is entered once; `streaming` gives another one"
LARGEST = 2**62
"""More bytes or ms than this are none."""


class Asked(NamedTuple):
    """What a stream is asked to be."""

    face: Face
    session_id: str
    message: GivenMessage
    expected: str | None
    every_bytes: int
    every_ms: int
    format: str | None


class Answer:
    """What came of a message, and what of it is kept already."""

    def __init__(self, asked: Asked) -> None:
        _check_pace(asked.every_bytes, asked.every_ms)
        self._asked = asked
        self._given: Message = {}
        self._texts: list[drafts.TextPiece] = []
        self._written: set[str] = set()
        self._kept, self._next = 0, 1
        self._is_open = self._is_over = False
        self.id = ""
        self.stored: StoredMessage | None = None

    @property
    def message(self) -> Message:
        """The message as it is by now."""
        return history.drafts.extend_message(self._given, self._texts)

    @property
    def is_due(self) -> bool:
        """Whether it is time to keep what came."""
        if self._unkept_bytes >= self._asked.every_bytes:
            return True
        return (time.monotonic() - self._kept_at) * 1000 >= self._asked.every_ms

    def begin(self) -> None:
        """Begin the draft. Raises InvalidValue for an answer that has ended."""
        if self._is_open or self._is_over:
            raise InvalidValue(ONCE)
        face, session_id, message, expected, *_ = self._asked
        named = self._asked.format
        options = {"expected": expected, "format": named, "now": face._moment(None)}
        draft = face._write(Call(history.drafts.begin_draft, (session_id, message), options))
        self.id, self._given = draft.draft, draft.message
        self._is_open = True
        self._settle()

    def add(self, text: str, key: str) -> None:
        """Add a text to what a key says. Raises InvalidValue where one of them is no text."""
        self._check_open()
        if not isinstance(text, str) or not is_text(key):
            raise InvalidValue(f"a message grows by texts, not by {quoted(text)} for {quoted(key)}")
        if not isinstance(self._given.get(key), str | None):
            raise InvalidValue(f"{quoted(key)} is no text in this message; `update` replaces it")
        self._texts.append(history.drafts.TextPiece(key, text))
        self._written.add(key)
        self._unkept_bytes += utf8_size(text)

    def replace(self, changes: Message) -> None:
        """Replace keys. Raises InvalidValue for one that was written to, InvalidMessage."""
        self._check_open()
        given = history.drafts.update_message(self._given, changes)
        if grown := self._written & {*changes}:
            raise InvalidValue(f"{min(grown)!r:.80} was written to, so it only grows")
        self._given = history.drafts.decode_beginning(given, self._asked.format)
        self._is_changed = True

    def keep(self) -> None:
        """Keep what came since the last time."""
        self._check_open()
        reached = len(self._texts)
        if reached == self._kept and not self._is_changed:
            return
        pieces = _runs(self._texts[self._kept :])
        changed = self._given if self._is_changed else None
        session_id = self._asked.session_id
        face = self._asked.face
        texts = (session_id, self.id, self._next, pieces, changed)
        face._write(Call(history.drafts.save_pieces, texts, {"now": face._moment(None)}))
        self._kept, self._next = reached, self._next + len(pieces)
        self._settle()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidValue(OUTSIDE)

    def _settle(self) -> None:
        self._is_changed, self._unkept_bytes = False, 0
        self._kept_at = time.monotonic()

    def end(self) -> None:
        """Let it be a message; where it cannot be, keep all that came."""
        self._check_open()
        face, session_id, _, expected, *_, named = self._asked
        whole = self.message
        try:
            options = {"expected": expected, "format": named, "now": face._moment(None)}
            self.stored = face._write(
                Call(history.drafts.append_draft, (session_id, self.id, whole), options)
            )
        except BaseException:
            self.keep_last()
            raise

    def keep_last(self) -> None:
        """Keep what came last, where it can be kept."""
        with suppress(StoreError):
            self.keep()

    def close(self) -> None:
        """Let nothing come any more: nobody would keep it."""
        self._is_open, self._is_over = False, True


def _check_pace(every_bytes: int, every_ms: int) -> None:
    for name, given in (("every_bytes", every_bytes), ("every_ms", every_ms)):
        if type(given) is not int or not 0 <= given <= LARGEST:
            raise InvalidValue(f"{name} is a whole number from 0, not {quoted(given)}")


def _runs(texts: list[drafts.TextPiece]) -> list[drafts.TextPiece]:
    """Return texts with those joined that came one after the other for the same key."""
    return [
        history.drafts.TextPiece(key, "".join(each.text for each in run))
        for key, run in groupby(texts, attrgetter("key"))
    ]


class Told:
    """What a stream tells of itself."""

    def __init__(self, answer: Answer | None = None) -> None:
        self._begun = answer

    @property
    def _answer(self) -> Answer:
        """What came; an awaited stream has it from its beginning on. Raises InvalidValue."""
        if self._begun is None:
            raise InvalidValue(OUTSIDE)
        return self._begun

    @property
    def draft(self) -> str:
        """The id of the draft in which it is kept."""
        return self._answer.id

    @property
    def message(self) -> Message:
        """The message as it is by now."""
        return self._answer.message

    @property
    def stored(self) -> StoredMessage | None:
        """The message as it was stored in the end."""
        return self._answer.stored


class Streaming(Told):
    """An answer that is being streamed, as ``with store.streaming(…) as answer`` gives it.

    Its methods raise StoreError outside of the ``with``, and in another thread than the one that
    entered it.
    """

    def __init__(self, asked: Asked) -> None:
        super().__init__(Answer(asked))
        self._lifetime = Lifetime("the methods of a stream")

    def write(self, text: str, key: str = "content") -> None:
        """Add a text to what the message says, or to what another key of it does.

        Keeps what came where it is time to. Raises InvalidValue for what is no text, and for a key
        that holds none; where it is kept, StoreError and its children: DraftNotFound if somebody
        discarded it meanwhile.
        """
        self._lifetime.check()
        self._answer.add(text, key)
        if self._answer.is_due:
            self._answer.keep()

    def update(self, message: Message) -> None:
        """Replace other keys of the message, such as ``tool_calls``, by those that are given.

        Raises what `write` does, and InvalidMessage.
        """
        self._lifetime.check()
        self._answer.replace(message)
        if self._answer.is_due:
            self._answer.keep()

    def keep(self) -> None:
        """Keep at once what came. Raises StoreError and its children."""
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
