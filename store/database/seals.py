"""A row's seal: the SHA-256 of everything in it that never changes once it is written.

A seal is stored beside its row, so it reveals changes made without the store. It has no key: it
detects damage and carelessness, not somebody who seals his own changes.

NULL values are left out. So a revision may add a column that is NULL in existing rows, and their
seals stay valid; a revision that fills it seals these rows anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import Table

SEAL_COLUMN = "sealed"
"""The column that holds a row's seal."""


def list_sealed_columns(table: Table) -> tuple[str, ...]:
    """Return the columns that a table's seals cover, in the order of their names.

    These are all columns except those that may change.
    """
    columns = (each for each in table.c if not each.info.get("changes"))
    return tuple(sorted(str(each.name) for each in columns if each.name != SEAL_COLUMN))


def compute_seal(names: Iterable[str], values: Iterable[object]) -> bytes:
    """Return the seal of a row's values, given with the names of their columns, in that order."""
    from pydantic_core import to_json

    row = zip(names, values, strict=True)
    held = {name: value for name, value in row if value is not None}
    return sha256(to_json(held, bytes_mode="hex")).digest()
