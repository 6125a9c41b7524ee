from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Ran, Run

from store import Store, inspection
from store.cli.demo_session import DEMO_NOW, DEMO_ROOT, build_conversation
from store.errors import SessionNotFound
from store.records import Finding

EVIL = "\x1b[31mred\x1b[0m \x9b2J \x07 \u202egnp.exe [bold]b[/bold] \ud83d"
"""What no terminal should be sent as it is, and markup that must be shown as it is."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store that holds the demo's session as ``talk``, once for all tests."""
    path = tmp_path_factory.mktemp("stored") / "convostore.db"
    with Store(path, durability="normal") as store:
        store.create_session("talk", title="Parcels", project_root="/home/ada/parcel")
        store.append("talk", build_conversation())
    return path


@pytest.fixture
def talk(run: Run, tmp_path: Path, stored: Path) -> Run:
    """Give the same function where the demo's session is stored as ``talk``."""
    shutil.copy(stored, tmp_path)
    return run


def failed(ran: Ran, *said: str) -> None:
    """Assert that a command failed as it should.

    Status 2, one line on standard error, nothing else.
    """
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.startswith("convostore: ")
    assert ran.err.count("\n") == 1
    assert all(each in ran.err for each in said), ran.err


READING = [
    ["sessions"],
    ["show", "x"],
    ["view", "x"],
    ["stats"],
    ["tokens", "x"],
    ["branches", "x"],
    ["moves", "x"],
    ["sql", "SELECT 1"],
    ["fork", "x"],
    ["rewind", "x", "--to", "1"],
    ["switch", "x", "1"],
    ["undo", "x"],
    ["delete", "x", "--yes"],
    ["export", "x"],
    ["verify"],
    ["migrate"],
]


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
def test_a_missing_store_is_an_error_and_is_not_made(
    run: Run, tmp_path: Path, arguments: list[str]
) -> None:
    """A command that works on what is stored says that there is nothing, and makes no file."""
    failed(run(*arguments), "no store at 'convostore.db'", "import", "--db")
    failed(run("--db", f"sqlite:///{tmp_path}/other.db", *arguments), "other.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [each for each in READING if "x" in each], ids=lambda arguments: arguments[0]
)
def test_an_unknown_session_is_an_error(talk: Run, arguments: list[str]) -> None:
    """A session that is not there is named in one line."""
    failed(talk(*arguments), "no session 'x'")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch"], "No such command"),
        (["view"], "Missing argument"),
        (["view", "talk", "--nosuch"], "No such option"),
        (["view", "talk", "--at", "x"], "--at is a whole number, not 'x'"),
        (["view", "talk", "--at", "1000"], "1000 is not one of them"),
        (["view", "talk", "--now", "someday"], "--now must be ms since the epoch"),
        (["view", "talk", "--now", "2025-01-01T10:00"], "with a zone"),
        (["view", "talk", "--policy", "x"], "default, message_count, token_ratio, turns, raw"),
        (["view", "talk", "--set", "terminal_keep"], "FIELD=VALUE"),
        (["view", "talk", "--set", "nosuch=1"], "nosuch"),
        (["view", "talk", "--set", "terminal_keep=many"], "terminal_keep"),
        (["undo", "talk"], "no rewind or switch to undo"),
        (["rewind", "talk", "--to", "99"], "99 is not one of them"),
        (["fork", "talk", "--id", "talk"], "exists already"),
        (["fork", "talk", "--branch", "9"], "no branch 9 to go back to"),
        (["switch", "talk", "9"], "no branch 9 to go back to"),
        (["switch", "talk", "1", "--to", "99"], "99 is not one of them"),
        (["branches", "talk", "--at", "99"], "99 is not one of them"),
        (["tokens", "talk", "--encoding", "x"], "no encoding 'x'"),
        (["sql", "DELETE FROM messages"], "refused"),
        (["sql", "SELEC 1"], "cannot be run"),
        (["export", "talk", "-o", "no/folder"], "there is no folder 'no'"),
        (["export", "talk", "-o", "convostore.db", "--force"], "is the store itself"),
        (["export", "talk", "--policy", "agent"], "--policy applies to the messages for the model"),
        (
            ["export", "--all", "--set", "terminal_keep=3"],
            "--set applies to the messages for the model",
        ),
        (["import", "nosuch"], "no file or folder 'nosuch'"),
        (["--db", "mysql://host/x", "sessions"], "mysql"),
        (["--db", ".", "sessions"], "is a folder"),
        (["sessions", "--db"], "'--db' requires an argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_done_is_said_in_one_line(
    talk: Run, arguments: list[str], said: str
) -> None:
    """Every error is one line on standard error that says what was wrong, with exit status 2."""
    failed(talk(*arguments), said)


