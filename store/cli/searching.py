"""Commands that search messages, and maintain their index."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from ..errors import StoreError
from ..records import Hit, Hits
from ..text import format_count
from . import render
from .options import (
    Fields,
    Json,
    Now,
    PolicyName,
    SessionId,
    existing,
    find,
    moment_of,
    policy_of,
)
from .shown import Line, Styled, styled

Words = Annotated[
    list[str], typer.Argument(metavar="WORDS", help='What it has; "several words" in a row.')
]
Within = Annotated[
    str | None, typer.Option("--session", metavar="SESSION", help="Of one session alone.")
]
Owner = Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="Of one owner alone.")]
Roles = Annotated[
    list[str] | None,
    typer.Option("--role", metavar="ROLE", help="Of a role, title or summary. Can be repeated."),
]
Tools = Annotated[
    list[str] | None,
    typer.Option("--tool", metavar="TOOL", help="Calls and results of a tool. Can be repeated."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Not before: ms, or ISO with a zone."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Not after: ms, or ISO with a zone.")
]
Newest = Annotated[bool, typer.Option("--newest", help="The newest first, not the best.")]
Left = Annotated[bool, typer.Option("--left", help="On branches that were left, too.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="So many at most.")]
On = Annotated[
    bool | None, typer.Option("--on/--off", help="Switch searching on or off.", show_default=False)
]
Anew = Annotated[bool, typer.Option("--anew", help="Make the index anew from what was said.")]

Budget = Annotated[
    int, typer.Option("--budget", metavar="N", min=1, help="Tokens of all passages, at most.")
]

BEHIND = "{} not looked at yet; `convostore index` takes in all"
MARK = "bold yellow"


def search(
    ctx: typer.Context,
    words: Words,
    session: Within = None,
    owner: Owner = None,
    role: Roles = None,
    tool: Tools = None,
    since: Since = None,
    until: Until = None,
    newest: Newest = False,
    left: Left = False,
    limit: Limit = 20,
    json: Json = False,
) -> None:
    """Find what was said, by its words.

    What is new is taken into the index before.
    """
    with existing(ctx) as store:
        with suppress(StoreError):  # the search itself reports the problem
            store.index()
        hits = store.search(
            " ".join(words),
            session=find(store, session).id if session else None,
            owner=owner,
            roles=role,
            tools=tool,
            since=moment_of(since, "--since"),
            until=moment_of(until, "--until"),
            order="newest" if newest else "best",
            limit=limit,
            left=left,
        )
    if json:
        found = [hit._asdict() for hit in hits]
        render.print_json({"hits": found, "behind": hits.behind})
    else:
        _show_all(hits)


def _show_all(hits: Hits) -> None:
    for hit in hits:
        where = f" {hit.seq}" if hit.seq else ""
        gone = "" if hit.on_line else f" (left, branch {hit.branch})"
        place = Styled(f"{hit.session_id}{where} ", "dim")
        moment = Styled(f" {render.moment(hit.at)}{gone}", "dim")
        render.say([place, styled(hit.role), moment])
        render.indented(_marked(hit))
    if not hits:
        render.remark("nothing has these words")
    if hits.behind:
        render.remark(BEHIND.format(format_count(hits.behind, "message")))


def _marked(hit: Hit) -> Line:
    """Return a snippet with its words marked, by a colour or, for a program, by stars."""
    stars = "" if sys.stdout.isatty() else "**"
    shown, last = [], 0
    for first, end in hit.marks:
        shown.append(Styled(hit.snippet[last:first]))
        shown.append(Styled(f"{stars}{hit.snippet[first:end]}{stars}", MARK))
        last = end
    return [*shown, Styled(hit.snippet[last:])]


def recall(
    ctx: typer.Context,
    session: SessionId,
    words: Words,
    policy: PolicyName = "agent",
    fields: Fields = None,
    budget: Budget = 6000,
    now: Now = None,
    json: Json = False,
) -> None:
    """Print what a view has out of sight and has these words.

    It is what compactions hide, and what rules replace.
    """
    rules, moment = policy_of(policy, fields), moment_of(now)
    with existing(ctx) as store:
        wanted, of = " ".join(words), find(store, session).id
        found = store.recall(of, wanted, policy=rules, budget=budget, now=moment)
    if json:
        render.print_json_list(each._asdict() for each in found)
    else:
        for each in found:
            render.say(
                f"{each.first} to {each.last}, {each.why}, {each.tokens} tokens", each.text, ""
            )
        if not found:
            render.remark("nothing that is out of sight has these words")


def index(
    ctx: typer.Context,
    on: On = None,
    anew: Anew = False,
    json: Json = False,
) -> None:
    """Let searches find all that is new.

    The searches of a library do so by themselves, some messages each.
    """
    with existing(ctx) as store:
        done = store.index(on=on, anew=anew)
    render.answer(
        done._asdict(),
        (
            "searching is switched off, and there is no index"
            if not done.on
            else f"{format_count(done.messages, 'row')} in the index, {done.size:,} bytes"
        ),
        json=json,
    )
