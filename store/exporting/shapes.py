"""Write a session in the shape of a provider, of a program, or of a page for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, TypeAlias

from .. import Scoped, Store
from ..formats import REQUEST_BEGINNINGS, mark_system_text
from ..policy import Policy
from ..records import Message, Session, View, extract_content_text
from ..text import wrap_in_list
from ..transcripts import writing
from .files import render_json_lines
from .page_content import PageContent
from .programs import PROGRAMS, Program, Resumption, find_resumption

ExportSource: TypeAlias = Store | Scoped
"""The store, whole or of one owner, that a session is read from."""

UNKNOWN_MODEL = "unknown"
"""The model of a session that names none."""


class Shape(StrEnum):
    """The shapes in which a session can be written."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"
    claude_code = "claude_code"
    codex = "codex"
    opencode = "opencode"
    gemini_cli = "gemini_cli"
    qwen_code = "qwen_code"
    pi = "pi"
    markdown = "markdown"
    html = "html"


PEOPLE_SHAPES = (Shape.markdown, Shape.html)
"""The shapes for people."""

RAW_EXPORT_POLICY = Policy.named("raw", language="en", chat_extensions=False)
"""The policy for everything that a provider takes, including pictures in results."""
EXPORTED_SYSTEM_ROLES = ("system", "developer")

ViewMaker = Callable[[str], View]
"""Returns the view of messages in a format."""


class CompactedLine(NamedTuple):
    """The parts of a line: the hidden messages, the messages in their place, and the kept ones."""

    hidden: ViewMaker
    stands: ViewMaker
    kept: ViewMaker


class Written(NamedTuple):
    """The lines of an exported session, and the number of its messages.

    ``resumption`` tells how a program continues the session, None if no program does. ``masked``
    counts the ``homes`` and ``keys`` masked in the lines taken so far.
    """

    lines: Iterator[str]
    messages: int
    resumption: Resumption | None = None
    masked: Mapping[str, int] = {}

    @property
    def advice(self) -> str | None:
        """What to do with the file, and what to type; None if no program continues the session."""
        return None if self.resumption is None else self.resumption.advice


def build_line_view_maker(store: ExportSource, session: Session, at: int | None) -> ViewMaker:
    """Return the look at a whole line, including the messages that compactions hide."""
    return _build_view_maker(session, lambda: _load_message_pages(store, session, at))


def split_compacted_line(
    store: ExportSource, session: Session, at: int | None
) -> CompactedLine | None:
    """Return a line in the parts that a compaction made; None if none hides its beginning."""
    first = _find_first_kept(store, session, at)
    entries = store.view(session.id, RAW_EXPORT_POLICY, at=at).entries
    stands = [*takewhile(lambda entry: entry.seq is None or entry.seq < first, entries)]
    summary = [str(each.message["content"]) for each in stands if each.seq is None]
    if not summary:
        return None
    pinned = [each.message for each in stands if each.seq is not None]
    told = [each for each in pinned if each["role"] in EXPORTED_SYSTEM_ROLES]
    told.append({"role": "user", "content": "\n\n".join(summary)})
    told += [each for each in pinned if each["role"] not in EXPORTED_SYSTEM_ROLES]
    return CompactedLine(
        _build_view_maker(session, lambda: _load_message_pages(store, session, at, last=first - 1)),
        _build_view_maker(session, lambda: [told]),
        _build_view_maker(session, lambda: _load_message_pages(store, session, at, first=first)),
    )


def _find_first_kept(store: ExportSource, session: Session, at: int | None) -> int:
    """Return the position from which a line is kept, apart from ranges hidden explicitly."""
    records = {each.id: each.first_kept for each in store.compactions(session.id)}
    hiding = {each.compaction for each in store.hidden(session.id, at).values()}
    return max((records.get(each) or 1 for each in hiding), default=1)


def _load_message_pages(
    store: ExportSource, session: Session, at: int | None, first: int = 1, last: int | None = None
) -> Iterator[list[Message]]:
    for page in store.pages(session.id, at=at):
        yield [
            each.message
            for each in page
            if first <= each.seq and (last is None or each.seq <= last)
        ]


def _build_view_maker(session: Session, pages: Callable[[], Iterable[list[Message]]]) -> ViewMaker:
    """Return the look at messages as a session of their own."""

    def look(format: str) -> View:  # noqa: A002 - the public name
        with Store(":memory:", durability="normal") as apart:
            apart.create_session(session.id, project_root=session.project_root)
            for page in filter(None, pages()):
                apart.append(session.id, page, dedupe="off")
            return apart.view(session.id, RAW_EXPORT_POLICY, format=format)

    return look


def render_session_shape(
    shape: Shape,
    session: Session,
    look: ViewMaker | CompactedLine,
    content: PageContent,
    *,
    ascii_only: bool,
) -> Written:
    """Return a session in a shape; only a program takes the parts of a compaction."""
    if shape in PROGRAMS:
        program = PROGRAMS[shape]
        about = describe_session(session, program)
        told = _build_program_content(program.format, look, about.began)
        rows = render_json_lines(program.rows(about, told), ascii_only=ascii_only)
        return Written(rows, told.size, find_resumption(shape, about))
    assert not isinstance(look, CompactedLine)
    if shape == Shape.markdown:
        said = [*content.select(entry.message for entry in look("openai").entries)]
        page = writing.render_markdown_page(content.cover(session.title or session.id), said)
        lines = (f"{paragraph}\n" for paragraph in page)
        return Written(lines, len(said), masked=content.counts)
    view = look(shape.value)
    return Written(
        render_json_lines(
            (view.messages if view.system is None else [{"system": view.system}, *view.messages]),
            ascii_only=ascii_only,
        ),
        len(view.messages),
    )


def _build_program_content(
    format: str,  # noqa: A002 - as above
    look: ViewMaker | CompactedLine,
    began: int,
) -> writing.WritableLine:
    if not isinstance(look, CompactedLine):
        return writing.WritableLine(_list_timed_messages(look(format), began))
    hidden = _list_timed_messages(look.hidden(format), began)
    kept = _list_timed_messages(look.kept(format), hidden[-1][0] if hidden else began)
    if kept and extract_content_text(kept[0][1].get("content")) in REQUEST_BEGINNINGS:
        del kept[0]  # the summary of the hidden part is already a message of the user
    return writing.WritableLine(
        kept, hidden, _list_replacing_messages(look.stands(format)) if hidden else ()
    )


def _list_replacing_messages(view: View) -> list[Message]:
    """Return the messages in place of a hidden part, the summary first."""
    summary, *others = view.messages
    return [summary, *_build_system_messages(view), *others]


def _list_timed_messages(view: View, began: int) -> list[writing.TimedMessage]:
    said = [entry.message for entry in view.entries]
    beside = _build_system_messages(view)
    told = writing.assign_message_moments(said, view.messages, began + len(beside))
    return [*((began, each) for each in beside), *told]


def _build_system_messages(view: View) -> list[Message]:
    """Return the separate system text as one message; none if there is no text."""
    texts = [extract_content_text([each]) for each in wrap_in_list(view.system)]
    said = mark_system_text("\n\n".join(texts))
    return [{"role": "system", "content": [{"type": "text", "text": said}]}] if said else []


def describe_session(session: Session, program: Program) -> writing.WritableSession:
    """Return the description of a session for a file; its id is new, not that of the session."""
    model = session.metadata.get("model")
    return writing.WritableSession(
        writing.build_session_uuid(session.id, session.revision, program.resume),
        session.project_root or str(Path.cwd()),
        session.title,
        model if isinstance(model, str) else UNKNOWN_MODEL,
        session.created_at,
    )
