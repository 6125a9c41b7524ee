"""A conversation: as it was stored, as it is sent by a policy, or both side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from markupsafe import Markup

from .. import InvalidValue
from ..html import Item, ShownMessage, render_messages
from ..records import Draft, Session, StoredMessage, View, extract_content_text, find_message_time
from .page_rendering import Values, Visit, format_page_moment, page
from .page_rows import PageRow, explain_messages, fill_page, group_rows, show_item, show_row

MESSAGES_PER_PAGE = 100
MESSAGES_PER_SENT_PAGE = 500
"""Messages of a page that shows only those that are sent, and folds the others to a line."""
SENT_FORMS = ("sent", "both")
SHOWN_FORMS = ("raw", *SENT_FORMS)


class Window(NamedTuple):
    """The part of a line on a page: its rows, and the end of the line."""

    rows: list[PageRow]
    head: int

    @property
    def seqs(self) -> list[int]:
        """The positions of its messages."""
        return [row.seq for row in self.rows if row.seq is not None]

    @property
    def previous(self) -> int | None:
        """The position before it; None at the beginning of the line."""
        return [*self.seqs, self.head + 1][0] - 1 or None

    @property
    def next(self) -> int | None:
        """The position after it; None at the end of the line."""
        last = [self.head, *self.seqs][-1]
        return last + 1 if last < self.head else None


class Conversation:
    """A page of a conversation; its parts are read when the template asks for them."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.session: Session = visit.face.session(visit.session_id)
        self.branch, self.only = visit.number("branch"), visit.number("only")
        self._day = ""
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
        start, stop = self.visit.number("from") or 1, self.visit.number("to")
        folds_unsent = self.form == "sent"
        most = MESSAGES_PER_SENT_PAGE if folds_unsent else MESSAGES_PER_PAGE
        if stop is None:
            rows = [*fill_page(self._load_rows(start, start + most - 1), folds_unsent=folds_unsent)]
        else:
            rows = [*self._load_rows(max(1, stop - most + 1), stop)]
            rows = [*fill_page(reversed(rows), folds_unsent=folds_unsent)][::-1]
        return Window(rows, self.head)

    def _load(self, first: int, last: int) -> list[StoredMessage]:
        return self.visit.face.messages(self.session.id, first, last, branch=self.branch)

    def _load_rows(self, first: int, last: int) -> Iterator[PageRow]:
        return explain_messages(self.visit, self._load(first, last), self.view)

    def draw_alone(self) -> Markup:
        """Return the one message that is asked for, with its whole texts."""
        found = [] if self.only is None else self._load(self.only, self.only)
        shown = (ShownMessage(each.seq, each.message, each.stored_at) for each in found)
        return draw_items(self.visit, shown)

    def draw(self, rows: Iterable[PageRow]) -> Markup:
        """Return messages as they are stored."""
        return draw_items(self.visit, (show_item(self.visit, row) for row in rows))

    def draw_sent(self, rows: Iterable[PageRow]) -> Markup:
        """Return messages as they are sent, without those that are not; a day stands once."""
        sent = [show_row(self.visit, row, row.sent) for row in rows if row.is_sent]
        drawn = draw_items(self.visit, sent, self._day)
        for each in sent[:1]:  # its results stand with it
            at = find_message_time(each.message)
            self._day = format_page_moment(each.at if at is None else at)[:10] or self._day
        return drawn

    def groups(self) -> Iterator[list[PageRow]]:
        """Yield the rows of the page: messages with the results of their calls."""
        return group_rows(self.window.rows)

    @property
    def is_at_end(self) -> bool:
        """Whether the page ends where the session does, so that new messages come in."""
        return self.only is None and self.branch is None and self.window.next is None

    def draw_drafts(self) -> Markup:
        """Return the answers that are being written, or broke off."""
        drafts = self.visit.face.drafts(self.session.id) if self.is_at_end else []
        return draw_drafts(self.visit, drafts)

    @property
    def state(self) -> str:
        """A text that differs once the session, or an answer under way to it, does."""
        return describe_state(self.visit)


@page("/s/{session_id:path}", "conversation.html")
def show_conversation(visit: Visit) -> Values:
    """Return a page of a conversation."""
    shown = Conversation(visit)
    values = {"session": shown.session, "tab": "conversation", "shown": shown}
    return values | {"form": shown.form, "text_of": extract_content_text}


def describe_state(visit: Visit) -> str:
    """Return a text that differs once the session, or an answer under way to it, does."""
    session = visit.face.session(visit.session_id)
    drafts = hashlib.sha256(repr(visit.face.drafts(session.id)).encode()).hexdigest()
    return f"{session.revision} {drafts[:16]}"


def draw_items(visit: Visit, items: Iterable[Item], day: str = "") -> Markup:
    """Return messages as HTML, in the visitor's language; they may stand under a day already."""
    return Markup("").join(render_messages(items, language=visit.language, day=day))


def draw_drafts(visit: Visit, drafts: Iterable[Draft]) -> Markup:
    """Return answers that are being written, or broke off."""
    return draw_items(
        visit,
        (
            ShownMessage(
                None, each.message, each.at, [visit.say("live" if each.live else "broken")]
            )
            for each in drafts
        ),
    )
