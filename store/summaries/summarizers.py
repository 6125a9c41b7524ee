"""Summarizers turn a request into a summary; `call_summarizer` runs them, and no failure escapes.

A summarizer is foreign code: a model on a network, or a host's own function. `call_summarizer`
gives it a thread and a deadline, and whatever it does then, the caller has a clean `Summary` or a
`SummaryGenerationError`. Nothing here knows databases.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import re
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import isawaitable
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from ..cancellation import CURRENT_CALLER, Cancelled, wake_on_leave
from ..errors import (
    InvalidValue,
    StoreError,
    SummaryGenerationError,
    SummaryTimedOut,
    describe_origin,
    quote_value,
)
from ..messages import extract_content_text
from ..phrases import Language, render_phrase
from .extractive_summary import complete_summary, extractive
from .message_texts import cut_at_line_end, scrub_text
from .summary import Summarizer, Summary, SummaryRequest, normalize_summary

TIMEOUT = 120.0
"""Seconds a summary may take."""
TEMPERATURE = 0.3
"""The temperature at which a model is asked for a summary."""
RETRIES = 2
"""How often a request that failed in transit is sent again, within the same time."""

MAX_TOKENS = 16_000
"""Tokens of an answer with its thoughts, at most, where an API has to be told."""

TIMEOUT_GRACE = 0.5
"""Seconds an overdue connection has to be closed properly before its thread is abandoned."""

ANSWER_LIMIT = 8 * 1024 * 1024
"""Bytes of an answer after which it is no longer read: no summary is that long."""

ERROR_LIMIT = 16 * 1024
"""Bytes that are read of the body of an error, compressed as they come."""

LONGEST_CHAIN = 8
"""Causes of an exception that are described, at most."""

_CAUSE_LIMIT = 500
"""Code points of the description of each."""


def call_summarizer(
    summarizer: Summarizer, request: SummaryRequest, timeout: float | None = TIMEOUT
) -> Summary:
    """Return the summary that a summarizer makes, checked, cleaned and cut to the request's limit.

    It runs in a thread of its own, which is abandoned after ``timeout`` seconds (None: no limit).
    Raises SummaryTimedOut then, and SummaryGenerationError for any other failure, with the texts of
    all causes. KeyboardInterrupt and SystemExit pass through, from either
    thread, and so does Cancelled.
    """
    try:
        return _run_in_thread(timeout, lambda: _make_summary(summarizer, request, timeout))
    except (SummaryGenerationError, KeyboardInterrupt, SystemExit, Cancelled):
        raise
    except BaseException as error:
        failed = SummaryGenerationError(describe_causes(error))
        failed.origin = describe_origin(error)
        raise failed from error


def _make_summary(
    summarizer: Summarizer, request: SummaryRequest, timeout: float | None
) -> Summary:
    if summarizer is extractive:
        return extractive(request)
    # If no task waits, or the value is not awaitable, it is returned as it is.
    value = summarizer(request)
    caller = CURRENT_CALLER.get()
    if caller and caller.finish and isawaitable(value):
        result = caller.finish(value, timeout)
    else:
        result = value
    try:
        summary = normalize_summary(result, request)
    except ValueError as problem:
        raise SummaryGenerationError(str(problem)) from problem
    return complete_summary(summary, request)


def describe_causes(error: BaseException) -> str:
    """Return the text of an exception, and after it the text of each of its causes.

    An exception of a host or a library may quote a request, and so the words of a user. The texts
    go where the messages are, into the database, and to a caller who asks for everything in the
    log.
    """
    texts: list[str] = []
    seen: dict[int, BaseException] = {}
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen and len(seen) < LONGEST_CHAIN:
        seen[id(cause)] = cause
        kind = type(cause).__name__
        try:
            text = scrub_text(str(cause)).strip()
        except Exception:  # noqa: BLE001 - an error whose text cannot be had is still an error
            text = ""
        texts.append(cut_at_line_end(f"{kind}: {text}" if text else kind, _CAUSE_LIMIT))
        is_explicit = cause.__cause__ is not None or cause.__suppress_context__
        cause = cause.__cause__ if is_explicit else cause.__context__
    return "; caused by ".join(texts)


def chat_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float | None = TEMPERATURE,
    timeout: float = TIMEOUT,
    max_retries: int = RETRIES,
) -> Summarizer:
    """Return a summarizer that asks a model at any OpenAI-compatible endpoint.

    It sends one user message and no tools. ``base_url`` and ``api_key`` default to OPENAI_BASE_URL
    and OPENAI_API_KEY. ``temperature`` None leaves it to the model, and a model that refuses it is
    asked once more without. ``timeout`` is seconds for everything, retries included, however slowly
    bytes come in.

    An answer cut short by the model's own limit counts only where nothing is lost by it: it fills
    the request's limit anyway, or it ends with a sentence. Raises StoreError where the library is
    not installed.
    """
    client = {"base_url": base_url, "api_key": api_key, "timeout": timeout}
    options: dict[str, Any] = {"model": model}
    if temperature is not None:
        options["temperature"] = temperature
    return _build_summarizer(CHAT_COMPLETIONS, {**client, "max_retries": max_retries}, options)


def anthropic_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float | None = None,
    max_tokens: int = MAX_TOKENS,
    timeout: float = TIMEOUT,
    max_retries: int = RETRIES,
) -> Summarizer:
    """Return a summarizer that asks a model of Anthropic's API, or of a compatible one.

    It asks as `chat_model` does, with the same limits and errors. ``base_url`` and ``api_key``
    default to ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY. ``temperature`` is left to the model, since
    newer ones refuse any. ``max_tokens`` bounds an answer with its thoughts, which are left out of
    the summary. Raises StoreError where the library is not installed.
    """
    client = {"base_url": base_url, "api_key": api_key, "timeout": timeout}
    options: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
    if temperature is not None:  # newer versions of the library have no argument for it
        options["extra_body"] = {"temperature": temperature}
    return _build_summarizer(ANTHROPIC_MESSAGES, {**client, "max_retries": max_retries}, options)


class NamedSummarizer(NamedTuple):
    """A summarizer with a name: its spelling, its needs, and the function that makes it."""

    spelled: str
    needs: str
    make: Callable[..., Summarizer]


NAMED_SUMMARIZERS = {
    "extractive": NamedSummarizer("extractive", "no model", lambda _, **__: extractive),
    "openai:": NamedSummarizer("openai:MODEL", "any OpenAI-compatible endpoint", chat_model),
    "anthropic:": NamedSummarizer("anthropic:MODEL", "Anthropic's API", anthropic_model),
}
"""Summarizers by the beginnings of their names; after a colon comes the name of a model."""


def named(
    name: str,
    *,
    base_url: str | None = None,
    timeout: float = TIMEOUT,
) -> Summarizer:
    """Return a summarizer by name: ``extractive``, ``openai:MODEL`` or ``anthropic:MODEL``.

    A model's key comes from the environment, and so does its address without ``base_url``;
    ``timeout`` is the seconds it has. Raises InvalidValue for any other name and for an address
    without a model, StoreError where the library that talks to models is not installed.
    """
    kind, colon, model = name.partition(":")
    found = NAMED_SUMMARIZERS.get(kind + colon)
    model = model.strip()
    if found is None or bool(colon) != bool(model):
        known = ", ".join(each.spelled for each in NAMED_SUMMARIZERS.values())
        raise InvalidValue(f"no summarizer is named {quote_value(name)}; there are {known}")
    if base_url is not None and not model:
        raise InvalidValue(f"a base URL is for a model, such as openai:MODEL, not for {name}")
    return found.make(model, base_url=base_url, timeout=timeout)


# Running a stranger.


ThreadWorkT = TypeVar("ThreadWorkT")


class _Thread(Generic[ThreadWorkT]):
    """Work in a thread of its own, in the context of its caller.

    A thread that hangs cannot be ended, only abandoned: it is a daemon, so that it does not keep
    the process alive either.
    """

    def __init__(self, work: Callable[[], ThreadWorkT]) -> None:
        self.done = threading.Event()
        self._work = work
        self._results: list[ThreadWorkT] = []
        self._errors: list[BaseException] = []
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=lambda: context.run(self._run), name="convostore-summarizer", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def result(self) -> ThreadWorkT:
        """Return the result of the work, or raise its error.

        Raises Cancelled where it is not done.
        """
        if self._errors:
            raise self._errors[0]
        if not self._results:
            raise Cancelled
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the caller's thread
            self._errors.append(error)
        self.done.set()


def _run_in_thread(timeout: float | None, work: Callable[[], ThreadWorkT]) -> ThreadWorkT:
    """Return the result of the work, or raise its error.

    Raises SummaryTimedOut where it is not done in time, and Cancelled where the caller leaves
    before that.
    """
    running = _Thread(work)
    running.start()
    seconds = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
    with wake_on_leave(running.done.set, always=True):
        is_done = running.done.wait(seconds)
    if not is_done:
        raise SummaryTimedOut(f"no summary within {timeout:g} s")
    return running.result()


# Asking a model.


class ModelApi(NamedTuple):
    """An API that models answer by: its client library, as that calls it, and its answers.

    ``find_choice`` returns an answer as a choice of OpenAI's chat completions.
    """

    library: str
    client: str
    resource: str
    answer: str
    find_choice: Callable[[Any], dict[str, Any]]


CHAT_COMPLETIONS = ModelApi(
    "openai",
    "AsyncOpenAI",
    "chat.completions",
    "chat completion",
    lambda answer: dict(answer["choices"][0]),
)

STOP_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Why an answer of Anthropic's API is not whole, and how a chat completion says it."""


