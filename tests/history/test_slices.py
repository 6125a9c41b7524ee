"""A deletion goes on between other readers and writers, and after whoever began it has died."""

from __future__ import annotations

import asyncio
import math
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Child
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from test_erasure import STEPS, Model, contents, counts, derive, fill, said, traces

from store import AsyncStore, Store
from store.database import Database
from store.errors import InvalidValue, SessionNotFound, StoreBusy, StoreClosed, StoreFull
from store.history import erasure, erasure_batches, write_pace
from store.inspection import integrity

Fork = Callable[..., Child]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each slice a single step of a single position."""
    monkeypatch.setattr(erasure_batches, "SLICE_SECONDS", 0)
    monkeypatch.setattr(erasure_batches, "STEP_POSITIONS", 1)


def left(store: Store) -> int:
    """Return how many messages are stored."""
    return counts(store).get("messages", 0)


def cut_after(monkeypatch: pytest.MonkeyPatch, number: int, ending: Callable[[], Any]) -> None:
    """Let something happen in place of a step, when so many were done."""
    step, done = erasure_batches._erase_step, iter(range(number))

    def steps(*arguments: Any) -> None:
        if next(done, None) is None:
            ending()
        step(*arguments)

    monkeypatch.setattr(erasure_batches, "_erase_step", steps)


def stop() -> None:
    """End an erasure where it is, as an error of the disk would."""
    raise StoreFull("stopped")


# --- Beside others --------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_readers_and_writers_go_on(store: Store, url: str, fork: Fork) -> None:
    """In other processes: the session is there or it is not, others' are whole, and nobody fails."""
    for name in ("gone", "stays"):
        store.create_session(name)
        store.append(name, [said(f"{name} {number}") for number in range(40)])
    store.fork("gone", 20, "fork")
    began, begin = os.pipe()

    def read() -> list[Any]:
        seen = []
        with Store(url) as reading:
            os.write(begin, b"x")
            while "done" not in {each.id for each in reading.sessions()}:
                names = {each.id for each in reading.sessions()}
                seen.append("gone" in names)
                assert len(reading.messages("fork")) == 20
                assert {"stays", "fork"} <= names
        return seen

    def write() -> int:
        with Store(url) as writing:
            writing.create_session("writer")
            for name in ("writer", "stays"):
                writing.append(name, said("first"))
            os.write(begin, b"x")
            while "done" not in {each.id for each in writing.sessions()}:
                writing.append("writer", said("x"))
                writing.append("stays", said("more"))
            return writing.session("writer").head

    children = [fork(read), fork(write)]
    for _ in children:
        os.read(began, 1)
    (erased,) = store.delete_session("gone")
    store.create_session("done")
    seen, written = (child.result() for child in children)
    assert (erased.messages, erased.kept, erased.finished) == (20, 20, True)
    assert seen == sorted(seen, reverse=True)  # once gone, it is gone
    assert written > 0
    assert len(store.messages("stays")) == 40 + written
    assert store.verify() == []


@pytest.mark.usefixtures("small")
def test_a_session_is_gone_before_its_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first transaction on nobody finds it, not by its id, its title or its summaries."""
    fill(store, "s")
    cut_after(monkeypatch, 2, stop)
    (erased,) = store.delete_session("s")
    assert (erased.messages, erased.finished, erased.purged) == (4, False, False)
    assert store.erasures() == [erased]
    assert 0 < left(store) < 4
    assert store.sessions() == []
    with pytest.raises(SessionNotFound):
        store.messages("s")
    assert counts(store).keys() & {"sessions", "session_ids", "head_moves"} == set()
    assert "compaction_records" not in counts(store)
    assert store.verify() == []
    store.create_session("s")
    store.append("s", said("another"))
    assert contents(store, "s") == ["another"]


def test_a_slice_is_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice ends with the step in which 5 ms are over; the next one is another transaction."""
    store.create_session("s")
    store.append("s", [said("x") for _ in range(100)])
    ticks = iter(range(1_000_000))
    clock = SimpleNamespace(monotonic=lambda: next(ticks) * 0.005 / 3)
    monkeypatch.setattr(erasure_batches, "time", clock)
    monkeypatch.setattr(write_pace, "GROWTH", 1)
    steps: list[int] = []
    slice_ = erasure_batches._erase_slice

    def noted(*arguments: Any, **options: Any) -> bool:
        before = left(store)
        done = slice_(*arguments, **options)
        steps.append(before)
        return done

    monkeypatch.setattr(erasure_batches, "_erase_slice", noted)
    store.delete_session("s")
    assert steps == sorted(steps, reverse=True)
    assert steps[0] - steps[1] == 3 * erasure_batches.STEP_POSITIONS


