"""The requests of a session: the content of each, its cost, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from markupsafe import Markup

from .. import InvalidValue, PositionOutOfRange
from ..html import ShownMessage
from ..records import Entry, Message, Request, RequestSummary, Session, View
from ..tokens import estimate_message_tokens
from .conversation import draw_items
from .page_rendering import Values, Visit, page
from .page_rows import (
    LONGEST_SHOWN_TEXT,
    PageRow,
    fill_page,
    list_shared_entries,
    shorten_message,
)
from .plots import Plot, plot_bars
from .reasons import translate_reason

LISTED_REQUESTS = 200
LISTED_DIFFERENCES = 60
LISTED_REPLACED = 200


class TokenLayer(NamedTuple):
    """The tokens of one kind of messages in a request, and their place in the whole."""

    name: str
    tokens: int
    start: float
    share: float


class Difference(NamedTuple):
    """A message that the request before had in another form, or did not have, or has no more."""

    seq: int | None
    role: str
    kind: str
    tokens: int
    reason: str


class SentWindow(NamedTuple):
    """A part of a request: its messages, and the places of the first and the last, from 1."""

    rows: list[PageRow]
    first: int
    last: int


class ShownRequest:
    """A request of a session, as it was recorded or made anew, or one at any position (None)."""

    def __init__(self, visit: Visit, session: Session, number: int) -> None:
        self._visit, self.session = visit, session
        self.told = next(iter(self._list(start=number, stop=number)), None)
        if self.told is None and number:
            raise InvalidValue(f"this session has no request {number}")
        asked = visit.number("at")
        position = session.head if asked is None else asked
        self.at = position if self.told is None else self.told.seq

    def _list(self, **asked: Any) -> list[RequestSummary]:
        return self._visit.face.requests(self.session.id, **asked)

    @cached_property
    def recorded(self) -> Request | None:
        """The request that was sent, if it was recorded."""
        if self.told is None or not self.told.recorded:
            return None
        return self._visit.face.request(self.session.id, self.told.number)

    def _make(self, at: int) -> View:
        told, policy, face = self.told, self._visit.policy(), self._visit.face
        moment = None if told is None else told.at
        branch = None if told is None else told.branch
        try:
            return face.view(self.session.id, policy, at=at, now=moment, branch=branch)
        except (InvalidValue, PositionOutOfRange):  # its branch can be reached no more
            if told is None:
                raise
            return face.view(self.session.id, policy, at=min(at, self.session.head), now=moment)

    @cached_property
    def view(self) -> View | None:
        """The messages of the request; None if some of them are not there any more."""
        if self.recorded is not None:
            return self.recorded.view
        _ = self.before  # the longer line is made of the shorter one
        return self._make(self.at)

    @cached_property
    def before(self) -> View | None:
        """Those of the request before: the last one that ended at an earlier position."""
        if self.recorded is not None:
            earlier = self._list(stop=self.recorded.number - 1, last=1)
            found = (self._visit.face.request(self.session.id, each.number) for each in earlier)
            return next((each.view for each in found), None)
        stop = None if self.told is None else self.told.number
        earlier = self._list(stop=stop, last_seq=max(0, self.at - 1), last=1)
        at = next((each.seq for each in earlier), self.at - 1)
        return self._make(at) if at > 0 else None

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """The messages of the line, with the reasons for their forms."""
        return [] if self.view is None else list_shared_entries(self.view)

    @cached_property
    def layers(self) -> list[TokenLayer]:
        """The tokens of the layers that were recorded, else by the roles of messages."""
        sums = {} if self.recorded is None else dict(self.recorded.layers)
        for entry in [] if sums else self.entries:
            role = "summary" if entry.rule == "summary" else _tell_role(entry)
            sums[role] = sums.get(role, 0) + entry.tokens
        whole, start, layers = sum(sums.values()) or 1, 0.0, []
        for name, tokens in sums.items():
            layers.append(TokenLayer(name, tokens, start, tokens / whole))
            start += tokens / whole
        return layers

    @cached_property
    def is_continued(self) -> bool:
        """Whether the request begins with all of the one before, which needs no further look."""
        view, before = self.view, self.before
        if view is None or before is None or len(view.messages) != len(self.entries):
            return False
        return before.messages == view.messages[: len(before.messages)]

    @cached_property
    def shared(self) -> int:
        """The number of messages at the beginning that the request before had, too."""
        if self.before is not None and self.is_continued:
            return len(self.before.messages)
        earlier, entries = self._earlier, self.entries
        pairs = zip(entries, earlier, strict=False)
        same = (place for place, pair in enumerate(pairs) if _is_changed(*pair))
        return next(same, min(len(earlier), len(entries)))

    @property
    def shared_tokens(self) -> int:
        """The tokens of these messages: what a prompt cache can have."""
        if self.recorded is not None and self.recorded.unchanged_tokens is not None:
            return self.recorded.unchanged_tokens
        return sum(entry.tokens for entry in self.entries[: self.shared])

    @property
    def _earlier(self) -> Sequence[Entry]:
        return [] if self.before is None else list_shared_entries(self.before)

    @cached_property
    def differences(self) -> list[Difference]:
        """The messages that differ from the request before, the first ones and one more."""
        return [*islice(self._compare(), LISTED_DIFFERENCES + 1)]

    def _compare(self) -> Iterator[Difference]:
        left = [] if self.is_continued else self._earlier[self.shared :]
        earlier = _index_entries(left)
        present = _index_entries(self.entries[self.shared :])
        for key, entry in earlier.items():
            if key not in present:
                reason = self._visit.say("state_hidden")
                yield Difference(entry.seq, _tell_role(entry), "gone", 0, reason)
        for key, entry in present.items():
            known = earlier.get(key)
            if known is None or _is_changed(known, entry):
                kind = "new" if known is None else "changed"
                reason = translate_reason(entry.reason, self._visit.language)
                yield Difference(entry.seq, _tell_role(entry), kind, entry.tokens, reason)

    @property
    def replaced(self) -> list[Entry]:
        """The messages that the request has in another form."""
        return [entry for entry in self.entries if entry.rule and entry.seq is not None]

    @cached_property
    def sent(self) -> Sequence[Entry | Message]:
        """The messages in their order; of a recorded request with its system text and tools."""
        made = self.recorded
        if made is None or made.missing:
            return self.entries
        given = (("system", made.system), ("tools", made.tools))
        added = [{"role": role, "content": value} for role, value in given if value is not None]
        return [*added, *made.messages]

    @cached_property
    def window(self) -> SentWindow:
        """The messages up to a place, as many as a page holds; or one, with its whole texts."""
        only, sent = self._visit.number("only"), self.sent
        if only is not None and 1 <= only <= len(sent):
            return SentWindow([describe_sent(self._visit, sent[only - 1])], only, only)
        last = min(self._visit.number("to") or len(sent), len(sent))
        newest = reversed(sent[:last])
        rows = (describe_sent(self._visit, each, LONGEST_SHOWN_TEXT) for each in newest)
        shown = [*fill_page(rows)][::-1]
        return SentWindow(shown, last - len(shown) + 1, last)

    def draw(self) -> Markup:
        """Return the messages of the page, each with the reason for its form."""
        rows = enumerate(self.window.rows, self.window.first)
        return draw_items(self._visit, (self._show(place, row) for place, row in rows))

    def _show(self, place: int, row: PageRow) -> ShownMessage:
        notes: list[str] = [f"{row.rule}: {row.reason}"] if row.rule else []
        if row.is_cut:
            address = self._visit.change(only=place, to=None)
            link = Markup('<a href="{}#messages">{}</a>')
            notes.append(link.format(address, self._visit.say("whole")))
        margin = [self._visit.say("count_tokens", count=row.tokens)]
        note = Markup(" · ").join(notes) or None
        return ShownMessage(row.seq, row.message, row.at, margin, note)


def _tell_role(entry: Entry) -> str:
    return str(entry.message.get("role"))


def _is_changed(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are sent in another form."""
    return one.seq != other.seq or one.rule != other.rule or one.message != other.message


