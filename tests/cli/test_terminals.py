"""What commands write to a terminal: nothing that others wrote acts on it, by whichever way."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Run

from store import Policy, Store, Summary
from store.cli.commands import COMMANDS, import_command
from store.cli.terminal import _UNSAFE_CHARACTERS as UNSAFE
from store.exporting import Shape
from store.records import Draft

pytestmark = pytest.mark.sqlite_only

ACTS = "\x1b]0;PWNED\x07\x1b[2J\x1b[38;5;213m\x9b6n\u202eexe\u200f\r\x85"
"""A title for the window, a cleared screen, a colour, a question to the terminal, turned text."""
ID = f"s{ACTS}"
NAME = f"n{ACTS}".replace("\r", "")
NOW = 1_800_000_000_000
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AK]|\r\n|\r(?=\x1b\[)")
"""Colours, and what moves a bar that grows."""

COMMAND_LINES: list[list[str]] = [
    ["--help"],
    ["--version"],
    [NAME],
    ["sessions"],
    ["sessions", "--json"],
    ["sessions", "--owner", f"o{ACTS}"],
    ["show", ID],
    ["show", ID, "--json"],
    ["show", f"no{ACTS}"],
    ["show", "--help"],
    ["view", ID, "--explain"],
    ["view", ID, "--policy", "agent"],
    ["view", ID, "--policy", NAME],
    ["view", ID, "--set", f"{NAME}=1"],
    *(["view", ID, "--format", name] for name in ("responses", "anthropic", "gemini")),
    ["replaced", ID],
    ["context", ID, "--user", ACTS, "--root", NAME, "--system", f"{NAME}.md"],
    ["context", ID, "--format", "react", "--user", f"@{NAME}"],
    ["requests", ID],
    ["request", ID, "1"],
    ["request", ID, NAME],
    ["size"],
    ["size", "--by", "owner"],
    ["prune", "--older-than", "9w", "--keep", f"{NAME}={ACTS}"],
    ["prune", "--older-than", NAME],
    ["delete", "--owner", f"{NAME}{ACTS}", "--yes"],
    ["health"],
    ["mcp", "--print-config", "codex"],
    ["mcp", "--print-config", NAME],
    ["browse", "--help"],
    ["browse", "--port", NAME],
    ["datasette"],
    ["copy", "convostore.db", f"{NAME}-copy.db"],
    ["copy", "convostore.db", f"{NAME}.txt"],
    ["copy", f"{NAME}.none", "x.db", "--check"],
    ["tree", ID],
    ["stats", ID, "--files"],
    ["tokens", ID],
    ["usage", ID],
    ["usage", "--by", "model"],
    ["prices", "--list"],
    ["prices", f"{NAME}.toml"],
    ["annotations", ID],
    ["annotate", ID, "1", f"k{ACTS}", json.dumps(ACTS)],
    ["branches", ID],
    ["moves", ID],
    ["search", "words"],
    ["search", f'"{ACTS}'],
    ["recall", ID, "words", "--policy", "default"],
    ["sql"],
    ["sql", "SELECT * FROM session_messages"],
    ["sql", f"SELECT 'x' AS \"{NAME}\", role FROM session_messages"],
    ["sql", f"SELECT '{ACTS}' FROM nowhere"],
    ["check", ID, "--max-tokens", "50"],
    ["hide", ID, "1", "1", "--summary", f"hidden{ACTS}"],
    ["compact", ID, "--policy", f"{NAME}.toml", "--reason", f"why{ACTS}"],
    ["compact", ID, "--summarizer", NAME],
    ["compactions", ID],
    ["simulate", ID, "--policy", f"{NAME}.toml"],
    ["policy", "--help"],
    ["policy", "list"],
    ["policy", "show", f"{NAME}.toml"],
    ["policy", "check", f"{NAME}.toml"],
    ["policy", "check", f"{NAME}-broken.toml"],
    ["create", f"made{ACTS}", "--title", f"made{ACTS}"],
    ["append", ID, ACTS, "--role", f"role{ACTS}"],
    ["append", ID, "{broken" + ACTS, "--format", NAME],
    ["rename", ID, f"title{ACTS}"],
    ["tag", ID, f"key{ACTS}=value{ACTS}"],
    ["archive", ID],
    ["unarchive", ID],
    ["fork", ID, "--at", "2", "--id", f"fork{ACTS}"],
    ["fork", ID, "--id", f"fork{ACTS}"],
    ["tree", ID],
    ["rewind", ID, "--to", "2"],
    ["undo", ID],
    ["rewind", ID, "--to", "2"],
    ["append", ID, "elsewhere"],
    ["branches", ID],
    ["switch", ID, "0"],
    ["project", ID, f"/{NAME}"],
    ["drafts"],
    ["drafts", ID],
    *(["export", ID, "--as", shape] for shape in Shape),
    ["export", ID],
    ["export", ID, "--view"],
    ["export", "--all"],
    ["export", ID, "-o", f"{NAME}.jsonl"],
    ["export", ID, "-o", f"{NAME}.jsonl"],
    ["export", ID, "-o", f"{NAME}.md", "--as", "claude_code"],
    ["move", ID, "--to", NAME],
    ["move", ID, "--to", "codex"],
    ["project", ID, "."],
    ["move", ID, "--to", "codex"],
    ["move", ID, "--to", "codex", "--yes"],
    ["import", f"{NAME}.jsonl", f"{NAME}.txt", f"{NAME}-broken.jsonl", "--notes"],
    ["import", NAME],
    ["import", "--find"],
    ["redact", ID, "1", "--reason", f"why{ACTS}"],
    ["redact", ID, "1", "--reason", f"why{ACTS}", "--yes"],
    ["forget", ID],
    ["forget", ID, "--yes"],
    ["distribute", "--check"],
    ["distribute", "--partitions", NAME],
    ["delete", ID],
    ["delete", ID, "--yes"],
    ["backup", f"{NAME}.db"],
    ["backup", f"{NAME}.db"],
    ["restore", f"{NAME}.db", "--force"],
    ["restore", f"{NAME}.txt"],
    ["purge"],
    ["index"],
    ["verify"],
    ["doctor"],
    ["migrate"],
    ["doctor", "--db", f"{NAME}.txt"],
    ["sessions", "--db", f"postgresql://{NAME}@localhost:1/x"],
    ["demo", "--keep", f"{NAME}-demo.db"],
]
"""Command lines in the order in which they are run, some of which are refused."""


def messages() -> Iterator[dict[str, Any]]:
    """Yield a conversation in which every text is hostile."""
    yield {"role": "user", "content": f"words {ACTS} ## Title", "name": NAME, "timestamp": NOW}
    for number in range(8):
        arguments = json.dumps({"path": f"/{ACTS}", "command": ACTS})
        function = {"name": NAME if number else "Bash", "arguments": arguments}
        call = {"id": f"c{number}{ACTS}", "type": "function", "function": function}
        yield {"role": "assistant", "content": ACTS, "tool_calls": [call], "timestamp": NOW}
        content = json.dumps({"stdout": f"words {ACTS}" * 40, "exitCode": 0}, ensure_ascii=False)
        result = {"role": "tool", "tool_call_id": call["id"], "content": content}
        yield result | {"messageStatus": ACTS, "timestamp": NOW}
    yield {
        "role": f"r{ACTS}",
        "content": [{"type": ACTS, ACTS: ACTS}, {"type": "text", "text": ACTS}],
    }


def prepare(folder: Path) -> None:
    """Write a store, and files, in which everything that can be named has a hostile name."""
    with Store(folder / "convostore.db", durability="normal") as store:
        store.create_session(
            ID, title=f"t{ACTS}", project_root=f"/{NAME}", metadata={NAME: ACTS}, owner=f"o{ACTS}"
        )
        store.append(ID, [*messages()])
        store.record_usage(ID, input=9, output=9, model=NAME, provider=NAME, details={NAME: ACTS})
        store.context(ID, f"system {ACTS}", user_input=ACTS, root=folder / NAME, record=True)
        store.annotate(ID, 1, NAME, ACTS)
        store.compact(ID, Policy(name=NAME), lambda _: Summary(ACTS, title=ACTS))
        draft = store.streaming(ID, {"role": "assistant", "content": ""})
        draft.__enter__().write(ACTS)
        assert all(isinstance(each, Draft) for each in store.drafts(ID))
        line = [{"role": "user", "content": "words"}, {"role": "assistant", "content": "so"}] * 30
        store.append(ID, line)
    said = "".join(json.dumps(message) + "\n" for message in messages())
    (folder / f"{NAME}.jsonl").write_text(said)
    (folder / f"{NAME}-broken.jsonl").write_text(f"{said}{{{ACTS}\n[{ACTS}]\n")
    (folder / f"{NAME}.txt").write_text(ACTS)
    (folder / f"{NAME}.md").write_text(ACTS)
    (folder / NAME).mkdir()
    (folder / NAME / "CODE_LAW.md").write_text(ACTS)
    (folder / f"{NAME}.toml").write_text(f"name = {json.dumps(NAME)}\nkeep_turns = 2\n")
    (folder / f"{NAME}-broken.toml").write_text(f"{json.dumps(NAME)} = {json.dumps(ACTS)}\n")


CHILD = """
import json, os, sys
from store.cli import main
for number, arguments in enumerate(json.loads(sys.argv[1])):
    os.write(1, f"@{number}@\\n".encode())
    status = main(arguments)
    os.write(1, f"={status}=\\n".encode())
