"""What a view shows behind a compaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from chats import COUNT, HEADING, RATIO, TURNS, Message, begun, chat, contents, query, short

from store import Policy, Store
from store.summaries import FileChange, KeyAction, Summary
from store.view import visible_set


def test_forty_messages_become_eleven(store: Store) -> None:
    """S2.8, S2.11, S2.31, S2.33.

    One system message with the heading, then the last ten as they were.
    """
    session_id = begun(store, chat(40))
    made = store.compact_if_needed(session_id, COUNT, lambda request: "对话摘要：x")
    view = store.view(session_id, COUNT)
    assert made is not None
    assert (made.messages_before, made.messages_after, len(view.messages)) == (40, 11, 11)
    assert view.messages[0] == {"role": "system", "content": f"{HEADING}\n对话摘要：x"}
    assert view.messages[1:] == chat(40)[-10:]


def test_thirty_eight_messages_stay(store: Store) -> None:
    """S2.30."""
    session_id = begun(store, chat(38))
    assert store.compact_if_needed(session_id, COUNT, short) is None
    assert store.view(session_id, COUNT).messages == chat(38)


def test_a_summary_stands_directly_before_what_is_kept(store: Store) -> None:
    """S3.30: behind the system messages (S3.45), and explains itself."""
    session_id = begun(store, [{"role": "system", "content": "rules"}, *chat(30)])
    made = store.compact(session_id, RATIO, short)
    view = store.view(session_id, RATIO)
    assert [entry.rule for entry in view.entries[:3]] == [None, "summary", None]
    assert [entry.seq for entry in view.entries[:3]] == [1, None, made.first_kept]
    assert view.entries[1].reason == f"stands for positions 1 to 21, compaction {made.id}"


def test_what_is_written_is_read_of_standing_summaries_only(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds may have been folded, each thousands of letters long.

    Neither a check nor a view reads those.
    """
    session_id = begun(store, [])
    for number in range(3):
        store.append(session_id, chat(40, first=40 * number))
        store.compact(
            session_id, COUNT, lambda request: f"summary {len(request.previous_summary or '')}"
        )
    asked: list[list[int]] = []

    def noting(statement: Any) -> Callable[..., Any]:
        rows = statement.rows

        def read(connection: Any, **values: Any) -> Any:
            asked.append(json.loads(values["numbers"]))
            return rows(connection, **values)

        return read

    for statement in (visible_set.ACTIVE_SUMMARY_TEXTS, visible_set.REPORTED_SUMMARY_TEXTS):
        monkeypatch.setattr(statement, "rows", noting(statement))
    assert store.view(session_id, COUNT).messages[0]["content"].startswith(f"{HEADING}\nsummary 9")
    assert not store.check(session_id, COUNT).should_compact
    assert asked == [[3], [3]]
    assert [each.summary for each in store.compactions(session_id)] == [
        "summary 0",
        "summary 9",
        "summary 9",
    ]
    assert asked[2:] == [[1, 2, 3]]


@pytest.mark.parametrize("role", ["system", "user", "developer"])
def test_the_role_of_a_summary_is_chosen_when_it_is_sent(store: Store, role: str) -> None:
    """A2.11: a second system message is refused by several providers.

    Nothing is stored anew for it.
    """
    session_id = begun(store, [{"role": "system", "content": "rules"}, *chat(40)])
    store.compact(session_id, COUNT, short)
    view = store.view(session_id, COUNT.model_copy(update={"summary_role": role}))
    assert [message["role"] for message in view.messages[:3]] == ["system", role, "user"]


def test_a_summary_can_be_merged_into_the_first_system_message(store: Store) -> None:
    """A2.11: then there is but one."""
    session_id = begun(store, [{"role": "system", "content": "rules"}, *chat(40)])
    store.compact(session_id, COUNT, lambda request: "they talked")
    view = store.view(session_id, COUNT.model_copy(update={"summary_role": "merge"}))
    assert [message["role"] for message in view.messages[:2]] == ["system", "user"]
    assert view.messages[0]["content"] == f"rules\n\n{HEADING}\nthey talked"


def test_a_merged_summary_comes_behind_nothing_newer(store: Store) -> None:
    """The one system message stands where the summary would, though its own text was said later."""
    session_id = begun(store, chat(40))
    store.compact(session_id, COUNT, lambda request: "they talked")
    store.append(session_id, [{"role": "system", "content": "rules"}, *chat(2)])
    view = store.view(session_id, COUNT.model_copy(update={"summary_role": "merge"}))
    assert [message["role"] for message in view.messages] == ["system", *["user", "assistant"] * 6]
    assert view.messages[0]["content"] == f"rules\n\n{HEADING}\nthey talked"
    assert [entry.seq for entry in view.entries] == [41, *range(31, 41), 42, 43]


