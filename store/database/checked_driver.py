"""A driver's connection on which a reader's rows are compared before they are read."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from sqlalchemy import Connection

from .lease import Lease


class ReadCheck(Protocol):
    """What compares rows with what was stored."""

    def __call__(
        self, connection: Connection, text: str, values: dict[str, Any], seen: set[Any], /
    ) -> None:
        """Compare the rows that a query is going to read. Raises Damaged.

        ``seen`` is for what was compared in the same transaction.
        """


class CheckedDriver:
    """Passes everything on to the driver's connection of a lease, a reader's queries checked."""

    def __init__(self, lease: Lease, check: ReadCheck) -> None:
        self._driver, self._check = lease.driver, check
        self._lease = weakref.ref(lease)
        self._seen: set[Any] = set()
        self._is_checking = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def execute(self, text: str, values: Any = ()) -> Any:
        """Run a statement; what the check itself reads is not checked again."""
        lease = self._lease()
        if lease and isinstance(values, dict) and not (lease.writes or self._is_checking):
            self._is_checking = True
            try:
                self._check(lease.connection, text, values, self._seen)
            finally:
                self._is_checking = False
        return self._driver.execute(text, values)

    def rollback(self) -> None:
        """End a reader's transaction."""
        self._seen = set()
        self._driver.rollback()