def _find_anthropic_choice(answer: Any) -> dict[str, Any]:
    texts = [part for part in answer["content"] if part["type"] == "text"]
    reason = STOP_REASONS.get(answer["stop_reason"])
    return {"message": {"content": texts}, "finish_reason": reason}


ANTHROPIC_MESSAGES = ModelApi(
    "anthropic", "AsyncAnthropic", "messages", "message", _find_anthropic_choice
)


def _build_summarizer(api: ModelApi, client: dict[str, Any], options: dict[str, Any]) -> Summarizer:
    """Return a summarizer that asks a model by an API."""
    try:
        library = import_module(api.library)
    except ImportError as error:
        raise StoreError(
            "the client library for models is not installed; "
            f"pip install convostore[{api.library}], or use the extractive summarizer"
        ) from error
    timeout = client["timeout"]

    def summarize(request: SummaryRequest) -> Summary:
        prompt = {"role": "user", "content": scrub_text(request.prompt)}
        work = partial(_request_answer, library, api, client, {**options, "messages": [prompt]})
        body = _run_in_thread(timeout + TIMEOUT_GRACE, lambda: asyncio.run(work()))
        text = _read_answer(body, api, request.max_chars, request.policy.language)
        return Summary(text, model=options["model"])

    return summarize


async def _request_answer(
    library: Any, api: ModelApi, client: dict[str, Any], options: dict[str, Any]
) -> bytes:
    """Return the body of an answer; a model that refuses a temperature is asked without one.

    The library's own time limit is for each read, which a trickle of bytes never exceeds.
    Cancelling closes the connection during a read, so the limit for everything is enforced here.
    """
    try:
        async with asyncio.timeout(client["timeout"]):
            bounded = library.DefaultAsyncHttpxClient(event_hooks={"response": [_truncate_error]})
            async with getattr(library, api.client)(**client, http_client=bounded) as opened:
                asked = attrgetter(api.resource)(opened).with_streaming_response
                try:
                    return await _read_body(asked.create(**options))
                except library.BadRequestError as error:
                    if "temperature" not in options or "temperature" not in str(error):
                        raise
                    plain = {name: options[name] for name in options if name != "temperature"}
                    return await _read_body(asked.create(**plain))
    except (TimeoutError, library.APITimeoutError) as error:
        raise SummaryTimedOut(f"no answer within {client['timeout']:g} s") from error


