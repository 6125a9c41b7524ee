"""A store as rows, and the store that is made of them: they are one in all that can be asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conversations import NOW, Agent
from test_tampering import fill

from store import Policy, Store
from store.errors import StoreError
from store.inspection import dump
from store.policy import POLICIES
from store.records import Session

STEPS = 25
"""What happens to a store, in a quick run."""


def said(seed: int) -> list[dict[str, Any]]:
    """Return a few messages that end with a question."""
    return [*Agent(seed).run(), {"role": "user", "content": f"And {seed}?"}]


def compacted(store: Store, name: str, seed: int) -> None:
    """Compact a session, more or less."""
    policy = Policy(keep_turns=1 + seed % 3)
    store.compact(name, policy, lambda _: f"Summary {seed}. " * 3, now=NOW + seed)


def undone(store: Store, name: str, seed: int) -> None:
    """Undo one of a session's compactions."""
    records = [each.id for each in store.compactions(name) if each.outcome == "applied"]
    if records:
        store.undo_compaction(name, records[seed % len(records)] or 0, now=NOW + seed)


def drafted(store: Store, name: str, seed: int) -> None:
    """Break off while an answer is streamed."""
    with suppress(KeyError), store.streaming(name, {"role": "assistant"}) as answer:
        answer.write(f"half {seed}")
        raise KeyError


def noted(store: Store, name: str, seed: int) -> None:
    """Note something beside the last message."""
    store.annotate(name, store.session(name).head, "rating", {"stars": seed}, now=NOW + seed)


def redacted(store: Store, name: str, seed: int) -> None:
    """Take out what a message says."""
    store.redact(name, 1 + seed % store.session(name).head, "asked for", now=NOW + seed)


def hidden(store: Store, name: str, seed: int) -> None:
    """Hide a range."""
    first = 1 + seed % store.session(name).head
    store.hide(name, first, min(first + 3, store.session(name).head), f"Hidden {seed}.", now=NOW)


def switched(store: Store, name: str, seed: int) -> None:
    """Go back to a branch that was left."""
    left = [each.branch for each in store.branches(name)]
    store.switch(name, left[seed % len(left)], now=NOW + seed)


DEEDS: tuple[Callable[[Store, str, int], object], ...] = (
    lambda store, name, seed: store.append(name, said(seed), now=NOW + seed),
    lambda store, name, seed: store.append(name, said(seed), now=NOW + seed),
    lambda store, name, seed: store.fork(name, session_id=f"fork-{seed}", now=NOW + seed),
    lambda store, name, seed: store.fork(name, seed % 7, f"early-{seed}", now=NOW + seed),
    lambda store, name, seed: store.rewind(name, to=seed % 9, now=NOW + seed),
    lambda store, name, seed: store.undo_rewind(name, now=NOW + seed),
    switched,
    compacted,
    compacted,
    undone,
    hidden,
    noted,
    drafted,
    redacted,
    lambda store, name, seed: store.record_usage(
        name, input=seed, output=1, cost=seed / 7, model="m", now=NOW + seed
    ),
    lambda store, name, seed: store.rename_session(name, f"Title {seed}", now=NOW + seed),
    lambda store, name, seed: store.set_metadata(name, {"tag": seed, "x": [None]}),
    lambda store, name, seed: store.archive(name),
    lambda store, name, seed: store.set_project_root(name, f"/home/{seed}"),
    lambda store, name, seed: store.create_session(f"new-{seed}", owner="ann", now=NOW + seed),
    lambda store, name, seed: seed % 3 or store.delete_session(name, now=NOW + seed),
)
"""What may happen to a session."""


def sessions_of(store: Store) -> list[Session]:
    """Return all sessions."""
    return [*store.sessions(limit=500), *store.sessions(archived=True, limit=500)]


def lived(store: Store, seed: int, steps: int) -> None:
    """Let anything happen to a store, in any order."""
    chance = random.Random(seed)
    store.create_session("first", project_root="/home/ada", now=NOW)
    store.append("first", said(seed), now=NOW)
    for number in range(steps):
        names = sorted(each.id for each in sessions_of(store))
        name = chance.choice(names) if names else store.create_session(f"anew-{number}").id
        with suppress(StoreError, ZeroDivisionError):  # what is refused changes nothing
            chance.choice(DEEDS)(store, name, chance.randrange(10_000))


def taken(store: Store, rows: Iterator[dump.StoredRow]) -> list[bool]:
    """Take rows to a store; return what was new of their trees."""
    news = []
    for table, fields in rows:
        if table == dump.TREE:
            with store.database.writing() as connection:
                tree_id = dump.parse_tree_id(fields)
                news.append(dump.load_tree(connection, tree_id, until_end(rows)))
    return news


def until_end(rows: Iterator[dump.StoredRow]) -> Iterator[dump.StoredRow]:
    """Yield the rows of a tree."""
    for row in rows:
        if row[0] == dump.END:
            return
        yield row


def told(store: Store, session: Session) -> Iterator[object]:
    """Yield all that a store says of a session."""
    yield store.session(session.id)
    yield store.messages(session.id)
    for ask in (store.head_moves, store.branches, store.compactions, store.hidden, store.turns):
        yield ask(session.id)
    yield store.usages(session.id)
    yield store.annotations(session.id)
    yield store.drafts(session.id)
    for name in POLICIES:
        yield store.view(session.id, Policy.named(name), now=NOW + 10**7)
    for at in range(0, session.head + 1, 5):
        yield store.view(session.id, at=at, now=NOW + 10**7)
    for branch in store.branches(session.id):
        yield store.messages(session.id, branch=branch.branch)


@pytest.mark.sqlite_only
@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(12))
def test_a_store_that_is_made_of_rows_is_the_same(tmp_path: Path, seed: int) -> None:
    """Whatever happened to it: lines, heads, moves, records, costs, notes, drafts, and views."""
    with opened(tmp_path, "one") as store, opened(tmp_path, "copy") as copy:
        lived(store, seed, STEPS)
        rows = list(dump.dump_store(store.database, NOW))
        assert all(taken(copy, iter(rows)))
        assert list(dump.dump_store(copy.database, NOW)) == rows
        assert copy.verify() == []
        assert sessions_of(copy) == sessions_of(store)
        for session in sessions_of(store):
            assert list(told(copy, session)) == list(told(store, session))
        assert not any(taken(copy, iter(rows)))
        for name in (each.id for each in sessions_of(store)):
            for each in (store, copy):
                each.append(name, said(seed), now=NOW + 10**6)
            assert copy.view(name, now=NOW).messages == store.view(name, now=NOW).messages


def opened(folder: Path, name: str) -> Store:
    """Open a store in a file."""
    return Store(folder / f"{name}.db", durability="normal")


def test_rows_of_every_table_come_back(store: Store, tmp_path: Path) -> None:
    """All but what is made anew when somebody asks; from one database into another."""
    with opened(tmp_path, "one") as first:
        fill(first, tmp_path)
        rows = list(dump.dump_store(first.database, NOW))
    assert {table for table, _ in rows} - {dump.STORE, dump.TREE, dump.END} == {*dump.DUMPED_TABLES}
    taken(store, iter(rows))
    assert list(dump.dump_store(store.database, NOW)) == rows
    assert store.verify() == []
    with opened(tmp_path, "again") as third:
        taken(third, dump.dump_store(store.database, NOW))
        assert list(dump.dump_store(third.database, NOW)) == rows
