"""Summarizers: a real server plays the model, well and badly.

Nothing but our own error gets past `call_summarizer`.
"""

from __future__ import annotations

import contextvars
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest

from store import Policy
from store.cancellation import CURRENT_CALLER, Caller, Cancelled
from store.errors import CompactionError, InvalidValue, StoreError
from store.summaries import (
    EMPTY_SUMMARY_ERROR,
    NAMED_SUMMARIZERS,
    FileChange,
    KeyAction,
    Summarizer,
    Summary,
    SummaryRequest,
    build_title,
    extractive,
    render_summary,
)
from store.summaries.summarizers import (
    SummaryGenerationError,
    SummaryTimedOut,
    anthropic_model,
    call_summarizer,
    chat_model,
    describe_causes,
    named,
)

PATIENCE = 30.0
"""Seconds after which a deadline of half a second counts as not kept, on however busy a machine."""


def request(**fields: Any) -> SummaryRequest:
    """Return a request with a prompt, other fields as given."""
    given: dict[str, Any] = {
        "messages": [],
        "previous_summary": None,
        "transcript": "",
        "prompt": "请压缩：{braces}",
        "max_chars": 1500,
        "policy": Policy(),
    }
    return SummaryRequest(**{**given, "first": 1, "last": 1, **fields})


# --- the server -----------------------------------------------------------------------------------


class Model(ThreadingHTTPServer):
    """An endpoint whose behaviour is a function of the open request; it keeps what it was asked."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, behave: Callable[[Handler], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave = behave
        self.asked: list[dict[str, Any]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""


class Handler(BaseHTTPRequestHandler):
    """One request: it is read whole, then the server's behaviour answers."""

    server: Model

    def do_POST(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(
            {
                "path": self.path,
                "key": self.headers["Authorization"] or f"Bearer {self.headers['X-Api-Key']}",
                **json.loads(body),
            }
        )
        with suppress(OSError):
            self.server.behave(self)

    def send(self, body: bytes, status: int = 200, *, length: int | None = None) -> None:
        """Send a whole response, with a false length if one is given."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Keep the tests' output clean."""


def completion(content: Any, finish_reason: str = "stop", **message: Any) -> bytes:
    """Return the JSON of an answer."""
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content, **message},
    }
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    ).encode()