@pytest.mark.parametrize("system", [True, False])
def test_several_summaries_are_merged_into_one_system_message(store: Store, system: bool) -> None:
    """A2.11: also where there is no other for them; what each stands for is said of the one."""
    session_id = begun(store, [{"role": "system", "content": "rules"}] * system + chat(40))
    policy = TURNS.model_copy(update={"summary_role": "merge", "facts_chars": 0})
    for first in (40, 60):
        store.compact(session_id, policy, lambda request, first=first: f"said before {first}")  # type: ignore[misc]
        store.append(session_id, chat(20, first))
    view = store.view(session_id, policy)
    assert [message["role"] for message in view.messages] == ["system", *["user", "assistant"] * 20]
    assert view.messages[0]["content"] == "rules\n\n" * system + "said before 40\n\nsaid before 60"
    assert (view.entries[0].seq, view.entries[0].rule) == (1 if system else None, "summary")
    ranges = [f"stands for positions {made.hidden[0]} to {made.hidden[1]}, compaction {made.id}"  # type: ignore[index]
              for made in store.compactions(session_id)]  # fmt: skip
    assert view.entries[0].reason == "; ".join(ranges)


def test_a_summary_with_more_than_a_body_is_laid_out(store: Store) -> None:
    """S3.13, S3.49; its parts are kept as rows too."""
    summary = Summary(
        "Done.",
        title="Summary of conversation from 10:00 to 10:30",
        key_actions=(KeyAction("readFile", "to read package.json"),),
        file_changes=(FileChange("src/index.ts", "modified"),),
        model="m-1",
    )
    session_id = begun(store, chat(30))
    made = store.compact(session_id, RATIO, lambda request: summary)
    assert contents(store, session_id, RATIO)[0] == (
        "# Summary of conversation from 10:00 to 10:30\n\n"
        "**Key Actions:**\n- Used `readFile` to read package.json\n\n"
        "**Files Changed:**\n- src/index.ts (modified)\n\n**Summary:**\nDone."
    )
    [row] = query(store, session_id, "summaries")
    assert (made.title, row["title"], row["model"]) == (summary.title, summary.title, "m-1")
    assert json.loads(row["key_actions"]) == [
        {"tool": "readFile", "result": "to read package.json"}
    ]
    assert json.loads(row["file_changes"]) == [{"path": "src/index.ts", "action": "modified"}]
    assert row["prompt_version"].startswith("handoff@")


def test_the_summarizer_without_a_model_writes_title_and_body(store: Store) -> None:
    """S3.34, S3.48: from the times of the messages."""
    messages = [
        {**each, "timestamp": 1_769_853_600_000 + i * 90_000} for i, each in enumerate(chat(21))
    ]
    session_id = begun(store, [*messages, *chat(11, 21)], now=1_769_855_400_000)
    made = store.compact(session_id, RATIO)
    assert made.hidden == (1, 22)
    assert made.title == "Summary of conversation from 10:00 to 10:30"
    assert str(made.summary).startswith("# Summary of conversation from 10:00 to 10:30\n")


@pytest.mark.parametrize(
    ("previous", "first", "second", "title"),
    [
        ("fold", 0, 600, "from 10:00 to 10:21"),
        ("append", 0, 600, "from 10:10 to 10:21"),
        ("fold", None, 600, "from 10:10 to 10:21"),
        ("fold", 0, None, "from 10:00 to 11:00"),
    ],
)
def test_the_title_of_a_folded_summary_begins_where_the_earlier_one_did(
    store: Store, previous: str, first: int | None, second: int | None, title: str
) -> None:
    """It stands for both; through any number of them, and through a fork.

    What has no time of its own was said when it was stored.
    """

    def timed(start: int | None, number: int) -> list[Message]:
        since = 1_769_853_600_000 + (start or 0) * 1000
        times = [{} if start is None else {"timestamp": since + i * 60_000} for i in range(number)]
        return [{**message, **time} for message, time in zip(chat(number), times, strict=True)]

    policy = Policy(keep_turns=1, previous_summary=previous)
    stored = 1_769_857_200_000
    session_id = begun(
        store, timed(first, 10), now=stored if second is None else stored - 3_000_000
    )
    for after in (second, second):
        assert store.compact(session_id, policy).outcome == "applied"
        session_id = store.fork(session_id).id
        store.append(session_id, timed(after, 12), now=stored)
    store.append(session_id, chat(2))
    made = store.compact(session_id, policy)
    assert made.title == f"Summary of conversation {title}".strip()
