"""The files, commands and failures of a session, with their positions."""

from __future__ import annotations

from typing import NamedTuple

from ..records import CallRecord, FileUse
from ..summaries import extract_command
from ..text import truncate_to_line
from .page_rendering import Values, Visit, page

LISTED_FILES = 100
LISTED_USES = 8
"""The places that stand beside a file; its own page has them all."""
LISTED_CALLS = 100
CALL_LINE_LENGTH = 200


class FileRow(NamedTuple):
    """A file with the calls that read and changed it."""

    path: str
    reads: list[FileUse]
    changes: list[FileUse]


class CallRow(NamedTuple):
    """A call, and its subject in a line."""

    call: CallRecord
    text: str


@page("/files/{session_id:path}", "files.html")
def show_files(visit: Visit) -> Values:
    """Return what the tools of a session were used on."""
    session = visit.face.session(visit.session_id)
    path, start = visit.get("path") or None, visit.number("from") or 1
    commands = visit.face.calls(session.id, kind="terminal")
    failed = visit.face.calls(session.id, failed=True)
    return {
        "session": session,
        "tab": "files",
        "files": group_uses(visit.face.files(session.id, path)),
        "start": start,
        "listed": LISTED_FILES,
        "calls": {"commands": describe_calls(commands), "failures": describe_calls(failed)},
        "most": LISTED_USES if path is None else LISTED_FILES * LISTED_USES,
    }


def group_uses(uses: list[FileUse]) -> list[FileRow]:
    """Return files by path, those that were changed first."""
    rows: dict[str, FileRow] = {}
    for use in uses:
        row = rows.setdefault(use.path, FileRow(use.path, [], []))
        (row.changes if use.kind == "file_edit" else row.reads).append(use)
    return sorted(rows.values(), key=lambda row: (not row.changes, row.path))


def describe_calls(calls: list[CallRecord]) -> list[CallRow]:
    """Return the newest calls, each with its command or its arguments."""
    return [
        CallRow(
            call,
            truncate_to_line(
                extract_command(call.arguments) or call.arguments or "", CALL_LINE_LENGTH
            ),
        )
        for call in reversed(calls[-LISTED_CALLS:])
    ]
