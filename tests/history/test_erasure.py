"""The one way out.

A session erased for good, down to the bytes, and nothing of anybody else's with it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from store import Policy, Store
from store.database import Insertion
from store.database.schema import METADATA, TREE_TABLES
from store.errors import NothingToUndo, SessionNotFound

TABLES = METADATA.tables


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def contents(store: Store, session_id: str) -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


def counts(store: Store) -> dict[str, int]:
    """Return how many rows each table has that has any, but for the tools' names, the log of
    erasures and the usages that these keep.
    """
    with store.database.reading() as connection:
        found = {
            name: connection.scalar(select(func.count()).select_from(table))
            for name, table in TABLES.items()
        }
    return {
        name: int(count)
        for name, count in found.items()
        if count and name not in ("tool_kinds", "prices", "settings", "erasures", "kept_usages")
    }


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path": "a.py"}'},
}
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 30_000},
}
TALK = [
    said("one", id="m1"),
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": [PICTURE]},
    said("four"),
]


def fill(store: Store, session_id: str) -> None:
    """Give a session rows in every table, those included that only summaries and counts fill."""
    store.create_session(session_id, title="t", metadata={"k": "v"})
    store.append(session_id, TALK)
    store.rewind(session_id, 3)
    store.undo_rewind(session_id)
    store.context(session_id, user_input="one more", record=True)
    store.record_usage(session_id, input=5, output=1)
    store.annotate(session_id, 2, "rating", 5)
    store.redact(session_id, 4, "asked for")
    with suppress(KeyError), store.streaming(session_id, {"role": "assistant"}) as answer:
        answer.write("half")
        raise KeyError
    derive(store, session_id)
    store.compact_if_needed(session_id, Policy.named("paged"), max_tokens=10**6)
    store.search("one")


def derive(store: Store, session_id: str, marker: str = "body") -> None:
    """Put a summary, a compaction and a count under the first branch of a session."""
    with store.database.writing() as connection:
        tree_id = connection.scalar(
            select(TABLES["session_ids"].c.tree_id).filter_by(id=session_id)
        )
        place = {"tree_id": tree_id, "branch": 1, "created_at": 5}
        summary = {**place, "summary": 1, "first": 1, "last": 2, "body": marker, "title": marker}
        Insertion(TABLES["summaries"], *summary).run(connection, **summary)
        record = {
            **place,
            "compaction": 1,
            "head": 3,
            "reason": "manual",
            "kind": "summary",
            "outcome": "applied",
            "summary": 1,
        }
        Insertion(TABLES["compaction_records"], *record).run(connection, **record)
        count = {"tree_id": tree_id, "branch": 1, "seq": 1, "encoding": "e", "tokens": 1}
        Insertion(TABLES["token_counts"], *count).run(connection, **count)


# --- A whole session ------------------------------------------------------------------------------


def test_a_session_goes_with_all_its_rows(store: Store) -> None:
    """The last session of a tree takes every row of every table with it.

    The record of its erasure stays.
    """
    fill(store, "s")
    assert set(counts(store)) == {table.name for table in TREE_TABLES} - {
        *(("ancestors",) if store.database.path else ()),
        "erasures",
        "kept_usages",
    } | {"session_ids"}
    (erased,) = store.delete_session("s")
    assert (erased.session_id, erased.messages, erased.kept) == ("s", 4, 0)
    assert counts(store) == {}
    assert [(each.session_id, each.messages, each.kept) for each in store.erasures()] == [
        ("s", 4, 0)
    ]
    assert store.verify() == []


def test_an_erased_session_is_unknown(store: Store) -> None:
    """Every operation on it says so, and erasing again too."""
    fill(store, "s")
    store.delete_session("s")
    for operation in (
        store.session,
        store.messages,
        store.view,
        store.fork,
        store.undo_rewind,
        store.delete_session,
    ):
        with pytest.raises(SessionNotFound):
            operation("s")
    with pytest.raises(SessionNotFound):
        store.append("s", said("x"))
    assert store.sessions() == []
    assert len(store.erasures()) == 1


def test_an_id_can_be_used_again(store: Store) -> None:
    """A new session under an erased one's id is another one.

    Nothing of the old comes back, whatever ids it uses.
    """
    fill(store, "s")
    store.delete_session("s")
    store.create_session("s")
    assert contents(store, "s") == []
    with pytest.raises(NothingToUndo):
        store.undo_rewind("s")
    assert [each.seq for each in store.append("s", [*TALK, said("five")])] == [1, 2, 3, 4, 5]
    store.delete_session("s")
    assert counts(store) == {}
    assert [each.messages for each in store.erasures()] == [4, 5]


def test_an_empty_session_is_erased(store: Store) -> None:
    """Having said nothing is no obstacle; it is recorded all the same."""
    store.create_session("s")
    store.create_session("t")
    store.append("t", said("stays"))
    assert store.delete_session("s")[0][:3] == ("s", 0, 0)
    assert [each.session_id for each in store.erasures()] == ["s"]
    assert contents(store, "t") == ["stays"]


def test_an_erasure_that_fails_erases_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error where it begins leaves every row, and no record."""
    from store.history import erasure

    fill(store, "s")
    before = counts(store)

    class Failing:
        def run(self, *_: object, **__: object) -> None:
            raise ZeroDivisionError

    monkeypatch.setattr(erasure, "LOWER_SEEN_RECORDS", Failing())
    with pytest.raises(ZeroDivisionError):
        store.delete_session("s")
    assert counts(store) == before
    assert store.erasures() == []


