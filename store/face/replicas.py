"""A replica of a store's server, which does reads that need not have the newest writes of others.

The replica has what the store has written as soon as it has replayed the log of the server up to
the place where that log ended after the last write. The servers are asked for these places only
after a write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import URL, text

from .. import inspection
from ..database import Database, Statement, parse_url, upgrade_schema
from ..errors import ConnectionLost, InvalidValue, NotAStore, ReadOnly, StoreError, Unavailable

ReplicaReadT = TypeVar("ReplicaReadT")

REPLICA_RETRY_SECONDS = 30.0
"""Seconds for which a replica that could not be used is passed over."""
REPLICA_QUERIES: dict[str, Statement[Any]] = {
    "written": Statement(text("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")),
    "replayed": Statement(text("SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')")),
    "identity": Statement(
        text("SELECT system_identifier || ' ' || current_database() FROM pg_control_system()")
    ),
}
"""The ends of both logs in bytes (None: that server replays none), and what is the same on a server
and its replicas.
"""


class Replica:
    """A replica, and the last write of the store that it is known to have."""

    def __init__(self, primary: Database, database: Database) -> None:
        self._primary, self.database = primary, database
        self._is_open, self._again_at = False, 0.0
        self._confirmed, self._needed = 0, (0, 0)

    def connect(self) -> None:
        """Connect to the replica. Raises InvalidValue if it belongs to another server."""
        self.database.open_connections()
        identities = {
            each.read(REPLICA_QUERIES["identity"].value) for each in (self._primary, self.database)
        }
        if len(identities) > 1:
            raise InvalidValue("read_url names a database that is no replica of the store's server")
        upgrade_schema(self.database)
        self._is_open = True

    def read(self, work: Callable[[Database], ReplicaReadT]) -> ReplicaReadT:
        """Do a read on the replica or, if the replica cannot do it, on the server itself."""
        if self._is_current():
            try:
                return work(self.database)
            except (Unavailable, ConnectionLost):
                self.pass_over()
            except StoreError:
                pass  # it may lack what others have written just now
        return work(self._primary)

    def _is_current(self) -> bool:
        """Tell whether the replica can be read, and has all that the store has written."""
        if time.monotonic() < self._again_at:
            return False
        try:
            if not self._is_open:
                self.connect()
            return self._has_writes()
        except StoreError:
            self.pass_over()
            return False

    def _has_writes(self) -> bool:
        number, needed = self._primary.write_number, self._needed
        if number == self._confirmed:
            return True
        if number != needed[0]:
            place = self._primary.read(REPLICA_QUERIES["written"].value)
            needed = self._needed = (number, place)
        replayed = self.database.read(REPLICA_QUERIES["replayed"].value)
        if replayed is None or replayed < needed[1]:
            return False
        self._confirmed = number
        return True

    def pass_over(self) -> None:
        """Use the replica no more for a while."""
        self._again_at = time.monotonic() + REPLICA_RETRY_SECONDS


def check_replica_url(target: str | os.PathLike[str] | URL, url: str | URL | None) -> None:
    """Raise InvalidValue for a replica (None: no replica), unless both are on a server."""
    targets = () if url is None else (target, url)
    if any(parse_url(each).get_backend_name() == "sqlite" for each in targets):
        raise InvalidValue("read_url is for a server and its replica; a file has none")


def open_replica(primary: Database, url: str | URL, *, check_reads: bool) -> Replica:
    """Return the replica of a server's store; one that cannot be used yet is tried again later.

    Raises InvalidValue for a database of another server.
    """
    database = primary.build_reader(url, inspection.ReadCheck() if check_reads else None)
    replica = Replica(primary, database)
    try:
        replica.connect()
    except (Unavailable, ConnectionLost, ReadOnly, NotAStore):
        replica.pass_over()
    except BaseException:
        replica.database.close()
        raise
    return replica
