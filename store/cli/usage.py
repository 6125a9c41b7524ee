"""Commands that count tokens and cost: stats, tokens, usage, prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import ModelPrice, Store, load_prices
from ..errors import InvalidValue
from ..inspection import Statistics, statistics
from ..records import TokenTotal, Usage, UsageTotal, View
from ..text import format_count
from ..tokens import DEFAULT_ENCODING, ENCODINGS, ESTIMATE_NAME, fetch
from . import render
from .options import (
    FieldChanges,
    Json,
    MomentText,
    OwnerFilter,
    PolicyName,
    SessionId,
    SessionOrStore,
    find_session,
    open_existing_store,
    parse_moment_option,
    resolve_policy,
)
from .terminal import Bar, Cell, Column, TableRow

CLIPPED_KEYS = "owner model session project"
"""Keys with long names; the last of these gives way where a line is to hold a row."""
USAGE_COLUMNS = (Column("tokens", number=True), Column("cost"))
UNKNOWN_NAME = "?"
"""The text for a model or an owner that is unknown."""
MISSING_USAGE_TEXT = "a usage is recorded of a SESSION, with both --input and --output"


def complete_encoding(incomplete: str) -> list[str]:
    """Return the names of encodings that begin so, for a shell."""
    return [name for name in ENCODINGS if name.startswith(incomplete)]


FileCount = Annotated[
    int,
    typer.Option("--files", metavar="N", min=0, help="The number of files to list."),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help=f"The encoding: {', '.join(ENCODINGS)}.",
        show_default=DEFAULT_ENCODING,
        autocompletion=complete_encoding,
    ),
]
FetchOption = Annotated[
    bool,
    typer.Option("--fetch", help="Fetch the encoding's vocabulary from the network first."),
]


def stats(
    ctx: typer.Context,
    session: SessionOrStore = None,
    files: FileCount = 15,
    now: MomentText = None,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    json: Json = False,
) -> None:
    """Show the tokens by role, rule, tool and file."""
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    built = None
    with open_existing_store(ctx) as store:
        if session is not None:
            built = store.view(find_session(store, session).id, rules, now=moment)
        if built is None:
            counts = store.database.read(partial(statistics, files=files, policy=rules))
        else:
            encoding = built.stats.counted_by
            count = partial(
                statistics,
                session_id=built.session_id,
                encoding=encoding,
                files=files,
                policy=rules,
            )
            counts = store.database.read(count)
    if json:
        render.print_json(_build_stats_answer(counts, built))
    else:
        _print_statistics(counts, built)


def tokens(
    ctx: typer.Context,
    session: SessionId,
    encoding: EncodingName = None,
    fetched: FetchOption = False,
    json: Json = False,
) -> None:
    """Count a session's tokens, and keep the counts.

    They are exact if a vocabulary is available.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        if fetched:
            fetch(encoding)
        total = store.count_tokens(found, encoding)
    answer = {"session": found, **total._asdict()}
    render.print_answer(answer, f"{found}: {_describe_token_total(total)}", json=json)


def _describe_token_total(total: TokenTotal) -> str:
    how = total.encoding
    if how == ESTIMATE_NAME:
        how = "estimated: no vocabulary is at hand, --fetch gets one"
    newly = f", {total.counted} newly counted" if total.counted else ""
    messages = format_count(total.messages, "message")
    return f"{total.tokens:,} tokens in {messages}{newly} ({how})"


def _build_stats_answer(counts: Statistics, built: View | None) -> dict[str, Any]:
    answer = {
        **counts._asdict(),
        "tools": [each._asdict() for each in counts.tools],
        "files": [each._asdict() for each in counts.files],
    }
    if built is None:
        return answer
    return {"session": built.session_id, **answer, "view": built.stats._asdict()}


def _print_statistics(counts: Statistics, built: View | None) -> None:
    messages = format_count(counts.messages, "message")
    spoken = f"{messages}, {format_count(counts.tool_calls, 'tool call')}"
    if built is None:
        render.print_lines(f"{format_count(counts.sessions, 'session')}, {spoken}")
    else:
        render.print_lines(f"{built.session_id}: {spoken}")
        stats = built.stats
        sizes = [
            ("raw", stats.raw_tokens, ""),
            ("sent", stats.tokens, render.describe_counting(built)),
        ]
        saved = [
            (rule, tokens, format_count(stats.replaced.get(rule, 0), "message"))
            for rule, tokens in stats.saved_by_rule.items()
        ]
        _print_section("tokens, raw and sent", sizes)
        _print_section("visible tokens by role, before the rules", _build_role_bars(built))
        _print_section("saved by rule", saved)
    _print_section("tokens of results by tool", _build_tool_bars(counts))
    _print_section("tokens of results by file", _build_file_bars(counts))


