"""Compactions: what is asked, what is recorded, what the view shows then, and how forks and rewinds follow."""

from __future__ import annotations

import gc
import json
import logging
import tracemalloc
from functools import partial
from typing import Any

import pytest
from conversations import NOW

from benchmarks.refusals import refusals
from store import AsyncStore, Policy, Store, StoredMessage, budget, compactions, fitting
from store.compacting import HiddenMessages
from store.errors import CompactionError, InvalidPolicy, InvalidValue, StoreBusy, StoreError
from store.history import read as stored
from store.recording import Job
from store.summaries import FileChange, KeyAction, Summary, SummaryRequest

Message = dict[str, Any]
COUNT = Policy.named("message_count")
RATIO = Policy.named("token_ratio")
TURNS = Policy.named("turns")
HEADING = "[对话摘要 - 早期上下文]"


def chat(count: int, first: int = 0) -> list[Message]:
    """Users and assistants in turn."""
    return [
        {"role": "assistant" if i % 2 else "user", "content": f"消息 {i} " + "说的话" * 20}
        for i in range(first, first + count)
    ]


def begun(store: Store, messages: list[Message]) -> str:
    """A session with these messages."""
    session_id = store.create_session().id
    store.append(session_id, messages)
    return session_id


def short(request: SummaryRequest) -> str:
    """A summarizer."""
    return "对话摘要：他们谈过"


def contents(store: Store, session_id: str, policy: Policy = COUNT) -> list[Any]:
    """What a view says."""
    return [message["content"] for message in store.view(session_id, policy, now=NOW).messages]


def query(store: Store, session_id: str, text: str) -> list[dict[str, Any]]:
    """Rows of a session's tree."""
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql(
            f"SELECT * FROM {text} WHERE tree_id = (SELECT tree_id FROM session_ids WHERE id = '{session_id}')"
        )
        return [dict(row) for row in rows.mappings()]


# --- the ready policies -----------------------------------------------------------------------------------------------


def test_the_constants_of_the_specification() -> None:
    """S2.3-S2.7, S2.17; S3.4-S3.10; S4.23, S4.32, S4.36."""
    assert (COUNT.trigger_messages, COUNT.window_messages, COUNT.keep_messages) == (40, 30, 10)
    assert (COUNT.summary_max_chars, COUNT.hard_limit, COUNT.transcript_max_chars) == (1500, 50, 12_000)
    assert (COUNT.summary_heading, COUNT.prompt, COUNT.on_failure) == (HEADING, "summary_zh", "trim")
    assert (RATIO.trigger_ratio, RATIO.overflow_ratio, RATIO.keep_messages) == (0.8, 0.9, 10)
    assert (RATIO.summary_max_chars, RATIO.parts_to_keep, RATIO.max_iterations) == (500, ("text",), 3)
    assert (RATIO.on_failure, RATIO.previous_summary) == ("skip", "fold")
    assert (TURNS.trigger_usage, TURNS.context_window, TURNS.min_messages) == (0.8, 200_000, 3)
    assert (TURNS.keep_turns, TURNS.summary_timeout, TURNS.prompt) == (10, 120.0, "archive")
    assert (TURNS.on_failure, TURNS.previous_summary) == ("truncate", "append")


# --- what a summarizer is asked ---------------------------------------------------------------------------------------


def test_a_summarizer_is_given_all_of_what_is_removed(store: Store) -> None:
    """The raw messages of the range in order, a transcript of each, and the prompt with both in it."""
    session_id = begun(store, chat(40))
    asked: list[SummaryRequest] = []
    store.compact(session_id, COUNT, lambda request: str(asked.append(request)))
    [request] = asked
    assert request.messages == chat(30)
    assert (request.first, request.last, request.max_chars, request.previous_summary) == (1, 30, 1500, None)
    for message in chat(30):
        label = "[用户]: " if message["role"] == "user" else "[助手]: "
        assert f"{label}{message['content']}\n\n" in request.transcript
    assert request.transcript.strip() in request.prompt
    assert "1500" in request.prompt


def test_a_summarizer_reads_raw_text(store: Store) -> None:
    """X.7: never the placeholder that the view has in its place."""
    call = {"id": "c", "type": "function", "function": {"name": "terminal-execute", "arguments": "{}"}}
    old = {"role": "tool", "tool_call_id": "c", "content": '{"stdout":"the answer is 42"}', "timestamp": 0}
    session_id = begun(store, [*chat(1), {"role": "assistant", "tool_calls": [call]}, old, *chat(39)])
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
    """A2.7: the first twelve thousand characters of thirty long messages would leave the last ones unsummarised."""
    long = [{**message, "content": f"{i}:" + "长" * 3000} for i, message in enumerate(chat(60))]
    session_id = begun(store, long)
    policy = COUNT.model_copy(update={"window_messages": None, "transcript_max_chars": 3000})
    asked: list[SummaryRequest] = []
    made = store.compact(session_id, policy, lambda request: str(asked.append(request)))
    assert made.outcome == "applied"
    assert made.hidden is not None
    assert 10 < made.hidden[1] < 50
    assert len(asked[0].transcript) <= 3000
    assert [f"{i}:" in asked[0].transcript for i in range(made.hidden[1])] == [True] * made.hidden[1]
    assert store.compact(session_id, policy, short).hidden[0] == made.hidden[1] + 1  # type: ignore[index]


