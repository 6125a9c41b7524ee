"""Commands that count: stats, tokens."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from ..records import View
from ..statistics import FileUse, Statistics, ToolUse, statistics
from ..store import reads
from ..tokens import ESTIMATE, VOCABULARIES, fetch
from . import render
from .looking import how_counted, raw_tokens
from .options import Fields, Json, Now, PolicyName, SessionId, existing, find, moment_of, policy_of

statistics_of = reads(statistics)


def stats(
    ctx: typer.Context,
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="A session.", show_default="the whole store")
    ] = None,
    files: Annotated[int, typer.Option("--files", metavar="N", min=0, help="How many files to list.")] = 15,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    json: Json = False,
) -> None:
    """Show where the tokens go: by role, rule, tool and file."""
    rules = policy_of(policy, fields)
    with existing(ctx) as store:
        if session is None:
            counts, built = statistics_of(store, None, files=files), None
        else:
            built = store.view(find(store, session).id, rules, now=moment_of(now))
            counts = statistics_of(store, built.session_id, encoding=built.stats.counted_by, files=files)
    if json:
        render.print_json(_as_json(counts, built))
    else:
        _print(counts, built)


def tokens(
    ctx: typer.Context,
    session: SessionId,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding", metavar="NAME", help=f"An encoding: {', '.join(VOCABULARIES)}.", show_default="o200k_base"
        ),
    ] = None,
    fetched: Annotated[
        bool, typer.Option("--fetch", help="Fetch the encoding's vocabulary from the network first.")
    ] = False,
    json: Json = False,
) -> None:
    """Count a session's tokens, exactly where a vocabulary is at hand, and keep the counts."""
    with existing(ctx) as store:
        found = find(store, session).id
        if fetched:
            fetch(encoding)
        total = store.count_tokens(found, encoding)
    if json:
        render.print_json({"session": found, **total._asdict()})
        return
    how = "estimated: no vocabulary is at hand, --fetch gets one" if total.encoding == ESTIMATE else total.encoding
    newly = f", {total.counted} newly counted" if total.counted else ""
    render.say(f"{found}: {total.tokens:,} tokens in {render.counted(total.messages, 'message')}{newly} ({how})")


def _as_json(counts: Statistics, built: View | None) -> dict[str, object]:
    answer: dict[str, object] = {
        **counts._asdict(),
        "tools": [each._asdict() for each in counts.tools],
        "files": [each._asdict() for each in counts.files],
    }
    return answer if built is None else {"session": built.session_id, **answer, "view": built.stats._asdict()}


def _print(counts: Statistics, built: View | None) -> None:
    spoken = f"{render.counted(counts.messages, 'message')}, {render.counted(counts.tool_calls, 'tool call')}"
    if built is None:
        render.say(f"{render.counted(counts.sessions, 'session')}, {spoken}")
    else:
        raw, sent, saved = raw_tokens(built), built.stats.tokens, built.stats.saved_by_rule
        render.say(f"{built.session_id}: {spoken}")
        _section("tokens, raw and sent", [("raw", raw, ""), ("sent", sent, how_counted(built))])
        _section("raw tokens by role", _roles(built))
        _section("saved by rule", [(rule, tokens, _times(built, rule)) for rule, tokens in saved.items()])
    _section("tokens of results by tool", [(each.name or "?", each.tokens, _use(each)) for each in counts.tools])
    _section("tokens of results by file", [(each.path, each.tokens, _uses(each)) for each in counts.files])


def _section(title: str, rows: list[tuple[str, int, str]]) -> None:
    if rows:
        render.say("", title)
        render.bars(rows)


def _roles(built: View) -> list[tuple[str, int, str]]:
    tokens: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for entry in built.entries:
        if entry.seq is None:
            continue
        role = str(entry.message["role"])
        tokens[role] += entry.tokens + entry.tokens_saved
        messages[role] += 1
    return [(role, count, render.counted(messages[role], "message")) for role, count in tokens.most_common()]


def _times(built: View, rule: str) -> str:
    return render.counted(built.stats.replaced.get(rule, 0), "message")


def _use(tool: ToolUse) -> str:
    failed = f", {tool.failed} failed" if tool.failed else ""
    return f"{render.counted(tool.results, 'result')}{failed} ({tool.kind})"


def _uses(file: FileUse) -> str:
    others = file.results - file.reads - file.edits
    uses = ((file.reads, "read"), (file.edits, "edit"), (others, "other"))
    return ", ".join(render.counted(number, noun) for number, noun in uses if number)
