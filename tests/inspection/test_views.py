"""The views for people agree with what the store itself answers, whatever happened to it."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from conftest import Run
from conversations import NOW, Agent
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy, Store
from store.errors import (
    CompactionError,
    InvalidValue,
    NothingToUndo,
    PositionOutOfRange,
    QueryRefused,
)
from store.inspection import query, views

Message = dict[str, Any]
WITHIN = Policy(within_turn=True, keep_groups=1, keep_turns=1, facts_chars=0)
SYSTEM = {"role": "system", "content": "rules"}


def rows(store: Store, statement: str, **values: Any) -> list[dict[str, Any]]:
    """What a query finds."""
    from sqlalchemy import text

    with store.database.reading() as connection:
        return [dict(row) for row in connection.execute(text(statement), values).mappings()]


def happen(store: Store, living: list[str], number: int) -> None:
    """Let one thing happen to one of the sessions that live."""
    chance = Random(number)
    name = chance.choice(living)
    head = store.session(name).head
    deed = chance.randrange(10)
    if deed < 3:
        said = [message for _ in range(2) for message in Agent(chance.randrange(2**40)).run()]
        store.append(name, [SYSTEM, *said] if chance.random() < 0.3 else said, now=NOW + head)
    elif deed == 3:
        living.append(store.fork(name, at=chance.randint(0, head)).id)
    elif deed == 4:
        store.rewind(name, chance.randint(0, head))
    elif deed == 5:
        undo(store, name, chance)
    elif deed == 6 and len(living) > 2:
        store.delete_session(name)
        living.remove(name)
    elif deed == 7:
        hide(store, name, head, chance)
    else:
        policy = chance.choice([WITHIN, WITHIN, Policy(keep_messages=2, boundary="group")])
        store.compact(name, policy, lambda _: "short", now=NOW)


def hide(store: Store, name: str, head: int, chance: Random) -> None:
    """Hide some messages by name, where they can be."""
    first = chance.randint(1, max(head, 1))
    with suppress(CompactionError, PositionOutOfRange):
        store.hide(name, first, min(head, first + 3), chance.choice(["short", None]), now=NOW)


def undo(store: Store, name: str, chance: Random) -> None:
    """Undo what was done last: a rewind, or a compaction."""
    in_force = [made for made in store.compactions(name) if made.outcome == "applied"]
    if in_force and chance.random() < 0.5:
        store.undo_compaction(name, in_force[-1].id)  # type: ignore[arg-type]
        return
    try:
        store.undo_rewind(name)
    except NothingToUndo:
        return


@settings(max_examples=25)
@given(st.lists(st.integers(0, 2**40), min_size=15, max_size=45))
def test_views_agree_with_the_store(store: Store, numbers: list[int]) -> None:
    """Lines are whole, what a fork inherits counts once, what was left is kept, and what is hidden
    is hidden once, by the compaction that hid it.
    """
    living = [store.create_session().id]
    store.append(living[0], [SYSTEM, {"role": "user", "content": "Do it."}])
    for number in numbers:
        happen(store, living, number)
    for name in living:
        agree(store, name)
    counted_once(store, living)


def agree(store: Store, name: str) -> None:
    """Compare a session in the views with what its methods say."""
    line = rows(
        store, "SELECT * FROM session_messages WHERE session_id = :name ORDER BY seq", name=name
    )
    stored = store.messages(name)
    assert [row["seq"] for row in line] == [each.seq for each in stored]
    assert [row["role"] for row in line] == [each.message["role"] for each in stored]
    assert all(row["at"] == (row["created_at"] or row["stored_at"]) for row in line)
    (log,) = rows(store, "SELECT * FROM session_log WHERE session_id = :name", name=name)
    own = [row for row in line if not row["inherited"]]
    assert (log["messages"], log["own_messages"]) == (len(line), len(own))
    assert log["tokens"] == sum(row["tokens"] for row in line)
    assert log["own_tokens"] == sum(row["tokens"] for row in own)
    seen = rows(store, "SELECT * FROM hidden_messages WHERE session_id = :name", name=name)
    hidden = {seq: by.compaction for seq, by in store.hidden(name).items()}
    assert {row["seq"]: row["compaction"] for row in seen} == hidden
    assert len(seen) == len(hidden)


def counted_once(store: Store, living: list[str]) -> None:
    """Compare what sessions said themselves, and what they left, with the rows that they have."""
    counted = rows(
        store,
        "SELECT session_id, branch, seq FROM session_messages WHERE inherited = 0"
        " UNION ALL SELECT session_id, branch, seq FROM branch_messages",
    )
    held = rows(
        store,
        "SELECT b.session_id, m.branch, m.seq FROM messages m JOIN branches b"
        " ON b.tree_id = m.tree_id AND b.branch = m.branch WHERE b.session_id IS NOT NULL",
    )
    of_these = [
        sorted(tuple(row.values()) for row in found if row["session_id"] in living)
        for found in (counted, held)
    ]
    assert of_these[0] == of_these[1]


def test_forks_double_nothing(store: Store) -> None:
    """Ten messages and three forks are forty rows, of which ten count."""
    name = store.create_session(title="t", project_root="/p").id
    store.append(name, [{"role": "user", "content": "x"}] * 10)
    forks = [store.fork(name).id for _ in range(3)]
    names = ", ".join(f"'{each}'" for each in (name, *forks))
    (found,) = rows(
        store,
        "SELECT COUNT(*) AS shown, SUM(1 - inherited) AS counted FROM session_messages"
        f" WHERE session_id IN ({names})",
    )
    assert (found["shown"], found["counted"]) == (40, 10)
    (log,) = rows(store, "SELECT * FROM session_log WHERE session_id = :name", name=forks[0])
    assert (log["root_session"], log["forked_from"], log["forked_at"]) == (name, name, 10)
    assert (log["title"], log["project_root"], log["own_messages"]) == ("t", "/p", 0)


def test_forks_double_no_turns_and_no_compactions(store: Store) -> None:
    """What a fork has from its source is inherited there, and so is a turn that it goes on with."""
    name = store.create_session().id
    said = [{"role": role, "content": "x" * 400} for role in ("user", "assistant")]
    store.append(name, said * 3, now=NOW)
    assert store.compact(name, Policy(facts_chars=0), lambda _: "short", now=NOW).id == 1
    fork = store.fork(name, at=5).id
    store.append(fork, said * 2, now=NOW)
    late = store.fork(name).id
    for view, order, told in (
        ("turn_log", "turn", {name: [0, 0, 0], fork: [1, 1, 1, 0, 0], late: [1, 1, 1]}),
        ("compaction_log", "compaction", {name: [0], fork: [], late: [1]}),
    ):
        asked = f"SELECT * FROM {view} WHERE session_id = :name ORDER BY {order}"
        for each, inherited in told.items():
            found = rows(store, asked, name=each)
            assert [row["inherited"] for row in found] == inherited, (view, each)


def test_what_answers_no_known_call_is_of_the_kind_that_it_looks(store: Store) -> None:
    """S1.34, A1.9: a heading or numbered lines are a read, streams a command; no rule goes by it."""
    looks = {
        "📄 src/a.ts (lines 1-2/9)\n1→import x": "file_read",
        "    12→import os\n    13→x": "file_read",
        json.dumps({"stdout": "x", "stderr": ""}): "terminal",
        "→ Building\n→ Done": "other",
        "12 tests passed → fine": "other",
        "x": "other",
    }
    name = store.create_session().id
    store.append(
        name, [{"role": "tool", "tool_call_id": f"gone {look}", "content": look} for look in looks]
    )
    call = {"id": "c", "type": "function", "function": {"name": "cat", "arguments": "{}"}}
    store.append(name, {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append(name, {"role": "tool", "tool_call_id": "c", "content": next(iter(looks))})
    log = rows(store, "SELECT kind FROM tool_log WHERE session_id = :name ORDER BY seq", name=name)
    assert [row["kind"] for row in log] == [*looks.values(), "other"]


def test_times_fall_back_on_when_it_was_stored(store: Store) -> None:
    """An app that stamps nothing can ask by day all the same."""
    name = store.create_session().id
    call = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    call["function"]["arguments"] = '{"file_path": "a.py"}'  # type: ignore[index]
    store.append(
        name,
        [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
        now=NOW,
    )
    for view in ("session_messages", "tool_log", "file_log", "turn_log"):
        (at,) = {
            (row["at"], row["created_at"], row["stored_at"])
            for row in rows(store, f"SELECT * FROM {view} WHERE session_id = :name", name=name)
        }
        assert at == ("2026-01-31T01:20:00.000Z", None, "2026-01-31T01:20:00.000Z")


def test_what_was_left_is_found(store: Store) -> None:
    """A regenerated answer is in no line, and yet to be found."""
    name = store.create_session().id
    store.append(name, [{"role": "user", "content": "x"}, {"role": "assistant", "content": "one"}])
    store.rewind(name, to=1)
    store.append(name, {"role": "assistant", "content": "two"})
    (left,) = rows(store, "SELECT * FROM branch_messages WHERE session_id = :name", name=name)
    assert (left["seq"], left["content"], left["branch"]) == (2, "one", 1)
    store.undo_rewind(name)
    (left,) = rows(store, "SELECT * FROM branch_messages WHERE session_id = :name", name=name)
    assert (left["seq"], left["content"], left["branch"]) == (2, "two", 2)


# --- what the rules replace -----------------------------------------------------------------------


def test_what_the_rules_replace_can_be_asked(store: Store) -> None:
    """The results that a view does not send as they are, with their tools and files."""
    name = store.create_session(project_root="/p").id
    store.append(name, [message for seed in range(30) for message in Agent(seed).run()], now=NOW)
    fork = store.fork(name).id
    store.append(fork, Agent(99).run(), now=NOW)
    policy = Policy(terminal_keep=1, terminal_max_age=0, file_read_keep=1)
    for each in (name, fork):
        found = store.replaced(each, policy, now=NOW)
        entries = [
            entry
            for entry in store.view(each, policy, now=NOW).entries
            if entry.rule in ("terminal", "file_read", "tool_output")
        ]
        assert found
        assert [one[:1] + one[3:7] for one in found] == [
            (entry.seq, entry.rule, entry.reason, entry.tokens, entry.tokens_saved)
            for entry in entries
        ]
        assert all(one.call_id and one.text for one in found)
        assert [(one.call_id, one.text) for one in found] == [
            (entry.message["tool_call_id"], entry.message["content"]) for entry in entries
        ]
        log = {
            row["seq"]: row
            for row in rows(store, "SELECT * FROM tool_log WHERE session_id = :name", name=each)
        }
        assert [one.tool_name for one in found] == [log[one.seq]["tool_name"] for one in found]
        read = [one for one in found if one.rule == "file_read"]
        assert read
        assert all(one.paths for one in read)
    assert store.replaced(name, Policy.named("raw"), now=NOW) == []
    assert store.replaced(store.create_session().id, policy) == []


def test_the_command_lists_what_is_replaced(run: Run) -> None:
    """As a table with a total, and as JSON."""
    with Store("convostore.db") as store:
        store.create_session("s")
        store.append("s", [message for seed in range(9) for message in Agent(seed).run()], now=NOW)
        policy = Policy(terminal_keep=1, terminal_max_age=0, file_read_keep=1)
        found = store.replaced("s", policy, now=NOW)
    switches = [f"--set={name}" for name in ("terminal_keep=1", "terminal_max_age=0")]
    asked = ("replaced", "s", "--set=file_read_keep=1", *switches, "--now", NOW)
    told = json.loads(run(*asked, "--json").out)
    assert [each["seq"] for each in told] == [each.seq for each in found]
    ran = run(*asked)
    assert ran.status == 0
    assert f"{len(found)} tool results replaced: " in ran.out
    assert "0 tool results replaced: 0 tokens saved" in run("replaced", "s", "--policy", "raw").out


# --- asking ---------------------------------------------------------------------------------------


def test_views_are_listed(url: str) -> None:
    """Each with its columns, by either engine."""
    Store(url).close()
    found = views(url)
    assert {"session_log", "session_messages", "branch_messages", "file_log"} <= {*found}
    assert found["session_segments"] == ("tree_id", "session_id", "branch", "first", "last")


GIVEN: list[tuple[str, object, str | None]] = [
    ("Bash", {"command": "ls -la", "description": "list"}, "ls -la"),
    ("Bash", '{"command":"ls"}', "ls"),
    ("shell", {"command": ["bash", "-lc", 'make "a b"\nmake c']}, 'make "a b"\nmake c'),
    ("shell", {"command": ["git", "diff"]}, "git diff"),
    ("exec_command", {"cmd": "pwd"}, "pwd"),
    ("run_command", {"CommandLine": "dir C:\\x"}, "dir C:\\x"),
    ("local_shell", {"action": {"type": "exec", "command": ["ls", "x"]}}, "ls x"),
    ("Bash", {"note": 'not "command": here', "command": "[ -f x ] && y"}, "[ -f x ] && y"),
    ("python", {"code": "print(1)"}, "print(1)"),
    ("Bash", "make all", "make all"),
    ("Bash", {"command": None}, None),
    ("Bash", '{"command": "cut of', None),
    ("Read", {"command": "no terminal"}, None),
]
"""Calls of tools of several programs, and their command lines."""


def test_commands_and_times_of_every_program(store: Store) -> None:
    """Of arguments as text or object, however the program names the command."""
    store.create_session("commands")
    for number, (name, arguments, _) in enumerate(GIVEN):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": name, "arguments": text}
        call = {"id": f"c{number}", "type": "function", "function": function}
        at = NOW + 10_000 * number
        asked = {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": at}
        done = {"role": "tool", "tool_call_id": f"c{number}", "content": "", "timestamp": at + 1500}
        store.append("commands", [asked, done])
    found = rows(
        store, "SELECT command, seconds FROM tool_log WHERE session_id = 'commands' ORDER BY seq"
    )
    assert [row["command"] for row in found] == [command for *_, command in GIVEN]
    assert {row["seconds"] for row in found} == {1.5}
    (turn,) = rows(store, "SELECT seconds FROM turn_log WHERE session_id = 'commands'")
    assert turn["seconds"] == 10 * len(GIVEN) - 8.5


def test_notes_and_drafts_are_listed(store: Store) -> None:
    """A note with the model of its answer, a draft with what it follows."""
    store.create_session("noted", owner="ann")
    store.append("noted", [{"role": role, "content": "Hi"} for role in ("user", "assistant")])
    store.record_usage("noted", input=1, output=1, model="m-1", now=NOW)
    store.annotate("noted", 2, "rating", 5, now=NOW)
    (note,) = rows(store, "SELECT * FROM note_log WHERE session_id = 'noted'")
    assert (note["seq"], note["role"], note["key"], note["value"]) == (
        2,
        "assistant",
        "rating",
        "5",
    )
    assert (note["owner"], note["model"]) == ("ann", "m-1")
    with suppress(KeyError), store.streaming("noted", {"role": "assistant"}):
        raise KeyError
    (draft,) = rows(store, "SELECT * FROM draft_log WHERE session_id = 'noted'")
    assert (draft["head"], draft["owner"]) == (2, "ann")
    assert json.loads(draft["message"]) == {"role": "assistant"}


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT * FROM tools", "did you mean 'tool_log'"),
        ("SELECT t.comand FROM tool_log t", "did you mean 'command', of tool_log"),
        ("SELECT name FROM tool_log", "did you mean 'tool_name', of tool_log"),
        ("SELECT * FROM mesages", "did you mean 'messages'"),
        ("SELECT * FROM xyzxyz", "lists the views"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(url: str, sql: str, near: str) -> None:
    """A view if one is like it, else a table; a store that was searched has tables of an index."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "hello"})
        assert store.search("hello")
    with pytest.raises(InvalidValue, match=near):
        query(url, sql)