def test_messages_that_no_transcript_takes_stay(store: Store) -> None:
    """Rather than to be removed unseen; the extractive summarizer reads the messages themselves and takes them all."""
    calls = [{"id": f"{i}", "type": "function", "function": {"name": "shell", "arguments": "{}"}} for i in range(400)]
    results = [{"role": "tool", "tool_call_id": f"{i}", "content": "output"} for i in range(400)]
    session_id = begun(store, [{"role": "assistant", "tool_calls": calls}, *results, *chat(12)])
    policy = Policy(transcript_max_chars=1000, keep_messages=12)
    refused = store.compact(session_id, policy, short)
    assert (refused.outcome, refused.id) == ("nothing", None)
    assert "longer than a transcript" in str(refused.error)
    assert store.compact(session_id, policy).hidden == (1, 401)


def test_the_earlier_summary_is_carried(store: Store) -> None:
    """A2.4: it is given to be carried into the new one, which then stands alone; nothing else is summarised twice."""
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
    assert [(row["first"], row["last"], row["supersedes"]) for row in rows] == [(1, 30, None), (1, 60, 1)]


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
    """A4.6: else they grow until nothing but them is left; up to there none is written again (S4.21)."""
    policy = TURNS.model_copy(update={"keep_turns": 1, "facts_chars": 10_000})
    asked: list[str | None] = []

    def archived(request: SummaryRequest) -> str:
        asked.append(request.previous_summary)
        return f"archive {len(asked)}"

    def compacted(window: int | None) -> list[str]:
        store.append(session_id, work(len(asked) + 2))
        made = store.compact_if_needed(session_id, policy, archived, max_tokens=window, last_usage=10**9)
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
    notice = "No summary could be made, keeping recent history only."
    assert contents(store, session_id, policy)[0] == "\n\n".join([answers[0], answers[2], notice])
    assert len([text for text in contents(store, session_id, policy) if notice in str(text)]) == 1


# --- what the view shows ----------------------------------------------------------------------------------------------


def test_forty_messages_become_eleven(store: Store) -> None:
    """S2.8, S2.11, S2.31, S2.33: one system message with the heading, then the last ten as they were."""
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


def test_what_is_written_is_read_of_standing_summaries_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds may have been folded, each thousands of letters long: neither a check nor a view reads those."""
    session_id = begun(store, [])
    for number in range(3):
        store.append(session_id, chat(40, first=40 * number))
        store.compact(session_id, COUNT, lambda request: f"summary {len(request.previous_summary or '')}")
    asked: list[list[int]] = []
    rows = compactions.TEXTS.rows

    def read(connection: Any, **values: Any) -> Any:
        asked.append(json.loads(values["numbers"]))
        return rows(connection, **values)

    monkeypatch.setattr(compactions.TEXTS, "rows", read)
    assert store.view(session_id, COUNT).messages[0]["content"].startswith(f"{HEADING}\nsummary 9")
    assert not store.check(session_id, COUNT).should_compact
    assert asked == [[3], [3]]
    assert [each.summary for each in store.compactions(session_id)] == ["summary 0", "summary 9", "summary 9"]
    assert asked[2:] == [[1, 2, 3]]


@pytest.mark.parametrize("role", ["system", "user", "developer"])
def test_the_role_of_a_summary_is_chosen_when_it_is_sent(store: Store, role: str) -> None:
    """A2.11: a second system message is refused by several providers; nothing is stored anew for it."""
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
        "# Summary of conversation from 10:00 to 10:30\n\n**Key Actions:**\n- Used `readFile` to read package.json\n\n"
        "**Files Changed:**\n- src/index.ts (modified)\n\n**Summary:**\nDone."
    )
    [row] = query(store, session_id, "summaries")
    assert (made.title, row["title"], row["model"]) == (summary.title, summary.title, "m-1")
    assert json.loads(row["key_actions"]) == [{"tool": "readFile", "result": "to read package.json"}]
    assert json.loads(row["file_changes"]) == [{"path": "src/index.ts", "action": "modified"}]
    assert row["prompt_version"].startswith("handoff@")


def test_the_summarizer_without_a_model_writes_title_and_body(store: Store) -> None:
    """S3.34, S3.48: from the times of the messages."""
    messages = [{**each, "timestamp": 1_769_853_600_000 + i * 90_000} for i, each in enumerate(chat(21))]
    session_id = begun(store, [*messages, *chat(11, 21)])
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
        ("fold", 0, None, ""),
    ],
)
def test_the_title_of_a_folded_summary_begins_where_the_earlier_one_did(
    store: Store, previous: str, first: int | None, second: int | None, title: str
) -> None:
    """It stands for both; through any number of them, and through a fork. No time is made up for what has none."""

    def timed(start: int | None, number: int) -> list[Message]:
        since = 1_769_853_600_000 + (start or 0) * 1000
        times = [{} if start is None else {"timestamp": since + i * 60_000} for i in range(number)]
        return [{**message, **time} for message, time in zip(chat(number), times, strict=True)]

    policy = Policy(keep_turns=1, previous_summary=previous)
    session_id = begun(store, timed(first, 10))
    for after in (second, second):
        assert store.compact(session_id, policy).outcome == "applied"
        session_id = store.fork(session_id).id
        store.append(session_id, timed(after, 12))
    store.append(session_id, chat(2))
    made = store.compact(session_id, policy)
    assert made.title == f"Summary of conversation {title}".strip()


# --- facts ------------------------------------------------------------------------------------------------------------


def tool(name: str, arguments: Message, content: str, call_id: str) -> list[Message]:
    """A call and its result."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": content, "timestamp": NOW},
    ]


