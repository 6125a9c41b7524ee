"""What the rules replace, and what every switch of a policy changes about it (S0, S1, A0, A1)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from conversations import DONE, MINUTE, NOW, ROOT, Script

from store import Policy, Store
from store.view.rules import RULE_REASONS

TERMINAL = "此命令返回内容已过时"
FILE_READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
NONE_KEPT = {"terminal_keep": 0, "file_read_keep": 0}


@pytest.fixture
def script() -> Script:
    """An empty conversation."""
    return Script()


def entries(
    store: Store, script: Script, *, now: int = NOW, root: str | None = ROOT, **switches: Any
) -> dict[int, Any]:
    """The entries of a view of the conversation, by position."""
    session_id = store.create_session(project_root=root).id
    store.append(session_id, script.messages)
    found = store.view(session_id, Policy(**switches), now=now).entries
    return {entry.seq: entry for entry in found if entry.seq is not None}


def replaced(store: Store, script: Script, **options: Any) -> list[int]:
    """The positions that were replaced, each by the text of its rule and nothing else changed."""
    found = []
    for seq, entry in entries(store, script, **options).items():
        raw = script.messages[seq - 1]
        if entry.rule in ("terminal", "file_read"):
            text = TERMINAL if entry.rule == "terminal" else FILE_READ
            assert entry.message == {**raw, "content": text}
            found.append(seq)
        else:
            assert entry.message == raw
    return found


def why(store: Store, script: Script, seq: int, **options: Any) -> str:
    """The reason an entry gives."""
    return str(entries(store, script, **options)[seq].reason)


# --- S0: output of commands -----------------------------------------------------------------------


def test_old_output_is_replaced(store: Store, script: Script) -> None:
    """All but the newest five, by the exact text.

    Every other field stays (S0.6, S0.9, S0.10, S0.41).
    """
    positions = script.commands(7)
    before = copy.deepcopy(script.messages)
    assert replaced(store, script) == positions[:2]
    assert script.messages == before


@pytest.mark.parametrize("keep", [0, 1, 4, 5, 6, 7, 8, 2**62])
def test_how_many_stay(store: Store, script: Script, keep: int) -> None:
    """``terminal_keep`` newest results, to the one (S0.8, S0.48)."""
    positions = script.commands(7)
    assert replaced(store, script, terminal_keep=keep) == positions[: max(0, 7 - keep)]


@pytest.mark.parametrize(
    ("max_age", "age", "old"),
    [
        (900_000, 899_999, False),
        (900_000, 900_000, False),
        (900_000, 900_001, True),
        (0, 0, False),
        (0, 1, True),
        (0, -1, False),
        (60_000, 60_000, False),
        (60_000, 60_001, True),
        (2**62, NOW, False),
    ],
)
def test_when_output_is_old(
    store: Store, script: Script, max_age: int, age: int, old: bool
) -> None:
    """Strictly more than ``terminal_max_age`` ms before ``now`` (S0.7, S0.13, S0.20, S0.46)."""
    position = script.command(minutes=0)
    now = NOW + age
    assert (
        replaced(store, script, now=now, terminal_keep=0, terminal_max_age=max_age)
        == [position] * old
    )


def test_output_ages_between_two_views(store: Store, script: Script) -> None:
    """Nothing is stored of it.

    The same line shows more or less as ``now`` is given (S0.5, S0.19).
    """
    positions = [script.command(minutes=0), script.command(minutes=-1)]
    session_id = store.create_session().id
    store.append(session_id, script.messages)
    policy = Policy(terminal_keep=0)
    shown = []
    for minutes in (15, 15.5, 30, 15.5, 0):
        view = store.view(session_id, policy, now=NOW + round(minutes * MINUTE))
        shown.append([entry.seq for entry in view.entries if entry.rule])
    assert shown == [[], positions[:1], positions, positions[:1], []]


@pytest.mark.parametrize(
    "name", ["filesystem-read", "filesystem-edit", "ace-text_search", "todo-get", "mystery"]
)
def test_other_tools_are_none_of_its_business(store: Store, script: Script, name: str) -> None:
    """Whatever their results look like (S0.14, S0.35, S0.44, A0.5)."""
    script.tool(name, DONE, 60)
    assert replaced(store, script, terminal_keep=0) == []


def test_results_of_all_tools_take_places(store: Store, script: Script) -> None:
    """The newest five are of any tool (S0.11, S0.42)."""
    old = script.command()
    for minutes in (5, 4, 3, 2):
        script.tool("filesystem-edit", "ok", minutes)
    assert replaced(store, script) == []
    script.tool("ace-text_search", "ok", 1)
    assert replaced(store, script) == [old]


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("Error: Command failed with exit code 1", {}),
        (" \n\tError: after white space", {}),
        (DONE, {"messageStatus": "error"}),
        ('{"stdout":"","stderr":"refused","exitCode":1}', {}),
        ([{"type": "text", "text": '{"stdout":"","stderr":"refused"}'}], {}),
        ({"stdout": "", "stderr": "refused"}, {}),
    ],
)
def test_errors_stay(store: Store, script: Script, content: Any, more: dict[str, Any]) -> None:
    """However old (S0.12, S0.24, S0.43, A0.6, A0.12, X.6)."""
    position = script.command(content, **more)
    assert replaced(store, script, terminal_keep=0) == []
    assert why(store, script, position, terminal_keep=0) == RULE_REASONS["error"]


@pytest.mark.parametrize(
    "content",
    [
        "An Error: not at first",
        "error: in small letters",
        '{"stdout":"x","stderr":"cut off',
        '{"stderr":null}',
        "plain",
    ],
)
def test_what_only_looks_like_an_error_is_replaced(
    store: Store, script: Script, content: str
) -> None:
    """Text that cannot be parsed is no error by its stderr (S0.25)."""
    assert replaced(store, script, terminal_keep=0) == []
    position = script.command(content)
    assert replaced(store, script, terminal_keep=0) == [position]


@pytest.mark.parametrize(
    "content", ["", None, [], [{"type": "image_url", "image_url": {"url": "data:"}}]]
)
def test_output_without_text_stays(store: Store, script: Script, content: Any) -> None:
    """Empty content is no output of a command (S0.23), and pictures are not text that went stale."""
    script.command(content)
    script.messages.append({**script.messages[1], "tool_call_id": "nobody"})
    assert replaced(store, script, terminal_keep=0) == []


@pytest.mark.parametrize(("take", "expected"), [(False, [2]), (True, [2, 4])])
def test_errors_may_take_places(
    store: Store, script: Script, take: bool, expected: list[int]
) -> None:
    """Of the newest five, by a switch (A0.1, X.15)."""
    script.commands(2)
    script.command("Error: x", minutes=20)
    for minutes in (19, 18, 17, 16):
        script.command(minutes=minutes)
    assert replaced(store, script, errors_take_slots=take) == expected


@pytest.mark.parametrize(
    ("switch", "code", "stays"),
    [
        (True, 1, True),
        (True, -9, True),
        (True, 0, False),
        (True, None, False),
        (True, "1", False),
        (False, 1, False),
        (False, 0, False),
    ],
)
def test_an_exit_code_may_be_an_error(
    store: Store, script: Script, switch: bool, code: Any, stays: bool
) -> None:
    """Any number but 0, unless the switch is off (A0.3)."""
    position = script.command(
        json.dumps({"stdout": "1 failed, 9 passed, 100 lines", "stderr": "", "exitCode": code})
    )
    assert replaced(store, script, terminal_keep=0, exit_code_is_error=switch) == [position] * (
        not stays
    )


def test_an_exit_code_said_in_words_counts(store: Store, script: Script) -> None:
    """Programs that answer in plain text say it in their own words (A0.3)."""
    position = script.command("Exit code: 2\nmake: *** [all] stopped")
    assert replaced(store, script, terminal_keep=0) == []
    assert replaced(store, script, terminal_keep=0, exit_code_is_error=False) == [position]


@pytest.mark.parametrize(
    ("switch", "code", "stays"),
    [
        ("always", 0, True),
        ("always", 1, True),
        ("always", None, True),
        ("nonzero_exit", 0, False),
        ("nonzero_exit", 1, True),
        ("nonzero_exit", None, True),
        ("never", 0, False),
        ("never", 1, False),
        ("never", None, False),
    ],
)
def test_stderr_may_be_an_error(
    store: Store, script: Script, switch: str, code: int | None, stays: bool
) -> None:
    """Always, with another exit code than 0 (or an unknown one), or never (S0.24, A0.4)."""
    said = {"stdout": "x" * 30, "stderr": "npm warn"} | ({} if code is None else {"exitCode": code})
    position = script.command(json.dumps(said))
    switches = {"stderr_is_error": switch, "exit_code_is_error": False}
    assert replaced(store, script, terminal_keep=0, **switches) == [position] * (not stays)


def test_the_name_of_the_call_decides(store: Store, script: Script) -> None:
    """Content decides only where there is no name, or where the policy says so (S0.21, A0.5,
    A1.15).
    """
    named = script.command("no mark of a command")
    read = script.read("a.json", content=DONE)
    nameless = script.tool(None, DONE, 60)
    empty = script.tool("", DONE, 60)
    other = script.tool(None, "no mark", 60)
    assert replaced(store, script, terminal_keep=0) == [named, nameless, empty]
    assert replaced(store, script, terminal_keep=0, identity="sniff") == [read, nameless, empty]
    assert other not in replaced(store, script, terminal_keep=0)


@pytest.mark.parametrize(
    "content",
    ['{"stdout":1}', '{"stderr":""}', '{"exitCode":0}', 'log: "exitCode": 0 of 5', {"stdout": "x"}],
)
def test_one_mark_is_enough(store: Store, script: Script, content: Any) -> None:
    """Partial objects, text around them, objects that are no text (S0.22, S0.39, A0.12)."""
    position = script.tool(None, content, 60)
    assert replaced(store, script, terminal_keep=0) == [position]


@pytest.mark.parametrize(
    "content", ['{"path":"/x"}', "File content: ...", '{"stdout" : "spaced"}', "stdout: x"]
)
def test_no_mark_no_command(store: Store, script: Script, content: str) -> None:
    """Where there is no name (S0.39, A0.12)."""
    script.tool(None, content, 60)
    assert replaced(store, script, terminal_keep=0) == []


def test_a_result_without_call_is_judged_by_its_own_name_or_content(
    store: Store, script: Script
) -> None:
    """What the call would have said is not known."""
    result = {"role": "tool", "content": DONE, "timestamp": 0}
    script.messages += [
        result,
        {**result, "name": "Bash"},
        {**result, "name": "Read"},
        {**result, "content": "x" * 30},
    ]
    assert replaced(store, script, terminal_keep=0) == [1, 2]
    assert replaced(store, script, terminal_keep=0, orphans="drop") == []


def test_time_orders_not_place(store: Store, script: Script) -> None:
    """Later in the line is newer only where times are equal (S0.28, A0.2, A0.8)."""
    newest, oldest, middle = (
        script.command(minutes=20),
        script.command(minutes=60),
        script.command(minutes=40),
    )
    assert replaced(store, script, terminal_keep=1) == [oldest, middle]
    assert replaced(store, script, terminal_keep=2) == [oldest]
    same = Script()
    first, second, third = (same.command(minutes=20) for _ in range(3))
    assert replaced(store, same, terminal_keep=1) == [first, second]
    assert newest not in replaced(store, script, terminal_keep=1)
    assert third not in replaced(store, same, terminal_keep=1)


@pytest.mark.parametrize("timestamp", [0, 0.0, -5, 1.5])
def test_any_number_is_a_time(store: Store, script: Script, timestamp: float) -> None:
    """Zero and negative ones too (A0.9)."""
    position = script.command(minutes=None, timestamp=timestamp)
    assert replaced(store, script, terminal_keep=0) == [position]


@pytest.mark.parametrize(
    "timestamp", [None, "2026-01-31T01:00:00", "1769821200000", True, [1], 2**70]
)
def test_without_a_time_output_stays_and_takes_no_place(
    store: Store, script: Script, timestamp: Any
) -> None:
    """It is neither old nor new (A0.9)."""
    old = script.command()
    undated = script.command(minutes=None, timestamp=timestamp)
    bare = script.command(minutes=None)
    assert replaced(store, script, terminal_keep=1) == []
    assert replaced(store, script, terminal_keep=0) == [old]
    assert (
        why(store, script, undated, terminal_keep=0)
        == why(store, script, bare)
        == RULE_REASONS["undated"]
    )


def test_what_is_in_the_future_is_not_old(store: Store, script: Script) -> None:
    """A negative age is no age (A0.9)."""
    old = script.command()
    script.command(minutes=-600)
    assert replaced(store, script, terminal_keep=0, terminal_max_age=0) == [old]


def test_the_results_own_time_counts(store: Store, script: Script) -> None:
    """Not that of the call (A0.10)."""
    position = script.command(minutes=60)
    script.messages[-2]["timestamp"] = NOW
    assert replaced(store, script, terminal_keep=0) == [position]


def test_what_is_running_stays(store: Store, script: Script) -> None:
    """It is not successful yet (A0.13)."""
    running = script.command(messageStatus="pending")
    done = script.command(messageStatus="completed")
    assert replaced(store, script, terminal_keep=0) == [done]
    assert why(store, script, running, terminal_keep=0) == RULE_REASONS["pending"]


@pytest.mark.parametrize(("protect", "expected"), [(False, [2, 5, 7]), (True, [2])])
def test_the_current_turn_may_be_protected(
    store: Store, script: Script, protect: bool, expected: list[int]
) -> None:
    """From the latest user message on (A0.15, X.12)."""
    script.command()
    script.user()
    script.command()
    read = script.read("a.ts")
    switches = {**NONE_KEPT, "protect_current_turn": protect}
    assert replaced(store, script, **switches) == expected
    assert (why(store, script, read, **switches) == RULE_REASONS["current_turn"]) is protect
    alone = Script()
    alone.command()
    assert replaced(store, alone, **switches) == [2] * (not protect), (
        "without any user message all is one turn"
    )
    del alone.messages[0]
    alone.messages[0]["name"] = "Bash"
    assert replaced(store, alone, **switches) == [1] * (not protect)


def test_the_current_turn_is_found_across_forks(store: Store, script: Script) -> None:
    """The latest user message is that of the line, whichever branch holds it."""
    session_id = store.create_session().id
    shown = []
    for _ in range(3):
        script.messages.clear()
        old, _, new = script.command(), script.user(), script.command()
        store.append(session_id, script.messages)
        policy = Policy(terminal_keep=0, protect_current_turn=True)
        shown.append(
            [entry.seq for entry in store.view(session_id, policy, now=NOW).entries if entry.rule]
        )
        session_id = store.fork(session_id).id
        assert (old, new) == (2, 5)
    assert shown == [[2], [2, 5, 7], [2, 5, 7, 10, 12]]


@pytest.mark.parametrize(
    ("least", "replaces"), [(0, True), (1, True), (20, True), (21, False), (2**62, False)]
)
def test_a_saving_may_be_asked_for(
    store: Store, script: Script, least: int, replaces: bool
) -> None:
    """In code points; 0 replaces however long the placeholder is (A0.16, X.14)."""
    position = script.command("文" * 30)
    shown = entries(
        store, script, terminal_keep=0, terminal_placeholder="x" * 10, min_saving=least
    )[position]
    assert (shown.message["content"] == "x" * 10) is replaces
    assert replaces or shown.reason == RULE_REASONS["small"]


def test_placeholders_longer_than_what_they_stand_for(store: Store, script: Script) -> None:
    """Are used as the rule says, unless at least one code point must be saved (A0.16)."""
    command, read = script.command("ok"), script.read("a.ts", content="1→x")
    assert replaced(store, script, **NONE_KEPT) == [command, read]
    assert replaced(store, script, **NONE_KEPT, min_saving=1) == []


def test_placeholders_are_the_policys(store: Store, script: Script) -> None:
    """Any text, an empty one too."""
    command, read = script.command(), script.read("a.ts")
    shown = entries(
        store, script, **NONE_KEPT, terminal_placeholder="", file_read_placeholder="[文件]"
    )
    assert [shown[command].message["content"], shown[read].message["content"]] == ["", "[文件]"]


def test_each_rule_can_be_switched_off(store: Store, script: Script) -> None:
    """Alone, or both: then nothing is replaced."""
    command, read = script.command(), script.read("a.ts")
    assert replaced(store, script, **NONE_KEPT) == [command, read]
    assert replaced(store, script, **NONE_KEPT, terminal=False) == [read]
    assert replaced(store, script, **NONE_KEPT, file_read=False) == [command]
    assert replaced(store, script, **NONE_KEPT, terminal=False, file_read=False) == []


# --- S1: reads of files ---------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 4, 5, 6, 7, 8, 2**62])
def test_how_many_reads_of_a_file_stay(store: Store, script: Script, keep: int) -> None:
    """``file_read_keep`` newest, to the one, however old they are (S1.7, S1.8, S1.10, S1.47)."""
    positions = script.reads("a.ts", 7)
    assert replaced(store, script, file_read_keep=keep) == positions[: max(0, 7 - keep)]
    assert replaced(store, script, file_read_keep=keep, now=10**12) == positions[: max(0, 7 - keep)]


def test_each_file_has_its_own_five(store: Store, script: Script) -> None:
    """A file read five times is whole (S1.6, S1.12, S1.27, S1.48)."""
    script.reads("a.ts", 5)
    stale = script.reads("b.ts", 6)[:1]
    script.reads("c.ts", 1)
    assert replaced(store, script) == stale


@pytest.mark.parametrize(
    ("content", "more"),
    [("Error: ENOENT: no such file", {}), ("\n Error: x", {}), ("1→x", {"messageStatus": "error"})],
)
def test_failed_reads_stay_and_take_no_place(
    store: Store, script: Script, content: str, more: dict[str, Any]
) -> None:
    """However many (S1.11, S1.26, S1.29, S1.36, S1.49, A1.6)."""
    first = script.read("a.ts", 70)
    failed = [script.read("a.ts", 60 - n, content, **more) for n in range(3)]
    good = script.reads("a.ts", 5)
    assert replaced(store, script) == [first]
    assert replaced(store, script, file_read_keep=0) == [first, *good]
    assert why(store, script, failed[0], file_read_keep=0) == RULE_REASONS["error"]


def test_output_of_a_failed_command_is_no_failed_read(store: Store, script: Script) -> None:
    """A file that holds stderr or an exit code was read all right (S1.36)."""
    position = script.read("log.json", content='{"stdout":"","stderr":"refused","exitCode":1}')
    assert replaced(store, script, file_read_keep=0) == [position]


def test_a_running_read_stays_and_takes_no_place(store: Store, script: Script) -> None:
    """It has not succeeded (S1.7, A0.13)."""
    done = script.read("a.ts", 10)
    script.read("a.ts", 5, messageStatus="pending")
    assert replaced(store, script, file_read_keep=1) == []
    assert replaced(store, script, file_read_keep=0) == [done]


@pytest.mark.parametrize(
    "name",
    ["terminal-execute", "filesystem-edit", "ace-text_search", "filesystem-list", "mystery", None],
)
def test_only_reads_are_reads(store: Store, script: Script, name: str | None) -> None:
    """Whatever files other tools name, and whatever their results look like (S1.13, S1.34, S1.50,
    A1.9).
    """
    arguments = json.dumps({"filePath": "a.ts"})
    for n in range(7):
        script.tool(name, "📄 a.ts (lines 1-2/2)\n1→import x", n, arguments)
    assert replaced(store, script, file_read_keep=1) == []


SPELLINGS = [
    "src/a.ts",
    "./src/a.ts",
    "src//a.ts",
    "src/x/../a.ts",
    "src\\a.ts",
    f"{ROOT}/src/a.ts",
    "F:\\Projects\\snow-cli\\src\\a.ts",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_one_file_has_many_spellings(store: Store, script: Script, spelling: str) -> None:
    """Relative to the project or not, with either separator (S1.30, S1.43, S1.52, A1.7, A1.8)."""
    position = script.read(spelling, 60)
    script.read("src/a.ts", 50)
    assert replaced(store, script, file_read_keep=1) == [position]


@pytest.mark.parametrize(
    "other",
    [
        "a.ts",
        "src/a.tsx",
        "SRC/a.ts",
        "/src/a.ts",
        "..src/a.ts",
        "src/a.ts/b",
        "F:/Projects/src/a.ts",
    ],
)
def test_other_files_are_other_files(store: Store, script: Script, other: str) -> None:
    """Case tells files apart unless the session says otherwise (A1.7)."""
    script.read(other, 60)
    script.read("src/a.ts", 50)
    assert replaced(store, script, file_read_keep=1) == []


def test_case_is_folded_if_the_session_says_so(store: Store, script: Script) -> None:
    """As on file systems that do (A1.7)."""
    script.read("SRC/a.ts", 60)
    script.read("src/A.ts", 50)
    session_id = store.create_session(fold_case=True).id
    store.append(session_id, script.messages)
    view = store.view(session_id, Policy(file_read_keep=1), now=NOW)
    assert [entry.seq for entry in view.entries if entry.rule] == [2]


def test_without_a_project_absolute_paths_are_their_own(store: Store, script: Script) -> None:
    """There is no root to be relative to, and the process's folder is none of ours (A1.7)."""
    script.read(f"{ROOT}/a.ts", 60)
    script.read("a.ts", 50)
    assert replaced(store, script, file_read_keep=1, root=None) == []
    assert replaced(store, script, file_read_keep=1) == [2]


