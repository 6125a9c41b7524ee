"""The view as a whole: moments, positions, entries, totals, log lines, and what it refuses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conversations import DONE, NOW, Script

from store import Policy, Store, StoreError
from store.errors import InvalidValue, PositionOutOfRange, SessionNotFound
from store.tokens import ESTIMATE_NAME, count_message_tokens, estimate

NONE_KEPT = Policy(terminal_keep=0, file_read_keep=0)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def script() -> Script:
    """An empty conversation."""
    return Script()


def begun(store: Store, script: Script) -> str:
    """A session with this line."""
    session_id = store.create_session().id
    store.append(session_id, script.messages)
    return session_id


def filled(script: Script) -> Script:
    """A line on which both rules and a repair have something to do."""
    script.user("please build it 请构建")
    script.command(DONE + " " * 300)
    script.read("a.ts", content="1→import 文件\n" * 40)
    script.user()
    script.messages.append({"role": "tool", "tool_call_id": "nobody", "content": "lost"})
    script.command("Error: no", minutes=1)
    return script


# --- what is asked for ----------------------------------------------------------------------------


def test_an_empty_line_has_an_empty_view(store: Store, script: Script) -> None:
    """With totals of nothing."""
    view = store.view(begun(store, script), now=NOW)
    assert (view.messages, view.entries, view.at) == ([], [], 0)
    assert view.stats == (0, 0, {}, 0, 0, {}, None, ESTIMATE_NAME) or view.stats[:7] == (
        0,
        0,
        {},
        0,
        0,
        {},
        None,
    )


def test_a_moment_may_be_given_in_any_form(store: Store, script: Script) -> None:
    """Ms, whole or not, or an aware datetime in any zone; without one it is the present."""
    position = script.command(minutes=0)
    session_id = begun(store, script)
    old = datetime.fromtimestamp(NOW / 1000, tz=UTC) + timedelta(minutes=15, milliseconds=1)
    for now in (
        NOW + 900_001,
        NOW + 900_000.5,
        old,
        old.astimezone(datetime.now().astimezone().tzinfo),
    ):
        assert [e.seq for e in store.view(session_id, NONE_KEPT, now=now).entries if e.rule] == [
            position
        ]
    for now in (NOW + 900_000, old - timedelta(milliseconds=1)):
        assert not store.view(session_id, NONE_KEPT, now=now).stats.replaced
    fresh = Script()
    fresh.command(minutes=None, timestamp=round(datetime.now(tz=UTC).timestamp() * 1000))
    assert not store.view(begun(store, fresh), NONE_KEPT).stats.replaced


@pytest.mark.parametrize(
    "now",
    [datetime(2026, 1, 31), "now", True, float("nan"), [NOW], 10**30, -(10**30)],  # noqa: DTZ001
)
def test_what_is_no_moment_is_refused(store: Store, script: Script, now: Any) -> None:
    """Nothing is guessed."""
    session_id = begun(store, filled(script))
    with pytest.raises(StoreError):
        store.view(session_id, now=now)


@pytest.mark.parametrize("name", ["", "OpenAI", "anthropic?", None, 5])
def test_an_unknown_format_is_refused(store: Store, script: Script, name: Any) -> None:
    """With the names there are."""
    session_id = begun(store, script)
    with pytest.raises(InvalidValue, match="openai"):
        store.view(session_id, format=name)


def test_a_view_is_one_text_as_react(store: Store, script: Script) -> None:
    """The entries still tell of each message."""
    session_id = begun(store, filled(script))
    chat, react = (store.view(session_id, format=name) for name in ("openai", "react"))
    (whole,) = react.messages
    assert whole["content"].startswith("[user] please build it")
    assert (react.entries, react.stats) == (chat.entries, chat.stats)


@pytest.mark.parametrize("policy", [{"terminal": False}, "raw", 0])
def test_what_is_no_policy_is_refused(store: Store, script: Script, policy: Any) -> None:
    """With the store's own error."""
    session_id = begun(store, filled(script))
    with pytest.raises(StoreError):
        store.view(session_id, policy, now=NOW)


