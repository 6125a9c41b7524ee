"""The command that replays a session request by request, once for each policy: simulate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, Progress, TaskID

from ..errors import InvalidValue, StoreError
from ..policy import POLICIES, Policy
from ..simulation import PROVIDERS, Prices, Simulated, compare
from . import chart, render, savings, tables
from .options import (
    Json,
    MaxTokens,
    complete_policy,
    complete_session,
    find_session,
    open_existing_store,
    resolve_policy,
)
from .terminal import Bar, Column, TableRow

DEFAULT_PRICES = PROVIDERS["anthropic"]
CUSTOM_PROVIDER = "at the prices given"
MAX_PRICE = 10**12
"""The most that a price or a lifetime may be: a bill stays a number."""
DEFAULT_POLICIES = ("raw", *(name for name in POLICIES if name != "raw"))
"""The policies that are compared by default: all ready ones, and sending everything."""
SAVING_POLICIES = ("agent", "paged", "frugal")
"""The policies that are compared by default with sending everything, over all sessions."""
SIMULATION_COLUMNS = (
    Column("policy"),
    Column("requests", number=True, spare=4),
    Column("sent", number=True),
    Column("cached", number=True, spare=1),
    Column("largest", number=True, spare=2),
    Column("reuse", number=True, spare=3),
    Column("misses", number=True, spare=3),
    Column("bill", number=True),
    Column("compacted", number=True),
    Column("cleared", number=True),
)

ProviderResults = dict[str, Simulated]
"""The results of a policy by the name of the provider."""
PolicyResults = dict[str, ProviderResults]
"""The results of each policy, by the text that named it."""

PolicyVariants = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY[,FIELD=VALUE]",
        help="A policy, with changed fields. Can be repeated.",
        show_default="all ready policies",
        autocompletion=complete_policy,
    ),
]
TokenPrices = Annotated[
    str,
    typer.Option(
        "--prices",
        metavar="NAME=X[,NAME=X]",
        help="Prices of a token, relative to a plain input token: `cached` for tokens read from the"
        " cache, `written` for tokens written to it, `output` for tokens of an answer. `lifetime`"
        " is the lifetime of the cache in ms, `least` its minimum of tokens.",
        show_default=f"those of {', '.join(PROVIDERS)}",
    ),
]
ReplayedSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or a unique beginning of it.",
        show_default=False,
        autocompletion=complete_session,
    ),
]
AllSessions = Annotated[
    bool, typer.Option("--all", help="Replay all sessions, and show the savings by size.")
]
SvgFile = Annotated[
    Path | None,
    typer.Option(
        "--svg",
        metavar="FILE",
        help="Draw the tokens of each request in a file; with --all the bills.",
    ),
]


def simulate(
    ctx: typer.Context,
    session: ReplayedSession = None,
    policy: PolicyVariants = None,
    prices: TokenPrices = "",
    max_tokens: MaxTokens = None,
    svg: SvgFile = None,
    every: AllSessions = False,
    json: Json = False,
) -> None:
    """Replay a session by each policy, and compare the bills.

    The session is replayed with its own times; bills are by the prices of several providers. With
    `--all`, all sessions are, by the first provider: what a policy would have saved, by size.
    """
    if every == (session is not None):
        raise InvalidValue("name a SESSION, or --all for every session")
    if svg and not svg.parent.is_dir():
        raise StoreError(f"there is no folder {str(svg.parent)!r} to write {svg.name} to")
    if every:
        _simulate_all(ctx, policy or SAVING_POLICIES, prices, max_tokens, svg, json=json)
        return
    rules = {text: _parse_variant(text) for text in policy or DEFAULT_POLICIES}
    providers = {CUSTOM_PROVIDER: _parse_prices(prices)} if prices else PROVIDERS
    with open_existing_store(ctx) as store:
        found = find_session(store, str(session)).id
        head = store.session(found).head
        done: PolicyResults = {}
        with tables.build_progress(MofNCompleteColumn()) as bar:
            for text, simulated in rules.items():
                task = bar.add_task(render.shorten_to_line(text, 40), total=head)
                tell = partial(_update_simulation_bar, bar, task)
                done[text] = compare(
                    store, found, simulated, providers, max_tokens=max_tokens, progress=tell
                )
    if svg:
        svg.write_text(
            chart.draw_request_chart(_collect_sent_tokens(done), found), encoding="utf-8"
        )
    if json:
        render.print_json_list(starmap(_build_simulation_fields, done.items()))
    else:
        _print_simulation(found, done)


def _simulate_all(
    ctx: typer.Context,
    policies: Sequence[str],
    prices: str,
    max_tokens: int | None,
    svg: Path | None,
    *,
    json: bool,
) -> None:
    """Replay all sessions of a store, and print what the policies save."""
    rules = {text: _parse_variant(text) for text in policies}
    provider = _parse_prices(prices) if prices else DEFAULT_PRICES
    with (
        open_existing_store(ctx) as store,
        tables.build_progress(MofNCompleteColumn()) as bar,
    ):
        task = bar.add_task("sessions", total=store.count_sessions())
        advance = partial(bar.advance, task)
        costs = [*savings.replay_sessions(store, rules, provider, max_tokens, advance)]
    if svg:
        drawn = chart.draw_savings_chart(savings.collect_session_bills(costs))
        svg.write_text(drawn, encoding="utf-8")
    savings.print_savings([*savings.sum_savings(costs)], rules, json=json)


def _build_simulation_fields(text: str, told: ProviderResults) -> dict[str, Any]:
    """Return the result of a policy with the first provider, and the bills of all."""
    bills = {name: each.bill for name, each in told.items()}
    return {**_get_first_result(told)._asdict(), "policy": text, "bills": bills}


def _get_first_result(told: ProviderResults) -> Simulated:
    return next(iter(told.values()))


def _collect_sent_tokens(done: PolicyResults) -> chart.RequestTokens:
    """Return the tokens of each request, by policy."""
    return {text: _get_first_result(told).sent for text, told in done.items()}


def _print_simulation(session_id: str, done: PolicyResults) -> None:
    usual = {text: _get_first_result(told) for text, told in done.items()}
    provider = next(iter(next(iter(done.values()))))
    render.show_table(SIMULATION_COLUMNS, starmap(_build_simulation_row, usual.items()))
    render.print_lines("", f"bill in input tokens, {provider}, {session_id}")
    render.show_bars([*_build_bill_bars(usual)])
    if len(_get_first_policy(done)) > 1:
        render.print_lines("", "bill by provider, to that of the first policy")
        first = _get_first_policy(done)
        columns = [Column("policy"), *(Column(name, number=True) for name in first)]
        rows = [
            (text, *map(_format_bill_ratio, told.values(), first.values()))
            for text, told in done.items()
        ]
        render.show_table(columns, rows)
    render.print_lines("", "tokens of each request")
    render.show_table(
        (Column("policy"), Column("from first to last", wide=True)),
        chart.render_request_blocks(_collect_sent_tokens(done)),
    )


def _get_first_policy(done: PolicyResults) -> ProviderResults:
    return next(iter(done.values()))


def _build_bill_bars(done: dict[str, Simulated]) -> Iterator[Bar]:
    """Yield the bills as bars, each with its ratio to the first."""
    first, *_ = done.values()
    for text, each in done.items():
        yield text, round(each.bill), _format_bill_ratio(each, first)


def _parse_variant(text: str) -> Policy:
    """Return the policy of POLICY[,FIELD=VALUE …]."""
    name, *changes = re.split(r",(?=\w+=)", text)
    return resolve_policy(name, changes)


def _parse_prices(text: str) -> Prices:
    """Return the prices of NAME=X[,NAME=X …]; unnamed prices keep their defaults.

    Raises InvalidValue.
    """
    prices: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        name, _, number = (each.strip() for each in part.partition("="))
        if name not in Prices._fields:
            raise InvalidValue(f"--prices are of {', '.join(Prices._fields)}, not of {name!r}")
        try:
            price = type(getattr(DEFAULT_PRICES, name))(number)
        except ValueError:
            raise InvalidValue(f"--prices {name} is a number, not {number!r}") from None
        if not 0 <= price <= MAX_PRICE:
            raise InvalidValue(f"--prices {name} is from 0 to {MAX_PRICE:,}, not {number}")
        prices[name] = price
    return DEFAULT_PRICES._replace(**prices)


def _update_simulation_bar(bar: Progress, task: TaskID, told: int) -> None:
    bar.update(task, completed=told)


def _build_simulation_row(text: str, each: Simulated) -> TableRow:
    return (
        text,
        each.requests,
        each.tokens_sent,
        each.tokens_cached,
        each.largest_request,
        "" if each.reuse is None else f"{each.reuse:.3f}",
        each.misses,
        round(each.bill),
        each.compactions,
        each.clearings,
    )


def _format_bill_ratio(each: Simulated, first: Simulated) -> str:
    return f"{each.bill / first.bill:.2f} ×" if first.bill else ""
