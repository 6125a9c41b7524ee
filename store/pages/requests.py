"""The requests of a session: what each held, what it cost, and why."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from .. import InvalidValue, PositionOutOfRange
from ..records import Entry, Replaced, Session, Usage, View
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
    """A request: the one of a recorded usage, made anew, or one at any position."""

    def __init__(self, visit: Visit, session: Session, usage: Usage | None) -> None:
        self._visit, self.session, self.usage = visit, session, usage
        asked = visit.number("at")
        position = session.head if asked is None else asked
        self.at = position if usage is None else usage.seq
        self._branch = None if usage is None else usage.branch

    def _make(self, at: int) -> View:
        moment = None if self.usage is None else self.usage.at
        policy = self._visit.policy()
        try:
            return self._visit.face.view(
                self.session.id, policy, at=at, now=moment, branch=self._branch
            )
        except (InvalidValue, PositionOutOfRange):  # its branch can be reached no more
            if self.usage is None:
                raise
            return self._visit.face.view(
                self.session.id, policy, at=min(at, self.session.head), now=moment
            )

    @cached_property
    def view(self) -> View:
        """The messages of the request."""
        return self._make(self.at)

    @cached_property
    def before(self) -> View | None:
        """Those of the request before: the last one that ended at an earlier position."""
        usages = self._visit.face.usages(self.session.id)
        earlier = [each.seq for each in usages if each.seq < self.at] or [self.at - 1]
        return self._make(max(earlier)) if max(earlier) > 0 else None

    @property
    def layers(self) -> list[TokenLayer]:
        """The tokens by the roles of messages, and of those that the store made."""
        sums: dict[str, int] = {}
        for entry in self.view.entries:
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
        pairs = zip(self.view.messages, earlier, strict=False)
        same = (place for place, (one, other) in enumerate(pairs) if one != other)
        return next(same, min(len(earlier), len(self.view.messages)))

    @property
    def shared_tokens(self) -> int:
        """The tokens of these messages: what a prompt cache can have."""
        return sum(entry.tokens for entry in self.view.entries[: self.shared])

    @property
    def differences(self) -> list[Difference]:
        """The messages that differ from the request before, the first ones."""
        return [*self._compare()][:SHOWN_DIFFERENCES]

    def _compare(self) -> Iterator[Difference]:
        earlier = {} if self.before is None else _index_entries(self.before)
        present = _index_entries(self.view)
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
    def replaced(self) -> list[Replaced]:
        """The results that the request has in another form."""
        view = self.view
        moment = None if self.usage is None else self.usage.at
        return self._visit.face.replaced(
            self.session.id, self._visit.policy(), at=min(view.at, self.session.head), now=moment
        )


def _index_entries(view: View) -> dict[tuple[str, int], Entry]:
    """Return the entries of a view by their positions; those made by the store by their order."""
    made = 0
    indexed = {}
    for entry in view.entries:
        made += entry.seq is None
        indexed[("", entry.seq) if entry.seq is not None else ("made", made)] = entry
    return indexed


@page("/requests/{session_id:path}/{number:int}", "request.html")
def show_request_page(visit: Visit) -> Values:
    """Return a request by its number; 0 is the list of all, or one at any position."""
    session = visit.face.session(visit.session_id)
    usages = visit.face.usages(session.id)
    number = int(visit.request.path_params["number"])
    values = {"session": session, "tab": "requests", "number": number, "usages": usages}
    if number == 0 and not visit.get("at"):
        shown = [*enumerate(usages, 1)][-LISTED_REQUESTS:]
        return values | {"shown": None, "listed": shown, "plot": plot_usages(usages)}
    if number > len(usages):
        raise InvalidValue(visit.say("no_request", count=len(usages)))
    usage = usages[number - 1] if number else None
    return values | {"shown": ShownRequest(visit, session, usage), "usage": usage}


def plot_usages(usages: list[Usage]) -> Plot:
    """Return the input of the last requests as bars, with the part that was cached."""
    return plot_bars(
        [
            (str(number), each.input, each.cached, f"{each.input:,} / {each.cached:,}")
            for number, each in [*enumerate(usages, 1)][-LISTED_REQUESTS:]
        ]
    )
