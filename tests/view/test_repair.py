"""Calls and results in pairs: what is moved, made up or left out, and that it is said."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refusals

from store import Policy, Store
from store.messages import UNKNOWN_TOOL
from store.phrases import render_phrase
from store.view.message_rendering import LineMessage, pair_messages, select_sendable_calls

Message = dict[str, Any]
NOW = 1_767_225_600_000
NO_RESULT = render_phrase("no_result", "zh")
NO_RULE = "no rule is about this tool"
USER = {"role": "user", "content": "go"}


def call(*call_ids: Any, content: Any = None) -> Message:
    """An assistant message with calls of these ids."""
    calls = [
        {"id": i, "type": "function", "function": {"name": "Read", "arguments": "{}"}}
        for i in call_ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(call_id: Any, content: str = "x") -> Message:
    """A tool result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


class Seen:
    """A view, as short texts.

    ``2`` the message at position 2, ``a(c1)`` made-up calls, ``t(c1)`` a made-up result.
    """

    def __init__(self, store: Store, line: list[Message], **switches: Any) -> None:
        session_id = store.create_session().id
        store.append(session_id, line)
        self.view = store.view(session_id, Policy(**switches), now=10**12)
        self.order = " ".join(map(self._short, self.view.entries))
        self.repairs = {e.seq: e.reason for e in self.view.entries if e.rule == "repair"}

    @staticmethod
    def _short(entry: Any) -> str:
        if entry.seq is not None:
            return str(entry.seq)
        ids = [each["id"] for each in entry.message.get("tool_calls", ())] or [
            entry.message["tool_call_id"]
        ]
        return f"{entry.message['role'][0]}({','.join(ids)})"


TIDY = [
    USER,
    call("c1"),
    result("c1"),
    call("c2", "c3"),
    result("c2"),
    result("c3"),
    {"role": "assistant", "content": "ok"},
]


@pytest.mark.parametrize(
    "switches", [{}, {"unanswered": "drop", "orphans": "drop"}, {"unanswered": "keep"}]
)
def test_what_is_in_order_stays_as_it_is(store: Store, switches: Message) -> None:
    """Nothing is moved, made up or said."""
    seen = Seen(store, TIDY, **switches)
    assert seen.order == "1 2 3 4 5 6 7"
    assert seen.repairs == {}
    assert seen.view.stats.first_changed is None
    assert seen.view.messages == TIDY


MOVED: list[tuple[str, list[Message], str, set[int]]] = [
    ("results in another order", [call("a", "b"), result("b"), result("a")], "1 3 2", {2, 3}),
    ("something in between", [call("a"), USER, result("a")], "1 3 2", {3}),
    (
        "a system message in between",
        [call("a"), {"role": "system", "content": "s"}, result("a")],
        "1 3 2",
        {3},
    ),
    (
        "two calls one after the other",
        [call("a"), call("b"), result("a"), result("b")],
        "1 3 2 4",
        {3, 4},
    ),
    (
        "two calls, results crossed",
        [call("a"), call("b"), result("b"), result("a")],
        "1 4 2 3",
        {3, 4},
    ),
    ("the same id twice in a message", [call("a", "a"), result("a"), result("a")], "1 2 3", set()),
    (
        "the same id again and again",
        [call("a"), result("a"), call("a"), result("a")],
        "1 2 3 4",
        set(),
    ),
]


@pytest.mark.parametrize(
    ("line", "order", "moved"), [case[1:] for case in MOVED], ids=[case[0] for case in MOVED]
)
def test_results_are_moved_to_their_calls(
    store: Store, line: list[Message], order: str, moved: set[int]
) -> None:
    """Directly behind, in the order of the calls; only what has moved is said to have (X.9)."""
    seen = Seen(store, line)
    assert seen.order == order
    assert set(seen.repairs) <= moved
    assert all(reason == "moved to its call" for reason in seen.repairs.values())
    assert refusals(seen.view.messages) == []


def test_a_view_of_nothing_but_moves_says_so(store: Store) -> None:
    """Its first changed position is the first that is elsewhere."""
    seen = Seen(store, [USER, call("a"), USER, result("a")])
    assert seen.repairs == {4: "moved to its call"}
    assert (seen.view.stats.first_changed, seen.view.stats.replaced) == (3, {"repair": 1})


# --- calls without results ------------------------------------------------------------------------


def test_a_call_without_result_gets_one(store: Store) -> None:
    """Made by the store, in its place among the others, and said so."""
    seen = Seen(store, [call("a", "b", "c"), result("b"), USER])
    assert seen.order == "1 t(a) 2 t(c) 3"
    assert seen.view.messages[1] == {"role": "tool", "tool_call_id": "a", "content": NO_RESULT}
    assert seen.repairs == {None: "call c has no result"}
    assert seen.view.stats.first_changed == 2


