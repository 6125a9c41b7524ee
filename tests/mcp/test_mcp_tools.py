"""The tools of the MCP server, called by the official client."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters, stdio_client

from store import Store
from store.cli import main
from store.mcp import History, build_server
from store.mcp.answers import NOTICE
from store.tokens import counter

pytestmark = pytest.mark.sqlite_only

DAY = 1_767_225_600_000  # 2026-01-01
MINUTE = 60_000
KEY = "sk-ant-api03-" + "Ab3" * 30


def call_message(call_id: str, name: str, at: int, **arguments: Any) -> dict[str, Any]:
    """Return a message with one call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": at}


def result_message(call_id: str, text: str, at: int, status: str = "completed") -> dict[str, Any]:
    """Return the result of a call."""
    message = {"role": "tool", "tool_call_id": call_id, "content": text, "timestamp": at}
    return message | {"messageStatus": status}


def fill(store: Store, session: str = "fix", owner: str | None = None) -> None:
    """Make a session in which a build fails, and is mended."""
    store.create_session(
        session, title=f"Build of {session}", project_root="/srv/parcel", owner=owner, now=DAY
    )
    failed = "zones.c:118: fatal error: zones/table_4711.h not found\nmake: Error 2"
    messages = [
        {"role": "user", "content": "The build of the quinoa target fails.", "timestamp": DAY},
        call_message("c1", "Bash", DAY + MINUTE, command="make quinoa"),
        result_message("c1", failed, DAY + MINUTE, "error"),
        call_message(
            "c2", "Edit", DAY + 2 * MINUTE, file_path="/srv/parcel/src/zones.c", new_string="x"
        ),
        result_message("c2", "ok", DAY + 2 * MINUTE),
        call_message("c3", "Bash", DAY + 3 * MINUTE, command="make quinoa"),
        result_message("c3", f"built with {KEY}", DAY + 3 * MINUTE),
        {
            "role": "assistant",
            "content": "We keep the table in zones.c, because the header is generated.",
            "timestamp": DAY + 4 * MINUTE,
        },
    ]
    store.append(session, messages, now=DAY + 4 * MINUTE)
    store.set_origin(session, "claude_code")


@pytest.fixture
def past(path: Path) -> Iterator[Store]:
    """Give a store of one test."""
    with Store(path, durability="normal") as store:
        yield store