Serve = Callable[[Callable[[Handler], None]], Model]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start servers that behave as told, and stop them all."""
    pytest.importorskip("openai")
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
        monkeypatch.delenv(proxy.lower(), raising=False)
    servers: list[Model] = []

    def start(behave: Callable[[Handler], None]) -> Model:
        servers.append(Model(behave))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.over.set()
        server.shutdown()
        server.server_close()


def ask(
    server: Model,
    *,
    timeout: float = PATIENCE,
    max_chars: int = 1500,
    make: Callable[..., Summarizer] = chat_model,
    **options: Any,
) -> Summary:
    """Ask the model behind a server, through `call_summarizer`."""
    options = {
        "base_url": server.url if make is chat_model else server.url.removesuffix("/v1"),
        "api_key": "k",
        "timeout": timeout,
        "max_retries": 0,
        **options,
    }
    return call_summarizer(
        make("m-1", **options), request(max_chars=max_chars), timeout=2 * PATIENCE
    )


# --- a model that answers -------------------------------------------------------------------------


def test_the_text_of_the_model_is_the_summary(serve: Serve) -> None:
    """What the model says is the summary, its name stands with it (S2.39)."""
    server = serve(lambda handler: handler.send(completion("对话摘要：用户想要数据库。")))
    said = ask(server)
    assert (render_summary(said), said.model) == ("对话摘要：用户想要数据库。", "m-1")


def test_a_request_is_one_user_message_without_tools(serve: Serve) -> None:
    """One user message holding the prompt, temperature 0.3, no tools, nothing streamed (S2.19)."""
    server = serve(lambda handler: handler.send(completion("x")))
    ask(server)
    assert server.asked == [
        {
            "path": "/v1/chat/completions",
            "key": "Bearer k",
            "model": "m-1",
            "temperature": 0.3,
            "messages": [{"role": "user", "content": "请压缩：{braces}"}],
        }
    ]


def test_the_temperature_can_be_left_to_the_model(serve: Serve) -> None:
    """Some models refuse any temperature."""
    server = serve(lambda handler: handler.send(completion("x")))
    ask(server, temperature=None)
    assert "temperature" not in server.asked[0]


@pytest.mark.parametrize(
    ("refused", "asked"), [("temperature", [0.3, None]), ("max_tokens", [0.3])], ids=str
)
def test_a_model_that_refuses_a_temperature_is_asked_without_one(
    serve: Serve, refused: str, asked: list[float | None]
) -> None:
    """As reasoning models do; what is wrong with a request otherwise is not asked twice."""

    def behave(handler: Handler) -> None:
        if refused in handler.server.asked[-1] or refused == "max_tokens":
            problem = f"Unsupported value: '{refused}' does not support 0.3 with this model."
            handler.send(json.dumps({"error": {"message": problem}}).encode(), 400)
        else:
            handler.send(completion("It works."))

    server = serve(behave)
    outcome = nullcontext() if len(asked) > 1 else pytest.raises(SummaryGenerationError)
    with outcome:
        assert render_summary(ask(server)) == "It works."
    assert [each.get("temperature") for each in server.asked] == asked


def test_a_prompt_of_broken_text_is_sent(serve: Serve) -> None:
    """Lone surrogates, which no wire takes, do not stop a summary."""
    server = serve(lambda handler: handler.send(completion("x")))
    summarizer = chat_model("m", base_url=server.url, api_key="k", max_retries=0)
    assert call_summarizer(summarizer, request(prompt="a\ud800b\0c")).body == "x"
    assert server.asked[0]["messages"][0]["content"] == "a\ufffdbc"


@pytest.mark.slow
def test_a_failed_request_is_sent_again(serve: Serve) -> None:
    """A passing trouble of the endpoint is survived by asking once more."""

    def behave(handler: Handler) -> None:
        first = len(handler.server.asked) == 1
        handler.send(b"{}", 503) if first else handler.send(completion("well"))

    assert ask(serve(behave), max_retries=1).body == "well"


def test_a_slow_answer_in_time_counts(serve: Serve) -> None:
    """Slow is no failure."""

    def behave(handler: Handler) -> None:
        time.sleep(0.1)
        handler.send(completion("late, but here"))

    assert ask(serve(behave)).body == "late, but here"


GOOD = [
    (completion("<think>\nlong thoughts</think>\n\nthe summary"), "the summary"),
    (completion([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]), "in parts"),
    (
        completion(
            "text", tool_calls=[{"id": "1", "type": "function", "function": {"name": "rm"}}]
        ),
        "text",
    ),
    (completion("a\u001b[31mb\u0000c\r\nd\ud800e"), "a[31mbc\nd\ufffde"),
    (completion("It ends well.", "length"), "It ends well."),
    (completion("长" * 3000, "length"), "长" * 1497 + "..."),
    (completion("x" * 1_000_000), "x" * 1497 + "..."),
]


@pytest.mark.parametrize(("answer", "body"), GOOD)
def test_answers_are_cleaned_and_cut(serve: Serve, answer: bytes, body: str) -> None:
    """Thoughts, control characters, unasked-for tool calls and too much text do no harm."""
    assert ask(serve(lambda handler: handler.send(answer))).body == body


# --- a model that does not ------------------------------------------------------------------------

BAD = [
    pytest.param(completion(""), 200, EMPTY_SUMMARY_ERROR, id="empty"),
    pytest.param(completion(" \n\t\u3000\u200b "), 200, EMPTY_SUMMARY_ERROR, id="whitespace"),
    pytest.param(completion("对话摘要："), 200, EMPTY_SUMMARY_ERROR, id="label"),
    pytest.param(completion(None), 200, EMPTY_SUMMARY_ERROR, id="null"),
    pytest.param(
        completion("<think>and no end", "length"), 200, EMPTY_SUMMARY_ERROR, id="thoughts"
    ),
    pytest.param(
        completion(None, "tool_calls", tool_calls=[{"id": "1"}]),
        200,
        EMPTY_SUMMARY_ERROR,
        id="tool call",
    ),
    pytest.param(completion("half a sent", "length"), 200, "breaks off", id="cut short"),
    pytest.param(completion("x", "content_filter"), 200, "content filter", id="filtered"),
    pytest.param(completion(None, refusal="I will not"), 200, "I will not", id="refused"),
    pytest.param(b'{"error": {"message": "boiler on fire"}}', 500, "boiler on fire", id="500"),
    pytest.param(b'{"error": {"message": "no such key"}}', 401, "no such key", id="401"),
    pytest.param(b"<html>502</html>", 502, "502", id="502"),
    pytest.param(b'{"choices": [{"mess', 200, "no chat completion", id="invalid JSON"),
    pytest.param(b"", 200, "no chat completion", id="no body"),
    pytest.param(b'{"choices": []}', 200, "no chat completion", id="no choice"),
    pytest.param(
        b'{"choices": [{"message": "text"}]}', 200, "no chat completion", id="wrong shape"
    ),
    pytest.param(b"[" * 100_000, 200, "no chat completion", id="nested"),
    pytest.param(b"\xff\xfe\x00\x1b[2J", 200, "no chat completion", id="binary"),
    pytest.param(completion("x" * 10_000_000), 200, "longer than", id="10 MB"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("answer", "status", "said"), BAD)
def test_a_bad_answer_is_our_error(serve: Serve, answer: bytes, status: int, said: str) -> None:
    """Whatever a server answers, the error is ours, says the cause in a few words, and is clean
    text.
    """
    with pytest.raises(SummaryGenerationError, match=said) as caught:
        ask(serve(lambda handler: handler.send(answer, status)))
    assert isinstance(caught.value, CompactionError)
    assert len(str(caught.value)) <= 500
    assert "\x1b" not in str(caught.value)


def test_an_empty_answer_is_said_in_the_words_of_the_specification(serve: Serve) -> None:
    """The text of the error is exactly that of S2.20."""
    with pytest.raises(SummaryGenerationError, match=f"^{EMPTY_SUMMARY_ERROR}$"):
        ask(serve(lambda handler: handler.send(completion(" \n"))))


def test_a_truncated_body_is_our_error(serve: Serve) -> None:
    """A connection that ends in the midst of an answer gives no half summary."""
    answer = completion("a summary")
    with pytest.raises(SummaryGenerationError):
        ask(serve(lambda handler: handler.send(answer[:-20], length=len(answer))))


@pytest.mark.parametrize("status", [400, 307])
def test_an_error_that_never_ends_is_read_no_further(serve: Serve, status: int) -> None:
    """A server that goes on talking about what is wrong fills no memory."""
    sent = []

    def flood(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Location", "/elsewhere")
        handler.end_headers()
        while not handler.server.over.is_set():
            handler.wfile.write(b"no such model " * 5000)
            sent.append(70_000)

    with pytest.raises(
        SummaryGenerationError, match="BadRequest" if status == 400 else "redirects"
    ):
        ask(serve(flood), timeout=PATIENCE, max_retries=0)
    assert sum(sent) < 100_000_000


def test_a_connection_closed_unanswered_is_our_error(serve: Serve) -> None:
    """A server that hangs up is one that did not answer."""
    with pytest.raises(SummaryGenerationError):
        ask(serve(lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)))


def test_a_refused_connection_is_our_error() -> None:
    """No server at all: the cause is named."""
    pytest.importorskip("openai")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(SummaryGenerationError, match=r"[Cc]onnection"):
            call_summarizer(chat_model("m", base_url=url, api_key="k", max_retries=0), request())


def hang(handler: Handler) -> None:
    """Answer never."""
    handler.server.over.wait(PATIENCE)


def trickle(handler: Handler) -> None:
    """Send an answer byte by byte, each well before any time limit of a read, and never to its end."""
    handler.send(b"", length=10_000)
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b" ")


def trickle_headers(handler: Handler) -> None:
    """Send the first line of a response, then header after header."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b"X: y\r\n")


