"""The command for the costs of requests: usage."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidValue
from ..face import Store
from ..history import load_prices
from ..records import Usage, UsageTotal
from ..text import format_count
from . import render
from .counting import SomeSession
from .options import Json, Now, existing, find, moment_of
from .show import OfOwner
from .shown import Bar

SHOWN = ("requests", "input", "cached", "output")
UNKNOWN = "?"
"""The text for a model or an owner that is unknown."""
NOT_RECORDED = "a usage is recorded of a SESSION, with both --input and --output"


class Key(StrEnum):
    """The keys by which usages are summed up."""

    model = "model"
    session = "session"
    owner = "owner"
    day = "day"


By = Annotated[
    Key,
    typer.Option(
        "--by",
        metavar="WHAT",
        help="Add up by model, session, owner or day.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From this moment on, given as for --now.",
        show_default="the first",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Before this moment.", show_default="the last"),
]
PriceFile = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        envvar="CONVOSTORE_PRICES",
        show_envvar=False,
        help="A TOML file with prices of your own, before those that are known; "
        "else the one that $CONVOSTORE_PRICES names.",
        show_default="none",
    ),
]
Given = Annotated[
    int | None,
    typer.Option(
        "--input",
        metavar="N",
        min=0,
        help="Record a request instead: its tokens, cached ones too.",
        show_default="nothing is recorded",
    ),
]
Output = Annotated[
    int | None,
    typer.Option("--output", metavar="N", min=0, help="Tokens of its answer.", show_default="none"),
]
Cached = Annotated[
    int,
    typer.Option(
        "--cached", metavar="N", min=0, help="Of the request's, those read from the cache."
    ),
]
Written = Annotated[
    int,
    typer.Option("--written", metavar="N", min=0, help="Of the request's, those put into it."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Which model answered it.", show_default="none"),
]
Provider = Annotated[
    str | None,
    typer.Option("--provider", metavar="NAME", help="Whose it is.", show_default="none"),
]
Cost = Annotated[
    float | None,
    typer.Option(
        "--cost", metavar="USD", min=0, help="What it cost.", show_default="by the prices"
    ),
]


def usage(
    ctx: typer.Context,
    session: SomeSession = None,
    by: By = Key.model,
    owner: OfOwner = None,
    since: Since = None,
    until: Until = None,
    prices: PriceFile = None,
    given: Given = None,
    output: Output = None,
    cached: Cached = 0,
    written: Written = 0,
    model: Model = None,
    provider: Provider = None,
    cost: Cost = None,
    now: Now = None,
    json: Json = False,
) -> None:
    """Show what requests cost, or record it.

    With --input and --output it records what a session's last request cost; checks go by that.
    """
    tokens = {"output": output, "cached": cached, "written": written}
    told = {"model": model, "provider": provider, "cost": cost}
    with existing(ctx) as store:
        found = session and find(store, session).id
        if given is not None:
            kept = _recorded(store, found, input=given, **tokens, **told, now=moment_of(now))
            render.answer({"session": found, **kept._asdict()}, _kept(kept), json=json)
            return
        chosen = {"since": moment_of(since, "--since"), "until": moment_of(until, "--until")}
        if any((tokens | told).values()):
            raise InvalidValue(NOT_RECORDED)
        totals = store.usage_totals(found, by=by, owner=owner, prices=prices, **chosen)
    _show(totals, found, json=json)


def _recorded(store: Store, session_id: str | None, **values: Any) -> Usage:
    """Record a usage. Raises InvalidValue if a required value is missing."""
    if session_id is None or values["output"] is None:
        raise InvalidValue(NOT_RECORDED)
    return store.record_usage(session_id, **values)


def _kept(kept: Usage) -> str:
    amounts = f"{kept.input:,} in, {kept.output:,} out, {kept.cached:,} cached"
    return f"{kept.session_id}: {amounts} at position {kept.seq}"


def _show(totals: list[UsageTotal], session_id: str | None, *, json: bool) -> None:
    if json:
        render.print_json_list(each._asdict() for each in totals)
    elif not totals:
        render.say("no usage is recorded; `record_usage` and imports record some")
    else:
        render.say(f"{session_id}: {_summed(totals)}" if session_id else _summed(totals))
        render.bars([*_bars(totals)])
        render.say(f"at the prices of {load_prices().as_of}, where no cost was recorded")


def _summed(totals: list[UsageTotal]) -> str:
    """Return totals in one line."""
    requests, given, cached, output = (sum(map(attrgetter(name), totals)) for name in SHOWN)
    share = f" ({cached / given:.0%} cached)" if given else ""
    tokens = f"{given:,} tokens in{share}, {output:,} out"
    return f"{format_count(requests, 'request')}, {tokens}, {_dollars(totals)}"


def _dollars(totals: list[UsageTotal]) -> str:
    """Return the sum of the costs of totals, and the part without a price."""
    known = [each.cost for each in totals if each.cost is not None]
    unpriced = sum(each.unpriced for each in totals)
    open_ = f"{unpriced:,} unpriced" if unpriced else ""
    return ", ".join(filter(None, (_dollar(sum(known)) if known else "", open_)))


def _dollar(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}"


def _bars(totals: list[UsageTotal]) -> Iterator[Bar]:
    for each in totals:
        yield each.name or UNKNOWN, each.input + each.output, _dollars([each])