def work(number: int) -> list[Message]:
    """A turn in which a file is read and changed, a command succeeds and another one fails."""
    failed = {"stdout": "", "stderr": f"make: *** error {number}", "exitCode": 2}
    return [
        {"role": "user", "content": f"please do {number} " + "and take your time " * 30},
        *tool("filesystem-read", {"filePath": f"src/file{number}.ts"}, "1→x", f"r{number}"),
        *tool("filesystem-edit", {"filePath": f"src/file{number}.ts"}, "ok", f"e{number}"),
        *tool("terminal-execute", {"command": f"npm test {number}"}, '{"stdout":"ok","exitCode":0}', f"t{number}"),
        *tool("terminal-execute", {"command": f"make {number}"}, json.dumps(failed), f"m{number}"),
        *tool("mystery", {"command": f"launch {number}"}, f"Error: no rocket {number}", f"x{number}"),
    ]


def facts(numbers: range) -> list[str]:
    """What must be found of these turns."""
    return [
        line
        for number in numbers
        for line in (
            f"- src/file{number}.ts (file_edit)\n",
            f"- npm test {number} (exit 0)\n",
            f"- make {number} (exit 2)\n",
            f"make: *** error {number}",
            f"- Error: no rocket {number} (mystery)",
        )
    ]


@pytest.mark.parametrize("previous", ["fold", "append"])
def test_files_commands_and_errors_outlast_every_compaction(store: Store, previous: str) -> None:
    """All of what was ever hidden, whatever the model writes; the conversation goes on, and is compacted again."""
    policy = Policy(keep_turns=1, previous_summary=previous, facts_chars=20_000)
    session_id = store.create_session().id
    for number in range(1, 7):
        store.append(session_id, work(number))
        made = store.compact(session_id, policy, lambda request: "we worked")
        assert made.outcome == ("nothing" if number == 1 else "applied")
        text = "\n".join(
            content + "\n"
            for content in contents(store, session_id, policy)[: number if previous == "append" else 1]
            if content
        )
        assert [fact for fact in facts(range(1, number)) if fact not in text] == []
    with_errors = [row["facts"] for row in query(store, session_id, "summaries")]
    assert all("Errors met:" in each for each in with_errors)


def test_the_error_itself_is_told(store: Store) -> None:
    """Not how long it took and what went well before it: in the facts and by the summarizer without a model."""
    noise = "\n".join(f"compiling module {number}" for number in range(40))
    chunk = (
        f"Chunk ID: 1f\nWall time: 0 seconds\nProcess exited with code 2\nOutput:\n{noise}\nld: fatal: no libx\n{noise}"
    )
    protocol = {"status": "error", "text": noise, "error": {"code": "NOT_FOUND", "message": "no b.ts"}, "data": {}}
    session_id = begun(
        store,
        [
            {"role": "user", "content": "build " * 200},
            *tool("exec_command", {"cmd": "make"}, chunk, "m"),
            *tool("Read", {"path": "b.ts"}, json.dumps(protocol), "r"),
            *chat(1),
        ],
    )
    store.compact(session_id, Policy())
    [row] = query(store, session_id, "summaries")
    assert row["facts"].endswith("Errors met:\n- ld: fatal: no libx (exec_command)\n- NOT_FOUND: no b.ts (Read)")
    assert "to run make: exit 2, ld: fatal: no libx" in row["body"]
    assert "to read b.ts: failed, NOT_FOUND: no b.ts" in row["body"]


def test_a_command_without_a_result_is_told(store: Store) -> None:
    """It may have run: nothing came back; each in its place, and of a command run again what came of it last."""
    started, stopped = (tool("terminal-execute", {"command": f"npm {word}"}, "", word)[0] for word in ("start", "stop"))
    edit = tool("filesystem-edit", {"filePath": "a.ts"}, "", "e")[0]
    session_id = begun(store, [*work(1), started, stopped, edit, *work(2)])
    store.append(session_id, [*tool("terminal-execute", {"command": "npm stop"}, "{}", "again"), *work(3)])
    store.compact(session_id, Policy(), lambda request: "we worked")
    [text] = [row["facts"] for row in query(store, session_id, "summaries")]
    commands = text.split("Commands run:\n")[1].split("Errors met:")[0].splitlines()
    ran = [
        f"- {command} {number} (exit {code})" for number in (1, 2) for command, code in (("npm test", 0), ("make", 2))
    ]
    assert commands == [*ran[:2], "- npm start (no result)", *ran[2:], "- npm stop"]
    assert "a.ts" not in text


def test_a_result_on_another_line_is_no_result(store: Store) -> None:
    """What a fork got is the fork's; what came after the call was hidden counts from then on."""
    started = tool("terminal-execute", {"command": "npm start"}, "", "c")[0]
    session_id = begun(store, [*chat(1), started])
    fork = store.fork(session_id).id
    store.append(fork, [tool("", {}, '{"stdout":"","exitCode":0}', "c")[1], *chat(1)])
    store.append(session_id, chat(1))
    told = []
    for each in (fork, session_id):
        store.compact(each, Policy(facts_chars=100), lambda request: "s")
        told.append(str(contents(store, each, Policy())[0]).splitlines()[-1])
    assert told == ["- npm start (exit 0)", "- npm start (no result)"]
    store.append(session_id, [tool("", {}, '{"stdout":"","exitCode":0}', "c")[1], *chat(1)])
    store.compact(session_id, Policy(), lambda request: "s")
    assert str(contents(store, session_id, Policy())[0]).endswith("- npm start (exit 0)")


def test_a_summary_tells_no_fact_that_one_beside_it_tells(store: Store) -> None:
    """Where summaries stay beside each other, each has the facts of its own range, and room for all of them."""
    policy = Policy(keep_turns=1, previous_summary="append")
    session_id = begun(store, work(1))
    for number in range(2, 6):
        store.append(session_id, work(number))
        store.compact(session_id, policy, lambda request: "we worked")
    told = [row["facts"] + "\n" for row in query(store, session_id, "summaries")]
    assert [[fact in text for fact in facts(range(n, n + 1))] for n, text in enumerate(told, 1)] == [[True] * 5] * 4
    assert [text for n, text in enumerate(told, 1) if f"file{n - 1}" in text or "no result" in text] == []