def always_busy(handler: Handler) -> None:
    """Ask to be asked again, for ever."""
    handler.send_response(429)
    handler.send_header("Retry-After", "30")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@pytest.mark.slow
@pytest.mark.parametrize("behave", [hang, trickle, trickle_headers, always_busy])
def test_the_time_limit_holds_for_everything_together(
    serve: Serve, behave: Callable[[Handler], None]
) -> None:
    """Hanging, trickling and asking for patience.

    After the time limit it is over, and its thread is gone.
    """
    before = time.monotonic()
    with pytest.raises(SummaryTimedOut, match=r"within 0\.2 s"):
        ask(serve(behave), timeout=0.2, max_retries=5)
    assert time.monotonic() - before < PATIENCE
    assert alive("convostore-summarizer") == 0


def alive(name: str) -> int:
    """Count threads of a name, once those that are ending have had time to."""
    deadline = time.monotonic() + PATIENCE
    while (
        count := sum(thread.name == name for thread in threading.enumerate())
    ) and time.monotonic() < deadline:
        time.sleep(0.01)
    return count


# --- a model behind Anthropic's API ---------------------------------------------------------------


def message(*texts: str, stop_reason: str = "end_turn") -> bytes:
    """Return the JSON of an answer: thoughts, then texts."""
    thoughts = {"type": "thinking", "thinking": "What did they want?", "signature": "s"}
    content = [thoughts, *({"type": "text", "text": text} for text in texts)]
    usage = {"input_tokens": 1, "output_tokens": 1}
    answer = {"id": "1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    return json.dumps({**answer, "content": content, "stop_reason": stop_reason}).encode()


def ask_anthropic(server: Model, **options: Any) -> Summary:
    """Ask the model behind a server that speaks as Anthropic's API."""
    pytest.importorskip("anthropic")
    return ask(server, make=anthropic_model, **options)


@pytest.mark.slow
def test_anthropic_is_asked_as_any_model(serve: Serve) -> None:
    """One user message with the prompt, no tools, nothing streamed; thoughts are no summary."""
    server = serve(lambda handler: handler.send(message("They wanted ", "a database.")))
    said = ask_anthropic(server)
    assert (render_summary(said), said.model) == ("They wanted a database.", "m-1")
    ask_anthropic(server, temperature=0.3, max_tokens=900)
    plain = {
        "path": "/v1/messages",
        "key": "Bearer k",
        "model": "m-1",
        "max_tokens": 16_000,
        "messages": [{"role": "user", "content": "请压缩：{braces}"}],
    }
    assert server.asked == [plain, {**plain, "max_tokens": 900, "temperature": 0.3}]


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        pytest.param(message(), 200, EMPTY_SUMMARY_ERROR, id="thoughts"),
        pytest.param(message("half a sent", stop_reason="max_tokens"), 200, "breaks", id="cut"),
        pytest.param(message("x", stop_reason="refusal"), 200, "content filter", id="refused"),
        pytest.param(
            b'{"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}}',
            529,
            "too busy",
            id="529",
        ),
        pytest.param(completion("x"), 200, "the answer is no message", id="another API"),
        pytest.param(
            b'{"content": ["x"], "stop_reason": 1}', 200, "the answer is no message", id="shape"
        ),
    ],
)
def test_a_bad_answer_of_anthropic_is_our_error(
    serve: Serve, answer: bytes, status: int, said: str
) -> None:
    """As that of any other model."""
    with pytest.raises(SummaryGenerationError, match=said):
        ask_anthropic(serve(lambda handler: handler.send(answer, status)))


