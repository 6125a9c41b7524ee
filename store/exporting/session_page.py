"""A session as one page of HTML: its line, hidden stretches, and branches that were left.

Messages are read page by page and shown as they went in. All else is small: calls, usages, hidden
positions and branches of the session are read at the beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from .. import Policy, Scoped, Store
from ..clock import Now, format_moment
from ..records import Compaction, Entry, Message, Session, Sibling, StoredMessage, Usage
from ..summaries import is_by_program
from ..tokens import count_message_tokens, estimate
from .fork_siblings import ForkSibling, find_fork_siblings
from .page_content import PageContent

if TYPE_CHECKING:  # at run time it is loaded with the first page
    from ..html import Alternatives, CallEnd, Item, ShownMessage

PageSource: TypeAlias = Store | Scoped
MOST_FORK_MESSAGES = 10
"""Messages of a fork that are shown beside the one that they follow."""
LEAST_TOLD = 200
"""Tokens from which on the size of a message is told."""
PageFacts: TypeAlias = list[tuple[str, str]]
"""The facts of a session at the top of its page: names and texts."""


def render_html_page(
    store: PageSource,
    session: Session,
    content: PageContent,
    *,
    at: int | None = None,
    policy: Policy | None = None,
    now: Now = None,
    ascii_only: bool = False,
) -> Iterator[str]:
    """Return a session as a page; with a ``policy`` the request that it would send, with reasons.

    ``ascii_only`` writes all other characters as references.
    """
    from ..html import render_session_page

    title = content.cover(store.title(session.id) or session.id)
    if policy is None:
        line = _PageLine(store, session, content, at)
        page = render_session_page(title, line.list_facts(), line.list_items())
        return map(_refer_to_characters, page) if ascii_only else page
    view = store.view(session.id, policy, at=at, now=now)
    facts = [*_list_session_facts(session, content), ("Sent tokens", f"{view.stats.tokens:,}")]
    page = render_session_page(title, facts, _list_view_items(view.entries, content))
    return map(_refer_to_characters, page) if ascii_only else page


def _refer_to_characters(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _list_view_items(entries: Iterable[Entry], content: PageContent) -> Iterator[ShownMessage]:
    """Yield the messages of a view, each with its reason where a rule changed it."""
    from ..html import ShownMessage

    for entry in entries:
        message = content.edit(entry.message)
        if message is not None:
            margin = (f"≈ {entry.tokens:,} tokens",)
            note = None if entry.rule is None else content.cover(entry.reason)
            yield ShownMessage(entry.seq, message, margin=margin, note=note)


def _list_session_facts(session: Session, content: PageContent) -> PageFacts:
    facts = [("Messages", f"{session.head:,}"), ("Begun", format_moment(session.created_at))]
    if session.source:
        facts.append(("From", session.source))
    if session.project_root:
        facts.append(("Project", content.cover(session.project_root)))
    return facts


class _PageLine:
    """The line of a session as items of a page."""

    def __init__(
        self, store: PageSource, session: Session, content: PageContent, at: int | None
    ) -> None:
        self.store, self.session, self.content, self.at = store, session, content, at
        self.hidden = store.hidden(session.id, at)
        self.compactions = {each.id: each for each in store.compactions(session.id)}
        self.usages = store.usages(session.id)
        self.branches = {each.branch: each for each in store.branches(session.id)}
        self.beside = _find_imported_forks(store, session)
        places = {each.forked_at + 1 for each in self.branches.values()}
        self.forks = sorted({*places, *self.beside})
        self.ends: dict[int, dict[int, CallEnd]] = defaultdict(dict)
        self.last = 0

    def list_facts(self) -> PageFacts:
        """Return the facts of the session."""
        facts = _list_session_facts(self.session, self.content)
        models = sorted({each.model for each in self.usages if each.model})
        if models:
            facts.append(("Models", self.content.cover(", ".join(models))))
        if self.usages:
            facts.append(("Requests", f"{len(self.usages):,}"))
            facts.append(("Tokens", " · ".join(_describe_cost(self.usages))))
        return facts

    def list_items(self) -> Iterator[Item]:
        """Yield the line's messages, in bands where a compaction hides them."""
        from ..html import Band, CallEnd

        for call in self.store.calls(self.session.id):
            self.ends[call.seq][call.position] = CallEnd(call.failed, call.seconds)
        told: set[int | None] = set()
        for compaction, held in groupby(self._list_stored(), self._find_compaction):
            if compaction is None:
                yield from self._list_line_items(held)
                continue
            first = self.last + 1
            items = [*self._list_line_items(held)]
            places = f"{first:,}–{self.last:,}" if first < self.last else f"{first:,}"
            title = f"{places}: {_describe_compaction(compaction)}"
            is_told = self.content.only or compaction.id in told  # nobody said a summary
            text = "" if is_told else compaction.summary
            told.add(compaction.id)
            if items:
                yield Band(title, self.content.cover(text) if text else None, items)

    def _list_stored(self) -> Iterator[StoredMessage]:
        pages = self.store.pages(self.session.id, at=self.at)
        return (stored for page in pages for stored in page)

    def _find_compaction(self, stored: StoredMessage) -> Compaction | None:
        """Return the compaction that hides a message, if one does."""
        hidden = self.hidden.get(stored.seq)
        return None if hidden is None else self.compactions.get(hidden.compaction)

    def _list_line_items(
        self, held: Iterable[StoredMessage]
    ) -> Iterator[ShownMessage | Alternatives]:
        """Yield messages; one that others stand beside, with its results, among these."""
        from ..html import Alternatives, is_result_message

        usages = self._find_usages(self.session.branch, self.session.head)
        beside: list[list[ShownMessage]] = []
        name, current = "", 0
        for stored in held:
            first, self.last = self.last + 1, stored.seq
            shown = self._show(stored, _take_usages(usages, first, stored))
            if beside and shown and is_result_message(stored.message):
                beside[current].append(shown)
                continue
            if beside:
                yield Alternatives(name, current, beside)
                beside = []
            if shown is None:
                continue
            shown = shown._replace(ends=self.ends[stored.seq])
            name, beside = f"s{first}", self._find_lines(first, shown)
            if len(beside) < 2:
                beside = []
                yield shown
                continue
            current = beside.index([shown])
        if beside:
            yield Alternatives(name, current, beside)

    def _find_lines(self, first: int, shown: ShownMessage) -> list[list[ShownMessage]]:
        """Return the lines that may stand where a message begins, its own with it alone."""
        while self.forks and self.forks[0] < first:
            self.forks.pop(0)
        if first not in self.forks[:1]:
            return []
        found = self.store.siblings(self.session.id, first)
        own = found if any(each.current for each in found) else []
        lines = [[shown] if each.current else self._list_left(each, first) for each in own]
        beside = self.beside.get(first, [])
        older = [self._list_fork(each) for each in beside if each.is_older]
        newer = [self._list_fork(each) for each in beside if not each.is_older]
        return [*filter(None, [*older, *(lines or [[shown]]), *newer])]

    def _list_fork(self, sibling: ForkSibling) -> list[ShownMessage]:
        """Return a message of a fork, and the first ones that follow it there."""
        name, seq = sibling.session.id, sibling.seq
        held = self.store.messages(name, seq, seq + MOST_FORK_MESSAGES - 1)
        shown = (self._show(each, [], f"b{sibling.branch}-{each.seq}") for each in held)
        note = self.content.cover(f"session {name}")
        return [each._replace(margin=(*each.margin, note)) for each in shown if each]

    def _list_left(self, sibling: Sibling, first: int) -> list[ShownMessage]:
        """Return what a session left: a message, and those that follow it."""
        branch = sibling.branch
        usages = self._find_usages(branch, self.branches[branch].head)
        held = self.store.messages(self.session.id, first, branch=branch)
        found = []
        for each in held:
            own = _take_usages(usages, first, each)
            found.append(self._show(each, own, f"b{branch}-{each.seq}"))
            first = each.seq + 1
        return [*filter(None, found)]

    def _show(
        self, stored: StoredMessage, usages: list[Usage], anchor: str | None = None
    ) -> ShownMessage | None:
        """Return a message with its cost beside it; None if the page does not have it."""
        from ..html import ShownMessage

        message = self.content.edit(stored.message)
        if message is None:
            return None
        by_program = is_by_program(stored.message)
        margin = _describe_cost(usages) if usages else _describe_size(stored.message)
        return ShownMessage(
            stored.seq, message, stored.stored_at, margin, anchor=anchor, folded=by_program
        )

    def _find_usages(self, branch: int | None, head: int) -> dict[int, list[Usage]]:
        """Return the usages of the requests on a line, by position."""
        found: dict[int, list[Usage]] = defaultdict(list)
        while branch is not None:
            for usage in self.usages:
                if usage.branch == branch and usage.seq <= head:
                    found[usage.seq].append(usage)
            held = self.branches.get(branch)
            branch = None if held is None else held.parent
            head = min(head, 0 if held is None else held.forked_at)
        return found