def _build_tool_bars(counts: Statistics) -> Iterator[Bar]:
    for each in counts.tools:
        failed = f", {each.failed} failed" if each.failed else ""
        yield (
            each.name or "?",
            each.tokens,
            (f"{format_count(each.results, 'result')}{failed} ({each.kind})"),
        )


def _build_file_bars(counts: Statistics) -> Iterator[Bar]:
    for each in counts.files:
        others = each.results - each.reads - each.edits
        uses = {"read": each.reads, "edit": each.edits, "other": others}
        told = (format_count(number, noun) for noun, number in uses.items() if number)
        yield each.path, each.tokens, ", ".join(told)


def _print_section(title: str, amounts: Iterable[Bar]) -> None:
    """Print amounts below a title; nothing where there are none."""
    if bars := [*amounts]:
        render.print_lines("", title)
        render.show_bars(bars)


def _build_role_bars(built: View) -> list[Bar]:
    tokens: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for entry in built.entries:
        if entry.seq is None:
            continue
        role = str(entry.message["role"])
        tokens[role] += entry.tokens + entry.tokens_saved
        messages[role] += 1
    return [
        (role, count, format_count(messages[role], "message"))
        for role, count in tokens.most_common()
    ]


class UsageKey(StrEnum):
    """The keys by which usages are summed up."""

    model = "model"
    session = "session"
    owner = "owner"
    project = "project"
    source = "source"
    day = "day"
    week = "week"
    month = "month"


UsageKeyOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="WHAT",
        help="Add up by model, session, owner, project, source (the program), day, week or month;"
        " several, as in month,project: by each combination.",
        show_default="model",
        autocompletion=lambda: list(UsageKey),
    ),
]
ZoneName = Annotated[
    str,
    typer.Option(
        "--zone", metavar="NAME", help="The time zone of days, weeks and months: Europe/Berlin."
    ),
]
UsageStart = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From this time on: 7d, yesterday, a date, ISO, ms.",
        show_default="the first",
    ),
]
UsageEnd = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Before this time.", show_default="the last"),
]
PriceFile = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        envvar="CONVOSTORE_PRICES",
        show_envvar=False,
        help="A TOML file with your own prices, which take precedence over the known ones; else the"
        " file in $CONVOSTORE_PRICES.",
        show_default="none",
    ),
]
InputTokens = Annotated[
    int | None,
    typer.Option(
        "--input",
        metavar="N",
        min=0,
        help="Record a request instead: its tokens, including cached ones.",
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
        "--cached",
        metavar="N",
        min=0,
        help="Those of the request's tokens that were read from the cache.",
    ),
]
WrittenTokens = Annotated[
    int,
    typer.Option(
        "--written",
        metavar="N",
        min=0,
        help="Those of the request's tokens that were written to it.",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="The model of the answer.", show_default="none"),
]
ProviderName = Annotated[
    str | None,
    typer.Option(
        "--provider", metavar="NAME", help="The provider of the model.", show_default="none"
    ),
]
RequestCost = Annotated[
    float | None,
    typer.Option(
        "--cost",
        metavar="USD",
        min=0,
        help="The billed amount, in US dollars.",
        show_default="by the prices",
    ),
]


