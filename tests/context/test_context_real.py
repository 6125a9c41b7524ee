"""Recorded conversations assembled as whole requests, turn by turn."""

from __future__ import annotations

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from benchmarks import requests
from benchmarks.recorded import Transcript, largest

LONGEST = 120
"""Messages of a session that is assembled here.

``python -m benchmarks.requests`` takes longer ones.
"""


def fits(transcript: Transcript) -> bool:
    """Tell a short session in which something is answered."""
    answers = (message.get("role") == "assistant" for message in transcript.messages)
    return len(transcript.messages) <= LONGEST and any(answers)


SESSIONS: list[Transcript] = []
if TRANSCRIPTS.is_dir():
    found, _ = largest(TRANSCRIPTS, 20, of_each_kind=True)
    kinds = dict.fromkeys(each.kind for each in found)
    fitting = [[each for each in found if each.kind == kind and fits(each)] for kind in kinds]
    SESSIONS = [each for of_a_kind in fitting for each in of_a_kind[:2]]


@pytest.mark.sampled(3)
@needs_transcripts
@pytest.mark.parametrize("transcript", SESSIONS, ids=lambda each: f"{each.kind}-{each.name[-12:]}")
def test_each_request_of_a_real_session_is_sound(transcript: Transcript) -> None:
    """Valid, its running turn whole, and over a turn it only grows."""
    outcome = requests.assembled(transcript)
    assert outcome.violations == []
    assert outcome.requests == sum(
        message.get("role") == "assistant" for message in transcript.messages
    )
    assert outcome.sent > 0


@needs_transcripts
def test_there_are_sessions_of_every_kind() -> None:
    """Of the coding agents above all."""
    assert {each.kind for each in SESSIONS} >= {"claude_code", "codex", "swe_agent", "openhands"}
