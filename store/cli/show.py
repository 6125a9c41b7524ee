"""Commands that show stored messages, and views to send: sessions, show, view."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Iterable
from heapq import merge
from itertools import islice
from operator import attrgetter
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..errors import InvalidValue
from ..records import (
    Entry,
    Hidden,
    Message,
    Session,
    StoredMessage,
    View,
    extract_content_text,
    select_opaque_fields,
)
from ..text import format_count
from . import render
from .options import (
    FieldChanges,
    Json,
    LinePosition,
    MomentText,
    OwnerFilter,
    PolicyName,
    ProviderFormat,
    SessionId,
    ViewFormat,
    fill_titles,
    find_session,
    is_foreign_folder,
    open_existing_store,
    page_sessions,
    parse_moment_option,
    parse_tag,
    resolve_folder,
    resolve_policy,
    shorten_id,
)
from .requests import build_view_fields
from .terminal import CUT_MARK, Column, StyledText, TableRow, style_label

if TYPE_CHECKING:
    from .. import Store

SESSION_COLUMNS = (
    Column("session", wide=True),
    Column("title", clip="end"),
    Column("project", spare=1),
    Column("program", spare=2),
    Column("age"),
    Column("msgs", number=True),
    Column("cost"),
)
WIDE = 200
"""Columns of a line that has room for whole ids."""
PROJECT_LENGTH = 10
"""Code points of a project's name in a list."""
VIEW_ENTRY_COLUMNS = (
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
FIRST_SPARE_RANK = 4
REASON, CONTENT = Column("reason", wide=True), Column("content", clip="end")

NO_SESSIONS_TEXT = "no sessions; `convostore import` brings some in"
"""The text for a store without sessions."""

HEADING_KEYS = ("name", "tool_call_id", "messageStatus")
"""The keys of a message that its heading gives."""

SessionLimit = Annotated[
    int, typer.Option("--limit", "-n", min=0, help="The maximum number; 0: all.")
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="KEY=VALUE", help="Only sessions with this tag.", show_default="all"
    ),
]
ArchivedOption = Annotated[bool, typer.Option("--archived", help="Archived sessions instead.")]
ProjectFilter = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="FOLDER",
        help="Only sessions of projects in this folder or below; `.` is the present one.",
        show_default="all",
    ),
]
SourceFilter = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="KIND",
        help="Only sessions imported from this program, such as codex; '': made here.",
        show_default="all",
    ),
]
ActiveSince = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only if active since: 7d, yesterday, a date."),
]
ActiveUntil = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only if last active before: 7d, a date."),
]
TitleFilter = Annotated[
    str | None,
    typer.Option("--title", metavar="TEXT", help="Only sessions with this in their titles."),
]
ParentsOption = Annotated[bool, typer.Option("--parents", help="Without sessions of subagents.")]
CreationOrder = Annotated[bool, typer.Option("--created", help="The newest first instead.")]
FirstPosition = Annotated[
    int, typer.Option("--from", metavar="N", help="Begin at position N; -N: at the Nth last.")
]
LastPosition = Annotated[
    int | None,
    typer.Option("--to", metavar="N", help="End with position N.", show_default="the head"),
]
NewestCount = Annotated[
    int | None,
    typer.Option(
        "--last", metavar="N", min=1, help="The newest N messages instead.", show_default="all"
    ),
]
LineLimit = Annotated[
    int, typer.Option("--lines", metavar="N", min=0, help="Maximum lines for each message; 0: all.")
]
ExplainOption = Annotated[
    bool,
    typer.Option("--explain", help="Print the reason of each message, and the totals."),
]

SqlOption = Annotated[
    bool,
    typer.Option("--sql", help="Print the view as one SQL statement for the database's shell."),
]


def sessions(
    ctx: typer.Context,
    limit: SessionLimit = 50,
    owner: OwnerFilter = None,
    where: TagFilter = None,
    archived: ArchivedOption = False,
    project: ProjectFilter = None,
    source: SourceFilter = None,
    since: ActiveSince = None,
    until: ActiveUntil = None,
    title: TitleFilter = None,
    parents: ParentsOption = False,
    created: CreationOrder = False,
    json: Json = False,
) -> None:
    """List the sessions, the last active first."""
    more = limit + 1 if limit and not json else limit or None
    chosen = {
        "owner": owner,
        "where": dict(map(parse_tag, where or ())),
        "archived": archived,
        "project": resolve_folder(project),
        "source": source,
        "since": parse_moment_option(since, "--since"),
        "until": parse_moment_option(until, "--until"),
        "title": title,
        "parents": parents,
    }
    with open_existing_store(ctx) as store:
        order = "created" if created else "active"
        found = _list_chosen_sessions(store, more, {**chosen, "order": order})
        if json:
            render.print_json_list(each._asdict() for each in found)
        else:
            listed = fill_titles(store, found)
            shown = listed[:limit] if limit else listed
            if not listed:
                is_asked = any(value not in (None, False, {}) for value in chosen.values())
                render.print_lines("no such sessions" if is_asked else NO_SESSIONS_TEXT)
                return
            rows = [_build_session_row(store, each) for each in shown]
            render.show_table(SESSION_COLUMNS, rows)
            if len(shown) < len(listed):
                render.print_lines(f"only the last {limit}; --limit lists more")