def test_the_command_of_a_late_result_is_told_with_it(store: Store) -> None:
    """Its call was hidden before the result came, behind a summary that still stands."""
    policy = Policy(keep_turns=1, previous_summary="append")
    call, result = tool("terminal-execute", {"command": "make late"}, '{"stdout":"ok","exitCode":0}', "late")
    session_id = begun(store, [*work(1), call, *work(2)])
    assert store.compact(session_id, policy, lambda request: "we worked").outcome == "applied"
    store.append(session_id, [result, *work(3)])
    assert store.compact(session_id, policy, lambda request: "we worked").outcome == "applied"
    assert "- make late (exit 0)\n" in query(store, session_id, "summaries")[1]["facts"]


def test_a_kind_that_only_the_policy_knows_counts(store: Store) -> None:
    """X.11: what it calls a terminal ran commands."""
    session_id = begun(store, [*work(1), *work(2)])
    policy = Policy(tool_kinds={"mystery": "terminal", "filesystem-edit": "other"})
    store.compact(session_id, policy, lambda request: "we worked")
    [text] = [row["facts"] for row in query(store, session_id, "summaries")]
    assert "- launch 1\n" in text
    assert "- src/file1.ts (file_read)\n" in text


def test_many_short_errors_are_all_kept_within_the_budget(store: Store) -> None:
    """The budget alone says how many; the same error again and again takes no other's place."""
    errors = [each for i in range(80) for each in tool("search", {}, f"Error: e{i:03}", f"c{i}")]
    again = [each for i in range(200) for each in tool("search", {}, "Error: again", f"a{i}")]
    session_id = begun(store, [*chat(1), *errors, *again, *chat(2)])
    store.compact(session_id, Policy(facts_chars=4000), lambda request: "errors all the way")
    [text] = [row["facts"] for row in query(store, session_id, "summaries")]
    assert [i for i in range(80) if f"- Error: e{i:03} (search)" not in text] == []
    assert text.count("again") == 1
    assert len(text) <= 4000


def test_facts_can_be_left_out(store: Store) -> None:
    """With a budget of nothing."""
    session_id = begun(store, [*work(1), *work(2)])
    store.compact(session_id, Policy(facts_chars=0), lambda request: "we worked")
    assert contents(store, session_id, Policy())[0] == "we worked"


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_says_everything(url: str) -> None:
    """S3.12, S3.31, S3.32; and still does after the store was opened anew (A3.16)."""
    with Store(url, durability="normal") as store:
        session_id = begun(store, chat(40))
        made = store.compact(session_id, COUNT, short, reason="tool_execution", now=NOW)
        assert (made.id, made.kind, made.outcome, made.reason, made.policy) == (
            *(1, "summary", "applied", "tool_execution", "message_count"),
        )
        assert (made.hidden, made.first_kept, made.cleared, made.error) == ((1, 30), 31, (), None)
        assert (made.messages_before, made.messages_after, made.head, made.created_at) == (40, 11, 40, NOW)
        assert (made.summary, made.title) == ("对话摘要：他们谈过", None)
        assert made.tokens_after < made.tokens_before  # type: ignore[operator]
        assert made.tokens_after == store.view(session_id, COUNT, now=NOW).stats.tokens
        view = store.view(session_id, COUNT, now=NOW)
        [row] = query(store, session_id, "summaries")
        assert (row["first"], row["last"], row["body"], row["tokens"]) == (1, 30, made.summary, view.entries[0].tokens)
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


def test_the_digest_tells_the_source(store: Store) -> None:
    """The same messages give the same, others another."""
    digests = []
    for messages in (chat(40), chat(40), chat(40, 2)):
        session_id = begun(store, messages)
        store.compact(session_id, COUNT, short)
        digests += [row["digest"] for row in query(store, session_id, "summaries")]
    assert digests[0] == digests[1] != digests[2]


def test_the_views_for_people_agree(store: Store) -> None:
    """The SQL views show the same records and the same hidden positions as the store's own answers."""
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
                f"SELECT compaction, outcome FROM compaction_log WHERE session_id = '{each}' ORDER BY compaction"
            )
            assert [tuple(row) for row in log] == [(made.id, made.outcome) for made in store.compactions(each)]
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
        with pytest.raises(InvalidPolicy, match="a policy is a Policy"):
            ask(session_id, asked)


@pytest.mark.parametrize("summarizer", ["extractive", 5, Summary("written already")])
def test_what_is_no_summarizer_is_refused(store: Store, summarizer: Any) -> None:
    """It is a mistake of who asks, no failure of a summary: nothing is hidden for it."""
    session_id = begun(store, chat(40))
    for ask in (store.compact, store.compact_if_needed):
        with pytest.raises(InvalidValue, match="a summarizer is a callable"):
            ask(session_id, Policy.named("token_ratio", keep_messages=4), summarizer)
    assert store.compactions(session_id) == []


def test_an_unknown_prompt_is_refused_before_anything_begins(store: Store) -> None:
    """And the session is not left as if a compaction were running."""
    session_id = begun(store, chat(40))
    with pytest.raises(InvalidValue, match="no prompt is named"):
        store.compact(session_id, COUNT.model_copy(update={"prompt": "nobody wrote it"}), short)
    assert store.compactions(session_id) == []
    assert store.compact(session_id, COUNT, short).outcome == "applied"


def test_log_lines_are_those_of_the_specification(store: Store, caplog: pytest.LogCaptureFixture) -> None:
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
    assert {(line["session_id"], line["policy"]) for line in (began, wrote, ended)} == {(session_id, "message_count")}
    assert (ended["before"], ended["after"], ended["compaction"]) == (40, 11, 1)