# --- After a kill ---------------------------------------------------------------------------------


def kill() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(url: str, fork: Fork, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Delete the session "s" in a process that is killed in the midst of a slice."""

    def erase() -> None:
        with Store(url) as erasing:
            cut_after(monkeypatch, number, kill)
            erasing.delete_session("s")

    with pytest.raises(AssertionError, match="killed"):
        fork(erase).result()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.sampled(3)
def test_the_next_opening_goes_on(
    url: str, fork: Fork, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Killed in any step, the rest is erased when somebody opens the store; forks keep theirs."""
    with Store(url) as store:
        fill(store, "s")
        store.append("s", said("five"))
        store.fork("s", 3, "f")
        store.append("f", said("fork's own"))
        before = store.messages("f")
    killed(url, fork, monkeypatch, number)
    monkeypatch.setattr(erasure_batches, "OPENING_SECONDS", math.inf)
    with closing(Database(url)) as database, database.reading() as connection:
        (open_ones,) = erasure.list_erasures(connection)
        assert open_ones.finished is False
        assert integrity.verify(connection) == []
    with Store(url) as store:
        assert [each.finished for each in store.erasures()] == [True]
        assert left(store) == 4
        assert store.messages("f") == before
        assert store.verify() == []
        store.delete_session("f")
        assert counts(store) == {}


@pytest.mark.usefixtures("small")
def test_a_purge_goes_on(url: str, fork: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    """An opening that has no time for it leaves it to the next deletion in the tree, or a purge."""
    with Store(url) as store:
        for name in ("s", "t"):
            fill(store, name)
        store.fork("s", 1, "f")
    killed(url, fork, monkeypatch, 2)
    monkeypatch.setattr(erasure_batches, "OPENING_SECONDS", 0)
    with Store(url) as store:
        store.delete_session("t")
        assert [each.finished for each in store.erasures()] == [False, True]
        store.purge()
        assert [each.finished for each in store.erasures()] == [True, True]
        assert left(store) == 1


@pytest.mark.sqlite_only
@pytest.mark.usefixtures("small")
def test_an_opening_waits_for_nobody(url: str, fork: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody writes for long, the rest stays for later."""
    with Store(url) as store:
        fill(store, "s")
        killed(url, fork, monkeypatch, 1)
        with store.database.writing() as connection:
            connection.execute(text("UPDATE sessions SET title = 'busy'"))
            begun = time.monotonic()
            with Store(url, timeout=120) as other:
                assert other.sessions() == []
                assert other.erasures()[0].finished is False
            assert time.monotonic() - begun < 60


def test_erasures_of_one_tree_ask_for_more_and_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done with a branch for one of them is done for the later ones too."""
    store.create_session("x")
    store.append("x", [said(number) for number in range(4)])
    store.fork("x", 3, "y")
    store.append("y", said("y"))
    store.fork("y", 4, "z")
    store.append("z", said("z"))
    with monkeypatch.context() as patch:
        patch.setattr(erasure_batches, "_erase_tree", lambda *_, **__: None)
        erased = [store.delete_session(each)[0] for each in ("y", "z", "x")]
    assert [(each.messages, each.kept) for each in erased] == [(0, 1), (2, 0), (4, 0)]
    assert left(store) == 6
    assert store.verify() == []
    erasure_batches.continue_erasures(store.database, 0)
    assert counts(store) == {}
    assert [each.finished for each in store.erasures()] == [True] * 3
    assert store.verify() == []


@pytest.mark.no_cover
@settings(max_examples=60)
@given(steps=STEPS, cuts=st.lists(st.integers(0, 6), min_size=30, max_size=30))
@pytest.mark.slow
def test_anything_may_happen_between_slices(
    shared: Store, steps: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    """Forks, compactions, other deletions in the tree: what is left to do is done right later."""
    whole, chance = erasure_batches._erase_tree, iter(cuts)

    def in_part(database: Database, tree_id: int, moment: int, *_: object, **__: object) -> None:
        for _ in range(next(chance, 0)):
            with database.writing() as connection:
                erasure_batches._erase_slice(connection, tree_id, moment, seconds=0)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(erasure_batches, "STEP_POSITIONS", 2)
            patch.setattr(erasure_batches, "_erase_tree", in_part)
            model = Model(shared, "t")
            for step in steps:
                model.step(*step)
                assert shared.verify() == []
            model.check()
            patch.setattr(erasure_batches, "_erase_tree", whole)
            if sum(cuts) % 2:
                erasure_batches.continue_erasures(shared.database, 0)
                assert all(each.finished for each in shared.erasures())
                model.check()
            for session in list(model.lines):
                model.delete(session, 0)
                model.check()
            erasure_batches.continue_erasures(shared.database, 0)
        assert counts(shared) == {}
    finally:
        clear(shared)


def clear(store: Store) -> None:
    """Take everything out of a store, so that one failing example leaves nothing to the next."""
    store.delete_session(*(each.id for each in store.sessions()))
    store.purge()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give a store for many trees."""
    with Store(tmp_path_factory.mktemp("trees") / "chat.db", durability="normal") as opened:
        yield opened


# --- Several at once ------------------------------------------------------------------------------


def test_several_are_erased_in_one_call(store: Store) -> None:
    """Each is an erasure of its own, in the order given; one that is named twice is one."""
    for name in ("a", "b", "c"):
        fill(store, name)
    store.fork("a", 2, "d")
    assert store.delete_session() == store.delete_session(*[]) == []
    erased = store.delete_session("b", "a", "b")
    assert [(each.session_id, each.messages, each.kept) for each in erased] == [
        ("b", 4, 0),
        ("a", 2, 2),
    ]
    assert store.delete_session("c")[0].session_id == "c"
    for session_id in "ab":
        store.create_session(session_id)
    with pytest.raises(SessionNotFound):
        store.delete_session(["a", "none"])
    erased = store.delete_session(["none", "b", "a"], missing="ignore")
    assert [each.session_id for each in erased] == ["b", "a"]
    assert store.delete_session("a", {}, missing="ignore") == []  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="missing is one of"):
        store.delete_session("a", missing="skip")
    assert [each.id for each in store.sessions()] == ["d"]


@pytest.mark.parametrize("unknown", ["nobody", "", 7, {"a": "b"}, ["a", "c"]])
def test_an_unknown_one_among_several_erases_nothing(store: Store, unknown: Any) -> None:
    """Wherever it stands."""
    for name in ("a", "b"):
        fill(store, name)
    before = counts(store)
    for names in (("a", "b", unknown), (unknown, "a"), (unknown,)):
        with pytest.raises(SessionNotFound):
            store.delete_session(*names)
    assert counts(store) == before
    assert store.erasures() == []


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_nothing_is_raised_once_something_is_erased(
    store: Store, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Those that were erased are returned, the others are still there.

    Of sessions in one transaction none is erased.
    """
    monkeypatch.setattr(erasure_batches, "GROUP_SECONDS", 0)
    for name in ("a", "b", "c"):
        fill(store, name)
    begin, calls = erasure.begin_erasure, iter(range(3))

    def beginning(*arguments: Any, **options: Any) -> Any:
        if next(calls) == failing:
            raise StoreBusy("somebody")
        return begin(*arguments, **options)

    monkeypatch.setattr(erasure_batches.erasure, "begin_erasure", beginning)
    if not failing:
        with pytest.raises(StoreBusy):
            store.delete_session("a", "b", "c")
    else:
        erased = store.delete_session("a", "b", "c")
        assert [each.session_id for each in erased] == ["a", "b", "c"][:failing]
    assert sorted(each.id for each in store.sessions()) == ["a", "b", "c"][failing:]


def test_one_that_others_erase_meanwhile_is_passed_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ones behind it are erased all the same."""
    for name in ("a", "b", "c"):
        fill(store, name)
    begin = erasure.begin_erasure

    def beginning(connection: Any, session_id: str, **options: Any) -> Any:
        if session_id == "b":
            begin(connection, "b", **options)
        return begin(connection, session_id, **options)

    monkeypatch.setattr(erasure_batches.erasure, "begin_erasure", beginning)
    erased = store.delete_session("a", "b", "c")
    assert [each.session_id for each in erased] == ["a", "c"]


def test_async_stores_erase_and_purge_too(url: str) -> None:
    """The same names, awaited."""

    async def run() -> tuple[Any, ...]:
        async with AsyncStore(url) as opened:
            await opened.create_session("s")
            await opened.append("s", said("x"))
            (erased,) = await opened.delete_session("s")
            done = await opened.purge()
            return erased.messages, bool(done), (await opened.erasures())[0].purged

    on_server = not url.startswith("sqlite")
    assert asyncio.run(run()) == (1, not on_server, not on_server)


# --- Copies ---------------------------------------------------------------------------------------


@pytest.mark.sqlite_only
@pytest.mark.usefixtures("small")
def test_a_copy_between_two_slices_is_one_that_holds_the_bytes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure names it in the end; the copy itself, opened, goes on by itself."""
    fill(store, "s")
    with monkeypatch.context() as patch:
        cut_after(patch, 1, stop)
        assert store.delete_session("s")[0].copies == ()
    copy = tmp_path / "copy.db"
    store.backup(copy)
    monkeypatch.setattr(erasure_batches, "OPENING_SECONDS", math.inf)
    done = store.purge()
    assert (done.done, done.removed) == (True, ())
    assert [each.copies for each in store.erasures()] == [(str(copy),)]
    assert store.purge(backups=True).removed == (str(copy),)
    assert not copy.exists()
    assert [each.copies for each in store.erasures()] == [()]


@pytest.mark.sqlite_only
@pytest.mark.usefixtures("small")
def test_a_copy_goes_on_when_it_is_opened(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows what is left to do, as the store does."""
    fill(store, "s")
    cut_after(monkeypatch, 1, stop)
    store.delete_session("s")
    store.backup(tmp_path / "copy.db")
    monkeypatch.undo()
    monkeypatch.setattr(erasure_batches, "OPENING_SECONDS", math.inf)
    with Store(tmp_path / "copy.db") as copy:
        assert (left(copy), copy.verify()) == (0, [])


# --- Purging --------------------------------------------------------------------------------------


@pytest.mark.sqlite_only
def test_one_purge_is_enough_for_many_erasures(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written anew once, and holds nothing of them."""
    chance = random.Random(1)
    for number in range(12):
        store.create_session(f"s{number}")
        size = chance.choice((40, 900, 9000))
        store.append(f"s{number}", [said("SECRET" * (size // 6)) for _ in range(9)])
        derive(store, f"s{number}", "SECRET" * 50)
    erased = store.delete_session(*(f"s{number}" for number in range(11)))
    assert {each.purged for each in erased} == {False}
    assert store.delete_session("s11", purge=True)[0].purged is True
    assert {each.purged for each in store.erasures()} == {True}
    assert traces(tmp_path) == {}
    assert store.purge()


@pytest.mark.sqlite_only
@pytest.mark.slow
def test_a_purge_beside_readers_and_writers(url: str, store: Store, fork: Fork) -> None:
    """No append fails for it, no reader sees anything but the whole; what it says is true."""
    store.create_session("s")
    store.append("s", [said("x" * 5000) for _ in range(400)])

    def write() -> int:
        with Store(url) as writing:
            writing.create_session("w")
            while not writing.session("s").title:
                writing.append("w", said("y" * 300))
            return writing.session("w").head

    def read() -> int:
        with Store(url) as reading:
            while not reading.session("s").title:
                assert len(reading.messages("s")) == 400
        return 1

    children = [fork(write), fork(read)]
    for number in range(8):
        store.create_session(f"{number}")
        store.append(f"{number}", [said("SECRET" * 500) for _ in range(20)])
        (erased,) = store.delete_session(f"{number}", purge=True)
        assert store.erasures()[-1].purged is erased.purged
    store.rename_session("s", "done")
    assert min(child.result() for child in children) > 0
    assert store.purge()
    assert store.verify() == []


@pytest.mark.sqlite_only
def test_a_purge_that_takes_too_long_is_given_up(store: Store, path: Path) -> None:
    """The file is as it was, and the text says what to do."""
    store.create_session("s")
    store.append("s", [said("x" * 3000) for _ in range(900)])
    store.create_session("t")
    assert store.delete_session("t")[0].purged is False
    told = store.purge(longest=0)
    assert not told
    assert "`longest`" in str(told.problem)
    assert [each.purged for each in store.erasures()] == [False]
    assert store.verify() == []
    with pytest.raises(InvalidValue):
        store.purge(longest="1")  # type: ignore[arg-type]
    assert store.purge(longest=60)
    assert store.erasures()[0].purged


@pytest.mark.sqlite_only
def test_an_idle_purge_waits_for_nobody(store: Store, url: str) -> None:
    """Where somebody writes, or is in line, it is not done."""
    store.create_session("s")
    store.delete_session("s")
    with Store(url) as other, other.database.writing() as connection:
        connection.execute(text("UPDATE sessions SET title = 'busy'"))
        begun = time.monotonic()
        assert not store.purge(idle=True)
        assert time.monotonic() - begun < 25  # before `timeout`
    assert store.purge(idle=True)


def test_a_closed_store_cannot_be_purged(store: Store) -> None:
    """It says what every operation does."""
    store.close()
    with pytest.raises(StoreClosed):
        store.purge()


def test_a_server_purges_by_itself(store: Store) -> None:
    """There the store writes nothing anew, and says so; a file is purged."""
    fill(store, "s")
    (erased,) = store.delete_session("s", purge=True)
    done = store.purge()
    on_server = store.database.path is None
    assert (erased.purged, done.done) == (not on_server, not on_server)
    assert erased.finished
    assert ("VACUUM FULL" in str(done.problem)) is on_server


# --- On a full disk -------------------------------------------------------------------------------


def limit_files(most: int) -> None:
    """Let this process write no file beyond a size."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


def fill_disk(store: Store, most: int) -> None:
    """Let no file grow beyond a size, and write until the log has come to it."""
    limit_files(most)
    with suppress(StoreFull):
        for number in range(10_000):
            store.rename_session("t", f"{number}" * 2000)


@pytest.fixture
def two(path: Path) -> Path:
    """Give a file with a session that is to go, and a small one that stays."""
    with Store(path) as store:
        for name in ("s", "t"):
            store.create_session(name)
        store.append("s", [said("x" * 3000) for _ in range(240)])
    return path


@pytest.mark.sqlite_only
def test_erasing_on_a_full_disk(two: Path, fork: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has no room for all slices, so its room is used again between them."""
    monkeypatch.setattr(erasure_batches, "SLICE_SECONDS", 0)

    def erase() -> tuple[Any, ...]:
        with Store(two) as opened:
            fill_disk(opened, two.stat().st_size + 100_000)
            emptied = count_calls(opened.database, "empty_log")
            (erased,) = opened.delete_session("s")
            return erased.finished, [each.id for each in opened.sessions()], left(opened), emptied

    finished, sessions, messages, emptied = fork(erase).result()
    assert (finished, sessions, messages) == (True, ["t"], 0)
    assert len(emptied) > 1  # at the beginning, and again in the midst


def count_calls(database: Database, name: str) -> list[None]:
    """Let a list grow with each call of a method."""
    method, calls = getattr(database, name), list[None]()

    def counted() -> None:
        calls.append(None)
        method()

    setattr(database, name, counted)
    return calls


def test_the_least_is_erased_where_there_is_no_room_for_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice that finds no room is done again as the smallest step, not given up."""
    erase_slice, asked = erasure_batches._erase_slice, list[float]()

    def with_little_room(*arguments: Any, seconds: float, **others: Any) -> bool:
        asked.append(seconds)
        if seconds:
            raise StoreFull("no room for so many pages")
        return erase_slice(*arguments, seconds=seconds, **others)

    monkeypatch.setattr(erasure_batches, "_erase_slice", with_little_room)
    monkeypatch.setattr(write_pace, "GROWTH", 1)
    store.create_session("s")
    store.append("s", [said(f"{number}") for number in range(3 * erasure_batches.STEP_POSITIONS)])
    assert store.delete_session("s")[0].finished
    assert left(store) == 0
    assert asked == [erasure_batches.SLICE_SECONDS, 0] * (len(asked) // 2)


@pytest.mark.sqlite_only
def test_a_disk_that_fills_up_in_the_midst_leaves_the_rest_to_others(
    two: Path, fork: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told as begun and not as finished; whoever opens the file next ends it."""

    def erase() -> tuple[Any, ...]:
        with Store(two) as opened:
            cut_after(monkeypatch, 1, lambda: limit_files(0))
            (erased,) = opened.delete_session("s")
            with pytest.raises(SessionNotFound):
                opened.session("s")
            return erased, opened.erasures(), opened.purge(), left(opened)

    erased, recorded, purged, messages = fork(erase).result()
    assert (erased.messages, erased.finished, erased.purged) == (240, False, False)
    assert recorded == [erased]
    assert not purged
    assert "make room" in str(purged.problem)
    assert messages > 0
    with Store(two) as opened:
        assert [each.finished for each in opened.erasures()] == [True]
        assert (left(opened), opened.verify()) == (0, [])


@pytest.mark.sqlite_only
def test_no_room_at_all(two: Path, fork: Fork) -> None:
    """Then nothing was erased, and the text says what to do."""

    def erase() -> tuple[str, int]:
        with Store(two) as opened:
            opened.sessions()
            fill_disk(opened, 2000)
            with pytest.raises(StoreFull) as full:
                opened.delete_session("s")
            return str(full.value), len(opened.messages("s"))

    told, messages = fork(erase).result()
    assert "nothing was erased" in told
    assert "`purge(backups=True)`" in told
    assert messages == 240
    with Store(two) as opened:
        assert opened.erasures() == []
        assert opened.delete_session("s")[0].finished


@pytest.mark.sqlite_only
def test_copies_go_from_a_full_disk(two: Path, fork: Fork) -> None:
    """The advice holds: what they took is free, though their list cannot be changed just now."""
    copy = two.with_name("copy.db")
    with Store(two) as store:
        store.backup(copy)
        store.delete_session("s")

    def purge() -> Any:
        with Store(two) as opened:
            opened.sessions()
            limit_files(0)
            return opened.purge(backups=True)

    told = fork(purge).result()
    assert (told.done, told.removed, told.left) == (False, (str(copy),), ())
    assert not copy.exists()
    with Store(two) as opened:
        assert opened.purge(backups=True).removed == (str(copy),)
        assert opened.purge(backups=True).removed == ()
