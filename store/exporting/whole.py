"""Export a whole store as rows from which `import_file` restores it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .. import Store
from ..inspection import dump
from ..text import JsonFields
from .files import Exported, FilePath, render_json_lines, write_private_file


def export_store(store: Store, path: FilePath, *, replace: bool = False) -> Exported:
    """Write every session of a store, with all rows that belong to it, to a file.

    `import_file` restores the store from the file. The file is readable by its owner alone, and is
    written whole or not at all. All rows are compared with their digests and seals. Raises Damaged,
    and StoreError, also if the file exists, unless ``replace``.
    """
    counts: Counter[str] = Counter()
    lines = store_lines(store, counts)
    file = write_private_file(path, lines, store=store.database.path, replace=replace)
    return Exported(file, counts["sessions"], counts["messages"])


def store_lines(store: Store, counts: Counter[str], *, ascii_only: bool = False) -> Iterator[str]:
    """Return the rows of a store as lines, each an object of one key; count them by table."""
    return render_json_lines(_dump_counted_rows(store, counts), ascii_only=ascii_only)


def _dump_counted_rows(store: Store, counts: Counter[str]) -> Iterator[JsonFields]:
    for table, fields in dump.dump_store(store.database):
        counts[table] += 1
        yield {table: fields}
