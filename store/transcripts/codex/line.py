"""The messages of a rollout so far; only the answer that may still grow is in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ...messages import Message
from ..shelf import Shelf


class RolloutLine:
    """Messages on a shelf, by their ``_places`` there.

    ``_answers`` says which of them are answers. The last one may be in memory, and change: it is
    put back once another one follows, or the line is cut.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._places = array("q")
        self._answers = array("q")
        self._answer: Message | None = None

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self._places)

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages."""
        self._put_back()
        return map(self._shelf.at, self._places)

    @property
    def answer(self) -> Message | None:
        """The last answer, which may be changed; None where there is none."""
        if self._answer is None and self._answers:
            self._answer = self._shelf.at(self._places[self._answers[-1]])
        return self._answer

    def append(self, message: Message) -> None:
        """Add a message."""
        if message["role"] == "assistant":
            self._put_back()
            self._answers.append(len(self))
            self._answer = message
        self._places.append(self._shelf.put(message))

    def cut(self, start: int) -> RolloutLine:
        """Take out all messages from one on; return them."""
        self._put_back()
        taken = RolloutLine(self._shelf)
        taken._places = self._places[start:]
        del self._places[start:]
        while self._answers and self._answers[-1] >= start:
            taken._answers.insert(0, self._answers.pop() - start)
        return taken

    def _put_back(self) -> None:
        if self._answer is not None:
            self._places[self._answers[-1]] = self._shelf.put(self._answer)
        self._answer = None