def _list_chosen_sessions(
    store: Store, limit: int | None, chosen: dict[str, Any]
) -> Iterable[Session]:
    """Return sessions in order; those of a folder behind a link by either of its paths."""
    folder = chosen["project"]
    paths = (
        [folder] if is_foreign_folder(folder) else dict.fromkeys((folder, os.path.realpath(folder)))
    )
    pages = [page_sessions(store, limit, **chosen | {"project": path}) for path in paths]
    moment = attrgetter("created_at" if chosen["order"] == "created" else "updated_at")
    found = {each.id: each for each in merge(*pages, key=moment, reverse=True)}
    return islice(found.values(), limit)


def _build_session_row(store: Store, session: Session) -> TableRow:
    costs = [total.cost for total in store.usage_totals(session.id) if total.cost is not None]
    project = PureWindowsPath(session.project_root or "").name  # it takes both kinds of slashes
    short = session.id if render.count_columns() > WIDE else shorten_id(store, session.id)
    is_beginning = short != session.id and session.id.startswith(short)
    return (
        f"{short}{CUT_MARK}" if is_beginning else short,
        render.shorten_to_line(session.title or ""),
        render.shorten_to_line(project, PROJECT_LENGTH),
        session.source,
        render.format_age(session.updated_at),
        session.head,
        f"${sum(costs):,.2f}" if costs else "",
    )


def show(
    ctx: typer.Context,
    session: SessionId,
    start: FirstPosition = 1,
    stop: LastPosition = None,
    last: NewestCount = None,
    at: LinePosition = None,
    lines: LineLimit = 0,
    json: Json = False,
) -> None:
    """Print a session's raw messages, unchanged."""
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        hidden = store.hidden(found, at)
        if last is None:
            pages = store.pages(found, start, stop, at)
        else:
            pages = iter([store.messages(found, start, stop, at, last=last)])
        stored = (each for page in pages for each in page)
        if json:
            render.print_json_list(
                each._asdict()
                | {"digest": each.digest.hex()}
                | (
                    {"compaction": by.compaction, "time": {"compacted": by.compacted_at}}
                    if (by := hidden.get(each.seq))
                    else {}
                )
                for each in stored
            )
            return
        is_empty = True
        for each in stored:
            _print_stored(each, hidden.get(each.seq), lines)
            is_empty = False
    if is_empty:
        render.print_remark("no message stands there")


def view(
    ctx: typer.Context,
    session: SessionId,
    at: LinePosition = None,
    now: MomentText = None,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    explain: ExplainOption = False,
    format: ViewFormat = ProviderFormat.openai,  # noqa: A002 - the option's name
    sql: SqlOption = False,
    json: Json = False,
) -> None:
    """Show the view: the messages for the model, some replaced.

    --json prints only the API's messages, or an object if the API takes system text separately.
    """
    if sql and (json or explain or format is not ProviderFormat.openai):
        raise InvalidValue("--sql cannot be combined with --json, --explain or --format")
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        if sql:
            render.write_lines([store.view_sql(found.id, rules, at=at, now=moment), "\n"])
            return
        built = store.view(found.id, rules, at=at, now=moment, format=format.value)
        hidden = _merge_hidden_ranges(store.hidden(built.session_id, built.at)) if explain else []
    if json and explain:
        render.print_json(build_view_fields(built, hidden, format))
    elif json:
        render.print_request(built.messages, built.system)
    else:
        _print_view_table(built, explain=explain)
        for each in hidden:
            span = str(each.first) if each.first == each.last else f"{each.first} to {each.last}"
            count = format_count(each.last - each.first + 1, "message")
            since = render.format_moment(each.since)
            render.print_lines(f"compaction {each.compaction} hides {span}, {count}, since {since}")


def replaced(
    ctx: typer.Context,
    session: SessionId,
    at: LinePosition = None,
    now: MomentText = None,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    json: Json = False,
) -> None:
    """List the results that a view replaces or shortens, and why."""
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    with open_existing_store(ctx) as store:
        found = store.replaced(find_session(store, session).id, rules, at=at, now=moment)
    if json:
        render.print_json_list(each._asdict() for each in found)
        return
    saved = sum(each.tokens_saved for each in found)
    if found:
        rows: list[TableRow] = []
        for each in found:
            files = render.shorten_to_line(", ".join(each.paths))
            tool, rule = render.shorten_to_line(each.tool_name or "?"), style_label(each.rule)
            counts = each.tokens, each.tokens_saved
            rows.append((each.seq, tool, rule, *counts, files, each.reason))
        render.show_table(REPLACED_COLUMNS, rows)
    results = format_count(len(found), "tool result")
    render.print_lines(f"{results} replaced: {saved:,} tokens saved")


