"""What a summarizer is given of a line."""

from __future__ import annotations

from chats import COUNT, HEADING, TURNS, begun, chat, contents, facts, query, short, work
from conversations import NOW

from store import Policy, Store
from store.summaries import SummaryRequest


def test_a_summarizer_is_given_all_of_what_is_removed(store: Store) -> None:
    """The raw messages of the range in order, a transcript of each, and the prompt with both."""
    session_id = begun(store, chat(40))
    asked: list[SummaryRequest] = []
    store.compact(session_id, COUNT, lambda request: str(asked.append(request)))
    [request] = asked
    assert request.messages == chat(30)
    assert (request.first, request.last, request.max_chars, request.previous_summary) == (
        1,
        30,
        1500,
        None,
    )
    for message in chat(30):
        label = "[用户]: " if message["role"] == "user" else "[助手]: "
        assert f"{label}{message['content']}\n\n" in request.transcript
    assert request.transcript.strip() in request.prompt
    assert "1500" in request.prompt


def test_a_summarizer_reads_raw_text(store: Store) -> None:
    """X.7: never the placeholder that the view has in its place."""
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "terminal-execute", "arguments": "{}"},
    }
    old = {
        "role": "tool",
        "tool_call_id": "c",
        "content": '{"stdout":"the answer is 42"}',
        "timestamp": 0,
    }
    session_id = begun(
        store, [*chat(1), {"role": "assistant", "tool_calls": [call]}, old, *chat(39)]
    )
    policy = COUNT.model_copy(update={"terminal_keep": 0})
    assert policy.terminal_placeholder in contents(store, session_id, policy)
    asked: list[SummaryRequest] = []
    store.compact(session_id, policy, lambda request: str(asked.append(request)), now=NOW)
    assert asked[0].messages[2] == old
    assert "the answer is 42" in asked[0].transcript


def test_system_messages_are_not_summarised(store: Store) -> None:
    """S2.22, S2.36: they are no part of the transcript, and stay in the view."""
    session_id = begun(store, [{"role": "system", "content": "SECRET"}, *chat(40)])
    asked: list[SummaryRequest] = []
    store.compact(session_id, COUNT, lambda request: str(asked.append(request)))
    assert "SECRET" not in asked[0].prompt
    assert contents(store, session_id)[0] == "SECRET"
    assert contents(store, session_id)[1].startswith(HEADING)


def test_what_does_not_fit_into_a_transcript_is_not_hidden(store: Store) -> None:
    """A2.7.

    The first twelve thousand characters of thirty long messages would leave the last ones
    unsummarised.
    """
    long = [{**message, "content": f"{i}:" + "长" * 3000} for i, message in enumerate(chat(60))]
    session_id = begun(store, long)
    policy = COUNT.model_copy(update={"window_messages": None, "transcript_max_chars": 3000})
    asked: list[SummaryRequest] = []
    made = store.compact(session_id, policy, lambda request: str(asked.append(request)))
    assert made.outcome == "applied"
    assert made.hidden is not None
    assert 10 < made.hidden[1] < 50
    assert len(asked[0].transcript) <= 3000
    assert [f"{i}:" in asked[0].transcript for i in range(made.hidden[1])] == [True] * made.hidden[
        1
    ]
    assert store.compact(session_id, policy, short).hidden[0] == made.hidden[1] + 1  # type: ignore[index]


