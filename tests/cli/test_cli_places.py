"""Where the command keeps a store, how it fits a terminal, and what it says when it cannot go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from conftest import ROOT, Run

from store import Policy, Store
from store.cli import app
from store.cli.demo_session import DEMO_NOW, build_conversation
from store.cli.options import complete_session

IDS = [f"6f1c{number}a34-93d1-4b6e-a1f5-1d1f6a0b77c2" for number in range(3)]
"""Ids as programs give them."""


def filled(path: Path, ids: list[str]) -> None:
    """Make a store with sessions of a message each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store(path, durability="normal") as store:
        for session_id in ids:
            store.create_session(session_id, title=f"What was said in {session_id}")
            store.append(session_id, {"role": "user", "content": "hi"})


def sessions_of(run: Run, *arguments: str) -> list[str]:
    """Return the ids of the sessions that are listed."""
    return [each["id"] for each in json.loads(run(*arguments, "sessions", "--json").out)]


def own(folder: Path) -> Path:
    """Return where a user's own store is in tests."""
    return folder / "of-the-user" / "convostore" / "convostore.db"


# --- where the store is ---------------------------------------------------------------------------


def test_the_store_is_the_first_that_there_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What --db names, then what the environment names, then the one here, then the user's own."""
    filled(own(tmp_path), ["own"])
    assert sessions_of(run) == ["own"]
    filled(tmp_path / "convostore.db", ["here"])
    assert sessions_of(run) == ["here"]
    filled(tmp_path / "named.db", ["named"])
    monkeypatch.setenv("CONVOSTORE_DB", "named.db")
    assert sessions_of(run) == ["named"]
    filled(tmp_path / "asked.db", ["asked"])
    assert sessions_of(run, "--db", "asked.db") == ["asked"]


