"""The messages of a rollout so far, of which only the answer that may still grow is in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ...messages import Message
from ..shelf import Shelf


class Line:
    """Messages on a shelf; the last answer is put there once another one follows, or the end."""

    def __init__(self, shelf: Shelf, places: array[int] | None = None) -> None:
        self._shelf = shelf
        self._places = array("q") if places is None else places
        self._answer: Message | None = None
        self._answer_place = 0

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self._places)

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages."""
        for place, kept in enumerate(self._places):
            answer = self._answer if place == self._answer_place else None
            yield answer or self._shelf.at(kept)

    @property
    def answer(self) -> Message | None:
        """The last answer, which may be changed; None where there is none."""
        for place in reversed(range(len(self))) if self._answer is None else ():
            message: Message = self._shelf.at(self._places[place])
            if message["role"] == "assistant":
                self._answer, self._answer_place = message, place
                break
        return self._answer

    def append(self, message: Message) -> None:
        """Add a message."""
        if message["role"] == "assistant":
            self._close()
            self._answer, self._answer_place = message, len(self)
        self._places.append(self._shelf.put(message))

    def cut(self, start: int) -> Line:
        """Take out all messages from one on; return them."""
        self._close()
        taken = Line(self._shelf, self._places[start:])
        del self._places[start:]
        return taken

    def _close(self) -> None:
        if self._answer is not None:
            self._places[self._answer_place] = self._shelf.put(self._answer)
        self._answer = None