def test_a_call_without_result_may_be_left_out(store: Store) -> None:
    """The message stays if anything else is in it; how many were left out is said."""
    seen = Seen(
        store,
        [call("a", "b", content="text"), result("b"), call("c", content="more"), USER],
        unanswered="drop",
    )
    assert seen.order == "1 2 3 4"
    assert seen.repairs == {
        1: "1 calls without result left out",
        3: "1 calls without result left out",
    }
    assert [each["id"] for each in seen.view.messages[0]["tool_calls"]] == ["b"]
    assert seen.view.messages[2] == {"role": "assistant", "content": "more"}


@pytest.mark.parametrize("content", [None, "", []])
def test_a_message_of_nothing_but_such_calls_is_left_out(store: Store, content: Any) -> None:
    """There would be nothing in it."""
    seen = Seen(store, [USER, call("a", content=content), USER], unanswered="drop")
    assert seen.order == "1 3"
    assert seen.view.stats.first_changed == 2


def test_calls_of_the_open_turn_may_wait(store: Store) -> None:
    """As they are, while their tools run; those of turns that are over get results (X.9)."""
    seen = Seen(store, [USER, call("a"), USER, call("b", "c"), result("b")], unanswered="keep")
    assert seen.order == "1 2 t(a) 3 4 5"
    assert [each["id"] for each in seen.view.messages[4]["tool_calls"]] == ["b", "c"]
    assert refusals(seen.view.messages, open_from=3) == []
    assert Seen(store, [call("a")], unanswered="keep").order == "1", (
        "without any user message all is one turn"
    )


# --- results without calls ------------------------------------------------------------------------

ORPHANS: list[tuple[str, list[Message], str, str]] = [
    ("no call at all", [USER, result("a")], "1 a(a) 2", "1"),
    ("at the very beginning", [result("a"), USER], "a(a) 1 2", "2"),
    ("before its call", [result("a"), call("a")], "a(a) 1 2 t(a)", "2 t(a)"),
    ("a second answer", [call("a"), result("a"), result("a")], "1 2 a(a) 3", "1 2"),
    ("two in a row", [result("a"), result("b")], "a(a) 1 a(b) 2", ""),
    ("between a call and its result", [call("a"), result("x"), result("a")], "1 3 a(x) 2", "1 3"),
    ("without any id", [{"role": "tool", "content": "x"}], "a(call_1) 1", ""),
]


@pytest.mark.parametrize(
    ("line", "adopted", "dropped"),
    [case[1:] for case in ORPHANS],
    ids=[case[0] for case in ORPHANS],
)
def test_a_result_without_call_gets_one_or_goes(
    store: Store, line: list[Message], adopted: str, dropped: str
) -> None:
    """What it says stays, unless the policy drops it."""
    seen = Seen(store, line)
    assert seen.order == adopted
    assert refusals(seen.view.messages) == []
    assert any("has no call" in entry.reason for entry in seen.view.entries)
    gone = Seen(store, line, orphans="drop")
    assert gone.order == dropped
    assert refusals(gone.view.messages) == []


def test_an_adopted_result_keeps_its_tools_name(store: Store) -> None:
    """Where it says one."""
    seen = Seen(store, [{**result("a"), "name": "Bash"}, {**result("b"), "name": ""}])
    made = [
        message["tool_calls"][0]["function"]
        for message in seen.view.messages
        if "tool_calls" in message
    ]
    assert made == [{"name": "Bash", "arguments": "{}"}, {"name": UNKNOWN_TOOL, "arguments": "{}"}]


@pytest.mark.parametrize("line", [[USER, result("a")], [USER, call("a"), result("a"), result("a")]])
def test_what_is_left_out_at_the_end_is_a_change(store: Store, line: list[Message]) -> None:
    """The first position that differs from the raw line is the first that is not there."""
    assert Seen(store, line, orphans="drop").view.stats.first_changed == len(line)


# --- ids and names --------------------------------------------------------------------------------


def ids(*call_ids: Any) -> list[str]:
    """The ids under which calls are sent."""
    return [each.id for each in select_sendable_calls(5, call(*call_ids)["tool_calls"])]


def test_ids_are_sent_as_they_are(store: Store) -> None:
    """If they are texts, whatever is in them."""
    assert ids("toolu_01", "functions.x:0", "文件") == ["toolu_01", "functions.x:0", "文件"]


