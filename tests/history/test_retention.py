"""Sessions that go by age or for room, all of an owner, and what a store takes."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from store import AsyncStore, InvalidValue, SessionNotFound, Store
from store.history import erasure_batches, retention

DAY = 86_400_000
NOW = 1_790_000_000_000


def talk(store: Any, session: str, days: float, words: int = 3, **options: Any) -> None:
    """Make a session whose last message was stored so many days before NOW."""
    at = int(NOW - days * DAY)
    store.create_session(session, now=at, **options)
    said = [{"role": "user", "content": f"word {number} ü"} for number in range(words)]
    store.append(session, said, now=at)


def ids(store: Any) -> set[str]:
    """Return the ids of all sessions."""
    return {each.id for flag in (False, True) for each in store.sessions(archived=flag)}


def test_idle_sessions_go_and_others_stay(url: str) -> None:
    """A dry run tells exactly what is done after it."""
    with Store(url) as store:
        for name, days in (("old", 100), ("older", 200), ("kept", 300), ("new", 1)):
            talk(store, name, days)
        store.set_metadata("kept", {"starred": True, "n": 1})
        told = store.prune(90, keep={"starred": True}, now=NOW)
        assert told == store.prune(timedelta(days=90), keep={"starred": True}, now=NOW)
        assert told._asdict() == {
            "sessions": 2,
            "messages": 6,
            "bytes": 6 * len("word 0 ü".encode()),
            "oldest": NOW - 200 * DAY,
            "newest": NOW - 100 * DAY,
            "kept_for_forks": 0,
        }
        assert ids(store) == {"old", "older", "kept", "new"}
        done = store.prune(90, keep={"starred": True}, now=NOW, dry_run=False)
        assert done == told
        assert ids(store) == {"kept", "new"}
        assert store.prune(90, keep={"starred": True}, now=NOW).sessions == 0
        assert store.verify() == []


def test_messages_that_forks_show_stay(store: Store) -> None:
    """Of a whole tree all of them go; the plan counts what the erasures do."""
    talk(store, "root", 100, owner="forks")
    store.fork("root", at=2, session_id="child", now=NOW)
    told = store.prune(90, owner="forks", now=NOW)
    assert (told.sessions, told.messages, told.kept_for_forks) == (1, 1, 2)
    shown = [each.message for each in store.messages("child")]
    whole = store.prune(0, owner="forks", now=NOW + 1)
    assert (whole.sessions, whole.messages, whole.kept_for_forks) == (2, 3, 0)
    assert store.prune(90, owner="forks", now=NOW, dry_run=False) == told
    assert [each.message for each in store.messages("child")] == shown
    assert store.prune(0, owner="forks", now=NOW + 1, dry_run=False).messages == 2
    with pytest.raises(SessionNotFound):
        store.session("child")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_a_plan_is_what_is_done(store: Store, seed: int) -> None:
    """Of any trees of forks of any ages."""
    dice, owner = random.Random(seed), f"seed {seed}"
    names = []
    for number in range(8):
        name = f"{owner} {number}"
        if names and dice.random() < 0.6:
            source = dice.choice(names)
            at = dice.randint(0, store.session(source).head)
            store.fork(source, at=at, session_id=name, now=NOW - dice.randint(0, 200) * DAY)
            for _ in range(dice.randint(0, 3)):
                message = {"role": "user", "content": "x" * dice.randint(0, 9)}
                store.append(name, message, now=NOW - dice.randint(0, 200) * DAY)
        else:
            talk(store, name, dice.randint(0, 200), dice.randint(0, 4), owner=owner)
        names.append(name)
    told = store.prune(90, owner=owner, now=NOW)
    left = {
        each.id: [m.message for m in store.messages(each.id)]
        for each in store.sessions(owner=owner, since=NOW - 90 * DAY)
    }
    assert store.prune(90, owner=owner, now=NOW, dry_run=False) == told
    erased = [each for each in store.erasures() if each.session_id.startswith(f"{owner} ")]
    assert (len(erased), sum(each.messages for each in erased)) == (told.sessions, told.messages)
    assert {
        each.id: [m.message for m in store.messages(each.id)]
        for each in store.sessions(owner=owner)
    } == left


def test_the_oldest_go_until_there_is_room(url: str) -> None:
    """No more of them than the limit asks for."""
    with Store(url) as store:
        for number in range(10):
            talk(store, f"s{number}", 10 - number, 1)
            store.append(
                f"s{number}",
                {"role": "user", "content": "x" * 30_000},
                now=NOW - (10 - number) * DAY,
            )
        used = store.size().used
        told = store.prune(max_bytes=used // 2, now=NOW)
        assert 2 <= told.sessions <= 8
        assert told.oldest == NOW - 10 * DAY
        assert store.prune(max_bytes=used, now=NOW).sessions == 0
        assert store.prune(max_bytes=0, now=NOW).sessions == 10
        assert store.prune(9.5, max_bytes=0, now=NOW).sessions == 1
        store.prune(max_bytes=used // 2, now=NOW, dry_run=False)
        assert ids(store) == {f"s{number}" for number in range(told.sessions, 10)}


def test_busy_sessions_stay(store: Store) -> None:
    """Those to which somebody streams, and those that were used after the plan was made."""
    talk(store, "busy", 100, owner="busy")
    with store.streaming("busy", {"role": "assistant", "content": ""}):
        assert store.prune(90, owner="busy", now=NOW).sessions == 0
        assert store.prune(90, owner="busy", now=NOW, dry_run=False).sessions == 0


@pytest.mark.parametrize("asked", [{"idle": 90}, {"max_bytes": 0}], ids=str)
def test_a_session_used_after_the_plan_stays(
    url: str, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    """Its transaction asks once more."""
    with Store(url) as store:
        talk(store, "used", 100)
        talk(store, "unused", 100)
        done = retention.prune_sessions

        def late(*given: Any) -> Any:
            store.append("used", {"role": "user", "content": "again"}, now=NOW)
            return done(*given)

        monkeypatch.setattr(retention, "prune_sessions", late)
        assert store.prune(**asked, now=NOW, dry_run=False).sessions == 1
        assert [each.id for each in store.sessions()] == ["used"]


def test_a_file_erases_sessions_in_groups(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group is a transaction; of a session that was changed nothing is erased."""
    groups = list[list[Any]]()
    erase = retention.erase_group

    def noted(*given: Any) -> Any:
        groups.append(erase(*given))
        return groups[-1]

    monkeypatch.setattr(retention, "erase_group", noted)
    monkeypatch.setattr(erasure_batches, "GROUP_SECONDS", 60)
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        if done == 1:  # on a server, where the next ones are still there
            store.rename_session("s3", "mine")

    with Store(url) as store:
        for number in range(4):
            talk(store, f"s{number}", 100, 20)
        told_bytes = store.prune(90, now=NOW).bytes
        done = store.prune(90, now=NOW, dry_run=False, progress=tell)
        if store.database.dialect == "sqlite":
            assert ([len(each) for each in groups], told) == ([4], [(4, 4)])
            assert (done.sessions, done.messages) == (4, 80)
        else:
            assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
            assert (groups[-1], ids(store)) == ([None], {"s3"})
            assert (done.sessions, done.messages, done.bytes) == (
                3,
                60,
                done.messages * told_bytes // 80,
            )
        assert store.verify() == []
        with pytest.raises(InvalidValue, match="progress must be"):
            store.prune(90, progress=1)  # type: ignore[arg-type]


