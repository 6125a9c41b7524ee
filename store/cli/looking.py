"""Commands that show what is stored, and what would be sent: sessions, show, view."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer
from rich.text import Text

from ..messages import content_text
from ..records import Entry, Hidden, Session, StoredMessage, View
from ..tokens import ESTIMATE
from . import render
from .options import At, Fields, Json, Now, PolicyName, SessionId, every_session, existing, find, moment_of, policy_of
from .render import Cell, Column

SESSION_COLUMNS = (
    Column("session", wide=True),
    Column("messages", number=True),
    Column("last change"),
    Column("from", wide=True),
    Column("title", wide=True),
)
ENTRY_COLUMNS = (
    Column("#", number=True),
    Column("role"),
    Column("rule"),
    Column("tokens", number=True),
    Column("saved", number=True),
    Column("reason", wide=True),
    Column("content", wide=True),
)


def sessions(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many to list, at most.")] = 50,
    json: Json = False,
) -> None:
    """List the sessions, the last active first."""
    with existing(ctx) as store:
        if json:
            render.print_json_list(each._asdict() for each in every_session(store, limit))
            return
        found = list(every_session(store, limit + 1))
    if not found:
        render.say("no sessions; `convostore import` brings some in")
        return
    render.table(SESSION_COLUMNS, map(_session_row, found[:limit]))
    if len(found) > limit:
        render.say(f"only the last {limit}; --limit lists more")


def show(
    ctx: typer.Context,
    session: SessionId,
    start: Annotated[int, typer.Option("--from", metavar="N", help="Begin at position N; -N: with the newest N.")] = 1,
    stop: Annotated[
        int | None, typer.Option("--to", metavar="N", help="End with position N.", show_default="the head")
    ] = None,
    at: At = None,
    lines: Annotated[int, typer.Option("--lines", metavar="N", min=0, help="Lines a message, at most; 0: all.")] = 0,
    json: Json = False,
) -> None:
    """Print a session's raw messages, as they went in."""
    with existing(ctx) as store:
        found = find(store, session).id
        hidden = store.hidden(found, at)
        stored = (each for page in store.pages(found, start, stop, at) for each in page)
        if json:
            render.print_json_list(_stored_fields(each, hidden.get(each.seq)) for each in stored)
            return
        for each in stored:
            _print_message(each, hidden.get(each.seq), lines)


