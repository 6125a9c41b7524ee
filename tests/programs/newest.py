"""What a program writes of a session: made with a model on loopback, imported, and its shape."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from store import Store, StoreError
from store.exporting import PROGRAM_NAMES
from store.importing import import_file
from store.transcripts import TRANSCRIPT_KINDS
from tests.mcp.real_agents import Model, Wire, prepare_home, run_program, serve_model

from .resuming import ASKED, PROGRAMS, SAID

SHAPES = Path(__file__).with_name("shapes.json")
"""By program, the version that was looked at last, and the shape of what it wrote."""
COMMANDS = {
    "claude_code": "claude",
    "codex": "codex",
    "opencode": "opencode",
    "gemini_cli": "gemini",
    "qwen_code": "qwen",
    "pi": "pi",
}
RESULT = "quinoa-4711"
LINE = "printf quinoa-%s 4711"
"""A command of the shell whose result does not stand in it."""
SHELLS: dict[str, dict[str, Any]] = {
    "Bash": {"command": LINE, "description": "Say quinoa"},
    "bash": {"command": LINE, "description": "Say quinoa"},
    "exec_command": {"cmd": LINE},
    "shell": {"command": ["bash", "-lc", LINE]},
    "run_shell_command": {"command": LINE, "description": "Say quinoa", "is_background": False},
}
"""The tools of the programs that run a command, and their arguments."""
DEEPEST = 4
MADE_NAME = re.compile(r"[/.:]|\d{3}|^[0-9a-f-]{8,}$")
"""Keys that are names of something, and differ each time."""


class Caller(Model):
    """A model that has a command run, and then says a word."""

    def answer(self, wire: Wire, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of a call, or of the last answer."""
        named = dict(wire.list_tools(asked))
        tool = next((each for each in SHELLS if each in named), None)
        if tool is None or [*wire.list_results(asked)]:
            return wire.say(SAID)
        return wire.call("call_0", tool, SHELLS[tool], named[tool])


class Seen(NamedTuple):
    """A version of a program: the shape of its files, and what is wrong with their import."""

    version: str
    shape: list[str]
    problems: list[str]
    printed: str


def read_program_version(name: str, programs: Path) -> str:
    """Return the version of an installed program."""
    package = programs / "node_modules" / PROGRAMS[name].package / "package.json"
    return str(json.loads(package.read_text("utf-8"))["version"])


def see_program(name: str, programs: Path) -> Seen:
    """Let a program write a session in an empty home, and import it."""
    program = PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix="newest-") as folder, serve_model(Caller) as model:
        home = Path(folder)
        environment = prepare_home(home, programs, model.url, program.files, program.variables)
        project = home / "parcel"
        project.mkdir()
        words = [COMMANDS[name], *program.first, *program.last]
        if name == "claude_code":
            words += ["--dangerously-skip-permissions"]
            environment["IS_SANDBOX"] = "1"  # it refuses the option to root elsewhere
        printed = run_program(words, environment, project)
        files = list_session_files(name, home)
        shape = sorted({each for file in files for each in describe_file(file)})
        problems = [*find_import_problems(name, files)]
        return Seen(read_program_version(name, programs), shape, problems, printed)


def list_session_files(name: str, home: Path) -> list[Path]:
    """Return the files in which a program keeps sessions, below a home."""
    places = TRANSCRIPT_KINDS[name].homes
    found = ((place, file) for place in places for file in (home / place.folder).rglob("*"))
    return sorted(file for place, file in found if file.is_file() and place.holds(file))


def find_import_problems(name: str, files: list[Path]) -> Iterator[str]:
    """Yield what an import lacks of the session; nothing if it is whole."""
    if not files:
        yield "it wrote no session where one is looked for"
    said: list[dict[str, Any]] = []
    with Store(":memory:") as store:
        for file in files:
            try:
                report = import_file(store, file)
            except StoreError as error:
                yield str(error)
                continue
            if report.kind != name:
                yield f"{file.name} is read as {report.kind}"
            yield from (f"broken: {note.text}" for note in report.notes if note.broken)
            if any(each.appended for each in import_file(store, file).sessions):
                yield f"{file.name}: a second import adds something"
            said += [each.message for one in report.sessions for each in store.messages(one.id)]
        if files and not store.usages():
            yield "nothing of the costs"
    roles = {"user": ASKED, "assistant": SAID, "tool": RESULT}
    for role, text in roles.items():
        if not any(text in json.dumps(each) for each in said if each["role"] == role):
            yield f"no {text!r} of the {role}"
    if not any(LINE in json.dumps(each.get("tool_calls")) for each in said):
        yield "no call"


def describe_file(path: Path) -> Iterator[str]:
    """Yield what stands where in a file: keys, and the types of values."""
    if path.read_bytes()[:6] == b"SQLite":
        with closing(sqlite3.connect(path)) as rows:
            rows.row_factory = sqlite3.Row
            tables = [each[0] for each in rows.execute("SELECT name FROM sqlite_schema")]
            for table in ("session", "message", "part"):
                for row in rows.execute(f"SELECT * FROM {table}") if table in tables else ():
                    yield from describe_value(
                        {key: parse_cell(cell) for key, cell in dict(row).items()}, table
                    )
        return
    text = path.read_text("utf-8")
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines()]
    for value in values:
        yield from describe_value(value, "")


def parse_cell(cell: Any) -> Any:
    """Return the JSON that a cell holds, otherwise the cell."""
    return json.loads(cell) if isinstance(cell, str) and cell[:1] in ("{", "[") else cell


def describe_value(value: Any, place: str) -> Iterator[str]:
    """Yield the places in a value, each with its type; an object's ``type`` is part of its place."""
    if isinstance(value, list):
        for each in value:
            yield from describe_value(each, f"{place}[]")
    elif isinstance(value, dict) and place.count(".") < DEEPEST:
        kind = value.get("type")
        place = f"{place}<{kind}>" if isinstance(kind, str) else place
        for key, each in value.items():
            name = "*" if MADE_NAME.search(key) else key
            yield from describe_value(each, f"{place}.{name}")
    elif value is not None:
        kind = "number" if isinstance(value, int | float) else type(value).__name__
        yield f"{place}: {kind}"


def report_newest(name: str, programs: Path, known: dict[str, Any]) -> Seen:
    """Print a program's version, and what has changed since the known one."""
    seen = see_program(name, programs)
    before = known.get(name, {"version": "none", "shape": []})
    new = sorted({*seen.shape} - {*before["shape"]})
    gone = sorted({*before["shape"]} - {*seen.shape})
    changed = f"{len(new)} new, {len(gone)} gone" if new or gone else "the same shape"
    whole = "imported whole" if not seen.problems else "NOT imported whole"
    print(f"{name} {seen.version} (before {before['version']}): {whole}; {changed}", flush=True)
    for mark, lines in (("!", seen.problems), ("+", new), ("-", gone)):
        for line in lines:
            print(f"  {mark} {line}")
    return seen


def look_at_newest(names: list[str], programs: Path, *, write: bool) -> bool:
    """Print what changed in the programs; tell whether all sessions were imported whole."""
    known = json.loads(SHAPES.read_text("utf-8")) if SHAPES.exists() else {}
    seen = {name: report_newest(name, programs, known) for name in names}
    if write:
        known |= {
            name: {"version": each.version, "shape": each.shape} for name, each in seen.items()
        }
        SHAPES.write_text(f"{json.dumps(known, indent=1, sort_keys=True)}\n", "utf-8")
    return not any(each.problems for each in seen.values())


assert {*COMMANDS} == {*PROGRAM_NAMES}