def test_a_folder_counts_like_a_file(store: Store, script: Script) -> None:
    """With and without its last slash (S1.31, A1.7)."""
    first = script.read("src/components/", 60)
    script.read("src/components", 50)
    assert replaced(store, script, file_read_keep=1) == [first]


@pytest.mark.parametrize(
    "arguments",
    [
        "{}",
        "",
        "not json",
        "[1]",
        None,
        5,
        '{"filePath": ""}',
        '{"filePath": null}',
        '{"filePath": []}',
        '{"filePath": 7}',
    ],
)
def test_reads_of_no_known_file_stay(store: Store, script: Script, arguments: Any) -> None:
    """However many (S1.32, S1.35, S1.54, A1.10)."""
    positions = [script.tool("filesystem-read", "1→x", 60 - n, arguments) for n in range(7)]
    assert replaced(store, script, file_read_keep=0) == []
    assert why(store, script, positions[0]) == RULE_REASONS["no_path"]


def test_reads_of_no_known_call_stay(store: Store, script: Script) -> None:
    """As in sessions of old, that have no tool_calls (S1.32, S1.34, A1.9)."""
    script.reads("a.ts", 7)
    script.messages = [message for message in script.messages if message["role"] == "tool"]
    assert replaced(store, script, file_read_keep=0) == []