def test_the_command_lists_views(run: Run) -> None:
    """`sql` without a query says what can be asked."""
    with Store("convostore.db"):
        pass
    assert "inherited" in run("sql").out
    assert json.loads(run("sql", "--json").out)["session_segments"][0] == "tree_id"


@pytest.mark.sqlite_only
def test_a_refused_function_is_named(path: Any) -> None:
    """What is wrong is the function, not what it was asked of."""
    with pytest.raises(QueryRefused, match=r"the function printf\(\) is none of those"):
        query(path, "SELECT printf('%s', role) FROM session_messages")


def test_sessions_have_their_program_models_and_cost(url: str) -> None:
    """The cost is that of the session's own requests, as `usage_costs` has it."""
    with Store(url) as store:
        store.create_session("s", owner="ann", metadata={"topic": "birds"}, now=NOW)
        store.append("s", {"role": "user", "content": "hello"}, now=NOW)
        for model, cost in (("gpt-5", 0.25), ("claude-opus-4", 0.5), ("gpt-5", 0.125)):
            store.record_usage("s", input=1, output=1, model=model, cost=cost, now=NOW)
        store.set_origin("s", "codex", "/rollout.jsonl")
        store.fork("s", session_id="f", now=NOW)
        store.archive("f")
        found = rows(store, "SELECT * FROM session_log ORDER BY session_id DESC")
    columns = ("session_id", "owner", "archived", "source", "models", "cost")
    assert [tuple(each[name] for name in columns) for each in found] == [
        ("s", "ann", 0, "codex", "claude-opus-4, gpt-5", 0.875),
        ("f", "ann", 1, None, None, None),
    ]
    assert json.loads(found[0]["metadata"]) == {"topic": "birds"}