# --- Among forks ----------------------------------------------------------------------------------


def test_what_was_recorded_where_a_branch_begins_goes_with_it(store: Store) -> None:
    """Usages, compactions and their summaries, of a session without a message of its own."""
    store.create_session("root")
    store.record_usage("root", input=1, output=1)
    store.append("root", [said(f"word {number} " * 40) for number in range(9)])
    store.fork("root", session_id="fork")
    assert store.compact("fork", Policy(), lambda _: "all of it").outcome == "applied"
    store.record_usage("fork", input=1, output=1)
    store.append("fork", [said(f"word {number} " * 40) for number in range(9)])
    store.compact("fork", Policy(previous_summary="append"), lambda _: "more of it")
    view = store.view("root")
    store.delete_session("fork")
    assert counts(store).keys().isdisjoint({"compaction_records", "summaries"})
    assert store.view("root") == view
    store.delete_session("root")
    assert counts(store) == {}


def test_the_numbers_of_what_was_erased_mean_nothing_to_others(store: Store) -> None:
    """A fork that was made after many compactions of an erased one knows nothing of its source's
    next ones.
    """
    store.create_session("root")
    store.append("root", [said(f"word {number} " * 40) for number in range(9)])
    store.fork("root", session_id="gone")
    for _ in range(3):
        store.undo_compaction("gone", store.compact("gone", Policy(), lambda _: "all of it").id)
    store.fork("root", session_id="fork")
    view = store.view("fork")
    store.delete_session("gone")
    assert store.compact("root", Policy(), lambda _: "of the source").outcome == "applied"
    assert (store.view("fork"), store.compactions("fork")) == (view, [])


def test_what_a_fork_needs_stays(store: Store) -> None:
    """Positions that another session's line runs through stay with what hangs on them.

    Those beyond go.
    """
    fill(store, "s")
    store.append("s", said("five"))
    store.fork("s", 3, "f")
    store.append("f", said("fork's own"))
    before = store.messages("f")
    (erased,) = store.delete_session("s")
    assert (erased.messages, erased.kept) == (2, 3)
    assert store.messages("f") == before
    found = counts(store)
    assert (found["messages"], found["tool_calls"], found["summaries"], found["token_counts"]) == (
        4,
        1,
        1,
        1,
    )
    assert store.verify() == []


