"""Commands that search messages, and maintain their index."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from ..errors import StoreError
from ..records import Hits
from ..text import format_count
from . import render
from .options import (
    FieldChanges,
    Json,
    MomentText,
    PolicyName,
    SessionId,
    find_session,
    open_existing_store,
    parse_moment_option,
    resolve_policy,
)
from .terminal import StyledText, style_label

SearchWords = Annotated[
    list[str], typer.Argument(metavar="WORDS", help='Words to find; "several words" are a phrase.')
]
SearchSession = Annotated[
    str | None, typer.Option("--session", metavar="SESSION", help="Only in one session.")
]
SearchOwner = Annotated[
    str | None, typer.Option("--owner", metavar="OWNER", help="Only in sessions of one owner.")
]
SearchRoles = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Only of this role, or `title` or `summary`. Can be repeated.",
    ),
]
SearchTools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool", metavar="TOOL", help="Only calls and results of this tool. Can be repeated."
    ),
]
SearchStart = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Not before: ms, or ISO with a zone."),
]
SearchEnd = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Not after: ms, or ISO with a zone.")
]
NewestFirst = Annotated[
    bool, typer.Option("--newest", help="Sort by time, the newest first, not by rank.")
]
LeftBranches = Annotated[bool, typer.Option("--left", help="Include branches that were left.")]
HitLimit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="The maximum number of hits.")
]
IndexSwitch = Annotated[
    bool | None, typer.Option("--on/--off", help="Switch searching on or off.", show_default=False)
]
IndexRebuild = Annotated[bool, typer.Option("--anew", help="Rebuild the index from the messages.")]

PassageBudget = Annotated[
    int, typer.Option("--budget", metavar="N", min=1, help="Tokens of all passages, at most.")
]

UNINDEXED_NOTICE = "{} not looked at yet; `convostore index` takes in all"
MATCH_STYLE = "bold yellow"


def search(
    ctx: typer.Context,
    words: SearchWords,
    session: SearchSession = None,
    owner: SearchOwner = None,
    role: SearchRoles = None,
    tool: SearchTools = None,
    since: SearchStart = None,
    until: SearchEnd = None,
    newest: NewestFirst = False,
    left: LeftBranches = False,
    limit: HitLimit = 20,
    json: Json = False,
) -> None:
    """Search messages by their words.

    New messages are indexed first.
    """
    with open_existing_store(ctx) as store:
        with suppress(StoreError):  # the search itself reports the problem
            store.index()
        hits = store.search(
            " ".join(words),
            session=find_session(store, session).id if session else None,
            owner=owner,
            roles=role,
            tools=tool,
            since=parse_moment_option(since, "--since"),
            until=parse_moment_option(until, "--until"),
            order="newest" if newest else "best",
            limit=limit,
            left=left,
        )
    if json:
        found = [hit._asdict() for hit in hits]
        render.print_json({"hits": found, "behind": hits.behind})
    else:
        _print_hit_list(hits)


def _print_hit_list(hits: Hits) -> None:
    for hit in hits:
        where = f" {hit.seq}" if hit.seq else ""
        gone = "" if hit.on_line else f" (left, branch {hit.branch})"
        place = StyledText(f"{hit.session_id}{where} ", "dim")
        moment = StyledText(f" {render.format_moment(hit.at)}{gone}", "dim")
        render.print_lines([place, style_label(hit.role), moment])
        stars = "" if sys.stdout.isatty() else "**"
        shown, last = [], 0
        for first, end in hit.marks:
            shown.append(StyledText(hit.snippet[last:first]))
            shown.append(StyledText(f"{stars}{hit.snippet[first:end]}{stars}", MATCH_STYLE))
            last = end
        render.show_indented([*shown, StyledText(hit.snippet[last:])])
    if not hits:
        render.print_remark("nothing has these words")
    if hits.behind:
        render.print_remark(UNINDEXED_NOTICE.format(format_count(hits.behind, "message")))


def recall(
    ctx: typer.Context,
    session: SessionId,
    words: SearchWords,
    policy: PolicyName = "agent",
    fields: FieldChanges = None,
    budget: PassageBudget = 6000,
    now: MomentText = None,
    json: Json = False,
) -> None:
    """Print messages with these words that a view hides or replaces.

    These are messages that compactions hide and results that rules replace.
    """
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    with open_existing_store(ctx) as store:
        of = find_session(store, session).id
        found = store.recall(of, " ".join(words), policy=rules, budget=budget, now=moment)
    if json:
        render.print_json_list(each._asdict() for each in found)
    else:
        for each in found:
            render.print_lines(
                f"{each.first} to {each.last}, {each.why}, {each.tokens} tokens", each.text, ""
            )
        if not found:
            render.print_remark("nothing that is out of sight has these words")


def index(
    ctx: typer.Context,
    on: IndexSwitch = None,
    anew: IndexRebuild = False,
    json: Json = False,
) -> None:
    """Index all new messages for searches.

    Searches through the library index some messages each.
    """
    with open_existing_store(ctx) as store:
        done = store.index(on=on, anew=anew)
    render.print_answer(
        done._asdict(),
        (
            "searching is switched off, and there is no index"
            if not done.on
            else f"{format_count(done.messages, 'row')} in the index, {done.size:,} bytes"
        ),
        json=json,
    )
