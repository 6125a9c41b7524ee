"""The command that replays a session request by request, once for each policy: simulate."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import InvalidValue
from ..policy import Policy
from ..simulation import Prices, Simulated
from ..simulation import simulate as simulated
from ..store import Store
from . import render
from .options import Json, MaxTokens, SessionId, existing, find, policy_of
from .render import Cell, Column

PRICES = Prices()
HIGHEST = 10**12
"""The most that a price or a lifetime may be: a bill stays a number."""
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
    prices: Annotated[
        str,
        typer.Option(
            "--prices",
            metavar="NAME=X[,NAME=X]",
            help="Prices of a token, in that of a plain input token: `cached` is read from the cache, `written` is not "
            "in it yet, `output` is of an answer. `lifetime`: how many ms the cache lives.",
            show_default=",".join(f"{name}={price:g}" for name, price in PRICES._asdict().items()),
        ),
    ] = "",
    max_tokens: MaxTokens = None,
    json: Json = False,
) -> None:
    """Replay a session as if live, once by each policy, and compare what a provider would have billed."""
    rules = {text: _variant(text) for text in policy or POLICIES}
    bills = _prices(prices)
    with existing(ctx) as store:
        found = find(store, session).id
        done = _simulate_all(store, found, rules, bills, max_tokens)
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


def _prices(text: str) -> Prices:
    """Return the prices of NAME=X[,NAME=X …]; what is not named stays as it is. Raises InvalidValue."""
    named = {}
    for part in text.split(",") if text else ():
        name, _, price = (each.strip() for each in part.partition("="))
        if name not in Prices._fields:
            raise InvalidValue(f"--prices are of {', '.join(Prices._fields)}, not of {name!r}")
        try:
            named[name] = type(getattr(PRICES, name))(price)
        except ValueError:
            raise InvalidValue(f"--prices {name} is a number, not {price!r}") from None
        if not 0 <= named[name] <= HIGHEST:
            raise InvalidValue(f"--prices {name} is from 0 to {HIGHEST:,}, not {price}")
    return PRICES._replace(**named)


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
