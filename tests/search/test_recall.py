"""Recall: what is out of sight comes back, whole and best first, as far as there is room."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from benchmarks.recorded import largest
from store import AsyncStore, Passage, Policy, Store
from store.database.statements import Statement
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


@pytest.mark.sampled(4)
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


# --- By what placeholders name --------------------------------------------------------------------


AGENT = Policy.named("agent")
BEGIN = re.escape(AGENT.any_tool_placeholder)
NAMED = re.compile(BEGIN + r" \S+ (?!exit -?\d+, )(.+?)(?:, exit -?\d+)?, \d+ lines(?::|$)")
"""The file or the command in the line that stands for a cleared result."""


def call_of(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a message that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"k{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


LONG_COMMAND = "cd /repo && python -m pytest tests/one tests/two tests/three tests/four --verbose"
CALLS = [
    ("Read", {"file_path": "/repo/src/app.py"}),
    ("Bash", {"command": "make lint"}),
    ("Edit", {"file_path": "/repo/src/app.py", "old_string": "a", "new_string": "b"}),
    ("Grep", {"pattern": "handler", "path": "/repo/src/app.py"}),
    ("Bash", {"command": "echo src/app.py src/app.py src/app.py; make lint test"}),
    ("Bash", {"command": LONG_COMMAND}),
]


@pytest.fixture(params=[True, False], ids=["index", "reading"])
def cleared(url: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Give a store with a session whose first results are cleared, their calls in sight."""
    with Store(url, durability="normal") as opened:
        opened.create_session("s", project_root="/repo", now=NOW)
        opened.append("s", {"role": "user", "content": "Go on."}, now=NOW)
        calls = [*CALLS, *(("Bash", {"command": f"ls folder_{n}"}) for n in range(14))]
        for number, (name, arguments) in enumerate(calls):
            content = "\n".join(f"line {number} {each} of handler_{each}" for each in range(60))
            result = {"role": "tool", "tool_call_id": f"k{number}", "content": content}
            opened.append("s", [call_of(number, name, **arguments), result], now=NOW)
        opened.compact_if_needed("s", AGENT, max_tokens=200_000, now=LATER)
        assert opened.view("s", AGENT, now=LATER).entries[2].rule == "any_tool"
        if request.param:
            opened.index()
        yield opened


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        (["src/app.py"], (2, 3)),
        (["/repo/src/app.py"], (2, 3)),
        (["app.py"], (2, 3)),
        ("src/app.py", (2, 3)),
        (["make lint"], (4, 5)),
        ("make lint", (4, 5)),
        ([LONG_COMMAND], (12, 13)),
        (["cd . && python -m pytest tests/one tests/two tests/three ..."], (12, 13)),
    ],
)
def test_a_cleared_result_is_found_by_what_its_line_names(
    cleared: Store, wanted: Any, place: tuple[int, int]
) -> None:
    """By its file or its command, before all that mentions it, though the call is in sight."""
    told = str(cleared.view("s", AGENT, now=LATER).messages[place[1] - 1]["content"])
    assert NAMED.match(told)
    found = cleared.recall("s", wanted, policy=AGENT, now=LATER)
    assert (found[0].first, found[0].last, found[0].why) == (*place, "any_tool")
    assert "handler_59" in found[0].text


def test_what_is_about_a_file_stands_before_what_mentions_it(cleared: Store) -> None:
    """The read, then what else is about it, the newest first, then what has its name."""
    found = cleared.recall("s", ["src/app.py"], policy=AGENT, now=LATER)
    assert [each.first for each in found] == [2, 8, 6, 10]


def test_what_is_in_sight_whole_is_not_called_back_by_its_call(cleared: Store) -> None:
    """A call counts only while its result is out of sight."""
    assert cleared.recall("s", ["ls folder_13"], policy=AGENT, now=LATER) == []


def test_a_budget_has_room_for_the_usual_read_of_a_file(cleared: Store) -> None:
    """Six thousand tokens, of the operation and of the tool."""
    cleared.append("s", call_of(90, "Read", file_path="long.py"), now=NOW)
    content = "\n".join(f"line {number} of a long file" for number in range(600))
    result = {"role": "tool", "tool_call_id": "k90", "content": content}
    cleared.append("s", result, now=NOW)
    cleared.append("s", {"role": "user", "content": "And now?"}, now=LATER)
    told = cleared.recall("s", ["long.py"], policy=Policy.named("agent", clear_keep=0))
    assert told == []  # it is in sight
    cleared.hide("s", 42, 43, now=LATER)
    for text in (
        cleared.recall("s", ["long.py"], policy=AGENT)[0].text,
        answer(cleared, "s", {"names": ["long.py"]}),
    ):
        assert "line 0 of" in text
        assert "line 599 of" in text


