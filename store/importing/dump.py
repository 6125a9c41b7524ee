"""Import a whole store from the file of ``export --all``, each tree unchanged or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from .. import Store
from ..errors import InvalidValue, StoreError
from ..inspection import dump
from ..text import JsonFields
from ..transcripts import Event, NoteEvent, StoreRow
from .session import ImportedSession, ImportReport


def import_whole_store(store: Store, events: Iterable[Event], report: ImportReport) -> None:
    """Import the trees of a store, and note refused ones. Raises InvalidValue, StoreError."""
    reading = _StoreRows(events, report)
    trees = reading.begin()
    taken = sum(_import_tree(store, reading, tree, report) for tree in reading.trees())
    if taken < trees:
        told = f"the file tells of {trees:,} trees of sessions, {taken:,} of them are in the store"
        report.notes.append(NoteEvent(None, told, broken=True))


class _StoreRows:
    """The rows of a file, tree by tree."""

    def __init__(self, events: Iterable[Event], report: ImportReport) -> None:
        self._events = iter(events)
        self._report = report
        self._waiting: StoreRow | None = None

    def begin(self) -> int:
        """Return the number of trees in the head. Raises InvalidValue for other schemas."""
        head = self._next()
        fields = head.fields if head and head.table == dump.STORE else {}
        dump.require_schema(fields)
        trees = fields.get("trees")
        return trees if isinstance(trees, int) else 0

    def trees(self) -> Iterator[StoreRow]:
        """Yield the first row of each tree; skip the unread rows of the tree before."""
        while row := self._waiting or self._next():
            self._waiting = None
            if row.table == dump.TREE:
                yield row

    def of_tree(self) -> Iterator[tuple[str, JsonFields]]:
        """Yield the rows of the current tree up to its end. Raises InvalidValue."""
        count = 0
        while row := self._next():
            if row.table == dump.TREE:
                self._waiting = row
                break
            if row.table == dump.END and row.fields.get("rows") == count:
                return
            count += 1
            yield row.table, row.fields
        raise InvalidValue("rows of it are missing")

    def _next(self) -> StoreRow | None:
        """Return the next row; note the lines that cannot be read."""
        for event in self._events:
            if isinstance(event, StoreRow):
                return event
            if isinstance(event, NoteEvent):
                self._report.notes.append(event)
        return None


def _import_tree(store: Store, rows: _StoreRows, tree: StoreRow, report: ImportReport) -> bool:
    """Import a tree and report its sessions; tell whether it is in the store now."""
    counts = _TreeCounts()
    try:
        number = dump.parse_tree_id(tree.fields)
        with store.database.writing() as connection:
            is_new = dump.load_tree(connection, number, counts.seen(rows.of_tree()))
    except StoreError as refused:
        told = f"the tree of sessions that begins here is left out: {refused}"
        report.notes.append(NoteEvent(tree.row, told, broken=True))
        return False
    report.sessions.extend(counts.sessions(is_new=is_new))
    return True


class _TreeCounts:
    """The messages and calls of a tree, counted while its rows pass."""

    def __init__(self) -> None:
        self._sessions: list[JsonFields] = []
        self._owners: dict[int, str | None] = {}
        self._messages: Counter[str | None] = Counter()
        self._calls: Counter[str | None] = Counter()

    def seen(self, rows: Iterable[tuple[str, JsonFields]]) -> Iterator[tuple[str, JsonFields]]:
        """Yield rows unchanged and count them."""
        for name, fields in rows:
            yield name, fields
            self._count(name, fields)

    def _count(self, name: str, fields: JsonFields) -> None:
        if name == "branches":
            self._owners[fields["branch"]] = fields.get("session_id")
        elif name == "sessions":
            self._sessions.append(fields)
        elif name == "messages":
            self._messages[self._owners.get(fields["branch"])] += 1
        elif name == "tool_calls":
            self._calls[self._owners.get(fields["branch"])] += 1

    def sessions(self, *, is_new: bool) -> Iterator[ImportedSession]:
        """Yield the report of each session; shared messages of a fork count for the other."""
        for fields in self._sessions:
            name, head = fields["id"], fields["head"]
            said = self._messages[name]
            new = said if is_new else 0
            yield ImportedSession(name, said, new, head, self._calls[name], None)
