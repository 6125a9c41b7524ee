"""A whole store, as rows of which `import_file` makes it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..face import Store
from ..inspection import dump
from ..text import Fields
from .files import Exported, FilePath, json_lines, write_private


def export_store(store: Store, path: FilePath, *, replace: bool = False) -> Exported:
    """Write every session with all that was made of them to a file.

    `import_file` makes the store again of it. The file is readable by its owner alone, and whole or
    not there. All rows are compared with their digests and seals. Raises Damaged, and StoreError,
    also where the file exists, unless ``replace``.
    """
    counts: Counter[str] = Counter()
    lines = store_lines(store, counts)
    file = write_private(path, lines, store=store.database.path, replace=replace)
    return Exported(file, counts["sessions"], counts["messages"])


def store_lines(store: Store, counts: Counter[str], *, ascii_only: bool = False) -> Iterator[str]:
    """Return the rows of a store as lines, each an object of one key; count those of each table."""
    return json_lines(_rows(store, counts), ascii_only=ascii_only)


def _rows(store: Store, counts: Counter[str]) -> Iterator[Fields]:
    for table, fields in dump.dump_store(store.database):
        counts[table] += 1
        yield {table: fields}