@pytest.mark.parametrize("path", ["a.ts", ["a.ts"], [{"path": "a.ts"}], {"path": "a.ts"}])
@pytest.mark.parametrize("as_text", [True, False])
def test_paths_come_in_many_shapes(store: Store, script: Script, path: Any, as_text: bool) -> None:
    """A text, a list of texts or of objects.

    Arguments as an object or its JSON (S1.35, S1.42, A1.2, A1.10).
    """
    arguments: Any = {"filePath": path}
    first = script.tool(
        "filesystem-read", "1→x", 60, json.dumps(arguments) if as_text else arguments
    )
    script.read("a.ts", 50)
    assert replaced(store, script, file_read_keep=1) == [first]


def test_the_later_of_two_at_one_moment_is_newer(store: Store, script: Script) -> None:
    """As in the order of the line (S1.40, A1.3)."""
    positions = [script.read("a.ts", 60) for _ in range(3)]
    assert replaced(store, script, file_read_keep=1) == positions[:2]
    late, early = Script(), Script()
    late.read("a.ts", 10)
    assert replaced(store, late, file_read_keep=1) == []
    newest = early.read("a.ts", 10)
    oldest = early.read("a.ts", 60)
    assert replaced(store, early, file_read_keep=1) == [oldest] != [newest]