def usage(
    ctx: typer.Context,
    session: SessionOrStore = None,
    by: UsageKeyOptions = None,
    owner: OwnerFilter = None,
    since: UsageStart = None,
    until: UsageEnd = None,
    zone: ZoneName = "UTC",
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
    """Show the cost of requests, or record it.

    With --input and --output it records the cost of a session's last request, for later checks.
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
        if any((tokens | told).values()):
            raise InvalidValue(MISSING_USAGE_TEXT)
        add_up = partial(
            store.usage_totals,
            found,
            owner=owner,
            since=parse_moment_option(since, "--since"),
            until=parse_moment_option(until, "--until"),
            prices=prices,
        )
        _show_usage_totals(add_up, _parse_usage_keys(by or ["model"]), zone, found, json=json)


def _parse_usage_keys(given: list[str]) -> list[str]:
    """Return the keys in options, each of which may list several. Raises InvalidValue."""
    keys = [key.strip() for each in given for key in each.split(",")]
    for key in keys:
        if key not in [*UsageKey]:
            raise InvalidValue(f"--by takes {', '.join(UsageKey)}, not {key!r}")
    return list(dict.fromkeys(keys))


def _record_usage(store: Store, session_id: str | None, **values: Any) -> Usage:
    """Record a usage. Raises InvalidValue if a required value is missing."""
    if session_id is None or values["output"] is None:
        raise InvalidValue(MISSING_USAGE_TEXT)
    return store.record_usage(session_id, **values)


def _describe_usage(kept: Usage) -> str:
    amounts = f"{kept.input:,} in, {kept.output:,} out, {kept.cached:,} cached"
    return f"{kept.session_id}: {amounts} at position {kept.seq}"


def _show_usage_totals(
    add_up: Callable[..., list[UsageTotal]],
    keys: list[str],
    zone: str,
    session_id: str | None,
    *,
    json: bool,
) -> None:
    """Print totals by some keys, and the models that have no price."""
    totals = add_up(by=keys if len(keys) > 1 else keys[0], zone=zone)
    if json:
        render.print_json_list(each._asdict() for each in totals)
        return
    if not totals:
        render.print_lines("no usage is recorded for that; `record_usage` and imports record some")
        return
    beginning = f"{session_id}: " if session_id else ""
    render.print_lines(f"{beginning}{_describe_usage_totals(totals)}")
    if len(keys) > 1:
        clipped = max(keys, key=CLIPPED_KEYS.find)
        columns = [Column(key, clip="start" if key == clipped else "") for key in keys]
        render.show_table([*columns, *USAGE_COLUMNS], map(_build_total_row, totals))
    else:
        render.show_bars([*_build_usage_bars(totals)])
    render.print_lines(f"at the prices of {load_prices().as_of}, where no cost was recorded")
    if any(each.unpriced for each in totals):
        unpriced = ", ".join(_join_total_name(each) for each in add_up(by="model") if each.unpriced)
        render.print_lines(
            f"no price is known for {unpriced}: store some with `convostore prices FILE`"
        )


def _join_total_name(total: UsageTotal) -> str:
    """Return the name of a total, its parts in a row."""
    parts = total.name if isinstance(total.name, tuple) else (total.name,)
    return ", ".join(part or UNKNOWN_NAME for part in parts)


def _build_total_row(total: UsageTotal) -> TableRow:
    """Return a total by several keys, each in a column."""
    keys = (part or UNKNOWN_NAME for part in total.name or ())
    return *keys, total.input + total.output, render.format_costs([total])


def _describe_usage_totals(totals: list[UsageTotal]) -> str:
    """Return totals in one line."""
    requests = format_count(sum(each.requests for each in totals), "request")
    return f"{requests}, {render.describe_token_sums(totals)}, {render.format_costs(totals)}"


def _build_usage_bars(totals: list[UsageTotal]) -> Iterator[Bar]:
    for each in totals:
        yield _join_total_name(each), each.input + each.output, render.format_costs([each])


PriceSource = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="A TOML file with prices to store.",
        show_default="the stored prices are listed",
    ),
]
PriceListing = Annotated[
    bool, typer.Option("--list", help="List the stored prices, also after storing some.")
]
PriceOwner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="TEXT",
        help="The owner whose usages have these prices.",
        show_default="everybody",
    ),
]
PRICE_COLUMNS = (
    Column("model", wide=True),
    Column("owner", wide=True, spare=1),
    Column("from", spare=2),
    *(Column(name, number=True) for name in ("input", "cached", "written", "output")),
)


def prices(
    ctx: typer.Context,
    file: PriceSource = None,
    listed: PriceListing = False,
    owner: PriceOwner = None,
    json: Json = False,
) -> None:
    """Store the prices of models from a file, or list them."""
    with open_existing_store(ctx) as store:
        rows = store.prices(owner) if file is None else store.set_prices(file, owner=owner)
        if file is not None and listed:
            rows = store.prices(owner)
    if json:
        render.print_json_list(each._asdict() for each in rows)
    elif file is not None and not listed:
        render.print_lines(f"{format_count(len(rows), 'price')} stored")
    else:
        render.show_table(PRICE_COLUMNS, [*map(_list_price_cells, rows)])
        render.print_lines("US dollars per million tokens")


def _list_price_cells(price: ModelPrice) -> list[Cell]:
    day = render.format_moment(price.valid_from)[:10] if price.valid_from else ""
    amounts = (price.input, price.cached, price.written, price.output)
    texts = ("-" if each is None else f"{each:g}" for each in amounts)
    return [price.model, price.owner, day, *texts]
