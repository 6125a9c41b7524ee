"""The command that replays a session request by request, once for each policy: simulate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, Progress, TaskID

from ..errors import InvalidValue, StoreError
from ..face import Store
from ..policy import Policy
from ..ready import POLICIES
from ..simulation import PROVIDERS, Prices, Simulated, compare
from . import chart, render, tables
from .options import Json, MaxTokens, SessionId, complete_policy, existing, find, policy_of
from .shown import Bar, Column, Row

PRICES = PROVIDERS["anthropic"]
GIVEN = "at the prices given"
HIGHEST = 10**12
"""The most that a price or a lifetime may be: a bill stays a number."""
USUAL = ("raw", *(name for name in POLICIES if name != "raw"))
"""The policies that are compared by default: all ready ones, and sending everything."""
COLUMNS = (
    Column("policy"),
    Column("requests", number=True, spare=4),
    Column("sent", number=True),
    Column("cached", number=True, spare=1),
    Column("largest", number=True, spare=2),
    Column("reuse", number=True, spare=3),
    Column("bill", number=True),
    Column("compacted", number=True),
    Column("cleared", number=True),
)

Told = dict[str, Simulated]
"""The results of a policy by the name of the provider."""
Compared = dict[str, Told]
"""The results of each policy, by the text that named it."""

Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY[,FIELD=VALUE]",
        help="A policy, with fields changed. Can be repeated.",
        show_default="all ready policies",
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
        "`lifetime`: how many ms the cache lives, `least`: the tokens that it holds at least.",
        show_default=f"those of {', '.join(PROVIDERS)}",
    ),
]
Svg = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Draw the tokens of each request to a file."),
]


def simulate(
    ctx: typer.Context,
    session: SessionId,
    policy: Variants = None,
    prices: PriceList = "",
    max_tokens: MaxTokens = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Replay a session by each policy, and compare the bills.

    It is replayed as if live; bills are those of several providers.
    """
    rules = {text: _variant(text) for text in policy or USUAL}
    providers = {GIVEN: _prices(prices)} if prices else PROVIDERS
    if svg and not svg.parent.is_dir():
        raise StoreError(f"there is no folder {str(svg.parent)!r} to write {svg.name} to")
    with existing(ctx) as store:
        found = find(store, session).id
        done = _simulate_all(store, found, rules, providers, max_tokens)
    if svg:
        svg.write_text(chart.picture(_sent(done), found), encoding="utf-8")
    if json:
        render.print_json_list(starmap(_fields, done.items()))
    else:
        _print(found, done)


def _fields(text: str, told: Told) -> dict[str, Any]:
    """Return the result of a policy with the first provider, and the bills of all."""
    bills = {name: each.bill for name, each in told.items()}
    return {**_first(told)._asdict(), "policy": text, "bills": bills}


def _first(told: Told) -> Simulated:
    return next(iter(told.values()))


def _sent(done: Compared) -> chart.Lines:
    """Return the tokens of each request, by policy."""
    return {text: _first(told).sent for text, told in done.items()}


def _print(session_id: str, done: Compared) -> None:
    usual = {text: _first(told) for text, told in done.items()}
    provider = next(iter(next(iter(done.values()))))
    render.table(COLUMNS, starmap(_row, usual.items()))
    render.say("", f"bill in input tokens, {provider}, {session_id}")
    render.bars([*_bills(usual)])
    if len(_first_of(done)) > 1:
        render.say("", "bill by provider, to that of the first policy")
        first = _first_of(done)
        columns = [Column("policy"), *(Column(name, number=True) for name in first)]
        rows = [(text, *map(_ratio, told.values(), first.values())) for text, told in done.items()]
        render.table(columns, rows)
    render.say("", "tokens of each request")
    render.table(
        (Column("policy"), Column("from first to last", wide=True)), chart.rows(_sent(done))
    )


def _first_of(done: Compared) -> Told:
    return next(iter(done.values()))


def _bills(done: dict[str, Simulated]) -> Iterator[Bar]:
    """Yield the bills as bars, each with its ratio to the first."""
    first, *_ = done.values()
    for text, each in done.items():
        yield text, round(each.bill), _ratio(each, first)


def _variant(text: str) -> Policy:
    """Return the policy of POLICY[,FIELD=VALUE …]."""
    name, *changes = re.split(r",(?=\w+=)", text)
    return policy_of(name, changes)


def _prices(text: str) -> Prices:
    """Return the prices of NAME=X[,NAME=X …]; unnamed prices keep their defaults.

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
    providers: Mapping[str, Prices],
    max_tokens: int | None,
) -> Compared:
    head = store.session(session_id).head
    done: Compared = {}
    with tables.progress(MofNCompleteColumn()) as bar:
        for text, policy in rules.items():
            task = bar.add_task(render.one_line(text, 40), total=head)
            tell = partial(_tell, bar, task)
            done[text] = compare(
                store, session_id, policy, providers, max_tokens=max_tokens, progress=tell
            )
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
        "" if each.reuse is None else f"{each.reuse:.3f}",
        round(each.bill),
        each.compactions,
        each.clearings,
    )


def _ratio(each: Simulated, first: Simulated) -> str:
    return f"{each.bill / first.bill:.2f} ×" if first.bill else ""