def test_a_read_without_a_time_stays_and_takes_no_place(store: Store, script: Script) -> None:
    """It has no rank (S1.39, A1.16)."""
    old = script.read("a.ts", 60)
    undated = script.read("a.ts", None)
    assert replaced(store, script, file_read_keep=1) == []
    assert replaced(store, script, file_read_keep=0) == [old]
    assert why(store, script, undated, file_read_keep=0) == RULE_REASONS["undated"]


def test_ids_that_repeat_are_of_the_nearest_call(store: Store, script: Script) -> None:
    """So a read is of the file that its own call named (A1.11)."""
    for path, minutes in (("a.ts", 60), ("b.ts", 50), ("a.ts", 40)):
        script.read(path, minutes)
        script.messages[-2]["tool_calls"][0]["id"] = script.messages[-1]["tool_call_id"] = "same"
    assert replaced(store, script, file_read_keep=1) == [2]


# --- S1: reads of several files -------------------------------------------------------------------


def test_a_batch_counts_for_each_of_its_files(store: Store, script: Script) -> None:
    """One call, a place of each file (S1.28, S1.53)."""
    old = [script.read(path, 60) for path in ("a.ts", "b.ts", "c.ts")]
    script.read(["a.ts", "b.ts"], 50)
    assert replaced(store, script, file_read_keep=1) == old[:2]


