"""The command that replays a session request by request, once for each policy: simulate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import starmap
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
from .render import Bar, Column, Row

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

Compared = dict[str, Simulated]
"""What came of each policy, by the text that named it."""

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
        render.print_json_list(starmap(_fields, done.items()))
    else:
        _print(found, done)


def _fields(text: str, each: Simulated) -> dict[str, Any]:
    return {**each._asdict(), "policy": text}


def _print(session_id: str, done: Compared) -> None:
    render.table(COLUMNS, starmap(_row, done.items()))
    render.say("", f"bill, in input tokens, {session_id}")
    render.bars([*_bills(done)])


def _bills(done: Compared) -> Iterator[Bar]:
    """Yield the bills as bars, each with its ratio to the first."""
    first, *_ = done.values()
    for text, each in done.items():
        yield text, round(each.bill), _ratio(each, first)


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
    price = _number(name, text)
    if not 0 <= price <= HIGHEST:
        raise InvalidValue(f"--prices {name} is from 0 to {HIGHEST:,}, not {text}")
    return name, price


def _number(name: str, text: str) -> Any:
    """Return the number that a text is, of the type that the price of a name has."""
    number = type(getattr(PRICES, name))
    try:
        return number(text)
    except ValueError:
        raise InvalidValue(f"--prices {name} is a number, not {text!r}") from None


def _simulate_all(
    store: Store,
    session_id: str,
    rules: dict[str, Policy],
    prices: Prices,
    max_tokens: int | None,
) -> Compared:
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


def _row(text: str, each: Simulated) -> Row:
    return (
        text,
        each.requests,
        each.tokens_sent,
        each.tokens_cached,
        each.largest_request,
        round(each.bill),
        each.compactions,
        each.clearings,
    )


def _ratio(each: Simulated, first: Simulated) -> str:
    return f"{each.bill / first.bill:.2f} ×" if first.bill else ""
