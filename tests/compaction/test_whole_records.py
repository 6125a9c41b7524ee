"""What the record of a compaction lists of what tools did, whatever room its text has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import text

from store import Policy, Store
from store.summaries import (
    FileChange,
    KeyAction,
    Summary,
    SummaryRequest,
    extractive,
    render_summary,
)

NOW = 1_767_225_600_000
EDITS = 400


def _edit(number: int) -> list[dict[str, Any]]:
    arguments = json.dumps({"file_path": f"src/file_number_{number}.ts"})
    function = {"name": "edit", "arguments": arguments}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "user", "content": "q" * 300},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "done"},
        {"role": "assistant", "content": "a" * 200},
    ]


def _extractive(request: SummaryRequest) -> Summary:
    return extractive(request)


def _terse(_: SummaryRequest) -> str:
    return "They talked."


@pytest.mark.sampled(5)
@pytest.mark.parametrize("summarizer", [None, _extractive, _terse])
@pytest.mark.parametrize("name", ["token_ratio", "turns", "message_count", "agent"])
def test_three_compactions_record_all_files_and_calls_that_they_hide(
    store: Store, name: str, summarizer: Any
) -> None:
    """S3.13, S3.48: 400 edits of 400 files are 400 paths and 400 actions."""
    whole = {"window_messages": None, "keep_messages": 0, "keep_turns": 1}
    policy = Policy.named(name, **whole, transcript_max_chars=400_000)
    session = store.create_session(now=NOW)
    for number in range(EDITS):
        store.append(session.id, _edit(number), now=NOW)
        if number in (130, 260):
            assert store.compact(session.id, policy, summarizer, now=NOW).outcome == "applied"
    store.append(session.id, {"role": "user", "content": "go on"}, now=NOW)
    made = store.compact(session.id, policy, summarizer, now=NOW)
    assert made.outcome == "applied"
    with store.database.reading() as connection:
        rows = connection.execute(
            text(
                "SELECT key_actions, file_changes FROM summaries WHERE tree_id ="
                " (SELECT tree_id FROM sessions WHERE id = :id)"
            ),
            {"id": session.id},
        ).fetchall()
    changed = {change["path"] for _, changes in rows for change in json.loads(changes)}
    assert changed == {f"src/file_number_{number}.ts" for number in range(EDITS)}
    assert sum(len(json.loads(actions)) for actions, _ in rows) == EDITS
    assert len(str(made.summary)) <= policy.summary_max_chars + 100


def test_very_many_calls_are_counted_by_tool(store: Store) -> None:
    """A record says of each tool how often it was used; its files are all there."""
    session = store.create_session(now=NOW)
    edits = [message for number in range(1_200) for message in _edit(number)[1:3]]
    begun = {"role": "user", "content": "go"}
    store.append(session.id, [begun, *edits, {"role": "user", "content": "next"}], now=NOW)
    made = store.compact(session.id, Policy(), now=NOW)
    assert made.key_actions == (KeyAction("edit", "使用 1200 次"),)
    assert len(made.file_changes) == 1_200


def test_the_lists_of_a_summarizer_are_recorded_whole(store: Store) -> None:
    """Of its own lists, too, a view shows what has room."""
    changes = tuple(FileChange(f"src/{number}.ts", "modified") for number in range(EDITS))
    session = store.create_session(now=NOW)
    store.append(session.id, [*_edit(1), {"role": "user", "content": "next " * 100}], now=NOW)
    policy = Policy(summary_max_chars=300, trigger_messages=2)
    given = Summary("All done.", "Edits", file_changes=changes)
    made = store.compact(session.id, policy, lambda _: given, now=NOW)
    assert made.file_changes == changes
    assert len(str(made.summary)) <= 300 + len("# Edits\n\n")
    assert "src/399.ts" in str(made.summary)
    assert render_summary(given) != made.summary


def test_only_a_summary_that_was_asked_for_by_a_prompt_records_its_version(store: Store) -> None:
    """Rules are given no prompt."""
    session = store.create_session(now=NOW)
    talk = [*_edit(1), {"role": "user", "content": "next"}]
    store.append(session.id, talk, now=NOW)
    store.compact(session.id, Policy(trigger_messages=2), now=NOW)
    store.append(session.id, talk, now=NOW)
    store.compact(
        session.id, Policy(trigger_messages=2), lambda _: Summary("by a model", model="m"), now=NOW
    )
    with store.database.reading() as connection:
        rows = connection.execute(
            text(
                "SELECT model, prompt_version FROM summaries WHERE tree_id ="
                " (SELECT tree_id FROM sessions WHERE id = :id) ORDER BY summary"
            ),
            {"id": session.id},
        ).fetchall()
    assert [tuple(row) for row in rows] == [("extractive", None), ("m", "handoff@2")]
