"""Records of a store as frames of pandas, which is imported when a frame is made.

A row of `FRAMES` names the content of a frame. Messages that a fork shares with its source are in
the rows of the source alone, so that sums count them once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..errors import InvalidValue, StoreError, quote_value
from ..messages import extract_content_text
from ..records import Session

MOST_SESSIONS = 2**31
"""The most sessions of a frame."""
TIME_COLUMNS = ("at", "created_at", "updated_at", "started_at", "stored_at")
"""Columns of times in ms, which become times of pandas, in UTC."""

FrameRow = dict[str, Any]
FrameReader = Callable[[Callable[[Any], list[FrameRow]]], list[FrameRow]]
"""What does reads of one state of a store."""


def _list_every_session(face: Any) -> list[Session]:
    lists = (face.sessions(limit=MOST_SESSIONS, archived=each) for each in (False, True))
    return [session for listed in lists for session in listed]


def _list_messages(face: Any, session: Session) -> Iterator[FrameRow]:
    for stored in face.messages(session.id, format="openai"):
        content = stored.message.get("content")
        told = {"seq": stored.seq, "role": stored.message["role"]}
        yield {**told, "text": extract_content_text(content), "stored_at": stored.stored_at}


def _list_records(name: str) -> Callable[[Any, Session], Iterable[FrameRow]]:
    """Build the list of the results of a named operation for a session."""
    return lambda face, session: (each._asdict() for each in getattr(face, name)(session.id))


OF_A_SESSION: Mapping[str, Callable[[Any, Session], Iterable[FrameRow]]] = {
    "messages": _list_messages,
    "turns": _list_records("turns"),
    "calls": _list_records("calls"),
    "files": _list_records("files"),
}
"""The frames that are made session by session."""
FRAMES = ("sessions", "usages", "notes", *OF_A_SESSION)
"""The names of frames."""


def list_frame_rows(face: Any, name: str, session_id: str | None) -> list[FrameRow]:
    """Return the rows of a frame, of one session or of all."""
    if name == "usages":
        return [each._asdict() for each in face.usages(session_id)]
    if name == "notes":
        return [each._asdict() for each in face.annotations(session_id)]
    sessions = _list_every_session(face) if session_id is None else [face.session(session_id)]
    if name == "sessions":
        return [each._asdict() for each in sessions]
    return [
        {"session_id": session.id, **row}
        for session in sessions
        for row in OF_A_SESSION[name](face, session)
        if session_id or row[_PLACE_KEYS.get(name, "seq")] > (session.forked_at or 0)
    ]


_PLACE_KEYS = {"turns": "first"}
"""The keys of the positions by which rows count as the source's or the fork's."""


def build_frame(read: FrameReader, name: str, session_id: str | None) -> Any:
    """Return records as a frame, its rows from one state of a store, its times in UTC.

    Raises InvalidValue for a name that no frame has, StoreError without pandas.
    """
    if name not in FRAMES:
        names = ", ".join(FRAMES)
        raise InvalidValue(f"no frame is named {quote_value(name)}; there are {names}")
    rows = read(lambda face: list_frame_rows(face, name, session_id))
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise StoreError("a frame needs pandas; install it with `pip install pandas`") from error
    frame = pandas.DataFrame(rows)
    for name in TIME_COLUMNS:
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name], unit="ms", utc=True)
    return frame
