"""The command that replays a session request by request, once for each policy: simulate."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..policy import Policy
from ..simulation import Prices, Simulated
from ..simulation import simulate as simulated
from ..store import Store
from . import render
from .options import Json, MaxTokens, SessionId, existing, find, policy_of
from .render import Cell, Column

PRICES = Prices()
POLICIES = ("raw", "default", "default,clearing=batched")
"""What is compared where nothing else is asked for."""

COLUMNS = (
    Column("policy", wide=True),
    *(Column(name, number=True) for name in ("requests", "sent", "cached", "largest", "bill", "compacted", "cleared")),
)


def simulate(
    ctx: typer.Context,
    session: SessionId,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY[,FIELD=VALUE]",
            help="A policy, with fields changed. Can be repeated.",
            show_default=" ".join(POLICIES),
        ),
    ] = None,
    cached_price: Annotated[
        float,
        typer.Option(
            "--cached-price", metavar="X", min=0, max=1e6, help="A token read from the cache, in input tokens."
        ),
    ] = PRICES.cached,
    written_price: Annotated[
        float,
        typer.Option("--written-price", metavar="X", min=0, max=1e6, help="A token that is not in the cache yet."),
    ] = PRICES.written,
    output_price: Annotated[
        float, typer.Option("--output-price", metavar="X", min=0, max=1e6, help="A token of an answer.")
    ] = PRICES.output,
    lifetime: Annotated[
        int, typer.Option("--lifetime", metavar="MS", min=0, help="How long the cache lives.")
    ] = PRICES.lifetime,
    max_tokens: MaxTokens = None,
    json: Json = False,
) -> None:
    """Replay a session as if live, once by each policy, and compare what a provider would have billed."""
    rules = {text: _variant(text) for text in policy or POLICIES}
    prices = Prices(cached_price, written_price, output_price, lifetime)
    with existing(ctx) as store:
        found = find(store, session).id
        done = _simulate_all(store, found, rules, prices, max_tokens)
    if json:
        render.print_json_list({**each._asdict(), "policy": text} for text, each in done.items())
        return
    first = next(iter(done.values()))
    render.table(COLUMNS, [_row(text, each) for text, each in done.items()])
    render.say("", f"bill, in input tokens, {found}")
    render.bars([(text, round(each.bill), _ratio(each, first)) for text, each in done.items()])


def _variant(text: str) -> Policy:
    """Return the policy of POLICY[,FIELD=VALUE …]."""
    name, *changes = re.split(r",(?=\w+=)", text)
    return policy_of(name, changes)


def _simulate_all(
    store: Store, session_id: str, rules: dict[str, Policy], prices: Prices, max_tokens: int | None
) -> dict[str, Simulated]:
    head = store.session(session_id).head
    done = {}
    with _progress() as bar:
        for text, policy in rules.items():
            task = bar.add_task(render.one_line(text, 40), total=head)
            done[text] = simulated(
                store,
                session_id,
                policy,
                prices=prices,
                max_tokens=max_tokens,
                progress=lambda told, task=task: bar.update(task, completed=told),  # type: ignore[misc]
            )
    return done


def _progress() -> Progress:
    error = render.console(error=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=error, transient=True, disable=not error.is_terminal)


def _row(text: str, each: Simulated) -> tuple[Cell, ...]:
    tokens = (each.tokens_sent, each.tokens_cached, each.largest_request)
    return (text, each.requests, *tokens, round(each.bill), each.compactions, each.clearings)


def _ratio(each: Simulated, first: Simulated) -> str:
    return f"{each.bill / first.bill:.2f} ×" if first.bill else ""
