"""A store that is copied to another one: all that can be asked is the same, and goes on to be."""

from __future__ import annotations

import base64
import random
import signal
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from conftest import Child, database
from conversations import NOW
from test_tampering import fill
from test_whole import DEEDS, STEPS, lived, opened, said, sessions_of, told

from store import Policy, Store
from store.copying import Copied, copy
from store.database import limit_page_cache
from store.errors import Damaged, InvalidValue, StoreError
from store.history import check_ancestors
from store.inspection import dump

LATER = NOW + 10**8


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Store]:
    """Give a new store, in a file or on the server of the tests."""
    with database(tmp_path) as url, Store(url, durability="normal") as store:
        yield store


def all_rows(store: Store) -> list[dump.StoredRow]:
    """Return every row of a store."""
    return list(dump.dump_store(store.database, NOW))


def ancestors_follow(store: Store) -> bool:
    """Return whether the ancestors of all branches are what follows from these."""
    with store.database.reading() as connection:
        return [*check_ancestors(connection)] == []


def grow(store: Store, seed: int, steps: int) -> None:
    """Let anything happen to a store except what deletes and redacts."""
    chance = random.Random(seed)
    deeds = [deed for deed in DEEDS[:-1] if deed.__name__ != "redacted"]
    for number in range(steps):
        name = chance.choice(sorted(each.id for each in sessions_of(store)))
        with suppress(StoreError, ZeroDivisionError):
            chance.choice(deeds)(store, name, 20_000 + number)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("seed", range(24))
def test_a_copy_is_the_same_and_brings_what_is_new(
    target: Store, tmp_path: Path, seed: int
) -> None:
    """Whatever happened before the first copy, and between it and the second."""
    with opened(tmp_path, "one") as source:
        lived(source, seed, STEPS)
        first = copy(source, target)
        assert (first.new, first.left) == (first.trees, ())
        assert all_rows(target) == all_rows(source)
        assert ancestors_follow(target)
        assert copy(source, target) == Copied(first.trees, 0, 0, first.trees)
        if not sessions_of(source):
            return
        grow(source, seed, STEPS)
        expected = copy(source, target, check=True)
        again = copy(source, target)
        assert again == expected
        assert again.left == ()
        assert all_rows(target) == all_rows(source)
        assert ancestors_follow(target)
        assert target.verify() == []
        for session in sessions_of(source):
            assert list(told(target, session)) == list(told(source, session))
            assert target.search("message", limit=3) is not None
        assert copy(source, target, check=True) == Copied(again.trees, 0, 0, again.trees)


