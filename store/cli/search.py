"""Commands that search messages, and maintain their index."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import StoreError
from ..records import Hit, Hits, SessionHit
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
    shorten_id,
)
from .terminal import StyledText, style_label

if TYPE_CHECKING:
    from .. import Store

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
    typer.Option("--since", metavar="TIME", help="Not before: 7d, yesterday, a date, ISO, ms."),
]
SearchEnd = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Not after: 7d, yesterday, a date, ISO, ms."),
]
NewestFirst = Annotated[
    bool, typer.Option("--newest", help="Sort by time, the newest first, not by rank.")
]
LeftBranches = Annotated[bool, typer.Option("--left", help="Include branches that were left.")]
SomeWords = Annotated[
    bool, typer.Option("--any", help="Messages with some of the words too, after those with all.")
]
ByMessage = Annotated[bool, typer.Option("--messages", help="List messages, not sessions.")]
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
    some: SomeWords = False,
    messages: ByMessage = False,
    limit: HitLimit = 20,
    json: Json = False,
) -> None:
    """Find sessions, or messages, by their words.

    New messages are indexed first. With each session come the command that shows its best message,
    and the one by which its program resumes it.
    """
    with open_existing_store(ctx) as store:
        with suppress(StoreError):  # the search itself reports the problem
            store.index()
        wanted: dict[str, Any] = {
            "session": find_session(store, session).id if session else None,
            "owner": owner,
            "roles": role,
            "tools": tool,
            "since": parse_moment_option(since, "--since"),
            "until": parse_moment_option(until, "--until"),
            "order": "newest" if newest else "best",
            "limit": limit,
            "left": left,
            "any": some,
        }
        if messages:
            _print_hits(store, store.search(" ".join(words), **wanted), json=json)
        else:
            found = store.search(" ".join(words), by="session", **wanted)
            _print_session_hits(store, found, json=json)


def _print_session_hits(store: Store, found: list[SessionHit], *, json: bool) -> None:
    if json:
        nested = {"session", "best"}
        render.print_json_list(
            {
                name: value._asdict() if name in nested else value
                for name, value in hit._asdict().items()
            }
            for hit in found
        )
        return
    for hit in found:
        short = shorten_id(store, hit.session.id)
        title = render.shorten_to_line(hit.session.title or store.title(hit.session.id) or "")
        age = render.format_age(hit.session.updated_at)
        facts = filter(None, (hit.session.source, age, format_count(hit.hits, "hit")))
        render.print_lines([StyledText(f"{short}  ", "dim"), StyledText(title, "bold")])
        render.print_lines([StyledText(f"  {', '.join(facts)}", "dim")])
        _print_snippet(hit.best)
        at = f" --from {hit.best.seq}" if hit.best.seq else ""
        render.print_lines(f"  convostore show {short}{at}")
        if hit.resume:
            render.print_lines(f"  {hit.resume}")
    if not found:
        render.print_remark("nothing has these words")


def _print_hits(store: Store, hits: Hits, *, json: bool) -> None:
    if json:
        found = [hit._asdict() for hit in hits]
        render.print_json({"hits": found, "behind": hits.behind})
        return
    for hit in hits:
        where = f" {hit.seq}" if hit.seq else ""
        gone = "" if hit.on_line else f" (left, branch {hit.branch})"
        moment = f" {render.format_moment(hit.at)}{gone}"
        room = render.count_columns() - len(f"{where} {hit.role}{moment}")
        is_short = len(hit.session_id) > room
        name = shorten_id(store, hit.session_id) if is_short else hit.session_id
        place = StyledText(f"{name}{where} ", "dim")
        render.print_lines([place, style_label(hit.role), StyledText(moment, "dim")])
        _print_snippet(hit)
    if not hits:
        render.print_remark("nothing has these words")
    if hits.behind:
        render.print_remark(UNINDEXED_NOTICE.format(format_count(hits.behind, "message")))


def _print_snippet(hit: Hit) -> None:
    """Print the line of a hit, with its words marked."""
    stars = "" if sys.stdout.isatty() else "**"
    shown, last = [], 0
    for first, end in hit.marks:
        shown.append(StyledText(hit.snippet[last:first]))
        shown.append(StyledText(f"{stars}{hit.snippet[first:end]}{stars}", MATCH_STYLE))
        last = end
    render.show_indented([*shown, StyledText(hit.snippet[last:])])


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


INDEX_ADVICE = "`convostore index` goes on from there"


def index(
    ctx: typer.Context,
    on: IndexSwitch = None,
    anew: IndexRebuild = False,
    json: Json = False,
) -> None:
    """Index all new messages for searches.

    Searches through the library index some messages each.
    """
    drawn = render.show_progress("indexing", "messages and summaries", INDEX_ADVICE)
    with open_existing_store(ctx) as store, drawn as tell:
        done = store.index(on=on, anew=anew, progress=tell)
    render.print_answer(
        done._asdict(),
        (
            "searching is switched off, and there is no index"
            if not done.on
            else f"{format_count(done.messages, 'row')} in the index, {done.size:,} bytes"
        ),
        json=json,
    )