def ask(store: Any, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[Any]:
    """Return the answers of tools: an object, or the text of an error."""

    async def run() -> list[Any]:
        async with Client(build_server(store, **options)) as client:
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
        texts = [(result.is_error, result.content[0].text) for result in results]
        return [text if is_error else json.loads(text) for is_error, text in texts]

    return anyio.run(run)


def test_each_hit_says_where_it_is_and_how_it_is_resumed(past: Store) -> None:
    """Whole pairs of call and result, within the budget, with the key dotted."""
    fill(past)
    (told,) = ask(past, ("remember", {"text": "which key was quinoa built with?", "budget": 500}))
    assert counter().count(json.dumps(told, ensure_ascii=False, separators=(",", ":"))) <= 500
    built = next(each for each in told["passages"] if each["seq"] == "6-7")
    assert built["text"].startswith("call Bash: make quinoa\nresult: built with")
    assert KEY not in json.dumps(told)
    wanted = {"session": "fix", "project": "/srv/parcel", "program": "claude_code"}
    assert wanted.items() <= built.items()
    assert built["resume"] == "claude --resume fix"
    assert built["at"].startswith("2026-01-01")
    assert "not instructions" in told["notice"]
    (shown,) = ask(past, ("read", {"session": "fix"}), secrets=True)
    assert KEY in json.dumps(shown)


def test_an_error_of_the_past_comes_with_what_mended_it(past: Store) -> None:
    """Other numbers and folders are the same error."""
    fill(past)
    error = "other.c:7: fatal error: /home/ann/table_12.h not found"
    mended, commands = ask(past, ("mended", {"text": error}), ("commands", {"failed": True}))
    for (told,) in (mended["errors"], commands["commands"]):
        assert told["command"] == "make quinoa"
        assert "fatal error" in told["error"]
        assert told["tried"] == ["4 Edit: /srv/parcel/src/zones.c"]
        assert told["succeeded"]["seq"] == 6


def test_an_error_is_found_where_no_call_failed(past: Store) -> None:
    """In what a user pasted, and in the output of a call that went well; with what followed."""
    past.create_session("told")
    messages = [
        {"role": "user", "content": "$ git push\nerror: No `prek.toml` or `prek.yaml` found here"},
        call_message("c1", "Bash", DAY, command="git config core.hooksPath"),
        result_message("c1", "warning: quinoa table 17 cannot be read", DAY),
        {"role": "assistant", "content": "The hook was left over; I removed it."},
    ]
    past.append("told", messages)
    pasted, printed, other = ask(
        past,
        ("mended", {"text": "error: no prek.toml file"}),
        ("mended", {"text": "warning: quinoa table 4 cannot be read"}),
        ("mended", {"text": "error: no such remote branch"}),
    )
    (told,) = pasted["errors"]
    assert (told["session"], told["seq"]) == ("told", 1)
    assert told["error"] == "error: No `prek.toml` or `prek.yaml` found here"
    assert told["tried"] == ["2 Bash: git config core.hooksPath"]
    assert "I removed it" in told["said"]
    (told,) = printed["errors"]
    assert (told["seq"], told["error"]) == (2, "warning: quinoa table 17 cannot be read")
    assert other["errors"] == []


def test_recorded_answers_of_the_server_are_not_found(past: Store) -> None:
    """A session that asked its past has the answers, which would be found before their sources."""
    fill(past)
    for number in range(20):
        past.create_session(f"asker{number}")
        call = call_message("c1", "mcp__convostore__remember", DAY, text="quinoa zones")
        told = json.dumps(History(past).remember("quinoa zones"), ensure_ascii=False)
        past.append(f"asker{number}", [call, result_message("c1", told, DAY)])
    passages = History(past).remember("quinoa zones")["passages"]
    assert {each["session"] for each in passages} == {"fix"}


def test_the_first_item_is_cut_to_the_budget(past: Store) -> None:
    """An answer has an item, and never more tokens than were asked for."""
    past.create_session("wide", title="t" * 80, project_root=f"/srv/{'deep/' * 30}")
    words = "\n".join(f"fatal error: zones {number} not found" for number in range(300))
    call = call_message("c1", "Bash", DAY, command=f"make {'quinoa zones ' * 90}")
    past.append("wide", [call, result_message("c1", words, DAY, "error")])
    for name, arguments, items in (
        ("remember", {"text": "zones"}, "passages"),
        ("search", {"text": "zones"}, "hits"),
        ("commands", {"failed": True}, "commands"),
        ("mended", {"text": "fatal error: zones not found"}, "errors"),
    ):
        told = getattr(History(past), name)(**arguments, budget=200)
        assert len(told[items]) == 1, name
        assert counter().count(json.dumps(told, ensure_ascii=False, separators=(",", ":"))) <= 200


def test_a_day_and_files_and_sessions(past: Store) -> None:
    """By project: what was asked, changed and run; who changed a file; which sessions there are."""
    fill(past)
    day, files, touched, sessions, none = ask(
        past,
        ("day", {"day": "2026-01-01"}),
        ("files", {"session": "fix"}),
        ("touched", {"path": "src/zones.c"}),
        ("sessions", {"project": "parcel", "title": "build"}),
        ("day", {"day": "2026-01-02"}),
    )
    (project,) = day["projects"]
    assert project["project"] == "/srv/parcel"
    (did,) = project["sessions"]
    assert (did["commands"], did["failed"], did["changed"]) == (2, 1, ["src/zones.c"])
    assert did["asked"] == ["The build of the quinoa target fails."]
    assert files["files"] == [{"path": "src/zones.c", "changed": 1, "seq": 5}]
    assert [each["session"] for each in touched["sessions"]] == ["fix"]
    assert [each["session"] for each in sessions["sessions"]] == ["fix"]
    assert sessions["projects"] == [{"project": "/srv/parcel", "sessions": 1}]
    assert none["projects"] == []


def test_pages_go_on_where_the_last_ended(past: Store) -> None:
    """All items once, null at the end; a long message goes on within itself."""
    past.create_session("long")
    words = " ".join(f"word{number}" for number in range(3_000))
    past.append("long", [{"role": "user", "content": words}])
    for number in range(5):
        fill(past, f"fix{number}")
    for name, arguments, items, key in (
        ("sessions", {"limit": 2}, "sessions", "session"),
        ("remember", {"text": "quinoa zones", "limit": 2}, "passages", "text"),
        ("search", {"text": "quinoa zones", "limit": 2}, "hits", "seq"),
        ("commands", {"limit": 3}, "commands", "seq"),
        ("mended", {"text": "fatal error: not found", "limit": 2}, "errors", "session"),
        ("touched", {"path": "zones.c", "limit": 2}, "sessions", "session"),
        ("read", {"session": "long", "seq": 1, "budget": 1_000}, "messages", "text"),
    ):
        seen, after = [], None
        for _ in range(50):
            told = getattr(History(past), name)(**arguments, after=after)
            seen += [(each.get("session"), each.get("seq"), each[key]) for each in told[items]]
            after = told["after"]
            if after is None:
                break
        assert len(seen) == len({*seen}) >= 5, name
        if name == "read":
            assert "".join(text for *_, text in seen) == f"user: {words}"


def test_what_is_wrong_is_said(past: Store) -> None:
    """Limits, unknown arguments, unknown sessions, days and projects are answers, not crashes."""
    fill(past)
    past.create_session("home", project_root="/home/ann/parcel")
    told = ask(
        past,
        ("sessions", {"limit": 101}),
        ("search", {"query": "x"}),
        ("search", {}),
        ("read", {"session": "nowhere"}),
        ("day", {"day": "someday"}),
        ("sessions", {"project": "nowhere"}),
        ("remember", {"text": "zones", "after": "x"}),
        ("recall", {"session": "fix", "text": "?"}),
    )
    for answer, part in zip(
        told,
        (
            "at most 100, not 101",
            "no argument 'query'; it has text",
            "text",
            "`sessions` lists those",
            "yesterday",
            "there are ~/parcel, /srv/parcel",
            "ask again without it",
        ),
        strict=False,
    ):
        assert isinstance(answer, str), answer
        assert part in answer


def test_an_empty_answer_says_how_far_the_import_is(past: Store) -> None:
    """Only an empty one, and only until it is done."""
    fill(past)
    calls = [("remember", {"text": "zeppelin"}), ("remember", {"text": "zones"})]
    none, found = ask(past, *calls, describe_progress=lambda: "1 of 2 files")
    assert (none["passages"], none["import"]) == ([], "1 of 2 files")
    assert "import" not in found
    assert "import" not in ask(past, calls[0])[0]


def test_each_answer_says_that_texts_of_the_past_are_data(past: Store) -> None:
    """Of every tool but `note`, which has only the text that it is given; also the next page."""
    fill(past)
    fill(past, "other")
    told = {
        name: getattr(History(past), name)(**arguments("fix"))
        for name, arguments in TOOLS.items()
        if name not in ("day", "note")
    }
    told["day"] = History(past).day("2026-01-01")
    told["next"] = History(past).sessions(after=History(past).sessions(limit=1)["after"])
    assert [name for name, answer in told.items() if answer.get("notice") != NOTICE] == []


def test_read_only_has_no_tool_that_writes(past: Store) -> None:
    """Nothing but the index changes; all others are annotated as reading."""
    fill(past)

    async def names(read_only: bool) -> dict[str, Any]:
        async with Client(build_server(past, read_only=read_only)) as client:
            return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    every, reading = anyio.run(names, False), anyio.run(names, True)
    assert every.keys() - reading.keys() == {"fork", "note"}
    assert all(each.read_only_hint and not each.destructive_hint for each in reading.values())
    before = past.session("fix").revision, past.count_sessions()
    ask(past, ("remember", {"text": "zones"}), ("fork", {"session": "fix"}), read_only=True)
    assert (past.session("fix").revision, past.count_sessions()) == before
    forked, noted = ask(
        past,
        ("fork", {"session": "fix", "seq": 3}),
        ("note", {"session": "fix", "seq": 1, "text": "hm"}),
    )
    assert past.session(forked["session"]).head == 3
    assert noted["note"] == "hm"
    assert [note.value for note in past.annotations("fix")] == ["hm"]


NAMES = (
    st.sampled_from(["theirs", "fix", "/srv/parcel", "src/zones.c", "quinoa", "make", KEY[:9]])
    | st.text(alphabet='thefixquinoa/zs.c "*~', max_size=8)
    | st.text(max_size=20)
)
TOOLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "sessions": lambda name: {"title": name},
    "search": lambda name: {"text": name},
    "remember": lambda name: {"text": name, "project": None},
    "recall": lambda name: {"session": name, "text": "quinoa"},
    "read": lambda name: {"session": name},
    "files": lambda name: {"session": name},
    "touched": lambda name: {"path": name},
    "commands": lambda name: {"session": name},
    "mended": lambda name: {"text": f"fatal error {name} not found"},
    "day": lambda name: {"day": "2026-01-01", "project": name},
    "fork": lambda name: {"session": name},
    "note": lambda name: {"session": name, "seq": 1, "text": "mine"},
}


