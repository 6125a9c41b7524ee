"""What is recorded of a compaction, and taking it back by one more record."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from chats import COUNT, HEADING, begun, chat, contents, query, short
from conversations import NOW

from store import Policy, Store
from store.errors import CompactionError, InvalidPolicy, InvalidValue
from store.summaries import Summary, build_title, load


def test_a_record_says_everything(url: str) -> None:
    """S3.12, S3.31, S3.32; and still does after the store was opened anew (A3.16)."""
    with Store(url, durability="normal") as store:
        session_id = begun(store, chat(40), now=NOW)
        made = store.compact(session_id, COUNT, short, reason="tool_execution", now=NOW)
        assert (made.id, made.kind, made.outcome, made.reason, made.policy) == (
            *(1, "summary", "applied", "tool_execution", "message_count"),
        )
        assert (made.hidden, made.first_kept, made.cleared, made.error) == ((1, 30), 31, (), None)
        assert (made.messages_before, made.messages_after, made.head, made.created_at) == (
            40,
            11,
            40,
            NOW,
        )
        assert made.summary == "对话摘要：他们谈过"
        assert made.title == build_title(NOW, NOW)
        assert made.tokens_after < made.tokens_before  # type: ignore[operator]
        assert made.tokens_after == store.view(session_id, COUNT, now=NOW).stats.tokens
        view = store.view(session_id, COUNT, now=NOW)
        [row] = query(store, session_id, "summaries")
        assert (row["first"], row["last"], row["body"], row["tokens"]) == (
            1,
            30,
            made.summary,
            view.entries[0].tokens,
        )
        assert len(row["digest"]) == 32
    with Store(url, durability="normal") as store:
        assert store.compactions(session_id) == [made]
        assert store.view(session_id, COUNT, now=NOW) == view
        hidden = store.hidden(session_id)
        assert list(hidden) == list(range(1, 31))
        assert {each.compacted_at for each in hidden.values()} == {NOW}
        assert {each.compaction for each in hidden.values()} == {1}
        assert store.hidden(session_id, at=39) == {}
        assert [each.message for each in store.messages(session_id)] == chat(40)
        assert store.verify() == []


def test_times_are_those_of_what_goes(store: Store) -> None:
    """Of a system message, which stays, neither the first summary has the time nor a later one."""
    session_id = store.create_session(now=NOW).id
    store.append(session_id, {"role": "system", "content": "rules"}, now=NOW)
    for minute in (60, 120):
        store.append(session_id, chat(20), now=NOW + minute * 60_000)
        policy = Policy.named("message_count", trigger_messages=10, keep_messages=2)
        done = store.compact(session_id, policy, short, now=NOW + minute * 60_000)
        assert done.title == build_title(NOW + 3_600_000, NOW + minute * 60_000)


def test_the_digest_tells_the_source(store: Store) -> None:
    """The same messages give the same, others another."""
    digests = []
    for messages in (chat(40), chat(40), chat(40, 2)):
        session_id = begun(store, messages, now=NOW)
        store.compact(session_id, COUNT, short)
        digests += [row["digest"] for row in query(store, session_id, "summaries")]
    assert digests[0] == digests[1] != digests[2]


def test_the_views_for_people_agree(store: Store) -> None:
    """The SQL views show the same records and hidden positions as the store's own answers."""
    messages = [{"role": "system", "content": "rules"}, *chat(60)]
    session_id = begun(store, messages)
    store.compact(session_id, COUNT, short)
    store.append(session_id, chat(10))
    second = store.compact(session_id, COUNT, short)
    fork = store.fork(session_id).id
    store.undo_compaction(fork, second.id)
    for each in (session_id, fork):
        with store.database.reading() as connection:
            seen = connection.exec_driver_sql(
                f"SELECT seq FROM hidden_messages WHERE session_id = '{each}' ORDER BY seq"
            )
            assert [row[0] for row in seen] == sorted(store.hidden(each))
            log = connection.exec_driver_sql(
                "SELECT compaction, outcome FROM compaction_log"
                f" WHERE session_id = '{each}' ORDER BY compaction"
            )
            assert [tuple(row) for row in log] == [
                (made.id, made.outcome) for made in store.compactions(each)
            ]
    assert 1 not in store.hidden(session_id)


@pytest.mark.parametrize("reason", ["because", "", None])
def test_an_unknown_reason_is_refused(store: Store, reason: Any) -> None:
    """S3.12; nothing is left running."""
    session_id = begun(store, chat(40))
    with pytest.raises(InvalidValue, match="llm_call, tool_execution, manual"):
        store.compact(session_id, COUNT, short, reason=reason)
    assert store.compactions(session_id) == []


@pytest.mark.parametrize("asked", ["turns", None, {}])
def test_what_is_no_policy_is_refused(store: Store, asked: Any) -> None:
    """Wherever one is asked for, in the same words."""
    session_id = begun(store, chat(40))
    for ask in (store.compact, store.compact_if_needed, store.plan_compaction):
        with pytest.raises(InvalidPolicy, match="a policy must be a Policy"):
            ask(session_id, asked)


