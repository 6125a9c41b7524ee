"""Search as one owner has it: as if nobody else were there, and never empty by lateness."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import database

from store import Policy, Scoped, Store
from store.errors import CompactionError, InvalidValue
from store.importing import import_file
from store.records import Hit, Hits
from store.search import hits as searching
from store.search import index

NOW = 1_767_225_600_000
WORDS = [f"{begin}{end}" for begin in ("par", "zon", "ka") for end in ("cel", "table", "new", "ly")]
NAMES = ["src/zoneTable.py", "request_queue", "parcelOf42", "数据库设计"]
QUERIES = 1_000


def said(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": content, **more}


def called(chance: random.Random, number: int) -> list[dict[str, Any]]:
    """Return a call and its result."""
    name = chance.choice(["read_file", "shell"])
    function = {"name": name, "arguments": json.dumps({"path": chance.choice(NAMES)})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": f"c{number}", "content": text(chance)}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def text(chance: random.Random) -> str:
    """Return some words, and a name now and then."""
    words = chance.choices(WORDS, k=chance.randint(1, 30))
    return " ".join([*words, *chance.sample(NAMES, chance.choice([0, 0, 1]))])


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store of its own to each test: what is in the index is part of it."""
    with Store(url, durability="normal") as opened:
        yield opened


# --- Whose summaries ------------------------------------------------------------------------------


def test_a_summary_made_after_a_fork_is_not_found_in_it(store: Store) -> None:
    """Whoever has the fork, and in each way of asking; those of before are, and it stays so."""
    store.create_session("A", owner="alice")
    store.append("A", [said(f"turn {number} " * 9) for number in range(8)])
    store.scoped("alice").hide("A", 1, 2, "an early remark: zebra")
    store.fork("A", at=8, session_id="hers")
    store.fork("A", at=8, session_id="F", owner="bob")
    store.scoped("alice").hide("A", 3, 4, "a private remark: salary 91000")
    store.append("A", [said(f"turn {number} " * 9) for number in range(8, 12)])
    made = store.compact("A", Policy(), lambda _: "The salary was told.")
    assert made.outcome == "applied"
    bob = store.scoped("bob")
    for _ in ("as it is", "indexed"):
        for ask in (
            lambda word: bob.search(word),
            lambda word: bob.search(word, session="F", left=True),
            lambda word: store.search(word, session="hers"),
            lambda word: store.search(word, owner="bob", order="newest"),
        ):
            assert ask("salary") == []
            assert [(hit.role, hit.seq) for hit in ask("zebra")] == [("summary", 2)]
        hits = store.search("salary", session="A")
        assert {hit.compaction for hit in hits} == {each.id for each in store.compactions("A")[1:]}
        store.index()
    bob.hide("F", 1, 5, "what bob says: giraffe")
    assert store.search("giraffe", owner="alice") == store.search("giraffe", session="A") == []
    assert [hit.session_id for hit in bob.search("giraffe")] == ["F"]


def grow(store: Store, chance: random.Random, ids: list[str], now: int) -> None:
    """Do something to one of some sessions, or fork it."""
    session = chance.choice(ids)
    head = store.session(session).head
    act = chance.choice(["fork", "hide", "hide", "rewind", "append", "undo"])
    if act == "fork":
        ids.append(f"s{len(ids)}")
        at, owner = chance.randint(1, head), chance.choice(["o0", "o1"])
        store.fork(session, at, session_id=ids[-1], owner=owner, now=now)
    elif act == "append":
        store.append(session, [said("and more")] * 2, now=now)
    elif act == "rewind" and head > 3:
        store.rewind(session, head - chance.randint(1, 2), now=now)
    elif act == "hide":
        last = chance.randint(1, head)
        hide(store, session, chance.randint(1, last), last, "a summary", now)
    elif act == "undo":
        applied = [each for each in store.compactions(session) if each.outcome == "applied"]
        for made in applied[-1:]:
            store.undo_compaction(session, made.id or 0, now=now)


def hide(face: Store | Scoped, session: str, first: int, last: int, summary: str, now: int) -> None:
    """Hide a range, unless something in it has to stay."""
    with suppress(CompactionError):
        face.hide(session, first, last, summary, now=now)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(4)
def test_summaries_are_found_where_they_are_listed(store: Store, seed: int) -> None:
    """In random trees: by a search of a session as by its compactions."""
    chance = random.Random(seed)
    ids = ["s0"]
    store.create_session("s0", owner="o0", now=NOW)
    store.append("s0", [said(f"turn {number} " * 9) for number in range(8)], now=NOW)
    for number in range(1, 25):
        grow(store, chance, ids, NOW + number)
    for session in ids:
        hits = store.search("summary", session=session, limit=1000)
        listed = [each.id for each in store.compactions(session) if each.summary]
        assert sorted(hit.compaction or 0 for hit in hits) == sorted(listed)
    for owner in ("o0", "o1"):
        theirs = [each.id for each in store.sessions(owner=owner)]
        listed_of = {each.id for one in theirs for each in store.compactions(one) if each.summary}
        hits = store.scoped(owner).search("summary", limit=1000)
        assert {hit.compaction for hit in hits} == listed_of