def test_many_sessions_are_deleted_in_few_transactions(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as one has time for; on a server each in its own."""
    monkeypatch.setattr(erasure_batches, "GROUP_SECONDS", 60)
    erase, groups = erasure_batches.erase_group, list[int]()

    def noted(*given: Any) -> Any:
        groups.append(len(group := erase(*given)))
        return group

    monkeypatch.setattr(erasure_batches, "erase_group", noted)
    with Store(url) as store:
        for name in ("a", "b", "c"):
            talk(store.scoped("ann"), name, 1, 20)
        assert [each.messages for each in store.delete_owner("ann")] == [20] * 3
        assert groups == ([3] if store.database.dialect == "sqlite" else [1, 1, 1])
        assert (ids(store), store.verify()) == (set(), [])


def test_a_group_ends_in_time_and_the_rest_of_its_last_session_goes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smallest group is one session, whose other messages follow in transactions of their own."""
    monkeypatch.setattr(erasure_batches, "GROUP_SECONDS", 0)
    told: list[tuple[int, int]] = []
    with Store(url) as store:
        for number in range(2):
            talk(store, f"s{number}", 100, 20)
        store.prune(90, now=NOW, dry_run=False, progress=lambda *each: told.append(each))
        assert told == [(1, 2), (2, 2)]
        assert [each.finished for each in store.erasures()] == [True, True]
        assert ids(store) == set()


def test_a_prune_ends_in_time_and_goes_on(store: Store) -> None:
    """What is left goes the next time."""
    for number in range(3):
        talk(store, f"time {number}", 100, owner="time")
    assert store.prune(90, owner="time", now=NOW, dry_run=False, max_seconds=0).sessions == 0
    assert store.prune(90, owner="time", now=NOW, dry_run=False, max_seconds=600).sessions == 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "give idle="),
        ({"idle": -1}, "idle must be"),
        ({"idle": "90d"}, "idle must be"),
        ({"idle": True}, "idle must be"),
        ({"max_bytes": -1}, "max_bytes must be"),
        ({"idle": 1, "keep": ["a"]}, "keep must be a dict"),
    ],
)
def test_what_makes_no_sense_is_refused(store: Store, wrong: dict[str, Any], said: str) -> None:
    """With a sentence that names the option."""
    with pytest.raises(InvalidValue, match=said):
        store.prune(**wrong)


