"""A coding agent with five tools: python two_providers.py openai|anthropic [QUESTION].

Without a question it goes on, also after a kill. OPENAI_URL, _MODEL and _API_KEY say who answers.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from store import Context, Policy, Store

POLICY, SYSTEM = Policy.named("agent"), "You are a careful engineer. Read before you write."
TOOLS: dict[str, tuple[Any, str]] = {
    "read": (lambda path: Path(path).read_text("utf-8", "replace"), "path"),
    "write": (lambda path, text: Path(path).write_text(text, "utf-8"), "path text"),
    "list": (lambda path: sorted(map(str, Path(path).iterdir())), "path"),
    "find": (lambda word: [str(p) for p in Path().rglob("*.py") if word in p.read_text()], "word"),
    "run": (subprocess.getoutput, "cmd"),
}
KEYS = {name: {key: {} for key in keys.split()} for name, (_, keys) in TOOLS.items()}
SCHEMAS = {name: {"type": "object", "properties": keys} for name, keys in KEYS.items()}
DEFINITIONS = [{"name": name, "parameters": schema} for name, schema in SCHEMAS.items()]


def send(to: str, request: Context) -> Iterator[dict[str, Any]]:
    """Send a request and yield the chunks of the answer."""
    key, model, url = (os.environ[f"{to.upper()}_{n}"] for n in ("API_KEY", "MODEL", "URL"))
    body = {"model": model, "messages": request.messages, "tools": request.tools, "stream": True}
    body |= {"system": request.system, "max_tokens": 8192} if to == "anthropic" else {}
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    headers |= {"x-api-key": key, "authorization": f"Bearer {key}"}
    lines = urlopen(Request(url, json.dumps(body).encode(), headers))
    yield from (json.loads(line[6:]) for line in lines if line.startswith(b"data: {"))


with Store("chat.db") as store:
    store.create_session("a", exist_ok=True)
    for draft in store.drafts("a"):
        store.discard_draft(draft.draft)
    for text in sys.argv[2:]:
        store.append("a", {"role": "user", "content": text})
    while True:
        for call in store.open_calls("a"):
            try:
                said = str(TOOLS[call.name or ""][0](**call.arguments))
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is a result too
                said = f"Error: {error!r}"
            store.append("a", {"role": "tool", "tool_call_id": call.id, "content": said})
        store.compact_if_needed("a", POLICY)
        request = store.context("a", SYSTEM, DEFINITIONS, policy=POLICY, format=sys.argv[1])
        if not request.open_turn:
            break
        with store.streaming("a", {"role": "assistant"}) as answer:
            for chunk in send(sys.argv[1], request):
                print(answer.take(chunk), end="", flush=True)
