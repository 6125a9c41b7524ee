"""A model on loopback for the examples of pages: it answers how many messages it was sent."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 100, "output_tokens": 5}


class Answers(BaseHTTPRequestHandler):
    """Answers in the format of the path that is asked."""

    def do_POST(self) -> None:
        """Answer a request."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sent = asked.get("input") or asked.get("contents") or asked["messages"]
        said = f"I was sent {len(sent)} messages."
        body = json.dumps(FORMATS[re.split("[/:]", self.path)[-1]](said)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _respond(said: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": said, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    usage = {
        **USAGE,
        "total_tokens": 105,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "made-up",
        "output": [{**item, "content": [part]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _complete(said: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": said}
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 0,
        "model": "made-up",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }


def _generate(said: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": said}]}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "made-up"}


FORMATS = {"responses": _respond, "completions": _complete, "generateContent": _generate}
"""By the last part of the path: what builds an answer with a text."""


@contextmanager
def serve_model() -> Iterator[str]:
    """Give the base URL of a model that answers until the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
