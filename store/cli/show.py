"""Commands that show stored messages, and views to send: sessions, show, view."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import typer

from ..errors import InvalidValue
from ..messages import Message, content_text, opaque_fields
from ..records import Entry, Hidden, Replaced, Session, StoredMessage, View
from ..text import format_count
from ..tokens import ESTIMATE
from . import render
from .assembling import explained
from .options import (
    At,
    Fields,
    Json,
    Now,
    PolicyName,
    Provider,
    SessionId,
    ViewFormat,
    existing,
    find,
    listed,
    moment_of,
    policy_of,
    tag_of,
    titled,
)
from .shown import Column, Row, Styled, styled

SESSION_COLUMNS = (
    Column("session", wide=True, id=True),
    Column("messages", number=True),
    Column("last change", spare=1),
    Column("from", id=True, spare=2),
    Column("at", number=True, spare=3),
    Column("title", clip="end"),
)
ENTRY_COLUMNS = (
    Column("#", number=True),
    Column("role", spare=2),
    Column("rule"),
    Column("tokens", number=True),
    Column("saved", number=True, spare=3),
)
REPLACED_COLUMNS = (
    Column("#", number=True),
    Column("tool"),
    Column("rule"),
    Column("tokens", number=True),
    Column("saved", number=True),
    Column("files", clip="start"),
    Column("reason", wide=True, spare=1),
)
SPARED_FIRST = 4
REASON, CONTENT = Column("reason", wide=True), Column("content", clip="end")

NONE = "no sessions; `convostore import` brings some in"
"""The text for a store without sessions."""

NAMED = ("name", "tool_call_id", "messageStatus")
"""The keys of a message that its heading gives."""

Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="How many at most; 0: all.")]
OfOwner = Annotated[
    str | None,
    typer.Option("--owner", metavar="TEXT", help="Those of this owner.", show_default="all"),
]
WithTags = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="Those so tagged.", show_default="all"),
]
Archived = Annotated[bool, typer.Option("--archived", help="Those that are archived instead.")]
ByCreation = Annotated[bool, typer.Option("--created", help="The newest first instead.")]
From = Annotated[int, typer.Option("--from", metavar="N", help="Begin at N; -N: at the Nth last.")]
To = Annotated[
    int | None,
    typer.Option("--to", metavar="N", help="End with position N.", show_default="the head"),
]
Last = Annotated[
    int | None,
    typer.Option(
        "--last", metavar="N", min=1, help="The newest N messages instead.", show_default="all"
    ),
]
Lines = Annotated[int, typer.Option("--lines", metavar="N", min=0, help="Lines each; 0: all.")]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="Say of each message why it is as it is, and the totals."),
]

AsSql = Annotated[
    bool,
    typer.Option("--sql", help="Print it as one SQL statement, which the database's shell runs."),
]


def sessions(
    ctx: typer.Context,
    limit: Limit = 50,
    owner: OfOwner = None,
    where: WithTags = None,
    archived: Archived = False,
    created: ByCreation = False,
    json: Json = False,
) -> None:
    """List the sessions, the last active first."""
    order = "created" if created else "active"
    more = limit + 1 if limit and not json else limit or None
    with existing(ctx) as store:
        tags = dict(map(tag_of, where or ()))
        found = listed(store, more, owner=owner, where=tags, archived=archived, order=order)
        if json:
            render.print_json_list(each._asdict() for each in found)
        else:
            _print_sessions(titled(store, found), limit, all_asked=owner is None and not archived)


def _print_sessions(found: list[Session], limit: int, *, all_asked: bool) -> None:
    """Print sessions, given one more than the limit if there are more."""
    if not found:
        render.say(NONE if all_asked else "no such sessions")
        return
    shown = found[:limit] if limit else found
    render.table(SESSION_COLUMNS, map(_session_row, shown))
    if len(shown) < len(found):
        render.say(f"only the last {limit}; --limit lists more")


def show(
    ctx: typer.Context,
    session: SessionId,
    start: From = 1,
    stop: To = None,
    last: Last = None,
    at: At = None,
    lines: Lines = 0,
    json: Json = False,
) -> None:
    """Print a session's raw messages, as they went in."""
    with existing(ctx) as store:
        found = find(store, session).id
        hidden = store.hidden(found, at)
        if last is None:
            pages = store.pages(found, start, stop, at)
        else:
            pages = iter([store.messages(found, start, stop, at, last=last)])
        stored = (each for page in pages for each in page)
        if json:
            render.print_json_list(_stored_fields(each, hidden.get(each.seq)) for each in stored)
            return
        is_empty = True
        for each in stored:
            _print_stored(each, hidden.get(each.seq), lines)
            is_empty = False
    if is_empty:
        render.remark("no message stands there")


