from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import Run
from test_cli import failed

from store.cli import program_folders

HELLO = {"role": "user", "content": "hello"}


def written(path: Path, *rows: object) -> Path:
    """Write rows to a file, whose folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def claude(session: str, *texts: str) -> list[dict[str, Any]]:
    """Return what Claude Code writes of prompts, and a line that no model was sent."""
    said = [
        {
            "type": "user",
            "sessionId": session,
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "timestamp": f"2026-03-01T10:00:0{number}Z",
            "cwd": "/app",
            "message": {"role": "user", "content": text},
        }
        for number, text in enumerate(texts)
    ]
    return [*said, {"type": "mode", "sessionId": session, "mode": "normal"}]


def codex(session: str, text: str) -> list[dict[str, Any]]:
    """Return what Codex writes of a prompt."""
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }
    return [
        {"type": "session_meta", "payload": {"id": session, "cwd": "/app"}},
        {"type": "response_item", "payload": message},
    ]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home in which two programs keep sessions, and other things beside them."""
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    written(folder / ".claude/projects/app/one.jsonl", *claude("one", "a", "b"))
    written(folder / ".claude/projects/app/one/subagents/agent-x.jsonl", *claude("two", "c"))
    written(folder / ".claude/file-history/chat.jsonl", HELLO)
    written(folder / ".claude/projects/app/notes.jsonl")
    written(folder / ".codex/sessions/2026/03/01/rollout-three.jsonl", *codex("three", "d"))
    written(folder / ".codex/history.jsonl", HELLO)
    return folder


def test_what_programs_keep_is_found(run: Run, home: Path) -> None:
    """Kind, folder, files and sizes, by the same names; nothing is imported, no store is made."""
    files = [*(home / ".claude/projects").rglob("*.jsonl")]
    ran = run("import", "--found", "--json")
    assert ran.status == 0
    claude, codex = json.loads(ran.out)
    assert claude["kind"] == "claude_code"
    assert claude["folder"] == str(home / ".claude")
    assert claude["files"] == len(files) == 3
    assert claude["size"] == sum(path.stat().st_size for path in files)
    assert (codex["kind"], codex["files"]) == ("codex", 1)
    table = run("import", "--found")
    assert f"import {home}/.claude {home}/.codex" in table.out
    assert not Path("convostore.db").exists()
    failed(run("import", "--found", home), "--found")
    failed(run("import"), "--found", "--all")
    failed(run("import", "--all", home), "--all")


def test_nothing_may_be_found(run: Run, home: Path) -> None:
    """In a home without folders of programs there is nothing, and that is no error."""
    (home / ".codex").rename(home / "elsewhere")
    (home / ".claude").rename(home / "copy")
    assert json.loads(run("import", "--found", "--json").out) == []
    assert "no program" in run("import", "--found").out


def results(run: Run, *arguments: object) -> dict[str, Any]:
    """Return what became of each file that was imported, by its name."""
    ran = run("import", *arguments, "--json")
    assert ran.status == 0, ran
    return {Path(each["file"]).name: each for each in json.loads(ran.out)}


def test_folders_of_programs_are_imported_by_the_names_of_their_files(run: Run, home: Path) -> None:
    """What only lies beside the sessions is counted and named, and never opened."""
    told = results(run, home / ".claude", home / ".codex")
    kinds = {name: each.get("kind") for name, each in told.items()}
    assert kinds == {
        "one.jsonl": "claude_code",
        "agent-x.jsonl": "claude_code",
        "rollout-three.jsonl": "codex",
        "notes.jsonl": None,
        "chat.jsonl": None,
        "history.jsonl": None,
    }
    assert "not named as they are" in told["history.jsonl"]["error"]
    assert told["one.jsonl"]["lines"] == 3
    assert told["one.jsonl"]["left_out"] == {"mode line": 1}


def test_what_grew_is_continued_and_what_is_known_stays(run: Run, home: Path) -> None:
    """A second import has nothing new, a third one only what a file has gained."""
    paths = (home / ".claude", home / ".codex")
    results(run, *paths)
    written(home / ".claude/projects/app/one.jsonl", *claude("one", "a", "b", "c"))
    told = results(run, *paths)
    new = {name: [s["appended"] for s in each.get("sessions", [])] for name, each in told.items()}
    assert new["one.jsonl"] == [1]
    assert new["agent-x.jsonl"] == new["rollout-three.jsonl"] == [0]


def test_a_home_is_searched_for_the_folders_of_programs(run: Run, home: Path) -> None:
    """Though they are hidden; other hidden folders are not entered, and a copy is as good."""
    written(home / ".cache/chat.jsonl", HELLO)
    written(home / "plain.jsonl", HELLO)
    copy = home.rename(home.parent / "copy")
    told = results(run, copy)
    read = {name for name, each in told.items() if "kind" in each}
    assert read == {"one.jsonl", "agent-x.jsonl", "rollout-three.jsonl", "plain.jsonl"}
    assert str(copy / ".cache/chat.jsonl") not in {each["file"] for each in told.values()}


