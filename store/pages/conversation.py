"""A conversation: as it was stored, as it is sent by a policy, or both side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from .. import InvalidValue
from ..records import Draft, Entry, Session, Sibling, StoredMessage, Usage, View, find_message_time
from ..tokens import estimate_message_tokens
from .message_parts import ShownPart, list_message_parts, measure_parts
from .site import Values, Visit, page

MESSAGES_PER_PAGE = 100
PAGE_SIZE = 110_000
"""Code points of all texts of a page, about; the rest is on the next one."""
SHORT_TEXT, WHOLE_TEXT = 3_000, 4_000_000
"""Code points of a text in a conversation, and where it is shown alone."""
SHOWN_FORMS = ("raw", "sent", "both")


class NumberedUsage(NamedTuple):
    """The usage of a request, with the number of the request among those of its session."""

    number: int
    usage: Usage


class PageRow(NamedTuple):
    """A message of the page: as it was stored, as it is sent, and why it is sent so.

    ``seq`` is None for a message that the view made up; ``state`` is ``sent``, ``changed``,
    ``made``, ``hidden`` or ``left_out``, and "" where nothing is told of a view.
    """

    seq: int | None
    role: str
    at: int | None
    tokens: int
    raw: list[ShownPart]
    sent: list[ShownPart]
    state: str = ""
    rule: str | None = None
    reason: str = ""
    saved: int = 0
    requests: tuple[NumberedUsage, ...] = ()
    siblings: tuple[Sibling, ...] = ()

    @property
    def size(self) -> int:
        """About how many code points the row takes on a page."""
        return measure_parts(self.raw) + measure_parts(self.sent)


class Window(NamedTuple):
    """The part of a line on a page: its rows, and the positions before and behind them."""

    rows: list[PageRow]
    previous: int | None
    next: int | None


class Conversation:
    """A page of a conversation; its parts are read when the template asks for them."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.session: Session = visit.face.session(visit.session_id)
        self.branch, self.only = visit.number("branch"), visit.number("only")
        self.form = visit.get("mode") or SHOWN_FORMS[0]
        if self.form not in SHOWN_FORMS:
            raise InvalidValue(f"mode is one of {', '.join(SHOWN_FORMS)}, not {self.form[:40]!r}")

    @cached_property
    def view(self) -> View | None:
        """The view by the policy asked for, unless only the raw messages are shown."""
        if self.form == SHOWN_FORMS[0]:
            return None
        return self.visit.face.view(self.session.id, self.visit.policy(), branch=self.branch)

    @cached_property
    def head(self) -> int:
        """The end of the line that is shown."""
        if self.branch is None:
            return self.session.head
        branches = self.visit.face.branches(self.session.id)
        return next((each.head for each in branches if each.branch == self.branch), 0)

    @cached_property
    def window(self) -> Window:
        """The messages from a position on, or up to one; as many as a page holds."""
        if self.only is not None:
            found = self._load(self.only, self.only)
            return Window([describe_message(each, WHOLE_TEXT) for each in found], None, None)
        start, stop = self.visit.number("from") or 1, self.visit.number("to")
        if stop is None:
            rows = [*fill_page(self._load_rows(start, start + MESSAGES_PER_PAGE - 1))]
        else:
            rows = [*self._load_rows(max(1, stop - MESSAGES_PER_PAGE + 1), stop)]
            rows = [*fill_page(reversed(rows))][::-1]
        seqs = [row.seq for row in rows if row.seq is not None] or [self.head + 1]
        following = seqs[-1] + 1 if seqs[-1] < self.head else None
        return Window(rows, seqs[0] - 1 or None, following)

    def _load(self, first: int, last: int) -> list[StoredMessage]:
        return self.visit.face.messages(self.session.id, first, last, branch=self.branch)

    def _load_rows(self, first: int, last: int) -> Iterator[PageRow]:
        return explain_messages(self.visit, self._load(first, last), self.view)

    @property
    def is_at_end(self) -> bool:
        """Whether the page ends where the session does."""
        return self.only is None and self.branch is None and self.window.next is None

    @property
    def is_live(self) -> bool:
        """Whether new messages come in by themselves."""
        return self.is_at_end and self.view is None

    @property
    def drafts(self) -> list[Draft]:
        """The answers that are being written, or broke off."""
        return self.visit.face.drafts(self.session.id) if self.is_at_end else []

    @property
    def state(self) -> str:
        """A text that differs once the session, or an answer under way to it, does."""
        return describe_state(self.visit)


@page("/s/{session_id:path}", "conversation.html")
def show_conversation(visit: Visit) -> Values:
    """Return a page of a conversation."""
    shown = Conversation(visit)
    return {"session": shown.session, "tab": "conversation", "shown": shown, "form": shown.form}