def _find_imported_forks(store: PageSource, session: Session) -> dict[int, list[ForkSibling]]:
    """Return the siblings on forks that came in with a session, as one conversation of a program.

    Forks that were made in the store are sessions of their own, which nobody asked to export.
    """
    if session.file is None:
        return {}
    found = find_fork_siblings(store, session)
    kept = {
        seq: [each for each in some if each.session.file == session.file]
        for seq, some in found.items()
    }
    return {seq: some for seq, some in kept.items() if some}


def _take_usages(usages: dict[int, list[Usage]], first: int, stored: StoredMessage) -> list[Usage]:
    """Return the usages of the request that a message answers.

    It ended before the message; some programs record it after the answer.
    """
    if stored.message.get("role", "assistant") not in ("assistant", "model"):
        return []
    return [*usages.pop(first - 1, ()), *usages.pop(stored.seq, ())]


def _describe_size(message: Message) -> tuple[str, ...]:
    """Return how large a message is; nothing for a small one."""
    tokens = count_message_tokens(message, estimate)
    return (f"≈ {tokens:,} tokens",) if tokens >= LEAST_TOLD else ()


def _describe_cost(usages: list[Usage]) -> tuple[str, ...]:
    """Return what requests cost, in two short texts."""
    given, cached = (sum(getattr(each, name) for each in usages) for name in ("input", "cached"))
    share = f", {100 * cached / given:.0f} % cached" if cached and given else ""
    written = f"{sum(each.output for each in usages):,} out"
    costs = [each.cost for each in usages if each.cost is not None]
    if costs:
        written += f", ${sum(costs):,.4f}" if sum(costs) < 1 else f", ${sum(costs):,.2f}"
    return f"{given:,} in{share}", written


def _describe_compaction(compaction: Compaction) -> str:
    """Describe a compaction in a line."""
    how = "hidden on request" if compaction.kind == "hide" else "hidden behind a summary"
    before, after = compaction.tokens_before, compaction.tokens_after
    if before is None or after is None:
        return how
    return f"{how}, the view from {before:,} to {after:,} tokens"
