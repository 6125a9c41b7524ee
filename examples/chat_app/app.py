"""A chat app: users, their chats, other answers, edited questions, streams, interruptions, costs.

Answers belong to the server, not to a window: they go on when it closes, and a reload follows them.

    pip install '.[examples]'
    OPENAI_API_KEY=… CHAT_MODEL=gpt-4.1-mini python examples/chat_app/app.py

Any OpenAI-compatible provider will do: OPENAI_BASE_URL names it, such as
http://localhost:11434/v1. Chats lie in CONVOSTORE_DB (chat.db), the page is at PORT (8000). Who
says a name is believed: put this behind whatever knows who your users are.
"""

from __future__ import annotations

import json
import os
from asyncio import FIRST_COMPLETED, Future, Task, create_task, gather, wait
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

from store import AsyncScoped, AsyncStore, Policy, StoredMessage, StoreError

MODEL = os.environ.get("CHAT_MODEL", "gpt-4.1-mini")
ANEW, POLICY = (Policy.named("agent", show_drafts=shown) for shown in (False, True))
"""What the model is sent: the line, short where it may be; and of answers that broke off, that."""


@asynccontextmanager
async def opened(app: FastAPI) -> AsyncIterator[None]:
    """Open the store for as long as the app runs; read where the provider is."""
    async with (
        AsyncStore(os.environ.get("CONVOSTORE_DB", "chat.db")) as store,
        AsyncOpenAI() as provider,
    ):
        app.state.store, app.state.provider, app.state.answers = store, provider, {}
        yield
        for task in app.state.answers.values():
            task.cancel()
        await gather(*app.state.answers.values(), return_exceptions=True)


app = FastAPI(title="convostore chat", lifespan=opened)


def of_user(request: Request) -> AsyncScoped:
    """Return the chats of whoever asks: there are no others for the routes below."""
    user = request.headers.get("x-user") or request.cookies.get("user")
    if not user:
        raise HTTPException(401, "who are you? send a header X-User, or a cookie user")
    store: AsyncStore = request.app.state.store
    return store.scoped(unquote(user))


Mine = Annotated[AsyncScoped, Depends(of_user)]
Found = dict[str, Any]


@app.exception_handler(StoreError)
async def refuse(_: Request, error: StoreError) -> JSONResponse:
    """Report an error of the store: each has a status, and says whether to ask again."""
    later = {"retry-after": "1"} if error.retry else None
    return JSONResponse({"detail": str(error)}, error.status, later)


@app.get("/")
async def page() -> FileResponse:
    """Return the page."""
    return FileResponse(Path(__file__).with_name("page.html"))


@app.get("/chats")
async def chats(mine: Mine, *, archived: bool = False) -> list[Found]:
    """List chats, the last active first."""
    found = await mine.sessions(archived=archived, limit=200)
    return [{"id": each.id, "title": await mine.title(each.id)} for each in found]


@app.get("/search")
async def search(mine: Mine, q: str) -> Found:
    """Find messages, each with the title of its chat; tell how many were not looked at."""
    hits = await mine.search(q, limit=30)
    titles = {each.session_id: await mine.title(each.session_id) for each in hits}
    told = [{**each._asdict(), "title": titles[each.session_id]} for each in hits]
    return {"hits": told, "behind": hits.behind}


@app.post("/chats")
async def begin(mine: Mine) -> Found:
    """Begin a chat."""
    return {"id": (await mine.create_session()).id}


@app.get("/chats/{chat}")
async def show(mine: Mine, chat: str) -> Found:
    """Return a chat: what was said, what broke off, and what it cost."""
    session = await mine.session(chat)
    drafts, totals = await mine.drafts(chat), await mine.usage_totals(chat, by="session")
    ratings = {each.seq: each.value for each in await mine.annotations(chat, key="rating")}
    return {
        "title": await mine.title(chat),
        "revision": session.revision,
        "archived": session.archived,
        "messages": [
            {**await told(mine, chat, each), "rating": ratings.get(each.seq)}
            for each in await mine.messages(chat)
        ],
        "drafts": [
            {
                "draft": each.draft,
                "text": each.message.get("content") or "",
                "after": each.head,
                "live": each.live,
            }
            for each in drafts
        ],
        "cost": sum(each.cost or 0 for each in totals),
        "tokens": sum(each.input + each.output for each in totals),
    }


async def told(mine: AsyncScoped, chat: str, stored: StoredMessage) -> Found:
    """Return a message as the page shows it, with the branches of those that stand in its place."""
    others = await mine.siblings(chat, stored.seq)
    return {
        "seq": stored.seq,
        "role": stored.message["role"],
        "text": stored.message.get("content") or "",
        "branches": [each.branch for each in others],
        "place": [each.current for each in others].index(True),
    }


class Asked(BaseModel):
    """What a user says: at the end, or in the place of what follows a position."""

    text: str | None = None
    after: int | None = None
    revision: str | None = None


