"""Export a session as it is stored, as it would be sent, or for a program or people; or a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from .. import Scoped, Store
from ..clock import Now
from ..errors import InvalidValue, quote_value
from ..inspection import compare_line, dump
from ..policy import Policy
from ..records import FilePath, Message, ProgressCallback, Session, View
from ..text import JsonFields
from ..transcripts import OWNER_KEY, PROJECT_ROOT_KEY
from .files import Exported, render_json_lines, write_private_file
from .page_content import choose_content
from .programs import PROGRAMS
from .session_page import render_html_page
from .shapes import (
    PEOPLE_SHAPES,
    ExportSource,
    Shape,
    Written,
    build_line_view_maker,
    render_session_shape,
    split_compacted_line,
)


def export_session(
    store: ExportSource,
    session_id: str,
    path: FilePath,
    *,
    shape: str | None = None,
    at: int | None = None,
    policy: Policy | None = None,
    now: Now = None,
    only: str | None = None,
    mask: bool = False,
    replace: bool = False,
    progress: ProgressCallback | None = None,
) -> Exported:
    """Write a session's raw messages to a file, one JSON object a line.

    `import_file` reads them back equal. A ``shape`` writes the whole line in the format of a
    provider (`"openai"`, `"responses"`, `"anthropic"`, `"gemini"`), for a program that continues it
    (`"claude_code"`, `"codex"`, `"opencode"`, `"gemini_cli"`, `"qwen_code"`, `"pi"`), or as a page
    for people (`"html"`, `"markdown"`). ``policy`` writes the request that it would send (None: all
    messages). ``at`` ends the line at a position.
    A page for people has with ``only="said"`` no prompts, thoughts, calls and results, and with
    ``mask`` every text as `mask` returns it; the result counts the masked texts.

    The file is readable by its owner alone, and is written whole or not at all. The line is first
    compared with its digests and seals. ``progress`` gets the number of messages written so far,
    and of all. Raises SessionNotFound, InvalidValue for a shape, PositionOutOfRange, Damaged, and
    StoreError, also if the file exists, unless ``replace``.
    """
    written = session_lines(
        store, session_id, shape=shape, at=at, policy=policy, now=now, only=only, mask=mask
    )
    own = store._database.path
    lines = _report_lines(written, progress) if progress else written.lines
    file = write_private_file(path, lines, store=own, replace=replace)
    homes, keys = (written.masked.get(name, 0) for name in ("homes", "keys"))
    messages = written.masked.get("said", 0) if only else written.messages
    return Exported(file, 1, messages, written.advice, homes, keys)


def _report_lines(written: Written, progress: ProgressCallback) -> Iterator[str]:
    """Yield the lines of a session and tell how many of its messages they are at most."""
    total, number = written.messages, 0
    for number, line in enumerate(written.lines, 1):
        yield line
        progress(min(number, total), total)
    if number < total:
        progress(total, total)


def session_lines(
    store: ExportSource,
    session_id: str,
    *,
    shape: str | None = None,
    at: int | None = None,
    policy: Policy | None = None,
    now: Now = None,
    only: str | None = None,
    mask: bool = False,
    ascii_only: bool = False,
) -> Written:
    """Return the lines that `export_session` writes, made one by one as they are read.

    ``ascii_only`` writes JSON in ASCII, for terminals that show nothing else.
    """
    wanted = _parse_shape(shape)
    content = choose_content(only, mask=mask, is_page=wanted in PEOPLE_SHAPES)
    session = store.session(session_id)
    store._database.read(lambda connection: compare_line(connection, session.id, at))
    if wanted == Shape.html:
        page = render_html_page(
            store, session, content, at=at, policy=policy, now=now, ascii_only=ascii_only
        )
        return Written(page, session.head if at is None else at, masked=content.counts)
    if policy is not None:
        seen = partial(_build_export_view, store, session, policy, at, now)
        shape_of_view = wanted or Shape.openai
        return render_session_shape(shape_of_view, session, seen, content, ascii_only=ascii_only)
    if wanted is not None:
        parts = split_compacted_line(store, session, at) if wanted in PROGRAMS else None
        look = parts or build_line_view_maker(store, session, at)
        return render_session_shape(wanted, session, look, content, ascii_only=ascii_only)
    told = {PROJECT_ROOT_KEY: session.project_root, OWNER_KEY: session.owner}
    row = {key: text for key, text in told.items() if text is not None}
    rows = chain(([row] if row else []), _load_raw_messages(store, session, at))
    count = session.head if at is None else at
    return Written(render_json_lines(rows, ascii_only=ascii_only), count)


def _parse_shape(name: str | None) -> Shape | None:
    try:
        return None if name is None else Shape(name)
    except ValueError as error:
        known = ", ".join(Shape)
        raise InvalidValue(f"there is no shape {quote_value(name)}; there are {known}") from error


def _build_export_view(
    store: ExportSource,
    session: Session,
    policy: Policy,
    at: int | None,
    now: Now,
    format: str,  # noqa: A002 - the public name
) -> View:
    return store.view(session.id, policy, at=at, now=now, format=format)


def _load_raw_messages(store: ExportSource, session: Session, at: int | None) -> Iterator[Message]:
    return (stored.message for page in store.pages(session.id, at=at) for stored in page)


def export_store(
    store: ExportSource,
    path: FilePath,
    *,
    owner: str | None = None,
    replace: bool = False,
    progress: ProgressCallback | None = None,
) -> Exported:
    """Write every session of a store, with all rows that belong to it, to a file.

    `import_file` restores the store from the file. An ``owner``, or a scoped store, limits it to
    the sessions of that owner, archived ones too, with their notes and the kept sums of their
    usages. Messages of others are in it as far as the owner's forks show them; ids of sessions of
    others are not. The file is readable by its owner alone, and is written whole or not at all. All
    rows are compared with their digests and seals. ``progress`` gets the number of sessions written
    so far, and of all. Raises Damaged, InvalidValue, and StoreError, also if the file exists,
    unless ``replace``.
    """
    counts: Counter[str] = Counter()
    lines = store_lines(store, counts, owner=owner)
    if progress is not None:
        source = store if owner is None or isinstance(store, Scoped) else store.scoped(owner)
        lines = _report_sessions(lines, source, counts, progress)
    file = write_private_file(path, lines, store=store._database.path, replace=replace)
    return Exported(file, counts["sessions"], counts["messages"])


def _report_sessions(
    lines: Iterator[str], store: ExportSource, counts: Counter[str], progress: ProgressCallback
) -> Iterator[str]:
    """Yield the lines of a store and tell of each session."""
    total = store.count_sessions() + store.count_sessions(archived=True)
    told = 0
    for line in lines:
        yield line
        if counts["sessions"] != told:
            told = counts["sessions"]
            progress(told, max(told, total))


def store_lines(
    store: ExportSource,
    counts: Counter[str],
    *,
    owner: str | None = None,
    ascii_only: bool = False,
) -> Iterator[str]:
    """Return the rows of a store, or of an owner, as lines, each an object of one key.

    The rows are counted by table.
    """
    wanted = _choose_owner(store, owner)
    return render_json_lines(_dump_counted_rows(store, counts, wanted), ascii_only=ascii_only)


def _choose_owner(store: ExportSource, owner: str | None) -> str | None:
    if not isinstance(store, Scoped):
        return owner if owner is None else store.scoped(owner).owner
    if owner not in (None, store.owner):
        raise InvalidValue(f"this is the store of another owner, not of {quote_value(owner)}")
    return store.owner


def _dump_counted_rows(
    store: ExportSource, counts: Counter[str], owner: str | None
) -> Iterator[JsonFields]:
    """Yield the rows of a store; a temporary store takes what owners share."""
    with ExitStack() as stack:
        copy = None
        if owner is not None:
            folder = stack.enter_context(TemporaryDirectory(prefix="convostore-"))
            copy = stack.enter_context(Store(Path(folder) / "shared.db")).database
        for table, fields in dump.dump_store(store._database, owner=owner, copy=copy):
            counts[table] += 1
            yield {table: fields}
