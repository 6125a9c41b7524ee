"""Views: the messages sent to a model, and the reasons for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from ..errors import quote_value
from ..messages import Message


class Entry(NamedTuple):
    """One message of a view and the reason for its form.

    ``seq`` is its position (None if the store made it), ``message`` is the whole message; only its
    content is replaced, if ``rule`` names a rule. Tokens are stored counts, otherwise estimates.
    """

    seq: int | None
    message: Message
    rule: str | None
    reason: str
    tokens: int
    tokens_saved: int


make_entry: Callable[[tuple[Any, ...]], Entry] = partial(tuple.__new__, Entry)
"""Make an entry from its fields; without a step of Python, as there may be thousands."""


class Replaced(NamedTuple):
    """A tool result that a view replaces, and why.

    ``seq`` is its position, ``paths`` are the files it is about; ``rule`` and ``reason`` are those
    of the view's entry, ``tokens`` is the cost of the replacement. ``call_id`` is the id of the
    call that it answers, ``text`` the replacement.
    """

    seq: int
    tool_name: str | None
    paths: tuple[str, ...]
    rule: str
    reason: str
    tokens: int
    tokens_saved: int
    call_id: str | None = None
    text: str = ""


class LeftOut(NamedTuple):
    """A message that a view does not send: its position, its type, and why it is left out.

    ``type`` is the type of an item that exists in no other format, otherwise the role.
    """

    seq: int
    type: str
    reason: str


class ViewStats(NamedTuple):
    """Totals of a view.

    The number of entries that each rule touched, tokens sent and saved, and the loss for a prompt
    cache.

    ``raw_messages`` and ``raw_tokens`` are of the whole line, ``hidden_messages`` and
    ``hidden_tokens`` of the messages hidden by compactions (by the estimate), ``messages`` and
    ``tokens`` of the messages sent. The saving of the rule ``summary`` is that of the hidden
    messages less the summaries. ``first_changed`` is the first position whose content differs from
    the raw line (None: none does); ``unchanged_tokens`` is the length of the beginning that is the
    same as in the last recorded request (None: none is recorded), which a prompt cache still holds.
    ``left_out`` are visible positions that the policy's repair dropped, or that have no chat
    content. ``counted_by`` names the tokenizer of the counts, ``estimate`` if at least one message
    has no stored count; texts made by the store, such as placeholders and summaries, are always
    estimated. ``misses`` are the calls of the tool `recall` among the messages sent: each asked for
    something that a view had hidden.
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
    misses: int = 0


class Explained(Protocol):
    """The explanations of a view, made on request."""

    @property
    def entries(self) -> list[Entry]:
        """The reason for each message; the list and the messages are the caller's."""

    @property
    def shared_entries(self) -> tuple[Entry, ...]:
        """The same entries without reasons for changed names, to be read only: none is a copy."""

    @property
    def stats(self) -> ViewStats:
        """Their total cost."""

    @property
    def left_out(self) -> list[LeftOut]:
        """The visible messages that are not sent; the list is the caller's."""


class View(NamedTuple):
    """The messages sent to the model, with their explanations.

    ``messages`` are clean for the API, ``entries`` explain them one by one, ``stats`` are totals of
    them: both are made from ``explained`` on request. The shape of a message depends on the format,
    so its type is left open and any client takes them as they are. If a format sends system text
    apart from the messages, ``system`` is this text: text blocks for ``anthropic``, one text for
    ``gemini``; None if there is none, and in any other format.
    """

    messages: list[Any]
    explained: Explained
    session_id: str
    branch: int
    at: int
    system: str | list[Any] | None = None

    def __repr__(self) -> str:
        """Return the view in one line."""
        session_id = quote_value(self.session_id)
        return f"View({len(self.messages):,} messages of {session_id} at {self.at})"

    def _repr_html_(self) -> str:
        """Return the view for a notebook, in at most 20 KB, with reasons of its replacements."""
        from ..html import NotebookTable, describe_message, render_record

        entries, stats = self.entries, self.stats

        def get_row(number: int) -> tuple[object, ...]:
            entry = entries[number]
            seq = "" if entry.seq is None else entry.seq
            role, text = entry.message.get("role"), describe_message(entry.message)
            return seq, role, text, entry.reason if entry.rule else "", f"{entry.tokens:,}"

        facts = [
            ("messages", f"{stats.messages:,} of {stats.raw_messages:,}"),
            ("tokens", f"{stats.tokens:,} of {stats.raw_tokens:,}"),
            *((f"saved by {rule}", f"{saved:,}") for rule, saved in stats.saved_by_rule.items()),
        ]
        table = NotebookTable(("", "role", "content", "why", "tokens"), len(entries), get_row)
        return render_record(f"View of {self.session_id} at {self.at}", facts, table)

    @property
    def entries(self) -> list[Entry]:
        """The reason for each message."""
        return self.explained.entries

    @property
    def stats(self) -> ViewStats:
        """The cost of the messages, and the savings of the rules."""
        return self.explained.stats

    @property
    def left_out(self) -> list[LeftOut]:
        """The visible messages that are not sent, in the order of positions: see `LeftOut`."""
        return self.explained.left_out
