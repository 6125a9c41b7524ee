"""Summarizers: what turns a request into a summary, and one way to run any of them that nothing gets past.

A summarizer is a stranger: a model behind a network, or a host's own function. `call` gives it a thread and a deadline,
and whatever it does then, the caller has a clean `Summary` or a `SummaryGenerationError`. Nothing here knows databases.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import re
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from .errors import InvalidValue, StoreError, SummaryGenerationError, SummaryTimedOut
from .messages import content_text
from .summaries import EMPTY, Summarizer, Summary, SummaryRequest, cut, extractive, normalised, scrubbed

TIMEOUT = 120.0
"""Seconds a summary may take (S4.32)."""
TEMPERATURE = 0.3
"""The temperature at which a model is asked for a summary (S2.19)."""
RETRIES = 2
"""How often a request that failed on the way is sent again, within the same time."""

GRACE = 0.5
"""Seconds an overdue connection has to be closed properly before its thread is left behind."""

ANSWER_LIMIT = 8 * 1024 * 1024
"""Bytes of an answer after which it is no longer read: no summary is that long."""

ERROR_LIMIT = 16 * 1024
"""Bytes that are read of what an endpoint says of an error, packed as they come."""

_CAUSE_LIMIT = 500


def call(summarizer: Summarizer, request: SummaryRequest, timeout: float | None = TIMEOUT) -> Summary:
    """Return the summary that any summarizer makes, checked, cleaned and cut to the request's limit.

    It runs in a thread of its own, which is left behind if it takes longer than ``timeout`` seconds (None: no limit).
    Raises SummaryTimedOut then, and SummaryGenerationError for whatever else goes wrong, with the cause's text.
    KeyboardInterrupt and SystemExit pass through, from either thread, and so does Cancelled.
    """
    try:
        return _within(timeout, lambda: normalised(summarizer(request), request))
    except (SummaryGenerationError, KeyboardInterrupt, SystemExit, Cancelled):
        raise
    except BaseException as error:
        raise SummaryGenerationError(_cause(error)) from error


def named(text: str) -> Summarizer:
    """Return a summarizer by name: ``extractive``, or ``openai:MODEL`` with key and address from the environment.

    Raises InvalidValue for any other name, StoreError where the library is not installed.
    """
    kind, _, model = text.partition(":")
    if text == "extractive":
        return extractive
    if kind == "openai" and model.strip():
        return chat_model(model.strip())
    raise InvalidValue(f"no summarizer is named {text!r}; there are extractive and openai:MODEL")


def chat_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float | None = TEMPERATURE,
    timeout: float = TIMEOUT,
    max_retries: int = RETRIES,
) -> Summarizer:
    """Return a summarizer that asks a model behind any OpenAI-compatible endpoint: one user message, no tools (S2.19).

    ``base_url`` and ``api_key`` default to OPENAI_BASE_URL and OPENAI_API_KEY; ``temperature`` None leaves it to the
    model, as some demand. ``timeout`` is seconds for everything, retries included, however slowly bytes come in.

    An answer cut short by the model's own limit counts only where nothing is lost by it: it fills the request's limit
    anyway, or it ends with a sentence. Raises StoreError where the library is not installed.
    """
    openai = _library()
    settings = {"api_key": api_key, "base_url": base_url, "timeout": timeout, "max_retries": max_retries}
    options: dict[str, Any] = {"model": model}
    if temperature is not None:
        options["temperature"] = temperature

    def summarize(request: SummaryRequest) -> Summary:
        messages = [{"role": "user", "content": scrubbed(request.prompt)}]
        body = _within(
            timeout + GRACE, lambda: asyncio.run(_answer(openai, settings, {**options, "messages": messages}))
        )
        return Summary(_text(body, request.max_chars), model=model)

    return summarize


# Running a stranger.


class Cancelled(BaseException):
    """Nobody waits for the summary any more; no failure of a summarizer."""


class Patience:
    """Whether somebody still waits for what `call` makes; once ended, all who wait on their behalf give up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = False
        self._woken: list[threading.Event] = []

    def wake(self, event: threading.Event) -> None:
        """Set an event when nobody waits any more, at once if that is so already."""
        with self._lock:
            self._woken.append(event)
            if self._ended:
                event.set()

    def end(self) -> None:
        """Let nobody wait any longer."""
        with self._lock:
            self._ended = True
            for event in self._woken:
                event.set()


PATIENCE: contextvars.ContextVar[Patience | None] = contextvars.ContextVar("convostore_patience", default=None)
"""Whose patience those who wait in a context depend on; None: nobody's."""

