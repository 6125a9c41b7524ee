"""Requests as they are sent.

Layers in their order, the running turn whole, a prefix that stays (S4).
"""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conversations import NOW, Agent, busy_conversations, conversations, policies
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals

from store import AsyncStore, Context, Policy, Store
from store.context.request import LAYERS, TODO_LOOK_BACK, gather_parts, remind
from store.context.request_cache import Requests
from store.errors import InvalidPolicy, InvalidValue, PositionOutOfRange, SessionNotFound

Message = dict[str, Any]
TURNS = Policy.named("turns")
LONG = "\n".join(f"{number}: a line of output" for number in range(400))
TOOLS = [{"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared() -> Iterator[Store]:
    """One store for all examples of a law."""
    with Store(":memory:", durability="normal") as opened:
        yield opened


def user(text: str) -> Message:
    """A user message."""
    return {"role": "user", "content": text}


def step(
    number: int, content: str = LONG, *, name: str = "Bash", arguments: Any = None
) -> list[Message]:
    """A call and its result."""
    function = {"name": name, "arguments": json.dumps(arguments or {"command": "make"})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "Thought: try", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": content, "timestamp": NOW},
    ]


def todos(number: int, *texts: str) -> list[Message]:
    """A call that writes a todo list of waiting items."""
    return step(
        number, "ok", name="TodoWrite", arguments={"todos": [{"content": text} for text in texts]}
    )


def begun(store: Store, *messages: Message, **options: Any) -> str:
    """A session with messages."""
    session_id = store.create_session(**options).id
    store.append(session_id, list(messages))
    return session_id


def said(context: Context) -> list[tuple[str, Any]]:
    """The roles and contents of a request."""
    return [(message["role"], message["content"]) for message in context.messages]


# --- layers ---------------------------------------------------------------------------------------


def test_the_layers_stand_in_their_order(store: Store, tmp_path: Path) -> None:
    """S4.4, A4.3, A4.4.

    Prompts, the project's rules, history, the input, its steps, what is left to do.
    """
    (tmp_path / "code_law.md").write_text("Write tests.\n")
    answer = {"role": "assistant", "content": "done"}
    session_id = begun(
        store,
        {"role": "system", "content": "stored prompt"},
        *(user("first"), *step(1), answer),
        *(user("second"), *step(2)),
        project_root=str(tmp_path),
    )
    context = store.context(
        session_id, "You fix bugs.", "Bash[command]: run it", None, "[1/2] in progress", now=NOW
    )
    contents = [content for _, content in said(context)]
    assert contents[:4] == [
        "You fix bugs.",
        "stored prompt",
        "Bash[command]: run it",
        "Write tests.\n",
    ]
    assert contents[4:6] == ["first", "Thought: try"]
    assert len(contents[6]) < len(LONG)
    assert contents[7:] == ["done", "second", "Thought: try", LONG, "[1/2] in progress"]
    layers = [piece.layer for piece in context.pieces]
    wanted = (
        ["system"] * 2
        + ["tools", "code_law"]
        + ["history"] * 4
        + ["user_input"]
        + ["steps"] * 2
        + ["todo_recap"]
    )
    assert layers == wanted
    assert list(context.layers) == list(LAYERS)
    assert context.tokens == sum(piece.tokens for piece in context.pieces) > 0
    assert context.open_turn == 6


def test_a_new_input_stands_behind_finished_turns(store: Store) -> None:
    """All that is stored is history then, the last turn included: its results are short (S4.8)."""
    session_id = begun(store, user("first"), *step(1), {"role": "assistant", "content": "done"})
    context = store.context(session_id, user_input="second", now=NOW)
    assert context.messages[-1] == user("second")
    assert len(context.messages[2]["content"]) < len(LONG)
    assert context.open_turn is None
    assert context.layers["steps"] == 0 < context.layers["history"]
    store.append(session_id, user("second"))
    stored = store.context(session_id, now=NOW)
    assert stored.messages == context.messages
    assert stored.open_turn == 5


def test_an_input_is_not_sent_twice(store: Store) -> None:
    """Given again while its turn is open, it is the stored one; after the answer it is new."""
    session_id = begun(store, user("go on"), *step(1))
    assert store.context(session_id, now=NOW).open_turn == 1
    open_turn = store.context(session_id, user_input="go on", now=NOW)
    assert open_turn.messages == store.context(session_id, now=NOW).messages
    assert open_turn.messages[-1]["content"] == LONG
    other = store.context(session_id, user_input="stop", now=NOW)
    assert other.messages[-1] == user("stop")
    store.append(session_id, {"role": "assistant", "content": "done"})
    assert store.context(session_id, now=NOW).open_turn is None
    assert store.context(session_id, user_input="go on", now=NOW).messages[-2:] == [
        {"role": "assistant", "content": "done"},
        user("go on"),
    ]


def test_nothing_at_all(store: Store) -> None:
    """An empty session and no prompts are an empty request."""
    session_id = begun(store)
    assert store.context(session_id).messages == []
    assert store.context(session_id, "", "", None, "").messages == []
    assert store.context(session_id, user_input="").messages == []
    assert store.context(session_id, user_input="hello").messages == [user("hello")]


def test_definitions_of_tools_are_sent_beside_the_messages(store: Store) -> None:
    """They cost tokens, and are no message."""
    session_id = begun(store, user("hello"))
    context = store.context(session_id, tools=TOOLS)
    assert context.messages == [user("hello")]
    assert context.tools == TOOLS
    assert context.layers["tools"] > 0
    assert context.text.splitlines()[0] == f"[system] {json.dumps(TOOLS)}"


def test_the_view_is_that_of_the_policy(store: Store) -> None:
    """Without prompts and inputs, a request is the view.

    An earlier position gives the earlier request.
    """
    session_id = begun(store, user("a"), *step(1), user("b"), *step(2))
    for policy in (Policy(), TURNS, Policy.named("raw")):
        for at in (None, 3, 4, 6):
            view = store.view(session_id, policy, now=NOW, at=at)
            assert (
                store.context(session_id, policy=policy, now=NOW, at=at).messages == view.messages
            )


# --- the rules of the project ---------------------------------------------------------------------


def test_the_rules_of_the_project_are_read_anew_and_never_stored(
    store: Store, tmp_path: Path
) -> None:
    """S4.49, A4.17."""
    session_id = begun(store, user("a"), project_root=str(tmp_path))
    assert store.context(session_id).layers["code_law"] == 0
    for text in ("one", "two"):
        (tmp_path / "CODE_LAW.md").write_text(text)
        assert said(store.context(session_id))[0] == ("system", text)
    other = tmp_path / "other"
    other.mkdir()
    assert store.context(session_id, root=other).layers["code_law"] == 0
    assert [stored.message for stored in store.messages(session_id)] == [user("a")]


# --- mentioned files ------------------------------------------------------------------------------


def test_what_is_stored_stays_as_typed(store: Store) -> None:
    """The reminder is added at assembly (S4.45), to earlier inputs too, so that the prefix stays."""
    session_id = begun(store, user("fix @a.py"), {"role": "assistant", "content": "done"})
    context = store.context(session_id, user_input="and @b.py")
    assert [m["content"] for m in context.messages] == [
        remind("fix @a.py"),
        "done",
        remind("and @b.py"),
    ]
    assert store.messages(session_id)[0].message == user("fix @a.py")
    assert store.view(session_id).messages[0] == user("fix @a.py")


def test_parts_get_the_reminder_as_a_part(store: Store) -> None:
    """A message with a picture keeps it."""
    parts = [
        {"type": "text", "text": "see @a.py"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    session_id = begun(store, {"role": "user", "content": parts})
    (message,) = store.context(session_id).messages
    assert message["content"][:2] == parts
    assert message["content"][2]["text"].startswith("<system-reminder>")
    assert refusals([message]) == []


# --- the todo list --------------------------------------------------------------------------------


def recapped(store: Store, session_id: str, **options: Any) -> str | None:
    """What a request says is left to do."""
    context = store.context(session_id, **options)
    return next(
        (piece.message["content"] for piece in context.pieces if piece.layer == "todo_recap"), None
    )


def test_the_recap_is_that_of_the_last_list(store: Store) -> None:
    """Unless the caller gives one; "" gives none."""
    session_id = begun(store, user("a"), *todos(1, "x"), *todos(2, "y", "z"), *step(3))
    assert recapped(store, session_id) == "待办回顾：[0/2] 待处理：y, z"
    assert recapped(store, session_id, todo_recap="mine") == "mine"
    assert recapped(store, session_id, todo_recap="") is None
    assert recapped(store, session_id, at=3) == "待办回顾：[0/1] 待处理：x"
    assert recapped(store, session_id, at=1) is None


def test_a_call_that_lists_nothing_is_passed_over(store: Store) -> None:
    """Reading the list does not empty it."""
    session_id = begun(store, user("a"), *todos(1, "x"), *step(2, "[]", name="TodoRead"))
    assert recapped(store, session_id) == "待办回顾：[0/1] 待处理：x"


def test_what_is_all_done_is_said_in_its_turn_only(store: Store) -> None:
    """Later turns need not hear of it."""
    done = step(
        1, "ok", name="TodoWrite", arguments={"todos": [{"content": "x", "status": "completed"}]}
    )
    session_id = begun(store, user("a"), *todos(0, "old"), *done)
    assert recapped(store, session_id) == "待办回顾：[1/1] 全部完成"
    assert recapped(store, session_id, user_input="b") is None
    store.append(session_id, user("b"))
    assert recapped(store, session_id) is None


def test_the_list_outlives_a_compaction(store: Store) -> None:
    """What is left to do is not forgotten with the messages that said it."""
    session_id = begun(
        store, user("a"), *todos(1, "x"), {"role": "assistant", "content": "ok"}, user("b" * 9000)
    )
    store.append(session_id, [{"role": "assistant", "content": "ok"}, user("c")])
    assert store.compact(session_id, Policy()).outcome == "applied"
    assert recapped(store, session_id) == "待办回顾：[0/1] 待处理：x"


def test_a_list_of_long_ago_is_not_looked_for(store: Store) -> None:
    """The cost follows the view: so far back, and no farther."""
    session_id = begun(store, user("a"), *todos(1, "x"))
    store.append(session_id, [user("filler " * 20)] * (TODO_LOOK_BACK + 5))
    assert recapped(store, session_id) is not None
    assert store.compact(session_id, Policy()).outcome == "applied"
    assert recapped(store, session_id) is None


def test_a_tool_of_ones_own_keeps_the_list(store: Store) -> None:
    """The policy says what kind a tool is."""
    session_id = begun(store, user("a"), *step(1, "ok", name="plan_it", arguments={"items": ["x"]}))
    assert recapped(store, session_id) is None
    policy = Policy.named("turns", tool_kinds={"plan_it": "todo"})
    assert recapped(store, session_id, policy=policy) == "待办回顾：[0/1] 待处理：x"


# --- the prefix -----------------------------------------------------------------------------------


def test_what_stays_of_the_last_request(store: Store, tmp_path: Path) -> None:
    """All of it where nothing changed; nothing where the prompt or the tools did."""
    session_id = begun(store, user("a"), *step(1), project_root=str(tmp_path))
    first = store.context(session_id, "prompt", TOOLS, now=NOW)
    assert (first.stable_prefix_tokens, first.first_changed, first.is_first) == (0, None, True)
    again = store.context(session_id, "prompt", TOOLS, now=NOW)
    assert (again.stable_prefix_tokens, again.first_changed, again.is_first) == (
        again.tokens,
        None,
        False,
    )
    store.append(session_id, step(2))
    longer = store.context(session_id, "prompt", TOOLS, now=NOW)
    assert (longer.stable_prefix_tokens, longer.first_changed) == (again.tokens, None)
    (tmp_path / "CODE_LAW.md").write_text("new")
    ruled = store.context(session_id, "prompt", TOOLS, now=NOW)
    assert (ruled.stable_prefix_tokens, ruled.first_changed) == (
        ruled.layers["system"] + ruled.layers["tools"],
        1,
    )
    assert store.context(session_id, "other", TOOLS, now=NOW).first_changed == 0
    retooled = store.context(session_id, "other", [], now=NOW)
    assert (retooled.stable_prefix_tokens, retooled.first_changed, retooled.is_first) == (
        0,
        0,
        False,
    )


def test_a_request_of_nothing_is_one_before_too(store: Store) -> None:
    """It had no tokens in common with anything, and still the next one is not the first."""
    session_id = begun(store)
    assert [store.context(session_id).is_first for _ in range(2)] == [True, False]


def test_each_session_has_its_own_last_request(store: Store) -> None:
    """The newest sessions are remembered, and no more."""
    requests = Requests()
    context = store.context(begun(store, user("a")), now=NOW)
    for number in range(Requests.KEPT + 1):
        assert requests.remember(str(number), context, None).is_first
    again, forgotten = (requests.remember(name, context, None) for name in "10")
    assert (again.is_first, again.stable_prefix_tokens) == (False, context.tokens)
    assert (forgotten.is_first, forgotten.stable_prefix_tokens) == (True, 0)


@pytest.mark.parametrize("how", ["redact", "delete_session"])
def test_words_that_are_taken_out_are_in_no_last_request(store: Store, how: str) -> None:
    """It goes at once; what the next request changes of it is told all the same."""
    kept, secret = (begun(store, user("a"), *step(1), user("hunter2")) for _ in range(2))
    before = store.context(kept, now=NOW)
    last = weakref.ref(store.context(secret, now=NOW).layered)
    assert last() is not None
    if how == "redact":
        store.redact(secret, store.session(secret).head, "private")
    else:
        store.delete_session(secret)
    assert last() is None
    if how == "redact":
        changed = store.context(secret, now=NOW)
        assert (changed.is_first, changed.first_changed) == (False, len(changed.messages) - 1)
    again = store.context(kept, now=NOW)
    assert (again.is_first, again.stable_prefix_tokens) == (False, before.tokens)


def test_a_request_of_before_an_erasure_is_not_kept_behind(store: Store) -> None:
    """A reader of the state from before it may have read its words."""
    requests, session_id = Requests(), begun(store, user("hunter2"))
    with store.database.reading() as connection:
        gathered = gather_parts(connection, session_id, Policy(), now=NOW)
        store.delete_session(session_id)
    context = store.context(begun(store, user("a")), now=NOW)
    last = weakref.ref(requests.remember(session_id, context, gathered.since).layered)
    del context
    store.context(begun(store, user("b")), now=NOW)
    assert last() is None


def test_a_rewind_changes_the_prefix_where_it_went(store: Store) -> None:
    """The same positions hold other messages then."""
    session_id = begun(store, user("a"), {"role": "assistant", "content": "b"}, user("c"))
    store.context(session_id)
    store.rewind(session_id, to=2)
    store.append(session_id, user("d"))
    assert store.context(session_id).first_changed == 2


@settings(max_examples=40)
@given(numbers=st.lists(st.integers(0, 2**40), min_size=1, max_size=6), before=busy_conversations)
def test_a_turn_only_adds(shared: Store, numbers: list[int], before: list[Message]) -> None:
    """Over a turn each request begins with the one before, its recap apart, and no result of it is
    shortened.
    """
    session_id = begun(shared, *before, user("now @this.py"))
    last: list[Message] = []
    for minutes, number in enumerate(numbers):
        context = shared.context(session_id, "prompt", TOOLS, now=NOW + minutes * 600_000)
        sent = [piece.message for piece in context.pieces if piece.layer != "todo_recap"]
        assert sent[: len(last)] == last
        assert context.first_changed is None or context.first_changed >= len(last)
        last = sent
        shared.append(session_id, Agent(number).exchange(tidy=True))


# --- laws -----------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(
    line=conversations,
    policy=policies,
    new=st.booleans(),
    role=st.sampled_from(["system", "user", "merge"]),
)
def test_every_request_is_valid_and_the_running_turn_whole(
    shared: Store, line: list[Message], policy: Policy, new: bool, role: Any
) -> None:
    """Whatever was said, nothing in a request is refused, nothing stored changes, and the running
    turn is not short.
    """
    session_id = begun(shared, *line)
    policy = policy.model_copy(
        update={"tool_output": True, "unanswered": "synthetic", "summary_role": role}
    )
    options: Any = {"user_input": "new @file \ud800"} if new else {}
    context = shared.context(
        session_id, "prompt \udfff", TOOLS, policy=policy, todo_recap="left", now=NOW, **options
    )
    assert refusals(context.messages) == []
    assert context.messages[0]["content"].startswith("prompt")
    assert [stored.message for stored in shared.messages(session_id)] == line
    running = max(
        (seq for seq, message in enumerate(line, 1) if message["role"] == "user"), default=1
    )
    for entry in context.view.entries:
        assert entry.rule != "tool_output" or new or (entry.seq or 0) < running
    assert isinstance(context.text, str)
    assert context.tokens == sum(piece.tokens for piece in context.pieces) + context.layers["tools"]


def test_one_system_message_where_only_one_is_taken(store: Store, tmp_path: Path) -> None:
    """A2.11.

    Prompts, rules and summaries are one message, what is left to do is said by the user.
    """
    (tmp_path / "CODE_LAW.md").write_text("law")
    session_id = begun(store, {"role": "system", "content": "stored"}, user("x" * 9000), user("b"))
    policy = Policy.named("turns", summary_role="merge", keep_turns=1)
    assert store.compact(session_id, policy, lambda request: "the summary").outcome == "applied"
    context = store.context(session_id, "prompt", root=tmp_path, todo_recap="left", policy=policy)
    assert [role for role, _ in said(context)] == ["system", "user", "user"]
    first = context.messages[0]["content"]
    assert first.startswith("prompt\n\nstored")
    assert "the summary" in first
    assert first.endswith("law")


def test_one_system_message_costs_what_all_of_it_does(store: Store, tmp_path: Path) -> None:
    """Each layer has the tokens of its own part, whoever says it."""
    (tmp_path / "CODE_LAW.md").write_text("law " * 200)
    session_id = begun(store, {"role": "system", "content": "stored " * 300}, user("b"))
    request = {"system": "prompt " * 100, "tools": "Bash[command] " * 50, "root": tmp_path}
    apart = store.context(session_id, **request, policy=TURNS)
    merged = store.context(
        session_id, **request, policy=Policy.named("turns", summary_role="merge")
    )
    assert len(merged.messages) == 2 < len(apart.messages)
    assert merged.layers == apart.layers
    assert merged.tokens == sum(piece.tokens for piece in merged.pieces)


def test_names_that_are_no_files_are_left_out(store: Store, tmp_path: Path) -> None:
    """Where the project is known: a name is of a file there, or it looks like a path."""
    (tmp_path / "Makefile").touch()
    asked = "Why does @property fail with @types/node, @a.py, @Makefile and @Gone?"
    session_id = begun(store, user(asked))
    known = store.context(session_id, root=tmp_path)
    told = known.messages[0]["content"].splitlines()
    assert told[-4:] == [
        "The user mentioned @types/node, @a.py, @Makefile.",
        "You MUST read these files with the Read tool before answering.",
        "请按此顺序逐个读取。",
        "</system-reminder>",
    ]
    given = store.context(begun(store), user_input=asked, root=tmp_path)
    assert given.messages == known.messages
    unknown = store.context(session_id)
    assert "mentioned @property, @types/node, " in unknown.messages[0]["content"]
    single = store.context(begun(store), user_input="@a.py", root=tmp_path)
    assert "one by one" not in single.messages[0]["content"]


def test_a_failed_command_of_a_finished_turn_is_short(store: Store) -> None:
    """X.6: its exit code, its first lines, those that say an error, and the last; others stay."""
    log = [f"line {number}" for number in range(5000)]
    log[2500] = "FAILED tests/test_a.py::test_a - AssertionError: 1 != 2"
    failed = json.dumps({"stdout": "\n".join(log), "stderr": "", "exitCode": 3})
    session_id = begun(
        store,
        user("run it"),
        *step(1, failed),
        *step(2, "Error: " + "no such file " * 500, name="Read", arguments={"path": "a"}),
        *step(3, f"Exit code: 3\n{chr(10).join(log)}"),
        user("and now?"),
    )
    view = store.view(session_id, TURNS, now=NOW)
    data, spared, plain = (view.messages[place]["content"] for place in (2, 4, 6))
    for short in (data, plain):
        assert len(short) < 5000
        for part in ("3", "line 1", "FAILED tests/test_a.py", "line 4999"):
            assert part in short
    assert spared == "Error: " + "no such file " * 500
    assert view.stats.replaced == {"tool_output": 2}
    assert store.check(session_id, TURNS, now=NOW).tokens == view.stats.tokens


def test_rules_that_are_not_sent_are_told(store: Store, tmp_path: Path) -> None:
    """They are sent whole or not at all, and the host is told why not."""
    (tmp_path / "CODE_LAW.md").write_bytes(b"\xff\xfe\0")
    context = store.context(begun(store, user("a")), root=tmp_path)
    assert context.layers["code_law"] == 0
    (notice,) = context.notices
    assert notice == f"CODE_LAW.md of {tmp_path} is not sent: it is no text"
    assert store.context(begun(store, user("a"))).notices == ()


# --- ReAct text -----------------------------------------------------------------------------------


def test_react_text(store: Store) -> None:
    """S4.58-S4.60: labelled roles, Thought and Action, no call ids; an answer finishes its turn."""
    session_id = begun(
        store,
        user("why?"),
        *step(
            1,
            '{"status": "success", "data": {"recap": "x"}}',
            name="TodoWrite",
            arguments={"todos": []},
        ),
        {"role": "assistant", "content": "because"},
        user("and @a.py?"),
        {"role": "assistant", "content": "let me see"},
        *step(2, "ok"),
    )
    assert store.context(session_id, "Think.", todo_recap="", now=NOW).text == "\n\n".join(
        [
            "[system] Think.",
            "[user] why?",
            '[assistant] Thought: try\nAction: TodoWrite[{"todos": []}]',
            '[tool] {"status": "success", "data": {"recap": "x"}}',
            "[assistant] Action: Finish[because]",
            f"[user] {remind('and @a.py?')}",
            "[assistant] let me see",
            '[assistant] Thought: try\nAction: Bash[{"command": "make"}]',
            "[tool] ok",
        ]
    )


def test_react_as_a_format(store: Store) -> None:
    """The whole request is one message, for a model that is prompted with a text."""
    session_id = begun(store, user("why?"), *step(1, "ok"))
    plain, react = (
        store.context(session_id, "Think.", TOOLS, format=name) for name in ("openai", "react")
    )
    assert react.messages == [user(plain.text)]
    assert (react.text, react.layers, react.pieces) == (plain.text, plain.layers, plain.pieces)
    assert react.stable_prefix_tokens == plain.tokens


def test_what_was_said_as_react_stays_verbatim(store: Store) -> None:
    """A model that writes Thought and Action itself.

    No call is made up for its results, no thought doubled.
    """
    lines = ["Thought: look\nAction: LS[{}]", "Thought: done\nAction: Finish[yes]"]
    session_id = begun(
        store,
        user("why?"),
        {"role": "assistant", "content": lines[0]},
        {"role": "tool", "name": "LS", "content": "a.py"},
        {"role": "assistant", "content": lines[1]},
    )
    context = store.context(session_id)
    assert context.open_turn is None
    assert store.context(session_id, at=2).open_turn == 1
    assert (
        context.text
        == f"[user] why?\n\n[assistant] {lines[0]}\n\n[tool] a.py\n\n[assistant] {lines[1]}"
    )
    assert refusals(context.messages) == []


def test_parts_that_are_no_text_are_named(store: Store) -> None:
    """A picture cannot stand in a text."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": "see"}, picture]
    session_id = begun(store, {"role": "user", "content": parts})
    assert store.context(session_id).text == "[user] see\n(image_url)"


# --- turns that were cut off ----------------------------------------------------------------------


def test_a_turn_is_resumed_where_it_was_cut_off(tmp_path: Path) -> None:
    """Steps are stored as they happen: another process asks for the same request and goes on."""
    path = tmp_path / "chat.db"
    with Store(path) as store:
        session_id = begun(store, user("a"), *step(1), user("b"), *step(2))
        before = store.context(session_id, "prompt", now=NOW)
    with Store(path) as store:
        after = store.context(session_id, "prompt", now=NOW)
        assert (
            (after.messages, after.open_turn)
            == (before.messages, before.open_turn)
            == (before.messages, 4)
        )
        store.append(session_id, step(3)[:1])
        cut = store.context(session_id, "prompt", now=NOW)
        assert cut.messages[:-2] == before.messages
        assert cut.messages[-1]["role"] == "tool"
        assert refusals(cut.messages) == []


def test_a_turn_that_was_given_up_is_closed_by_a_new_input(store: Store) -> None:
    """Open calls that are kept as they are for their results get none any more when something else
    is asked.
    """
    session_id = begun(store, user("Look."), step(1)[0])
    kept = Policy(unanswered="keep")
    assert store.context(session_id, policy=kept).messages[-1]["role"] == "assistant"
    given_up = store.context(session_id, user_input="Never mind.", policy=kept).messages
    assert [message["role"] for message in given_up] == ["user", "assistant", "tool", "user"]
    assert refusals(given_up) == []


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (InvalidValue, {"system": 5}),
        (InvalidValue, {"tools": 5}),
        (InvalidValue, {"tools": ["Bash"]}),
        (InvalidValue, {"user_input": user("a")}),
        (InvalidValue, {"todo_recap": ["a"]}),
        (InvalidValue, {"format": "morse"}),
        (InvalidValue, {"now": "noon"}),
        (InvalidPolicy, {"policy": "turns"}),
        (PositionOutOfRange, {"at": 2}),
    ],
)
def test_what_makes_no_sense_is_refused(
    store: Store, error: type[Exception], options: dict[str, Any]
) -> None:
    """With an error of the store's own."""
    session_id = begun(store, user("a"))
    with pytest.raises(error):
        store.context(session_id, **options)


def test_there_must_be_a_session(store: Store) -> None:
    """Nothing is made by asking."""
    with pytest.raises(SessionNotFound):
        store.context("nobody", user_input="hello")


def test_the_same_awaited(tmp_path: Path) -> None:
    """`AsyncStore` gives the same request."""

    async def asked() -> Context:
        async with AsyncStore(tmp_path / "chat.db") as store:
            session = await store.create_session()
            await store.append(session.id, [user("a")])
            return await store.context(session.id, "prompt", user_input="b")

    assert said(asyncio.run(asked())) == [("system", "prompt"), ("user", "a"), ("user", "b")]


def test_a_result_that_comes_late_takes_the_place_of_its_stand_in(store: Store) -> None:
    """What was sent without it changes there, and nowhere else."""
    calls = [step(1)[0]["tool_calls"][0], step(2)[0]["tool_calls"][0]]
    session_id = begun(
        store,
        user("a"),
        {"role": "assistant", "content": None, "tool_calls": calls},
        step(2, "two")[1],
    )
    early = store.context(session_id, now=NOW).messages
    store.append(session_id, [*step(3), step(1, "one")[1]])
    late = store.context(session_id, now=NOW)
    assert late.messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "one"} != early[2]
    assert late.messages[:2] + late.messages[3:4] == early[:2] + early[3:]
    assert late.first_changed == 2


def test_what_is_kept_of_short_forms_is_counted(store: Store) -> None:
    """And forgetting it changes no number."""
    session_id = begun(store, user("a"), *step(1), *step(2), *step(3), user("b"))
    sizes = []
    for number in (4, 5):
        tokens = store.check(session_id, TURNS, now=NOW).tokens
        sizes.append(store.cache_info().bytes)
        with Store(store.database.url, cache_bytes=0) as plain:
            assert plain.check(session_id, TURNS, now=NOW).tokens == tokens
        store.append(session_id, [*step(number), user("c")])
    assert 0 < sizes[0] < sizes[1]
