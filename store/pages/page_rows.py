"""The messages of a page: as stored, as sent by a view, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from ..exporting import find_fork_siblings
from ..html import Alternatives, Item, ShownMessage
from ..records import Entry, Message, RequestSummary, StoredMessage, View
from ..text import measure_json, parse_object
from ..tokens import estimate_message_tokens
from .page_rendering import Visit, quote_part
from .reasons import translate_reason

LONGEST_SHOWN_TEXT = 2_000
"""Code points of a text in a conversation; the message alone has all of them."""
LARGEST_PAGE = 90_000
"""Characters of the messages of a page, about; the rest is on the next one."""
ROW_SIZE = 300
"""Characters that a message takes on a page besides its own."""
MOST_SIBLING_MESSAGES = 10
"""Messages of an alternative that are shown at its place."""


class SiblingPlace(NamedTuple):
    """A message that may stand at a position: on a branch of the session, or on a fork (None)."""

    session_id: str
    branch: int | None
    seq: int
    current: bool


class PageRow(NamedTuple):
    """A message of the page: as it was stored, as it is sent, and why it is sent so.

    ``seq`` is None for a message that the view made up. ``state`` is ``sent``, ``changed``,
    ``made``, ``hidden`` or ``left_out``, and "" where nothing is told of a view. ``sent`` is None
    if it is as stored, or not sent. ``is_cut`` tells whether texts are longer than shown.
    """

    seq: int | None
    message: Message
    at: int | None
    tokens: int
    is_cut: bool = False
    state: str = ""
    sent: Message | None = None
    rule: str | None = None
    reason: str = ""
    saved: int = 0
    requests: tuple[RequestSummary, ...] = ()
    siblings: tuple[SiblingPlace, ...] = ()

    @property
    def size(self) -> int:
        """About how many characters the row takes on a page."""
        return ROW_SIZE + measure_json(self.message) + (measure_json(self.sent) if self.sent else 0)

    @property
    def is_sent(self) -> bool:
        """Whether the view has the message in some form."""
        return self.state in ("sent", "changed", "made")

    @property
    def is_answer(self) -> bool:
        """Whether it holds results of tools, which belong to the message before."""
        content = self.message.get("content")
        first = content[0] if isinstance(content, list) and content else None
        is_block = isinstance(first, dict) and first.get("type") == "tool_result"
        return self.message.get("role") in ("tool", "function") or is_block


def shorten_message(message: Message, longest: int = LONGEST_SHOWN_TEXT) -> Message:
    """Return a message whose texts have at most so many code points."""
    shown: Message = _shorten_texts(message, longest)
    return shown


def _shorten_texts(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}…"
    if isinstance(value, list):
        return [_shorten_texts(each, longest) for each in value]
    if not isinstance(value, dict):
        return value
    long = value.get("arguments")
    if isinstance(long, str) and len(long) > longest and (read := parse_object(long)):
        value = {**value, "arguments": read}
    return {key: _shorten_texts(each, longest) for key, each in value.items()}


def fill_page(rows: Iterable[PageRow], *, folds_unsent: bool = False) -> Iterator[PageRow]:
    """Yield rows until a page is full, at least one; folded unsent ones take no room."""
    size = 0
    for row in rows:
        taken = 0 if folds_unsent and not row.is_sent else row.size
        if size and size + taken > LARGEST_PAGE:
            return
        size += taken
        yield row


def group_rows(rows: Iterable[PageRow]) -> Iterator[list[PageRow]]:
    """Yield rows in groups: a message with the results of its calls; all that is not sent."""
    group: list[PageRow] = []
    for row in rows:
        is_left_away = group and not row.is_sent and not group[-1].is_sent
        if group and not row.is_answer and not is_left_away:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def describe_stored_message(stored: StoredMessage) -> PageRow:
    """Return a stored message as a row that tells nothing of a view."""
    tokens = estimate_message_tokens(stored.message)
    shown = shorten_message(stored.message)
    return PageRow(stored.seq, shown, stored.stored_at, tokens, shown != stored.message)


def explain_messages(
    visit: Visit, found: list[StoredMessage], view: View | None
) -> Iterator[PageRow]:
    """Yield messages with their requests and alternatives, and what a view makes of them."""
    if not found:
        return
    requests = find_requests(visit, found[0].seq, found[-1].seq)
    siblings = find_siblings(visit, found[0].seq, found[-1].seq)
    explained = RowExplanation(visit, view) if view else None
    for stored in found:
        row = describe_stored_message(stored)._replace(
            requests=tuple(requests.get(stored.seq, ())),
            siblings=tuple(siblings.get(stored.seq, ())),
        )
        if explained is not None:
            yield from explained.made_before(stored.seq)
            row = explained.explain(row)
        yield row


def find_requests(visit: Visit, first: int, last: int) -> Mapping[int, list[RequestSummary]]:
    """Return the requests whose answers are at some positions, by these."""
    made: dict[int, list[RequestSummary]] = {}
    found = visit.face.requests(visit.session_id, first_seq=first - 1, last_seq=last - 1)
    for each in found:
        made.setdefault(each.seq + 1, []).append(each)
    return made


def find_siblings(visit: Visit, first: int, last: int) -> Mapping[int, list[SiblingPlace]]:
    """Return the alternatives of messages that have some, by their positions."""
    if visit.number("branch") is not None:
        return {}
    session, face = visit.face.session(visit.session_id), visit.face
    forks = find_fork_siblings(face, session)
    found = {}
    places = {each.forked_at + 1 for each in face.branches(session.id)}
    for seq in sorted({*forks, *places}):
        if first <= seq <= last:
            beside: dict[bool, list[SiblingPlace]] = {True: [], False: []}
            for fork in forks.get(seq, ()):
                beside[fork.is_older].append(
                    SiblingPlace(fork.session.id, None, seq, current=False)
                )
            own = (
                SiblingPlace(session.id, each.branch, seq, each.current)
                for each in face.siblings(session.id, seq)
            )
            found[seq] = [*beside[True], *own, *beside[False]]
    return {seq: each for seq, each in found.items() if len(each) > 1}


class RowExplanation:
    """What a view makes of each message."""

    def __init__(self, visit: Visit, view: View) -> None:
        self._visit, self._view = visit, view
        self._hidden = visit.face.hidden(view.session_id, view.at) if view.at else {}
        entries = list_shared_entries(view)
        self._entries = {each.seq: each for each in entries if each.seq is not None}
        self._made = dict(_place_made_entries(entries, view.at))

    def made_before(self, seq: int) -> Iterator[PageRow]:
        """Yield the messages that the view puts before a position."""
        for entry in self._made.get(seq, ()):
            row = PageRow(None, shorten_message(entry.message), None, entry.tokens)
            yield row._replace(state="made", rule=entry.rule, reason=self._say(entry.reason))

    def explain(self, row: PageRow) -> PageRow:
        """Return a row with what became of its message."""
        seq = row.seq or 0
        entry, hidden = self._entries.get(seq), self._hidden.get(seq)
        if entry is not None:
            return self._explain_entry(row, entry)
        if hidden is not None:
            reason = self._visit.say("hidden_by", number=hidden.compaction)
            row = row._replace(state="hidden", rule="summary", reason=reason)
        else:
            row = row._replace(state="left_out", reason=self._find_left_out(seq))
        return row._replace(saved=row.tokens)

    def _find_left_out(self, seq: int) -> str:
        """Return why a message is left out; all of them are looked for only if there is one."""
        reasons = (each.reason for each in self._view.left_out if each.seq == seq)
        return self._say(next(reasons, ""))

    def _explain_entry(self, row: PageRow, entry: Entry) -> PageRow:
        if entry.rule is None:
            return row._replace(state="sent", tokens=entry.tokens)
        row = row._replace(state="changed", tokens=entry.tokens, saved=entry.tokens_saved)
        sent = shorten_message(entry.message)
        return row._replace(sent=sent, rule=entry.rule, reason=self._say(entry.reason))

    def _say(self, reason: str) -> str:
        return translate_reason(reason, self._visit.language)


def list_shared_entries(view: View) -> Sequence[Entry]:
    """Return the entries of a view with the store's own messages: a page changes none of them."""
    shared: Sequence[Entry] = view.explained.shared_entries
    return shared


