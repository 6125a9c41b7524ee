"""What a session would have cost by other policies: replayed request by request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from .. import InvalidValue
from ..policy import POLICIES, Policy
from ..records import Session
from ..simulation import PROVIDERS, Prices, Simulated, simulate
from .page_rendering import Values, Visit, page
from .plots import Plot, add_up, plot_curves

REPLAY_SECONDS = 30.0
"""How long all replays of a page may take."""
KEPT_RESULTS = 64
ResultKey = tuple[str, str, str, str]
"""A session, its revision, a policy and a provider."""
RESULTS: dict[ResultKey, Simulated] = {}
REPLAYING = threading.Lock()
DEFAULT_CHOICE = ("raw", "agent")


class PolicyBox(NamedTuple):
    """A ready policy, and whether it is chosen."""

    name: str
    chosen: bool


@page("/policies/{session_id:path}", "policies.html")
def show_policies(visit: Visit) -> Values:
    """Return the ready policies, and the bills of a session by those that are chosen."""
    session = visit.face.session(visit.session_id)
    names = visit.request.query_params.getlist("policy")
    provider = visit.get("provider") or next(iter(PROVIDERS))
    if provider not in PROVIDERS:
        raise InvalidValue(f"provider is one of {', '.join(PROVIDERS)}, not {provider[:40]!r}")
    results = replay_session(visit, session, names, provider)
    chosen = names or DEFAULT_CHOICE
    return {
        "session": session,
        "tab": "policies",
        "choices": [PolicyBox(name, name in chosen) for name in POLICIES],
        "providers": [*PROVIDERS],
        "provider": provider,
        "results": results,
        "unfinished": [name for name in names if name not in results],
        "limit": f"{REPLAY_SECONDS:g}",
        "tokens": plot_results(results, lambda each: each.sent),
        "bills": plot_results(results, lambda each: add_up(each.bills)),
    }


def plot_results(
    results: dict[str, Simulated], measure: Callable[[Simulated], Iterable[float]]
) -> Plot:
    """Return a curve over the requests for each policy."""
    return plot_curves({name: [*measure(each)] for name, each in results.items()})


def replay_session(
    visit: Visit, session: Session, names: list[str], provider: str
) -> dict[str, Simulated]:
    """Return the cost of a session by some policies, as many as there is time for.

    One page replays at a time. Raises InvalidPolicy.
    """
    results: dict[str, Simulated] = {}
    deadline = time.monotonic() + REPLAY_SECONDS
    with REPLAYING, suppress(TimeoutError):
        for name in names:
            policy = Policy.named(name)
            key = session.id, session.revision, name, provider
            if key not in RESULTS:
                keep_result(key, replay_until(deadline, visit, policy, PROVIDERS[provider]))
            results[name] = RESULTS[key]
    return results


def replay_until(deadline: float, visit: Visit, policy: Policy, prices: Prices) -> Simulated:
    """Return the cost of a session by a policy. Raises TimeoutError."""

    def check_time(_: int) -> None:
        if time.monotonic() > deadline:
            raise TimeoutError

    return simulate(visit.site.store, visit.session_id, policy, prices=prices, progress=check_time)


def keep_result(key: ResultKey, result: Simulated) -> None:
    """Keep a result instead of the oldest one."""
    while len(RESULTS) >= KEPT_RESULTS:
        RESULTS.pop(next(iter(RESULTS)))
    RESULTS[key] = result
