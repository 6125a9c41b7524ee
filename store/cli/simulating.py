"""The command that replays a session request by request, once for each policy: simulate."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, Progress, TaskID

from ..errors import InvalidValue
from ..policy import Policy
from ..simulation import Prices, Simulated
from ..simulation import simulate as simulated
from ..store import Store
from . import render
from .options import Json, MaxTokens, SessionId, complete_policy, existing, find, policy_of
from .render import Cell, Column

PRICES = Prices()
HIGHEST = 10**12
"""The most that a price or a lifetime may be: a bill stays a number."""
POLICIES = ("raw", "default", "default,clearing=batched")
"""What is compared where nothing else is asked for."""

COLUMNS = (
    Column("policy", wide=True),
    *(
        Column(name, number=True)
        for name in ("requests", "sent", "cached", "largest", "bill", "compacted", "cleared")
    ),
)


Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY[,FIELD=VALUE]",
        help="A policy, with fields changed. Can be repeated.",
        show_default=" ".join(POLICIES),
        autocompletion=complete_policy,
    ),
]
PriceList = Annotated[
    str,
    typer.Option(
        "--prices",
        metavar="NAME=X[,NAME=X]",
        help="Prices of a token, in that of a plain input token: `cached` is read from the cache, "
        "`written` is not in it yet, `output` is of an answer. "
        "`lifetime`: how many ms the cache lives.",
        show_default=",".join(f"{name}={price:g}" for name, price in PRICES._asdict().items()),
    ),
]


def simulate(
    ctx: typer.Context,
    session: SessionId,
    policy: Variants = None,
    prices: PriceList = "",
    max_tokens: MaxTokens = None,
    json: Json = False,
) -> None:
    """Replay a session as if live, once by each policy, and compare the provider's bills."""
    rules = {text: _variant(text) for text in policy or POLICIES}
    bills = _prices(prices)
    with existing(ctx) as store:
        found = find(store, session).id
        done = _simulate_all(store, found, rules, bills, max_tokens)
    if json:
        render.print_json_list({**each._asdict(), "policy": text} for text, each in done.items())
    else:
        _print(found, done)


def _print(session_id: str, done: dict[str, Simulated]) -> None:
    first = next(iter(done.values()))
    rows = [_row(text, each) for text, each in done.items()]
    render.table(COLUMNS, rows)
    render.say("", f"bill, in input tokens, {session_id}")
    render.bars([(text, round(each.bill), _ratio(each, first)) for text, each in done.items()])


def _variant(text: str) -> Policy:
    """Return the policy of POLICY[,FIELD=VALUE …]."""
    name, *changes = re.split(r",(?=\w+=)", text)
    return policy_of(name, changes)


def _prices(text: str) -> Prices:
    """Return the prices of NAME=X[,NAME=X …]; what is not named stays as it is.

    Raises InvalidValue.
    """
    parts = text.split(",") if text else []
    return PRICES._replace(**dict(map(_price, parts)))


def _price(part: str) -> tuple[str, Any]:
    """Return the name and the number of NAME=X. Raises InvalidValue."""
    name, _, text = (each.strip() for each in part.partition("="))
    if name not in Prices._fields:
        raise InvalidValue(f"--prices are of {', '.join(Prices._fields)}, not of {name!r}")
    number = type(getattr(PRICES, name))
    try:
        price = number(text)
    except ValueError:
        raise InvalidValue(f"--prices {name} is a number, not {text!r}") from None
    if not 0 <= price <= HIGHEST:
        raise InvalidValue(f"--prices {name} is from 0 to {HIGHEST:,}, not {text}")
    return name, price


def _simulate_all(
    store: Store, session_id: str, rules: dict[str, Policy], prices: Prices, max_tokens: int | None
) -> dict[str, Simulated]:
    head = store.session(session_id).head
    options: dict[str, Any] = {"prices": prices, "max_tokens": max_tokens}
    done = {}
    with render.progress(MofNCompleteColumn()) as bar:
        for text, policy in rules.items():
            task = bar.add_task(render.one_line(text, 40), total=head)
            tell = partial(_tell, bar, task)
            done[text] = simulated(store, session_id, policy, progress=tell, **options)
    return done


def _tell(bar: Progress, task: TaskID, told: int) -> None:
    bar.update(task, completed=told)


def _row(text: str, each: Simulated) -> tuple[Cell, ...]:
    tokens = each.tokens_sent, each.tokens_cached, each.largest_request
    bill = round(each.bill)
    return text, each.requests, *tokens, bill, each.compactions, each.clearings


def _ratio(each: Simulated, first: Simulated) -> str:
    return f"{each.bill / first.bill:.2f} ×" if first.bill else ""