def test_an_owner_prunes_their_own(store: Store) -> None:
    """Another owner's sessions stay."""
    talk(store, "ann's", 100, owner="ann")
    talk(store, "bob's", 100, owner="bob")
    ann = store.scoped("ann")
    assert ann.prune(90, now=NOW, dry_run=False).sessions == 1
    assert store.session("bob's").owner == "bob"
    with pytest.raises(InvalidValue, match="sessions of 'ann'"):
        ann.prune(90, owner="bob", now=NOW)


def test_all_of_an_owner_goes(url: str, tmp_path: Path) -> None:
    """Archived sessions, forks, notes, drafts, prices; what others show stays, and nothing else."""
    prices = tmp_path / "prices.toml"
    prices.write_text("as_of = 2020-01-01\n[models]\nm = { input = 1.0, output = 1.0 }\n")
    with Store(url) as store:
        for owner in ("ann", "bob"):
            talk(store, owner, 1, owner=owner)
            store.set_prices(prices, owner=owner)
            store.annotate(owner, 1, "rating", 5)
        store.archive("ann")
        talk(store, "ann 2", 1, owner="ann")
        store.fork("ann 2", at=2, session_id="ann 3")
        store.index()
        erased = store.delete_owner("ann")
        assert {each.session_id for each in erased} == {"ann", "ann 2", "ann 3"}
        assert ids(store) == {"bob"}
        assert {each.owner for each in store.prices() if each.owner} == {"bob"}
        assert store.delete_owner("ann") == []
        assert store.annotations("bob") != []
        assert [each.session.id for each in store.search("word", by="session")] == ["bob"]
        assert store.verify() == []


async def measure(url: str) -> Any:
    """Prune and measure, awaited."""
    async with AsyncStore(url) as store:
        await store.prune(1, dry_run=False)
        return await store.size("month")


def test_what_a_store_takes_is_told(url: str) -> None:
    """By tables, and by the words of sessions, owners and months."""
    with Store(url) as store:
        talk(store, "a", 100, 10, owner="ann")
        talk(store, "b", 1, 5)
        store.append(
            "b",
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            now=NOW,
        )
        word = len("word 0 ü".encode())
        whole = store.size()
        assert whole.used > 0
        assert {"messages", "sessions"} <= {each.name for each in whole.parts}
        assert sum(each.bytes for each in whole.parts) <= whole.used
        by = {each.name: (each.bytes, each.messages) for each in store.size("session").parts}
        assert by == {"a": (10 * word, 10), "b": (5 * word + 2, 6)}
        owners = [(each.name, each.messages) for each in store.size("owner").parts]
        assert owners == [("ann", 10), (None, 6)]
        assert [each.name for each in store.size("month").parts] == ["2026-06", "2026-09"]
        with pytest.raises(InvalidValue, match="by is one of"):
            store.size("colour")
    assert [each.name for each in asyncio.run(measure(url)).parts] == []
