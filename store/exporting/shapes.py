"""Write a session in the shape of a provider, of a program, or of a page for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..face import Scoped, Store
from ..formats import marked
from ..messages import Message, content_text
from ..policy import Policy
from ..ready import PHRASES
from ..records import Session, View
from ..text import as_list
from ..transcripts import writing
from .files import json_lines

Face: TypeAlias = Store | Scoped
"""The store, whole or of one owner, that a session is read from."""

UNKNOWN = "unknown"
"""The model of a session that names none."""


class Shape(StrEnum):
    """The shapes in which a session can be written."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"
    claude_code = "claude_code"
    codex = "codex"
    markdown = "markdown"


class Program(NamedTuple):
    """A program that continues a session: the format that is read, and the rows made from it.

    ``place`` is the path at which the program looks for the file, in the home folder. ``resume`` is
    the command that continues the session.
    """

    format: str
    rows: Callable[[writing.About, writing.Told], Iterator[Message]]
    place: Callable[[writing.About], str]
    resume: str


BEGINNINGS = (*PHRASES["beginning"].values(),)
"""The texts with which formats begin a request if the user has not spoken first."""


def _of_project(about: writing.About) -> str:
    return f"~/.claude/projects/{writing.project_folder(about.cwd)}/{about.id}.jsonl"


def _of_sessions(about: writing.About) -> str:
    return f"~/.codex/sessions/{writing.rollout_name(about)}"


PROGRAMS = {
    Shape.claude_code: Program("anthropic", writing.claude_code, _of_project, "claude --resume"),
    Shape.codex: Program("responses", writing.codex, _of_sessions, "codex resume"),
}
"""The shapes that programs continue."""

RAW = Policy.named("raw", language="en", chat_extensions=False)
"""The policy for everything that a provider takes, including pictures in results."""
SYSTEM = ("system", "developer")

Look = Callable[[str], View]
"""Returns the view of messages in a format."""


class Compacted(NamedTuple):
    """The parts of a line: the hidden messages, the messages in their place, and the kept ones."""

    hidden: Look
    stands: Look
    kept: Look


class Written(NamedTuple):
    """The lines of an exported session, and the number of its messages.

    ``advice`` tells how a program continues the session, None if no program does.
    """

    lines: Iterator[str]
    messages: int
    advice: str | None = None


def raw_line(store: Face, session: Session, at: int | None) -> Look:
    """Return the look at a whole line, including the messages that compactions hide."""
    return _apart(session, lambda: _pages(store, session, at))


def compacted(store: Face, session: Session, at: int | None) -> Compacted | None:
    """Return a line in the parts that a compaction made; None if none hides its beginning."""
    first = _first_kept(store, session, at)
    entries = store.view(session.id, RAW, at=at).entries
    stands = [*takewhile(lambda entry: entry.seq is None or entry.seq < first, entries)]
    summary = [str(each.message["content"]) for each in stands if each.seq is None]
    if not summary:
        return None
    pinned = [each.message for each in stands if each.seq is not None]
    told = [each for each in pinned if each["role"] in SYSTEM]
    told.append({"role": "user", "content": "\n\n".join(summary)})
    told += [each for each in pinned if each["role"] not in SYSTEM]
    return Compacted(
        _apart(session, lambda: _pages(store, session, at, last=first - 1)),
        _apart(session, lambda: [told]),
        _apart(session, lambda: _pages(store, session, at, first=first)),
    )


def _first_kept(store: Face, session: Session, at: int | None) -> int:
    """Return the position from which a line is kept, apart from ranges hidden explicitly."""
    records = {each.id: each.first_kept for each in store.compactions(session.id)}
    hiding = {each.compaction for each in store.hidden(session.id, at).values()}
    return max((records.get(each) or 1 for each in hiding), default=1)


def _pages(
    store: Face, session: Session, at: int | None, first: int = 1, last: int | None = None
) -> Iterator[list[Message]]:
    for page in store.pages(session.id, at=at):
        yield [
            each.message
            for each in page
            if first <= each.seq and (last is None or each.seq <= last)
        ]


def _apart(session: Session, pages: Callable[[], Iterable[list[Message]]]) -> Look:
    """Return the look at messages as a session of their own."""

    def look(format: str) -> View:  # noqa: A002 - the public name
        with Store(":memory:", durability="normal") as apart:
            apart.create_session(session.id, project_root=session.project_root)
            for page in filter(None, pages()):
                apart.append(session.id, page, dedupe="off")
            return apart.view(session.id, RAW, format=format)

    return look


def shaped(
    shape: Shape,
    session: Session,
    look: Look | Compacted,
    *,
    ascii_only: bool,
) -> Written:
    """Return a session in a shape; only a program takes the parts of a compaction."""
    if shape in PROGRAMS:
        program = PROGRAMS[shape]
        about = _about(session, program)
        told = _told(program.format, look, about.began)
        advice = (
            f"put it at {program.place(about)}, then, in {about.cwd}: {program.resume} {about.id}"
        )
        rows = json_lines(program.rows(about, told), ascii_only=ascii_only)
        return Written(rows, told.size, advice)
    assert not isinstance(look, Compacted)
    if shape == Shape.markdown:
        view = look("openai")
        said = [entry.message for entry in view.entries]
        page = writing.markdown(session.title or session.id, said)
        return Written((f"{paragraph}\n" for paragraph in page), len(said))
    view = look(shape.value)
    return Written(json_lines(sent(view), ascii_only=ascii_only), len(view.messages))


def _told(format: str, look: Look | Compacted, began: int) -> writing.Told:  # noqa: A002 - as above
    if not isinstance(look, Compacted):
        return writing.Told(_timed(look(format), began))
    hidden = _timed(look.hidden(format), began)
    kept = _timed(look.kept(format), hidden[-1][0] if hidden else began)
    if kept and content_text(kept[0][1].get("content")) in BEGINNINGS:
        del kept[0]  # the summary of the hidden part is already a message of the user
    return writing.Told(kept, hidden, _standing(look.stands(format)) if hidden else ())


def _standing(view: View) -> list[Message]:
    """Return the messages in place of a hidden part, the summary first."""
    summary, *others = view.messages
    return [summary, *_beside(view), *others]


def _timed(view: View, began: int) -> list[writing.Timed]:
    said = [entry.message for entry in view.entries]
    beside = _beside(view)
    told = writing.timed(said, view.messages, began + len(beside))
    return [*((began, each) for each in beside), *told]


def _beside(view: View) -> list[Message]:
    """Return the separate system text as one message; none if there is no text."""
    texts = [content_text([each]) for each in as_list(view.system)]
    said = marked("\n\n".join(texts))
    return [{"role": "system", "content": [{"type": "text", "text": said}]}] if said else []


def sent(view: View) -> list[Message]:
    """Return the messages of a request, preceded by its separate system text."""
    return view.messages if view.system is None else [{"system": view.system}, *view.messages]


def _about(session: Session, program: Program) -> writing.About:
    """Return the description of a session for a file; its id is new, not that of the session."""
    model = session.metadata.get("model")
    return writing.About(
        writing.session_uuid(session.id, session.revision, program.resume),
        session.project_root or str(Path.cwd()),
        session.title,
        model if isinstance(model, str) else UNKNOWN,
        session.created_at,
    )