def test_messages_that_no_transcript_takes_stay(store: Store) -> None:
    """Rather than to be removed unseen.

    The extractive summarizer reads the messages themselves and takes them all.
    """
    calls = [
        {"id": f"{i}", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
        for i in range(400)
    ]
    results = [{"role": "tool", "tool_call_id": f"{i}", "content": "output"} for i in range(400)]
    session_id = begun(store, [{"role": "assistant", "tool_calls": calls}, *results, *chat(12)])
    policy = Policy(transcript_max_chars=1000, keep_messages=12)
    refused = store.compact(session_id, policy, short)
    assert (refused.outcome, refused.id) == ("nothing", None)
    assert "longer than a transcript" in str(refused.error)
    assert store.compact(session_id, policy).hidden == (1, 401)


def test_the_earlier_summary_is_carried(store: Store) -> None:
    """A2.4: it is given to be carried into the new one, which then stands alone.

    Nothing else is summarised twice.
    """
    session_id = begun(store, chat(40))
    first = store.compact(session_id, COUNT, lambda request: "alpha is the code")
    store.append(session_id, chat(30, 40))
    asked: list[SummaryRequest] = []

    def second(request: SummaryRequest) -> str:
        asked.append(request)
        return f"{request.previous_summary}, and beta"

    made = store.compact(session_id, COUNT, second)
    assert asked[0].previous_summary == "alpha is the code"
    assert "alpha is the code" in asked[0].prompt
    assert asked[0].messages == chat(30, 30)
    assert contents(store, session_id)[0] == f"{HEADING}\nalpha is the code, and beta"
    assert [first.hidden, made.hidden] == [(1, 30), (31, 60)]
    rows = query(store, session_id, "summaries")
    assert [(row["first"], row["last"], row["supersedes"]) for row in rows] == [
        (1, 30, None),
        (1, 60, 1),
    ]


def test_archived_summaries_are_never_written_again(store: Store) -> None:
    """S4.21, S4.28: each new one stands behind the earlier ones, as a system message."""
    session_id = begun(store, chat(40))
    store.compact(session_id, TURNS, lambda request: f"first {request.previous_summary}")
    store.append(session_id, chat(20, 40))
    store.compact(session_id, TURNS, lambda request: f"second {request.previous_summary}")
    view = store.view(session_id, TURNS)
    assert [message["content"] for message in view.messages[:2]] == ["first None", "second None"]
    assert [message["role"] for message in view.messages[:3]] == ["system", "system", "user"]


def test_archived_summaries_that_fill_a_quarter_of_the_window_are_folded(store: Store) -> None:
    """A4.6: else they grow until nothing but them is left.

    Up to there none is written again (S4.21).
    """
    policy = TURNS.model_copy(update={"keep_turns": 1, "facts_chars": 10_000})
    asked: list[str | None] = []

    def archived(request: SummaryRequest) -> str:
        asked.append(request.previous_summary)
        return f"archive {len(asked)}"

    def compacted(window: int | None) -> list[str]:
        store.append(session_id, work(len(asked) + 2))
        made = store.compact_if_needed(
            session_id, policy, archived, max_tokens=window, last_usage=10**9
        )
        assert made is not None
        assert made.messages_after == len(store.view(session_id, policy).messages)
        assert made.tokens_after == store.check(session_id, policy).tokens
        return [str(text) for text in contents(store, session_id, policy) if "archive" in str(text)]

    session_id = begun(store, work(1))
    told = [compacted(100_000) for _ in range(3)][-1]
    assert (len(told), asked) == (3, [None] * 3)
    entries = store.view(session_id, policy).entries
    quarter = 4 * sum(entry.tokens for entry in entries if entry.rule == "summary")
    fork = store.fork(session_id).id
    assert len(compacted(quarter + 1)) == 4
    session_id = fork
    asked.pop()
    [told] = [compacted(quarter)]
    assert (len(told), asked[3]) == (1, "archive 1\n\narchive 2\n\narchive 3")
    assert [fact for fact in facts(range(1, 5)) if fact not in told[0] + "\n"] == []
    assert len(compacted(100_000)) == 2
    made = store.compactions(session_id)
    for each, left in zip(made[:-3:-1], (1, 3), strict=True):
        store.undo_compaction(session_id, each.id)
        assert sum("archive" in str(text) for text in contents(store, session_id, policy)) == left


def test_archived_summaries_are_carried_where_folding_them_fails(store: Store) -> None:
    """Word by word, with one notice for all."""
    policy = TURNS.model_copy(update={"keep_turns": 1, "facts_chars": 0})
    session_id = begun(store, work(1))
    answers = ["A" * 300, "", "B" * 300, ""]
    for number, answer in enumerate(answers, 2):
        store.append(session_id, work(number))
        window = policy.model_copy(update={"context_window": 100 if number == 5 else 100_000})
        store.compact(session_id, window, lambda request, answer=answer: answer)  # type: ignore[misc]
    notice = "未能生成摘要，仅保留近期历史。"
    assert contents(store, session_id, policy)[0] == "\n\n".join([answers[0], answers[2], notice])
    assert len([text for text in contents(store, session_id, policy) if notice in str(text)]) == 1