def test_what_nobody_needs_any_more_goes_later(store: Store) -> None:
    """What an erasure kept for another session goes with that session.

    The tree ends with its last session.
    """
    store.create_session("a")
    store.append("a", [said(number) for number in range(10)])
    store.fork("a", 8, "b")
    store.append("b", said("b"))
    store.fork("b", 9, "c")
    store.fork("a", 5, "d")
    assert store.delete_session("a")[0][1:3] == (2, 8)
    assert contents(store, "c") == [*range(8), "b"]
    store.delete_session("c")
    assert contents(store, "b") == [*range(8), "b"]
    store.delete_session("b")
    assert contents(store, "d") == list(range(5))
    assert counts(store)["messages"] == 5
    store.delete_session("d")
    assert counts(store) == {}
    assert store.verify() == []


@pytest.mark.parametrize("places", [(3, 5, 8), (8, 5, 3), (5, 8, 3)])
def test_the_furthest_fork_decides(store: Store, places: tuple[int, ...]) -> None:
    """Of several forks the one that goes on from the furthest position decides what stays,
    whichever came first.
    """
    store.create_session("s")
    store.append("s", [said(number) for number in range(10)])
    for place in places:
        store.fork("s", place, f"f{place}")
    assert store.delete_session("s")[0][1:3] == (2, 8)
    assert [contents(store, f"f{place}") for place in places] == [
        list(range(place)) for place in places
    ]
    store.delete_session("f8")
    assert counts(store)["messages"] == 5
    assert store.verify() == []


