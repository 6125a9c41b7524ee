"""The shapes in which a session is exported: of a provider, of a program, of a page for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..face import Store
from ..messages import Message
from ..policy import Policy
from ..records import Session, View
from ..transcripts import writing
from .written import lines

UNKNOWN = "unknown"
"""The model of a session that does not tell."""


class Shape(StrEnum):
    """What a session can be written as."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"
    claude_code = "claude_code"
    codex = "codex"
    markdown = "markdown"


class Program(NamedTuple):
    """A program that goes on with a session: the format it is made of, and how it is written.

    ``place`` is where the program looks for it, in the home folder; ``resume`` what is typed then.
    """

    format: str
    rows: Callable[[writing.About, Iterable[writing.Timed]], Iterator[Message]]
    place: Callable[[writing.About], str]
    resume: str


def _of_project(about: writing.About) -> str:
    return f"~/.claude/projects/{writing.project_folder(about.cwd)}/{about.id}.jsonl"


def _of_sessions(about: writing.About) -> str:
    return f"~/.codex/sessions/{writing.rollout_name(about)}"


PROGRAMS = {
    Shape.claude_code: Program("anthropic", writing.claude_code, _of_project, "claude --resume"),
    Shape.codex: Program("responses", writing.codex, _of_sessions, "codex resume"),
}
"""The shapes that programs go on with."""

Look = Callable[[str], View]
"""What is sent in a format."""


class Written(NamedTuple):
    """A session as it is written: its lines, of so many messages; what to do with it, if any."""

    lines: Iterator[str]
    size: int
    advice: str | None = None


def raw_line(store: Store, session: Session, at: int | None) -> Look:
    """Return how a whole line is sent: what compactions hide of it, too."""

    def look(format: str) -> View:  # noqa: A002 - the public name
        with Store(":memory:", durability="normal") as apart:
            apart.create_session(session.id, project_root=session.project_root)
            for page in store.pages(session.id, at=at):
                apart.append(session.id, [each.message for each in page], dedupe="off")
            return apart.view(session.id, Policy.named("raw"), format=format)

    return look


def shaped(shape: Shape, session: Session, look: Look, ascii_only: bool | None) -> Written:
    """Return a session in a shape."""
    as_lines = partial(lines, ascii_only=ascii_only)
    if shape == Shape.markdown:
        view = look("openai")
        said = [entry.message for entry in view.entries]
        page = writing.markdown(session.title or session.id, said)
        return Written((f"{paragraph}\n" for paragraph in page), len(said))
    if shape not in PROGRAMS:
        view = look(shape.value)
        return Written(as_lines(sent(view)), len(view.messages))
    program = PROGRAMS[shape]
    view, about = look(program.format), _about(session)
    said = [entry.message for entry in view.entries]
    timed = writing.timed(said, view.messages, about.began)
    advice = f"put it at {program.place(about)}, then, in {about.cwd}: {program.resume} {about.id}"
    return Written(as_lines(program.rows(about, timed)), len(view.messages), advice)


def sent(view: View) -> list[Message]:
    """Return what is sent, in front the system text that goes beside the messages."""
    return view.messages if view.system is None else [{"system": view.system}, *view.messages]


def _about(session: Session) -> writing.About:
    """Return what files tell of a session; its id is a new one, not that of the session it was."""
    model = session.metadata.get("model")
    return writing.About(
        writing.session_uuid(session.id, session.revision),
        session.project_root or str(Path.cwd()),
        session.title,
        model if isinstance(model, str) else UNKNOWN,
        session.created_at,
    )
