"""The exact facts of what a compaction hides: files touched, commands with their exit codes, errors, and since when.

Models' summaries lose nearly all of them, so they are read from the tables and added to every summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, literal_column, null, or_, select, tuple_

from . import lines
from .error_texts import error_told
from .facts import ANSWERS
from .lines import Pointer, segments_cte
from .messages import decode
from .policy import Policy
from .rules import of_kind
from .schema import messages, tool_calls, tool_kinds, tool_result_paths, tool_results
from .statements import Row, Statement
from .summaries import HiddenFact, command_of, message_content

_walk = segments_cte()
_r, _c, _k, _p, _m = tool_results, tool_calls, tool_kinds, tool_result_paths, messages
_in_run = and_(  # not all of a line at once: joined with its runs, SQLite begins with the results of the whole tree
    _r.c.tree_id == bindparam("tree_id"),
    _r.c.branch == bindparam("branch"),
    _r.c.seq.between(bindparam("first"), bindparam("last")),
)
_kind = func.coalesce(_k.c.kind, literal_column("'other'"))
RESULTS = Statement(
    select(
        _r.c.branch,
        _r.c.seq,
        _r.c.tool_name,
        _kind,
        _r.c.exit_code,
        _r.c.error_prefix,
        _r.c.status,
        _c.c.arguments_form,
        _c.c.arguments,
    )
    .select_from(_r)
    .outerjoin(_k, _k.c.name == _r.c.tool_name)
    .outerjoin(_walk, _r.c.call_seq.between(_walk.c.first, _walk.c.last))
    .outerjoin(
        _c,
        and_(
            _c.c.tree_id == bindparam("tree_id"),
            _c.c.branch == _walk.c.branch,
            _c.c.seq == _r.c.call_seq,
            _c.c.position == _r.c.call_position,
        ),
    )
    .where(
        _in_run,
        or_(
            of_kind("terminal"),
            _r.c.error_prefix == literal_column("1"),
            _r.c.status == literal_column("'error'"),
        ),
    )
    .order_by(_r.c.seq)
)
"""The results of a run that the ledger tells of: output of commands, and errors."""
_answered = select(_r.c.call_seq, _r.c.call_position).where(_in_run, _r.c.call_seq.is_not(null()))
UNANSWERED = Statement(
    select(_c.c.position, _c.c.branch, _c.c.seq, _c.c.name, _kind, _c.c.arguments_form, _c.c.arguments)
    .select_from(_c)
    .outerjoin(_k, _k.c.name == _c.c.name)
    .where(
        _c.c.tree_id == bindparam("tree_id"),
        _c.c.branch == bindparam("branch"),
        _c.c.seq.between(bindparam("first"), bindparam("last")),
        tuple_(_c.c.seq, _c.c.position).not_in(_answered),  # not a join, whose answers SQLite may scan for each call
    )
    .order_by(_c.c.seq, _c.c.position)
)
"""The calls of a run that nothing in it answers."""
PATHS = Statement(
    select(_p.c.path, _r.c.tool_name, _kind)
    .select_from(_r)
    .join(_p, and_(_p.c.tree_id == bindparam("tree_id"), _p.c.branch == _r.c.branch, _p.c.seq == _r.c.seq))
    .outerjoin(_k, _k.c.name == _r.c.tool_name)
    .where(_in_run)
    .order_by(_p.c.seq, _p.c.path)
)
CONTENT = Statement(
    select(_m.c.content_form, _m.c.content).where(
        _m.c.tree_id == bindparam("tree_id"), _m.c.branch == bindparam("branch"), _m.c.seq == bindparam("seq")
    )
)

FIRST_TIME = Statement(
    select(_m.c.created_at)
    .where(
        _m.c.tree_id == bindparam("tree_id"),
        _m.c.branch == bindparam("branch"),
        _m.c.seq.between(bindparam("first"), bindparam("last")),
        _m.c.created_at.is_not(null()),
    )
    .order_by(_m.c.seq)
    .limit(literal_column("1"))
)

SOURCES = Statement(
    select(_m.c.seq, _m.c.digest, _m.c.created_at)
    .where(
        _m.c.tree_id == bindparam("tree_id"),
        _m.c.branch == bindparam("branch"),
        _m.c.seq.between(bindparam("first"), bindparam("last")),
    )
    .order_by(_m.c.seq)
)

NO_RESULT = "no result"
"""What is said of a command whose call was never answered: it may have run, or not."""
TELLING = {"file_edit": 2, "file_read": 1}
"""What is said of a file that several tools touched: that it was changed, else that it was read, else the last."""


def hidden_facts(connection: Connection, pointer: Pointer, policy: Policy, first: int, last: int) -> list[HiddenFact]:
    """Return the facts of a range of a line, oldest first, by the kinds of tools that a policy knows.

    A result belongs to the range that it stands in, wherever its call was made.
    Of errors as many as the policy's budget could take, the newest ones.
    """
    runs = [{"tree_id": pointer.tree_id, **run._asdict()} for run in lines.segments(connection, pointer, first, last)]
    kinds = json.dumps(dict(policy.tool_kinds))
    rows = [row for run in runs for row in RESULTS.rows(connection, **run, start=1, kinds=kinds)]
    results = [_kinded(row, policy) for row in rows]
    files: dict[str, str] = {}
    for path, tool_name, stored in (row for run in runs for row in PATHS.rows(connection, **run)):
        kind, before = policy.tool_kinds.get(tool_name, stored), files.pop(path, "")
        files[path] = before if TELLING.get(before, 0) > TELLING.get(kind, 0) else kind
    unanswered = [_kinded(row, policy) for row in _unanswered(connection, runs)]
    commands = _commands(results, unanswered)
    errors = _errors(connection, pointer, [row for row in results if _is_error(row)], policy.facts_chars)
    return [*(HiddenFact("file", path, kind) for path, kind in files.items()), *commands, *errors]


class Sources(NamedTuple):
    """What messages a summary is of: a SHA-256 over their digests, and their first and last moment (ms), if any."""

    digest: bytes
    times: tuple[int, int] | None


def sources(connection: Connection, pointer: Pointer, first: int, last: int, pinned: tuple[int, ...]) -> Sources:
    """Return what messages a summary of a range is of; the pinned ones stay beside it."""
    runs = [run._asdict() for run in lines.segments(connection, pointer, first, last)]
    rows = [row for run in runs for row in SOURCES.rows(connection, tree_id=pointer.tree_id, **run)]
    hidden = [row for row in rows if row[0] not in pinned] if pinned else rows
    times = [moment for _, _, moment in hidden if moment is not None]
    digest = sha256(b"".join(digest for _, digest, _ in hidden)).digest()
    return Sources(digest, (min(times), max(times)) if times else None)


def began(connection: Connection, pointer: Pointer, first: int, last: int) -> int | None:
    """Return the first time (ms) that a message of a range has; None where none has one."""
    for run in lines.segments(connection, pointer, first, last):
        row = FIRST_TIME.row(connection, tree_id=pointer.tree_id, **run._asdict())
        if row:
            return int(row[0])
    return None


def _unanswered(connection: Connection, runs: list[dict[str, int]]) -> Iterable[Row]:
    """Return the calls that no run of a line answers, neither their own nor a later one."""
    waiting: dict[Row, Row] = {}
    for run in runs:
        for answered in ANSWERS.rows(connection, **run) if waiting else ():
            waiting.pop(answered, None)
        for position, *call in UNANSWERED.rows(connection, **run):
            waiting[call[1], position] = tuple(call)
    return waiting.values()


def _kinded(row: Row, policy: Policy) -> Row:
    branch, seq, tool_name, kind, *rest = row
    return branch, seq, tool_name, policy.tool_kinds.get(tool_name, kind), *rest


def _is_error(row: Row) -> bool:
    _, _, _, kind, exit_code, error_prefix, status, _, _ = row
    return bool(error_prefix) or status == "error" or (kind == "terminal" and exit_code not in (None, 0))


def _commands(results: list[Row], unanswered: list[Row]) -> Iterator[HiddenFact]:
    """Yield what was run, in the order of the results; a call without any stands where it was made."""
    called = [(row[1], *row[3:], NO_RESULT) for row in unanswered]
    for _, seq, _, kind, exit_code, _, _, form, arguments in results:
        called.append((seq, kind, form, arguments, None if exit_code is None else f"exit {exit_code}"))
    for _, kind, form, arguments, detail in sorted(called, key=itemgetter(0)):
        if kind == "terminal" and arguments is not None:
            command = command_of(decode(arguments) if form == "json" else arguments)
            if command:
                yield HiddenFact("command", command, detail)


def _errors(connection: Connection, pointer: Pointer, failed: list[Row], room: int) -> list[HiddenFact]:
    """Return the newest errors, until their texts have no more room."""
    errors: list[HiddenFact] = []
    seen: set[str] = set()
    for row in reversed(failed):
        if room <= 0:
            break
        error = _error(connection, pointer, row)
        room -= 0 if error.text in seen else len(error.text)
        seen.add(error.text)
        errors.append(error)
    return errors[::-1]


def _error(connection: Connection, pointer: Pointer, row: Row) -> HiddenFact:
    branch, seq, tool_name, *_ = row
    stored = CONTENT.row(connection, tree_id=pointer.tree_id, branch=branch, seq=seq)
    form, content = stored or (None, None)
    text = message_content({"content": decode(content) if form == "json" and content else content})
    return HiddenFact("error", error_told(text), tool_name)