# --- undo -------------------------------------------------------------------------------------------------------------


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


# --- forks and rewinds ------------------------------------------------------------------------------------------------


def test_a_fork_has_the_compactions_of_its_past(store: Store) -> None:
    """And copies no row for it; one of before has none, whatever its source does later."""
    session_id = begun(store, chat(40))
    before = store.fork(session_id).id
    earlier = store.fork(session_id, at=39).id
    store.compact(session_id, COUNT, short)
    rows = {name: len(query(store, session_id, name)) for name in ("messages", "compaction_records", "summaries")}
    after = store.fork(session_id).id
    assert rows == {name: len(query(store, session_id, name)) for name in rows}
    assert contents(store, after) == contents(store, session_id)
    assert contents(store, before) == [message["content"] for message in chat(40)]
    assert contents(store, earlier) == [message["content"] for message in chat(39)]
    assert store.compactions(after) == store.compactions(session_id)
    assert store.compactions(before) == store.compactions(earlier) == []
    store.append(after, chat(1))
    assert len(contents(store, after)) == 12


def test_what_a_fork_undoes_stays_in_its_source(store: Store) -> None:
    """And the other way round."""
    session_id = begun(store, chat(40))
    made = store.compact(session_id, COUNT, short)
    fork, other = store.fork(session_id).id, store.fork(session_id).id
    store.undo_compaction(fork, made.id)
    assert [len(contents(store, each)) for each in (session_id, fork, other)] == [11, 40, 11]
    store.undo_compaction(session_id, made.id)
    assert [len(contents(store, each)) for each in (session_id, fork, other)] == [40, 40, 11]


def test_siblings_compact_for_themselves(store: Store) -> None:
    """At the same head, each over the same messages."""
    session_id = begun(store, chat(40))
    forks = [store.fork(session_id).id for _ in range(3)]
    for fork in forks[:2]:
        assert store.compact(fork, COUNT, lambda request, fork=fork: f"by {fork}").outcome == "applied"  # type: ignore[misc]
    assert [contents(store, fork)[0] for fork in forks[:2]] == [f"{HEADING}\nby {fork}" for fork in forks[:2]]
    assert [len(contents(store, each)) for each in (*forks, session_id)] == [11, 11, 40, 40]


def test_a_fork_made_while_a_summary_is_written_stays_apart(store: Store) -> None:
    """It was made before the compaction counted, at the same head."""
    session_id = begun(store, chat(40))
    made = store.compact(
        session_id, COUNT, lambda request: f"x{store.fork(session_id, session_id=f'{session_id}-f').id}"
    )
    assert made.outcome == "applied"
    assert len(contents(store, session_id)) == 11
    assert len(contents(store, f"{session_id}-f")) == 40
    assert store.compactions(session_id) == [made]
    assert store.undo_compaction(session_id, made.id).outcome == "undone"


def test_a_branch_hangs_on_no_compaction_that_still_runs(store: Store) -> None:
    """Made where its line began, a compaction counts where the line is when it ends."""
    session_id = begun(store, chat(43))
    store.rewind(session_id, 42)

    def moving(request: SummaryRequest) -> str:
        store.fork(session_id)
        store.rewind(session_id, 41)
        return "a summary"

    assert store.compact(session_id, COUNT, moving).outcome == "applied"
    assert store.verify() == []


def test_a_fork_of_a_fork_has_what_the_fork_compacted(store: Store) -> None:
    """Though no message was appended between: the position is the grandparent's, the compaction is not."""
    fork = store.fork(begun(store, chat(40))).id
    store.compact(fork, COUNT, short)
    assert len(contents(store, store.fork(fork).id)) == 11


def test_a_fork_of_a_fork_has_not_what_its_grandparent_compacted_later(store: Store) -> None:
    """The fork did not have it either."""
    session_id = begun(store, chat(40))
    fork = store.fork(session_id).id
    store.compact(session_id, COUNT, short)
    assert len(contents(store, store.fork(fork).id)) == 40


def test_a_rewind_to_where_a_fork_began_has_what_it_compacted_there(store: Store) -> None:
    """The compaction was recorded at this very head."""
    fork = store.fork(begun(store, chat(40))).id
    store.compact(fork, COUNT, short)
    store.append(fork, chat(4))
    store.rewind(fork, 40)
    assert len(contents(store, fork)) == 11


def test_a_rewind_to_where_a_fork_began_has_not_what_its_source_compacted_later(store: Store) -> None:
    """A sibling is never affected."""
    session_id = begun(store, chat(40))
    fork = store.fork(session_id).id
    store.compact(session_id, COUNT, short)
    store.append(fork, chat(4))
    store.rewind(fork, 40)
    assert len(contents(store, fork)) == 40


def test_a_rewind_to_before_it_brings_the_messages_back(store: Store) -> None:
    """X.16: and undoing the rewind hides them again; a rewind to its own head keeps it."""
    session_id = begun(store, chat(40))
    store.compact(session_id, COUNT, short)
    store.append(session_id, chat(6))
    compacted = contents(store, session_id)
    store.rewind(session_id, 40)
    assert len(contents(store, session_id)) == 11
    store.rewind(session_id, 39)
    assert contents(store, session_id) == [message["content"] for message in chat(39)]
    assert (store.hidden(session_id), store.compactions(session_id)) == ({}, [])
    store.undo_rewind(session_id)
    assert len(contents(store, session_id)) == 11
    store.undo_rewind(session_id)
    assert contents(store, session_id) == compacted