@app.post("/chats/{chat}/messages")
async def ask(mine: Mine, chat: str, asked: Asked) -> StreamingResponse:
    """Store a question, or an edited one; without a text have the last one answered anew."""
    question, seen = {"role": "user", "content": asked.text}, asked.revision
    if asked.text is not None and not asked.text.strip():
        raise HTTPException(400, "the question is empty; write what you want to know")
    if asked.after is None and asked.text is None:
        raise HTTPException(400, "say something, or name the message to answer anew (after)")
    if any(each.live for each in await mine.drafts(chat)):
        raise HTTPException(409, "an answer is under way; wait for it, or stop it")
    if asked.after is None:
        await mine.append(chat, question, expected=seen, alone=True)
    elif asked.text is None:
        await mine.rewind(chat, asked.after, expected=seen)
    else:
        await mine.replace(chat, asked.after, question, expected=seen)
    sent = (await mine.view(chat, POLICY if asked.text else ANEW)).messages
    begun: Future[str] = Future()
    task = app.state.answers[chat] = create_task(answer(mine, chat, sent, begun))
    either: list[Future[Any]] = [begun, task]
    await wait(either, return_when=FIRST_COMPLETED)
    if not begun.done():
        await task  # it raises what was wrong
    draft = begun.result()
    return StreamingResponse(followed(mine, draft, task), media_type="text/event-stream")


async def answer(mine: AsyncScoped, chat: str, sent: list[Found], begun: Future[str]) -> None:
    """Have a model answer; all of it is kept as it comes, with its usage, whoever listens."""
    say = app.state.provider.chat.completions.create
    counting = {"include_usage": True}
    async with mine.streaming(chat, {"role": "assistant"}, every_ms=100, alone=True) as stream:
        begun.set_result(stream.draft)
        pieces = await say(model=MODEL, messages=sent, stream=True, stream_options=counting)
        async for piece in pieces:
            await stream.take(piece)


@app.get("/chats/{chat}/answer")
async def follow(mine: Mine, chat: str) -> StreamingResponse:
    """Follow the answer that is under way, from its beginning."""
    live = [each.draft for each in await mine.drafts(chat) if each.live]
    if not live:
        raise HTTPException(404, "no answer is under way")
    events = followed(mine, live[0], app.state.answers.get(chat))
    return StreamingResponse(events, media_type="text/event-stream")


async def followed(mine: AsyncScoped, draft: str, task: Task[None] | None) -> AsyncIterator[str]:
    """Yield an answer as it comes, and what was wrong if it broke off."""
    try:
        async for text in mine.follow(draft):
            yield event(text=text)
    except StoreError:
        pass  # it has ended before: the chat has it
    if task:
        await wait([task])
        if not task.cancelled() and (error := task.exception()):
            yield event(error=str(error))
            return
    yield event(done=True)


@app.post("/chats/{chat}/stop")
async def stop(mine: Mine, chat: str) -> None:
    """Stop the answer that is under way; what came of it is kept as a draft."""
    await mine.session(chat)
    task = app.state.answers.get(chat)
    if task:
        task.cancel()
        await wait([task])


def event(**data: object) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


@app.post("/chats/{chat}/switch/{branch}")
async def switch(mine: Mine, chat: str, branch: int) -> None:
    """Show another of the messages that stand in one place, with what followed it."""
    await mine.switch(chat, branch)


@app.post("/chats/{chat}/archive")
async def archive(mine: Mine, chat: str, *, archived: bool = True) -> None:
    """Take a chat out of the list, or put it back."""
    await (mine.archive(chat) if archived else mine.unarchive(chat))


class Title(BaseModel):
    """The name of a chat."""

    title: str | None = None


@app.post("/chats/{chat}/title")
async def rename(mine: Mine, chat: str, named: Title) -> None:
    """Give a chat a title; none: its first words."""
    await mine.rename_session(chat, named.title or None)


@app.post("/chats/{chat}/rating/{seq}")
async def rate(mine: Mine, chat: str, seq: int, *, thumb: int) -> None:
    """Keep a thumb beside an answer: 1 is up, -1 is down, 0 takes it back."""
    await mine.annotate(chat, seq, "rating", thumb or None)


@app.get("/export")
async def export(mine: Mine, chat: str | None = None) -> Response:
    """Return a chat, or all of them, as Markdown."""
    asked = [chat] if chat else [each.id for each in await mine.sessions(limit=10_000)]
    texts = []
    for each in asked:
        said = [
            f"**{stored.message['role']}**\n\n{stored.message.get('content') or ''}"
            for stored in await mine.messages(each)
        ]
        texts.append("\n\n".join([f"# {await mine.title(each) or 'Untitled'}", *said]))
    kept = {"content-disposition": "attachment; filename=chats.md"}
    return Response("\n\n".join(texts), media_type="text/markdown", headers=kept)


@app.delete("/chats/{chat}")
async def delete(mine: Mine, chat: str) -> None:
    """Erase a chat for good."""
    await stop(mine, chat)
    await mine.delete_session(chat)


@app.delete("/account")
async def leave(mine: Mine) -> None:
    """Erase all chats of whoever asks."""
    for archived in (False, True):
        while found := await mine.sessions(archived=archived, limit=200):
            for each in found:
                await delete(mine, each.id)


@app.post("/drafts/{draft}")
async def settle(mine: Mine, draft: str, *, keep: bool) -> None:
    """Make a message of an answer that broke off, or let it go."""
    await (mine.finish_draft(draft) if keep else mine.discard_draft(draft))


@app.get("/cost")
async def cost(mine: Mine, by: Literal["model", "month", "day"] = "model") -> list[Found]:
    """Return what all of a user's chats cost, by model or by time."""
    return [each._asdict() for each in await mine.usage_totals(by=by)]


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