def test_import_counts_and_says_what_is_wrong(run: Run, tmp_path: Path) -> None:
    """A file that fails does not keep the others out, and makes the exit status 2."""
    good = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    Path("good.jsonl").write_text("".join(json.dumps(each) + "\n" for each in good) + "{broken\n")
    Path("bad.txt").write_text("no transcript")
    ran = run("import", "bad.txt", "good.jsonl", "missing.jsonl")
    assert ran.status == 2
    assert "good.jsonl:3: line 3 is left out" in ran.out
    assert [line.split(":")[0] for line in ran.err.splitlines()] == [
        "store",
        "convostore",
        "convostore",
    ]
    assert "bad.txt begins with" in ran.err or "bad.txt cannot be read" in ran.err
    row = next(line for line in ran.out.splitlines() if line.startswith("good.jsonl "))
    assert row.split() == ["good.jsonl", "openai", "1", "2", "0", "2", "1"]
    assert run("import", "good.jsonl").out.splitlines()[2].split()[-2:] == ["0", "1"]


def test_import_searches_folders_but_not_the_store(run: Run) -> None:
    """Folders are searched for transcripts.

    Other files in them, hidden ones and the store itself are passed over.
    """
    Path("in/deep").mkdir(parents=True)
    Path("in/.git").mkdir()
    for name in ("in/a.jsonl", "in/deep/b.jsonl", "in/.git/c.jsonl", "in/.d.jsonl"):
        Path(name).write_text('{"role": "user", "content": "hi"}\n')
    Path("in/notes.md").write_text("# notes")
    ran = run("--db", "in/chat.db", "import", "in", "--json")
    assert ran.status == 0
    done = {Path(each["file"]).name: each for each in json.loads(ran.out)}
    assert set(done) == {"a.jsonl", "b.jsonl", "notes.md"}
    assert done["notes.md"]["skipped"] is True
    assert done["a.jsonl"]["sessions"][0]["appended"] == 1
    assert "skipped 1 file" in run("--db", "in/chat.db", "import", "in").out


def test_import_of_a_folder_without_transcripts_fails(run: Run) -> None:
    """A folder in which nothing could be read is no success."""
    Path("in").mkdir()
    Path("in/notes.md").write_text("# notes")
    ran = run("import", "in")
    assert ran.status == 2
    assert "nothing was imported" in ran.err


def test_import_tells_a_difference_by_its_status(run: Run) -> None:
    """A session that differs is left alone and makes the status 1.

    --replace takes the file's version.
    """
    path = Path("talk.jsonl")
    path.write_text('{"role": "user", "content": "a"}\n')
    assert run("import", path).status == 0
    path.write_text('{"role": "user", "content": "b"}\n')
    ran = run("import", path)
    assert ran.status == 1
    assert "differs from the file from position 1 on" in ran.out
    assert run("import", path, "--replace").status == 0
    assert [
        each["message"]["content"] for each in json.loads(run("show", "talk", "--json").out)
    ] == ["b"]


def test_import_tells_by_its_status_that_something_is_lost(run: Run) -> None:
    """A line that cannot be read, a message that cannot be stored: the rest is there."""
    whole = '{"role": "user", "content": "a"}\n'
    for lost in ('{"role": "us', '{"role": "user", "content": NaN}'):
        Path("talk.jsonl").write_text(f"{whole}{lost}\n{whole}")
        ran = run("import", "talk.jsonl", "--replace")
        assert (ran.status, "left out" in ran.out) == (1, True), ran


