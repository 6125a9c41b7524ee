"""Recall: what is out of sight comes back, whole and best first, as far as there is room."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from store import AsyncStore, Passage, Policy, Store
from store.errors import InvalidValue, SessionNotFound
from store.recall import ASK, NOTHING, answer, tool
from store.tokens import estimate

NOW = 1_767_225_600_000
LATER = NOW + 3_600_000
CLEARING = Policy.named("agent", clear_keep=1)
KEEPING = Policy.named("agent", keep_turns=1)


def step(number: int, content: str, name: str = "read_file") -> Iterator[dict[str, Any]]:
    """Yield a call and its result."""
    arguments = json.dumps({"path": f"src/file_{number}.py"})
    function = {"name": name, "arguments": arguments}
    call = {"id": f"c{number}", "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": f"c{number}", "content": content}


@pytest.fixture(params=[True, False], ids=["index", "reading"])
def store(url: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Give a store with a session: hidden turns, and results in a last one; with and without index."""
    with Store(url, durability="normal") as opened:
        opened.create_session("s", now=NOW)
        for turn in range(4):
            said = [{"role": "user", "content": f"Question {turn} about the walrus_{turn}. " * 9}]
            said += step(turn, f"def function_{turn}(): return {turn * 1111}\n" * 40)
            said.append({"role": "assistant", "content": f"It is so, in turn {turn}. " * 9})
            opened.append("s", said, now=NOW)
        made = opened.compact("s", KEEPING, lambda _: "The user asked.", now=NOW)
        assert made.hidden == (1, 12)
        if request.param:
            opened.index()
        yield opened


def places(store: Store, wanted: Any, **options: Any) -> list[tuple[int, int]]:
    """Return which passages come back."""
    found = store.recall("s", wanted, policy=CLEARING, now=LATER, **options)
    return [(each.first, each.last) for each in found]


def test_a_view_says_that_there_is_a_tool_where_it_is_told_so(store: Store) -> None:
    """In the summary, and in each line that stands for a cleared result; nowhere else."""
    for number in range(20, 40):
        store.append("s", list(step(number, f"def late_{number}(): ...\n" * 40)), now=NOW)
    store.append("s", {"role": "user", "content": "Go on."}, now=LATER)
    telling = CLEARING.model_copy(update={"recall": True, "clearing": "always"})
    silent = telling.model_copy(update={"recall": False})
    said = store.view("s", telling, now=LATER).entries
    for told, plain in zip(said, store.view("s", silent, now=LATER).entries, strict=True):
        notices = str(told.message["content"]).count(telling.recall_notice)
        assert notices == (told.rule in ("summary", "any_tool"))
        assert telling.recall_notice not in str(plain.message["content"])
    assert {"summary", "any_tool"} <= {entry.rule for entry in said}


def test_what_is_hidden_comes_back_whole(store: Store) -> None:
    """A call with its result, or a message alone; what has more of what is wanted is first."""
    assert places(store, ["function_1"]) == [(6, 7)]
    assert places(store, ["src/file_2.py"]) == [(10, 11)]
    assert places(store, ["walrus_0", "function_2", "file_2"]) == [(10, 11), (1, 1)]
    (passage,) = store.recall("s", ["function_1"], policy=CLEARING, now=LATER)
    assert passage.text.startswith(
        "[6] calls: read_file\npath\nsrc/file_1.py\n[7] tool: def function_1"
    )
    assert (passage.why, passage.tokens) == ("hidden", estimate(passage.text))


def test_the_rarer_word_counts_more(store: Store) -> None:
    """Of two words the one that fewer messages have; the newest first where all else is equal."""
    assert places(store, "question walrus_1")[0] == (5, 5)
    assert places(store, "question", budget=10_000) == [(9, 9), (5, 5), (1, 1)]


def test_what_is_in_sight_does_not_come_back(store: Store) -> None:
    """The last turn is sent as it is."""
    assert places(store, ["walrus_3"]) == []
    assert places(store, ["nothing of this"]) == []
    assert places(store, "") == []
    assert places(store, []) == []