@pytest.mark.parametrize(
    "name",
    [
        LONG_COMMAND,
        LONG_COMMAND.replace("/repo", "."),
        "cd . && python -m pytest tests/one tests/two tests/three te…",
    ],
)
def test_a_command_is_found_by_its_short_name_where_no_line_has_it(
    cleared: Store, name: str
) -> None:
    """Relative to the root and cut, though only the whole command is stored."""
    cleared.hide("s", 2, 41, now=LATER)
    found = cleared.recall("s", [name], policy=AGENT, now=LATER)
    assert [(each.first, each.last, each.why) for each in found] == [(12, 13, "hidden")]


def test_the_asked_result_of_a_batch_is_whole(store: Store) -> None:
    """Results of other calls, and its call, are cut before it; nothing of the room is lost."""
    batch = [[*step(number, f"line of file {number}\n" * 400)] for number in (90, 91, 92)]
    asked = {**batch[0][0], "tool_calls": [call["tool_calls"][0] for call, _ in batch]}
    store.append("s", [asked, *(result for _, result in batch)], now=NOW)
    store.hide("s", 17, 20, now=LATER)
    whole = str(batch[1][1]["content"])
    (found,) = store.recall("s", ["src/file_91.py"], policy=CLEARING, budget=2_500, now=LATER)
    assert (found.first, found.last) == (17, 20)
    assert whole in found.text
    assert 2_400 < found.tokens <= 2_500
    (found,) = store.recall("s", ["src/file_91.py"], policy=CLEARING, budget=1_500, now=LATER)
    assert 1_400 < found.tokens <= 1_500
    assert found.text.count("line of file 91") > 200


def test_an_excerpt_around_a_word_at_the_end_is_as_long_as_any(store: Store) -> None:
    """What stands before the word fills the room."""
    text = "plain line\n" * 2_000 + "the wombat"
    store.append("s", {"role": "assistant", "content": text}, now=NOW)
    store.hide("s", 17, 17, now=LATER)
    (found,) = store.recall("s", ["wombat"], policy=CLEARING, budget=1_000, now=LATER)
    assert found.text.endswith("the wombat")
    assert 900 < found.tokens <= 1_000


def test_however_many_passages_are_read_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many statements for forty messages that have the word as for five, but for batches."""

    def statements(turns: int) -> int:
        store.create_session(f"t{turns}", now=NOW)
        said = [{"role": "user", "content": f"the walrus {turn} " * 30} for turn in range(turns)]
        store.append(f"t{turns}", [*said, *[{"role": "user", "content": "end"}] * 2], now=NOW)
        store.compact(f"t{turns}", Policy(), lambda _: "It is told.", now=NOW)
        store.index()
        counted = 0
        run = Statement._execute

        def executed(*given: Any, ahead: bool = False) -> Any:
            nonlocal counted
            counted += not ahead  # what is sent ahead is asked for later
            return run(*given, ahead=ahead)

        with monkeypatch.context() as patch:
            patch.setattr(Statement, "_execute", executed)
            found = store.recall(f"t{turns}", "walrus", policy=Policy(), budget=100_000)
        assert len(found) == turns
        return counted

    few, many = statements(5), statements(40)
    assert many - few <= 2 * 40 // 8


@needs_transcripts
@pytest.mark.slow
def test_recorded_results_are_found_by_what_their_lines_name(tmp_path: Path) -> None:
    """Of the files and commands that lines name nearly all give such a result first."""
    recorded, _ = largest(TRANSCRIPTS, 3, of_each_kind=True)
    first = asked = 0
    with Store(tmp_path / "chat.db", durability="normal") as opened:
        for number, each in enumerate(recorded):
            name = f"s{number}"
            opened.create_session(name, project_root=each.root)
            opened.append(name, each.messages)
            now = max([NOW, *(message.get("timestamp") or 0 for message in each.messages)])
            now += 3_600_000
            opened.index()
            opened.compact_if_needed(name, AGENT, max_tokens=200_000, now=now)
            places: dict[str, set[int]] = {}
            for entry in opened.view(name, AGENT, now=now).entries:
                told = entry.rule == "any_tool" and NAMED.match(str(entry.message["content"]))
                if told:
                    places.setdefault(told[1], set()).add(entry.seq or 0)
            for named, theirs in places.items():
                found = opened.recall(name, [named], policy=AGENT, now=now)[:1]
                asked += 1
                first += any(theirs & {*range(it.first, it.last + 1)} for it in found)
    assert asked > 100
    assert first >= 0.95 * asked