def test_the_time_limit_holds_for_anthropic(serve: Serve) -> None:
    """An answer that trickles in is left behind, with its connection."""
    with pytest.raises(SummaryTimedOut, match=r"within 0\.2 s"):
        ask_anthropic(serve(trickle), timeout=0.2)
    assert alive("convostore-summarizer") == 0


def test_anthropic_by_name(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address and key come from the environment; a missing library is said."""
    pytest.importorskip("anthropic")
    server = serve(lambda handler: handler.send(message("x")))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from the environment")
    assert call_summarizer(named("anthropic:m"), request()).body == "x"
    assert server.asked[0]["key"] == "Bearer from the environment"
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(StoreError, match=r"pip install convostore\[anthropic\]"):
        named("anthropic:m")


# --- any summarizer -------------------------------------------------------------------------------


def returns(value: Any) -> Callable[[SummaryRequest], Any]:
    """Return a summarizer that returns a value."""
    return lambda _: value


def raises(error: BaseException) -> Callable[[SummaryRequest], Any]:
    """Return a summarizer that raises."""

    def summarize(_: SummaryRequest) -> str:
        raise error

    return summarize


def test_text_and_summaries_are_both_taken() -> None:
    """A summarizer returns text or a Summary."""
    assert render_summary(call_summarizer(returns("text"), request())) == "text"
    whole = Summary(
        "b", "t", (KeyAction("sh", "ok"),), (FileChange("a.py", "created"),), "m", "p@1"
    )
    assert call_summarizer(returns(whole), request()) == whole
    assert (
        call_summarizer(extractive, request(messages=[{"role": "user", "content": "hi"}])).body
        == "用户: hi"
    )


def test_every_summary_gets_a_title_and_what_was_done() -> None:
    """S3.13, S3.34: for the record; what is shown stays what was written."""
    edit = {"id": "c", "function": {"name": "my_edit", "arguments": '{"file_path": "a.py"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [edit]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    asked = request(
        messages=messages,
        started_at=0,
        ended_at=60_000,
        tool_kinds={"my_edit": "file_edit"},
        policy=Policy(language="en"),
    )
    for given in ("text", Summary("text"), Summary("text", "of the day")):
        made = call_summarizer(returns(given), asked)
        assert made.key_actions == (KeyAction("my_edit", "to modify a.py"),)
        assert made.file_changes == (FileChange("a.py", "modified"),)
        own = isinstance(given, Summary) and given.title
        assert made.title == (own or build_title(0, 60_000))
        assert render_summary(made) == ("# of the day\n\ntext" if own else "text")


class Unspeakable(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError


class Panic(BaseException):
    """What libraries in other languages raise: no Exception."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("boom"), "^RuntimeError: boom$"),
        (KeyError("k"), "^KeyError: 'k'$"),
        (StopIteration(), "^StopIteration$"),
        (RecursionError("deep"), "deep"),
        (MemoryError(), "MemoryError"),
        (TimeoutError("its own"), "its own"),
        (Unspeakable(), "^Unspeakable$"),
        (Panic("at the core"), "at the core"),
        (ValueError("x" * 10_000), r"^ValueError: x{485}\.\.\.$"),
        (StoreError("no room"), "no room"),
    ],
)
def test_whatever_is_raised_becomes_our_error(error: BaseException, said: str) -> None:
    """The cause's text stays, the cause itself is chained."""
    with pytest.raises(SummaryGenerationError, match=said) as caught:
        call_summarizer(raises(error), request())
    assert caught.value.__cause__ is error