class Model:
    """What a tree of sessions should look like.

    Each line as a list, each session's rewinds to undo.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name
        self.lines: dict[str, list[str]] = {}
        self.rewinds: dict[str, list[list[str]]] = {}
        self.said = 0
        self.create()

    def create(self) -> None:
        """Begin a new tree."""
        session = self.add([])
        self.store.create_session(session)

    def add(self, line: list[str]) -> str:
        """Note a new session; return its id."""
        session = f"{self.name}.{len(self.rewinds)}"
        self.lines[session], self.rewinds[session] = line, []
        return session

    def step(self, kind: str, which: int, number: int) -> None:
        """Do one operation on the store and on the model."""
        if not self.lines:
            self.create()
        session = sorted(self.lines)[which % len(self.lines)]
        getattr(self, kind)(session, number)

    def append(self, session: str, number: int) -> None:
        """Append a few messages."""
        new = [
            f"{self.name}: {self.said + each}" + ", and so on" * 20
            for each in range(number % 4 + 1)
        ]
        self.said += len(new)
        self.store.append(session, [said(content, id=content) for content in new])
        self.lines[session] = self.lines[session] + new

    def fork(self, session: str, number: int) -> None:
        """Fork somewhere on the line."""
        at = number % (len(self.lines[session]) + 1)
        self.store.fork(session, at, self.add(self.lines[session][:at]))

    def rewind(self, session: str, number: int) -> None:
        """Rewind somewhere on the line."""
        to = number % (len(self.lines[session]) + 1)
        self.store.rewind(session, to)
        if to < len(self.lines[session]):
            self.rewinds[session].append(self.lines[session])
            self.lines[session] = self.lines[session][:to]

    def undo(self, session: str, _: int) -> None:
        """Undo the last rewind, if there is one."""
        if self.rewinds[session]:
            self.store.undo_rewind(session)
            self.lines[session] = self.rewinds[session].pop()

    def compact(self, session: str, number: int) -> None:
        """Compact, with a summary or without."""
        policy = Policy(
            keep_turns=number % 2 + 1, facts_chars=0, on_failure="skip" if number % 5 else "abort"
        )
        views = self.others(session)
        self.store.compact(
            session, policy, (lambda _: "said") if number % 3 else self.fail, now=10**12
        )
        assert self.others(session) == views

    def fail(self, _: object) -> str:
        """Have no summary."""
        raise ConnectionError("no model")

    def use(self, session: str, _: int) -> None:
        """Send a request."""
        self.store.record_usage(session, input=1, output=1)

    def delete(self, session: str, _: int) -> None:
        """Erase the session; everybody else's view must be the same, byte for byte."""
        views = self.others(session)
        (erased,) = self.store.delete_session(session)
        del self.lines[session]
        assert erased.session_id == session
        assert self.others(session) == views

    def switch(self, session: str, number: int) -> None:
        """Switch to a branch that it can go back to; only the model does not know what is there."""
        branches = [each.branch for each in self.store.branches(session) if not each.current]
        if branches:
            before = self.store.session(session).revision
            self.store.switch(session, branches[number % len(branches)])
            if self.store.session(session).revision != before:
                self.rewinds[session].append(self.lines[session])
                self.lines[session] = contents(self.store, session)

    def forget(self, session: str, _: int) -> None:
        """Erase what the line has left; all views are the same, and there is no way back."""
        views, totals = self.others(""), self.store.usage_totals()
        self.store.forget(session, now=10**12)
        assert (self.others(""), self.store.usage_totals()) == (views, totals)
        self.rewinds[session] = []
        with pytest.raises(NothingToUndo):
            self.store.undo_rewind(session)

    def others(self, session: str) -> dict[str, Any]:
        """Return what is sent in all sessions but one, and why.

        How much of it an earlier request had is known as long as the source of a fork is there.
        """
        views = {name: self.store.view(name, now=10**12) for name in self.lines if name != session}
        return {
            name: (view.messages, view.entries, view.stats._replace(unchanged_tokens=None))
            for name, view in views.items()
        }

    def check(self) -> None:
        """Fail unless the store shows what the model does."""
        assert {session: contents(self.store, session) for session in self.lines} == self.lines


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "append",
                "append",
                "append",
                "fork",
                "fork",
                "rewind",
                "rewind",
                "undo",
                "switch",
                "forget",
                "delete",
                "compact",
                "compact",
                "use",
            ]
        ),
        st.integers(0, 5),
        st.integers(0, 20),
    ),
    min_size=5,
    max_size=30,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give a store for many trees."""
    with Store(tmp_path_factory.mktemp("trees") / "chat.db", durability="normal") as opened:
        yield opened


@pytest.mark.sqlite_only
@settings(max_examples=30)
@given(steps=STEPS)
def test_erasing_leaves_others_alone(shared: Store, steps: list[tuple[str, int, int]]) -> None:
    """In any tree of forks and rewinds, every other session's line, view and rewinds to undo are as
    they were.
    """
    assert counts(shared) == {}
    model = Model(shared, "t")
    for step in steps:
        model.step(*step)
    model.check()
    assert all(each.finished for each in shared.erasures())
    assert shared.verify() == []
    for session in sorted(model.lines):
        while model.rewinds[session]:
            model.undo(session, 0)
    model.check()
    reachable = {message for line in model.lines.values() for message in line}
    for session in list(model.lines):
        model.delete(session, 0)
        model.check()
        with shared.database.reading() as connection:
            kept = {*connection.scalars(select(TABLES["messages"].c.content))}
        assert (
            {message for line in model.lines.values() for message in line}
            <= kept
            <= reachable | kept
        )
    assert counts(shared) == {}


# --- Down to the bytes ----------------------------------------------------------------------------

SIZES = (12, 40, 300, 900, 3000, 4090, 9000, 70_000)


def marked(size: int, chance: random.Random) -> str:
    """Return a text of about a size that is full of the marker.

    No piece of it of 40 bytes is without.
    """
    return " ".join(f"SECRET{chance.getrandbits(16):04x}" for _ in range(max(1, size // 11)))


def secrets(chance: random.Random, size: int) -> list[dict[str, Any]]:
    """Return messages that hold the marker wherever a caller can put something."""
    path = f"SECRET{chance.random()}/{chance.random()}.py"
    function = {
        "name": "read_file",
        "arguments": f'{{"path": "{path}", "note": "{marked(size, chance)}"}}',
    }
    call = {
        "id": f"SECRET{chance.random()}",
        "type": "function",
        "function": function,
        "odd": marked(20, chance),
    }
    return [
        said(
            marked(size, chance),
            id=f"SECRET{chance.random()}",
            name="SECRETname",
            extra=[marked(size // 2, chance)],
        ),
        {
            "role": "assistant",
            "content": [{"type": "text", "text": marked(size, chance)}],
            "tool_calls": [call],
        },
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": marked(size, chance),
            "messageStatus": "SECRETstatus",
        },
        {"role": "SECRETrole", "content": None},
    ]


def traces(folder: Path) -> dict[str, int]:
    """Return which files hold the marker, and how often."""
    found = {each.name: each.read_bytes().count(b"SECRET") for each in folder.iterdir()}
    return {name: count for name, count in found.items() if count}


@pytest.mark.sqlite_only
@pytest.mark.parametrize("seed", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_the_bytes_are_gone(tmp_path: Path, seed: int) -> None:
    """After much writing beside it, no byte of an erased session is left in any file, in no freed
    or torn page.
    """
    chance = random.Random(seed)
    with Store(tmp_path / "chat.db", durability="normal") as store:
        for other in ("before", "s", "after"):
            store.create_session(other)
        store.set_metadata("s", {"a": marked(100, chance)})
        store.rename_session("s", marked(50, chance))
        store.rename_session("s", marked(5000, chance))
        for _ in range(120):
            store.append(chance.choice(("before", "after")), said("other " * chance.choice(SIZES)))
            store.append("s", secrets(chance, chance.choice(SIZES)))
            if chance.random() < 0.1:
                store.fork(
                    "s", chance.randint(0, store.session("s").head), f"SECRET{chance.random()}"
                )
                store.rewind("s", chance.randint(1, store.session("s").head))
        derive(store, "s", marked(8000, chance))
        assert traces(tmp_path)["chat.db"] > 1000
        for session in store.sessions():
            if session.id not in ("before", "after"):
                assert store.delete_session(session.id)[0].finished
        with store.database.writing() as connection:
            connection.execute(text("DELETE FROM erasures"))  # it names the sessions, on purpose
        assert store.purge()
        assert traces(tmp_path) == {}
        assert {len(set(contents(store, other))) > 2 for other in ("before", "after")} == {True}
    assert traces(tmp_path) == {}


@pytest.mark.sqlite_only
@pytest.mark.slow
def test_a_reader_delays_the_purge(tmp_path: Path) -> None:
    """While somebody reads an older state its bytes must stay.

    The purge says so, and one when he has ended is enough for all erasures.
    """
    with Store(tmp_path / "chat.db", timeout=0.2) as store, Store(tmp_path / "chat.db") as other:
        for session in ("s", "t"):
            store.create_session(session)
        store.append("s", said(marked(9000, random.Random(0))))
        with other.database.reading() as connection:
            count = select(func.count()).select_from(TABLES["messages"])
            assert connection.scalar(count) == 1
            assert store.delete_session("s", purge=True)[0].purged is False
            assert connection.scalar(count) == 1
            assert "reads an older state" in str(store.purge().problem)
            assert "reads an older state" in str(store.purge(idle=True).problem)
        store.delete_session("t")
        assert [each.purged for each in store.erasures()] == [False, False]
        assert traces(tmp_path) != {}
        assert store.purge().problem is None
        assert [each.purged for each in store.erasures()] == [True, True]
        assert traces(tmp_path) == {}


@pytest.mark.sqlite_only
def test_an_erasure_is_done_even_where_the_purge_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer getting in between the commit and the purge is no error.

    The session is gone.
    """
    with Store(tmp_path / "chat.db", timeout=0.2) as store, Store(tmp_path / "chat.db") as other:
        store.create_session("s")
        purge = store.database.purge

        def purge_behind_another(*arguments: Any, **options: Any) -> None:
            with other.database.writing() as connection:
                connection.execute(text("DELETE FROM tool_kinds WHERE name = 'nothing'"))
                purge(*arguments, **options)

        monkeypatch.setattr(store.database, "purge", purge_behind_another)
        assert store.delete_session("s", purge=True)[0].purged is False
        assert store.sessions() == []
