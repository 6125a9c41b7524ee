"""Sessions under policies: bills by provider, reuse, a small window, forced compactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from store import Policy
from store.tokens import count_message_tokens, estimate

from ..recorded import Transcript, largest
from . import summaries
from .policies import RAW, Variant, load_summarizer, looks_at_caches, told_of
from .pricing import PROVIDERS, bill
from .programs import Program
from .recalls import recall_cost
from .recording import Recording, common_words, recorded
from .replay import Asked, Replayed, replayed
from .reuse import Tally
from .summaries import Told

SMALL = 32_000
"""Tokens of a window that recorded sessions outgrow."""
LEAST = 12_000
"""Tokens that a session must have to be measured: below it there is nothing to save."""
ALL = 10**9
FIRST, *OTHERS = PROVIDERS
OF_USUAL = {"bill", "providers", "reuse"}
"""The tables that are of the window asked for."""


class Plan(NamedTuple):
    """What is measured: policies, tables, a window, reuse at which requests; how many processes.

    Policies are told ``factor`` times the true lifetime of a cache; usages tell cached tokens if
    ``tells_cached``.
    """

    variants: list[Variant]
    tables: list[str]
    window: int | None = None
    every: int = 1
    processes: int = 1
    factor: float = 1.0
    tells_cached: bool = True


class Outcome(NamedTuple):
    """What a session came to in one window; all but the other bills as for the first provider."""

    bills: dict[str, float]
    recalled: float
    misses: int
    word_misses: int
    requests: int
    sent: int
    largest: int
    reuse: dict[str, Tally]
    done: dict[str, int]
    over: int
    avoidable: int


class Measured(NamedTuple):
    """A session under a policy: in the window asked for, in a small one, and compacted by force."""

    session: str
    policy: str
    tokens: int
    usual: Outcome | None
    small: Outcome | None
    told: Told | None


class Sessions(NamedTuple):
    """The sessions to measure; how many a folder has, files that no parser reads, common words."""

    wanted: list[Transcript]
    read: int
    unread: int
    common: frozenset[str]


def sessions(folder: Path, wanted: int | None, least: int) -> Sessions:
    """Return the largest sessions of a folder of at least so many tokens, each once."""
    found, unread = largest(folder, ALL)
    by_text = {json.dumps(each.messages, sort_keys=True): each for each in found}
    distinct = list(by_text.values())
    enough = [each for each in distinct if _tokens(each) >= least]
    return Sessions(enough[:wanted], len(found), unread, common_words(distinct))


def measured(found: Sessions, plan: Plan) -> Iterator[list[Measured]]:
    """Yield what each session came to under each policy, in the order of the sessions."""
    measure = partial(_measured, common=found.common, plan=plan)
    if plan.processes == 1:
        yield from map(measure, found.wanted)
        return
    with ProcessPoolExecutor(plan.processes) as pool:
        yield from pool.map(measure, found.wanted)


def _measured(transcript: Transcript, common: frozenset[str], plan: Plan) -> list[Measured]:
    recording = recorded(transcript, common)
    return [_under(recording, variant, plan) for variant in plan.variants]


def _under(recording: Recording, variant: Variant, plan: Plan) -> Measured:
    """Measure a session under a policy; of the one that sends everything only the bills."""
    is_raw = variant.name == RAW
    others = OTHERS if "providers" in plan.tables else []
    asked = Asked(
        window=plan.window,
        lifetime=PROVIDERS[FIRST].lifetime,
        every=0 if is_raw else plan.every,
        misses=not is_raw,
        tells_cached=plan.tells_cached,
        factor=plan.factor,
    )
    usual, in_small, told = None, None, None
    if not OF_USUAL.isdisjoint(plan.tables):
        usual = _outcome(recording, variant.policy, asked, others)
    if isinstance(variant.policy, Program):
        return Measured(recording.name, variant.name, sum(recording.tokens), usual, None, None)
    if "window" in plan.tables:
        in_small = _outcome(recording, variant.policy, asked._replace(window=SMALL), [])
    if "summaries" in plan.tables and not is_raw:
        summarizer = load_summarizer(variant.summarizer) if variant.summarizer else None
        told = summaries.compacted(recording, variant.policy, summarizer)
    return Measured(
        session=recording.name,
        policy=variant.name,
        tokens=sum(recording.tokens),
        usual=usual,
        small=in_small,
        told=told,
    )


def _outcome(
    recording: Recording, policy: Policy | Program, asked: Asked, others: list[str]
) -> Outcome:
    """Tell a session again as often as its policy differs by the provider; draw up the bills."""
    first = replayed(recording, told_of(policy, asked.lifetime, asked.factor), asked)
    told = {asked.lifetime: first}
    bills = {FIRST: bill(first.requests, PROVIDERS[FIRST])}
    for name in others:
        prices = PROVIDERS[name]
        known = prices.lifetime if looks_at_caches(policy) else asked.lifetime
        if known not in told:
            told[known] = _for_a_bill(recording, policy, asked._replace(lifetime=known))
        bills[name] = bill(told[known].requests, prices)
    return _summed_up(first, bills)


def _for_a_bill(recording: Recording, policy: Policy | Program, asked: Asked) -> Replayed:
    return replayed(
        recording,
        told_of(policy, asked.lifetime, asked.factor),
        asked._replace(every=0, misses=False),
    )


def _summed_up(told: Replayed, bills: dict[str, float]) -> Outcome:
    sent = [request.sent for request in told.requests]
    return Outcome(
        bills=bills,
        recalled=bills[FIRST] + recall_cost(told.requests, PROVIDERS[FIRST]),
        misses=sum(request.missed for request in told.requests),
        word_misses=told.word_misses,
        requests=len(sent),
        sent=sum(sent),
        largest=max(sent, default=0),
        reuse=told.reuse,
        done=told.done,
        over=told.over,
        avoidable=told.avoidable,
    )


def _tokens(transcript: Transcript) -> int:
    return sum(count_message_tokens(message, estimate) for message in transcript.messages)
