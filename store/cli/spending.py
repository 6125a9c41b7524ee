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
from .counting import SessionOrStore
from .options import Json, MomentText, find_session, open_existing_store, parse_moment_option
from .show import OwnerFilter
from .shown import Bar

SUMMED_FIELDS = ("requests", "input", "cached", "output")
UNKNOWN_NAME = "?"
"""The text for a model or an owner that is unknown."""
MISSING_USAGE_TEXT = "a usage is recorded of a SESSION, with both --input and --output"


class UsageKey(StrEnum):
    """The keys by which usages are summed up."""

    model = "model"
    session = "session"
    owner = "owner"
    day = "day"


UsageKeyOption = Annotated[
    UsageKey,
    typer.Option(
        "--by",
        metavar="WHAT",
        help="Add up by model, session, owner or day.",
    ),
]
UsageStart = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From this moment on, given as for --now.",
        show_default="the first",
    ),
]
UsageEnd = Annotated[
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
InputTokens = Annotated[
    int | None,
    typer.Option(
        "--input",
        metavar="N",
        min=0,
        help="Record a request instead: its tokens, cached ones too.",
        show_default="nothing is recorded",
    ),
]
OutputTokens = Annotated[
    int | None,
    typer.Option("--output", metavar="N", min=0, help="Tokens of its answer.", show_default="none"),
]
CachedTokens = Annotated[
    int,
    typer.Option(
        "--cached", metavar="N", min=0, help="Of the request's, those read from the cache."
    ),
]
WrittenTokens = Annotated[
    int,
    typer.Option("--written", metavar="N", min=0, help="Of the request's, those put into it."),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Which model answered it.", show_default="none"),
]
ProviderName = Annotated[
    str | None,
    typer.Option("--provider", metavar="NAME", help="Whose it is.", show_default="none"),
]
RequestCost = Annotated[
    float | None,
    typer.Option(
        "--cost", metavar="USD", min=0, help="What it cost.", show_default="by the prices"
    ),
]


def usage(
    ctx: typer.Context,
    session: SessionOrStore = None,
    by: UsageKeyOption = UsageKey.model,
    owner: OwnerFilter = None,
    since: UsageStart = None,
    until: UsageEnd = None,
    prices: PriceFile = None,
    given: InputTokens = None,
    output: OutputTokens = None,
    cached: CachedTokens = 0,
    written: WrittenTokens = 0,
    model: ModelName = None,
    provider: ProviderName = None,
    cost: RequestCost = None,
    now: MomentText = None,
    json: Json = False,
) -> None:
    """Show what requests cost, or record it.

    With --input and --output it records what a session's last request cost; checks go by that.
    """
    tokens = {"output": output, "cached": cached, "written": written}
    told = {"model": model, "provider": provider, "cost": cost}
    with open_existing_store(ctx) as store:
        found = session and find_session(store, session).id
        if given is not None:
            kept = _record_usage(
                store, found, input=given, **tokens, **told, now=parse_moment_option(now)
            )
            render.print_answer(
                {"session": found, **kept._asdict()}, _describe_usage(kept), json=json
            )
            return
        chosen = {
            "since": parse_moment_option(since, "--since"),
            "until": parse_moment_option(until, "--until"),
        }
        if any((tokens | told).values()):
            raise InvalidValue(MISSING_USAGE_TEXT)
        totals = store.usage_totals(found, by=by, owner=owner, prices=prices, **chosen)
    _print_usage_totals(totals, found, json=json)


def _record_usage(store: Store, session_id: str | None, **values: Any) -> Usage:
    """Record a usage. Raises InvalidValue if a required value is missing."""
    if session_id is None or values["output"] is None:
        raise InvalidValue(MISSING_USAGE_TEXT)
    return store.record_usage(session_id, **values)


def _describe_usage(kept: Usage) -> str:
    amounts = f"{kept.input:,} in, {kept.output:,} out, {kept.cached:,} cached"
    return f"{kept.session_id}: {amounts} at position {kept.seq}"


def _print_usage_totals(totals: list[UsageTotal], session_id: str | None, *, json: bool) -> None:
    if json:
        render.print_json_list(each._asdict() for each in totals)
    elif not totals:
        render.print_lines("no usage is recorded; `record_usage` and imports record some")
    else:
        render.print_lines(
            f"{session_id}: {_describe_usage_totals(totals)}"
            if session_id
            else _describe_usage_totals(totals)
        )
        render.show_bars([*_build_usage_bars(totals)])
        render.print_lines(f"at the prices of {load_prices().as_of}, where no cost was recorded")


def _describe_usage_totals(totals: list[UsageTotal]) -> str:
    """Return totals in one line."""
    requests, given, cached, output = (sum(map(attrgetter(name), totals)) for name in SUMMED_FIELDS)
    share = f" ({cached / given:.0%} cached)" if given else ""
    tokens = f"{given:,} tokens in{share}, {output:,} out"
    return f"{format_count(requests, 'request')}, {tokens}, {_format_costs(totals)}"


def _format_costs(totals: list[UsageTotal]) -> str:
    """Return the sum of the costs of totals, and the part without a price."""
    known = [each.cost for each in totals if each.cost is not None]
    unpriced = sum(each.unpriced for each in totals)
    open_ = f"{unpriced:,} unpriced" if unpriced else ""
    return ", ".join(filter(None, (_format_dollars(sum(known)) if known else "", open_)))


def _format_dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}"


def _build_usage_bars(totals: list[UsageTotal]) -> Iterator[Bar]:
    for each in totals:
        yield each.name or UNKNOWN_NAME, each.input + each.output, _format_costs([each])