"""


def at_terminal(folder: Path, lines: list[list[str]]) -> dict[int, tuple[int, str]]:
    """Run command lines at a terminal; return the status of each, and what it wrote there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "PYTHONPATH": str(ROOT)}
        usual = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "100", "LANG": "C.UTF-8"}
        words = [sys.executable, "-c", CHILD, json.dumps(lines)]
        os.execve(sys.executable, words, usual | home)
    os.write(terminal, b"n\n" * 10)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # how a terminal ends
            break
        if not piece:
            break
        written += piece
    os.waitpid(pid, 0)
    os.close(terminal)
    found = re.findall(r"@(\d+)@\r\n(.*?)=(\d+)=\r\n", written.decode(), re.DOTALL)
    return {int(number): (int(status), said) for number, said, status in found}


def names() -> set[str]:
    """Return the names of all commands, also of those in groups."""
    listed = [name for group in COMMANDS.values() for name in group]
    inner = {name: getattr(import_command(name), "commands", {}) for name in listed}
    return {
        " ".join(filter(None, (name, each)))
        for name, commands in inner.items()
        for each in (commands or [""])
    }


def safe_at_terminal(folder: Path, lines: list[list[str]]) -> dict[str, str]:
    """Return what command lines write to a terminal; assert that most work and nothing acts."""
    prepare(folder)
    written = at_terminal(folder, lines)
    assert [*written] == [*range(len(lines))]
    for number, (_, said) in written.items():
        acting = UNSAFE.search(OURS.sub("\n", said))
        assert acting is None, (lines[number], acting)
        assert "\x1b[38;5;213m" not in said, lines[number]
    worked = sum(status == 0 for status, _ in written.values())
    assert worked > 0.7 * len(lines)
    return {" ".join(lines[number]): said for number, (_, said) in written.items()}


