from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from store import Store
from store.errors import SessionNotFound
from store.inspection.usage_statistics import FileCounts, Statistics, ToolUse, statistics
from store.tokens import FRAMING_TOKENS, count_message_tokens, estimate


def statistics_of(store: Store, *given: Any, **options: Any) -> Statistics:
    """Return the statistics of a store, or of one of its sessions."""
    return store.database.read(lambda connection: statistics(connection, *given, **options))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url) as opened:
        yield opened


def called(call_id: str, name: str, content: str, **arguments: str) -> list[dict[str, Any]]:
    """Return a tool call and its result."""
    pairs = ", ".join(f'"{key}": "{value}"' for key, value in arguments.items())
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": f"{{{pairs}}}"},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": content, "timestamp": 1},
    ]


LINE = [
    *called("1", "Read", "一二三 three", file_path="src/a.py"),
    *called("2", "Read", "x" * 399, file_path="src/a.py"),
    *called("3", "Edit", "done", file_path="src/a.py"),
    *called("4", "Bash", "Exit code 2", command="make"),
]


def cost(*texts: str) -> int:
    """Return what messages with these texts cost by the estimate."""
    return sum(FRAMING_TOKENS + estimate(text) for text in texts)


def test_tools_and_files_are_counted(store: Store) -> None:
    """Results, failures and tokens by tool and by file.

    Whole numbers on every engine, the costliest first.
    """
    store.create_session("s")
    store.append("s", LINE)
    told = statistics_of(store, "s")
    reads_, edits = cost("一二三 three", "x" * 399), cost("done")
    assert told == Statistics(
        sessions=1,
        messages=8,
        tool_calls=4,
        tools=[
            ToolUse("Read", "file_read", 2, 0, reads_),
            ToolUse("Bash", "terminal", 1, 1, cost("Exit code 2")),
            ToolUse("Edit", "file_edit", 1, 0, edits),
        ],
        files=[FileCounts("src/a.py", 2, 1, 3, reads_ + edits)],
    )
    assert all(type(each.tokens) is int for each in (*told.tools, *told.files))
    assert statistics_of(store, "s", files=0).files == []


def test_a_line_counts_what_it_has_and_the_store_each_message_once(store: Store) -> None:
    """A rewound part is not on the line but still in the store.

    A fork adds a session and no messages.
    """
    store.create_session("s")
    store.append("s", LINE)
    store.fork("s", session_id="side")
    store.rewind("s", to=4)
    told = statistics_of(store, "s")
    assert (told.messages, told.tool_calls, [each.name for each in told.tools]) == (4, 2, ["Read"])
    assert statistics_of(store, "side").messages == 8
    whole = statistics_of(store)
    assert (whole.sessions, whole.messages, whole.tool_calls) == (2, 8, 4)
    assert [each.results for each in whole.tools] == [2, 1, 1]


def test_stored_counts_take_the_place_of_estimates(store: Store) -> None:
    """Where an encoding has counted a message its count is used, without one the estimate."""
    store.create_session("s")
    store.append("s", LINE[:2])
    store.count_tokens("s", "third_of_length")
    store.append("s", LINE[2:4])
    counted = count_message_tokens(LINE[1], lambda text: len(text) // 3)
    assert statistics_of(store, "s", encoding="third_of_length").tools[0].tokens == counted + cost(
        "x" * 399
    )
    assert statistics_of(store, encoding="third_of_length").tools[0].tokens == counted + cost(
        "x" * 399
    )


def test_an_unknown_session_is_an_error(store: Store) -> None:
    """A session that is not there is an error, not an empty answer."""
    with pytest.raises(SessionNotFound):
        statistics_of(store, "nosuch")