@pytest.mark.parametrize("summarizer", ["extractive", 5, Summary("written already")])
def test_what_is_no_summarizer_is_refused(store: Store, summarizer: Any) -> None:
    """It is a mistake of who asks, no failure of a summary: nothing is hidden for it."""
    session_id = begun(store, chat(40))
    for ask in (store.compact, store.compact_if_needed):
        with pytest.raises(InvalidValue, match=r"such as store\.summaries\.extractive, not"):
            ask(session_id, Policy.named("token_ratio", keep_messages=4), summarizer)
    assert store.compactions(session_id) == []


def test_an_unknown_prompt_is_refused_before_anything_begins(store: Store) -> None:
    """And the session is not left as if a compaction were running."""
    session_id = begun(store, chat(40))
    with pytest.raises(InvalidValue, match="no prompt is named"):
        store.compact(session_id, COUNT.model_copy(update={"prompt": "nobody wrote it"}), short)
    assert store.compactions(session_id) == []
    assert store.compact(session_id, COUNT, short).outcome == "applied"


def test_log_lines_are_those_of_the_specification(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """S2.13-S2.15, with their numbers as fields, and whose they are."""
    session_id = begun(store, chat(40))
    with caplog.at_level(logging.DEBUG, "store"):
        store.compact(session_id, COUNT, lambda request: "对话摘要：十二三四五六七")
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert lines == [
        ("INFO", "history 达到 40 条，触发压缩（窗口: 30 条）"),
        ("DEBUG", "摘要生成成功（12字符）"),
        ("INFO", "history 压缩完成: 40 条 → 11 条"),
    ]
    began, wrote, ended = (record.__dict__ for record in caplog.records)
    assert (began["messages"], began["window"], wrote["chars"]) == (40, 30, 12)
    assert {(line["session_id"], line["policy"]) for line in (began, wrote, ended)} == {
        (session_id, "message_count")
    }
    assert (ended["before"], ended["after"], ended["compaction"]) == (40, 11, 1)


def test_an_undo_brings_everything_back(store: Store) -> None:
    """Byte for byte; the record stays and says so."""
    session_id = begun(store, chat(40))
    before = store.view(session_id, COUNT, now=NOW)
    made = store.compact(session_id, COUNT, short, now=NOW)
    undone = store.undo_compaction(session_id, made.id, now=NOW + 1)
    assert undone == made._replace(outcome="undone")
    assert store.compactions(session_id) == [undone]
    assert store.view(session_id, COUNT, now=NOW) == before
    assert store.hidden(session_id) == {}
    assert store.compact(session_id, COUNT, short).hidden == (1, 30)


def test_the_newest_is_undone_first(store: Store) -> None:
    """Because it was made upon the others; undone again it is not in force."""
    session_id = begun(store, chat(40))
    first = store.compact(session_id, COUNT, lambda request: "first")
    store.append(session_id, chat(30))
    second = store.compact(session_id, COUNT, lambda request: "second")
    with pytest.raises(CompactionError, match=f"undo {second.id} first"):
        store.undo_compaction(session_id, first.id)
    store.undo_compaction(session_id, second.id)
    assert contents(store, session_id)[0] == f"{HEADING}\nfirst"
    with pytest.raises(CompactionError, match="not in force"):
        store.undo_compaction(session_id, second.id)
    store.undo_compaction(session_id, first.id)
    assert len(contents(store, session_id)) == 70
    for unknown in (99, None, "1"):
        with pytest.raises(CompactionError, match="not in force"):
            store.undo_compaction(session_id, unknown)  # type: ignore[arg-type]


def test_a_title_is_in_the_zone_of_the_policy(store: Store) -> None:
    """A3.18: UTC where nothing is said; each day is that of the zone."""
    for zone, said in (("UTC", "from 22:00 to 22:30"), ("Asia/Shanghai", "from 06:00 to 06:30")):
        at = [1_767_218_400_000, *[1_767_220_200_000] * 39]
        messages = [
            {**each, "timestamp": moment} for each, moment in zip(chat(40), at, strict=True)
        ]
        made = store.compact(begun(store, messages), COUNT.model_copy(update={"zone": zone}), short)
        assert made.title == f"Summary of conversation {said}"
    with pytest.raises(InvalidPolicy, match="zone"):
        Policy(zone="Nowhere/Town")


def test_headings_that_a_model_left_out_are_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A4.23: pictures do not count; the summary is applied all the same."""
    wanted = load("archive").text
    told = "# archived session summary\n## OBJECTIVES & Status\nall done\n"
    lacking = load("archive").lacking(told)
    assert lacking[0].endswith("Technical Context (Static)")
    assert load("archive").lacking(wanted) == []
    policy = Policy.named("turns", keep_turns=1)
    messages = [{**each, "content": "word " * 200} for each in chat(20)]
    with caplog.at_level(logging.INFO, "store"):
        for model in ("some-model", None):
            session_id = begun(store, messages)
            made = store.compact(session_id, policy, lambda _, by=model: Summary(told, model=by))
            assert made.outcome == "applied"
    (line,) = (each for each in caplog.records if "lacks headings" in each.getMessage())
    assert line.getMessage() == f"a summary lacks headings: {', '.join(lacking)}"
