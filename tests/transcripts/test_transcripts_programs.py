"""Programs whose sessions other readers of transcripts know, and what becomes of each here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kind_checks import FORMATS
from made_up import SAMPLES

from store import Store
from store.importing import import_file
from store.transcripts import other_programs

READ = {
    **dict.fromkeys(("claude", "openclaude", "cowork", "iflow", "qoder"), "claude_code"),
    **dict.fromkeys(("codex", "traex"), "codex"),
    **dict.fromkeys(("opencode", "kilo", "mimocode", "icodemate"), "opencode"),
    **dict.fromkeys(("pi", "omp", "openclaw", "qclaw"), "pi"),
    **dict.fromkeys(("kilo-legacy", "roocode", "deepseek-tui"), "anthropic"),
    **dict.fromkeys(("vscode-copilot", "positron"), "vscode_chat"),
    **dict.fromkeys(("gptme", "vibe"), "openai"),
    **dict.fromkeys(("cursor", "windsurf"), "cursor"),
    **dict.fromkeys(("antigravity", "antigravity-cli"), "antigravity"),
    **dict.fromkeys(("kimi", "kimi-work"), "kimi"),
    "claude-ai": "claude_ai",
    "copilot": "copilot_cli",
    "devin": "frameworks",
    "gemini": "gemini_cli",
    "gemini-apps": "gemini_takeout",
    "grok": "grok_build",
    "qwen": "qwen_code",
    "visualstudio-copilot": "traces",
    **{name: name for name in ("aider", "amp", "chatgpt", "goose", "hermes", "kiro", "openhands")},
}
"""Program, by agentsview's names → the kind in whose shape its files are."""
REFUSED = {
    **dict.fromkeys(("codebuff", "freebuff"), "Codebuff or Freebuff"),
    "commandcode": "Command Code",
    "cortex": "Snowflake Cortex",
    "deepseek-harness": "DeepSeek Harness",
    "forge": "Forge",
    "kiro-ide": "Kiro before 1.0",
    "omnigent": "Omnigent",
    "piebald": "Piebald",
    "poolside": "Poolside",
    "posit-assistant": "Posit Assistant",
    "qwenpaw": "QwenPaw",
    "reasonix": "Reasonix, or another program whose tool calls have no 'function'",
    "shelley": "Shelley",
    "trae": "Trae",
    "warp": "Warp",
    "workbuddy": "WorkBuddy",
    "zcode": "ZCode",
    "zed": "Zed",
    "zencoder": "Zencoder",
}
"""Program → the name by which its files are refused."""
UNKNOWN = {"prime"}
"""Programs of which no file and no description was found."""
TXCRIPT = {
    **dict.fromkeys(("pi", "campfire"), "pi"),
    **dict.fromkeys(("claude_code", "cowork"), "claude_code"),
    **{name: name for name in ("amp", "antigravity", "codex", "cursor", "cursor_cli")},
    **{name: name for name in ("hermes", "opencode")},
    "claude_chat": "claude_ai",
    "grok": "grok_build",
    "simple": "anthropic",
}
"""Format that txcript describes → its kind."""


def test_programs_are_read_or_refused_by_name() -> None:
    """Of 64 programs at least 39 are read, and all others but one have a name."""
    assert len(READ | REFUSED | dict.fromkeys(UNKNOWN)) == 64
    assert not READ.keys() & REFUSED.keys()
    assert (len(READ), len(REFUSED), len(TXCRIPT)) == (43, 20, 14)
    marks = {mark.program for mark in other_programs.PROGRAM_MARKS}
    calls = {*other_programs.PROGRAM_BY_CALL_KEY.values()}
    states = {*other_programs.PROGRAM_BY_STATE_KEY.values()}
    assert {*REFUSED.values()} <= marks | calls | states | other_programs.COLUMNS_BY_PROGRAM.keys()


@pytest.mark.sqlite_only
@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", sorted({*READ.values(), *TXCRIPT.values()}))
def test_no_request_of_a_kind_is_empty(tmp_path: Path, kind: str) -> None:
    """What its file says, calls and answers is in a request of each format."""
    path: Any = SAMPLES[kind](tmp_path / "sample")
    path = path if isinstance(path, Path) else next(tmp_path.iterdir())
    with Store(":memory:") as store:
        report = import_file(store, path)
        assert report.kind == kind
        assert report.sessions
        for each in report.sessions:
            line = [stored.message for stored in store.messages(each.id)]
            calls = {call["id"] for said in line for call in said.get("tool_calls", ())}
            results = {said.get("tool_call_id") for said in line if said["role"] == "tool"}
            assert results <= calls
            assert all(store.view(each.id, format=form).messages for form in FORMATS)
