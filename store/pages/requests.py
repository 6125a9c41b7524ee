"""The requests of a session: what each held, what it cost, and why."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from .. import InvalidValue, PositionOutOfRange
from ..records import Entry, Request, RequestSummary, Session, View
from .plots import Plot, plot_bars
from .site import Values, Visit, page

LISTED_REQUESTS = 200
SHOWN_DIFFERENCES = 60


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


class ShownRequest:
    """A request of a session, as it was recorded or made anew, or one at any position (None)."""

    def __init__(self, visit: Visit, session: Session, made: Request | None) -> None:
        self._visit, self.session, self.made = visit, session, made
        asked = visit.number("at")
        position = session.head if asked is None else asked
        self.at = position if made is None else made.seq

    @property
    def is_recorded(self) -> bool:
        """Whether it is what was sent, not what a policy makes of the line."""
        return self.made is not None and self.made.recorded

    def _make(self, at: int) -> View:
        made, policy, face = self.made, self._visit.policy(), self._visit.face
        moment = None if made is None else made.at
        branch = None if made is None else made.branch
        try:
            return face.view(self.session.id, policy, at=at, now=moment, branch=branch)
        except (InvalidValue, PositionOutOfRange):  # its branch can be reached no more
            if made is None:
                raise
            return face.view(self.session.id, policy, at=min(at, self.session.head), now=moment)

    @cached_property
    def view(self) -> View | None:
        """The messages of the request; None if some of them are not there any more."""
        if self.made is not None and self.is_recorded:
            return self.made.view
        return self._make(self.at)

    @cached_property
    def before(self) -> View | None:
        """Those of the request before: the last one that ended at an earlier position."""
        requests = self._visit.face.requests(self.session.id)
        if self.made is not None and self.is_recorded:
            earlier = [each.number for each in requests if each.number < self.made.number]
            return self._visit.face.request(self.session.id, earlier[-1]).view if earlier else None
        positions = [each.seq for each in requests if each.seq < self.at] or [self.at - 1]
        return self._make(max(positions)) if max(positions) > 0 else None

    @property
    def entries(self) -> list[Entry]:
        """The messages of the line, with the reasons for their forms."""
        return [] if self.view is None else self.view.entries

    @property
    def layers(self) -> list[TokenLayer]:
        """The tokens of the layers that were recorded, else by the roles of messages."""
        sums = dict(self.made.layers) if self.made is not None and self.is_recorded else {}
        for entry in [] if sums else self.entries:
            role = "summary" if entry.rule == "summary" else str(entry.message.get("role"))
            sums[role] = sums.get(role, 0) + entry.tokens
        whole, start, layers = sum(sums.values()) or 1, 0.0, []
        for name, tokens in sums.items():
            layers.append(TokenLayer(name, tokens, start, tokens / whole))
            start += tokens / whole
        return layers

    @cached_property
    def shared(self) -> int:
        """The number of messages at the beginning that the request before had, too."""
        earlier = [] if self.before is None else self.before.messages
        messages = [] if self.view is None else self.view.messages
        pairs = zip(messages, earlier, strict=False)
        same = (place for place, (one, other) in enumerate(pairs) if one != other)
        return next(same, min(len(earlier), len(messages)))

    @property
    def shared_tokens(self) -> int:
        """The tokens of these messages: what a prompt cache can have."""
        return sum(entry.tokens for entry in self.entries[: self.shared])

    @property
    def differences(self) -> list[Difference]:
        """The messages that differ from the request before, the first ones."""
        return [*self._compare()][:SHOWN_DIFFERENCES]

    def _compare(self) -> Iterator[Difference]:
        earlier = _index_entries([] if self.before is None else self.before.entries)
        present = _index_entries(self.entries)
        for key, entry in earlier.items():
            if key not in present:
                reason = self._visit.say("state_hidden")
                yield Difference(entry.seq, str(entry.message.get("role")), "gone", 0, reason)
        for key, entry in present.items():
            known = earlier.get(key)
            if known is None or known.message != entry.message or known.rule != entry.rule:
                kind = "new" if known is None else "changed"
                role = str(entry.message.get("role"))
                yield Difference(entry.seq, role, kind, entry.tokens, entry.reason)

    @property
    def replaced(self) -> list[Entry]:
        """The messages that the request has in another form."""
        return [entry for entry in self.entries if entry.rule and entry.seq is not None]


def _index_entries(entries: list[Entry]) -> dict[tuple[str, int], Entry]:
    """Return the entries of a view by their positions; those made by the store by their order."""
    made = 0
    indexed = {}
    for entry in entries:
        made += entry.seq is None
        indexed[("", entry.seq) if entry.seq is not None else ("made", made)] = entry
    return indexed


@page("/requests/{session_id:path}/{number:int}", "request.html")
def show_request_page(visit: Visit) -> Values:
    """Return a request by its number; 0 is the list of all, or one at any position."""
    session = visit.face.session(visit.session_id)
    requests = visit.face.requests(session.id)
    number = int(visit.request.path_params["number"])
    values = {"session": session, "tab": "requests", "number": number, "requests": requests}
    if number == 0 and not visit.get("at"):
        listed = requests[-LISTED_REQUESTS:]
        return values | {"shown": None, "listed": listed, "plot": plot_requests(listed)}
    made = visit.face.request(session.id, number) if number else None
    return values | {"shown": ShownRequest(visit, session, made)}


def plot_requests(requests: list[RequestSummary]) -> Plot:
    """Return the input of requests as bars, with the part that was cached."""
    rows = []
    for each in requests:
        sent = each.tokens if each.usage is None else each.usage.input
        cached = 0 if each.usage is None else each.usage.cached
        rows.append((str(each.number), sent or 0, cached, f"{sent or 0:,} / {cached:,}"))
    return plot_bars(rows)
