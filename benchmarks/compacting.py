"""Measures of compactions: the check of a budget, a compaction, the extractive summary, the view behind one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from store import Policy, SummaryRequest
from store.summaries import extractive

from . import rivals
from .reading import Found
from .stage import SESSION, Stage, equal
from .timing import interleaved
from .workload import ROOT, conversation

KEPT = 200
POLICY = Policy(keep_messages=KEPT, boundary="group", trigger_tokens=10**12)
SUM = """SELECT SUM(tokens), COUNT(*) FROM message_facts
WHERE tree_id = (SELECT tree_id FROM session_ids WHERE id = ?) AND branch = 1 AND seq BETWEEN 1 AND ?"""


def check(stage: Stage) -> Found:
    """Ask whether the session should be compacted, the savings of all rules counted in, against a bare sum."""
    store, now = stage.normal, stage.now
    with closing(sqlite3.connect(stage.path)) as bare:
        yield (
            "check",
            interleaved(
                lambda _: store.check(SESSION, POLICY, now=now),
                lambda _: bare.execute(SUM, [SESSION, stage.size]).fetchall(),
                stage.pace,
            ),
        )


def compact(stage: Stage) -> Found:
    """Compact a fork of the session: with a summary that is there at once, and with the extractive one by itself."""
    store, now = stage.normal, stage.now
    messages = list(conversation(stage.size))
    request = SummaryRequest(messages, None, "", "", 4000, 1, stage.size)
    whole = interleaved(
        lambda fork: store.compact(fork, POLICY, now=now),
        lambda _: extractive(request),
        stage.pace,
        prepare=lambda: store.fork(SESSION).id,
    )
    yield "compact, extractive summary included", whole
    yield "compact: without the summary", max(0.0, whole.ours.wall - whole.rival.wall)
    yield "extractive summary", whole.rival.wall


def view(stage: Stage) -> Found:
    """Compute the view behind a compaction: a summary and the newest messages, against the same by hand."""
    store, raw, now = stage.normal, stage.raw_normal, stage.now
    fork = store.fork(SESSION).id
    made = store.compact(fork, POLICY, lambda _: "What was said before.", now=now)
    first = made.first_kept or 1

    def by_hand(_: object) -> list[Any]:
        return [made.summary, *rivals.view(raw.messages(SESSION, first, stage.size), now, ROOT)]

    equal(store.view(fork, POLICY, now=now).messages[-50:], by_hand(None)[-50:])
    yield "view behind a compaction", interleaved(lambda _: store.view(fork, POLICY, now=now), by_hand, stage.pace)
