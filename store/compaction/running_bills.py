"""The running bills of a session under a policy: its own, and that of sending everything.

Both count the input of the session's requests, in plain input tokens. A clearing in a warm cache
writes a part of the request anew, and pays back later, if the session goes on. So it is made only
if the policy's own bill stays below `clear_bound` times the other with it: whenever the session
ends, it has cost no more than that.

The bills are of money that was spent: a rewind does not turn them back. A fork begins at zero with
nothing in the cache. They are counted in advance, from the estimate of the next request, by the
lifetime of the cache that the policy names. If usages tell cached tokens, they tell whether the
cache had lived through a pause: then the bills are corrected, and the lifetime is learned.

The lifetime may have been named wrong. A cache that has just reached it is given up only if the
bound would hold even if the cache still lived. After twice the lifetime, or a pause that was too
long according to a usage, it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select

from ..database import Insertion, Statement, running_bills
from ..history import LastRequest, Pointer, lines
from ..policy import CachePrices, Policy
from ..view import ViewContext, estimate_shown_tokens, load_savings
from .job import CompactionRequest
from .triggers import ViewCost, load_view_cost

ALIVE_SHARE, OVER_SHARE = 0.9, 0.5
"""Shares of the unchanged beginning: if more was cached the cache lived, if less it was over."""
LEAST_TELLING = 2_048
"""Tokens of an unchanged beginning that tell whether the cache lived."""
SURE_LIFETIMES = 2
"""Lifetimes after which a cache is gone, even if its lifetime was named wrong."""
LEAST_EXPECTED = 2
"""Requests that have to be expected for a clearing in a warm cache."""
MOST_STARTS = 16
"""The beginnings of a clearing that are compared."""


class RunningBill(NamedTuple):
    """The bills of a session under a policy, up to its last request.

    The last request was made at ``at`` (ms) with the line up to ``seq`` of a branch, ``pause`` ms
    after the one before; ``requests`` were made since the last pause. ``sent`` are its tokens,
    ``sent_before`` those of its unchanged beginning, ``raw_before`` those with everything sent.
    ``longest_alive`` and ``shortest_over`` are pauses (ms) that the cache did and did not outlive.
    """

    branch: int
    seq: int
    at: int
    requests: int
    sent: int
    sent_before: int
    raw_before: int
    pause: int | None
    longest_alive: int | None
    shortest_over: int | None
    was_cold: int
    own_bill: float
    raw_bill: float

    def is_cold(self, now: int, lifetime: int) -> bool:
        """Tell whether the cache has forgotten the last request, by its known usages."""
        if self.longest_alive is not None and self.longest_alive >= lifetime:
            lifetime = self.longest_alive + 1
        elif self.shortest_over is not None:
            lifetime = min(lifetime, self.shortest_over)
        return now - self.at >= lifetime

    def is_surely_cold(self, now: int, lifetime: int) -> bool:
        """Tell whether the cache is gone, even if its lifetime was named too short."""
        pause = now - self.at
        was_over = self.shortest_over is not None and pause >= self.shortest_over
        return was_over or pause >= SURE_LIFETIMES * lifetime

    def correct(self, usage: LastRequest | None, cache: CachePrices) -> RunningBill:
        """Return the bills after the usage of the last request, if it tells of the cache."""
        if usage is None or self.pause is None:
            return self
        if (usage.at, usage.seq) < (self.at, self.seq):
            return self
        if self.sent_before < LEAST_TELLING or usage.cached > usage.input:
            return self
        share = usage.cached * self.sent / (usage.input * self.sent_before)
        sign = 0
        if share >= ALIVE_SHARE:
            sign = -self.was_cold
            longest = max(self.pause, self.longest_alive or 0)
            corrected = self._replace(longest_alive=longest)
        elif share < OVER_SHARE and self.longest_alive is not None:
            sign = 1 - self.was_cold
            shortest = min(self.pause, self.shortest_over or self.pause)
            corrected = self._replace(shortest_over=shortest)
        else:
            return self
        dearer = sign * (cache.written - cache.cached)
        return corrected._replace(
            own_bill=self.own_bill + dearer * self.sent_before,
            raw_bill=self.raw_bill + dearer * self.raw_before,
        )


_bills = running_bills.c
_is_bill = (
    (_bills.tree_id == bindparam("tree_id"))
    & (_bills.session_id == bindparam("session_id"))
    & (_bills.policy_name == bindparam("policy_name"))
)
BILL = Statement(
    select(*(_bills[name] for name in RunningBill._fields)).where(_is_bill), row=RunningBill
)
DELETE_BILL = Statement(delete(running_bills).where(_is_bill))
INSERT_BILL = Insertion(running_bills)


class BilledRequest(NamedTuple):
    """The next request of a session: its cost, the bills until now, and what the cache holds.

    ``common`` is the last position that the request before had too, 0 for none; ``saved`` are the
    tokens that replacements in force save, by position.
    """

    cost: ViewCost
    before: RunningBill | None
    is_cold: bool
    common: int
    saved: Mapping[int, int]

    @property
    def cache(self) -> CachePrices:
        """The provider's cache."""
        return self.cost.context.policy.prompt_cache

    def tokens_after(self, position: int) -> int:
        """Return the tokens of the view after a position, as it is now."""
        context = self.cost.context
        first = max(position + 1, context.visible.first_kept)
        shown = estimate_shown_tokens(context, first, context.last)
        return shown - sum(tokens for seq, tokens in self.saved.items() if seq > position)

    def bill(self, freed: Mapping[int, int]) -> RunningBill:
        """Return the bills after the request, with a clearing that frees tokens by position."""
        context, fixed = self.cost.context, self.cost.next_request.fixed_tokens
        sent = max(0, self.cost.tokens - sum(freed.values())) + fixed
        same = min(self.common, min(freed, default=self.common + 1) - 1)
        raw = context.load_tokens(context.last) + fixed
        sent_before = raw_before = 0
        if self.before is not None and self.common:
            beginning = max(0, self.cost.tokens - self.tokens_after(same))
            sent_before = min(sent, beginning + fixed)
            raw_before = context.load_tokens(self.common) + fixed
        held = (0, 0) if self.is_cold else (sent_before, raw_before)
        before = self.before
        own_bill, raw_bill = (before.own_bill, before.raw_bill) if before else (0.0, 0.0)
        return RunningBill(
            branch=context.pointer.branch,
            seq=context.last,
            at=context.now,
            requests=1 if before is None or self.is_cold else before.requests + 1,
            sent=sent,
            sent_before=sent_before,
            raw_before=raw_before,
            pause=None if before is None else max(0, context.now - before.at),
            longest_alive=before.longest_alive if before else None,
            shortest_over=before.shortest_over if before else None,
            was_cold=int(self.is_cold),
            own_bill=own_bill + self.cache.price(sent, held[0]),
            raw_bill=raw_bill + self.cache.price(raw, held[1]),
        )

    def keeps_bound(self, freed: Mapping[int, int]) -> bool:
        """Tell whether the bills after a clearing keep the policy's bound."""
        after = self.bill(freed)
        return after.own_bill <= self.cost.context.policy.clear_bound * after.raw_bill

    def pays_back(self, freed: Mapping[int, int]) -> float:
        """Return after how many requests a clearing in a warm cache has paid for itself."""
        first = min(freed)
        rewritten = self.tokens_after(first - 1) - self.tokens_after(self.common)
        rewritten -= sum(freed.values())
        dearer = self.cache.written - self.cache.cached
        saved_each_time = sum(freed.values()) * self.cache.cached
        return max(0, rewritten) * dearer / saved_each_time

    @property
    def expected(self) -> float:
        """How many requests are expected to follow: half of those since the last pause."""
        return self.before.requests / 2 if self.before else 0.0

    def choose(self, freed: dict[int, int]) -> dict[int, int]:
        """Return what to clear: in a cold cache all, in a warm one what pays back soonest.

        Nothing if that takes longer than is expected, or breaks the bound; the bound is asked of a
        cold cache too if it may be warm after all.
        """
        if self.is_cold:
            now, lifetime = self.cost.context.now, self.cache.lifetime
            if self.before is None or self.before.is_surely_cold(now, lifetime):
                return freed
            return freed if self._replace(is_cold=False).keeps_bound(freed) else {}
        soonest = self.find_soonest(freed) if self.expected >= LEAST_EXPECTED else {}
        if not soonest or self.pays_back(soonest) > self.expected:
            return {}
        return soonest if self.keeps_bound(soonest) else {}

    def find_soonest(self, freed: dict[int, int]) -> dict[int, int]:
        """Return all after the place from which a clearing pays back soonest."""
        positions = sorted(freed)
        starts = positions[:: -(-len(positions) // MOST_STARTS)] if positions else []
        plans = ({seq: freed[seq] for seq in positions if seq >= start} for start in starts)
        saving = [plan for plan in plans if sum(plan.values()) > 0]
        return min(saving, key=self.pays_back, default={})


def load_bill(context: ViewContext) -> RunningBill | None:
    """Return the running bill of a session under a policy, after its last request's usage."""
    pointer, policy = context.pointer, context.policy
    before = BILL.row(context.connection, **_name_bill(pointer, policy))
    if before is None:
        return None
    return before.correct(context.load_last_request(), policy.prompt_cache)


def build_billed_request(
    cost: ViewCost, before: RunningBill | None, *, is_cold: bool
) -> BilledRequest:
    """Return the next request of a view by a policy with bounded clearing."""
    context = cost.context
    common = min(before.seq, context.last) if before else 0
    if before and common and before.branch != context.pointer.branch:
        *_, run = context.raw.runs(1, context.last)  # the line was left before its present branch
        common = min(common, run.first - 1)
    saved: dict[int, int] = {}
    if context.visible.cleared:
        saved = load_savings(context)
    return BilledRequest(cost, before, is_cold, common, saved)


def save_bill(connection: Connection, pointer: Pointer, policy: Policy, bill: RunningBill) -> None:
    """Write the bills of a session under a policy."""
    key = _name_bill(pointer, policy)
    DELETE_BILL.run(connection, **key)
    INSERT_BILL.run(connection, **key, **bill._asdict())


def charge_summary(connection: Connection, request: CompactionRequest, now: int) -> None:
    """Write that the last request is sent with a new summary: all of it is written anew."""
    pointer, policy = lines.lock_tree(connection, request.session_id), request.policy
    bill = BILL.one(connection, **_name_bill(pointer, policy))
    sent = load_view_cost(connection, pointer, policy, now).tokens
    sent += request.next_request.fixed_tokens
    cache, held = policy.prompt_cache, 0 if bill.was_cold else bill.sent_before
    own = bill.own_bill - cache.price(bill.sent, held) + cache.price(sent, 0)
    charged = bill._replace(sent=sent, sent_before=0, own_bill=own)
    save_bill(connection, pointer, policy, charged)


def _name_bill(pointer: Pointer, policy: Policy) -> dict[str, int | str]:
    return {
        "tree_id": pointer.tree_id,
        "session_id": pointer.session_id,
        "policy_name": policy.name,
    }
