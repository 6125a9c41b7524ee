"""The facts of what is hidden, which go with every summary."""

from __future__ import annotations

import json

import pytest
from chats import begun, chat, contents, facts, query, tool, work

from store import Policy, Store


@pytest.mark.parametrize("previous", ["fold", "append"])
def test_files_commands_and_errors_outlast_every_compaction(store: Store, previous: str) -> None:
    """All of what was ever hidden, whatever the model writes.

    The conversation goes on, and is compacted again.
    """
    policy = Policy(keep_turns=1, previous_summary=previous, facts_chars=20_000)
    session_id = store.create_session().id
    for number in range(1, 7):
        store.append(session_id, work(number))
        made = store.compact(session_id, policy, lambda request: "we worked")
        assert made.outcome == ("nothing" if number == 1 else "applied")
        text = "\n".join(
            content + "\n"
            for content in contents(store, session_id, policy)[
                : number if previous == "append" else 1
            ]
            if content
        )
        assert [fact for fact in facts(range(1, number)) if fact not in text] == []
    with_errors = [row["facts"] for row in query(store, session_id, "summaries")]
    assert all("遇到的错误：" in each for each in with_errors)


def test_the_error_itself_is_told(store: Store) -> None:
    """Not how long it took and what went well before it.

    In the facts and by the summarizer without a model.
    """
    noise = "\n".join(f"compiling module {number}" for number in range(40))
    told = "Chunk ID: 1f\nWall time: 0 seconds\nProcess exited with code 2\nOutput:"
    chunk = f"{told}\n{noise}\nld: fatal: no libx\n{noise}"
    protocol = {
        "status": "error",
        "text": noise,
        "error": {"code": "NOT_FOUND", "message": "no b.ts"},
        "data": {},
    }
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
    assert row["facts"].endswith(
        "遇到的错误：\n- ld: fatal: no libx (exec_command)\n- NOT_FOUND: no b.ts (Read)"
    )
    assert "运行 make：退出码 2，ld: fatal: no libx" in row["body"]
    assert "读取 b.ts：失败，NOT_FOUND: no b.ts" in row["body"]


def test_a_command_without_a_result_is_told(store: Store) -> None:
    """It may have run: nothing came back.

    Each in its place, and of a command run again what came of it last.
    """
    started, stopped = (
        tool("terminal-execute", {"command": f"npm {word}"}, "", word)[0]
        for word in ("start", "stop")
    )
    edit = tool("filesystem-edit", {"filePath": "a.ts"}, "", "e")[0]
    session_id = begun(store, [*work(1), started, stopped, edit, *work(2)])
    store.append(
        session_id, [*tool("terminal-execute", {"command": "npm stop"}, "{}", "again"), *work(3)]
    )
    store.compact(session_id, Policy(), lambda request: "we worked")
    [text] = [row["facts"] for row in query(store, session_id, "summaries")]
    commands = text.split("执行的命令：\n")[1].split("遇到的错误：")[0].splitlines()
    ran = [
        f"- {command} {number} (退出码 {code})"
        for number in (1, 2)
        for command, code in (("npm test", 0), ("make", 2))
    ]
    assert commands == [*ran[:2], "- npm start (无结果)", *ran[2:], "- npm stop"]
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
    assert told == ["- npm start (退出码 0)", "- npm start (无结果)"]
    store.append(session_id, [tool("", {}, '{"stdout":"","exitCode":0}', "c")[1], *chat(1)])
    store.compact(session_id, Policy(), lambda request: "s")
    assert str(contents(store, session_id, Policy())[0]).endswith("- npm start (退出码 0)")


def test_a_summary_tells_no_fact_that_one_beside_it_tells(store: Store) -> None:
    """Where summaries stay beside each other, each has the facts of its own range, and room for all
    of them.
    """
    policy = Policy(keep_turns=1, previous_summary="append")
    session_id = begun(store, work(1))
    for number in range(2, 6):
        store.append(session_id, work(number))
        store.compact(session_id, policy, lambda request: "we worked")
    told = [row["facts"] + "\n" for row in query(store, session_id, "summaries")]
    assert [
        [fact in text for fact in facts(range(n, n + 1))] for n, text in enumerate(told, 1)
    ] == [[True] * 5] * 4
    assert [
        text for n, text in enumerate(told, 1) if f"file{n - 1}" in text or "no result" in text
    ] == []