class HiddenPositions(NamedTuple):
    """Positions of a line that a compaction hides since a moment in ms."""

    compaction: int
    since: int
    first: int
    last: int

    def goes_on(self, position: int, by: Hidden) -> bool:
        """Tell whether a hidden position is the next one of the range."""
        return (self.compaction, self.last + 1) == (by.compaction, position)


def _merge_hidden_ranges(hidden: dict[int, Hidden]) -> list[HiddenPositions]:
    """Return hidden positions as ranges without gaps, each with its compaction."""
    ranges: list[HiddenPositions] = []
    for position, by in sorted(hidden.items()):
        if ranges and ranges[-1].goes_on(position, by):
            ranges[-1] = ranges[-1]._replace(last=position)
        else:
            ranges.append(HiddenPositions(by.compaction, by.compacted_at, position, position))
    return ranges


def _print_stored(stored: StoredMessage, hidden: Hidden | None, limit: int) -> None:
    """Print a raw message: its heading, then its first lines."""
    from ..formats import encode_message

    rows = encode_message(stored.message, None, 0).rows
    lines = [line for row in rows for line in _render_row_lines(row)]
    if limit and len(lines) > limit:
        lines = [*lines[:limit], f"… {len(lines) - limit} more lines"]
    said = stored.message
    role = style_label(str(said.get("role") or said.get("type")))
    facts = (StyledText(f"  {fact}", "dim") for fact in _list_message_facts(stored, hidden))
    render.print_lines([StyledText(f"#{stored.seq} ", "bold"), role, *facts], *lines, "")


def _list_message_facts(stored: StoredMessage, hidden: Hidden | None) -> Iterable[str]:
    message = stored.message
    if isinstance(message.get("timestamp"), int):
        yield render.format_moment(message["timestamp"])
    yield from (f"{key} {message[key]}" for key in HEADING_KEYS if message.get(key))
    if hidden:
        since = render.format_moment(hidden.compacted_at)
        yield f"hidden by compaction {hidden.compaction} since {since}"


def _render_row_lines(message: Message) -> list[str]:
    content = message.get("content", select_opaque_fields(message))
    text = extract_content_text(content)
    said = (render.format_json(content) if content and not text else text).splitlines()
    called = (f"→ {call}" for call in _render_tool_calls(message))
    return [*said, *called]


def _render_tool_calls(message: Message) -> list[str]:
    """Return the tool calls of a message as they would be written."""
    calls = message.get("tool_calls")
    return [_render_call_text(call) for call in calls] if isinstance(calls, list) else []


def _render_call_text(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "?"
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json_format.dumps(arguments)
    return f"{function.get('name')}({arguments})"


def _print_view_table(built: View, *, explain: bool) -> None:
    """Print a view as a table, and its totals."""
    # If the columns of texts do not fit, the one that was not asked for is dropped first.
    texts = (
        (REASON, CONTENT._replace(spare=FIRST_SPARE_RANK))
        if explain
        else (REASON._replace(spare=FIRST_SPARE_RANK), CONTENT)
    )
    columns = (*VIEW_ENTRY_COLUMNS, *texts)
    rows = [_build_entry_row(entry, explain=explain) for entry in built.entries]
    render.show_table(columns, rows)
    stats = built.stats
    raw, sent = stats.raw_tokens, stats.tokens
    less = f" ({1 - sent / raw:.0%} less)" if sent < raw else ""
    messages = format_count(stats.messages, "message")
    if stats.hidden_messages:
        messages += f" and {stats.hidden_messages:,} hidden"
    render.print_lines(
        f"{messages}: {raw:,} tokens raw, {sent:,} sent{less}; {render.describe_counting(built)}"
    )
    if explain:
        for rule in stats.replaced | stats.saved_by_rule:
            messages = format_count(stats.replaced.get(rule, 0), "message")
            saved = stats.saved_by_rule.get(rule, 0)
            render.print_lines(f"{rule}: {messages}, {saved:,} tokens saved")
        render.print_lines(*_describe_cached_part(built))


def _build_entry_row(entry: Entry, *, explain: bool) -> TableRow:
    return (
        entry.seq if entry.seq is not None else "+",
        style_label(str(entry.message["role"])),
        style_label(entry.rule),
        entry.tokens,
        entry.tokens_saved or None,
        entry.reason if explain or entry.rule else "",
        _preview_message(entry.message),
    )


def _preview_message(message: Message) -> str:
    """Return a message in one line: the first line of its text, otherwise its calls."""
    text = extract_content_text(message.get("content"))
    said = next((line for line in text.splitlines() if line.strip()), "")
    called = ", ".join(_render_tool_calls(message))
    whole = f"{said} → {called}" if called else said
    return render.shorten_to_line(whole.strip())


def _describe_cached_part(view: View) -> Iterable[str]:
    """Yield the part of the request that a provider's cache may still hold."""
    changed, unchanged = view.stats.first_changed, view.stats.unchanged_tokens
    same = "all messages are" if changed is None else f"the first {changed - 1} messages are"
    yield f"{same} as stored: so far a cached prompt stays valid"
    if unchanged is not None:
        yield f"{unchanged:,} tokens are as in the last request that `usage` recorded"