def _index_entries(entries: Sequence[Entry]) -> dict[tuple[str, int], Entry]:
    """Return the entries of a view by their positions; those made by the store by their order."""
    made = 0
    indexed = {}
    for entry in entries:
        made += entry.seq is None
        indexed[("", entry.seq) if entry.seq is not None else ("made", made)] = entry
    return indexed


def describe_sent(visit: Visit, sent: Entry | Message, longest: int | None = None) -> PageRow:
    """Return a message as it is sent, its texts shortened to ``longest`` code points."""
    if isinstance(sent, Entry):
        reason = translate_reason(sent.reason, visit.language)
        row = PageRow(sent.seq, sent.message, None, sent.tokens, rule=sent.rule, reason=reason)
    else:
        row = PageRow(None, sent, None, estimate_message_tokens(sent))
    shown = row.message if longest is None else shorten_message(row.message, longest)
    return row._replace(message=shown, is_cut=shown != row.message)


@page("/requests/{session_id:path}/{number:int}", "request.html")
def show_request_page(visit: Visit) -> Values:
    """Return a request by its number; 0 is the list of all, or one at any position."""
    session = visit.face.session(visit.session_id)
    newest = max((each.number for each in visit.face.requests(session.id, last=1)), default=0)
    number = int(visit.request.path_params["number"]) or visit.number("number") or 0
    values = {"session": session, "tab": "requests", "number": number, "newest": newest}
    if number == 0 and not visit.get("at"):
        last = visit.number("to") or newest
        listed = visit.face.requests(session.id, stop=last, last=LISTED_REQUESTS)
        return values | {"shown": None, "listed": listed, "plot": plot_requests(listed)}
    shown = ShownRequest(visit, session, number)
    most = {"differences": LISTED_DIFFERENCES, "replaced": LISTED_REPLACED}
    return values | {"shown": shown, "translate": translate_reason, "most": most}


def plot_requests(requests: list[RequestSummary]) -> Plot:
    """Return the input of requests as bars, with the part that was cached."""
    rows = []
    for each in requests:
        sent = each.tokens if each.usage is None else each.usage.input
        cached = 0 if each.usage is None else each.usage.cached
        rows.append((str(each.number), sent or 0, cached, f"{sent or 0:,} / {cached:,}"))
    return plot_bars(rows)
