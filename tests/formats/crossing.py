"""Recorded conversations through every format and ready policy, each request judged.

A file is imported; the request of each of its sessions is written in each format by each policy,
and that of some positions on the way there. Then each session crosses: the request in one format is
appended as messages of that format, must come out equal, and is written in every other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from judge import JUDGES, complaints, misfits, own_types

from store import Policy, Store, StoreError, View
from store.errors import UnknownTranscript
from store.importing import import_file
from store.policy import POLICIES

Message = dict[str, Any]

RAW, AGENT = Policy.named("raw"), Policy.named("agent")
TYPED = ("raw", "agent", *(f"in as {name}" for name in JUDGES))
"""Ways whose requests the providers' own types judge, too."""
ON_THE_WAY = 12
"""Positions of a session at which its request is judged, too."""


class Request(NamedTuple):
    """One request that was judged: of which file and session, how it was made, what is wrong."""

    file: str
    kind: str
    way: str
    """The policy by which it was made, or the format as which its messages came in."""
    format: str
    wrong: list[str]


class Made(NamedTuple):
    """A request as it was made, None where it could not be."""

    way: str
    format: str
    view: View | None
    wrong: tuple[str, ...] = ()


def requests(path: Path, *, typed: bool = True) -> Iterator[Request]:
    """Yield the requests of a file; none of one that nothing reads.

    They are judged by the providers' own types, too, where they are ``typed``.
    """
    with Store(":memory:") as store:
        for kind, session_id in _sessions(store, path):
            now = store.session(session_id).updated_at
            for made in _made(store, session_id, now):
                yield Request(path.name, kind, made.way, made.format, _wrong(made, typed=typed))


def _wrong(made: Made, *, typed: bool) -> list[str]:
    found = [*made.wrong]
    if made.view:
        found += complaints(made.format, made.view.messages, made.view.system)
    if made.view and typed and made.way in TYPED and own_types(made.format):
        found += misfits(made.format, made.view.messages)
    return found


def _sessions(store: Store, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and id of each session of a file, once it is in the store."""
    try:
        report = import_file(store, path)
    except UnknownTranscript:
        return
    for session in report.sessions:
        yield report.kind, session.id


def _made(store: Store, session_id: str, now: int) -> Iterator[Made]:
    """Yield a session's requests: by each policy, on the way there, and after each crossing."""
    for policy, name in product(POLICIES, JUDGES):
        view = store.view(session_id, Policy.named(policy), format=name, now=now)
        yield Made(policy, name, view)
    for at, name in product(_on_the_way(store.session(session_id).head), JUDGES):
        view = store.view(session_id, AGENT, format=name, now=now, at=at)
        yield Made("agent, on the way", name, view)
    for name in JUDGES:
        yield from _crossed(store, session_id, name, now)


def _on_the_way(head: int) -> list[int]:
    return sorted({max(1, head * number // ON_THE_WAY) for number in range(ON_THE_WAY)})


def _crossed(store: Store, session_id: str, given: str, now: int) -> Iterator[Made]:
    """Yield requests once one has come in as messages of its format; the first is how it came."""
    way = f"in as {given}"
    said = store.view(session_id, RAW, format=given, now=now).messages
    other = store.create_session().id
    try:
        store.append(other, said, format=given, dedupe="off")
    except StoreError as refused:
        yield Made(way, given, None, (f"does not come in: {refused}",))
        return
    back = [each.message for each in store.messages(other)]
    yield Made(way, given, None, () if back == said else ("does not come out as it came in",))
    for name in JUDGES:
        yield Made(way, name, store.view(other, RAW, format=name, now=now))