def test_what_was_cleared_comes_back(store: Store) -> None:
    """Results that gave way to a line, and why."""
    policy = Policy(terminal_keep=1)
    for number, word in enumerate(("first", "second"), start=7):
        ended = {"stdout": f"the {word} body\n" * 80, "stderr": "", "exitCode": 0}
        call, result = step(number, json.dumps(ended), name="Bash")
        store.append("s", [call, {**result, "timestamp": NOW}], now=NOW)
    (replaced,) = store.replaced("s", policy, now=LATER)
    (found,) = store.recall("s", ["first body"], policy=policy, now=LATER)
    assert (found.first, found.last, found.why) == (17, 18, replaced.rule)


@pytest.mark.parametrize("budget", [30, 100, 300, 1000])
def test_passages_fit(store: Store, budget: int) -> None:
    """All of them together; the best in part where it alone does not, around what was wanted."""
    found = store.recall("s", ["function_1", "question"], policy=CLEARING, budget=budget, now=LATER)
    assert sum(each.tokens for each in found) <= budget
    assert found[0].first == 6
    assert estimate("\n".join(each.text for each in found)) <= budget + 40
    assert "function_1" in found[0].text


def test_what_was_redacted_or_undone_does_not_come_back(store: Store) -> None:
    """What is written over is gone; what is shown again is in sight."""
    store.redact("s", 7, "asked for", now=NOW)
    assert places(store, ["return 1111"]) == []
    (made,) = store.compactions("s")
    store.undo_compaction("s", made.id or 0, now=NOW)
    assert store.recall("s", ["walrus_0"], policy=Policy.named("raw"), now=LATER) == []


def test_what_cannot_be_asked_is_refused(store: Store) -> None:
    """By an error that names it."""
    for wanted, options in ((5, {}), ([5], {}), ("x", {"budget": 0}), ("x", {"budget": 1.5})):
        with pytest.raises(InvalidValue):
            store.recall("s", wanted, **options)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        store.recall("nowhere", "x")


# --- The tool -------------------------------------------------------------------------------------


def test_the_tool_is_defined_and_answered(store: Store) -> None:
    """Its answer is a text, to be stored as any other result."""
    function = tool()["function"]
    assert function["name"] == "recall"
    assert {*function["parameters"]["properties"]} == {"names", "text"}
    told = answer(store, "s", '{"names": ["function_1"], "text": "walrus_0"}')
    assert "[7] tool: def function_1" in told
    assert "[1] user: Question 0" in told
    assert answer(store, "s", {"names": "function_1"}).startswith("[6] calls")
    with pytest.raises(SessionNotFound):
        answer(store, "nowhere", {"text": "x"})


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{",
        "5",
        "[]",
        "null",
        "{}",
        '{"names": 5}',
        '{"names": [null]}',
        '{"text": ["x"]}',
        '{"text": " "}',
    ],
)
def test_whatever_a_model_writes_is_answered(store: Store, arguments: str) -> None:
    """By a sentence that says what to do."""
    assert answer(store, "s", arguments) == ASK
    assert answer(store, "s", '{"names": ["\\ud800 \\u0000 \\""]}') == NOTHING


def test_what_was_recalled_is_in_sight(store: Store) -> None:
    """Stored as a result it is among the newest, and sent as it is."""
    call = {"id": "r", "type": "function", "function": {"name": "recall", "arguments": "{}"}}
    told = answer(store, "s", {"names": ["function_1"]})
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    store.append("s", [asked, {"role": "tool", "tool_call_id": "r", "content": told}], now=LATER)
    view = store.view("s", CLEARING, now=LATER)
    assert view.messages[-1]["content"] == told


def test_it_is_awaited(store: Store) -> None:
    """As every operation."""

    async def asked() -> list[Passage]:
        async with AsyncStore(store) as waiting:
            return await waiting.recall("s", ["function_1"], policy=CLEARING)

    assert [each.first for each in asyncio.run(asked())] == [6]
