"""Commands that count tokens and cost: stats, tokens, usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import Store, load_prices
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
from .terminal import Bar

SUMMED_FIELDS = ("requests", "input", "cached", "output")
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
        raw = ("raw", stats.raw_tokens, "")
        sent = ("sent", stats.tokens, render.describe_counting(built))
        by_rule = stats.saved_by_rule.items()
        saved = [
            (rule, tokens, format_count(built.stats.replaced.get(rule, 0), "message"))
            for rule, tokens in by_rule
        ]
        _print_section("tokens, raw and sent", [raw, sent])
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
        help="From this time on, in the form of --now.",
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