def test_a_copy_goes_on_where_it_was_stopped(target: Store, tmp_path: Path) -> None:
    """Trees that are there are not copied again, and a tree is there whole or not at all."""

    def stop(done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with opened(tmp_path, "one") as source:
        for number in range(5):
            source.create_session(f"s{number}")
            source.append(f"s{number}", said(number), now=NOW)
        with pytest.raises(KeyboardInterrupt):
            copy(source, target, stop)
        told_of: list[tuple[int, int]] = []
        rest = copy(source, target, lambda *done: told_of.append(done))
        assert rest == Copied(5, 3, 0, 2)
        assert told_of == [(done, 5) for done in range(1, 6)]
        assert all_rows(target) == all_rows(source)


@pytest.mark.sqlite_only
def test_a_first_copy_looks_for_damage_in_the_whole_file(target: Store, tmp_path: Path) -> None:
    """Later ones look at the trees that they copy, so what is new is there soon."""
    with opened(tmp_path, "one") as source:
        for name in ("broken", "grown"):
            source.create_session(name)
            source.append(name, said(1), now=NOW)
        copy(source, target)
        with closing(sqlite3.connect(str(source.database.path))) as connection:
            connection.execute(
                "DELETE FROM branches"
                " WHERE tree_id = (SELECT tree_id FROM sessions WHERE id = 'broken')"
            )
            connection.commit()
        source.append("grown", said(2), now=NOW)
        done = copy(source, target)
        assert (done.grown, done.left) == (1, ())
        assert target.messages("grown") == source.messages("grown")
        with opened(tmp_path, "two") as new, pytest.raises(Damaged, match="branches"):
            copy(source, new)


def test_what_was_deleted_or_redacted_since_stays_and_is_told(
    target: Store, tmp_path: Path
) -> None:
    """Nothing of the target is removed; the other trees follow."""
    with opened(tmp_path, "one") as source:
        for name in ("gone", "redacted", "grown"):
            source.create_session(name)
            source.append(name, said(1), now=NOW)
        copy(source, target)
        lines = {name: target.messages(name) for name in ("gone", "redacted")}
        source.delete_session("gone", now=NOW)
        source.redact("redacted", 1, "asked for", now=NOW)
        source.append("grown", said(2), now=NOW)
        before = all_rows(target)
        told_first = copy(source, target, check=True)
        assert all_rows(target) == before
        done = copy(source, target)
        assert done == told_first
        assert done.deleted == ("gone",)
        assert done.grown == 1
        assert sorted(each.session_ids for each in done.left) == [(), ("redacted",)]
        assert {name: target.messages(name) for name in lines} == lines
        assert target.messages("grown") == source.messages("grown")


def test_what_the_target_has_added_is_kept(target: Store, tmp_path: Path) -> None:
    """A tree that went on in both stores stays as it is in each, and so does a taken id."""
    with opened(tmp_path, "one") as source:
        source.create_session("both")
        source.append("both", said(1), now=NOW)
        copy(source, target)
        target.append("both", {"role": "user", "content": "there"}, now=NOW)
        target.create_session("taken")
        source.append("both", {"role": "user", "content": "here"}, now=NOW)
        source.create_session("taken")
        done = copy(source, target)
        assert (done.new, done.grown) == (0, 0)
        assert sorted(each.session_ids for each in done.left) == [("both",), ("taken",)]
        assert target.messages("both")[-1].message["content"] == "there"
        with pytest.raises(InvalidValue, match="same store"):
            copy(source, source)


def test_a_copy_searches_and_goes_on_like_its_source(target: Store, tmp_path: Path) -> None:
    """Words of a later copy are found in an index that was made after the first."""
    with opened(tmp_path, "one") as source:
        source.create_session("s", owner="ann")
        source.append("s", said(1), now=NOW)
        copy(source, target)
        assert len(target.search("question")) == len(source.search("question"))
        source.append("s", {"role": "user", "content": "Where are the zebras?"}, now=NOW)
        copy(source, target)
        assert [hit.seq for hit in target.search("zebras")] == [source.session("s").head]
        for each in (source, target):
            each.append("s", said(3), now=LATER)
        policy = Policy.named("agent")
        assert target.view("s", policy, now=LATER) == source.view("s", policy, now=LATER)


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_copy_needs_little_memory(tmp_path: Path) -> None:
    """Rows pass one by one: a line of 20 MB, or 50 pictures of 300 KB, take no more than some of it.

    Of the pages of a file few are kept, and as many as before afterwards.
    """
    with opened(tmp_path, "one") as source, opened(tmp_path, "two") as target:
        source.create_session("s")
        for number in range(20):
            rows = [
                {"role": "user", "content": f"{number} {part} " + "x" * 10_000}
                for part in range(100)
            ]
            source.append("s", rows, now=NOW)
        for number in range(50):
            picture = (
                "data:image/png;base64," + base64.b64encode(bytes([number]) * 300_000).decode()
            )
            part = {"type": "image_url", "image_url": {"url": picture}}
            source.append("s", {"role": "user", "content": [part]}, now=NOW)
        tracemalloc.start()
        copy(source, target)
        source.append("s", said(1), now=NOW)
        copy(source, target)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8_000_000
        assert target.session("s").head == source.session("s").head
        with source.database.reading() as connection, limit_page_cache(connection):
            assert connection.exec_driver_sql("PRAGMA cache_size").scalar() == -2_000
        with source.database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA cache_size").scalar() == -16_000


@pytest.mark.slow
def test_a_copy_that_is_killed_goes_on(tmp_path: Path, fork: Callable[..., Child]) -> None:
    """At any moment: the target stays sound, and the next copy brings the rest."""
    chance = random.Random(3)
    with database(tmp_path) as url:
        with opened(tmp_path, "one") as source:
            lived(source, 5, 4 * STEPS)
            for number in range(20):
                source.create_session(f"more-{number}")
                source.append(f"more-{number}", said(number) * 10, now=NOW)
        Store(url).close()
        for _ in range(10):
            with suppress(AssertionError):  # that it was killed
                fork(killed_copy, tmp_path, url, chance.uniform(0.01, 0.6)).result()
            with Store(url) as target:
                assert target.verify() == []
        with opened(tmp_path, "one") as source, Store(url) as target:
            copy(source, target)
            assert all_rows(target) == all_rows(source)


def killed_copy(folder: Path, url: str, seconds: float) -> None:
    """Copy until an alarm kills this process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with opened(folder, "one") as source, Store(url) as target:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        copy(source, target)
    signal.setitimer(signal.ITIMER_REAL, 0)


def test_every_table_is_copied_there_and_back(target: Store, tmp_path: Path) -> None:
    """Kept usages, drafts, requests and all else; from a file to the other store, and to a file."""
    with opened(tmp_path, "one") as source, opened(tmp_path, "back") as back:
        fill(source, tmp_path)
        assert copy(source, target).left == copy(target, back).left == ()
        rows = all_rows(source)
        assert {table for table, _ in rows} > {*dump.DUMPED_TABLES}
        assert rows == all_rows(target) == all_rows(back)
        assert source.usage_totals() == back.usage_totals()
