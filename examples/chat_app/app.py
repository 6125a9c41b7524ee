"""A chat app: users, their chats, answers that survive a closed window, edits, costs.

    pip install '.[examples]'
    OPENAI_API_KEY=… CHAT_MODEL=gpt-4.1-mini python examples/chat_app/app.py

Any OpenAI-compatible provider will do: OPENAI_BASE_URL names it, such as
http://localhost:11434/v1. Chats are stored in CONVOSTORE_DB (chat.db), the page is at PORT (8000).
The name that a request gives is believed: run this behind a proxy that authenticates users.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from openai import AsyncOpenAI, OpenAIError
from pydantic import BaseModel, Field

from store import AsyncScoped, AsyncStore, Policy, Scoped, Store, StoredMessage, StoreError
from store.errors import DraftEnded, DraftNotFound
from store.exporting import session_lines

MODEL = os.environ.get("CHAT_MODEL", "gpt-4.1-mini")
DATABASE = os.environ.get("CONVOSTORE_DB", "chat.db")
METRICS_HOST, _, _port = os.environ.get("METRICS", "").rpartition(":")
METRICS_PORT = int(_port or 0)
FOLDER = Path(__file__).parent
RATING = "rating"
ANEW, POLICY = (Policy.named("agent", show_drafts=shown) for shown in (False, True))
"""The policies of a request: only the second one sends the parts of answers that broke off."""

Found = dict[str, Any]


@asynccontextmanager
async def open_store(app: FastAPI) -> AsyncIterator[None]:
    """Keep the store open while the app runs; answers under way are left as drafts at its end."""
    async with AsyncStore(DATABASE) as store, AsyncOpenAI() as provider:
        app.state.store, app.state.provider, app.state.answers = store, provider, {}
        app.state.asking = defaultdict(asyncio.Lock)
        for port in range(METRICS_PORT, METRICS_PORT + 20 * bool(METRICS_PORT)):
            with suppress(OSError):  # each worker takes the first one that is free
                await asyncio.start_server(send_metrics, METRICS_HOST or "127.0.0.1", port)
                break
        yield
        await asyncio.gather(*map(cancel_answer, [*app.state.answers]))


async def send_metrics(asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
    """Send what this worker has done, in the format of Prometheus; no label names a user."""
    await asked.readuntil(b"\r\n\r\n")
    head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\r\n"
    answer.write((head + (await app.state.store.metrics()).text()).encode())
    answer.close()


app = FastAPI(title="convostore chat", lifespan=open_store)


def find_user(request: Request) -> str:
    """Return the name of the user who asks."""
    user = request.headers.get("x-user") or request.cookies.get("user")
    if not user:
        raise HTTPException(401, "who are you? send a header X-User, or a cookie user")
    return unquote(user)


User = Annotated[str, Depends(find_user)]


def select_chats(user: User) -> AsyncScoped:
    """Return the user's chats: the routes below see no others."""
    store: AsyncStore = app.state.store
    return store.scoped(user)


Mine = Annotated[AsyncScoped, Depends(select_chats)]


@app.exception_handler(StoreError)
async def report_error(_: Request, error: StoreError) -> JSONResponse:
    """Report an error of the store: each has a status, and says whether to ask again."""
    later = {"retry-after": "1"} if error.retry else None
    return JSONResponse({"detail": str(error)}, error.status, later)


# --- Pages ----------------------------------------------------------------------------------------


@app.get("/")
async def send_page() -> FileResponse:
    """Return the page."""
    return FileResponse(FOLDER / "page.html")


@app.get("/page.{kind}")
async def send_part(kind: Literal["js", "css"]) -> FileResponse:
    """Return the page's script or its style."""
    return FileResponse(FOLDER / f"page.{kind}")


# --- Chats ----------------------------------------------------------------------------------------


@app.get("/chats")
async def list_chats(mine: Mine, *, archived: bool = False) -> list[Found]:
    """List the chats, the last active one first."""
    found = await mine.sessions(archived=archived, limit=200)
    return [{"id": each.id, "title": await mine.title(each.id)} for each in found]


@app.get("/search")
async def search_chats(mine: Mine, q: str) -> list[Found]:
    """Find chats with all words of a text; the best message of each tells where."""
    found = await mine.search(q, by="session", limit=30)
    return [
        {
            "id": each.session.id,
            "title": await mine.title(each.session.id),
            "hits": each.hits,
            "seq": each.best.seq,
            "snippet": each.best.snippet,
        }
        for each in found
    ]


