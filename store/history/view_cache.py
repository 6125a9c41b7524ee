"""The cache of views: what an open store keeps of a tree in memory, so that nothing is made twice.

It holds five kinds of values, each under a name of its own:

- The newest rows of a branch (`raw_messages`): a chat app reads nearly all of them at each turn.
- The compactions of a tree (`view.visible_set`): a long session has hundreds, and every view and
  check needs all of them.
- Verdicts of the rules (`view.verdicts`), by line, purpose and policy: only what may have changed
  is judged again.
- Rendered views (`view.build`), by line, format and policy: only new messages are rendered.
- Values computed from the contents of tool results, such as the length of a short form: no content
  is read again for them.

**When a cached value is valid.** A stored row never changes, and a branch only gets longer. So
whatever was made of the first messages of a line is what would be made of them again, wherever the
heads of sessions are, as long as everything else that it depends on is the same. `Validity` names
that: it is stored with each value, and compared before each use with what is read in the
transaction of the request. Only redactions and erasures take back stored rows; they are counted,
and the counts are part of every `Validity`. So a value that depends on rows alone needs nothing
more, and what a view depends on besides (the kinds of tools, the project's root, what compactions
leave of the line) is compared with it.

The branch is part of the name of whatever belongs to a line. A fork, new messages after a rewind,
and another session's way through the same messages are on branches of their own, so none of them is
given the values of another line.

A valid value of a shorter line is extended by its user. The user makes everything again if the line
is shorter than the cached one, or if a part depends on the whole line (only the newest pictures are
sent).

**Who adds values.** A transaction that writes adds nothing, since it may be rolled back, and makes
its views again. It does use values of results, because others should not wait while it reads
contents. If the store caches nothing, such values are kept as long as the object itself, which is
one request's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, bindparam, exists, select

from ..database import (
    BIG_INTEGER,
    Statement,
    compaction_records,
    get_lease,
    measure_bytes,
    token_counts,
    usages,
)
from ..errors import SessionNotFound
from . import lines
from .erasure_log import CHANGE_COUNTS, ChangeCounts, count_changes
from .lines import Pointer

ValueName = tuple[Hashable, ...]
"""The name of a value in its tree: its kind, its branch, and its policy."""
SubjectT = TypeVar("SubjectT", bound=Hashable)
ComputedT = TypeVar("ComputedT")


class TreeState(NamedTuple):
    """The numbers of a tree's `ChangeCounts`, and which kinds of rows it has at all.

    Most trees have no compactions, usages or counted tokens. So a view asks first what there is,
    and then for that only: on a server a statement costs as much as the rows of many messages.
    """

    redactions: int
    erasures: int
    has_records: bool
    has_usages: bool
    has_counts: bool


_state_tree_id = bindparam("tree_id", type_=BIG_INTEGER)
_STATE_COLUMNS = [
    *CHANGE_COUNTS.selected,
    *(
        exists().where(table.c.tree_id == _state_tree_id).label(f"has_{name}")
        for name, table in {
            "records": compaction_records,
            "usages": usages,
            "counts": token_counts,
        }.items()
    ),
]
STATE_OF_TREE = Statement(select(*_STATE_COLUMNS), row=TreeState)
POINTER_AND_STATE = Statement(lines.SELECT_POINTER.add_columns(*_STATE_COLUMNS))


def load_tree_state(connection: Connection, tree_id: int) -> TreeState:
    """Return what a tree has besides its messages."""
    return STATE_OF_TREE.one(connection, tree_id=tree_id)


def load_pointer_and_state(connection: Connection, session_id: str) -> tuple[Pointer, TreeState]:
    """Return the pointer of a session, and what its tree has. Raises SessionNotFound."""
    row = lines.find_session_row(connection, POINTER_AND_STATE, session_id)
    if row is None:
        raise SessionNotFound(session_id)
    end = len(row) - len(TreeState._fields)
    return Pointer(*row[:end]), TreeState(*row[end:])


class Validity(NamedTuple):
    """Everything that a cached value depends on besides its name and the length of the line.

    ``kinds`` are the kinds of tools as text, ``visible`` is what compactions leave of the line.
    """

    changes: ChangeCounts
    project_root: str | None = None
    kinds: str = ""
    visible: object = None


class ComputedValues(NamedTuple):
    """Values by the result that they were computed from, and their size in bytes."""

    by_subject: dict[Any, Any]
    size: int


class ViewCache:
    """The cached values of a tree in a connection's store, for one request.

    ``is_enabled`` is false if lines are not cached: for a writer, and if the store caches nothing.
    ``memo`` holds values that one request needs several times. The changes of a
    tree are not counted again where its ``state`` is known.
    """

    def __init__(
        self, connection: Connection, tree_id: int, state: TreeState | None = None
    ) -> None:
        self._connection, self._tree_id, self._state = connection, tree_id, state
        lease = get_lease(connection)
        self._cache, self._read_mark = lease.kept, lease.since
        self.is_enabled = lease.kept.limit > 0 and not lease.writes
        self.memo: dict[ValueName, Any] = {}

    @cached_property
    def of_rows(self) -> Validity:
        """The validity of a value that depends on stored rows only."""
        state = self._state or count_changes(self._connection, self._tree_id)
        return Validity(ChangeCounts(state.redactions, state.erasures))

    def send_changes(self) -> None:
        """Send a server the query for the changes of the tree ahead."""
        CHANGE_COUNTS.send(self._connection, tree_id=self._tree_id)

    def has(self, name: ValueName) -> bool:
        """Tell whether there is a value, valid or not."""
        return self._cache.get((self._tree_id, *name)) is not None

    def load(self, name: ValueName, validity: Validity | None = None) -> Any:
        """Return a value, None if there is none that is still valid."""
        stored, value = self._cache.get((self._tree_id, *name)) or (None, None)
        return value if stored == (validity or self.of_rows) else None

    def save(
        self, name: ValueName, value: object, size: int, validity: Validity | None = None
    ) -> None:
        """Cache a value of about ``size`` bytes in place of the one before."""
        entry = (validity or self.of_rows, value)
        self._cache.put((self._tree_id, *name), entry, size, self._read_mark)

    def count_view(self, *, hit: bool) -> None:
        """Count a view that continued from the cache, or one that was made anew."""
        self._cache.counters.add(("view", "memory" if hit else "anew"))

    def count(self, *, hit: bool) -> None:
        """Count a request that a value was of use for, or one that was made anew."""
        self._cache.count(hit=hit)

    def load_or_compute(
        self,
        name: ValueName,
        subjects: Iterable[SubjectT],
        compute: Callable[[list[SubjectT]], dict[SubjectT, ComputedT]],
    ) -> dict[SubjectT, ComputedT]:
        """Return the values of at least these results; ``compute`` makes those not cached yet."""
        known: ComputedValues = self.memo.get(name) or self.load(name) or ComputedValues({}, 0)
        if new := [each for each in subjects if each not in known.by_subject]:
            fresh = compute(new)
            known = ComputedValues(known.by_subject | fresh, known.size + measure_bytes(fresh))
            self.save(name, known, known.size)
        self.memo[name] = known
        return known.by_subject