def view(
    ctx: typer.Context,
    session: SessionId,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each message why it is as it is, and the totals.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what would be sent to the model, and what the rules replaced; --json prints just the API's messages."""
    with existing(ctx) as store:
        built = store.view(find(store, session).id, policy_of(policy, fields), at=at, now=moment_of(now))
        hidden = _ranges(store.hidden(built.session_id, built.at)) if explain else []
    if json and not explain:
        render.print_json_list(built.messages)
    elif json:
        entries = [{**entry._asdict(), "sent": sent} for entry, sent in zip(built.entries, built.messages, strict=True)]
        facts = {**built.stats._asdict(), "hidden": [each._asdict() for each in hidden]}
        render.print_json({"session": built.session_id, "at": built.at, **facts, "entries": entries})
    else:
        render.table(ENTRY_COLUMNS, [_entry_row(entry, explain=explain) for entry in built.entries])
        render.say(*_totals(built, explain=explain), *map(_hiding, hidden))


def _session_row(session: Session) -> tuple[Cell, ...]:
    origin = f"{session.forked_from} @{session.forked_at}" if session.forked_from else ""
    return session.id, session.head, render.moment(session.updated_at), origin, render.one_line(session.title or "")


class HiddenRange(NamedTuple):
    """Positions of a line that a compaction hides since a moment in ms."""

    compaction: int
    since: int
    first: int
    last: int


def _ranges(hidden: dict[int, Hidden]) -> list[HiddenRange]:
    """Return hidden positions as ranges without gaps, each with its compaction."""
    ranges: list[HiddenRange] = []
    for position, by in sorted(hidden.items()):
        if ranges and (ranges[-1].compaction, ranges[-1].last) == (by.compaction, position - 1):
            ranges[-1] = ranges[-1]._replace(last=position)
        else:
            ranges.append(HiddenRange(by.compaction, by.compacted_at, position, position))
    return ranges


def _hiding(hidden: HiddenRange) -> str:
    where = f"{hidden.first} to {hidden.last}" if hidden.first < hidden.last else str(hidden.first)
    count = render.counted(hidden.last - hidden.first + 1, "message")
    return f"compaction {hidden.compaction} hides {where}, {count}, since {render.moment(hidden.since)}"


def _stored_fields(stored: StoredMessage, hidden: Hidden | None) -> dict[str, Any]:
    compacted = {"compaction": hidden.compaction, "time": {"compacted": hidden.compacted_at}} if hidden else {}
    return {**stored._asdict(), "digest": stored.digest.hex(), **compacted}


def _print_message(stored: StoredMessage, hidden: Hidden | None, limit: int) -> None:
    """Print one raw message: its position, what it is, what it says, what it calls, and whether views hide it."""
    message = stored.message
    facts = [render.moment(message["timestamp"]) if isinstance(message.get("timestamp"), int) else ""]
    facts += [f"{key} {message[key]}" for key in ("name", "tool_call_id", "messageStatus") if message.get(key)]
    head = Text.assemble((f"#{stored.seq} ", "bold"), render.styled(render.safe(str(message["role"]))))
    if hidden:
        facts.append(f"hidden by compaction {hidden.compaction} since {render.moment(hidden.compacted_at)}")
    head.append(render.safe("".join(f"  {fact}" for fact in facts if fact)), "dim")
    text = content_text(message.get("content"))
    if not text and message.get("content"):
        text = render.json_text(message["content"])
    calls = message.get("tool_calls")
    called = [f"→ {render.call_text(call)}" for call in calls] if isinstance(calls, list) else []
    render.say(head, *_cut([*text.splitlines(), *called], limit), "")


def _cut(lines: list[str], limit: int) -> list[str]:
    if not limit or len(lines) <= limit:
        return lines
    return [*lines[:limit], f"… {len(lines) - limit} more lines"]


def _entry_row(entry: Entry, *, explain: bool) -> tuple[Cell, ...]:
    return (
        entry.seq if entry.seq is not None else "+",
        render.styled(str(entry.message["role"])),
        render.styled(entry.rule),
        entry.tokens,
        entry.tokens_saved or None,
        entry.reason if explain or entry.rule else "",
        render.preview(entry.message),
    )


def _totals(view: View, *, explain: bool) -> list[str]:
    stats, raw = view.stats, raw_tokens(view)
    less = f" ({1 - stats.tokens / raw:.0%} less)" if stats.tokens < raw else ""
    sent = f"{raw:,} tokens raw, {stats.tokens:,} sent{less}; {how_counted(view)}"
    lines = [f"{render.counted(stats.messages, 'message')}: {sent}"]
    if explain:
        saved = stats.saved_by_rule
        lines += [
            f"{rule}: {render.counted(count, 'message')}, {saved.get(rule, 0):,} tokens saved"
            for rule, count in stats.replaced.items()
        ]
        changed = stats.first_changed
        same = "all messages are" if changed is None else f"the first {changed - 1} messages are"
        lines.append(f"{same} as stored: so far a cached prompt stays valid")
        if stats.unchanged_tokens is not None:
            lines.append(f"{stats.unchanged_tokens:,} tokens are as in the last request that `usage` recorded")
    return lines


def raw_tokens(view: View) -> int:
    """Return the tokens of a view's messages before any of them was replaced."""
    return sum(entry.tokens + entry.tokens_saved for entry in view.entries if entry.seq is not None)


def how_counted(view: View) -> str:
    """Return how the tokens of a view were counted."""
    return "estimated" if view.stats.counted_by == ESTIMATE else f"counted by {view.stats.counted_by}"
