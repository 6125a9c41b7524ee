"""What a host's type checker sees, read by mypy alone: what it would refuse is an error here.

Each ignored line is one that it has to refuse, since an ignore that is not needed is an error too.
"""

from __future__ import annotations

from openai import OpenAI, omit
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessageParam,
    ChatCompletionUserMessageParam,
)

from store import AsyncStore, Policy, Store, StoredMessage, SummaryRequest


def answer(client: OpenAI, store: Store, session_id: str) -> ChatCompletion:
    """Ask a model by a view, and append what it says."""
    view = store.view(session_id)
    reply = client.chat.completions.create(model="m", messages=view.messages)
    store.append(session_id, reply.choices[0].message)
    request = store.context(session_id, tools=[], user_input="hi")
    return client.chat.completions.create(
        model="m", messages=request.messages, tools=request.tools or omit
    )


def say(
    store: Store,
    session_id: str,
    asked: ChatCompletionUserMessageParam,
    line: list[ChatCompletionMessageParam],
) -> None:
    """What is typed for a provider's client is appended as it is; a text is no message."""
    store.append(session_id, asked)
    store.append(session_id, line)
    store.replace(session_id, 0, line)
    store.append(session_id, "hi")  # type: ignore[arg-type]


async def summarise(store: AsyncStore, session_id: str) -> None:
    """Summaries that are awaited are summaries."""

    async def short(request: SummaryRequest) -> str:
        return request.transcript[:99]

    await store.compact(session_id, Policy(), short)
    await store.compact_if_needed(session_id, Policy(), lambda _: "text")


async def stream(store: AsyncStore, session_id: str) -> StoredMessage | None:
    """What is awaited by itself has types, too."""
    async with store.streaming(session_id, {"role": "assistant"}, every_ms=100) as answer:
        await answer.write("text")
    seen = await store.wait(session_id, None, 0.1)
    await store.wait(5, None)  # type: ignore[arg-type]
    store.streaming(session_id)  # type: ignore[call-arg]
    return answer.stored if seen else None


def policies() -> list[Policy]:
    """Fields are known by name and type."""
    return [
        Policy(terminal_keep=3, language="en", parts_to_keep=("text", "tool")),
        Policy(nonsense=1),  # type: ignore[call-arg]
        Policy(terminal_keep="three"),  # type: ignore[arg-type]
        Policy(language="fr"),  # type: ignore[arg-type]
    ]
