"""What each kind's files tell, found by importing one: the table of docs/transcripts.md."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from fuller import write_fuller
from kind_checks import write_rows
from made_up import SAMPLES

from store import Policy, Store
from store.importing import import_file
from store.transcripts import (
    TRANSCRIPT_KINDS,
    SessionEvent,
    SessionMessage,
    get_fields,
)
from store.transcripts.kinds import TranscriptKind

PAGE = ROOT / "docs/transcripts.md"
BEGIN, END = (
    "<!-- facts: written by tests/transcripts/test_transcript_facts.py -->\n",
    "<!-- end of facts -->",
)
FACTS = (
    *("title", "folder", "model", "times", "calls", "results", "thoughts", "pictures"),
    *("tokens", "cached", "linked"),
)
RAW = Policy.named("raw")
NEWEST = (time.time() - 60) * 1000
"""The last time (ms) that a file can tell; messages without one are stored later."""
NOT_IN_FILES = {
    "adk": "folder",
    "agent_bench": "folder model times calls results thoughts pictures tokens cached linked",
    "aider": "calls results thoughts pictures cached linked",
    "amp": "",
    "anthropic": "linked",
    "antigravity": "",
    "chatgpt": "folder tokens cached",
    "claude_ai": "folder model tokens cached",
    "claude_code": "",
    "codex": "",
    "continue_dev": "times",
    "copilot_cli": "",
    "cursor": "",
    "cursor_cli": "tokens cached",
    "droid": "",
    "exchanges": "title folder",
    "frameworks": "folder",
    "gemini_cli": "",
    "gemini_takeout": "title folder model calls results thoughts tokens cached",
    "goose": "",
    "grok_build": "",
    "hermes": "",
    "inspect": "folder",
    "kimi": "",
    "kiro": "",
    "langgraph": "",
    "librechat": "folder",
    "llm": "folder",
    "mini_swe_agent": "",
    "moatless": "",
    "moss": "folder model times pictures tokens cached linked",
    "oasst": "folder calls results thoughts pictures tokens cached",
    "open_webui": "folder",
    "openai": "linked",
    "openai_agents": "folder",
    "opencode": "",
    "openhands": "",
    "pi": "",
    "qwen_code": "",
    "responses": "title folder linked",
    "sharegpt": "folder times tokens cached linked",
    "stream_json": "",
    "swe_agent": "",
    "tau2_bench": "folder",
    "tau_bench": "folder",
    "toolbench": "folder",
    "traces": "title folder",
    "vscode_chat": "",
}
"""Kind → facts that its program writes into no file that is read."""


def facts_of(store: Store, name: str) -> Iterator[str]:
    """Yield what a session tells."""
    session = store.session(name)
    usages, metadata = store.usages(name), session.metadata
    told = {
        "title": has_title_of_its_own(store, session),
        "folder": session.project_root,
        "model": metadata.get("model") or any(each.model for each in usages),
        "tokens": usages,
        "cached": any(each.cached for each in usages),
        "linked": "parent_session" in metadata or store.compactions(name),
    }
    yield from (fact for fact, held in told.items() if held)
    for stored in store.messages(name):
        yield from facts_of_message(stored.message)
        if stored.stored_at < NEWEST:
            yield "times"
    for sent in store.view(name, RAW).messages:  # calls and results of providers' own formats
        yield from facts_of_message(sent)


def has_title_of_its_own(store: Store, session: Any) -> bool:
    """Tell whether a title is more than the beginning of what was asked."""
    asked = json.dumps([each.message for each in store.messages(session.id)])
    return bool(session.title) and json.dumps(session.title)[1:-1].rstrip(".…") not in asked


def facts_of_message(message: dict[str, Any]) -> Iterator[str]:
    """Yield what a message tells."""
    keys = {
        "times": ("timestamp",),
        "calls": ("tool_calls",),
        "results": ("tool_call_id",),
        "thoughts": ("reasoning_content", "thinking_blocks", "reasoning_items"),
    }
    yield from (fact for fact, names in keys.items() if any(map(message.get, names)))
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    types = {get_fields(part).get("type") for part in parts}
    if types & {"image_url", "image", "input_image"}:
        yield "pictures"
    if types & {"thinking", "redacted_thinking"} or message.get("type") == "reasoning":
        yield "thoughts"


def write_sample(kind: str, folder: Path) -> Path:
    """Write the made-up file of a kind."""
    folder.mkdir(parents=True)
    path: Any = SAMPLES[kind](folder / "sample")
    return path if isinstance(path, Path) else next(folder.glob("*"))


def facts_of_file(path: Path, kind: str) -> set[str]:
    """Return what a file tells."""
    with Store(":memory:", durability="normal") as store:
        names = [each.id for each in import_file(store, path, kind=kind).sessions]
        found = {fact for name in names for fact in facts_of(store, name)}
    return found | ({"linked"} if len(names) > 1 and TRANSCRIPT_KINDS[kind].linked else set())


def table(folder: Path) -> str:
    """Return the table, from a file of each kind."""
    lines = [f"| kind | {' | '.join(FACTS)} |", f"| --- |{' --- |' * len(FACTS)}"]
    for kind, absent in NOT_IN_FILES.items():
        paths = [write_sample(kind, folder / kind), *write_fuller(kind, folder / kind)]
        found = {fact for path in paths for fact in facts_of_file(path, kind)}
        assert not found & {*absent.split()}, f"{kind} tells {found & {*absent.split()}}"
        cells = [
            "✓" if fact in found else "not in their files" if fact in absent.split() else "–"
            for fact in FACTS
        ]
        lines.append(f"| `{kind}` | {' | '.join(cells)} |")
    return "\n".join([*lines[:2], *sorted(lines[2:])])


@pytest.mark.sqlite_only
@pytest.mark.parametrize("kind", ["codex", "claude_code"])
def test_costs_of_a_growing_file_are_those_of_the_whole(tmp_path: Path, kind: str) -> None:
    """Though a file tells them after the answer, or more of them than before."""
    whole_path, *_ = write_fuller(kind, tmp_path)
    rows = [json.loads(line) for line in whole_path.read_text().splitlines()]
    path = tmp_path / "growing.jsonl"
    with Store(":memory:") as grown, Store(":memory:") as whole:
        for end in range(3, len(rows) + 1):
            import_file(grown, write_rows(path, rows[:end]), kind=kind)
        import_file(whole, path)
        spent = [[each[2:8] for each in store.usages()] for store in (grown, whole)]
    assert spent[0] == spent[1] != []


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_the_table_of_facts_is_what_imports_tell(tmp_path: Path) -> None:
    """Written anew with CONVOSTORE_WRITE_FACTS=1."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    fresh = f"{before}{BEGIN}\n{table(tmp_path)}\n\n{END}{after}"
    if os.environ.get("CONVOSTORE_WRITE_FACTS"):
        PAGE.write_text(fresh, "utf-8")
    assert PAGE.read_text("utf-8") == fresh


def test_a_kind_is_ten_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells a value, what reads a file, and a row of the table."""

    def parse(source: Any) -> Any:
        yield SessionEvent(source.stem, None, None, {})
        for line in source.values():
            role = "assistant" if line.value["who"] == "bot" else "user"
            yield SessionMessage({"role": role, "content": line.value["what"]})

    kind = TranscriptKind("'who' said 'what'", lambda value: "who" in get_fields(value), parse)
    monkeypatch.setitem(TRANSCRIPT_KINDS, "room", kind)
    path = tmp_path / "room.jsonl"
    path.write_text('{"who": "ann", "what": "Hi"}\n{"who": "bot", "what": "Yes?"}\n')
    with Store(":memory:") as store:
        assert import_file(store, path).kind == "room"
        assert [each.message["content"] for each in store.messages("room")] == ["Hi", "Yes?"]
        assert [each.appended for each in import_file(store, path).sessions] == [0]
