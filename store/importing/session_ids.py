"""Choose the ids for the sessions of a file: its own ids, the caller's, or free ones.

An import for an owner may not touch the sessions of others, and must not reveal the owner of an id.
So a session whose id belongs to another owner gets an id made from that id and the owner's name. It
is the same each time, so that a later import finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import TypeAlias

from .. import Owned, Scoped, Steps, Store
from ..errors import SessionExists, SessionNotFound, StoreError, quote_value
from ..text import truncate
from ..transcripts import Event, SessionEvent

ImportTarget: TypeAlias = Store | Scoped
"""The store, whole or of one owner, that a file is imported into."""
AnySteps: TypeAlias = Steps | Owned
"""The steps of a transaction on it."""

KEPT_ID_POINTS = 400
"""Code points of a taken id that are part of a new one."""
NEW_ID_LIMIT = 16
"""New ids that are tried for one that is taken."""
PARENT_SESSION_KEY = "parent_session"
"""The metadata key under which a session names its parent session."""


class WantedIds:
    """Session ids as the caller wants them: for the first session and those named after it."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._first: str | None = None

    def rename(self, event: Event) -> Event:
        """Return an event; a session and its parent get their new ids."""
        if self._wanted is None or not isinstance(event, SessionEvent):
            return event
        self._first = first = self._first or event.session_id
        metadata = dict(event.metadata)
        if metadata.get(PARENT_SESSION_KEY) == first:
            metadata[PARENT_SESSION_KEY] = self._wanted
        stem = event.stem and event.stem._replace(session_id=self._renamed(event.stem.session_id))
        name = self._renamed(event.session_id)
        return event._replace(session_id=name, metadata=metadata, stem=stem)

    def _renamed(self, name: str) -> str:
        if self._wanted is None or self._first is None or not name.startswith(self._first):
            return name
        return self._wanted + name.removeprefix(self._first)


class OwnerIds:
    """Session ids that an owner may have; an owner named in the file is ignored.

    ``wanted`` is an id that the caller has chosen; no other id replaces it.
    """

    def __init__(self, scoped: Scoped, wanted: str | None) -> None:
        self._scoped = scoped
        self._known = {} if wanted is None else {wanted: wanted}

    def rename(self, event: Event) -> Event:
        """Return an event; a session and its parent get ids of the owner's."""
        if not isinstance(event, SessionEvent):
            return event
        name = self._known.get(event.session_id) or self._found(event.session_id)
        self._known[event.session_id] = name
        metadata = dict(event.metadata)
        if isinstance(metadata.get(PARENT_SESSION_KEY), str):
            metadata[PARENT_SESSION_KEY] = self._known.get(
                metadata[PARENT_SESSION_KEY], metadata[PARENT_SESSION_KEY]
            )
        stem = event.stem
        if stem:
            stem = stem._replace(session_id=self._known.get(stem.session_id, stem.session_id))
        return event._replace(session_id=name, owner=None, metadata=metadata, stem=stem)

    def _found(self, wanted: str) -> str:
        """Return the id of the owner's session made for this id, else a free id."""
        taken = {*self._known.values()}
        names = [name for name in self._choices(wanted) if name not in taken]
        made = filter(self._is_own, names[:2])
        found = next(made, None) or next(filter(self._is_open, names), None)
        if found is None:
            raise StoreError(f"no id is free for the session {quote_value(wanted)} of the file")
        return found

    def _choices(self, wanted: str) -> Iterator[str]:
        yield wanted
        for number in range(NEW_ID_LIMIT):
            told = f"{self._scoped.owner}\0{wanted}\0{number}".encode("utf-8", "surrogatepass")
            ending = blake2b(told, digest_size=8).hexdigest()
            yield f"{truncate(wanted, KEPT_ID_POINTS)}-{ending}"

    def _is_own(self, name: str) -> bool:
        try:
            self._scoped.session(name)
        except SessionNotFound:
            return False
        return True

    def _is_open(self, name: str) -> bool:
        """Tell whether a session of this id belongs to the owner or can be created."""
        if self._is_own(name):
            return True
        try:
            self._scoped.atomically(partial(_try_session_id, name))
        except SessionExists:
            return False
        except _FreeId:
            return True
        raise AssertionError("a trial is taken back")


class _FreeId(Exception):
    """Report that an id is free."""


def _try_session_id(name: str, steps: Owned) -> None:
    steps.create_session(name)
    raise _FreeId
