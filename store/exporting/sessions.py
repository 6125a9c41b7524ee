"""Export a session as it is stored, as it would be sent, or for a program or people."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

from ..clock import Now
from ..errors import InvalidValue, quoted
from ..inspection import compare_line
from ..messages import Message
from ..policy import Policy
from ..records import Session, View
from ..transcripts import OWNER, PROJECT_ROOT
from .files import Exported, FilePath, json_lines, write_private
from .shapes import PROGRAMS, Face, Shape, Written, compacted, raw_line, shaped


def export_session(
    store: Face,
    session_id: str,
    path: FilePath,
    *,
    shape: str | None = None,
    at: int | None = None,
    policy: Policy | None = None,
    now: Now = None,
    replace: bool = False,
) -> Exported:
    """Write a session's raw messages to a file, one JSON object a line.

    `import_file` reads them back equal. A ``shape`` writes the whole line in the format of a
    provider (`"openai"`, `"responses"`, `"anthropic"`, `"gemini"`), for a program that continues it
    (`"claude_code"`, `"codex"`), or as a page for people (`"markdown"`). ``policy`` writes the
    request that it would send (None: all messages). ``at`` ends the line at a position. The file is
    readable by its owner alone, and is written whole or not at all. The line is first compared with
    its digests and seals. Raises SessionNotFound, InvalidValue for a shape, PositionOutOfRange,
    Damaged, and StoreError, also if the file exists, unless ``replace``.
    """
    written = session_lines(store, session_id, shape=shape, at=at, policy=policy, now=now)
    own = store._database.path
    file = write_private(path, written.lines, store=own, replace=replace)
    return Exported(file, 1, written.messages, written.advice)


def session_lines(
    store: Face,
    session_id: str,
    *,
    shape: str | None = None,
    at: int | None = None,
    policy: Policy | None = None,
    now: Now = None,
    ascii_only: bool = False,
) -> Written:
    """Return the lines that `export_session` writes, made one by one as they are read.

    ``ascii_only`` writes JSON in ASCII, for terminals that show nothing else.
    """
    wanted = _shape(shape)
    session = store.session(session_id)
    store._database.read(lambda connection: compare_line(connection, session.id, at))
    if policy is not None:
        seen = partial(_view, store, session, policy, at, now)
        return shaped(wanted or Shape.openai, session, seen, ascii_only=ascii_only)
    if wanted is not None:
        parts = compacted(store, session, at) if wanted in PROGRAMS else None
        look = parts or raw_line(store, session, at)
        return shaped(wanted, session, look, ascii_only=ascii_only)
    rows = chain(_before(session), _raw(store, session, at))
    count = session.head if at is None else at
    return Written(json_lines(rows, ascii_only=ascii_only), count)


def _shape(name: str | None) -> Shape | None:
    try:
        return None if name is None else Shape(name)
    except ValueError as error:
        known = ", ".join(Shape)
        raise InvalidValue(f"there is no shape {quoted(name)}; there are {known}") from error


def _view(
    store: Face,
    session: Session,
    policy: Policy,
    at: int | None,
    now: Now,
    format: str,  # noqa: A002 - the public name
) -> View:
    return store.view(session.id, policy, at=at, now=now, format=format)


def _before(session: Session) -> list[Message]:
    """Return a row with the owner and project root of a session; none if it has neither."""
    told = {PROJECT_ROOT: session.project_root, OWNER: session.owner}
    row = {key: text for key, text in told.items() if text is not None}
    return [row] if row else []


def _raw(store: Face, session: Session, at: int | None) -> Iterator[Message]:
    return (stored.message for page in store.pages(session.id, at=at) for stored in page)