def caused(*errors: BaseException) -> BaseException:
    """Return the first of some errors, each raised from the next."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_all_causes_are_told() -> None:
    """The text has the whole chain, the origin only the type and the place."""
    error = caused(RuntimeError("no answer"), OSError("refused"), KeyError("SECRET"))
    with pytest.raises(SummaryGenerationError) as caught:
        call_summarizer(raises(error), request())
    assert str(caught.value) == (
        "RuntimeError: no answer; caused by OSError: refused; caused by KeyError: 'SECRET'"
    )
    assert str(caught.value.origin).startswith(f"RuntimeError at {__name__}:")


def test_a_chain_ends() -> None:
    """One that goes in a circle, and one that is endless."""
    first, second = RuntimeError("a"), RuntimeError("b")
    with pytest.raises(
        SummaryGenerationError, match=r"^RuntimeError: a; caused by RuntimeE\w+: b$"
    ):
        call_summarizer(raises(caused(first, second, first)), request())
    many = [RuntimeError(str(number)) for number in range(1000)]
    with pytest.raises(SummaryGenerationError) as caught:
        call_summarizer(raises(caused(*many)), request())
    assert str(caught.value).count("caused by") == 7


def test_what_was_being_dealt_with_is_a_cause_unless_it_is_hidden() -> None:
    """As Python itself prints it."""

    def dealt_with(*, hidden: bool) -> BaseException:
        try:
            try:
                raise KeyError("inner")
            except KeyError:
                if hidden:
                    raise RuntimeError("outer") from None
                raise RuntimeError("outer")  # noqa: B904
        except RuntimeError as error:
            return error

    assert describe_causes(dealt_with(hidden=True)) == "RuntimeError: outer"
    assert (
        describe_causes(dealt_with(hidden=False))
        == "RuntimeError: outer; caused by KeyError: 'inner'"
    )


async def unawaited(_: SummaryRequest) -> str:
    """Look like a summarizer, but be an async one."""
    return "x"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", f"^{EMPTY_SUMMARY_ERROR}$"),
        (" \n ", f"^{EMPTY_SUMMARY_ERROR}$"),
        (Summary(" "), f"^{EMPTY_SUMMARY_ERROR}$"),
        (None, "NoneType"),
        (b"bytes", "bytes"),
        (Summary(None), "NoneType"),  # type: ignore[arg-type]
        (Summary("b", title=3), "title"),  # type: ignore[arg-type]
        (Summary("b", key_actions=(1, 2)), "key actions"),  # type: ignore[arg-type]
        (Summary("b", file_changes=("abc",)), "file changes"),  # type: ignore[arg-type]
    ],
)
def test_whatever_is_returned_is_a_summary_or_our_error(value: Any, said: str) -> None:
    """Nothing that is no summary gets through (S2.20, A2.14)."""
    with pytest.raises(SummaryGenerationError, match=said):
        call_summarizer(returns(value), request())


def test_an_async_function_is_named_as_the_mistake() -> None:
    """A coroutine is no summary, and is closed without a warning."""
    with pytest.raises(SummaryGenerationError, match="coroutine"):
        call_summarizer(unawaited, request())  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_users_wish_to_stop_passes_through(error: type[BaseException]) -> None:
    """An interrupt is no failure of a summarizer."""
    with pytest.raises(error):
        call_summarizer(raises(error()), request())


def test_a_hanging_summarizer_is_left_behind() -> None:
    """After the time limit the caller goes on; the thread does not keep the process from ending."""
    release = threading.Event()

    def hanging(_: SummaryRequest) -> str:
        assert threading.current_thread().daemon
        release.wait(PATIENCE)
        return "too late"

    before = time.monotonic()
    with pytest.raises(SummaryTimedOut, match=r"within 0\.2 s"):
        call_summarizer(hanging, request(), timeout=0.2)
    assert time.monotonic() - before < PATIENCE / 2
    release.set()


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_nobody_waits_when_the_caller_has_left(when: str) -> None:
    """Neither who called, nor who waits within the summarizer.

    A summary that is there is still taken.
    """
    caller, inner = Caller(), threading.Event()

    def summarizer(_: SummaryRequest) -> str:
        if when == "meanwhile":
            caller.leave()
        try:
            call_summarizer(lambda _: "x" if inner.wait(PATIENCE) else "y", request(), timeout=None)
        except Cancelled:
            inner.set()
            raise
        return "too late"

    def cancelled() -> None:
        CURRENT_CALLER.set(caller)
        if when == "before":
            caller.leave()
        with pytest.raises(Cancelled):
            call_summarizer(summarizer, request(), timeout=None)

    contextvars.copy_context().run(cancelled)
    assert inner.wait(PATIENCE)


def test_no_time_limit_means_to_wait() -> None:
    """None waits; so does a number that no clock can count to."""
    assert call_summarizer(returns("x"), request(), timeout=None).body == "x"
    assert call_summarizer(returns("x"), request(), timeout=1e300).body == "x"


def test_a_summarizer_sees_the_callers_context() -> None:
    """Context variables, such as tracing uses, reach the thread."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert call_summarizer(lambda _: variable.get(), request()).body == "set"


