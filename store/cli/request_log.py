"""The commands for recorded requests: their list, and one with what differs from the one before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import render
from .options import Json, SessionId, find_session, open_existing_store
from .terminal import Column, TableRow

if TYPE_CHECKING:
    from ..records import Request, RequestSummary, View

REQUEST_COLUMNS = (
    Column("request", number=True),
    Column("at"),
    Column("kind", spare=3),
    Column("policy"),
    Column("position", number=True, spare=2),
    Column("tokens", number=True),
    Column("as before", number=True, spare=1),
    Column("input", number=True),
    Column("cached", number=True),
    Column("cost", number=True),
)
SENT_COLUMNS = (
    Column("position", number=True),
    Column("role"),
    Column("rule"),
    Column("tokens", number=True),
    Column("saved", number=True),
    Column("why"),
)
LAYER_TOKENS_COLUMNS = (Column("layer"), Column("tokens", number=True))

RequestNumber = Annotated[
    int, typer.Argument(metavar="N", help="The number of the request, from 1.", show_default=False)
]


def requests(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """List the recorded requests of a session.

    A session without any has a request for each of its usages, which is made anew.
    """
    with open_existing_store(ctx) as store:
        found = store.requests(find_session(store, session).id)
    if json:
        render.print_json_list(map(_build_request_fields, found))
    elif found:
        render.show_table(REQUEST_COLUMNS, [*map(_build_request_row, found)])
        if not found[0].recorded:
            render.print_remark("none was recorded: these are made anew of the usages")
    else:
        render.print_remark("no request was recorded: `context(…, record=True)` records one")


def request(
    ctx: typer.Context,
    session: SessionId,
    number: RequestNumber,
    json: Json = False,
) -> None:
    """Show a recorded request, and what differs from the one before.

    Each message as it was sent: its position, the rule that replaced it, and why; the tokens of the
    layers; what the cache kept. With --json everything, messages included.
    """
    with open_existing_store(ctx) as store:
        session_id = find_session(store, session).id
        found = store.request(session_id, number)
        before = store.request(session_id, number - 1) if number > 1 else None
    if json:
        render.print_json(_build_whole_request(found, before))
        return
    render.show_table(SENT_COLUMNS, [*_list_sent_rows(found.view)])
    layers = [(name, tokens) for name, tokens in found.layers.items() if tokens]
    render.show_table(LAYER_TOKENS_COLUMNS, [*layers, ("together", found.tokens)])
    render.print_lines(*_describe_request(found), *_describe_change(found, before))
    for each in found.missing:
        render.print_problem(f"missing: {each}")


def _build_request_row(told: RequestSummary) -> TableRow:
    usage, at = told.usage, render.format_moment(told.at)
    spent = (usage.input, usage.cached, usage.cost) if usage else (None, None, None)
    cost = "" if spent[2] is None else f"{spent[2]:.4f}"
    what = (told.number, at, told.kind, told.policy, told.seq)
    return (*what, told.tokens, told.unchanged_tokens, *spent[:2], cost)


def _build_request_fields(told: RequestSummary | Request) -> dict[str, Any]:
    """Return a request as JSON: its digest in hexadecimal digits."""
    digest = None if told.digest is None else told.digest.hex()
    usage = None if told.usage is None else told.usage._asdict()
    return {**told._asdict(), "digest": digest, "usage": usage}


def _build_whole_request(found: Request, before: Request | None) -> dict[str, Any]:
    fields = _build_request_fields(found)
    view = fields.pop("view")
    entries = view.entries if view else []
    return {
        **fields,
        "entries": [entry._asdict() for entry in entries],
        "same_messages": _count_same_messages(found, before),
    }


def _list_sent_rows(view: View | None) -> Iterator[TableRow]:
    for entry in view.entries if view else ():
        role, saved = str(entry.message["role"]), entry.tokens_saved or None
        yield entry.seq, role, entry.rule or "", entry.tokens, saved, entry.reason


def _describe_request(found: Request) -> Iterator[str]:
    """Yield the origin of a request, and its cost."""
    how = "" if found.recorded else ", made anew"
    at = render.format_moment(found.at)
    yield f"{found.kind} by {found.policy.get('name')} as {found.format}, {at}{how}"
    if found.compactions:
        yield f"compactions in force: {', '.join(map(str, found.compactions))}"
    usage = found.usage
    if usage:
        cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
        yield f"usage: {usage.input:,} in, {usage.cached:,} cached, {usage.output:,} out{cost}"


def _count_same_messages(found: Request, before: Request | None) -> int:
    """Return how many messages at the beginning are those of the request before."""
    if before is None or (found.system, found.tools) != (before.system, before.tools):
        return 0
    return sum(1 for _ in takewhile(bool, map(eq, found.messages, before.messages)))


def _describe_change(found: Request, before: Request | None) -> Iterator[str]:
    """Yield what differs from the request before."""
    if before is None:
        return
    same = _count_same_messages(found, before)
    count, earlier = len(found.messages), len(before.messages)
    yield f"the first {same:,} of {count:,} messages are those of request {before.number}"
    if found.unchanged_tokens is not None:
        yield f"{found.unchanged_tokens:,} tokens were as before, so a cache may have kept them"
    if (found.system, found.tools) != (before.system, before.tools):
        yield "the system text or the tools are others"
    if same < earlier:
        yield f"{earlier - same:,} messages of it were changed or left out"