# --- Nobody else ----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Bob's sessions beside those of alice, and in a store of their own."""

    shared: Store
    bob: Scoped
    own: Store
    alone: Scoped


@pytest.fixture
def pair(made: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Give two stores in which bob says the same, in one of them beside alice."""
    with ExitStack() as stack:
        folders = (tmp_path_factory.mktemp(name) for name in ("shared", "own"))
        urls = [stack.enter_context(database(folder, made)) for folder in folders]
        shared, own = (stack.enter_context(Store(url, durability="normal")) for url in urls)
        yield Pair(shared, shared.scoped("bob"), own, own.scoped("bob"))


def talk(pair: Pair, chance: random.Random, steps: int, *, indexes: bool = True) -> None:
    """Let both say things, bob the same in both stores; alice searches and indexes in between."""
    shared, bob, _, alone = pair
    alice = shared.scoped("alice")
    alice.create_session("A", title="parcel of alice", now=NOW)
    begun = [said(text(chance), timestamp=NOW + number) for number in range(6)]
    alice.append("A", begun, now=NOW)
    shared.fork("A", at=4, session_id="F", owner="bob", title="a zontable", now=NOW + 10)
    alone.create_session("F", title="a zontable", now=NOW + 10)
    alone.append("F", begun[:4], now=NOW)
    for name in ("b1", "b2", "b3"):
        title, now = text(chance), NOW + chance.randint(11, 13)
        for face in (bob, alone):
            face.create_session(name, title=title, now=now)
    for number in range(steps):
        disturb(shared, chance, number, indexes=indexes)
        act(pair, chance, number)


def disturb(shared: Store, chance: random.Random, number: int, *, indexes: bool) -> None:
    """Let alice say something, and maybe do something to the index."""
    alice, now = shared.scoped("alice"), NOW + 20 + number // 2
    alice.append("A", [said(text(chance) + " parcel" * 9), *called(chance, number)], now=now)
    if chance.random() < 0.2:
        hide(alice, "A", 1, chance.randint(1, 6), text(chance), now)
    if chance.random() < 0.2:
        alice.search(chance.choice(WORDS))
    if indexes and chance.random() < 0.1:
        chance.choice([alice, shared]).index()


def act(pair: Pair, chance: random.Random, number: int) -> None:
    """Let bob say something, and maybe take it back or hide it, the same in both stores."""
    now, session = NOW + 20 + number // 2, chance.choice(["b1", "b2", "b3", "F"])
    more = chance.choice([[said(text(chance))], called(chance, number)])
    rewinds, hides, summary = chance.random() < 0.15, chance.random() < 0.1, text(chance)
    for face in (pair.bob, pair.alone):
        face.append(session, more, now=now)
        head = face.session(session).head
        if rewinds:
            face.rewind(session, head - 1, now=now)
        if hides:
            hide(face, session, 1, head // 2, summary, now)


def shown(hits: list[Hit]) -> list[tuple[Any, ...]]:
    """Return all of hits but the numbers of branches and records, which a tree's sessions share."""
    return [hit._replace(branch=0, compaction=None) for hit in hits]


def asked(chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a random query."""
    words = chance.choices(
        [*WORDS, *NAMES, "oneTab", "equest_q", "据库"], k=chance.choice([1, 1, 2])
    )
    options: dict[str, Any] = {"order": chance.choice(["best", "best", "newest"])}
    options["limit"] = chance.choice([1, 3, 20, 1000])
    options["left"] = chance.random() < 0.3
    if chance.random() < 0.2:
        options["roles"] = chance.choice(["user", ["tool", "summary"], ["title", "assistant"]])
    if chance.random() < 0.1:
        options["tools"] = ["shell"]
    if chance.random() < 0.2:
        options["session"] = chance.choice(["b1", "F"])
    if chance.random() < 0.1:
        options["since"] = NOW + chance.randint(0, 60)
    return " ".join(words), options


@pytest.mark.parametrize("ranked", [searching.MOST_RANKED, 7])
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4))])
def test_an_owners_search_is_that_of_a_store_of_its_own(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, seed: int, ranked: int
) -> None:
    """A thousand queries: hits, their order and scores, pages, and how far it looked."""
    monkeypatch.setattr(searching, "MOST_RANKED", ranked)
    chance = random.Random(seed)
    talk(pair, chance, 60)
    for number in range(QUERIES // (8 if seed > 1 else 40)):
        if number == 3:
            pair.shared.index()
        words, options = asked(chance)
        here, there = (face.search(words, **options) for face in (pair.bob, pair.alone))
        assert shown(here) == shown(there), (words, options)
        assert here.behind == there.behind == 0
        if here:
            after = chance.randrange(len(here))
            pages = [
                face.search(words, **options, after=hits[after])
                for face, hits in ((pair.bob, here), (pair.alone, there))
            ]
            assert shown(pages[0]) == shown(pages[1]), (words, options)


@pytest.mark.sqlite_only
def test_only_an_owners_own_is_behind(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is looked through: as many as in a store of its own; none where all is."""
    monkeypatch.setattr(searching, "try_index_step", lambda _: None)
    monkeypatch.setattr(searching, "BACKLOG_SECONDS", -1)
    monkeypatch.setattr(searching, "LEAST_READ", 0)
    talk(pair, random.Random(5), 40, indexes=False)
    for options in ({}, {"left": True}, {"session": "F"}, {"session": "b1", "left": True}):
        here, there = (face.search("parcel", **options) for face in (pair.bob, pair.alone))
        assert here.behind == there.behind > 0
    assert pair.shared.search("parcel").behind > pair.bob.search("parcel").behind
    assert pair.bob.index() == pair.alone.index()
    assert pair.bob.index().waiting == pair.bob.search("parcel").behind == 0
    pair.shared.scoped("alice").append("A", said("parcel"), now=NOW)
    assert pair.bob.search("parcel").behind == 0
    assert pair.shared.search("parcel").behind == 1


def test_an_owner_finds_what_is_new_while_others_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of another's messages come first; the owner may take them in, too."""
    monkeypatch.setattr(index, "STEP_MESSAGES", 4)
    alice, bob = store.scoped("alice"), store.scoped("bob")
    for face, name, number in ((alice, "A", 60), (bob, "B", 3), (alice, "A", 60)):
        face.create_session(name, exist_ok=True)
        face.append(name, [said(f"word of {name}")] * number)
    hits = bob.search("word")
    assert ([hit.seq for hit in hits], hits.behind) == ([3, 2, 1], 0)
    assert bob.index()[:3] == (True, 3, 0)
    assert store.index().messages == 123


@pytest.mark.sqlite_only
def test_the_newest_are_looked_at_however_busy_the_machine_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no time is left at once, the last few all the same; the others are told of."""
    monkeypatch.setattr(searching, "try_index_step", lambda _: None)
    monkeypatch.setattr(searching, "BACKLOG_SECONDS", -1)
    store.create_session("s")
    store.append("s", [said("a word")] * (searching.LEAST_READ + 5))
    hits = store.search("word", limit=100)
    assert ([hits[0].seq, len(hits)], hits.behind) == (
        [searching.LEAST_READ + 5, searching.LEAST_READ],
        5,
    )


def test_a_role_of_others_is_none_for_an_owner(store: Store) -> None:
    """Whether anybody says something as an auditor is not to be found out."""
    alice, bob = store.scoped("alice"), store.scoped("bob")
    for face, name in ((alice, "A"), (bob, "B")):
        face.create_session(name)
        face.append(name, said("a word"))

    def refused(face: Scoped) -> str:
        with pytest.raises(InvalidValue) as told:
            face.search("word", roles=["auditor"])
        return str(told.value)

    before = refused(bob)
    store.fork("A", session_id="F", owner="bob")
    alice.append("A", said("a word", "auditor"))
    assert refused(bob) == before
    assert [hit.seq for hit in alice.search("word", roles=["auditor"])] == [2]
    bob.append("F", said("my word", "auditor"))
    bob.rewind("F", 1)
    assert bob.search("word", roles=["auditor"]) == []
    assert len(bob.search("word", roles=["auditor"], left=True)) == 1


# --- Pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["best", "newest"])
@pytest.mark.parametrize("ranked", [searching.MOST_RANKED, 9])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sampled(4)
def test_pages_go_on_while_sessions_grow(
    store: Store, monkeypatch: pytest.MonkeyPatch, seed: int, ranked: int, order: str
) -> None:
    """No hit twice, none missing of those that were there; whoever indexes meanwhile."""
    monkeypatch.setattr(searching, "MOST_RANKED", ranked)
    monkeypatch.setattr(index, "STEP_MESSAGES", 5)
    chance = random.Random(seed)
    for name in ("s", "t", "u"):
        store.create_session(name, title=f"parcel {name}", now=NOW + chance.randint(0, 1))
        for number in range(6):
            more = [said(f"{text(chance)} parcel"), said("anotherparcelName parcelOf42")]
            store.append(name, chance.sample(more, chance.randint(1, 2)), now=NOW + number)
        store.hide(name, 1, 2, "a parcel of summaries", now=NOW + 9)
    known = {(hit.session_id, hit.seq, hit.role) for hit in store.search("parcel", limit=1000)}
    met: list[Hit] = []
    page = store.search("parcel", order=order, limit=3)
    while page:
        met += page
        for name in chance.sample(["s", "t", "u"], 2):
            store.append(name, said(f"{text(chance)} parcel"), now=NOW + 20)
        if chance.random() < 0.2:
            store.index()
        page = store.search("parcel", order=order, limit=3, after=met[-1])
    places = [(hit.session_id, hit.seq, hit.role) for hit in met]
    assert len(places) == len({*places})
    assert known <= {*places}


@pytest.mark.parametrize("order", ["best", "newest"])
def test_pages_go_on_after_a_hit_that_is_no_more(store: Store, order: str) -> None:
    """What was said before it comes next."""
    store.create_session("s")
    for number in range(9):
        store.append("s", said(f"parcel number {number}"), now=NOW + number)
    store.index()
    first = store.search("parcel", order=order, limit=4)
    store.redact("s", first[-1].seq, "asked for")
    rest = store.search("parcel", order=order, after=first[-1])
    assert [hit.seq for hit in (*first, *rest)] == [9, 8, 7, 6, 5, 4, 3, 2, 1]


# --- What is late ---------------------------------------------------------------------------------


def test_what_has_no_row_is_found_as_what_has_one(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same hits in the same order, whether the index has them or not."""
    with monkeypatch.context() as patch:
        patch.setattr(searching, "try_index_step", lambda _: None)
        talk(pair, random.Random(7), 30)
        monkeypatch.setattr(searching, "BACKLOG_SECONDS", 60)
        chance = random.Random(8)
        queries = [asked(chance) for _ in range(40)]
        for _, options in queries:
            options["order"] = "best"
        late = [pair.alone.search(words, **options) for words, options in queries]
    pair.own.index()
    for hits, (words, options) in zip(late, queries, strict=True):
        assert pair.alone.search(words, **options) == hits, (words, options)


@pytest.mark.slow
def test_an_import_leaves_nothing_waiting(store: Store, tmp_path: Path) -> None:
    """Of 12,000 messages the first search finds the words of the newest thousand."""
    file = tmp_path / "long.jsonl"
    turns = (json.dumps(said(f"word{number} " * 9)) for number in range(12_000))
    file.write_text("\n".join(turns))
    (told,) = import_file(store, file).sessions
    assert told.messages == 12_000
    for seq in random.Random(1).sample(range(11_001, 12_001), 100):
        hits = store.search(f"word{seq - 1}")
        assert ([hit.seq for hit in hits], hits.behind) == ([seq], 0)


@pytest.mark.slow
def test_users_find_what_they_said_last_while_others_write(url: str) -> None:
    """Fifty of them, while ten write: none misses it."""
    missed: list[tuple[str, int, Hits]] = []
    is_over = threading.Event()
    with Store(url, durability="normal") as store:

        def search(user: str) -> None:
            mine = store.scoped(user)
            mine.create_session(user)
            for turn in range(4):
                mine.append(user, said(f"what {user} says in turn{turn}"))
                hits = mine.search(f"turn{turn}")
                if [hit.seq for hit in hits] != [turn + 1]:
                    missed.append((user, turn, hits))

        def write(number: int) -> None:
            mine = store.scoped(f"writer {number}")
            mine.create_session(f"w{number}")
            while not is_over.is_set():
                mine.append(f"w{number}", [said(f"much that turn1 of {number} says")] * 40)

        writers = [threading.Thread(target=write, args=(number,)) for number in range(10)]
        users = [threading.Thread(target=search, args=(f"user{number}",)) for number in range(50)]
        for thread in (*writers, *users):
            thread.start()
        for thread in users:
            thread.join()
        is_over.set()
        for thread in writers:
            thread.join()
    assert missed == []


@pytest.mark.sqlite_only
def test_the_progress_of_an_index_counts_what_is_the_owners(store: Store) -> None:
    """However much others have; the last call tells that all is in the index."""
    for name, owner, count in (("a", "ann", 300), ("b", "bob", 700), ("c", "ann", 20)):
        store.create_session(name, owner=owner)
        store.append(name, [said(f"word {number}") for number in range(count)])
    told: list[tuple[int, int]] = []
    ann = store.scoped("ann").index(progress=lambda done, total: told.append((done, total)))
    assert (ann.messages, ann.waiting) == (320, 0)
    assert [total for _, total in told] == [320] * len(told)
    assert sorted(done for done, _ in told) == [done for done, _ in told]
    assert (told[0][0], told[-1]) == (256, (320, 320))