@app.post("/chats")
async def create_chat(mine: Mine) -> Found:
    """Begin a chat."""
    return {"id": (await mine.create_session()).id}


@app.get("/chats/{chat}")
async def show_chat(mine: Mine, chat: str) -> Found:
    """Return a chat: its messages, the answers under way or broken off, and its cost."""
    session = await mine.session(chat)
    totals = await mine.usage_totals(chat, by="session")
    notes = await mine.annotations(chat, key=RATING)
    ratings = {each.seq: each.value for each in notes}
    messages = [await describe_message(mine, chat, each) for each in await mine.messages(chat)]
    return {
        "title": await mine.title(chat),
        "revision": session.revision,
        "archived": session.archived,
        "messages": [each | {"rating": ratings.get(each["seq"])} for each in messages],
        "drafts": [
            {
                "draft": each.draft,
                "text": each.message.get("content") or "",
                "after": each.head,
                "live": each.live,
            }
            for each in await mine.drafts(chat)
        ],
        "cost": sum(each.cost or 0 for each in totals),
        "tokens": sum(each.input + each.output for each in totals),
    }


async def describe_message(mine: AsyncScoped, chat: str, stored: StoredMessage) -> Found:
    """Return a message as the page shows it, with the branches of its alternatives."""
    others = await mine.siblings(chat, stored.seq)
    return {
        "seq": stored.seq,
        "role": stored.message["role"],
        "text": stored.message.get("content") or "",
        "branches": [each.branch for each in others],
        "place": [each.current for each in others].index(True),
    }


class Change(BaseModel):
    """Another title of a chat."""

    title: str | None = Field(max_length=200)


@app.patch("/chats/{chat}")
async def rename_chat(mine: Mine, chat: str, change: Change) -> None:
    """Give a chat another title; none shows its first question."""
    await mine.rename_session(chat, change.title or None)


@app.delete("/chats/{chat}")
async def delete_chat(mine: Mine, chat: str) -> None:
    """Erase a chat."""
    await mine.delete_session(chat)


@app.post("/chats/{chat}/archive")
async def archive_chat(mine: Mine, chat: str, *, archived: bool = True) -> None:
    """Take a chat out of the list, or put it back."""
    await (mine.archive(chat) if archived else mine.unarchive(chat))


@app.post("/chats/{chat}/switch/{branch}")
async def switch_branch(mine: Mine, chat: str, branch: int) -> None:
    """Show an alternative message, with the messages that followed it."""
    await mine.switch(chat, branch)


class Rating(BaseModel):
    """The rating of a message: 1 or -1, None for no rating."""

    rating: Literal[1, -1] | None


@app.put("/chats/{chat}/messages/{seq}/rating")
async def rate_message(mine: Mine, chat: str, seq: int, rated: Rating) -> None:
    """Keep a rating as a note beside the message."""
    await mine.annotate(chat, seq, RATING, rated.rating)


# --- Answers --------------------------------------------------------------------------------------


class Asked(BaseModel):
    """A question: at the end, or in the place of the messages after a position."""

    text: str | None = None
    after: int | None = None
    revision: str | None = None


@app.post("/chats/{chat}/messages")
async def ask(mine: Mine, chat: str, asked: Asked) -> StreamingResponse:
    """Store a question, or an edited one, and send the answer as it comes.

    Without a text the last question is answered anew. The answer goes on if the window closes.
    """
    if asked.text is not None and not asked.text.strip():
        raise HTTPException(422, "the question is empty: write something")
    question, seen = {"role": "user", "content": asked.text}, asked.revision
    if asked.text is None and asked.after is None:
        raise HTTPException(422, "give a text, or the position after which to answer anew")
    async with app.state.asking[chat]:  # of two questions at once the later one is refused
        if any(each.live for each in await mine.drafts(chat)):
            raise HTTPException(409, "an answer is under way: wait for its end, or stop it")
        if asked.after is None:
            await mine.append(chat, question, expected=seen, alone=True)
        elif asked.text is None:
            await mine.rewind(chat, asked.after, expected=seen)
        else:
            await mine.replace(chat, asked.after, question, expected=seen)
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        policy = POLICY if asked.text else ANEW
        answer = asyncio.create_task(write_answer(mine, chat, policy, pieces))
        draft = await pieces.get()
    if draft is None:
        await answer  # raises why it could not begin
    app.state.answers[draft] = answer
    answer.add_done_callback(lambda _: app.state.answers.pop(draft, None))
    events = send_pieces(pieces, answer, draft)
    return StreamingResponse(events, media_type="text/event-stream")