@pytest.mark.parametrize(("batch_rule", "stale"), [("all", False), ("any", True)])
def test_a_batch_that_is_stale_in_part(
    store: Store, script: Script, batch_rule: str, stale: bool
) -> None:
    """Stays while it holds one of a file's newest reads, unless the policy says "any" (A1.1)."""
    batch = script.read(["a.ts", "b.ts"], 60)
    script.read("a.ts", 50)
    switches = {"file_read_keep": 1, "batch_rule": batch_rule}
    assert replaced(store, script, **switches) == [batch] * stale
    assert (
        why(store, script, batch, **switches)
        == RULE_REASONS["newest_reads"].format(file_read_keep=1)
    ) is not stale
    script.read("b.ts", 40)
    assert replaced(store, script, **switches) == [batch]


@pytest.mark.parametrize("unknown", [None, 7, {"lines": 3}, ["nested"]])
@pytest.mark.parametrize(("batch_rule", "stale"), [("all", False), ("any", True)])
def test_a_batch_that_was_not_wholly_understood(
    store: Store, script: Script, unknown: Any, batch_rule: str, stale: bool
) -> None:
    """Stays: what it held besides is not known (A1.1)."""
    batch = script.read(["a.ts", unknown], 60)
    script.read("a.ts", 50)
    assert replaced(store, script, file_read_keep=1, batch_rule=batch_rule) == [batch] * stale


