"""The programs that continue a session: the file they read, its folder, the command to type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ..records import Message
from ..transcripts import TRANSCRIPT_KINDS, get_fields, writing

GEMINI_REGISTRY_FILE = "projects.json"
GEMINI_OWNER_FILE = ".project_root"
"""Where Gemini CLI keeps the names of projects' folders, and in a folder whose it is."""

RowsBuilder = Callable[[writing.WritableSession, writing.WritableLine], Iterator[Message]]


class Program(NamedTuple):
    """A program that continues a session: the format that is read, and the rows made from it.

    ``resume`` is the command that continues the session. ``place`` is the path at which the program
    looks for the file, in its folder; where there is none, ``import_command`` takes the file.
    ``name`` is the session's id in the program.
    """

    format: str
    rows: RowsBuilder
    resume: str
    place: Callable[[writing.WritableSession, Path], str] | None = None
    import_command: str = ""
    name: Callable[[writing.WritableSession], str] = lambda about: str(about.id)


def _build_project_path(about: writing.WritableSession, _: Path) -> str:
    return f"projects/{writing.name_project_folder(about.cwd)}/{about.id}.jsonl"


def _build_gemini_path(about: writing.WritableSession, folder: Path) -> str:
    project = _find_gemini_project(folder, about.cwd)
    return f"tmp/{project}/chats/{writing.name_gemini_file(about)}"


def _find_gemini_project(folder: Path, cwd: str) -> str:
    """Return the folder of a project: the one that the program gave it, or will give it."""
    given = get_fields(_load_gemini_registry(folder).get("projects"))
    owners = {}
    for path in sorted((folder / "tmp").glob(f"*/{GEMINI_OWNER_FILE}")):
        owners[path.parent.name] = path.read_text("utf-8", "replace").strip()
    owned = [name for name, owner in owners.items() if owner == cwd]
    known = [given.get(cwd), *owned]
    for name in known:
        if isinstance(name, str) and owners.get(name, cwd) == cwd:
            return name
    taken = {*owners, *map(str, given.values())}
    name = writing.name_gemini_project(cwd)
    names = (f"{name}-{number}" if number else name for number in count())
    return next(each for each in names if each not in taken)


def _load_gemini_registry(folder: Path) -> Message:
    try:
        return get_fields(json.loads((folder / GEMINI_REGISTRY_FILE).read_bytes()))
    except (OSError, ValueError):
        return {}


PROGRAMS = {
    "claude_code": Program(
        "anthropic", writing.build_claude_code_rows, "claude --resume", _build_project_path
    ),
    "codex": Program(
        "responses",
        writing.build_rollout_rows,
        "codex resume",
        lambda about, _: f"sessions/{writing.build_rollout_path(about)}",
    ),
    "opencode": Program(
        "anthropic",
        writing.build_opencode_documents,
        "opencode -s",
        import_command="opencode import",
        name=writing.name_opencode_session,
    ),
    "gemini_cli": Program(
        "gemini", writing.build_gemini_cli_lines, "gemini --resume", _build_gemini_path
    ),
    "qwen_code": Program(
        "gemini",
        writing.build_qwen_code_rows,
        "qwen --resume",
        lambda about, _: writing.build_qwen_code_path(about),
    ),
    "pi": Program(
        "anthropic",
        writing.build_pi_entries,
        "pi --session",
        lambda about, _: f"agent/sessions/{writing.build_pi_path(about)}",
    ),
}
"""The programs by the kind of their sessions."""


PROGRAM_NAMES = tuple(PROGRAMS)
"""The names of the programs, as a shape of an export has them."""


class Resumption(NamedTuple):
    """How a program goes on with a session on this machine.

    ``place`` is the file at which the program looks for it; None where ``import_command`` takes the
    file. ``resume`` is typed in ``folder``, that of the project. ``name`` is the session's id in
    the program.
    """

    place: Path | None
    import_command: str
    folder: Path
    resume: str
    name: str

    @property
    def command(self) -> str:
        """The command to type, and the folder to type it in."""
        return f"in {self.folder}: {self.resume}"

    @property
    def advice(self) -> str:
        """What to do with a file of the session, and what to type."""
        if self.place is None:
            return f"in {self.folder}: {self.import_command} FILE, then: {self.resume}"
        return f"put it at {render_home_path(self.place)}, then, {self.command}"


def find_resumption(kind: str, about: writing.WritableSession) -> Resumption:
    """Return how a program continues a session: the folder it reads, and the command to type."""
    program, folder = PROGRAMS[kind], TRANSCRIPT_KINDS[kind].homes[0].path
    place = None if program.place is None else folder / program.place(about, folder)
    name = program.name(about)
    resume = f"{program.resume} {name}"
    return Resumption(place, program.import_command, Path(about.cwd), resume, name)


def render_home_path(path: Path) -> str:
    """Return a path with ~ for the home folder."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