def test_a_line_that_was_left_is_shown_with_its_compactions(store: Store) -> None:
    """By the branch that the head left."""
    session_id = begun(store, chat(44))
    store.compact(session_id, COUNT, short, now=NOW)
    compacted = store.view(session_id, COUNT, now=NOW)
    store.rewind(session_id, 20)
    assert store.view(session_id, COUNT, branch=compacted.branch, now=NOW) == compacted


def test_a_view_of_before_a_compaction_is_that_of_then(store: Store) -> None:
    """At each position; at its own head it is the compacted one."""
    session_id = store.create_session().id
    seen = {}
    for place, message in enumerate(chat(70), 1):
        store.append(session_id, message)
        store.compact_if_needed(session_id, COUNT, short, now=NOW)
        seen[place] = store.view(session_id, COUNT, now=NOW)
    assert len(store.compactions(session_id)) == 2
    for place, view in seen.items():
        assert store.view(session_id, COUNT, at=place, now=NOW) == view


def test_a_greeting_before_a_long_turn_holds_nothing_up(store: Store) -> None:
    """By messages, as if live: the turn is hidden with it as soon as it is over; the window alone would never pay."""
    session_id = begun(store, [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    made = []
    for turn in range(3):
        store.append(session_id, {"role": "user", "content": f"do the work {turn}"})
        for step in range(30):
            store.append(session_id, tool("terminal-execute", {"command": "make x"}, "out " * 100, f"c{turn}-{step}"))
            made += [store.compact_if_needed(session_id, COUNT, short, now=NOW)]
    assert [each.hidden for each in made if each and each.outcome == "applied"] == [(1, 63), (64, 124)]


# --- meanwhile --------------------------------------------------------------------------------------------------------


def test_appends_go_on_while_a_summary_is_written(store: Store) -> None:
    """A compaction is applied to the range that it was planned for; its record tells of the view that it changed."""
    session_id = begun(store, chat(40))

    def slow(request: SummaryRequest) -> str:
        for message in chat(5, 40):
            store.append(session_id, message)
        return "slow"

    made = store.compact(session_id, COUNT, slow, now=NOW)
    assert (made.outcome, made.hidden, made.head) == ("applied", (1, 30), 45)
    assert (made.messages_before, made.messages_after) == (45, 16)
    assert contents(store, session_id)[1:] == [message["content"] for message in chat(45)[30:]]
    assert made.tokens_after == store.check(session_id, COUNT, now=NOW).tokens
    assert store.hidden(session_id, at=44) == {}


@pytest.mark.parametrize("to", [0, 15, 30])
def test_a_rewind_into_the_range_meanwhile_rejects_it(store: Store, to: int) -> None:
    """The messages are gone from the line, or its latest user message would be hidden."""
    session_id = begun(store, chat(40))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, to)
        return "of what is gone"

    made = store.compact(session_id, COUNT, rewinding)
    assert (made.outcome, made.hidden) == ("rejected", None)
    assert "rewound" in str(made.error)
    assert contents(store, session_id) == [message["content"] for message in chat(to)]
    store.undo_rewind(session_id)
    assert len(contents(store, session_id)) == 40


def test_a_rewind_and_other_messages_meanwhile_reject_it(store: Store) -> None:
    """The positions are there again, the messages are others."""
    session_id = begun(store, chat(40))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, 10)
        store.append(session_id, chat(40, 100))
        return "of what is gone"

    assert store.compact(session_id, COUNT, rewinding).outcome == "rejected"
    assert len(contents(store, session_id)) == 50


def test_a_rewind_behind_the_range_meanwhile_does_no_harm(store: Store) -> None:
    """Nor does one that is undone."""
    session_id = begun(store, chat(44))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, 5)
        store.undo_rewind(session_id)
        store.rewind(session_id, 33)
        return "still right"

    made = store.compact(session_id, COUNT, rewinding)
    assert (made.outcome, made.head) == ("applied", 33)
    assert len(contents(store, session_id)) == 4
    store.undo_rewind(session_id)
    assert len(contents(store, session_id)) == 44


def test_an_undo_meanwhile_rejects_it(store: Store) -> None:
    """It was planned upon what is no longer hidden."""
    session_id = begun(store, chat(40))
    first = store.compact(session_id, COUNT, short)
    store.append(session_id, chat(30))

    def undoing(request: SummaryRequest) -> str:
        store.undo_compaction(session_id, first.id)
        return "upon nothing"

    made = store.compact(session_id, COUNT, undoing)
    assert (made.outcome, made.error) == (
        "rejected",
        "the range begins elsewhere by now: a compaction was undone or made meanwhile",
    )
    assert len(contents(store, session_id)) == 70


def test_another_summary_of_the_same_range_meanwhile_rejects_it(store: Store) -> None:
    """It carries on one that the line does not have; erasing the session would find that gone before it."""
    session_id = begun(store, chat(80))
    store.compact(session_id, COUNT, short)
    store.rewind(session_id, 78)
    assert store.compact(session_id, COUNT, short).hidden == (1, 30)

    def returning(request: SummaryRequest) -> str:
        store.undo_rewind(session_id)
        return "upon another"

    made = store.compact(session_id, COUNT, returning)
    assert (made.outcome, made.head) == ("rejected", 80)
    assert store.delete_session(session_id).messages == 80


def test_an_erased_session_meanwhile_is_said(store: Store) -> None:
    """There is nothing left to record."""
    session_id = begun(store, chat(40))

    def erasing(request: SummaryRequest) -> str:
        store.delete_session(session_id)
        return "of nothing"

    with pytest.raises(LookupError):
        store.compact(session_id, COUNT, erasing)