def test_a_batch_that_failed_in_part_is_a_success(store: Store, script: Script) -> None:
    """Only a result that begins with the error is one (A1.12)."""
    batch = script.read(["a.ts", "gone.ts"], 60, content="1→x\nError: gone.ts not found")
    assert replaced(store, script, file_read_keep=0) == [batch]


@pytest.mark.parametrize(("dedupe", "expected"), [(True, []), (False, [2])])
def test_a_file_named_twice_in_a_batch(
    store: Store, script: Script, dedupe: bool, expected: list[int]
) -> None:
    """Is read once, unless the policy counts mentions; under two spellings too (A1.4)."""
    for minutes in (60, 50, 40):
        script.read(["a.ts", "./a.ts"], minutes)
    assert replaced(store, script, dedupe=dedupe) == expected
    assert replaced(store, script, dedupe=dedupe, file_read_keep=2) == ([2] if dedupe else [2, 4])


# --- S1: lines ------------------------------------------------------------------------------------


def lines(start: int | None = None, end: int | None = None, path: str = "a.ts") -> dict[str, Any]:
    """A file with the lines asked for."""
    return (
        {"path": path}
        | ({} if start is None else {"startLine": start})
        | ({} if end is None else {"endLine": end})
    )


COVERED: list[tuple[str, Any, list[Any], bool]] = [
    ("the same lines", [lines(1, 50)], [[lines(1, 50)]], True),
    ("more lines", [lines(10, 20)], [[lines(1, 50)]], True),
    ("one line less at the end", [lines(1, 50)], [[lines(1, 49)]], False),
    ("one line less at the beginning", [lines(1, 50)], [[lines(2, 60)]], False),
    ("the whole file", [lines(10, 20)], [["a.ts"]], True),
    ("a part of the whole", ["a.ts"], [[lines(1, 1000)]], False),
    ("from the first line on", ["a.ts"], [[lines(1)]], True),
    ("to the end", [lines(50)], [[lines(49)]], True),
    ("not to the end", [lines(50)], [[lines(50, 10**6)]], False),
    ("two that meet", [lines(1, 50)], [[lines(1, 25)], [lines(26, 50)]], True),
    ("two that overlap", [lines(1, 50)], [[lines(20, 50)], [lines(1, 30)]], True),
    ("two with a gap of one line", [lines(1, 50)], [[lines(1, 25)], [lines(27, 50)]], False),
    ("three, out of order", ["a.ts"], [[lines(40)], [lines(1, 10)], [lines(11, 39)]], True),
    ("another file", [lines(1, 50)], [[lines(1, 50, "b.ts")], [lines(60, 70)]], False),
    (
        "a batch, one of it covered",
        [lines(1, 5), lines(1, 5, "b.ts")],
        [[lines(1, 5), lines(6, 9, "b.ts")]],
        False,
    ),
    (
        "a batch, all of it covered",
        [lines(1, 5), lines(1, 5, "b.ts")],
        [["b.ts", lines(1, 9)]],
        True,
    ),
    ("two pieces in one read, with a gap", [lines(1, 5)], [[lines(1, 5), lines(20, 30)]], False),
    ("two pieces in one read that meet", [lines(1, 30)], [[lines(1, 15), lines(16, 30)]], True),
    ("pieces are covered by their hull", [lines(1, 5), lines(20, 30)], [[lines(1, 30)]], True),
    (
        "pieces are not covered by pieces",
        [lines(1, 5), lines(20, 30)],
        [[lines(1, 5)], [lines(20, 30)]],
        False,
    ),
]