async def write_answer(
    mine: AsyncScoped, chat: str, policy: Policy, pieces: asyncio.Queue[str | None]
) -> None:
    """Have the model answer, and store it as it comes, with its cost.

    Puts the draft's id into a queue, then the pieces of the text, and None at the end.
    """
    create = app.state.provider.chat.completions.create
    options = {"stream": True, "stream_options": {"include_usage": True}}
    try:
        sent = (await mine.view(chat, policy)).messages
        async with mine.streaming(chat, {"role": "assistant"}, alone=True, every_ms=250) as answer:
            await pieces.put(answer.draft)
            async for chunk in await create(model=MODEL, messages=sent, **options):
                await answer.take(chunk)
                for choice in chunk.choices:
                    await pieces.put(choice.delta.content or "")
    finally:
        await pieces.put(None)


async def send_pieces(
    pieces: asyncio.Queue[str | None], answer: asyncio.Task[None], draft: str | None
) -> AsyncIterator[str]:
    """Yield the events of an answer that this process writes, as they come."""
    try:
        while (text := await pieces.get()) is not None:
            yield format_event(text=text, draft=draft)
        await asyncio.wait([answer])
        if not answer.cancelled():
            answer.result()
        yield format_event(done=True)
    except DraftEnded:  # somebody pressed Stop in another process
        yield format_event(done=True)
    except (StoreError, OpenAIError) as error:
        yield format_event(error=str(error))


@app.get("/drafts/{draft}")
async def follow_answer(mine: Mine, draft: str) -> StreamingResponse:
    """Send an answer under way from its beginning, such as after a reload."""
    events = send_draft(mine, draft)
    first = await anext(events)  # what the store refuses has a status of its own

    async def send_all() -> AsyncIterator[str]:
        yield first
        async for event in events:
            yield event

    return StreamingResponse(send_all(), media_type="text/event-stream")


async def send_draft(mine: AsyncScoped, draft: str) -> AsyncIterator[str]:
    """Yield the events of an answer that any process writes."""
    with suppress(DraftNotFound):  # it ended before it could be followed
        async for text in mine.follow(draft):
            yield format_event(text=text, draft=draft)
    yield format_event(done=True)


def format_event(**data: object) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


@app.post("/drafts/{draft}/stop")
async def stop_answer(mine: Mine, draft: str) -> None:
    """Make a message of an answer under way as far as it came, whichever process writes it."""
    if draft in {each.draft for each in await mine.drafts()}:
        await cancel_answer(draft)
    await mine.finish_draft(draft, force=True)


async def cancel_answer(draft: str) -> None:
    """Cancel an answer that this process writes; what came of it is in its draft."""
    answer = app.state.answers.get(draft)
    if answer:
        answer.cancel()
        await asyncio.wait([answer])


@app.post("/drafts/{draft}")
async def settle_draft(mine: Mine, draft: str, *, keep: bool) -> None:
    """Make a message of an answer that broke off, or discard it."""
    await (mine.finish_draft(draft) if keep else mine.discard_draft(draft))


# --- Costs, exports, the end ----------------------------------------------------------------------


@app.get("/cost")
async def sum_costs(mine: Mine) -> list[Found]:
    """Return the cost of a user's chats by month and model."""
    totals = await mine.usage_totals(by=["month", "model"])
    return [each._asdict() for each in totals]


@app.get("/export")
@app.get("/chats/{chat}/export")
def export_chats(user: User, chat: str | None = None) -> StreamingResponse:
    """Send a chat as a page in Markdown, or all chats one after the other."""
    name, pages = quote(f"{chat or 'chats'}.md"), write_pages(user, chat)
    return StreamingResponse(
        chain([next(pages, "")], pages),  # what the store refuses has a status of its own
        media_type="text/markdown; charset=utf-8",
        headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"},
    )


def write_pages(user: str, chat: str | None) -> Iterator[str]:
    """Yield the lines of a chat's page, or of those of all chats of a user."""
    with Store.shared(DATABASE) as store:
        mine = store.scoped(user)
        for name in [chat] if chat else list_ids(mine):
            for line in session_lines(mine, name, shape="markdown").lines:
                yield f"{line}\n"


def list_ids(mine: Scoped) -> list[str]:
    """Return the ids of all chats of a user, the archived ones last."""
    pages = (mine.sessions(archived=archived, limit=1_000_000) for archived in (False, True))
    return [each.id for page in pages for each in page]


@app.delete("/account")
async def delete_account(mine: Mine) -> Found:
    """Erase all chats of a user, with the sums of their costs."""
    return {"deleted": len(await mine.delete_owner())}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