async def _read_body(asked: Any) -> bytes:
    """Return the body of an answer that is awaited."""
    body = bytearray()
    async with asked as response:
        async for piece in response.iter_bytes():
            body += piece
            if len(body) > ANSWER_LIMIT:
                raise SummaryGenerationError(f"the answer is longer than {ANSWER_LIMIT:,} bytes")
    return bytes(body)


async def _truncate_error(response: Any) -> None:
    """Keep only the beginning of the body of an error or a redirection.

    The library would read all of it. Little is kept, since it may be compressed.
    """
    if response.is_success:
        return
    kept = bytearray()
    async for piece in response.stream:
        kept += piece
        if len(kept) >= ERROR_LIMIT:
            break
    await response.stream.aclose()
    # The HTTP library depends on the version of the model's one.
    http_library: Any = sys.modules[type(response).__module__.partition(".")[0]]
    response.stream = http_library.ByteStream(bytes(kept[:ERROR_LIMIT]))


_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_SENTENCE_ENDS = (*".!?。！？…", *"\"'”’」』)）】`*")


def _read_answer(body: bytes, api: ModelApi, max_chars: int, language: Language) -> str:
    """Return the text of an answer, without the thoughts that some models begin it with."""
    choice = _read_choice(body, api)
    message = choice["message"]
    reason = choice.get("finish_reason")
    text = _THOUGHT.sub("", extract_content_text(message.get("content"))).strip()
    if reason == "content_filter":
        raise SummaryGenerationError("the answer was withheld by the endpoint's content filter")
    if not text:
        refusal = message.get("refusal")
        if not isinstance(refusal, str):
            raise SummaryGenerationError(render_phrase("empty_summary", language))
        refusal = cut_at_line_end(scrub_text(refusal), _CAUSE_LIMIT)
        raise SummaryGenerationError(f"the model refused: {refusal}")
    is_whole = len(text) >= max_chars or text.endswith(_SENTENCE_ENDS)
    if reason == "length" and not is_whole:
        raise SummaryGenerationError(
            "the answer breaks off in a sentence: the model's limit on its output is too low"
        )
    return text


def _read_choice(body: bytes, api: ModelApi) -> dict[str, Any]:
    try:
        choice = api.find_choice(json.loads(body))
        if isinstance(choice["message"], dict):
            return choice
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    start = cut_at_line_end(scrub_text(body[:200].decode("utf-8", "replace")), 100)
    raise SummaryGenerationError(f"the answer is no {api.answer}: {start!r}")
