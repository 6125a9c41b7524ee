"""Measures of compactions.

The check of a budget, a compaction, the extractive summary, the view behind one.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from typing import Any

from store import Policy, SummaryRequest
from store.compaction.job import HiddenMessages
from store.summaries import extractive
from store.tokens import estimate

from . import rivals
from .reading import Found
from .stage import SESSION, Stage, batches, equal
from .timing import interleaved
from .workload import ROOT, conversation

KEPT = 200
POLICY = Policy(
    keep_messages=KEPT, boundary="group", trigger_tokens=10**12, transcript_max_chars=2**31
)
RESULTS = """SELECT tree_id, branch, seq, at, (11 * size - length + 39) / 40 AS tokens,
    paths_complete, tool_name,
    error_prefix = 1
        OR tool_name = 'terminal-execute' AND (has_stderr = 1 OR coalesce(exit_code, 0) <> 0)
        AS is_error
FROM tool_results
WHERE tree_id = (SELECT tree_id FROM session_ids WHERE id = :id)
    AND branch = 1 AND seq BETWEEN 1 AND :last"""
BARE = (
    """SELECT sum(tokens) FROM message_facts WHERE tree_id = (SELECT tree_id FROM session_ids WHERE
    id = :id) AND branch = 1 AND seq BETWEEN 1 AND :last""",
    f"""WITH results AS ({RESULTS}) SELECT -coalesce(sum(tokens - :terminal), 0) FROM results WHERE
    tool_name = 'terminal-execute' AND NOT is_error AND at < :old_before AND (at, seq) <= (SELECT
    at, seq FROM results WHERE NOT is_error ORDER BY at DESC, seq DESC LIMIT 1 OFFSET 5)""",
    f"""WITH results AS ({RESULTS}), reads AS (
        SELECT r.seq, tokens, paths_complete,
            row_number() OVER (PARTITION BY path ORDER BY at DESC, r.seq DESC) AS nth
        FROM results AS r LEFT JOIN tool_result_paths USING (tree_id, branch, seq)
        WHERE tool_name = 'filesystem-read' AND NOT is_error
    ), files AS (
        SELECT max(tokens) AS tokens FROM reads GROUP BY seq
        HAVING min(nth) > 5 AND max(paths_complete) = 1
    )
    SELECT -coalesce(sum(tokens - :file_read), 0) FROM files""",
)
"""What a view costs, by hand.

All messages, less what the terminal rule saves, less what the file-read rule saves.
"""


def check(stage: Stage) -> Found:
    """Ask whether the session should be compacted, against the same by hand.

    The savings of all rules are counted in.
    """
    store, now = stage.normal, stage.now
    values = {
        "id": SESSION,
        "last": stage.size,
        "old_before": now - POLICY.terminal_max_age,
        "terminal": estimate(POLICY.terminal_placeholder),
        "file_read": estimate(POLICY.file_read_placeholder),
    }
    with closing(sqlite3.connect(stage.path)) as bare:

        def by_hand(_: object) -> int:
            return sum(bare.execute(statement, values).fetchone()[0] for statement in BARE)

        equal(store.check(SESSION, POLICY, now=now).tokens, by_hand(None))
        checks = interleaved(lambda _: store.check(SESSION, POLICY, now=now), by_hand, stage.pace)
        fires = POLICY.model_copy(update={"trigger_tokens": 1})
        planned = interleaved(lambda _: store.check(SESSION, fires, now=now), by_hand, stage.pace)
    yield "check", checks
    yield "check: against bare SQL", checks
    yield "check that fires: against bare SQL", planned


def compact(stage: Stage) -> Found:
    """Compact a fork of the session, and make the extractive summary by itself.

    The summary reads all that will be hidden. A model is shown a transcript, which has room for
    less; here its answer is there at once.
    """
    store, now = stage.normal, stage.now
    plan = store.plan_compaction(SESSION, POLICY, now=now)
    messages = HiddenMessages(plan, partial(store.messages, SESSION))
    request = SummaryRequest(
        messages, None, "", "", POLICY.summary_max_chars, plan.first, plan.last
    )
    whole = interleaved(
        lambda fork: store.compact(fork, POLICY, now=now),
        lambda _: extractive(request),
        stage.pace,
        prepare=lambda: store.fork(SESSION).id,
    )
    yield "compact, extractive summary included", whole
    yield "compact: without the summary", max(0.0, whole.ours.wall - whole.rival.wall)
    yield "extractive summary", whole.rival.wall
    shown = Policy(keep_messages=KEPT, boundary="group")
    at_once = interleaved(
        lambda fork: store.compact(fork, shown, lambda _: "What was said before.", now=now),
        lambda _: store.check(SESSION, shown, now=now),
        stage.pace,
        prepare=lambda: store.fork(SESSION).id,
    )
    yield "compact: as much as a transcript shows", at_once.ours.wall


def view(stage: Stage) -> Found:
    """Compute the view behind a compaction.

    A summary and the newest messages, against the same by hand.
    """
    store, raw, now = stage.normal, stage.raw_normal, stage.now
    fork = store.fork(SESSION).id
    made = store.compact(fork, POLICY, lambda _: "What was said before.", now=now)
    first = made.first_kept or 1

    def by_hand(_: object) -> list[Any]:
        return [made.summary, *rivals.view(raw.messages(SESSION, first, stage.size), now, ROOT)]

    equal(stage.forgetful.view(fork, POLICY, now=now).messages[-50:], by_hand(None)[-50:])
    yield (
        "view behind a compaction",
        interleaved(lambda _: stage.forgetful.view(fork, POLICY, now=now), by_hand, stage.pace),
    )


def hidden(stage: Stage, session: str, length: int) -> Found:
    """Compute the view behind a session's messages, against one behind a thousand.

    Both keep the same newest ones.
    """
    store, now = stage.normal, stage.now
    store.create_session("a thousand")
    store.append("a thousand", list(conversation(1_000, small=True)))
    for each, messages in ((session, length), ("a thousand", 1_000)):
        for batch in batches(conversation(KEPT)):
            store.append(each, batch)
        store.record_usage(each, input=1, output=1)
        _hide(stage, each, messages)
    views = [
        [entry.message for entry in store.view(each, now=now).entries]
        for each in (session, "a thousand")
    ]
    equal(*(view[-KEPT:] for view in views))
    yield (
        "view behind: a million against 1,000",
        interleaved(
            lambda _: store.view(session, POLICY, now=now),
            lambda _: store.view("a thousand", POLICY, now=now),
            stage.pace,
        ),
    )


def _hide(stage: Stage, session: str, messages: int) -> None:
    """Compact a session in ten steps, until the newest messages are left."""
    step = Policy.named(
        "raw", keep_messages=KEPT, window_messages=messages // 10, transcript_max_chars=2**31
    )
    while (
        stage.normal.compact(session, step, lambda _: "What was said before.").outcome == "applied"
    ):
        pass
