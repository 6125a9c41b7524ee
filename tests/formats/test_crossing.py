"""Recorded conversations, judged in every format; `python -m tests.formats` judges all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from crossing import requests
from judge import JUDGES

from store.policy import POLICIES

pytestmark = [needs_transcripts, pytest.mark.sqlite_only]

SOME = (
    "anthropic_messages_http",
    "claude_code_jsonl",
    "gemini_cli_chat",
    "openai_responses_http",
)
"""Folders of which the smallest file is judged."""


def smallest(folder: str) -> Path:
    """The smallest file of a folder."""
    return min((TRANSCRIPTS / folder).glob("*"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("folder", SOME)
def test_no_request_of_a_recorded_session_is_refused(folder: str) -> None:
    """By any ready policy, in any format, and after it has come in as any."""
    found = [*requests(smallest(folder), typed=False)]
    assert [each for each in found if each.wrong] == []
    assert {each.format for each in found} == {*JUDGES}
    assert {each.way for each in found} >= {*POLICIES, *(f"in as {name}" for name in JUDGES)}


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["claude_code_jsonl", "codex_rollout", "openhands_v0_history"])
def test_no_request_of_the_largest_is_refused(folder: str) -> None:
    """Of some kinds."""
    path = max((TRANSCRIPTS / folder).glob("*"), key=lambda path: path.stat().st_size)
    assert [each for each in requests(path) if each.wrong] == []