@pytest.mark.parametrize(
    ("old", "newer", "covered"), [case[1:] for case in COVERED], ids=[case[0] for case in COVERED]
)
def test_a_read_may_stay_for_its_lines(
    store: Store, script: Script, old: Any, newer: list[Any], covered: bool
) -> None:
    """With ``range_aware``, while no newer kept reads hold all of them.

    Else reads are counted (A1.5, A1.14).
    """
    first = script.read(old, 60)
    script.read([{"path": "b.ts", "startLine": 10**7}, {"path": "a.ts", "startLine": 10**7}], 55)
    for minutes, path in enumerate(newer):
        script.read(path, 50 - minutes)
    switches = {"file_read_keep": 1, "batch_rule": "any"}
    assert first in replaced(store, script, **switches)
    assert (first in replaced(store, script, **switches, range_aware=True)) is covered
    if not covered:
        assert why(store, script, first, **switches, range_aware=True) == RULE_REASONS["uncovered"]


def test_what_stays_for_its_lines_covers_in_its_turn(store: Store, script: Script) -> None:
    """An older read of the same lines goes; what goes covers nothing (A1.5)."""
    oldest = script.read([lines(1, 50)], 60)
    older = script.read([lines(1, 50)], 50)
    script.read([lines(60, 90)], 40)
    assert replaced(store, script, file_read_keep=1, range_aware=True) == [oldest]
    assert replaced(store, script, file_read_keep=1) == [oldest, older]


def test_a_failed_read_covers_nothing(store: Store, script: Script) -> None:
    """Nor one that is running, or has no time (A1.5)."""
    script.read("a.ts", 60)
    script.read("a.ts", 50, content="Error: x")
    script.read("a.ts", 40, messageStatus="pending")
    script.read("a.ts", None)
    script.read([lines(1, 5)], 30)
    assert replaced(store, script, file_read_keep=1, range_aware=True) == []
    output = Script()
    older = output.read("a.json", 60, content="x" * 40)
    newer = output.read("a.json", 50, content=DONE)
    output.read([lines(1, 5, "a.json")], 40)
    switches = {"terminal_keep": 0, "file_read_keep": 1, "range_aware": True}
    assert replaced(store, output, **switches) == [older]
    assert replaced(store, output, **switches, identity="sniff") == [newer], (
        "nor one that is no longer shown"
    )


# --- kinds of tools -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Bash", "shell", "terminal-execute", "run_terminal_cmd", "execute_bash"]
)
def test_commands_have_many_names(store: Store, script: Script, name: str) -> None:
    """Those in use are known (X.11)."""
    position = script.tool(name, "x" * 50, 60)
    assert replaced(store, script, terminal_keep=0) == [position]