def test_without_a_policy_it_is_the_ready_one(store: Store, script: Script) -> None:
    """The default for views; for what is called back, that of agents."""
    script.reads("src/a.ts", 8)
    session_id = begun(store, script)
    policies = (None, Policy(), Policy.named("raw"))
    for method in (store.view, store.view_sql, store.replaced):
        given = [method(session_id, each, now=NOW) for each in policies]
        assert given[0] == given[1] != given[2]
    words = ["src/a.ts"]
    called_back = [
        store.recall(session_id, words, policy=each, now=NOW)
        for each in (None, Policy.named("agent"), Policy())
    ]
    assert called_back[0] == called_back[1] != called_back[2]


def test_unknown_sessions_and_positions_are_refused(store: Store, script: Script) -> None:
    """As everywhere."""
    script.user()
    session_id = begun(store, script)
    with pytest.raises(SessionNotFound):
        store.view("nobody")
    for at in (2, -1, True, "1", 1.0):
        with pytest.raises(PositionOutOfRange, match="0 to 1"):
            store.view(session_id, at=at)  # type: ignore[arg-type]


def test_a_view_of_an_earlier_position_is_that_of_then(store: Store, script: Script) -> None:
    """Of a fork there, and of the line when it was no longer (promise 4)."""
    filled(script)
    session_id = store.create_session().id
    taken = [store.view(session_id, NONE_KEPT, now=NOW)]
    for message in script.messages:
        store.append(session_id, message)
        taken.append(store.view(session_id, NONE_KEPT, now=NOW))
    for at, then in enumerate(taken):
        assert store.view(session_id, NONE_KEPT, at=at, now=NOW) == then
        fork = store.fork(session_id, at=at).id
        assert (
            store.view(fork, NONE_KEPT, now=NOW)._replace(session_id=session_id, branch=then.branch)
            == then
        )
    assert [view.at for view in taken] == list(range(len(taken)))


# --- entries and messages -------------------------------------------------------------------------


def test_entries_explain_the_messages_one_by_one(store: Store, script: Script) -> None:
    """In the same order.

    The message of an entry has all keys that went in, that of the view only the API's.
    """
    view = store.view(begun(store, filled(script)), NONE_KEPT, now=NOW)
    assert [entry.rule for entry in view.entries] == [
        *(None, None, "terminal", None, "file_read", None, "repair", None, None, None)
    ]
    assert [entry.seq for entry in view.entries] == [1, 2, 3, 4, 5, 6, None, 7, 8, 9]
    for entry, message in zip(view.entries, view.messages, strict=True):
        assert message["role"] == entry.message["role"]
        assert (message["content"] or "") == (entry.message["content"] or "")
        assert "timestamp" not in message
    assert view.entries[2].message == {
        **script.messages[2],
        "content": NONE_KEPT.terminal_placeholder,
    }


def test_raw_replaces_nothing(store: Store, script: Script) -> None:
    """The raw policy sends what is there, repaired."""
    view = store.view(begun(store, filled(script)), Policy.named("raw"), now=NOW)
    assert [entry.message for entry in view.entries if entry.seq] == script.messages
    assert view.stats.replaced == {"repair": 1}


def test_what_is_returned_belongs_to_the_caller(store: Store, script: Script) -> None:
    """Changing it changes no later view, nor the line."""
    script.messages.append({"role": "user", "content": [{"type": "text", "text": "x"}], "k": [1]})
    session_id = begun(store, filled(script))
    view = store.view(session_id, now=NOW)
    before = repr(view)
    view.messages[0]["content"].append("more")
    view.entries[0].message["k"].append(2)
    assert repr(store.view(session_id, now=NOW)) == before
    assert store.messages(session_id)[0].message == script.messages[0]


# --- totals ---------------------------------------------------------------------------------------


def test_totals(store: Store, script: Script) -> None:
    """Messages, what each rule did, tokens, and the first position that differs."""
    view = store.view(begun(store, filled(script)), NONE_KEPT, now=NOW)
    stats = view.stats
    assert (stats.messages, stats.raw_messages) == (10, 9)
    assert stats.replaced == {"terminal": 1, "file_read": 1, "repair": 1}
    assert stats.tokens == sum(entry.tokens for entry in view.entries)
    assert stats.tokens_saved == sum(entry.tokens_saved for entry in view.entries) > 0
    assert stats.raw_tokens == sum(
        entry.tokens + entry.tokens_saved for entry in view.entries if entry.seq
    )
    assert stats.saved_by_rule == {
        e.rule: e.tokens_saved for e in view.entries if e.rule in ("terminal", "file_read")
    }
    assert stats.first_changed == 3
    assert stats.counted_by == ESTIMATE_NAME


