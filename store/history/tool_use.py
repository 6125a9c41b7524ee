"""What the tools on a line were called for: its calls, those without a result, its files.

The statements are in ``tool_use.sql``. A call answered in another branch of the line is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from ..database import Queries, Row, Statement, json_sql, pause_gc
from ..database import messages as messages_table
from ..errors import InvalidValue, StoreError, quote_value
from ..formats import make_call_id
from ..messages import AttachedBytes, attach_bytes, decode_as
from ..policy import STANDARD_POLICY
from ..records import CallRecord, FileUse, OpenCall, make_call_record
from ..text import is_text, parse_object
from ..tools import (
    ALL_TOOL_KINDS,
    build_sign_switches,
    find_kind_name,
    normalise_path,
    render_signs_sql,
)
from . import lines
from .attachments import ATTACHED_CALLS, load_attached_arguments
from .facts import ANSWERED_PLACES, RUN_CALLS, StoredCallPlace, load_tool_kinds
from .lines import Line

TOOL_USE_QUERIES = Queries(
    Path(__file__).with_name("tool_use.sql"),
    texts=("path",),
    signs=render_signs_sql("r", commands_only=False),
    command_signs=render_signs_sql("r", commands_only=True),
)


ANSWERED_CALLS = TOOL_USE_QUERIES.statement("answered")
CALL_COUNT = TOOL_USE_QUERIES.statement("call_count")
STORED_CALL_PLACES = TOOL_USE_QUERIES.statement("call_places")
FILE_USES = TOOL_USE_QUERIES.statement("file_uses", FileUse)
_run_messages = messages_table.alias("m")
_moments = (
    select(
        _run_messages.c.seq,
        func.coalesce(_run_messages.c.created_at, _run_messages.c.stored_at).label("at"),
    )
    .where(lines.match_run(_run_messages))
    .order_by(_run_messages.c.seq)
    .subquery("moments")
)
MOMENTS = Statement(select(json_sql.JsonArrayText(_moments.c.at, _moments.c.seq)))


def _load_answered_calls(line: Line) -> Iterator[list[list[Any]]]:
    """Yield the columns of the calls that have a result, from each two runs that may hold both."""
    from pydantic_core import from_json  # parses long arrays in half the time of `decode`

    switches = build_sign_switches(STANDARD_POLICY)
    runs = line.ranges(1, line.pointer.head)
    for number, results in enumerate(runs, 1):
        for calls in runs[:number]:
            place = {f"call_{name}": calls[name] for name in ("branch", "first", "last")}
            columns = ANSWERED_CALLS.one(line.connection, **results, **place, **switches)
            yield [from_json(each) for each in columns]


def _load_moments(line: Line) -> list[int]:
    """Return when each message of a line was said, or stored if that is not known (ms)."""
    head = line.pointer.head
    moments: list[int] = []
    for run in line.ranges(1, head):
        moments += decode_as(list, MOMENTS.value(line.connection, **run))
    if len(moments) != head:
        raise StoreError(f"the line has {len(moments):,} of its {head:,} messages; run `verify`")
    return moments


def _load_open_calls(line: Line) -> list[StoredCallPlace]:
    """Return the calls of a line that no result answers, in order."""
    places: set[Row] = set()
    runs = line.ranges(1, line.pointer.head)
    for run in runs:
        places.update(STORED_CALL_PLACES.scan(line.connection, **run))
        places.difference_update(ANSWERED_PLACES.scan(line.connection, **run))
    if not places:
        return []
    runs = line.ranges(min(places)[0], line.pointer.head)
    calls = chain.from_iterable(RUN_CALLS.scan(line.connection, **run) for run in runs)
    return sorted(call for call in calls if call.place in places)


def _restore_records(line: Line, records: list[CallRecord]) -> list[CallRecord]:
    """Return the records of calls with their whole arguments."""
    held: dict[tuple[int, int], list[AttachedBytes]] = {}
    for run in line.ranges(1, line.pointer.head):
        if seqs := ATTACHED_CALLS.values(line.connection, **run):
            held |= load_attached_arguments(line.connection, run, seqs)
    if not held:
        return records
    restored = []
    for each in records:
        attached = held.get((each.seq, each.position))
        arguments = attach_bytes(each.arguments or "", attached) if attached else each.arguments
        restored.append(each._replace(arguments=arguments))
    return restored


def _make_answered_records(line: Line, kinds: dict[str, str]) -> list[CallRecord]:
    """Return the calls of a line that have a result, and how they ended."""
    moments: list[int] = []
    records: list[CallRecord] = []
    for columns in _load_answered_calls(line):
        seqs, positions, names, tools, arguments, failed, times, results = columns
        moments = moments or ([0, *_load_moments(line)] if seqs else [])
        if None in times:
            pairs = zip(times, results, strict=True)
            times = [moments[result] if at is None else at for at, result in pairs]
        begun = map(moments.__getitem__, seqs)
        seconds = [(end - begin) / 1000 for begin, end in zip(begun, times, strict=True)]
        kind_of = {tool: kinds.get(tool, "other") for tool in {*tools}}
        call_kinds = map(kind_of.__getitem__, tools)
        fields = (seqs, positions, names, call_kinds, arguments, map(bool, failed), seconds)
        records += map(make_call_record, zip(*fields, strict=True))
    return records


def list_open_calls(connection: Connection, session_id: str) -> list[OpenCall]:
    """Return the calls of a session's line that have no result yet, in order.

    A result appended under the ``id`` of an open call answers that call. Raises SessionNotFound.
    """
    line = Line(connection, lines.load_pointer(connection, session_id))
    taken: set[str] = set()
    found: list[OpenCall] = []
    # Of calls with one id, a result answers the newest, and of one message's the first.
    for call in sorted(_load_open_calls(line), key=lambda each: (-each.seq, each.position)):
        call_id = call.call_id
        if not call_id or call_id in taken:
            call_id = make_call_id(call.seq, call.position)
        taken.add(call_id)
        given = call.given(line).arguments
        is_empty = given is None or (isinstance(given, str) and given.strip() in ("", "{}"))
        arguments = parse_object(given) or ({} if is_empty else given)
        found.append(OpenCall(call.seq, call.position, call_id, call.name, arguments))
    return sorted(found, key=lambda each: (each.seq, each.position))


def list_calls(
    connection: Connection, session_id: str, kind: str | None = None, failed: bool | None = None
) -> list[CallRecord]:
    """Return the tool calls of a session's line in order, with how they ended.

    ``kind`` selects those of a kind of tools, in the words of the table ``tool_kinds``, ``failed``
    those that failed (True) or did not (False), and none without a result. Raises
    SessionNotFound, InvalidValue.
    """
    if failed is not None and not isinstance(failed, bool):
        raise InvalidValue(f"failed must be True, False or None, not {quote_value(failed)}")
    line = Line(connection, lines.load_pointer(connection, session_id))
    kinds = load_tool_kinds(connection)
    known = {*ALL_TOOL_KINDS, *kinds.values()}
    if kind is not None and (not is_text(kind) or kind not in known):
        there = ", ".join(sorted(known))
        raise InvalidValue(f"no tool is of the kind {quote_value(kind)}; there are {there}")
    head = line.pointer.head
    with pause_gc(head):
        answered = _restore_records(line, _make_answered_records(line, kinds))
        found = answered
        if kind is not None or failed is not None:
            found = [
                each
                for each in answered
                if kind in (None, each.kind) and failed in (None, each.failed)
            ]
    count = sum(CALL_COUNT.value(connection, **run) for run in line.ranges(1, head))
    if failed is None and len(answered) < count:
        for call in _load_open_calls(line):
            _, arguments = call.whole_arguments(line)
            name = find_kind_name(call.name, arguments) or ""
            call_kind = kinds.get(name, "other")
            if kind in (None, call_kind):
                place = call.seq, call.position, call.name
                found.append(CallRecord(*place, call_kind, arguments, None, None))
    return sorted(found)


def list_file_uses(
    connection: Connection, session_id: str, path: str | None = None
) -> list[FileUse]:
    """Return the files that the tool calls of a session's line named, in the order of the results.

    ``path`` selects one file, relative to the project or absolute. Raises SessionNotFound,
    InvalidValue.
    """
    if path is not None and not is_text(path):
        raise InvalidValue(f"path must be that of a file, not {quote_value(path)}")
    line = Line(connection, lines.load_pointer(connection, session_id))
    key = "" if path is None else normalise_path(path, line.pointer.project_root)
    chosen = {"every": int(path is None), "path": key}
    runs = line.ranges(1, line.pointer.head)
    with pause_gc(line.pointer.head):
        found = (FILE_USES.scan(connection, **run, **chosen) for run in runs)
        return sorted(chain.from_iterable(found), key=itemgetter(1, 0))