@pytest.mark.slow
def test_nothing_acts_on_a_terminal(tmp_path: Path) -> None:
    """Of all commands and all shapes, with hostile titles, ids, names, texts, paths and files."""
    shown = {" ".join(line[:count]) for line in COMMAND_LINES for count in (1, 2)}
    assert names() <= shown
    assert safe_at_terminal(tmp_path, COMMAND_LINES)


@pytest.mark.slow
def test_a_page_is_safe_at_a_terminal(tmp_path: Path) -> None:
    """What could act is written out, and our own colours are colours."""
    page = ["export", ID, "--as", "markdown"]
    lines = [page, ["sessions"], ["show", "--help"], ["policy", "--help"], ["delete", ID]]
    said = safe_at_terminal(tmp_path, [*lines, ["doctor"], ["verify"]])
    assert "\\x1b]0;PWNED\\x07" in said[" ".join(page)]
    assert "\x1b[" in said["sessions"]
    assert "\x1b[" in said["show --help"]
    assert "\x1b[" in said["policy --help"]


def test_a_file_and_a_pipe_get_a_page_as_it_is(run: Run, tmp_path: Path) -> None:
    """What a message says is not changed where no terminal reads it."""
    with Store("convostore.db") as store:
        store.create_session("s")
        store.append("s", {"role": "user", "content": "\x1b]0;PWNED\x07"})
    assert "\x1b]0;PWNED\x07" in run("export", "s", "--as", "markdown").out
    assert run("export", "s", "--as", "markdown", "-o", "page.md").status == 0
    assert "\x1b]0;PWNED\x07" in Path("page.md").read_text("utf-8")