def test_import_names_one_file_only(run: Run) -> None:
    """--id is the name of one file's session."""
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).write_text('{"role": "user", "content": "hi"}\n')
    failed(run("import", "a.jsonl", "b.jsonl", "--id", "x"), "--id")
    assert run("import", "a.jsonl", "--id", "x").status == 0
    assert json.loads(run("sessions", "--json").out)[0]["id"] == "x"


def test_sessions_are_listed_and_counted(talk: Run) -> None:
    """The table has a line for each session; --json has every field; --limit says when it cut."""
    talk("fork", "talk", "--at", "3", "--id", "side", "--title", "Other")
    rows = [line.split() for line in talk("sessions").out.splitlines()]
    assert ["side", "Other", "3"] in [[*row[:2], row[-1]] for row in rows]
    listed = json.loads(talk("sessions", "--json").out)
    assert {each["id"]: each["head"] for each in listed} == {"talk": 56, "side": 3}
    assert "only the last 1" in talk("sessions", "-n", "1").out


def test_a_session_is_found_by_its_beginning(talk: Run) -> None:
    """The beginning of just one id is enough, also to delete; that of several is not."""
    assert talk("show", "ta", "--to", "1").status == 0
    talk("fork", "talk", "--id", "talk-2")
    failed(talk("view", "ta"), "2 sessions begin with 'ta'")
    assert talk("view", "talk").status == 0
    failed(talk("delete", "ta", "--yes"), "2 sessions begin with 'ta': ")
    assert talk("delete", "talk-", "--yes").out.startswith("talk-2: ")
    failed(talk("delete", "side", "--yes"), "no session 'side'")


def test_show_says_where_there_is_nothing_to_show(talk: Run) -> None:
    """Silence would leave open whether it worked."""
    ran = talk("show", "talk", "--from", "999")
    assert (ran.status, ran.out) == (0, "")
    assert "no message stands there\n" in ran.err
    assert "no message" not in talk("show", "talk", "--from", "999", "--json").err


def test_show_prints_raw_messages(talk: Run) -> None:
    """Raw messages come out whole, or some lines of each; --json equals what went in."""
    shown = json.loads(talk("show", "talk", "--json").out)
    assert [each["message"] for each in shown] == build_conversation()
    assert [
        each["seq"]
        for each in json.loads(
            talk("show", "talk", "--from", 2, "--to", 5, "--at", 4, "--json").out
        )
    ] == [
        2,
        3,
        4,
    ]
    newest = json.loads(talk("show", "talk", "--from", -2, "--json").out)
    assert [each["message"] for each in newest] == build_conversation()[-2:]
    out = talk("show", "talk", "--from", 13, "--to", 13, "--lines", 1).out
    assert out.startswith("#13 tool  2025-03-14 09:04:01Z  tool_call_id call_06_0\n")
    assert "make build" in talk("show", "talk", "--from", 12, "--to", 12).out


def test_view_prints_what_is_sent(talk: Run) -> None:
    """--json is exactly the API's messages; the table says rule, reason and savings.

    The policy can be changed.
    """
    with Store("convostore.db") as store:
        expected = store.view("talk", now=DEMO_NOW)
    assert json.loads(talk("view", "talk", "--now", DEMO_NOW, "--json").out) == expected.messages
    assert (
        json.loads(talk("view", "talk", "--now", "2025-03-14T10:02Z", "--json").out)
        == expected.messages
    )
    out = talk("view", "talk", "--now", DEMO_NOW).out
    assert "5 newer reads of the same file are kept" in out
    assert "此命令返回内容已过时" in out
    assert "errors always stay" not in out
    assert "errors always stay" in talk("view", "talk", "--now", DEMO_NOW, "--explain").out
    explained = json.loads(talk("view", "talk", "--now", DEMO_NOW, "--explain", "--json").out)
    assert explained["replaced"] == expected.stats.replaced
    assert [each["sent"] for each in explained["entries"]] == expected.messages
    for change in (["--policy", "raw"], ["--set", "terminal=false", "--set", "file_read=False"]):
        changed = json.loads(
            talk("view", "talk", "--now", DEMO_NOW, "--json", "--explain", *change).out
        )
        assert changed["replaced"] == {"repair": 1}
    kinds = '--set=tool_kinds={"terminal-execute": "other"}'
    assert json.loads(talk("view", "talk", "--now", DEMO_NOW, "--json", "--explain", kinds).out)[
        "replaced"
    ] == {
        "file_read": 2,
        "repair": 1,
    }
    assert len(json.loads(talk("view", "talk", "--at", 22, "--json").out)) == 22