@pytest.mark.slow
def test_a_command_says_which_store_it_was(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, unless the line names it or a program reads the answer."""
    filled(own(tmp_path), ["s"])
    for command in (["sessions"], ["show", "s"], ["sql", "SELECT 1"], ["verify"], ["migrate"]):
        assert run(*command).err == f"store: {own(tmp_path)}\n"
        assert run("--db", own(tmp_path), *command).err == ""
        if command[0] != "show":
            assert run(*command, "--json").err == ""
    monkeypatch.setenv("CONVOSTORE_DB", str(own(tmp_path)))
    assert run("sessions").err == f"store: {own(tmp_path)}\n"


def test_an_error_says_which_store_it_was(run: Run, tmp_path: Path) -> None:
    """In its line, unless the command line names it: the session may be in another one."""
    filled(own(tmp_path), ["s"])
    assert run("show", "nobody").err.endswith(f"in this store (store: {own(tmp_path)})\n")
    assert run("--db", own(tmp_path), "show", "nobody").err.endswith("in this store\n")


def test_import_makes_the_users_own_store_where_there_is_none(run: Run, tmp_path: Path) -> None:
    """It says where; nobody else may look into its folder; all other commands find it."""
    Path("talk.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    assert run("import", "talk.jsonl").err == f"store: {own(tmp_path)}\n"
    assert own(tmp_path).stat().st_mode & 0o077 == 0
    assert own(tmp_path).parent.stat().st_mode & 0o077 == 0
    assert sessions_of(run) == ["talk"]
    assert not Path("convostore.db").exists()


def test_a_missing_store_is_said_with_both_places(run: Run, tmp_path: Path) -> None:
    """Where nothing was named, the error names the places that were looked at."""
    ran = run("sessions")
    assert (ran.status, ran.out) == (2, "")
    assert "'convostore.db' here" in ran.err
    assert str(own(tmp_path)) in ran.err


def test_a_password_is_not_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's URL may hold one."""
    from store.cli.options import StorePlace

    shown: list[str] = []
    monkeypatch.setattr("store.cli.render.print_remark", shown.append)
    StorePlace("postgresql://ada:secret@host/chat", named=False).tell()
    assert shown == ["store: postgresql://ada:***@host/chat"]


# --- how it looks ---------------------------------------------------------------------------------


def test_a_table_is_as_wide_as_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe as wide as $COLUMNS says: ids are cut to what is theirs alone, and still found."""
    filled(tmp_path / "convostore.db", IDS)
    assert IDS[2] in run("sessions").out
    monkeypatch.setenv("COLUMNS", "80")
    out = run("sessions").out
    assert max(map(len, out.splitlines())) <= 80
    assert IDS[2] not in out
    assert all(f"{each[:8]}… " in out for each in IDS)
    assert json.loads(run("stats", f"{IDS[1][:8]}…", "--json").out)["session"] == IDS[1]


def test_long_ids_that_cannot_be_cut_are_folded(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beginnings and ends alike leave no short id; the other columns stay on the line."""
    filled(tmp_path / "convostore.db", [f"{'a' * 40}{n}{'x' * 40}" for n in (1, 2)])
    monkeypatch.setenv("COLUMNS", "80")
    head, rule, *rows = run("sessions").out.splitlines()
    assert max(map(len, (head, rule, *rows))) <= 80
    assert {"session", "title", "age", "msgs"} <= {*head.split()}
    assert sum(" now " in row for row in rows) == 2


def test_a_cut_id_is_as_long_as_it_must_be(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No two of the listed ids are the same, and each is taken for the whole one."""
    ids = [f"alike-alike-{number}-{'x' * 30}" for number in (1, 2)]
    filled(tmp_path / "convostore.db", ids)
    monkeypatch.setenv("COLUMNS", "80")
    _, _, *rows = run("sessions").out.splitlines()
    cut = [row.split()[0] for row in rows]
    assert len({*cut}) == len(ids)
    assert all("…" in each for each in cut)
    found = {json.loads(run("rename", each, "named", "--json").out)["id"] for each in cut}
    assert found == {*ids}


def test_columns_that_can_be_spared_go_before_texts_are_folded_small(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a compaction the number, what came of it and its title stay; its heading stays whole."""
    with Store("convostore.db") as store:
        store.create_session("talk")
        store.append("talk", build_conversation())
        store.compact("talk", Policy(keep_turns=2), now=DEMO_NOW)
    monkeypatch.setenv("COLUMNS", "80")
    heading, *rows = run("compactions", "talk").out.splitlines()
    assert max(len(line) for line in (heading, *rows)) <= 80
    assert {"#", "outcome", "title"} <= {*heading.split()}
    assert "policy" not in heading
    explained = run("view", "talk", "--explain").out.splitlines()
    assert max(map(len, explained[:5])) <= 80
    assert {"#", "rule", "reason"} <= {*explained[0].split()}
    assert "content" not in explained[0]


def test_lists_have_a_line_for_each_row(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Titles, names of files and contents give way at one end; columns without a value go first."""
    monkeypatch.setenv("COLUMNS", "80")
    filled(tmp_path / "convostore.db", IDS)
    assert [line[:8] for line in run("sessions").out.splitlines()[2:]] == [
        each[:8] for each in reversed(IDS)
    ]
    run("fork", IDS[0], "--id", "side", "--title", "Aside")
    fork = run("sessions").out.splitlines()[2].split()
    assert fork == ["side", "Aside", "now", "1"]
    monkeypatch.setenv("COLUMNS", "60")
    assert len(run("sessions").out.splitlines()) == 6
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / f"{IDS[0]}{IDS[1]}.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    rows = run("import", f"{IDS[0]}{IDS[1]}.jsonl").out.splitlines()
    assert len(rows) == 3
    assert rows[2].startswith("…")
    assert f"{IDS[1][-8:]}.jsonl  " in rows[2]


def test_a_bar_has_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long path its end is seen, which tells it from others."""
    path = "src/" + "deep/" * 20 + "leaf.py"
    function = {"name": "Read", "arguments": json.dumps({"file_path": path})}
    with Store("convostore.db") as store:
        call = {"id": "c", "type": "function", "function": function}
        store.append(
            "talk",
            [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "1"},
            ],
            create=True,
        )
    assert path in run("stats", "talk").out
    monkeypatch.setenv("COLUMNS", "80")
    *_, last = run("stats", "talk").out.splitlines()
    assert last.startswith("…")
    assert "deep/leaf.py " in last
    assert last.rstrip().endswith("1 read")


def test_columns_of_numbers_leave_a_policy_its_name(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is never folded to a letter a line."""
    with Store("convostore.db") as store:
        store.create_session("talk")
        store.append("talk", build_conversation())
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("simulate", "talk", "--policy", "token_ratio").out.splitlines()
    assert {"policy", "sent", "bill"} <= {*lines[0].split()}
    assert lines[2].startswith("token_ratio ")
    assert max(map(len, lines[:3])) <= 60


def test_the_beginning_of_several_names_them_all_or_says_that_there_are_more(
    run: Run, tmp_path: Path
) -> None:
    """Dots only stand for what is left out."""
    filled(tmp_path / "convostore.db", ["demo", "demo-fork"])
    assert "demo-fork, demo; write more" in run("show", "de").err
    filled(tmp_path / "convostore.db", [f"demo-{number}" for number in range(4)])
    assert ", …; write more" in run("show", "de").err


def test_no_limit_lists_all_sessions(run: Run, tmp_path: Path) -> None:
    """--limit 0 is no limit, as --lines 0 is none."""
    filled(tmp_path / "convostore.db", ["a", "b", "c"])
    assert sessions_of(run) == ["c", "b", "a"]
    out = run("sessions", "--limit", 0).out
    assert all(f"\n{each} " in out for each in "abc")
    assert "only the last" not in out
    assert len(json.loads(run("sessions", "--limit", 0, "--json").out)) == 3


# --- what it says ---------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulat", "s"], "Did you mean 'simulate'"),
        (["view", "s", "--explan"], "--explain"),
        (["view", "s", "--set", "keep_turn=3"], "did you mean 'keep_turns'"),
        (["view", "s", "--set", "keep_turns=x"], "keep_turns is a whole number, not 'x'"),
        (["view", "s", "--set", "keep_turns=-1"], "keep_turns is at least 1, not -1"),
        (
            ["view", "s", "--set", "clearing=never"],
            "clearing is 'always', 'batched', 'cold' or 'bounded', not 'never'",
        ),
        (["view", "s", "--set", "terminal=perhaps"], "terminal is true or false, not 'perhaps'"),
        (["export", "s", "-o", "no/such/folder/x"], "there is no folder 'no/such/folder'"),
        (["--db", "postgresql+nodriver://h/x", "sessions"], "must begin with one of"),
        (["sessions", "--limit", "x"], "--limit is a whole number, not 'x'"),
        (["sessions", "-n", "-1"], "--limit is at least 0, not '-1'"),
        (["view"], "`convostore view --help` tells more"),
        (["sessions", "--owner"], "`convostore sessions --help` tells more"),
        (["policy", "show", "agent", "--set"], "`convostore policy show --help` tells more"),
        (
            ["usage", "--by", "nope"],
            "--by takes model, session, owner, project, source, day, week, month, not 'nope'",
        ),
        (["create", "--id", "s"], "exists already; append to it, or choose another id"),
        (["simulate", "s", "--svg", "no/folder/x.svg"], "there is no folder 'no/folder'"),
        (["backup", "convostore.db"], "--force replaces it"),
        (["restore", "convostore.db"], "--force replaces it"),
        (["restore", "no.db"], "there is no file 'no.db'"),
        (["purge", "--longest", "-1"], "--longest is at least 0"),
        (["search", "x", "--limit", "0"], "--limit is at least 1, not '0'"),
        (["policy", "check", "."], "from .: Is a directory"),
        (["usage", "s", "--prices", "no.toml"], "from no.toml: No such file or directory"),
        (["usage", "s", "--cost", "1"], "with both --input and --output"),
        (["usage", "s", "--model", "m", "--output", "3"], "with both --input and --output"),
        (["policy", "check", "no.toml"], "there is no file 'no.toml'"),
        (["view", "s", "--policy", "no.toml"], "there is no file 'no.toml'"),
        (["demo", "--keep", "no/folder/x"], "no/folder/x does not exist; create it first"),
        (["tokens", "s", "--fetch", "--encoding", "estimate"], "it is a formula"),
        (["append", "s", ""], "there is nothing to append"),
        (["append", "s", "hi", "--role", "asistant"], "--role must be one of"),
        (["import", "-", "other.jsonl"], "- reads standard input; do not name"),
        (["import", "."], "there is nothing to import in '.'"),
        (["hide", "s", "3-1", "4"], "FIRST is a whole number, not '3-1'"),
        (["switch", "s", "main"], "BRANCH is a whole number, not 'main'"),
        (
            ["view", "s", "--format", "open"],
            "'open' is not one of 'openai', 'responses', 'anthropic', 'gemini' (",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_are_our_own_words(
    run: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    """What was wrong, what would be right, and no word of a library."""
    filled(tmp_path / "convostore.db", ["s"])
    ran = run(*arguments)
    assert ran.status == 2
    assert said in ran.err
    assert not any(word in ran.err for word in ("Value error", "Input should", "Extra", "Errno"))
    assert ran.err.count("\n") == 1


def test_a_missing_driver_is_said_with_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server needs an extra of the project."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = run("--db", "postgresql://ada@localhost:1/chat", "sessions")
    assert ran.status == 2
    assert "install convostore[postgres]" in ran.err


@pytest.mark.parametrize("content", ["[]", '{"role": 1}\n', ""])
def test_a_file_without_a_message_is_refused_and_makes_no_store(
    run: Run, tmp_path: Path, content: str
) -> None:
    """Also where its kind is named; into a store that is there it brings no session."""
    Path("empty.json").write_text(content)
    ran = run("import", "--kind", "openai", "empty.json")
    assert (ran.status, "has no message" in ran.err) == (2, True), ran
    assert [path.name for path in tmp_path.iterdir()] == ["empty.json"]
    filled(tmp_path / "convostore.db", ["s"])
    assert run("import", "--kind", "openai", "empty.json").status == 2
    assert sessions_of(run) == ["s"]


def test_import_names_what_it_skips(run: Run) -> None:
    """The first few, and with --notes all of them."""
    Path("in").mkdir()
    Path("in/talk.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    for number in range(7):
        Path(f"in/notes-{number}.md").write_text("# notes")
    out = run("import", "in").out
    assert "skipped 7 files" in out
    assert "notes-1.md, notes-2.md, …; --notes names all" in out
    assert "in/notes-6.md" in run("import", "in", "--notes").out.splitlines()


def test_what_can_count_is_named_in_the_help_and_in_the_error(run: Run, tmp_path: Path) -> None:
    """The same names in both."""
    filled(tmp_path / "convostore.db", ["s"])
    err = run("--db", "convostore.db", "tokens", "s", "--encoding", "x").err
    names = err.partition("there are ")[2].split(", ")
    told = "".join(run("tokens", "--help").out.split())
    assert len(names) > 5
    for name in names:
        assert name.strip() in told
        assert run("tokens", "s", "--encoding", name.strip()).status == 0


def test_the_demo_ends_with_what_to_do_next(run: Run) -> None:
    """How to keep it, how to bring in one's own."""
    *_, next_steps = run("demo").out.partition("What next")
    assert "convostore import" in next_steps
    assert "--keep" in next_steps


# --- a shell completes ----------------------------------------------------------------------------


@pytest.mark.sqlite_only
def test_completing_brings_no_store_up_to_date(tmp_path: Path) -> None:
    """A key is pressed without a thought; a command says what it does."""
    older = tmp_path / "older.db"
    older.write_bytes((ROOT / "tests/databases/0001.db").read_bytes())
    before = older.read_bytes()
    ctx = typer.Context(typer.main.get_command(app))
    ctx.params["db"] = str(older)
    assert complete_session(ctx, "")
    assert complete_session(ctx, "no session begins so") == []
    assert older.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("convostore vie", {"view"}),
        ("convostore show tal", {"talk-1", "talk-2"}),
        pytest.param("convostore --db other.db show o", {"other"}, marks=pytest.mark.slow),
        pytest.param(
            "convostore view talk-1 --policy tok", {"token_ratio"}, marks=pytest.mark.slow
        ),
        pytest.param(
            "convostore view talk-1 --set keep_t", {"keep_turns="}, marks=pytest.mark.slow
        ),
        pytest.param(
            "convostore tokens talk-1 --encoding o200k_h", {"o200k_harmony"}, marks=pytest.mark.slow
        ),
    ],
)
def test_a_shell_completes_commands_sessions_and_names(
    tmp_path: Path, typed: str, offered: set[str]
) -> None:
    """What the line may go on with, out of the store that it names."""
    filled(tmp_path / "convostore.db", ["talk-1", "talk-2", "else"])
    filled(tmp_path / "other.db", ["other"])
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "_CONVOSTORE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    command = [sys.executable, "-m", "store"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert {*ran.stdout.split()} == offered
