from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from benchmarks.recorded import Transcript, largest
from benchmarks.replay import SMALL, Outcome, replayed, variants

pytestmark = needs_transcripts

VARIANTS = {variant.name: variant for variant in variants()}


@cache
def session(messages: int) -> Transcript:
    """Return the largest session of so many messages at most that is work of many requests."""
    found, _ = largest(TRANSCRIPTS, 100)
    return next(each for each in found if len(each.messages) <= messages and _is_work(each))


def _is_work(transcript: Transcript) -> bool:
    """Tell whether tools were used, and the model was asked more than a few times."""
    roles = Counter(message["role"] for message in transcript.messages)
    return roles["tool"] > 0 and roles["assistant"] > REQUESTS


REQUESTS = 20
"""Requests that a session has more of."""


@cache
def outcome(name: str) -> Outcome:
    """Return what came of a session.

    A large one where a small window gives much to do, else a smaller one, in time.

    ``python -m benchmarks.replay`` takes the ten largest, under every policy.
    """
    variant = VARIANTS[name]
    return replayed(session(150 if variant.window == SMALL else 70), variant)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_a_real_session_is_told_again_and_nothing_is_wrong(name: str) -> None:
    """Each request can be sent, nothing is lost or changed, every fact that has room is told."""
    found = outcome(name)
    assert found.violations == []
    assert found.requests > REQUESTS
    assert found.due[0] == found.due[1]
    assert found.tokens_sent <= found.tokens_raw


@pytest.mark.slow
def test_the_policies_had_something_to_do() -> None:
    """Sessions were compacted, with and without success, cleared, and full of facts."""
    found = [outcome(name) for name in ("message_count, poor", "token_ratio 8k, batched")]
    assert {each for one in found for each in one.compactions} >= {"applied", "failed"}
    assert replayed(session(150), VARIANTS["default, batched"]).clearings > 0
    assert sum(each.due[1] for each in found) > 20
    assert sum(each.hidden for each in found) > 100
