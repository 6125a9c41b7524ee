"""The example agent on two providers, whose made-up models refuse what the real ones refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from conftest import ROOT

from store import Store
from tests.formats.judge import complaints

pytestmark = pytest.mark.sqlite_only

EXAMPLE = ROOT / "examples" / "two_providers.py"
Message = dict[str, Any]
STEPS: list[list[tuple[str, str]]] = [
    [("write", '{"path": "a.py", "text": "x = 1"}'), ("list", '{"path": "."}')],
    [("find", '{"word": "x"}'), ("read", '{"path": "a.py"}'), ("fly", "{}")],
    [("run", '{"cmd": "echo hi"}'), ("read", "{no json")],
]
"""What the model calls at each step of a turn; the ids of its calls begin anew in each step."""


def chat_chunks(step: int) -> Iterator[Message]:
    """Yield an answer of OpenAI's chat; the arguments of calls come in two pieces."""
    if step == len(STEPS):
        yield {"choices": [{"index": 0, "delta": {"content": "Done."}}]}
    for place, (name, arguments) in enumerate(STEPS[step] if step < len(STEPS) else ()):
        function = {"name": name, "arguments": arguments[:4]}
        call = {"index": place, "id": f"call_{place}", "type": "function", "function": function}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        rest = {"index": place, "function": {"arguments": arguments[4:]}}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [rest]}}]}


def anthropic_chunks(step: int) -> Iterator[Message]:
    """Yield an answer of Anthropic's messages, likewise."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    yield {"type": "message_start", "message": {"model": "m", "usage": usage}}
    blocks: list[tuple[Message, Message]] = [
        (
            {"type": "tool_use", "id": f"call_{place}", "name": name, "input": {}},
            {"type": "input_json_delta", "partial_json": arguments},
        )
        for place, (name, arguments) in enumerate(STEPS[step] if step < len(STEPS) else ())
    ] or [({"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."})]
    for place, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": place, "content_block": block}
        yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 9},
    }


def count_steps(messages: list[Message]) -> int:
    """Return how many answers follow the last input of the user."""
    for number, message in enumerate(reversed(messages)):
        blocks = message["content"] if isinstance(message["content"], list) else []
        if message["role"] == "user" and not any(b["type"] == "tool_result" for b in blocks):
            return sum(each["role"] == "assistant" for each in messages[len(messages) - number :])
    raise AssertionError("nobody has asked")


class Models(BaseHTTPRequestHandler):
    """Both providers; a request that one of them would refuse is noted."""

    refused: list[str]
    asked: list[str]
    cut_at: int | None
    is_cut: Event

    def do_POST(self) -> None:
        """Answer a request in chunks; break off within the answer that is to be cut."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = self.path.strip("/")
        form = {"openai": "function", "anthropic": "input_schema"}[name]
        self.refused += complaints(name, body["messages"], body.get("system"))
        self.refused += [f"tool {each}" for each in body["tools"] if form not in each]
        self.asked.append(name)
        step = count_steps(body["messages"])
        chunks = [*(chat_chunks if name == "openai" else anthropic_chunks)(step)]
        lines = b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in chunks)
        self.send_response(200)
        self.send_header("content-length", str(len(lines)))
        self.end_headers()
        if len(self.asked) != self.cut_at:
            self.wfile.write(lines)
            return
        self.wfile.write(lines[: len(lines) // 2])
        self.wfile.flush()
        self.is_cut.set()
        self.rfile.read(1)  # until the client is killed

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def models() -> Iterator[tuple[type[Models], str]]:
    """Serve both providers."""
    handler = type("Handler", (Models,), {"refused": [], "asked": [], "cut_at": None})
    handler.is_cut = Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def start(folder: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    """Start the example."""
    told = {
        f"{name.upper()}_{key}": f"{url}/{name}" if key == "URL" else "x"
        for name in ("openai", "anthropic")
        for key in ("URL", "MODEL", "API_KEY")
    }
    environment = {**os.environ, **told, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-B", str(EXAMPLE), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)


@pytest.mark.slow
def test_no_request_is_refused(tmp_path: Path, models: tuple[type[Models], str]) -> None:
    """Turn by turn on both; killed within an answer of one, the agent goes on with the other."""
    handler, url = models
    for provider in ("openai", "anthropic", "openai"):
        assert start(tmp_path, url, provider, f"Ask {provider}.").communicate() == ("Done.", "")
    handler.cut_at = len(handler.asked) + 3
    with start(tmp_path, url, "anthropic", "Once more.") as killed:
        assert handler.is_cut.wait(30)
        killed.kill()
    assert start(tmp_path, url, "openai").communicate() == ("Done.", "")
    assert handler.refused == []
    assert len(handler.asked) >= 4 * (len(STEPS) + 1)
    with Store(tmp_path / "chat.db") as store:
        assert store.verify() == []
        assert store.drafts("a") == []
        assert store.open_calls("a") == []
        failed = [each.name for each in store.calls("a", failed=True)]
        assert failed == ["fly", "read"] * 4
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 60