def test_nothing_of_an_erased_session_gets_into_one_of_its_id(store: Store) -> None:
    """Though a compaction with the same number is running there."""
    session_id = begun(store, chat(40))

    def replacing(request: SummaryRequest) -> str:
        store.delete_session(session_id)
        store.create_session(session_id)
        store.append(session_id, chat(40, 100))
        job = store._prepare(session_id, COUNT, now=NOW)
        assert isinstance(job, Job)
        assert store._begin(session_id, COUNT, job, now=NOW) == 1
        return "of what was erased"

    assert store.compact(session_id, COUNT, replacing, now=NOW).outcome == "rejected"
    assert contents(store, session_id) == [message["content"] for message in chat(40, 100)]


# --- one at a time ----------------------------------------------------------------------------------------------------


def test_a_second_compaction_of_a_session_is_told(store: Store) -> None:
    """A3.21: while another session of the tree may be compacted."""
    session_id = begun(store, chat(40))
    fork = store.fork(session_id).id
    told = []

    def another(request: SummaryRequest) -> str:
        told.append(store.compact(session_id, COUNT, short, reason="llm_call"))
        assert [made.outcome for made in store.compactions(session_id)] == ["running"]
        assert store.compact(fork, COUNT, short).outcome == "applied"
        return "first"

    made = store.compact(session_id, COUNT, another)
    assert made.outcome == "applied"
    assert (told[0].id, told[0].outcome, told[0].reason) == (None, "rejected", "llm_call")
    assert "is still running" in str(told[0].error)
    assert store.compactions(session_id) == [made]


def test_the_database_itself_refuses_a_second_running_record(url: str) -> None:
    """Whoever writes it."""
    with Store(url, durability="normal") as store:
        session_id = begun(store, chat(40))

        def insert(outcome: str) -> None:
            copied = "tree_id, branch, head, reason, created_at, session_id, kind"
            with store.database.writing() as connection:
                connection.exec_driver_sql(
                    f"INSERT INTO compaction_records (compaction, outcome, {copied}) "
                    f"SELECT 7, '{outcome}', {copied} FROM compaction_records"
                )

        def writing(request: SummaryRequest) -> str:
            with pytest.raises(StoreError, match=r"(?i)unique"):
                insert("running")
            insert("failed")
            return "refused"

        assert store.compact(session_id, COUNT, writing).outcome == "applied"


def test_an_abandoned_compaction_is_taken_over(store: Store) -> None:
    """When its time is long over; what comes of it then is rejected."""
    session_id = begun(store, chat(40))
    later = []

    def abandoned(request: SummaryRequest) -> str:
        told = store.compact(session_id, COUNT, short, now=NOW + 180_000 - 1)
        assert told.outcome == "rejected"
        later.append(store.compact(session_id, COUNT, lambda request: "took over", now=NOW + 180_000))
        return "too late"

    late = store.compact(session_id, COUNT, abandoned, now=NOW)
    assert later[0].outcome == "applied"
    assert (late.id, late.outcome) == (None, "rejected")
    assert contents(store, session_id)[0] == f"{HEADING}\ntook over"
    first, second = store.compactions(session_id)
    assert (first.outcome, first.error, second.outcome) == ("failed", "it never ended", "applied")


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_a_compacted_view_is_sent_without_repair(store: Store) -> None:
    """With tools in what is hidden and in what is kept."""
    session_id = begun(store, [each for number in range(8) for each in work(number)])
    for policy in (COUNT, RATIO, TURNS.model_copy(update={"keep_turns": 3})):
        fork = store.fork(session_id).id
        assert store.compact(fork, policy, short).outcome == "applied"
        view = store.view(fork, policy)
        assert refusals(view.messages) == []
        assert "repair" not in view.stats.replaced
        assert view.stats.left_out == ()


def steps(store: Store, operation: Any, *arguments: Any, **options: Any) -> int:
    """How many steps of SQLite's machine an operation takes: a count of rows read, and no clock."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with store.database.reading() as connection:
        operation(connection, *arguments, **options)
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(step, 1)
        operation(connection, *arguments, **options)
        driver.set_progress_handler(None, 0)
    return count


@pytest.mark.sqlite_only
def test_hidden_messages_are_not_read(store: Store) -> None:
    """The contents of a view are those of what is kept, however many messages are hidden."""
    from store.view import VISIBLE, lines

    def read(connection: Any, session_id: str) -> None:
        pointer = lines.find(connection, session_id)
        visible = compactions.visible(connection, pointer, pointer.head)
        for run in lines.segments(connection, pointer, visible.first_kept, pointer.head):
            VISIBLE.rows(connection, tree_id=pointer.tree_id, **run._asdict(), replaced="[]")

    costs = []
    for turns in (6, 300):
        session_id = begun(store, [each for number in range(turns) for each in work(number)])
        assert store.compact(session_id, Policy(keep_turns=3, facts_chars=0), short).outcome == "applied"
        costs.append(steps(store, read, session_id))
    assert costs[1] <= costs[0] * 1.02


@pytest.mark.sqlite_only
@pytest.mark.parametrize("operation", ["view", "check", "plan"])
def test_the_cost_of_a_view_is_that_of_what_is_kept(store: Store, operation: str) -> None:
    """Promise 8: the rules and the budget read nothing of what is hidden either."""
    from store import budget, compaction, view

    policy = Policy(keep_turns=3, facts_chars=0, trigger_messages=1)
    ask = {"view": view.view, "check": budget.check, "plan": compaction.planned}[operation]
    costs = []
    for turns in (6, 300):
        session_id = begun(store, [each for number in range(turns) for each in work(number)])
        assert store.compact(session_id, policy, short).outcome == "applied"
        costs.append(steps(store, ask, session_id, policy, now=NOW))
    assert costs[1] <= costs[0] * 1.05


def test_everything_is_awaited_too() -> None:
    """The two faces have the same names."""
    names = {name for name in dir(Store) if not name.startswith("_")} - {"database", "pages"}
    assert names - set(dir(AsyncStore)) == set()


def test_no_policy_of_impossible_values() -> None:
    """Each says what is wrong."""
    counts = ({"keep_turns": 0}, {"window_messages": 0})
    for wrong in (*counts, {"trigger_ratio": 1.1}, {"trigger_ratio": 0.0}, {"boundary": "message"}):
        with pytest.raises(InvalidPolicy, match=next(iter(wrong))):
            Policy(**wrong)


# --- long ranges ------------------------------------------------------------------------------------------------------


def test_no_more_is_read_than_a_transcript_may_have_room_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the range, reading ends where the transcript is full; all that it shows is what is hidden."""
    session_id = begun(store, chat(3000))
    read: list[int] = []

    def noting(connection: Any, name: str, start: int, stop: int) -> list[StoredMessage]:
        read.append(stop)
        return stored(connection, name, start, stop)

    monkeypatch.setattr(fitting, "stored", noting)
    asked: list[SummaryRequest] = []
    policy = Policy(keep_messages=2, transcript_max_chars=10_000)
    made = store.compact(session_id, policy, lambda request: asked.append(request) or "short")
    assert made.hidden
    assert read == [fitting.READ_AT_ONCE]
    assert len(asked[0].messages) == made.hidden[1] < 200
    assert f"消息 {made.hidden[1] - 1} " in asked[0].transcript