@pytest.mark.parametrize(
    "more", [{}, {"name": "a_tool_with_quite_a_long_name"}, {"messageStatus": "completed"}]
)
@pytest.mark.parametrize(
    "content", [DONE, "文" * 333, [{"type": "text", "text": "x" * 99}], "x"], ids=range(4)
)
def test_tokens_saved_are_those_not_sent(
    store: Store, script: Script, content: Any, more: dict[str, Any]
) -> None:
    """The tokens of the whole message less those of what stands for it.

    Negative where that is longer.
    """
    script.command(content, **more)
    session_id = begun(store, script)
    raw, view = (
        store.view(session_id, policy, now=NOW) for policy in (Policy.named("raw"), NONE_KEPT)
    )
    assert view.stats.replaced == {"terminal": 1}
    assert abs(view.stats.tokens_saved - (raw.stats.tokens - view.stats.tokens)) <= 1, (
        "but for rounding"
    )
    assert view.stats.tokens == sum(
        count_message_tokens(entry.message, estimate) for entry in view.entries
    )


def test_raw_tokens_are_those_of_the_whole_line(store: Store, script: Script) -> None:
    """A compaction hides messages and makes no line smaller.

    Stored counts replace the estimates of what is visible.
    """
    session_id = begun(store, filled(script))
    store.append(session_id, [{"role": "user", "content": "and now?"}])
    raw = sum(count_message_tokens(each.message, estimate) for each in store.messages(session_id))
    assert store.view(session_id, now=NOW).stats.raw_tokens == raw
    store.compact(session_id, Policy(facts_chars=0, summary_max_chars=20), now=NOW)
    compacted = store.view(session_id, now=NOW)
    assert compacted.entries[0].rule == "summary"
    assert compacted.stats.raw_tokens == raw
    store.count_tokens(session_id, "third_of_length")
    stats = compacted.stats
    assert stats.hidden_messages == stats.raw_messages - len(compacted.entries) + 1
    assert stats.tokens_saved == stats.saved_by_rule["summary"] == raw - stats.tokens > 0
    assert stats.hidden_tokens == stats.tokens_saved + compacted.entries[0].tokens
    visible = [each.message for each in compacted.entries if each.seq]
    counted = sum(count_message_tokens(each, lambda text: len(text) // 3) for each in visible)
    estimated = sum(count_message_tokens(each, estimate) for each in visible)
    assert store.view(session_id, now=NOW).stats.raw_tokens == raw - estimated + counted


def test_stored_counts_are_used(store: Store, script: Script) -> None:
    """Where every message has one the total is exact and says who counted.

    What is appended later has none.
    """
    script.user("please build it")
    script.command(minutes=1)
    session_id = begun(store, script)
    total = store.count_tokens(session_id)
    view = store.view(session_id, now=NOW)
    assert (view.stats.counted_by, view.stats.tokens) == (total.encoding, total.tokens)
    script.messages.clear()
    script.user()
    store.append(session_id, script.messages)
    assert store.view(session_id, now=NOW).stats.counted_by == ESTIMATE_NAME
    assert store.view(session_id, at=3, now=NOW).stats.counted_by == total.encoding


def test_a_count_of_a_text_that_is_not_sent_is_not_used(store: Store, script: Script) -> None:
    """A placeholder is counted itself, and what it saves is by the stored count of what it stands
    for.
    """
    script.command(DONE * 30)
    session_id = begun(store, script)
    counted = store.count_tokens(session_id)
    view = store.view(session_id, NONE_KEPT, now=NOW)
    assert view.stats.tokens + view.stats.tokens_saved == counted.tokens
    assert view.entries[1].tokens == count_message_tokens(view.entries[1].message, estimate)


FIRST_CHANGED: list[tuple[str, Any, int | None]] = [
    ("nothing", lambda s: s.user(), None),
    ("a replacement", lambda s: (s.user(), s.command(), s.command()), 3),
    ("a replacement later", lambda s: (s.command(minutes=1), s.command()), 4),
    ("a made-up call in front", lambda s: s.messages.append({"role": "tool", "content": "x"}), 1),
    (
        "a made-up result at the end",
        lambda s: (s.user(), s.command(minutes=1), s.messages.pop()),
        3,
    ),
]


@pytest.mark.parametrize(
    ("fill", "expected"),
    [case[1:] for case in FIRST_CHANGED],
    ids=[case[0] for case in FIRST_CHANGED],
)
def test_the_first_changed_position(
    store: Store, script: Script, fill: Any, expected: int | None
) -> None:
    """What a prompt cache loses: everything from there on."""
    fill(script)
    assert store.view(begun(store, script), NONE_KEPT, now=NOW).stats.first_changed == expected


# --- log lines ------------------------------------------------------------------------------------


def test_at_debug_the_files_are_named(
    store: Store, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """S1.46: those of the reads that were replaced, and the reads whose file cannot be told."""
    script.reads("src/a.ts", 8)
    script.reads("b.ts", 6)
    script.tool("Read", "what?", 90)
    session_id = begun(store, script)
    with caplog.at_level(logging.DEBUG, "store.view"):
        view = store.view(session_id, Policy(), now=NOW)
    named = [each for each in caplog.records if each.levelno == logging.DEBUG]
    unknown = len(view.messages)
    assert [each.getMessage() for each in named] == [
        "reads that were replaced: src/a.ts ×3, b.ts ×1",
        f"1 reads of files that are not known, at positions {unknown}",
    ]
    assert {each.session_id for each in named} == {session_id}  # type: ignore[attr-defined]
    told = {entry.reason for entry in view.entries if entry.rule == "file_read"}
    assert told == {
        "5 newer reads of the same file are kept: src/a.ts",
        "5 newer reads of the same file are kept: b.ts",
    }


def test_each_rule_that_replaced_something_logs_one_line(
    store: Store, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """The exact texts, with how many (S0.29, S0.47, S1.41, S1.55, A0.14)."""
    script.commands(7)
    script.reads("a.ts", 8)
    session_id = begun(store, script)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            caplog.clear()
            store.view(session_id, Policy(terminal_keep=12), now=NOW)
            said = [record.getMessage() for record in caplog.records]
            assert said == ["精简了 2 个过时命令返回内容", "精简了 3 个历史文件读取内容"]
    assert {r.name for r in caplog.records} == {"store.view.build"}
    assert {r.levelno for r in caplog.records} == {logging.INFO}
    assert [(r.session_id, r.rule) for r in caplog.records] == [
        (session_id, "terminal"),
        (session_id, "file_read"),
    ]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(terminal_keep=5), "精简了 2 个过时命令返回内容"),
        (Policy(terminal_keep=6), "精简了 1 个过时命令返回内容"),
        (Policy(terminal_keep=7), ""),
        (Policy(terminal=False), ""),
        (Policy(terminal_max_age=10**9), ""),
    ],
)
def test_nothing_replaced_nothing_logged(
    store: Store, script: Script, caplog: pytest.LogCaptureFixture, policy: Policy, said: str
) -> None:
    """Not even that it was nothing; repairs are no replacements (S0.29)."""
    script.commands(7)
    script.messages.append({"role": "tool", "content": "x"})
    session_id = begun(store, script)
    with caplog.at_level(logging.INFO):
        store.view(session_id, policy, now=NOW)
    assert " ".join(record.getMessage() for record in caplog.records) == said


def test_whole_messages_have_the_texts_that_are_sent(store: Store) -> None:
    """All that is stored of them, in the order of the request; a summary and a repair are there."""
    session = store.create_session().id
    calls = [
        {"id": each, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        for each in "ab"
    ]
    line = [
        {"role": "user", "content": "Run it.", "id": "m1", "timestamp": NOW, "mine": {"n": 1}},
        {"role": "assistant", "content": None, "id": "m2", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "x" * 9_000, "timestamp": NOW, "mine": 2},
    ]
    store.append(session, line, now=NOW)
    policy = Policy(terminal_keep=0, terminal_max_age=0)
    whole, sent = (
        store.view(session, policy, now=NOW + 9_000, whole=each) for each in (True, False)
    )
    assert [each["content"] for each in whole.messages] == [
        each["content"] for each in sent.messages
    ]
    first, called, result, made = whole.messages
    assert (first, called) == (line[0], line[1])
    assert {**result, "content": ""} == {**line[2], "content": ""}
    assert len(result["content"]) < 9_000
    assert made["tool_call_id"] == "b"
    for wrong in ({"record": True}, {"format": "anthropic"}):
        with pytest.raises(InvalidValue):
            store.view(session, whole=True, **wrong)