@given(name=NAMES)
def test_an_owner_sees_nothing_of_others(name: str) -> None:
    """Every tool answers any text as if the other owner's session, of which it may be, was not."""
    with Store(":memory:") as store, Store(":memory:") as alone:
        fill(store, "theirs", owner="ann")
        for each in (store, alone):
            each.create_session("mine", owner="bob", now=DAY)
            each.append("mine", [{"role": "user", "content": "hello"}], now=DAY)
        before = store.messages("theirs"), store.count_sessions(owner="ann")
        calls = [(tool, arguments(name)) for tool, arguments in TOOLS.items()]
        told, told_alone = (ask(each.scoped("bob"), *calls) for each in (store, alone))
        for answer in (*told, *told_alone):
            if isinstance(answer, dict) and "messages" in answer and "after" not in answer:
                del answer["session"], answer["at"]  # of a fork: a new id, and now
        assert dict(zip(TOOLS, told, strict=True)) == dict(zip(TOOLS, told_alone, strict=True))
        assert (store.messages("theirs"), store.count_sessions(owner="ann")) == before
        assert store.annotations("theirs") == []


def test_the_command_serves_over_stdio(tmp_path: Path) -> None:
    """The official client starts it, lists the tools, calls one, reads a resource and the prompt."""
    path = tmp_path / "chat.db"
    with Store(path) as store:
        fill(store)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}

    async def run() -> None:
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "store", "mcp", str(path), "--read-only"]
        )
        async with Client(stdio_client(started)) as client:
            assert len((await client.list_tools()).tools) == 10
            told = await client.call_tool("sessions", {})
            assert told.structured_content["sessions"][0]["session"] == "fix"
            found = await client.read_resource("convostore://session/fix")
            assert "quinoa" in found.contents[0].text
            assert KEY not in found.contents[0].text
            assert json.loads(found.contents[0].text)["notice"] == NOTICE
            prompt = await client.get_prompt("ask_the_past")
            assert "`mended`" in prompt.messages[0].content.text
            found = await client.call_tool("remember", {"text": "quinoa build"})
            assert found.structured_content["passages"][0]["session"] == "fix"

    anyio.run(run)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("program", ["claude-code", "codex", "gemini-cli", "cursor", "opencode"])
def test_the_lines_to_paste_start_the_server(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are valid in the program's format, and hold the options that were given."""
    import tomllib

    assert main(["mcp", "here.db", "--read-only", "--print-config", program]) == 0
    text = capsys.readouterr().out
    told = tomllib.loads(text) if program == "codex" else json.loads(text)
    assert "here.db" in json.dumps(told)
    assert "--read-only" in json.dumps(told)
    assert main(["mcp", "--print-config", "vim"]) == 2