Result = TypeVar("Result")


def _within(timeout: float | None, work: Callable[[], Result]) -> Result:
    """Return what work returns, or raise what it raises; SummaryTimedOut where it is not done in time.

    A thread that hangs cannot be ended, only left: it is a daemon, so that it does not keep the process either. So it
    is, by Cancelled, when the context's `PATIENCE` ends.
    """
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()
    patience = PATIENCE.get()
    if patience:
        patience.wake(done)

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the caller's thread
            errors.append(error)
        done.set()

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(run), name="convostore-summarizer", daemon=True).start()
    if not done.wait(None if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
        raise SummaryTimedOut(f"no summary within {timeout:g} s")
    if errors:
        raise errors[0]
    if not results:
        raise Cancelled
    return results[0]


def _cause(error: BaseException) -> str:
    """Return an error's text with that of its own cause; what `normalised` objects to is said in its own words."""
    text = _said(error)
    if type(error) is not ValueError or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if error.__cause__ is not None and _said(error.__cause__):
        text += f" ({_said(error.__cause__)})"
    return cut(text, _CAUSE_LIMIT)


def _said(error: BaseException) -> str:
    try:
        return scrubbed(str(error)).strip()
    except Exception:  # noqa: BLE001 - an error whose text cannot be had is still an error
        return ""


# Asking a model.


def _library() -> ModuleType:
    try:
        import openai
    except ImportError as error:
        raise StoreError(
            "the library that talks to models is not installed; pip install convostore[openai], "
            "or use the extractive summarizer"
        ) from error
    return openai


async def _answer(openai: Any, settings: dict[str, Any], options: dict[str, Any]) -> bytes:
    """Return the body of an answer.

    The library's own time limit is for each read, which a trickle of bytes never exceeds. Cancelling closes the
    connection in the midst of one, so the time for everything is kept here.
    """
    try:
        async with asyncio.timeout(settings["timeout"]):
            return await _body(openai, settings, options)
    except (TimeoutError, openai.APITimeoutError) as error:
        raise SummaryTimedOut(f"no answer within {settings['timeout']:g} s") from error


async def _body(openai: Any, settings: dict[str, Any], options: dict[str, Any]) -> bytes:
    body = bytearray()
    bounded = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_bound]})
    async with (
        openai.AsyncOpenAI(**settings, http_client=bounded) as client,
        client.chat.completions.with_streaming_response.create(**options) as response,
    ):
        async for piece in response.iter_bytes():
            body += piece
            if len(body) > ANSWER_LIMIT:
                raise SummaryGenerationError(f"the answer is longer than {ANSWER_LIMIT:,} bytes")
    return bytes(body)


async def _bound(response: Any) -> None:
    """Keep only the beginning of what an endpoint says of an error or redirection, which the library reads to its end.

    Little of it, since it may be packed.
    """
    if not response.is_success:
        http = sys.modules[type(response).__module__.partition(".")[0]]  # another one by the version of the library
        kept = bytearray()
        async for piece in response.stream:
            kept += piece
            if len(kept) >= ERROR_LIMIT:
                break
        await response.stream.aclose()
        response.stream = http.ByteStream(bytes(kept[:ERROR_LIMIT]))


_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_SENTENCE_ENDS = (*".!?。！？…", *"\"'”’」』)）】`*")


def _text(body: bytes, max_chars: int) -> str:
    """Return the text of an answer, without the thoughts that some models begin it with."""
    choice = _choice(body)
    message = choice.get("message") or {}
    text = _THOUGHT.sub("", content_text(message.get("content"))).strip()
    if choice.get("finish_reason") == "content_filter":
        raise SummaryGenerationError("the answer was withheld by the endpoint's content filter")
    if not text and isinstance(message.get("refusal"), str):
        raise SummaryGenerationError(f"the model refused: {cut(scrubbed(message['refusal']), _CAUSE_LIMIT)}")
    if not text:
        raise SummaryGenerationError(EMPTY)
    if choice.get("finish_reason") == "length" and len(text) < max_chars and not text.endswith(_SENTENCE_ENDS):
        raise SummaryGenerationError("the answer breaks off in a sentence: the model's limit on its output is too low")
    return text


def _choice(body: bytes) -> dict[str, Any]:
    try:
        choice = json.loads(body)["choices"][0]
        if isinstance(choice["message"], dict):
            return dict(choice)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    start = cut(scrubbed(body[:200].decode("utf-8", "replace")), 100)
    raise SummaryGenerationError(f"the answer is no chat completion: {start!r}")