def view(
    ctx: typer.Context,
    session: SessionId,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    explain: Explain = False,
    format: ViewFormat = Provider.openai,  # noqa: A002 - the option's name
    sql: AsSql = False,
    json: Json = False,
) -> None:
    """Show what would be sent to the model, and what is replaced.

    --json prints just the API's messages, or an object where it takes system text beside them.
    """
    if sql and (json or explain or format is not Provider.openai):
        raise InvalidValue("--sql goes without --json, --explain and --format")
    rules, moment = policy_of(policy, fields), moment_of(now)
    with existing(ctx) as store:
        found = find(store, session)
        if sql:
            render.write([store.view_sql(found.id, rules, at=at, now=moment), "\n"])
            return
        built = store.view(found.id, rules, at=at, now=moment, format=format.value)
        hidden = _ranges(store.hidden(built.session_id, built.at)) if explain else []
    if json and explain:
        render.print_json(explained(built, hidden, format))
    elif json:
        render.print_request(built.messages, built.system)
    else:
        _print_view(built, explain=explain)
        render.say(*map(_hiding, hidden))


def replaced(
    ctx: typer.Context,
    session: SessionId,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    json: Json = False,
) -> None:
    """List what a view replaces or shortens, and why."""
    rules, moment = policy_of(policy, fields), moment_of(now)
    with existing(ctx) as store:
        found = store.replaced(find(store, session).id, rules, at=at, now=moment)
    if json:
        render.print_json_list(each._asdict() for each in found)
        return
    saved = sum(each.tokens_saved for each in found)
    if found:
        render.table(REPLACED_COLUMNS, map(_replaced_row, found))
    results = format_count(len(found), "tool result")
    render.say(f"{results} replaced: {saved:,} tokens saved")


def _replaced_row(each: Replaced) -> Row:
    files = render.one_line(", ".join(each.paths))
    tool = render.one_line(each.tool_name or "?")
    rule = styled(each.rule)
    return each.seq, tool, rule, each.tokens, each.tokens_saved, files, each.reason


def _session_row(session: Session) -> Row:
    changed = render.moment(session.updated_at)
    title = render.one_line(session.title or "")
    return session.id, session.head, changed, session.forked_from, session.forked_at, title


class HiddenRange(NamedTuple):
    """Positions of a line that a compaction hides since a moment in ms."""

    compaction: int
    since: int
    first: int
    last: int

    def goes_on(self, position: int, by: Hidden) -> bool:
        """Tell whether a hidden position is the next one of the range."""
        return (self.compaction, self.last + 1) == (by.compaction, position)


def _ranges(hidden: dict[int, Hidden]) -> list[HiddenRange]:
    """Return hidden positions as ranges without gaps, each with its compaction."""
    ranges: list[HiddenRange] = []
    for position, by in sorted(hidden.items()):
        if ranges and ranges[-1].goes_on(position, by):
            ranges[-1] = ranges[-1]._replace(last=position)
        else:
            ranges.append(HiddenRange(by.compaction, by.compacted_at, position, position))
    return ranges


def _hiding(hidden: HiddenRange) -> str:
    count = format_count(hidden.last - hidden.first + 1, "message")
    since = render.moment(hidden.since)
    return f"compaction {hidden.compaction} hides {_where(hidden)}, {count}, since {since}"


def _where(hidden: HiddenRange) -> str:
    if hidden.first == hidden.last:
        return str(hidden.first)
    return f"{hidden.first} to {hidden.last}"


def _stored_fields(stored: StoredMessage, hidden: Hidden | None) -> dict[str, Any]:
    fields = {**stored._asdict(), "digest": stored.digest.hex()}
    if hidden:
        fields["compaction"] = hidden.compaction
        fields["time"] = {"compacted": hidden.compacted_at}
    return fields


