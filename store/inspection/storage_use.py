"""The bytes that a store takes, as a whole and by its parts.

Tables are measured by their pages. Sessions, owners, sources and months are measured by the words
of their messages and calls, which are most of a store. Messages that only forks show, since their
session was erased, count under no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, func, literal_column, select, text

from ..clock import EPOCH
from ..database import (
    COPIES,
    Statement,
    add_suffix,
    branches,
    load_page_bytes,
    load_table_bytes,
    messages,
    sessions,
)
from ..errors import check_choice
from ..history import CONTENT_BYTES, DAY_MS
from ..records import Size, SizePart

SEARCH_PREFIX = "search_"
_FILE = Statement(text("SELECT file FROM pragma_database_list WHERE name = 'main'"))
_day: ColumnElement[int] = messages.c.stored_at // literal_column(str(DAY_MS))
KEYS: dict[str, ColumnElement[Any]] = {
    "session": branches.c.session_id,
    "owner": sessions.c.owner,
    "source": sessions.c.source,
    "month": _day,
}
"""What the words of messages are summed by; days are added up to months afterwards."""
SIZE_KEYS = ("table", *KEYS)
"""The kinds of parts by which `Store.size` measures a store."""


@cache
def build_size_sums(by: str, table: Table) -> Statement[Any]:
    """Build the sums of the words in a table, and the number of its rows, by a key."""
    of_branch = and_(branches.c.tree_id == table.c.tree_id, branches.c.branch == table.c.branch)
    of_session = and_(
        sessions.c.tree_id == branches.c.tree_id, sessions.c.id == branches.c.session_id
    )
    joined = table.join(branches, of_branch).outerjoin(sessions, of_session)
    if table is not messages:
        place = (table.c[name] == messages.c[name] for name in ("tree_id", "branch", "seq"))
        joined = joined.join(messages, and_(*place))
    sums = CONTENT_BYTES[table], func.count()
    return Statement(select(KEYS[by], *sums).select_from(joined).group_by(KEYS[by]))


def measure_size(connection: Connection, by: str = "table") -> Size:
    """Return the bytes that the store takes, as a whole and ``by`` its parts.

    ``by`` is ``table``, with the indexes of each (no parts where SQLite was built without
    ``dbstat``), or ``session``, ``owner``, ``source`` or ``month`` (of storing, in UTC): the words
    of their messages and calls. A server tells no free bytes, and its log is not that of one
    database. Raises InvalidValue.
    """
    check_choice(SIZE_KEYS, "by", by)
    pages = load_page_bytes(connection)
    tables = load_table_bytes(connection) or {}
    search = sum(size for name, size in tables.items() if name.startswith(SEARCH_PREFIX))
    is_file = connection.dialect.name == "sqlite"
    log = _stat_file(add_suffix(Path(_FILE.value(connection)), "-wal")) if is_file else 0
    copies = sum(_stat_file(Path(each.path)) for each in COPIES.rows(connection))
    if by == "table":
        parts = [SizePart(name, size, None) for name, size in tables.items()]
    else:
        parts = [*_sum_parts(connection, by)]
    parts.sort(
        key=lambda each: ((each.name or "") if by == "month" else "", -each.bytes, each.name or "")
    )
    return Size(pages.used, pages.free, log, copies, search, tuple(parts))


def _stat_file(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _sum_parts(connection: Connection, by: str) -> Iterator[SizePart]:
    """Yield the words of messages and calls by a key, with the number of messages."""
    words, counts = Counter[str | None](), Counter[str | None]()
    for table in CONTENT_BYTES:
        for key, size, rows in build_size_sums(by, table).rows(connection):
            name = key
            if by == "month":
                name = (EPOCH + timedelta(days=key)).date().isoformat()[:7]
            words[name] += size
            counts[name] += rows if table is messages else 0
    for name, size in words.items():
        yield SizePart(name, size, counts[name])