def test_the_command_of_a_late_result_is_told_with_it(store: Store) -> None:
    """Its call was hidden before the result came, behind a summary that still stands."""
    policy = Policy(keep_turns=1, previous_summary="append")
    call, result = tool(
        "terminal-execute", {"command": "make late"}, '{"stdout":"ok","exitCode":0}', "late"
    )
    session_id = begun(store, [*work(1), call, *work(2)])
    assert store.compact(session_id, policy, lambda request: "we worked").outcome == "applied"
    store.append(session_id, [result, *work(3)])
    assert store.compact(session_id, policy, lambda request: "we worked").outcome == "applied"
    assert "- make late (退出码 0)\n" in query(store, session_id, "summaries")[1]["facts"]


def test_a_kind_that_only_the_policy_knows_counts(store: Store) -> None:
    """X.11: what it calls a terminal ran commands."""
    session_id = begun(store, [*work(1), *work(2)])
    policy = Policy(tool_kinds={"mystery": "terminal", "filesystem-edit": "other"})
    store.compact(session_id, policy, lambda request: "we worked")
    [text] = [row["facts"] for row in query(store, session_id, "summaries")]
    assert "- launch 1\n" in text
    assert "- src/file1.ts (读取)\n" in text


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


def test_a_folder_that_was_looked_into_is_no_file_touched(store: Store) -> None:
    """What was searched may be a file, too: its ending tells."""
    searched = [
        each
        for number, path in enumerate((".", "lib/src", "src/a.ts", "docs/.hidden"))
        for each in tool("grep", {"pattern": "x", "path": path}, "none", f"g{number}")
    ]
    read = tool("Read", {"path": "Makefile"}, "all:", "r")
    session_id = begun(store, [*chat(1), *searched, *read, *chat(1)])
    store.compact(session_id, Policy(), lambda request: "s")
    [row] = query(store, session_id, "summaries")
    files = [line for line in row["facts"].splitlines() if line.startswith("- ")]
    assert files == ["- src/a.ts (搜索)", "- docs/.hidden (搜索)", "- Makefile (读取)"]


def test_commands_tell_what_they_came_to_where_deeds_are_told_once(store: Store) -> None:
    """But for what an error tells already; the same with any summarizer."""
    commit = f"git commit -F - <<'EOF'\nSay why\n\n{'word ' * 40}\nEOF"
    ran = [
        *tool("Bash", {"command": "npm test"}, "compiling\n12 passed\n", "t"),
        *tool("Bash", {"command": "make"}, "Exit code 2\nld: fatal: no libx", "m"),
        *tool("Bash", {"command": commit}, "[main 1f2e3d4] Say why", "c"),
    ]
    session_id = begun(store, [*chat(3), *ran, *chat(1)])
    fork = store.fork(session_id).id
    policy = Policy(told_once=True)
    for each, summarizer in ((session_id, None), (fork, lambda request: "we worked")):
        store.compact(each, policy, summarizer)
        text = str(contents(store, each, policy)[0])
        assert text.endswith(
            "执行的命令：\n- npm test → 12 passed\n- make (退出码 2)\n"
            "- git commit -F - <<'EOF'\n  Say why\n  ...\n  EOF → [main 1f2e3d4] Say why\n"
            "遇到的错误：\n- ld: fatal: no libx (Bash)"
        )
        assert "Used `Bash`" not in text
    [row, _] = query(store, session_id, "summaries")
    assert "npm test" in row["key_actions"]


def test_a_refusal_tells_what_the_user_said(store: Store) -> None:
    """Not the program's words around it, which would fill the room."""
    said = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if"
    result = f"{said} …). To tell you how to proceed, the user said:\nthe other way round"
    refused = tool("Edit", {"file_path": "a.ts"}, result, "e")
    refused[1]["messageStatus"] = "error"
    session_id = begun(store, [*chat(19), *refused, *chat(1)])
    store.compact(session_id, Policy())
    [row] = query(store, session_id, "summaries")
    assert row["facts"].endswith("- 被用户拒绝：the other way round (Edit)")
    assert "用户: the other way round" in row["body"]
