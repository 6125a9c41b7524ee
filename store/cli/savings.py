"""The savings of a whole store by each policy: bills by the sizes of sessions, replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from .. import Store
from ..errors import StoreError
from ..policy import POLICIES, Policy
from ..simulation import Prices, Simulated, compare
from . import render
from .chart import SessionBills
from .terminal import Bar, Column, TableRow

SIZE_BORDERS = (0, 12_000, 30_000, 60_000, 120_000, 200_000)
"""The tokens from which on a session, all of it sent, is in a class of sizes."""
MOST_WORST = 1.02
"""The ratio to sending everything that no session may exceed under a recommended policy."""
SAVINGS_COLUMNS = (
    Column("policy"),
    Column("tokens"),
    Column("sessions", number=True),
    Column("bill", number=True),
    Column("median", number=True),
    Column("worst", number=True),
    Column("with recalls", number=True, spare=1),
    Column("misses in 100", number=True, spare=2),
)


class SessionCost(NamedTuple):
    """A session under a policy, and sent whole."""

    policy: str
    session: str
    own: Simulated
    whole: Simulated

    @property
    def ratio(self) -> float:
        """The bill to that of sending everything."""
        return self.own.bill / self.whole.bill


class SizeSavings(NamedTuple):
    """The bills of sessions of a class of sizes under a policy, to those of sending everything."""

    policy: str
    tokens: str
    sessions: int
    bill: float
    median: float
    worst: float
    recalled: float
    misses: float


def replay_sessions(
    store: Store,
    rules: Mapping[str, Policy],
    prices: Prices,
    max_tokens: int | None,
    progress: Callable[[], None],
) -> Iterator[SessionCost]:
    """Yield the cost of each session that has answers by each policy, and sent whole."""
    after = None
    while page := store.sessions(limit=100, after=after):
        after = page[-1]
        for session in page:
            provider = {"": prices}
            raw = Policy.named("raw")
            whole = compare(store, session.id, raw, provider, max_tokens=max_tokens)[""]
            for text, policy in rules.items() if whole.bill else ():
                own = compare(store, session.id, policy, provider, max_tokens=max_tokens)[""]
                yield SessionCost(text, session.id, own, whole)
            progress()


def collect_session_bills(costs: list[SessionCost]) -> SessionBills:
    """Return the tokens and the ratio of each session, by policy."""
    bills: dict[str, list[tuple[int, float]]] = {}
    for each in costs:
        of_policy = bills.setdefault(each.policy, [])
        of_policy.append((each.whole.largest_request, each.ratio))
    return bills


def sum_savings(costs: list[SessionCost]) -> Iterator[SizeSavings]:
    """Yield the savings of each policy by class of sizes, and of all sessions together."""
    for policy in dict.fromkeys(each.policy for each in costs):
        of_policy = [each for each in costs if each.policy == policy]
        ends = (*SIZE_BORDERS[1:], None)
        for low, high in zip(SIZE_BORDERS, ends, strict=True):
            sizes = range(low, high or 2**62)
            here = [each for each in of_policy if each.whole.largest_request in sizes]
            if here:
                yield _sum_class(policy, f"{low:,}" + (f" to {high:,}" if high else " on"), here)
        yield _sum_class(policy, "all", of_policy)


def _sum_class(policy: str, tokens: str, costs: list[SessionCost]) -> SizeSavings:
    whole = sum(each.whole.bill for each in costs)
    requests = sum(each.own.requests for each in costs)
    ratios = [each.ratio for each in costs]
    return SizeSavings(
        policy=policy,
        tokens=tokens,
        sessions=len(costs),
        bill=sum(each.own.bill for each in costs) / whole,
        median=median(ratios),
        worst=max(ratios),
        recalled=sum(each.own.recalled_bill for each in costs) / whole,
        misses=100 * sum(each.own.misses for each in costs) / requests,
    )


def print_savings(savings: list[SizeSavings], rules: Mapping[str, Policy], *, json: bool) -> None:
    """Print the savings, and the line of a program that has the best of them.

    Raises StoreError where there is no session with an answer.
    """
    if not savings:
        raise StoreError("no session of this store has an answer: there is nothing to replay")
    best = _choose_best(savings)
    line = "" if best is None else _render_policy(best.policy, rules[best.policy])
    if json:
        rows: list[dict[str, Any]] = [each._asdict() for each in savings]
        render.print_json({"savings": rows, "line": line})
        return
    render.show_table(SAVINGS_COLUMNS, map(_build_savings_row, savings))
    render.print_lines("", "bill of all sessions with recalls, in hundredths of sending everything")
    render.show_bars([*_build_savings_bars(savings)])
    if line:
        render.print_lines("", f"policy = {line}")
    else:
        render.print_lines("", "no policy saves without making a session dearer: send everything")


def _choose_best(savings: list[SizeSavings]) -> SizeSavings | None:
    """Return the cheapest policy of all sessions that makes none dearer, if one saves."""
    fit = [each for each in savings if each.tokens == "all" and each.worst <= MOST_WORST]
    saving = [each for each in fit if each.recalled < 1]
    return min(saving, key=lambda each: each.recalled, default=None)


def _render_policy(text: str, policy: Policy) -> str:
    """Return a policy as a program writes it: a ready one with its changes, or that of a file."""
    if policy.name not in POLICIES:
        return f"store.policy.load({text!r})"
    ready = Policy.named(policy.name)
    fields = vars(policy)
    changed = (name for name in fields if fields[name] != getattr(ready, name))
    given = "".join(f", {name}={getattr(policy, name)!r}" for name in changed)
    return f"Policy.named({policy.name!r}{given})"


def _build_savings_row(each: SizeSavings) -> TableRow:
    shares = (each.bill, each.median, each.worst, each.recalled)
    return (
        each.policy,
        each.tokens,
        each.sessions,
        *(f"{share:.2f}" for share in shares),
        f"{each.misses:.1f}",
    )


def _build_savings_bars(savings: list[SizeSavings]) -> Iterator[Bar]:
    for each in savings:
        if each.tokens == "all":
            yield each.policy, round(100 * each.recalled), f"{each.recalled:.2f} ×"