def test_heads_are_moved_and_the_moves_listed(talk: Run) -> None:
    """Fork, rewind and undo say what they did, and how to take it back."""
    assert json.loads(talk("fork", "talk", "--at", 10, "--id", "side", "--json").out)["head"] == 10
    assert (
        talk("rewind", "side", "--to", 4).out
        == "side: head 10 → 4; `convostore undo side` takes it back\n"
    )
    assert talk("undo", "side").out == "side: head 4 → 10\n"
    moves = json.loads(talk("moves", "side", "--json").out)
    assert [(each["kind"], each["to_position"]) for each in moves] == [
        ("fork", 10),
        ("rewind", 4),
        ("undo", 10),
    ]
    assert len(talk("moves", "side").out.splitlines()) == 5
    assert talk("moves", "talk").out == "no moves\n"


def test_branches_are_listed_and_switched_to(talk: Run) -> None:
    """By number, whole or back to a position; what stands at a position on each is shown."""
    talk("fork", "talk", "--at", 4, "--id", "side")
    assert talk("branches", "side", "--at", 5).out == "no branch has a message at position 5\n"
    talk("rewind", "side", "--to", 3)
    talk("append", "side", "another\x1b[1m question")
    before, now = json.loads(talk("branches", "side", "--json").out)
    assert (before["head"], before["current"], now["parent"], now["forked_at"]) == (4, False, 1, 3)
    told = talk("branches", "side").out.splitlines()
    assert told[0].split() == ["branch", "from", "at", "head", "left"]
    assert told[3].split()[:5] == ["*", "3", "1", "3", "4"]
    assert "another\\x1b[1m question" in talk("branches", "side", "--at", 4).out
    assert [
        each["current"] for each in json.loads(talk("branches", "side", "--at", 4, "--json").out)
    ]
    assert talk("switch", "side", 2).out == "side: branch 3 → 2, head 4 → 4\n"
    assert json.loads(talk("switch", "side", 3, "--to", 2, "--json").out)["head"] == 2
    assert talk("undo", "side").out == "side: head 2 → 4\n"
    made = json.loads(talk("fork", "side", "--branch", 3, "--id", "third", "--json").out)
    assert (made["head"], made["forked_from"]) == (4, "side")