def describe_state(visit: Visit) -> str:
    """Return a text that differs once the session, or an answer under way to it, does."""
    session = visit.face.session(visit.session_id)
    drafts = hashlib.sha256(repr(visit.face.drafts(session.id)).encode()).hexdigest()
    return f"{session.revision} {drafts[:16]}"


def fill_page(rows: Iterable[PageRow]) -> Iterator[PageRow]:
    """Yield rows until a page is full; at least one."""
    size = 0
    for row in rows:
        if size and size + row.size > PAGE_SIZE:
            return
        size += row.size
        yield row


def describe_message(stored: StoredMessage, longest: int = SHORT_TEXT) -> PageRow:
    """Return a stored message as a row that tells nothing of a view."""
    message = stored.message
    at = find_message_time(message)
    return PageRow(
        stored.seq,
        str(message.get("role", "")),
        stored.stored_at if at is None else at,
        estimate_message_tokens(message),
        list_message_parts(message, longest),
        [],
    )


def explain_messages(
    visit: Visit, found: list[StoredMessage], view: View | None
) -> Iterator[PageRow]:
    """Yield messages with their requests and alternatives, and what a view makes of them."""
    if not found:
        return
    first, last = found[0].seq, found[-1].seq
    requests = find_requests(visit, first, last)
    siblings = find_siblings(visit, first, last)
    explained = RowExplanation(visit, view) if view else None
    for stored in found:
        row = describe_message(stored)._replace(
            requests=tuple(requests.get(stored.seq, ())),
            siblings=tuple(siblings.get(stored.seq, ())),
        )
        if explained is None:
            yield row
        else:
            yield from explained.made_before(stored.seq)
            yield explained.explain(row)


def find_requests(visit: Visit, first: int, last: int) -> Mapping[int, list[NumberedUsage]]:
    """Return the requests that were made at some positions, by these."""
    made: dict[int, list[NumberedUsage]] = {}
    for number, usage in enumerate(visit.face.usages(visit.session_id), 1):
        if first <= usage.seq <= last:
            made.setdefault(usage.seq, []).append(NumberedUsage(number, usage))
    return made


def find_siblings(visit: Visit, first: int, last: int) -> Mapping[int, list[Sibling]]:
    """Return the alternatives of messages that have some, by their positions."""
    if visit.number("branch") is not None:
        return {}
    forked = {each.forked_at + 1 for each in visit.face.branches(visit.session_id)}
    places = sorted(seq for seq in forked if first <= seq <= last)
    found = {seq: visit.face.siblings(visit.session_id, seq) for seq in places}
    return {seq: each for seq, each in found.items() if len(each) > 1}


class RowExplanation:
    """What a view makes of each message."""

    def __init__(self, visit: Visit, view: View) -> None:
        self._visit = visit
        self._hidden = visit.face.hidden(view.session_id, view.at) if view.at else {}
        self._left_out = {each.seq: each.reason for each in view.left_out}
        self._entries = {each.seq: each for each in view.entries if each.seq is not None}
        self._made = dict(_place_made_entries(view.entries, view.at))

    def made_before(self, seq: int) -> Iterator[PageRow]:
        """Yield the messages that the view puts before a position."""
        for entry in self._made.get(seq, ()):
            parts = list_message_parts(entry.message, SHORT_TEXT)
            role = str(entry.message.get("role", ""))
            row = PageRow(None, role, None, entry.tokens, [], parts)
            yield row._replace(state="made", rule=entry.rule, reason=entry.reason)

    def explain(self, row: PageRow) -> PageRow:
        """Return a row with what became of its message."""
        assert row.seq is not None
        entry, hidden = self._entries.get(row.seq), self._hidden.get(row.seq)
        if entry is not None and entry.rule is None:
            return row._replace(state="sent", tokens=entry.tokens)
        if entry is not None:
            return row._replace(
                state="changed",
                tokens=entry.tokens,
                sent=list_message_parts(entry.message, SHORT_TEXT),
                rule=entry.rule,
                reason=entry.reason,
                saved=entry.tokens_saved,
            )
        if hidden is not None:
            reason = self._visit.say("hidden_by", number=hidden.compaction)
            return row._replace(state="hidden", rule="summary", reason=reason, saved=row.tokens)
        reason = self._left_out.get(row.seq, "")
        return row._replace(state="left_out", reason=reason, saved=row.tokens)


def _place_made_entries(entries: list[Entry], head: int) -> Iterator[tuple[int, list[Entry]]]:
    """Yield the entries that have no position, with the position that follows them."""
    waiting: list[Entry] = []
    for entry in entries:
        if entry.seq is None:
            waiting.append(entry)
        elif waiting:
            yield entry.seq, waiting
            waiting = []
    if waiting:
        yield head, waiting