def test_a_hosts_summarizer_has_its_garbage_collected(store: Store) -> None:
    """The collector is paused for our own work on many messages, not for that of others."""
    session_id = begun(store, chat(1500))
    collected: list[bool] = []
    policy = Policy(keep_messages=2)
    assert store.compact(session_id, policy, lambda request: collected.append(gc.isenabled()) or "short").hidden
    assert collected == [True]
    assert gc.isenabled()


def told(count: int) -> list[Message]:
    """Large messages, with a system message among them that is not summarised."""
    messages = [{**each, "content": str(each["content"]) + "x" * 8_000} for each in chat(count)]
    return [*messages[:5], {"role": "system", "content": "Be brief."}, *messages[5:]]


def test_messages_that_are_hidden_read_like_a_list(store: Store) -> None:
    """Whole, by number and in slices: all but the system message, which stays."""
    session_id = begun(store, told(30))
    plan = store.plan_compaction(session_id, Policy(keep_messages=3))
    expected = [each.message for each in store.messages(session_id, 1, plan.last) if each.seq != 6]
    hidden = HiddenMessages(plan, partial(store.messages, session_id))
    assert plan.pinned == (6,)
    assert (len(hidden), list(hidden), hidden[:]) == (len(expected), expected, expected)
    assert [hidden[i] for i in range(-len(expected), len(expected))] == expected * 2
    assert hidden[4:9:2] == expected[4:9:2]
    assert hidden.index(expected[7]) == 7
    for beyond in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            hidden[beyond]


class Counting(Store):
    """A store that notes what is read of it, and fails on request."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.read: list[tuple[int, int]] = []
        self.busy = False

    def messages(self, session_id: str, start: int = 1, stop: int | None = None, **options: Any) -> list[StoredMessage]:  # type: ignore[override]
        """Note a range, and read it."""
        if self.busy:
            raise StoreBusy("another transaction was in the way")
        self.read.append((start, stop or 0))
        return super().messages(session_id, start, stop, **options)


def test_an_extractive_summary_holds_few_messages_at_a_time(url: str) -> None:
    """However long the range, each message is read once, and memory has five hundred of them at most."""
    with Counting(url) as store:
        session_id = begun(store, told(5 * fitting.READ_AT_ONCE))
        tracemalloc.start()
        made = store.compact(session_id, Policy(keep_messages=2))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert made.outcome == "applied"
        assert made.hidden
        ranges = [range(first, last + 1) for first, last in store.read]
        assert [seq for each in ranges for seq in each] == list(range(1, made.hidden[1] + 1))
        assert max(map(len, ranges)) <= fitting.READ_AT_ONCE
        assert peak < 20_000_000 < made.messages_before * 8_000


def test_messages_that_cannot_be_read_are_no_failure_of_a_summary(url: str) -> None:
    """The caller hears of it, nothing is hidden in the place of a summary, and the next attempt is free."""
    policy = Policy(keep_messages=2, on_failure="truncate")
    with Counting(url) as store:
        session_id = begun(store, chat(20))
        store.busy = True
        with pytest.raises(StoreBusy):
            store.compact(session_id, policy)
        assert [each.outcome for each in store.compactions(session_id)] == ["failed"]
        store.busy = False
        assert store.compact(session_id, policy).outcome == "applied"


@pytest.mark.parametrize(("said", "found"), [(0, 1), (2, 2)])
def test_what_a_view_costs_is_found_again_only_where_it_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch, said: int, found: int
) -> None:
    """What was appended while the summary was written counts in the record; else nothing is looked at twice."""
    session_id = begun(store, chat(20))
    before = store.check(session_id, Policy()).tokens
    looked: list[int] = []
    tokens = budget.view_tokens

    def noting(*given: Any, **options: Any) -> int:
        looked.append(tokens(*given, **options))
        return looked[-1]

    def summarizer(_: SummaryRequest) -> str:
        store.append(session_id, chat(said, 100))
        return "short"

    monkeypatch.setattr(budget, "view_tokens", noting)
    made = store.compact(session_id, Policy(keep_messages=2), summarizer)
    assert (made.outcome, len(looked), made.tokens_before) == ("applied", found, looked[-1])
    assert (made.messages_before, looked[-1] > before) == (20 + said, said > 0)
