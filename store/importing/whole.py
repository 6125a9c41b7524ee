"""A whole store, as `export --all` wrote it: each of its trees is taken as it was, or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..errors import InvalidValue, StoreError
from ..face import Store
from ..inspection import dump
from ..text import Fields
from ..transcripts import Event, Noted, StoreRow
from .report import ImportedSession, ImportReport


def import_whole(store: Store, events: Iterable[Event], report: ImportReport) -> None:
    """Take the trees of a store, and note those that cannot be. Raises InvalidValue, StoreError."""
    reading = _Rows(events, report)
    trees = reading.begin()
    taken = sum(_take_tree(store, reading, tree, report) for tree in reading.trees())
    if taken < trees:
        told = f"the file tells of {trees:,} trees of sessions, {taken:,} of them are in the store"
        report.notes.append(Noted(None, told, broken=True))


class _Rows:
    """The rows of a file, tree by tree."""

    def __init__(self, events: Iterable[Event], report: ImportReport) -> None:
        self._events = iter(events)
        self._report = report
        self._waiting: StoreRow | None = None

    def begin(self) -> int:
        """Return how many trees the head tells of. Raises InvalidValue for other schemas."""
        head = self._next()
        fields = head.fields if head and head.table == dump.STORE else {}
        dump.require_schema(fields)
        trees = fields.get("trees")
        return trees if isinstance(trees, int) else 0

    def trees(self) -> Iterator[StoreRow]:
        """Yield the row that each tree begins with; what is left of one is passed over."""
        while row := self._waiting or self._next():
            self._waiting = None
            if row.table == dump.TREE:
                yield row

    def of_tree(self) -> Iterator[tuple[str, Fields]]:
        """Yield the rows of the tree that was begun last, to its end. Raises InvalidValue."""
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
        """Return the next row; what cannot be read is noted."""
        for event in self._events:
            if isinstance(event, StoreRow):
                return event
            if isinstance(event, Noted):
                self._report.notes.append(event)
        return None


def _take_tree(store: Store, rows: _Rows, tree: StoreRow, report: ImportReport) -> bool:
    """Take a tree, and tell in the report of its sessions; tell whether it is in the store now."""
    counts = _Counts()
    try:
        number = dump.parse_tree_id(tree.fields)
        with store.database.writing() as connection:
            is_new = dump.load_tree(connection, number, counts.seen(rows.of_tree()))
    except StoreError as refused:
        told = f"the tree of sessions that begins here is left out: {refused}"
        report.notes.append(Noted(tree.row, told, broken=True))
        return False
    report.sessions.extend(counts.sessions(is_new=is_new))
    return True


class _Counts:
    """What a tree has, counted while its rows go by."""

    def __init__(self) -> None:
        self._sessions: list[Fields] = []
        self._owners: dict[int, str | None] = {}
        self._messages: Counter[str | None] = Counter()
        self._calls: Counter[str | None] = Counter()

    def seen(self, rows: Iterable[tuple[str, Fields]]) -> Iterator[tuple[str, Fields]]:
        """Yield rows as they are."""
        for name, fields in rows:
            yield name, fields
            self._count(name, fields)

    def _count(self, name: str, fields: Fields) -> None:
        if name == "branches":
            self._owners[fields["branch"]] = fields.get("session_id")
        elif name == "sessions":
            self._sessions.append(fields)
        elif name == "messages":
            self._messages[self._owners.get(fields["branch"])] += 1
        elif name == "tool_calls":
            self._calls[self._owners.get(fields["branch"])] += 1

    def sessions(self, *, is_new: bool) -> Iterator[ImportedSession]:
        """Yield what became of each session; what a fork shares is told of the other."""
        for fields in self._sessions:
            name, head = fields["id"], fields["head"]
            said = self._messages[name]
            new = said if is_new else 0
            yield ImportedSession(name, said, new, head, self._calls[name], None)