@pytest.mark.parametrize("missing", [None, "", 7, [], "a\0", "\ud800"])
def test_a_missing_id_is_made_up(store: Store, missing: Any) -> None:
    """From the place of the call, the same each time; the result is sent with it."""
    assert ids("a", missing) == ["a", "call_5_1"]
    seen = Seen(store, [call(missing), result(missing)])
    assert [m.get("tool_call_id") for m in seen.view.messages] == [None, "call_1_0"]
    assert refusals(seen.view.messages) == []


@pytest.mark.parametrize(
    "call_ids",
    [
        ("a", "a"),
        ("call_5_1", "call_5_1"),
        ("call_5_1", None),
        (None, "call_5_0"),
        ("\ud800", "\ud801"),
        (None, None),
        ("a\0", "a"),
    ],
)
def test_ids_in_a_message_are_its_own(store: Store, call_ids: tuple[Any, ...]) -> None:
    """Two calls of a message never share one, whatever they were given."""
    assert len(set(ids(*call_ids))) == len(call_ids)
    seen = Seen(store, [USER] * 4 + [call(*call_ids), *map(result, call_ids)])
    assert refusals(seen.view.messages) == []


@pytest.mark.parametrize("given", [None, "text", 5, [], {}])
def test_what_is_no_call_is_not_sent(store: Store, given: Any) -> None:
    """An entry that is no object; an empty object is a call of an unknown tool."""
    seen = Seen(store, [{"role": "assistant", "content": "so", "tool_calls": [given]}, USER])
    assert refusals(seen.view.messages) == []
    assert ("tool_calls" in seen.view.messages[0]) is (given == {})


@pytest.mark.parametrize("given", [None, {}, "text", 5, {"a": "call"}])
def test_tool_calls_that_are_no_list_are_none(store: Store, given: Any) -> None:
    """They are not sent, and no result answers them."""
    seen = Seen(
        store,
        [{"role": "assistant", "content": "so", "tool_calls": given}, result("a")],
        orphans="drop",
    )
    assert seen.view.messages == [{"role": "assistant", "content": "so"}]


def test_calls_of_others_than_assistants_are_not_sent(store: Store) -> None:
    """Only assistants call tools."""
    seen = Seen(store, [{**call("a"), "role": "user", "content": "x"}, result("a")])
    assert seen.order == "1 a(a) 2"
    assert seen.view.messages[0] == {"role": "user", "content": "x"}


def test_arranging_touches_no_message(store: Store) -> None:
    """Nothing given is changed, and what was there is handed on as it is."""
    line = [call("a", "b"), result("b"), result("x")]
    calls = select_sendable_calls(1, line[0]["tool_calls"])
    items = [
        LineMessage(1, line[0], calls=calls),
        LineMessage(2, line[1], (1, 1)),
        LineMessage(3, line[2]),
    ]
    before = repr(items)
    placed = pair_messages(items, Policy()).placed
    assert repr(items) == before
    assert [each.message for each in placed if each.seq] == line
    assert next(each.message for each in placed if each.seq) is line[0]


def test_an_id_that_is_sent_as_another_one_says_so(store: Store) -> None:
    """The entry of the call names both; what is stored stays as it came."""
    session = store.create_session(now=NOW)
    for number in range(3):
        said = [{"role": "user", "content": f"turn {number}"}, *_use("c"), *_use("é b", "a b")]
        store.append(session.id, said, now=NOW)
    view = store.view(session.id, Policy.named("raw"), now=NOW, format="responses")
    told = {entry.seq: (entry.rule, entry.reason) for entry in view.entries}
    sent = {item["call_id"] for item in view.messages if item["type"] == "function_call"}
    assert {"c", "c-2", "c-3"} <= sent
    assert told[2] == (None, "")
    assert told[7] == (None, "the id c is sent as c-2, in its result too")
    assert told[12] == (None, "the id c is sent as c-3, in its result too")
    assert told[3] == told[8] == (None, NO_RULE)
    assert told[4][1].startswith("the id é b is sent as ")
    assert "; the tool a b is sent as a_b-" in told[4][1]
    stored = [each.message for each in store.messages(session.id)]
    assert [entry.message for entry in view.entries] == stored
    in_text = store.view(session.id, Policy.named("raw"), now=NOW, format="react")
    assert {entry.reason for entry in in_text.entries} == {"", NO_RULE}


def _use(call_id: str, name: str = "tool") -> list[Message]:
    function = {"name": name, "arguments": "{}"}
    call = {"id": call_id, "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": call_id, "content": "ok", "timestamp": NOW}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
