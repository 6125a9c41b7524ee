"""Measures of reading: loads, pages, the newest messages, views, lists, depth, bytes on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from store import Policy, Store
from store.history import sessions as known_sessions

from . import alone, rivals
from .rivals import Raw
from .stage import SESSION, SMALL, Stage, batches, equal
from .timing import Pair, Times, interleaved
from .workload import ROOT, conversation

Found = Iterator[tuple[str, Pair | float]]
"""Lines of the table: their name and two medians, or a figure."""

DEPTH = 100
AGAIN = ("view", "an agent's view", "context")
"""What is asked for again, in that order."""
DEFAULT = Policy()
AGENT = Policy.named("agent")
PROVIDERS = ("responses", "anthropic", "gemini")


def disk(stage: Stage) -> Found:
    """Compare the files' sizes with the bytes of what was said."""
    stage.normal.purge()
    stage.raw_normal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ours, raw = (path.stat().st_size / stage.payload for path in (stage.path, stage.raw_path))
    yield "disk", Pair(Times(ours, ours), Times(raw, raw))


def load_all(stage: Stage) -> Found:
    """Read the whole session."""
    loaded = [each.message for each in stage.normal.messages(SESSION)]
    equal(loaded, stage.raw_normal.messages(SESSION))
    equal(loaded, list(conversation(stage.size)))
    del loaded
    ours, raw = stage.normal.messages, stage.raw_normal.messages
    yield "load all", interleaved(lambda _: ours(SESSION), lambda _: raw(SESSION), stage.pace)


def pages(stage: Stage) -> Found:
    """Iterate the session in pages of 500.

    Look at the memory that takes in a process of its own.
    """
    ours, raw = stage.normal.pages, stage.raw_normal.pages
    yield (
        "iterate in pages",
        interleaved(
            lambda _: sum(map(len, ours(SESSION))),
            lambda _: sum(map(len, raw(SESSION))),
            stage.pace,
        ),
    )
    sides = [alone.run(f"pages_{side}", path, SESSION) for side, path in stage.paths.items()]
    for side in sides:
        equal(side["count"], stage.size)
    ours_peak, raw_peak = (Times(side["mib"], side["mib"]) for side in sides)
    yield "pages: peak memory", Pair(ours_peak, raw_peak)


def newest(stage: Stage) -> Found:
    """Read the newest 20 messages of a session whose head is not known.

    First where nothing is kept of it, then again and again where it is.
    """
    raw, keeping = stage.raw_normal, stage.normal

    def ours(session: str, store: Store = stage.forgetful) -> list[Any]:
        return store.messages(session, -20)

    def by_hand(_: object) -> list[Any]:
        return raw.newest(SESSION, 20)

    equal([each.message for each in ours(SESSION)], by_hand(None))
    yield "newest 20", interleaved(lambda _: ours(SESSION), by_hand, stage.pace)
    ours(SESSION, keeping)
    yield "newest 20 again", interleaved(lambda _: ours(SESSION, keeping), by_hand, stage.pace)
    yield (
        "newest 20: against 100",
        interleaved(lambda _: ours(SESSION), lambda _: ours(SMALL), stage.pace),
    )


def view(stage: Stage) -> Found:
    """Compute the view of the whole session, against a load by hand and the rules in Python."""
    store, raw, now = stage.forgetful, stage.raw_normal, stage.now

    def by_hand(_: object) -> list[Any]:
        return rivals.view(raw.messages(SESSION), now, ROOT)

    equal(store.view(SESSION, now=now).messages, by_hand(None))
    yield (
        "view, all rules",
        interleaved(lambda _: store.view(SESSION, now=now), by_hand, stage.pace),
    )


def view_again(stage: Stage) -> Found:
    """Compute the view and the request after three more messages, against the whole by hand.

    So for the newest messages, against the same by hand.
    """
    store, raw, now = stage.normal, stage.raw_normal, stage.now

    def say_more() -> None:
        said = stage.more(3)
        store.append(SESSION, said)
        raw.append(SESSION, said)

    def by_hand(_: object) -> list[Any]:
        return rivals.view(raw.messages(SESSION), now, ROOT)

    asked: tuple[Callable[[object], object], ...] = (
        lambda _: store.view(SESSION, now=now),
        lambda _: store.view(SESSION, AGENT, now=now),
        lambda _: store.context(SESSION, policy=DEFAULT, now=now),
    )
    for name, ours in zip(AGAIN, asked, strict=True):
        yield f"{name} again, 3 more messages", interleaved(ours, by_hand, stage.pace, say_more)
    yield (
        "newest 20 again, 3 more messages",
        interleaved(
            lambda _: store.messages(SESSION, -20),
            lambda _: raw.newest(SESSION, 20),
            stage.pace,
            say_more,
        ),
    )


def view_foreign(stage: Stage) -> Found:
    """Compute the view in the format of each other provider, against that of a chat."""
    store, now = stage.forgetful, stage.now
    for name in PROVIDERS:
        yield (
            f"view for {name}, against chat",
            interleaved(
                lambda _, name=name: store.view(SESSION, now=now, format=name),  # type: ignore[misc]
                lambda _: store.view(SESSION, now=now),
                stage.pace,
            ),
        )


def depth(stage: Stage) -> Found:
    """Read a line of a hundred branches, against one of equal length in a single branch."""
    store, deep = stage.normal, _grow(stage)
    equal(
        [each[:2] for each in store.messages(deep)],
        [each[:2] for each in store.messages("shallow")],
    )
    reads: dict[str, Callable[[str], object]] = {
        "load": store.messages,
        "newest 20": lambda session: stage.forgetful.messages(session, -20),
        "view": lambda session: stage.forgetful.view(session, now=stage.now),
    }
    for name, read in reads.items():
        yield f"depth 100 against 1: {name}", _against(read, deep, "shallow", stage)


def _grow(stage: Stage) -> str:
    """Write the same messages to a session of one branch and to a chain of forks.

    Return the last of the chain.
    """
    store, part, deep = stage.normal, max(1, stage.size // DEPTH), "deep-0"
    stage.create("shallow")
    stage.create(deep)
    for number, batch in enumerate(batches(conversation(part * DEPTH), part)):
        deep = store.fork(deep, session_id=f"deep-{number}").id if number else deep
        store.append(deep, batch)
        store.append("shallow", batch)
    return deep


def _against(read: Callable[[str], object], first: str, second: str, stage: Stage) -> Pair:
    return interleaved(lambda _: read(first), lambda _: read(second), stage.pace)


def list_sessions(stage: Stage) -> Found:
    """List the 200 sessions that were active last, of many, one in each second."""
    many, metadata = stage.extent.sessions, {"model": "m-1", "mode": "agent"}
    raw = Raw(stage.folder / "many-raw.db", "NORMAL")
    raw.create_sessions(
        (f"s{number}", f"session {number}", ROOT, json.dumps(metadata), *[1_000 * number] * 2)
        for number in range(many)
    )
    with Store(stage.folder / "many.db", durability="normal") as store:
        with store.database.writing() as connection:
            for number in range(many):
                named = {"title": f"session {number}", "project_root": ROOT, "metadata": metadata}
                known_sessions.create_session(connection, f"s{number}", **named, now=1_000 * number)  # type: ignore[arg-type]
        equal(
            [each.id for each in store.sessions(limit=200)], [row[0] for row in raw.sessions(200)]
        )
        yield (
            "list 200",
            interleaved(
                lambda _: store.sessions(limit=200), lambda _: raw.sessions(200), stage.pace
            ),
        )
    raw.connection.close()
