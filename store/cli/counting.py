"""Commands that count: stats, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated, Any

import typer

from ..inspection import Statistics, statistics
from ..records import TokenTotal, View
from ..text import format_count
from ..tokens import DEFAULT_ENCODING, ENCODINGS, ESTIMATE_NAME, fetch
from . import render
from .options import (
    FieldChanges,
    Json,
    MomentText,
    PolicyName,
    SessionId,
    complete_session,
    find_session,
    open_existing_store,
    parse_moment_option,
    resolve_policy,
)
from .show import describe_counting
from .shown import Bar


def complete_encoding(incomplete: str) -> list[str]:
    """Return the names of encodings that begin so, for a shell."""
    return [name for name in ENCODINGS if name.startswith(incomplete)]


SessionOrStore = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session.",
        show_default="the whole store",
        autocompletion=complete_session,
    ),
]
FileCount = Annotated[
    int,
    typer.Option("--files", metavar="N", min=0, help="How many files to list."),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help=f"What counts: {', '.join(ENCODINGS)}.",
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
    """Show where the tokens go: by role, rule, tool and file."""
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

    They are exact where a vocabulary is at hand.
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
        sent = ("sent", stats.tokens, describe_counting(built))
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