def test_delete_asks(talk: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --yes nothing goes unless somebody on a terminal says yes."""
    failed(talk("delete", "talk"), "--yes")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, status in (("n", 2), ("y", 0)):
        monkeypatch.setattr("typer.confirm", lambda *_, answer=answer, **__: answer == "y")
        assert talk("delete", "talk").status == status
    with Store("convostore.db") as store, pytest.raises(SessionNotFound):
        store.session("talk")


def test_delete_with_yes_erases(talk: Run) -> None:
    """The session is gone for good, and the answer counts what went and what other lines keep."""
    talk("fork", "talk", "--at", 6, "--id", "side")
    assert (
        talk("delete", "talk", "--yes").out
        == "talk: 50 messages erased; 6 more stay, other sessions' lines run through them\n"
    )
    assert len(json.loads(talk("show", "side", "--json").out)) == 6


def test_stats_add_up(talk: Run) -> None:
    """Bars by role, rule, tool and file; --json has the numbers, and they agree with the view."""
    out = talk("stats", "talk", "--now", DEMO_NOW).out
    assert out.startswith("talk: 56 messages, 26 tool calls\n")
    for part in (
        "visible tokens by role, before the rules",
        "saved by rule",
        "by tool",
        "by file",
        "src/parcel/rates.py",
        "█",
    ):
        assert part in out
    told = json.loads(talk("stats", "talk", "--now", DEMO_NOW, "--json").out)
    tools = {each["name"]: each for each in told["tools"]}
    assert (tools["terminal-execute"]["results"], tools["terminal-execute"]["failed"]) == (9, 1)
    with Store("convostore.db") as store:
        entries = store.view("talk", now=DEMO_NOW).entries
    results = sum(
        each.tokens + each.tokens_saved
        for each in entries
        if each.message["role"] == "tool" and each.seq
    )
    assert sum(each["tokens"] for each in told["tools"]) == results
    files = {each["path"]: each for each in told["files"]}
    assert (files["src/parcel/rates.py"]["reads"], files["src/parcel/rates.py"]["edits"]) == (7, 3)
    assert len(json.loads(talk("stats", "talk", "--files", 1, "--json").out)["files"]) == 1


def test_stats_of_the_whole_store_count_shared_messages_once(talk: Run) -> None:
    """A fork adds a session and no messages."""
    talk("fork", "talk", "--id", "side")
    told = json.loads(talk("stats", "--json").out)
    assert (told["sessions"], told["messages"], told["tool_calls"]) == (2, 56, 26)
    assert talk("stats").out.startswith("2 sessions, 56 messages, 26 tool calls\n")


def test_stats_use_stored_counts(talk: Run) -> None:
    """Once a session's tokens are counted, the counts take the place of the estimates."""
    with Store("convostore.db") as store:
        encoding = store.count_tokens("talk").encoding
    if encoding == "estimate":
        pytest.skip("no tokenizer vocabulary is installed: install convostore[offline]")
    told = json.loads(talk("stats", "talk", "--policy", "raw", "--json").out)
    assert told["view"]["tokens"] > 0
    ran = json.loads(talk("tokens", "talk", "--json").out)
    assert (ran["encoding"], ran["messages"], ran["counted"]) == (encoding, 56, 0)


def test_tokens_are_counted_without_network(talk: Run) -> None:
    """A formula is always at hand; the answer says what counted."""
    ran = json.loads(talk("tokens", "talk", "--encoding", "quarter_of_length", "--json").out)
    assert (ran["encoding"], ran["counted"]) == ("quarter_of_length", 56)
    assert (
        "56 messages (quarter_of_length)"
        in talk("tokens", "talk", "--encoding", "quarter_of_length").out
    )


def test_sql_answers_as_table_and_json(talk: Run) -> None:
    """One SELECT, its rows as a table or as objects; a cut answer says so."""
    ran = talk(
        "sql",
        "SELECT role, COUNT(*) AS n, NULL AS x FROM session_messages GROUP BY role ORDER BY role",
        "--json",
    )
    assert json.loads(ran.out)[0] == {"role": "assistant", "n": 25, "x": None}
    ran = talk("sql", "SELECT seq, role FROM session_messages ORDER BY seq", "-n", 2)
    assert [line.split() for line in ran.out.splitlines()[2:4]] == [["1", "system"], ["2", "user"]]
    assert "only the first 2 rows" in ran.err
    assert json.loads(talk("sql", "SELECT 1 AS a, 2 AS a", "--json").out) == [{"a": 1, "a_2": 2}]


def test_a_row_that_is_too_wide_is_printed_column_by_column(
    talk: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value whole, beside its name; nothing is left out."""
    (row,) = json.loads(talk("sql", "SELECT * FROM messages WHERE seq = 3", "--json").out)
    monkeypatch.setenv("COLUMNS", "80")
    first, *lines = talk("sql", "SELECT * FROM messages WHERE seq = 3").out.splitlines()
    assert first.strip() == "row 1"
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line[2] != " "] == [*row]
    assert ["tree_id", str(row["tree_id"])] in [line.split() for line in lines]


def test_a_number_is_printed_whole_however_narrow_the_terminal_is(
    talk: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of it would be another number."""
    monkeypatch.setenv("COLUMNS", "20")
    out = talk("view", "talk", "--now", DEMO_NOW, "--policy", "raw").out
    shown = json.loads(
        talk("view", "talk", "--now", DEMO_NOW, "--policy", "raw", "--explain", "--json").out
    )
    tokens = max(each["tokens"] for each in shown["entries"])
    assert tokens > 999
    assert f"{tokens:,}" in out


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_names_of_columns_reach_no_terminal_as_they_are(talk: Run, form: tuple[str, ...]) -> None:
    """A query may be a model's: no escape sequence in it, no markup."""
    ran = talk("sql", "SELECT 1 AS '[red]a\x1b]0;title\x07\x9b2J'", *form)
    assert ran.status == 0
    assert "[red]a" in ran.out
    assert not {"\x1b", "\x07", "\x9b"} & {*ran.out}


def test_export_comes_back_equal(talk: Run) -> None:
    """Its owner alone can read an export; it imports back equal and replaces nothing unasked."""
    assert talk("export", "talk", "-o", "out.jsonl").out == "56 messages written to out.jsonl\n"
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600
    before, *rows = map(json.loads, Path("out.jsonl").read_text("utf-8").splitlines())
    assert rows == build_conversation()
    assert before == {"project_root": DEMO_ROOT}
    assert talk("export", "talk").out == Path("out.jsonl").read_text("utf-8")
    failed(talk("export", "talk", "-o", "out.jsonl"), "exists already", "--force")
    assert talk("export", "talk", "--at", 3, "-o", "out.jsonl", "--force").status == 0
    assert len(Path("out.jsonl").read_text("utf-8").splitlines()) == 1 + 3
    assert list(Path().glob(".out.jsonl*")) == []
    assert talk("import", "out.jsonl", "--id", "talk").status == 0
    view = [
        json.loads(line)
        for line in talk("export", "talk", "--view", "--now", DEMO_NOW).out.splitlines()
    ]
    assert view == json.loads(talk("view", "talk", "--now", DEMO_NOW, "--json").out)


@pytest.mark.parametrize("root", [None, "/p"])
def test_an_export_says_whose_session_it_is(run: Run, root: str | None) -> None:
    """Its import is that owner's; what is stored already stays whose it is."""
    hello = {"role": "user", "content": "hello"}
    with Store("convostore.db") as store:
        store.create_session("hers", owner="ann", project_root=root)
        store.append("hers", hello)
    assert run("export", "hers", "-o", "hers.jsonl").status == 0
    before, said = map(json.loads, Path("hers.jsonl").read_text("utf-8").splitlines())
    assert before == {"owner": "ann"} | ({"project_root": root} if root else {})
    assert said == hello
    assert run("import", "hers.jsonl", "--id", "copy").status == 0
    Path("his.jsonl").write_text('{"owner": "bob"}\n{"role": "user", "content": "hello"}\n')
    assert run("import", "his.jsonl", "--id", "copy").status == 0
    assert run("import", "his.jsonl", "--id", "other").status == 0
    with Store("convostore.db") as store:
        owners = {each.id: (each.owner, each.project_root) for each in store.sessions()}
        assert [each.message for each in store.messages("copy")] == [hello]
    assert owners == {"hers": ("ann", root), "copy": ("ann", root), "other": ("bob", None)}


def test_verify_and_migrate(talk: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound store has status 0, findings 1; migrating says from where to where."""
    assert talk("verify").out == "nothing is wrong\n"
    assert json.loads(talk("verify", "--json").out) == []
    monkeypatch.setattr(inspection, "check", lambda *_: [Finding("digest", "talk 3", "changed")])
    assert talk("verify").status == 1
    assert json.loads(talk("verify", "--json").out)[0]["problem"] == "changed"
    assert "already: the newest" in talk("migrate").out
    assert "nothing is copied" in talk("migrate", "--copy", "copy.db").err
    Path("empty.db").touch()
    assert json.loads(talk("migrate", "--db", "empty.db", "--json").out)["from"] is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "command",
    [["show"], ["view"], ["view", "--explain"], ["stats"], ["export"], ["show", "--json"]],
)
def test_no_control_character_of_a_message_is_printed(run: Run, command: list[str]) -> None:
    """Escape sequences and markup in messages, names, ids and titles are shown, never obeyed."""
    call = {"id": "c", "type": "function", "function": {"name": EVIL[:-1], "arguments": EVIL}}
    with Store("convostore.db") as store:
        store.create_session("s\x1b[2J", title=EVIL[:-1])
        store.append("s\x1b[2J", {"role": "user", "content": EVIL, "name": EVIL})
        store.append(
            "s\x1b[2J",
            {"role": "assistant", "content": [{"type": "x", EVIL: EVIL}], "tool_calls": [call]},
        )
        store.append(
            "s\x1b[2J", {"role": "tool", "tool_call_id": "c", "content": EVIL, "timestamp": 1}
        )
    name, *options = command
    for arguments in (
        [name, "s\x1b[2J", *options],
        ["sessions"],
        ["sql", "SELECT * FROM session_messages"],
    ):
        ran = run(*arguments)
        assert ran.status == 0
        assert not any(unsafe in ran.out for unsafe in ("\x1b", "\x9b", "\x07", "\u202e", "\ud83d"))
        assert "[bold]" in ran.out
    assert "\x1b" not in run("show", "no\x1b[2J").err


def test_the_store_is_named_anywhere_or_by_the_environment(
    talk: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--db may stand before or behind the command; after -- it is an argument.

    Else the environment names it.
    """
    Path("convostore.db").rename("other.db")
    for arguments in (
        ["--db", "other.db", "sessions"],
        ["sessions", "--db", "other.db"],
        ["sessions", "--db=other.db"],
    ):
        assert talk(*arguments).status == 0
    failed(talk("--db", "other.db", "show", "--", "--db"), "no session '--db'")
    monkeypatch.setenv("CONVOSTORE_DB", "other.db")
    assert talk("sessions").status == 0


def test_help_names_every_command_and_option(run: Run) -> None:
    """Help is status 0, lists all commands, and every option of each has a text."""
    ran = run()
    assert ran.status == 0
    assert run("--version").out.startswith("convostore ")
    for command in ("demo", "import", *(arguments[0] for arguments in READING)):
        assert f" {command} " in ran.out
        assert run(command, "--help").status == 0


def test_what_may_be_left_out_is_in_brackets_once(run: Run) -> None:
    """As other programs write it."""
    assert "[KEY=VALUE]..." in run("tag", "--help").out
    for command in (["tag"], ["sql"], ["tree"], ["stats"], ["policy", "show"]):
        assert "[[" not in run(*command, "--help").out


def test_each_command_has_one_line_in_the_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal of 80 columns, too; the rest is in the command's own help."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    _, *panels = run().out.split("╭─ ")[1:]
    lines = [line for panel in panels for line in panel.splitlines()[1:-1]]
    assert len(lines) > 30
    assert not [line for line in lines if line[2] == " "]


def test_interrupting_is_status_130(talk: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a command quietly."""

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "sessions", interrupted)
    assert talk("sessions") == (130, "", "")


# Below: the command as a process of its own, for what only that shows.


def process(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        **options.pop("env", {}),
    }
    command = [sys.executable, "-m", "store", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, **options
    )


@pytest.mark.slow
def test_a_failing_process_says_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    """No traceback, no file, exit status 2."""
    ran = process("sessions", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("convostore: there is no store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_terminal_without_unicode_is_no_reason_to_stop(talk: Run, tmp_path: Path) -> None:
    """Where the output's encoding lacks a character it is written as an escape, and JSON stays
    JSON.
    """
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert process("view", "talk", cwd=tmp_path, env=ascii_only).returncode == 0
    ran = process("view", "talk", "--json", "--now", str(DEMO_NOW), cwd=tmp_path, env=ascii_only)
    assert any("过时" in str(each["content"]) for each in json.loads(ran.stdout))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["sessions"], 0),
        (["append", "talk", "-"], 2),
        (["import", "-"], 2),
        (["delete", "talk"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_streams_may_be_closed(
    talk: Run, tmp_path: Path, arguments: list[str], status: int
) -> None:
    """As whoever starts services does: nothing is read, and nothing is printed."""
    command = [sys.executable, "-m", "store", *arguments]
    closed = ["sh", "-c", '"$@" <&- >&-', "sh", *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        closed, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False), ran.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_command_quietly(talk: Run, tmp_path: Path) -> None:
    """`convostore show … | head` prints no error."""
    command = [sys.executable, "-m", "store", "show", "talk"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(60) == 128 + signal.SIGPIPE


def test_a_session_is_found_by_what_is_known_of_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns ids are short and numbers whole; a hit comes with the commands that open it."""
    monkeypatch.setenv("COLUMNS", "80")
    with Store("convostore.db") as store:
        for name, said in (("a" * 9, "mend"), ("a" * 8 + "b" * 28, "the parser")):
            store.create_session(name, title="Parcel", project_root=str(Path.cwd() / "shop"))
            store.append(name, [{"role": "user", "content": each} for each in (said, "zones")])
            store.record_usage(name, model="m", input=1, output=1, cost=1234.5)
        store.set_origin(name, "claude_code", "here.jsonl")
    out = run("sessions", "--project", ".", "--since", "7d", "--title", "parc").out
    row = out.splitlines()[2].split()
    assert row == ["aaaaaaaab…", "Parcel", "shop", "claude_code", "now", "2", "$1,234.50"]
    assert max(map(len, out.splitlines())) <= 80
    assert run("sessions", "--until", "yesterday").out == "no such sessions\n"
    assert run("sessions", "--since", "monday").out == run("sessions").out
    assert json.loads(run("sessions", "--source", "claude_code", "--json").out)[0]["id"] == name
    found = run("search", "parser", "zones").out.splitlines()
    assert found[0] == "aaaaaaaab  Parcel"
    assert found[-2:] == ["  convostore show aaaaaaaab --from 2", f"  claude --resume {name}"]
    assert len(json.loads(run("search", "zones", "--messages", "--json").out)["hits"]) == 2
    assert run("search", "mend", "parser").out == ""
    assert len(json.loads(run("search", "mend", "parser", "--any", "--json").out)) == 2


@pytest.mark.sqlite_only
def test_a_folder_of_a_project_may_be_written_in_many_ways(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative, with ``~``, by a link to it, or as on Windows."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shop" / "till").mkdir(parents=True)
    (tmp_path / "link").symlink_to("shop")
    (tmp_path / "shop" / "self").symlink_to(".")
    roots = {"one": "shop/", "two": "~/link/till", "three": "D:\\shop", "four": "~/shop/self"}
    Store("convostore.db").close()
    for name, root in roots.items():
        assert run("create", "--id", name, "--project-root", root).status == 0
    run("append", "three", "x")
    run("project", "three", "D:\\shop")
    run("append", "one", "x")
    with Store("convostore.db") as store:
        stored = {each.id: each.project_root for each in store.sessions()}
    assert stored["one"] == f"{tmp_path}/shop"
    assert stored["two"] == f"{tmp_path}/link/till"
    for asked, found in (
        ("shop//", ["one", "four"]),
        ("~/link", ["one", "four", "two"]),
        ("~/shop/self", ["one", "four"]),
        ("./shop/till/../till", []),
        ("link/till/", ["two"]),
        (".", ["one", "four", "two"]),
        ("D:\\", ["three"]),
        ("D:\\shop", ["three"]),
    ):
        told = run("sessions", "--project", asked, "--json")
        assert [each["id"] for each in json.loads(told.out)] == found, asked
    told = run("sessions", "--project", "link", "--limit", 2, "--created", "--json")
    assert [each["id"] for each in json.loads(told.out)] == ["four", "two"]


def test_ids_that_begin_alike_are_short_by_their_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of subagents; what a list shows opens a session, and no line is too long."""
    monkeypatch.setenv("COLUMNS", "80")
    ids = [
        f"85ec650c-1911-4729-b965-12859c513c01{end}"
        for end in ("", "/agent-number-one-a97", "/agent-number-two-b97")
    ]
    with Store("convostore.db") as store:
        for name in ids:
            store.create_session(name, project_root="D:\\shop", title="Long title " * 9)
            store.record_usage(name, model="m", input=1, output=1, cost=1.5)
            store.set_origin(name, "claude_code", "here.jsonl")
    rows = run("sessions").out.splitlines()[2:]
    short = {row.split()[0] for row in rows}
    assert short == {"85ec650c…c01", "85ec650c…a97", "85ec650c…b97"}
    assert all(" shop " in row and " claude_code " in row and " $1.50" in row for row in rows)
    assert {json.loads(run("rename", each, "x", "--json").out)["id"] for each in short} == {*ids}
    assert "end with '97'" in run("show", "85ec…97").err
    run("append", ids[1], "quinoa " * 20)
    found = run("search", "quinoa", "--messages").out.splitlines()
    assert found[0].startswith("85ec650c…a97 1 user ")
    assert max(map(len, found)) <= 80