def _print_stored(stored: StoredMessage, hidden: Hidden | None, limit: int) -> None:
    """Print a raw message: its heading, then its first lines."""
    from ..formats import taken

    lines = _first(
        [line for row in taken(stored.message, None, 0).rows for line in _row_lines(row)], limit
    )
    said = stored.message
    role = styled(str(said.get("role") or said.get("type")))
    facts = (Styled(f"  {fact}", "dim") for fact in _facts(stored, hidden))
    render.say([Styled(f"#{stored.seq} ", "bold"), role, *facts], *lines, "")


def _facts(stored: StoredMessage, hidden: Hidden | None) -> Iterable[str]:
    message = stored.message
    if isinstance(message.get("timestamp"), int):
        yield render.moment(message["timestamp"])
    yield from (f"{key} {message[key]}" for key in NAMED if message.get(key))
    if hidden:
        since = render.moment(hidden.compacted_at)
        yield f"hidden by compaction {hidden.compaction} since {since}"


def _row_lines(message: Message) -> list[str]:
    said = _said(message.get("content", opaque_fields(message))).splitlines()
    called = (f"→ {call}" for call in _calls_of(message))
    return [*said, *called]


def _calls_of(message: Message) -> list[str]:
    """Return the tool calls of a message as they would be written."""
    calls = message.get("tool_calls")
    return [_call_text(call) for call in calls] if isinstance(calls, list) else []


def _call_text(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "?"
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json_format.dumps(arguments)
    return f"{function.get('name')}({arguments})"


def _said(content: Any) -> str:
    text = content_text(content)
    if not text and content:
        return render.json_text(content)
    return text


def _first(lines: list[str], limit: int) -> list[str]:
    if not limit or len(lines) <= limit:
        return lines
    return [*lines[:limit], f"… {len(lines) - limit} more lines"]


def _print_view(built: View, *, explain: bool) -> None:
    """Print a view as a table, and its totals."""
    # If the columns of texts do not fit, the one that was not asked for is dropped first.
    texts = (
        (REASON, CONTENT._replace(spare=SPARED_FIRST))
        if explain
        else (REASON._replace(spare=SPARED_FIRST), CONTENT)
    )
    columns = (*ENTRY_COLUMNS, *texts)
    rows = [_entry_row(entry, explain=explain) for entry in built.entries]
    render.table(columns, rows)
    stats = built.stats
    raw, sent = stats.raw_tokens, stats.tokens
    less = f" ({1 - sent / raw:.0%} less)" if sent < raw else ""
    messages = format_count(stats.messages, "message")
    if stats.hidden_messages:
        messages += f" and {stats.hidden_messages:,} hidden"
    render.say(f"{messages}: {raw:,} tokens raw, {sent:,} sent{less}; {how_counted(built)}")
    if explain:
        render.say(*_totals_by_rule(built), *_cached(built))


def _entry_row(entry: Entry, *, explain: bool) -> Row:
    return (
        entry.seq if entry.seq is not None else "+",
        styled(str(entry.message["role"])),
        styled(entry.rule),
        entry.tokens,
        entry.tokens_saved or None,
        entry.reason if explain or entry.rule else "",
        _preview(entry.message),
    )


def _preview(message: Message) -> str:
    """Return a message in one line: the first line of its text, otherwise its calls."""
    text = content_text(message.get("content"))
    said = next((line for line in text.splitlines() if line.strip()), "")
    called = ", ".join(_calls_of(message))
    whole = f"{said} → {called}" if called else said
    return render.one_line(whole.strip())


def _totals_by_rule(view: View) -> Iterable[str]:
    saved, replaced = view.stats.saved_by_rule, view.stats.replaced
    for rule in replaced | saved:
        messages = format_count(replaced.get(rule, 0), "message")
        yield f"{rule}: {messages}, {saved.get(rule, 0):,} tokens saved"


def _cached(view: View) -> Iterable[str]:
    """Yield the part of the request that a provider's cache may still hold."""
    changed, unchanged = view.stats.first_changed, view.stats.unchanged_tokens
    same = "all messages are" if changed is None else f"the first {changed - 1} messages are"
    yield f"{same} as stored: so far a cached prompt stays valid"
    if unchanged is not None:
        yield f"{unchanged:,} tokens are as in the last request that `usage` recorded"


def how_counted(view: View) -> str:
    """Return how the tokens of a view were counted."""
    encoding = view.stats.counted_by
    return "estimated" if encoding == ESTIMATE else f"counted by {encoding}"