def test_a_policy_may_say_what_a_tool_is(store: Store, script: Script) -> None:
    """Over what the table says (X.11)."""
    arguments = json.dumps({"filePath": "a.ts"})
    mine, bash, read = (
        script.tool(name, "x" * 50, 60, arguments) for name in ("mystery", "Bash", "Read")
    )
    assert replaced(store, script, **NONE_KEPT) == [bash, read]
    assert replaced(store, script, **NONE_KEPT, tool_kinds={"mystery": "terminal"}) == [
        mine,
        bash,
        read,
    ]
    assert (
        replaced(store, script, **NONE_KEPT, tool_kinds={"Bash": "other", "Read": "search"}) == []
    )
    shown = entries(
        store, script, **NONE_KEPT, tool_kinds={"mystery": "file_read", "Read": "terminal"}
    )
    assert [shown[seq].rule for seq in (mine, bash, read)] == ["file_read", "terminal", "terminal"]


def test_names_of_tools_are_exact(store: Store, script: Script) -> None:
    """Also with letters that JSON or SQL write otherwise."""
    odd = 'it\'s "a" tool, %s 文件 😀'
    position = script.tool(odd, "x" * 50, 60)
    script.tool(odd.upper(), "x" * 50, 60)
    script.tool("BASH", "x" * 50, 60)
    assert replaced(store, script, terminal_keep=0, tool_kinds={odd: "terminal"}) == [position]


def test_the_table_of_kinds_can_be_edited(url: str, script: Script) -> None:
    """It is joined when a view is built, so old results are judged anew.

    A policy is above it (X.11).
    """
    position = script.tool("mystery", "x" * 50, 60)
    with Store(url) as store:
        assert replaced(store, script, terminal_keep=0) == []
        with store.database.writing() as connection:
            connection.exec_driver_sql("INSERT INTO tool_kinds VALUES ('mystery', 'terminal')")
        assert replaced(store, script, terminal_keep=0) == [position]
        assert replaced(store, script, terminal_keep=0, tool_kinds={"mystery": "other"}) == []


# --- both rules, and what else is in the view -----------------------------------------------------


def test_both_rules_in_one_view(store: Store, script: Script) -> None:
    """Each for its own tools (S1.21, S1.27)."""
    commands = script.commands(7)
    reads = script.reads("a.ts", 7)
    assert replaced(store, script) == [*commands[:5], *reads[:2]]
    sniffed = Script()
    output = sniffed.read("a.json", content=DONE)
    entry = entries(store, sniffed, **NONE_KEPT, identity="sniff")[output]
    assert (entry.rule, entry.message["content"]) == ("terminal", TERMINAL), (
        "S0 comes before S1 (X.7)"
    )


def test_results_that_the_view_leaves_out_take_no_place(store: Store, script: Script) -> None:
    """Ranks are over what is visible (X.8)."""
    old = script.command()
    script.messages += [
        {"role": "tool", "tool_call_id": "nobody", "content": "x", "timestamp": NOW}
    ] * 5
    assert replaced(store, script) == [old]
    assert replaced(store, script, orphans="drop") == []


def test_a_rewind_gives_places_back(store: Store, script: Script) -> None:
    """A view is of the line as it is (S1.19, A1.17)."""
    positions = script.reads("a.ts", 7)
    session_id = store.create_session().id
    store.append(session_id, script.messages)

    def shown() -> list[int]:
        return [e.seq for e in store.view(session_id, now=NOW).entries if e.rule and e.seq]

    assert shown() == positions[:2]
    store.rewind(session_id, to=positions[5])
    assert shown() == positions[:1]
    store.rewind(session_id, to=positions[4])
    assert shown() == []
    store.undo_rewind(session_id)
    store.undo_rewind(session_id)
    assert shown() == positions[:2]


def test_every_result_says_why(store: Store, script: Script) -> None:
    """What is replaced and what stays, in words with the policy's numbers."""
    wanted = {
        script.command(): "output of a command, not one of the newest 2 tool results, over 15 minutes old",
        script.command(minutes=None): "no timestamp, so no age and no rank",
        script.command("Error: x"): "errors always stay",
        script.command(messageStatus="pending", minutes=61): "the tool is still running",
        script.tool("mystery", "x", 99): "no rule is about this tool",
        script.read("a.ts", 70): "1 newer reads of the same file are kept: a.ts",
        script.read("a.ts", 65): "among the newest 1 reads of each of its files",
        script.tool("Read", "x", 80): "the file it read is not known",
        script.command(minutes=14): "one of the newest 2 tool results",
        script.command(minutes=13): "one of the newest 2 tool results",
    }
    shown = entries(store, script, terminal_keep=2, file_read_keep=1)
    assert {seq: shown[seq].reason for seq in wanted} == wanted
    young = Script()
    position = young.command(minutes=15)
    assert why(store, young, position, terminal_keep=0) == "not over 15 minutes old"
    assert (
        why(store, young, position, terminal_keep=0, terminal_max_age=5_400_000)
        == "not over 90 minutes old"
    )