def test_a_home_says_which_folders_of_programs_it_passes_over(run: Run, home: Path) -> None:
    """Those that --found lists and that no walk of the home comes to; no other folder says it."""
    task = home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1"
    written(task / "api_conversation_history.json", HELLO)
    told = run("import", home).out
    (line,) = [each for each in told.splitlines() if "passed over" in each]
    assert line.endswith(f"convostore import {task.parent.parent}")
    assert "passed over" not in run("import", home / ".claude").out
    assert "passed over" not in run("import", home / ".claude", task.parent.parent).out


def test_a_bad_file_stops_no_other_and_all_is_accounted_for(run: Run, home: Path) -> None:
    """What is a transcript of a program that is not read is refused by its name: status 2."""
    bad = {"agent": {"memory": {"content": []}}}
    written(home / ".codex/sessions/rollout-bad.jsonl", bad)
    ran = run("import", home / ".codex", home / ".claude")
    assert ran.status == 2
    assert "QwenPaw" in ran.err
    *_, files, lines = ran.out.splitlines()
    assert files == "7 files: 3 read, 1 refused, 3 skipped"
    assert lines == "7 lines read: 4 messages, 4 of them new; left out: 2 mode lines"
    again = run("import", home / ".codex", home / ".claude")
    assert "4 messages, 0 of them new" in again.out
    named = run("import", home / ".claude", "--notes")
    assert named.status == 0
    assert str(home / ".claude/file-history/chat.jsonl") in named.out


def test_broken_lines_are_accounted_for(run: Run, home: Path) -> None:
    """A line that was cut is counted, and the rest of all files is there."""
    path = home / ".codex/sessions/rollout-four.jsonl"
    written(path, *codex("four", "e"))
    path.write_text(path.read_text("utf-8") + '{"type": "resp\n', "utf-8")
    ran = run("import", home / ".codex")
    assert ran.status == 1
    assert ran.out.splitlines()[-1] == (
        "5 lines read: 2 messages, 2 of them new; left out: 1 broken or refused part"
    )


def test_a_program_may_be_told_to_keep_sessions_elsewhere(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable that its program obeys says where."""
    elsewhere = (home / ".codex").rename(tmp_path / "elsewhere")
    assert "kind" in results(run, elsewhere)["history.jsonl"]
    monkeypatch.setenv("CODEX_HOME", str(elsewhere))
    assert "kind" not in results(run, elsewhere)["history.jsonl"]


def test_everything_found_is_imported_by_an_option(run: Run, home: Path) -> None:
    """What came is told in five lines, and no file is listed unless that is asked for."""
    usage = {"input_tokens": 900, "output_tokens": 20, "cache_read_input_tokens": 100}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    message = {"role": "assistant", "id": "m", "model": "claude-sonnet-4-5", "usage": usage}
    *asked, _ = claude("four", "list it", "")
    asked[1] |= {"type": "assistant", "message": message | {"content": [call]}}
    written(home / ".claude/projects/app/four.jsonl", *asked)
    ran = run("import", "--all")
    assert ran.status == 0
    told = ran.out.splitlines()
    assert told[:4] == [
        "sessions  4: claude_code 3, codex 1",
        "tokens    1,000 tokens in (10% cached), 20 out",
        "cost      $0.0030",
        "tools     Bash 1",
    ]
    assert told[4].startswith(
        ("newest    d (codex, 1 message, ", "newest    list it (claude_code, 2")
    )
    assert "one.jsonl" not in ran.out
    again = run("import", "--all", "--verbose").out
    assert "one.jsonl" in again
    assert "newest" not in again


def test_a_terminal_is_asked_what_to_take(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All, none or each of them, by a letter; nothing is read before."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = iter(["n", "e", "n", "y", "a"])

    def answer(_: str, *, value_proc: Any = str, **__: Any) -> Any:
        return value_proc(next(answers))

    monkeypatch.setattr("typer.prompt", answer)
    monkeypatch.setattr("typer.confirm", lambda _, **__: next(answers) == "y")
    none = run("import")
    assert (none.status, none.out) == (0, "nothing was imported\n")
    assert all(name in none.err for name in (".claude", ".codex", "kB"))
    assert not Path("convostore.db").exists()
    assert "1 new" not in run("import").out
    assert [each["source"] for each in json.loads(run("sessions", "--json").out)] == ["codex"]
    assert "sessions  2: claude_code 2" in run("import").out


@pytest.mark.parametrize("text", ["", " ", "x", "allx"])
def test_no_other_answer_imports_anything(text: str) -> None:
    """It is asked again, a blank answer too."""
    with pytest.raises(typer.BadParameter, match="all, each, none"):
        program_folders._parse_folder_answer(text)


def test_notes_of_a_kind_are_told_once(run: Run, tmp_path: Path) -> None:
    """With the place of the first; each file's are told with --verbose."""
    for number in range(3):
        path = written(tmp_path / f"in/chat-{number}.jsonl", HELLO)
        path.write_text(f"{path.read_text('utf-8')}{{'a': {number}\n", "utf-8")
    told = run("import", tmp_path / "in")
    assert told.status == 1
    assert told.out.count("line 2 is left out") == 1
    assert "2 more notes like this" in told.out
    assert run("import", tmp_path / "in", "--verbose").out.count("line 2 is left out") == 3
