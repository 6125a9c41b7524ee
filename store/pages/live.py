"""Updates of an open conversation: new messages, and the answer that is being written.

The page's script asks for the messages from a position on. The answer waits until there are some,
or the text of an answer under way has grown, and is HTML: the page itself is made nowhere else.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from .. import StoreError
from .conversation import (
    MESSAGES_PER_PAGE,
    SENT_FORMS,
    describe_state,
    draw_drafts,
    draw_items,
)
from .page_rendering import Visit, choose_language
from .page_rows import explain_messages, show_item

PATIENCE = 20.0
"""Seconds that an answer waits for something new."""
STATE = "x-state"
RELOAD = 205
"""The status that tells the script to load the whole page anew: the line is another one, or what is
sent of all its messages may be."""


async def answer_live(request: Request) -> Response:
    """Return the messages after those of a page, once there are some; nothing after a while."""
    visit = Visit(request, request.app.state.site, choose_language(request))
    try:
        seen = visit.get("state")
        if await run_in_threadpool(describe_state, visit) == seen:
            revision = seen.partition(" ")[0]
            await visit.site.awaited.wait(visit.session_id, revision, PATIENCE, drafts=True)
        return await run_in_threadpool(render_news, visit)
    except StoreError as problem:
        return PlainTextResponse(str(problem), problem.status)


def render_news(visit: Visit) -> Response:
    """Return the messages from a position on, and the answers under way."""
    state, session = describe_state(visit), visit.face.session(visit.session_id)
    start = visit.number("from") or 1
    if session.head < start - 1 or visit.get("branch") != str(session.branch):
        return Response(status_code=RELOAD)
    if visit.get("mode") in SENT_FORMS and visit.get("state").split()[:1] != state.split()[:1]:
        return Response(status_code=RELOAD, headers={"x-head": str(session.head)})
    found = visit.face.messages(session.id, start, start + MESSAGES_PER_PAGE - 1)
    drafts = draw_drafts(visit, visit.face.drafts(session.id))
    rows = (show_item(visit, row) for row in explain_messages(visit, found, None))
    text = visit.render("news.html", {"messages": draw_items(visit, rows), "drafts": drafts})
    return HTMLResponse(text, headers={STATE: state, "x-next": str(start + len(found))})