# --- by name --------------------------------------------------------------------------------------


def test_summarizers_by_name(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line names extractive or a model, whose address and key the environment gives."""
    server = serve(lambda handler: handler.send(completion("x")))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
    assert named("extractive") is extractive
    assert call_summarizer(named("openai:org/model:tag"), request()).model == "org/model:tag"
    assert server.asked[0]["key"] == "Bearer from the environment"


@pytest.mark.parametrize(
    "name", ["", "openai", "openai:", "openai: ", "extractive:x", "anthropic:"]
)
def test_an_unknown_name_says_what_there_is(name: str) -> None:
    """The error names the names."""
    with pytest.raises(InvalidValue, match="extractive, openai:MODEL, anthropic:MODEL"):
        named(name)


def test_a_named_model_takes_an_address_and_a_time(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command gives reaches the model; the extractive summarizer needs no address."""
    server = serve(lambda handler: handler.send(completion("x")))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    summarizer = named("openai:m", base_url=server.url, timeout=PATIENCE)
    assert call_summarizer(summarizer, request()).body == "x"
    with pytest.raises(InvalidValue, match="a base URL is for a model, such as openai:MODEL"):
        named("extractive", base_url=server.url)


def test_each_summarizer_of_the_table_is_written_as_it_begins() -> None:
    """Messages and help name what the table knows, as it is found there."""
    for name, row in NAMED_SUMMARIZERS.items():
        assert row.spelled.startswith(name)
        assert row.needs


def test_a_missing_library_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, a chat model cannot be made; the rest of the module works."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(StoreError, match=r"pip install convostore\[openai\]"):
        chat_model("m")
    assert named("extractive") is extractive


def test_a_missing_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key the library's own words say which variable to set."""
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SummaryGenerationError, match="OPENAI_API_KEY"):
        call_summarizer(chat_model("m", base_url="http://127.0.0.1:9/v1"), request())