def _place_made_entries(entries: Sequence[Entry], head: int) -> Iterator[tuple[int, list[Entry]]]:
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


def show_row(visit: Visit, row: PageRow, message: Message | None = None) -> ShownMessage:
    """Return a row, as stored or as another message, with its tokens and requests beside it."""
    margin = [visit.say("count_tokens", count=row.tokens)]
    for each in row.requests:
        link = Markup('<a href="/requests/{}/{}">{}</a>')
        name = visit.say("request_number", number=each.number)
        margin.append(link.format(quote_part(visit.session_id), each.number, name))
        if each.usage is not None and each.usage.cost is not None:
            margin.append(visit.format_cost(each.usage.cost))
    link, note = Markup('<a href="/s/{}?only={}">{}</a>'), None
    if row.is_cut:
        whole = link.format(quote_part(visit.session_id), row.seq, visit.say("whole"))
        if row.is_answer:  # its margin is in the line by which it is opened
            note = whole
        else:
            margin.append(whole)
    return ShownMessage(row.seq, message or row.message, row.at, margin, note)


def show_item(visit: Visit, row: PageRow) -> Item:
    """Return a row as stored, with its alternatives as tabs."""
    shown = show_row(visit, row)
    if not row.siblings:
        return shown
    places = [each.current for each in row.siblings]
    lines = [[shown] if each.current else _load_sibling_line(visit, each) for each in row.siblings]
    return Alternatives(f"a{row.seq}", places.index(True), lines)


def _load_sibling_line(visit: Visit, sibling: SiblingPlace) -> list[ShownMessage]:
    """Return an alternative with the first messages that followed it."""
    session_id, branch, seq, _ = sibling
    found = visit.face.messages(session_id, seq, seq + MOST_SIBLING_MESSAGES - 1, branch=branch)
    asked = f"from={seq}" if branch is None else f"branch={branch}&from={seq}"
    code = "fork" if branch is None else "alternative"
    link = Markup('<a href="/s/{}?{}">{}</a>').format(
        quote_part(session_id), asked, visit.say(code)
    )
    return [
        ShownMessage(each.seq, shorten_message(each.message), each.stored_at, [link], anchor="")
        for each in found
    ]
