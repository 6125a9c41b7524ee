"""What is sent of a line, and why it is as it is."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..messages import Message


class Entry(NamedTuple):
    """One message of a view and why it is as it is.

    ``seq`` is its position (None if the store made it), ``message`` the whole message with only its
    content replaced where ``rule`` says so; tokens are counts where they are stored, else
    estimates.
    """

    seq: int | None
    message: Message
    rule: str | None
    reason: str
    tokens: int
    tokens_saved: int


class Replaced(NamedTuple):
    """A tool result that a view sends otherwise than it is stored, and why.

    ``seq`` is its position, ``paths`` are the files it is about; ``rule`` and ``reason`` as in the
    view's entry, ``tokens`` what is sent in its place costs.
    """

    seq: int
    tool_name: str | None
    paths: tuple[str, ...]
    rule: str
    reason: str
    tokens: int
    tokens_saved: int


class LeftOut(NamedTuple):
    """A message that a view does not send: its position, what it is, and why it is left out.

    ``type`` is that of an item which no other format has, else the role.
    """

    seq: int
    type: str
    reason: str


class ViewStats(NamedTuple):
    """Totals of a view.

    How many entries each rule touched, tokens sent and saved, and what a prompt cache loses.

    ``raw_messages`` and ``raw_tokens`` are of the whole line, ``hidden_messages`` and
    ``hidden_tokens`` of what compactions hide of it (by the estimate), ``messages`` and ``tokens``
    of what is sent. What is saved by the rule ``summary`` is what is hidden less the summaries.
    ``first_changed`` is the first position whose content differs from the raw line (None: none
    does); ``unchanged_tokens`` is how much of its beginning is as in the last recorded request
    (None: none is recorded), what a prompt cache still holds. ``left_out`` are visible positions
    that the policy's repair dropped, or that hold nothing that a chat shows. ``counted_by`` names
    the tokenizer of the counts, ``estimate`` where at least one message has no stored count; what
    the store made itself, such as placeholders and summaries, is always estimated.
    """

    messages: int
    raw_messages: int
    replaced: dict[str, int]
    tokens: int
    tokens_saved: int
    saved_by_rule: dict[str, int]
    first_changed: int | None
    counted_by: str
    unchanged_tokens: int | None
    left_out: tuple[int, ...]
    raw_tokens: int
    hidden_messages: int = 0
    hidden_tokens: int = 0


class Explained(Protocol):
    """What a view says of itself, made when it is asked for."""

    @property
    def entries(self) -> list[Entry]:
        """Why each message is as it is; the list is the caller's."""

    @property
    def shared_entries(self) -> tuple[Entry, ...]:
        """The same entries, which nobody changes."""

    @property
    def stats(self) -> ViewStats:
        """What they cost together."""

    @property
    def left_out(self) -> list[LeftOut]:
        """What is visible and is not sent; the list is the caller's."""


class View(NamedTuple):
    """What is sent to the model.

    ``messages`` are clean for the API, ``entries`` explain them one by one, ``stats`` are totals of
    them: both are made of ``explained`` when they are asked for. What a message is
    depends on the format, so its type is left open and any client takes them as they are. In a
    format that says system text apart from the messages, ``system`` is what stands in front: text
    blocks for ``anthropic``, one text for ``gemini``; None where there is none, and in any other.
    """

    messages: list[Any]
    explained: Explained
    session_id: str
    branch: int
    at: int
    system: str | list[Any] | None = None

    @property
    def entries(self) -> list[Entry]:
        """Why each message is as it is."""
        return self.explained.entries

    @property
    def stats(self) -> ViewStats:
        """What the messages cost, and what the rules save."""
        return self.explained.stats

    @property
    def left_out(self) -> list[LeftOut]:
        """What is visible and is not sent, in the order of positions: see `LeftOut`."""
        return self.explained.left_out
