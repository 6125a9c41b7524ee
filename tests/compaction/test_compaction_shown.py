"""What a model is shown of what it summarises, by the policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chats import COUNT, Message, begun
from conversations import NOW

from store import Policy, Store
from store.summaries import SummaryRequest


def turns(count: int) -> list[Message]:
    """Turns of a long order and an edit, without times."""
    edit = json.dumps({"file_path": "src/auth.ts", "new_string": "login"})
    return [
        message
        for n in range(count)
        for message in (
            {"role": "user", "content": "Do it. " + "x" * 600 + " NEVER touch prod."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"c{n}",
                        "type": "function",
                        "function": {"name": "Edit", "arguments": edit},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": "ok " * 200},
            {"role": "assistant", "content": "done"},
        )
    ]


def asked(store: Store, policy: Policy) -> SummaryRequest:
    """Return what a summarizer is asked for twelve turns."""
    session_id = begun(store, turns(12), now=NOW)
    requests: list[SummaryRequest] = []
    store.compact(session_id, policy, lambda request: requests.append(request) or "x", now=NOW)
    return requests[0]


@pytest.mark.parametrize("name", ["turns", "token_ratio", "default", "raw"])
def test_a_model_is_shown_the_messages_themselves(store: Store, name: str) -> None:
    """S4.31: orders verbatim, paths, new text, results, times; the time of all in the prompt."""
    prompt = asked(store, Policy.named(name)).prompt
    for said in (
        "x" * 600 + " NEVER touch prod.",
        '"file_path": "src/auth.ts"',
        '"new_string": "login"',
        "ok " * 200,
    ):
        assert said in prompt
    moments = "from 2026-01-31 01:20 UTC to 2026-01-31 01:20 UTC"
    start = "[Start Time] is 2026-01-31 01:20 UTC, [Cutoff Time] is 2026-01-31 01:20 UTC"
    assert moments in prompt or start in prompt
    assert "[User 2026-01-31 01:20]: Do it." in prompt
    assert "助手" not in prompt


def test_a_model_that_counts_messages_is_shown_them_in_brief(store: Store) -> None:
    """S2.22 to S2.26: names of calls, 500 and 200 code points, Chinese labels."""
    policy = COUNT.model_copy(update={"transcript_max_chars": 400_000})
    transcript = asked(store, policy).transcript
    assert "[工具调用]: Edit\n\n[工具结果]: " + ("ok " * 200)[:197] + "...\n\n" in transcript
    assert "NEVER touch prod" not in transcript
    assert "auth.ts" not in transcript


def test_labels_of_a_brief_transcript_are_in_the_language_of_the_prompt(store: Store) -> None:
    """English ones where the policy speaks English."""
    transcript = asked(store, Policy.named("message_count", language="en")).transcript
    assert "[User]: Do it." in transcript
    assert "[Tool call]: Edit" in transcript


def test_a_title_has_the_times_of_storage_where_messages_have_none(store: Store) -> None:
    """And every summary has a title, key actions and file changes in its record."""
    session_id = begun(store, turns(12), now=NOW)
    made = store.compact(session_id, Policy.named("turns"), lambda request: "x", now=NOW)
    assert made.title == "Summary of conversation from 01:20 to 01:20"
    assert str(made.summary).startswith("x")
    assert "Summary of conversation" not in str(made.summary)
    assert made.key_actions == (("Edit", "修改 src/auth.ts"),) * len(made.key_actions) != ()
    assert made.file_changes == (("src/auth.ts", "modified"),)
    assert store.compactions(session_id) == [made]


def test_a_built_in_summary_knows_the_kinds_of_the_table(store: Store) -> None:
    """A3.19: a tool that a user has entered there is what it says."""
    with store.database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO tool_kinds (name, kind) VALUES ('my_edit', 'file_edit')"
        )
    messages: list[dict[str, Any]] = json.loads(json.dumps(turns(8)).replace('"Edit"', '"my_edit"'))
    made = store.compact(begun(store, messages, now=NOW), Policy(), now=NOW)
    assert "- src/auth.ts (modified)" in str(made.summary)
