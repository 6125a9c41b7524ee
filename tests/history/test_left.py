"""Branches: what a session has left, what a fork sees of its source, and the way back to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from store import Branch, Conflict, Sibling, Store
from store.errors import InvalidValue, NothingToUndo, PositionOutOfRange, SessionNotFound


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own."""
    with Store(url, durability="normal") as opened:
        yield opened


def say(store: Store, session: str, texts: str) -> None:
    """Append one message for each letter."""
    store.append(session, [{"role": "user", "content": each} for each in texts])


def line(store: Store, session: str, branch: int | None = None) -> str:
    """The letters of a line."""
    return "".join(each.message["content"] for each in store.messages(session, branch=branch))


def lines(store: Store, session: str) -> dict[int, str]:
    """The lines of a session's branches, the present one's number negated."""
    return {
        -each.branch if each.current else each.branch: line(store, session, each.branch)
        for each in store.branches(session)
    }


def begun(store: Store, texts: str) -> str:
    """A session with this line."""
    store.create_session("s")
    say(store, "s", texts)
    return "s"


# --- what there is --------------------------------------------------------------------------------


def test_a_session_has_one_branch_at_first(store: Store) -> None:
    """Its own, which continues nothing."""
    begun(store, "")
    assert store.branches("s") == [Branch(1, None, 0, 0, None, current=True)]
    say(store, "s", "ab")
    assert store.branches("s") == [Branch(1, None, 0, 2, None, current=True)]


def test_each_rewind_leaves_a_branch(store: Store) -> None:
    """It ends where the head was, and tells since when it is left."""
    begun(store, "abc")
    store.rewind("s", 2, now=10**12)
    say(store, "s", "xyz")
    store.rewind("s", 1, now=10**12 + 1)
    assert store.branches("s") == [
        Branch(1, None, 0, 3, 10**12, current=False),
        Branch(2, 1, 2, 5, 10**12 + 1, current=False),
        Branch(3, 1, 1, 1, None, current=True),
    ]
    assert lines(store, "s") == {1: "abc", 2: "abxyz", -3: "a"}


def test_an_undo_leaves_a_branch_too(store: Store) -> None:
    """What was said after the rewind can be gone back to."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    store.undo_rewind("s")
    assert lines(store, "s") == {-1: "abc", 2: "ax"}
    assert store.switch("s", 2).head == 2
    assert line(store, "s") == "ax"


# --- switch ---------------------------------------------------------------------------------------


def test_a_switch_goes_to_the_end_of_a_branch_and_on_from_there(store: Store) -> None:
    """On the branch itself, so that it grows."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    assert (store.switch("s", 1).branch, line(store, "s")) == (1, "abc")
    say(store, "s", "d")
    store.switch("s", 2)
    say(store, "s", "y")
    assert lines(store, "s") == {1: "abcd", -2: "axy"}


def test_a_switch_to_a_position_leaves_the_branch_as_it_is(store: Store) -> None:
    """It continues the branch from there on one of its own."""
    begun(store, "abcd")
    store.rewind("s", 0)
    say(store, "s", "x")
    session = store.switch("s", 1, to=2)
    assert (session.branch, session.head) == (3, 2)
    say(store, "s", "Y")
    assert lines(store, "s") == {1: "abcd", 2: "x", -3: "abY"}
    assert [move.kind for move in store.head_moves("s")] == ["rewind", "switch"]


def test_a_switch_is_undone_like_a_rewind(store: Store) -> None:
    """One by one with rewinds, whatever was said in between."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    store.switch("s", 1)
    say(store, "s", "d")
    store.switch("s", 2, to=1)
    seen = [line(store, "s")]
    for _ in range(3):
        store.undo_rewind("s")
        seen.append(line(store, "s"))
    assert seen == ["a", "abcd", "ax", "abc"]
    with pytest.raises(NothingToUndo, match="no rewind or switch to undo"):
        store.undo_rewind("s")


def test_undoing_brings_back_what_was_there_not_what_came_since(store: Store) -> None:
    """The branch has grown meanwhile: the head then stands on a new one, and appends go on."""
    begun(store, "abc")
    store.rewind("s", 1)
    store.switch("s", 1)
    say(store, "s", "d")
    store.undo_rewind("s")
    store.undo_rewind("s")
    assert line(store, "s") == "abc"
    say(store, "s", "D")
    assert lines(store, "s") == {1: "abcd", 2: "a", -3: "abcD"}
    assert store.verify() == []


def test_a_session_goes_on_as_another_one_of_its_tree(store: Store) -> None:
    """From its end or a position of it; both go on, each for itself, and it can be undone."""
    begun(store, "abc")
    store.fork("s", 1, "f")
    say(store, "f", "xy")
    assert store.switch("s", None, of="f").head == 3
    say(store, "s", "z")
    say(store, "f", "w")
    assert (line(store, "s"), line(store, "f")) == ("axyz", "axyw")
    assert lines(store, "s") == {1: "abc", -3: "axyz"}
    assert (store.undo_rewind("s").branch, line(store, "s")) == (1, "abc")
    store.switch("f", 3, of="s", to=2)
    assert line(store, "f") == "ax"
    assert store.switch("s", 1, of="s") == store.session("s")
    store.switch("s", 3)
    store.delete_session("f")
    assert line(store, "s") == "axyz"
    assert store.verify() == []


def test_what_a_session_shares_nothing_with_is_no_branch_of_it(store: Store) -> None:
    """Another tree's session, one that is not there, a branch that the other has not."""
    begun(store, "abc")
    store.create_session("other")
    store.fork("s", 1, "f")
    for of, branch, wrong in (("other", None, InvalidValue), ("f", 1, InvalidValue)):
        with pytest.raises(wrong):
            store.switch("s", branch, of=of)
    with pytest.raises(SessionNotFound):
        store.switch("s", None, of="none")
    assert line(store, "s") == "abc"


def test_a_switch_to_where_the_head_is_changes_nothing(store: Store) -> None:
    """No move is recorded, the revision stays."""
    begun(store, "abc")
    before = store.session("s")
    assert store.switch("s", 1) == store.switch("s", 1, to=3) == before
    assert store.head_moves("s") == []
    assert (store.switch("s", 1, to=2).branch, line(store, "s")) == (2, "ab")


def test_a_switch_takes_an_expected_revision(store: Store) -> None:
    """Another one is refused, and nothing is done."""
    begun(store, "abc")
    early = store.session("s").revision
    late = store.rewind("s", 1).revision
    with pytest.raises(Conflict):
        store.switch("s", 1, expected=early)
    assert store.switch("s", 1, expected=late).revision not in (early, late)


@pytest.mark.parametrize("wrong", [0, 3, -1, 2**70, 2**62, "1", None, 1.0])
def test_a_branch_that_is_not_there_is_refused(store: Store, wrong: Any) -> None:
    """With what to do; a session's branches are no other's."""
    begun(store, "abc")
    store.create_session("other")
    store.rewind("s", 1)
    for attempt in (store.switch, lambda session, branch: store.fork(session, branch=branch)):
        if wrong is not None or attempt == store.switch:
            with pytest.raises(InvalidValue, match=r"`branches` lists those|no database can hold"):
                attempt("s", wrong)
    with pytest.raises(InvalidValue):
        store.switch("other", 2)


def test_what_else_is_refused(store: Store) -> None:
    """Positions that a branch has not; sessions that are not there."""
    begun(store, "abc")
    store.rewind("s", 1)
    for position in (-1, 4, True, "1"):
        with pytest.raises(PositionOutOfRange):
            store.switch("s", 1, to=position)  # type: ignore[arg-type]
    with pytest.raises(PositionOutOfRange):
        store.fork("s", at=4, branch=1)
    for attempt in (store.branches, lambda session: store.siblings(session, 1)):
        with pytest.raises(SessionNotFound):
            attempt("none")
    with pytest.raises(SessionNotFound):
        store.switch("none", 1)


# --- forks ----------------------------------------------------------------------------------------


def test_a_fork_of_a_branch_that_was_left(store: Store) -> None:
    """From its end, or from any position of its line."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    assert line(store, store.fork("s", branch=1).id) == "abc"
    assert line(store, store.fork("s", 2, branch=1).id) == "ab"
    assert line(store, store.fork("s", branch=2).id) == line(store, "s") == "ax"


def test_a_fork_sees_what_its_source_had_left(store: Store) -> None:
    """As it was then: not what the source says, or leaves, or continues later."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    store.fork("s", session_id="f")
    store.switch("s", 1)
    say(store, "s", "d")
    store.rewind("s", 0)
    assert lines(store, "f") == {1: "abc", -3: "ax"}
    assert lines(store, "s") == {1: "abcd", 2: "ax", -4: ""}
    assert line(store, store.fork("f", branch=1).id) == "abc"


def test_a_fork_goes_on_with_what_it_sees_on_a_branch_of_its_own(store: Store) -> None:
    """Which is then in the place of the other; the source's stays what it was."""
    begun(store, "abc")
    store.rewind("s", 1)
    store.fork("s", session_id="f")
    assert store.switch("f", 1, to=2).head == 2
    assert lines(store, "f") == {1: "abc", 3: "a", -4: "ab"}
    assert store.switch("f", 1).branch == 5
    say(store, "f", "F")
    assert lines(store, "f") == {3: "a", 4: "ab", -5: "abcF"}
    assert lines(store, "s") == {1: "abc", -2: "a"}
    store.undo_rewind("f")
    assert line(store, "f") == "ab"
    assert store.verify() == []


def test_a_fork_of_a_fork_sees_through_it(store: Store) -> None:
    """What the middle one saw when it was forked, and what that had left itself."""
    begun(store, "abc")
    store.rewind("s", 1)
    store.fork("s", session_id="f")
    say(store, "f", "x")
    store.rewind("f", 0)
    store.fork("f", session_id="g")
    store.switch("f", 1)
    assert lines(store, "g") == {1: "abc", 3: "ax", -5: ""}
    assert lines(store, "f") == {3: "ax", 4: "", -6: "abc"}
    assert lines(store, store.fork("f").id) == {3: "ax", -7: "abc"}


def test_the_erasure_of_a_source_takes_what_was_seen_of_it(store: Store) -> None:
    """But not what the fork went on with; and who takes the id anew shows nothing of its own."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    store.rewind("s", 0)
    store.fork("s", session_id="f")
    store.switch("f", 2)
    store.delete_session("s")
    assert lines(store, "f") == {4: "", -5: "ax"}
    store.fork("f", session_id="s")
    say(store, "s", "y")
    store.rewind("s", 0)
    assert lines(store, "f") == {4: "", -5: "ax"}
    with pytest.raises(InvalidValue):
        store.switch("f", 1)
    assert store.verify() == []


def test_forks_of_an_older_release_see_their_own_alone(store: Store) -> None:
    """Their first move does not say what their source had done by then."""
    begun(store, "abc")
    store.rewind("s", 1)
    store.fork("s", session_id="f")
    with store.database.writing() as connection:
        connection.execute(text("UPDATE head_moves SET source_move = NULL, source_record = NULL"))
    assert lines(store, "f") == {-3: "a"}


# --- siblings -------------------------------------------------------------------------------------


def siblings(store: Store, session: str, seq: int) -> list[tuple[str, int, bool]]:
    """The siblings at a position: letter, branch, whether it is the current one."""
    found = store.siblings(session, seq)
    assert {each.seq for each in found} <= {seq}
    return [(each.message["content"], each.branch, each.current) for each in found]


def test_siblings_follow_the_same_message(store: Store) -> None:
    """Answers made anew, in the order in which they were; the first message has siblings too."""
    begun(store, "abc")
    for texts in ("x", "yz"):
        store.rewind("s", 1)
        say(store, "s", texts)
    assert siblings(store, "s", 2) == [("b", 1, False), ("x", 2, False), ("y", 3, True)]
    assert siblings(store, "s", 1) == [("a", 3, True)]
    assert siblings(store, "s", 3) == [("z", 3, True)]
    store.replace("s", 0, [{"role": "user", "content": "A"}])
    assert siblings(store, "s", 1) == [("a", 3, False), ("A", 4, True)]
    assert store.siblings("s", 1)[1] == Sibling(4, 1, {"role": "user", "content": "A"}, True)


def test_a_sibling_leads_to_where_it_was_left_last(store: Store) -> None:
    """Its branch is the newest of those whose lines run through it."""
    begun(store, "abcd")
    store.rewind("s", 3)
    say(store, "s", "D")
    store.rewind("s", 1)
    say(store, "s", "x")
    assert siblings(store, "s", 2) == [("b", 2, False), ("x", 3, True)]
    store.switch("s", 1)
    store.switch("s", 3)
    assert siblings(store, "s", 2) == [("b", 1, False), ("x", 3, True)]
    store.switch("s", 1)
    assert siblings(store, "s", 4) == [("d", 1, True), ("D", 2, False)]


def test_what_may_follow_the_head(store: Store) -> None:
    """After a rewind the siblings of the next message are what was there; none is current."""
    begun(store, "abc")
    store.rewind("s", 2)
    assert siblings(store, "s", 3) == [("c", 1, False)]
    store.undo_rewind("s")
    assert siblings(store, "s", 4) == []
    for wrong in (0, 5, -1, True, "1", None):
        with pytest.raises(PositionOutOfRange):
            store.siblings("s", wrong)  # type: ignore[arg-type]


def test_siblings_of_a_fork(store: Store) -> None:
    """What its source had left is among them, what the source says later is not."""
    begun(store, "abc")
    store.rewind("s", 1)
    say(store, "s", "x")
    store.fork("s", 1, "f")
    store.replace("s", 1, [{"role": "user", "content": "y"}])
    say(store, "f", "F")
    assert siblings(store, "f", 2) == [("b", 1, False), ("F", 3, True)]
    assert siblings(store, "s", 2) == [("b", 1, False), ("x", 2, False), ("y", 4, True)]
    store.switch("f", 1)
    assert siblings(store, "f", 2) == [("b", 5, True), ("F", 3, False)]


# --- whatever happens -----------------------------------------------------------------------------


class Known:
    """What is known of a session: its lines by branch, where it stands, what can be undone."""

    def __init__(self, own: dict[int, str], current: int, inherited: dict[int, str]) -> None:
        self.own, self.current, self.inherited = own, current, inherited
        self.begun = {current: len(own[current])}
        self.undo: list[tuple[int, int]] = []
        self.left: list[int] = []

    @property
    def line(self) -> str:
        """The present line."""
        return self.own[self.current]

    @property
    def others(self) -> dict[int, str]:
        """The lines that it can go back to."""
        own = {branch: line for branch, line in self.own.items() if branch != self.current}
        return self.inherited | own

    def stands(self, branch: int, line: str) -> None:
        """Go to a branch, perhaps a new one."""
        self.left = [each for each in self.left if each != self.current] + [self.current]
        self.begun.setdefault(branch, len(line))
        self.own.setdefault(branch, line)
        self.current = branch


class World:
    """Sessions of a tree; what is said is told apart, so that equal lines are the same one."""

    def __init__(self, store: Store, chance: Random) -> None:
        self.store, self.chance, self.said = store, chance, 0x4E00
        session = store.create_session()
        self.said_on: dict[str, int] = {}
        self.known = {session.id: Known({session.branch: ""}, session.branch, {})}

    def happen(self) -> None:
        """Let something happen to some session."""
        session, known = self.chance.choice([*self.known.items()])
        events: list[Callable[[str, Known], None]] = [self.append, self.rewind, self.switch]
        self.chance.choice([*events, self.append, self.switch, self.undo, self.fork])(
            session, known
        )
        self.look(session, known)

    def append(self, session: str, known: Known) -> None:
        """Say something that was never said."""
        texts = "".join(map(chr, range(self.said, self.said + self.chance.randrange(1, 4))))
        self.said += len(texts)
        say(self.store, session, texts)
        known.own[known.current] += texts
        self.said_on |= dict.fromkeys(texts, known.current)

    def rewind(self, session: str, known: Known) -> None:
        """Go back on the line."""
        to = self.chance.randrange(len(known.line) + 1)
        here = known.current, len(known.line)
        after = self.store.rewind(session, to)
        if to < here[1]:
            known.undo.append(here)
            known.stands(after.branch, known.line[:to])

    def switch(self, session: str, known: Known) -> None:
        """Go to a branch, or to a position of its line."""
        branch = self.chance.choice([*known.others, known.current])
        line = (known.others | known.own)[branch]
        to = self.chance.choice([None, len(line), self.chance.randrange(len(line) + 1)])
        end = to in (None, len(line))
        here = known.current, len(known.line)
        after = self.store.switch(session, branch, to)
        if end and branch == known.current:
            return
        known.undo.append(here)
        assert (end and branch in known.own) == (after.branch == branch)
        known.stands(after.branch, line[:to])
        if end:
            known.inherited.pop(branch, None)

    def undo(self, session: str, known: Known) -> None:
        """Take the last of these back."""
        if not known.undo:
            with pytest.raises(NothingToUndo):
                self.store.undo_rewind(session)
            return
        branch, head = known.undo.pop()
        after = self.store.undo_rewind(session)
        line = known.own[branch]
        assert (head == len(line)) == (after.branch == branch)
        known.stands(after.branch, line[:head])

    def fork(self, session: str, known: Known) -> None:
        """Begin another session, from any position of any branch."""
        branch = self.chance.choice([None, *known.others])
        line = known.line if branch is None else known.others[branch]
        at = self.chance.choice([None, self.chance.randrange(len(line) + 1)])
        made = self.store.fork(session, at, branch=branch)
        seen = {
            each: texts
            for each, texts in known.others.items()
            if each in known.inherited or len(texts) > known.begun[each]
        }
        if branch is not None and at in (None, len(line)):
            seen.pop(branch, None)
        self.known[made.id] = Known({made.branch: line[:at]}, made.branch, seen)

    def look(self, session: str, known: Known) -> None:
        """All lines are what they should be, and so are the siblings at some position."""
        here = {-known.current: known.line}
        assert lines(self.store, session) == known.others | here
        assert self.store.session(session).head == len(known.line)
        seq = self.chance.randrange(1, len(known.line) + 2)
        every = known.others | {known.current: known.line}
        through = {
            branch: line
            for branch, line in every.items()
            if len(line) >= seq and line[: seq - 1] == known.line[: seq - 1]
        }
        found = siblings(self.store, session, seq)
        there = {line[seq - 1] for line in through.values()}
        assert [letter for letter, *_ in found] == sorted(there, key=self.said_on.__getitem__)
        for letter, branch, current in found:
            assert every[branch][seq - 1] == letter
            assert current == (known.line[seq - 1 : seq] == letter)
            alike = [each for each, line in through.items() if line[seq - 1] == letter]
            assert branch == (known.current if current else self.last(known, alike, branch))

    def last(self, known: Known, alike: list[int], found: int) -> int:
        """The branch that was left last of some; what a source left is as good as any other."""
        own = [each for each in known.left if each in alike]
        return own[-1] if own else found


@settings(max_examples=120)
@given(st.randoms(use_true_random=False), st.integers(1, 25))
def test_every_branch_can_be_gone_back_to(store: Store, chance: Random, events: int) -> None:
    """Whatever is appended, rewound, switched, undone and forked, in any order."""
    world = World(store, chance)
    for _ in range(events):
        world.happen()
    for session, known in world.known.items():
        world.look(session, known)
    assert store.verify() == []


# --- two processes --------------------------------------------------------------------------------


def two_lines(url: str) -> list[int]:
    """Make a session that has left a branch; return its two branches."""
    with Store(url, durability="normal") as store:
        first = store.session(begun(store, "abc")).branch
        second = store.rewind("s", 1).branch
        say(store, "s", "xy")
        assert {each.branch for each in store.branches("s")} == {first, second}
        return [first, second]


def test_who_knows_the_revision_moves_and_nobody_else(url: str, fork: Callable[..., Any]) -> None:
    """Two processes go to the line where the session is not: each success is one move, in a row."""
    first, second = two_lines(url)
    times = 30

    def go() -> None:
        left = times
        with Store(url, durability="normal") as store:
            while left:
                known = store.session("s")
                other = second if known.branch == first else first
                try:
                    moved = store.switch("s", other, expected=known.revision)
                except Conflict:
                    continue
                assert (moved.branch, moved.revision == known.revision) == (other, False)
                left -= 1

    for child in [fork(go) for _ in range(2)]:
        child.result()
    with Store(url) as store:
        _, *moves = store.head_moves("s")
        assert [each.kind for each in moves] == ["switch"] * 2 * times
        places = [each.to_branch for each in moves]
        assert places == [first, second] * times
        assert [each.from_branch for each in moves] == [second, *places[:-1]]
        assert [line(store, "s", branch) for branch in (first, second)] == ["abc", "axy"]
        assert store.verify() == []


@pytest.mark.slow
def test_messages_and_moves_of_two_processes_are_all_there(
    url: str, fork: Callable[..., Any]
) -> None:
    """Each message once, in the order of who said it, on some branch; each move can be undone."""
    branches = two_lines(url)
    names, times = "pq", 25

    def talk(name: str) -> None:
        chance = Random(name)
        with Store(url, durability="normal") as store:
            for number in range(times):
                said = {"role": "user", "content": f"{name}{number:02}", "id": f"{name}{number}"}
                store.append("s", said)
                store.switch("s", chance.choice(branches), chance.choice([None, None, 1]))

    for child in [fork(talk, name) for name in names]:
        child.result()
    with Store(url) as store:
        found = [store.find(f"{name}{number}") for name in names for number in range(times)]
        assert [len(each) for each in found] == [1] * len(names) * times
        for each in store.branches("s"):
            texts = [
                stored.message["content"] for stored in store.messages("s", branch=each.branch)
            ]
            for name in names:
                said = [text for text in texts if text[0] == name]
                assert said == sorted({*said})
        moves = store.head_moves("s")
        assert [each.move for each in moves] == [*range(1, len(moves) + 1)]
        for move in reversed(moves):
            before = store.messages("s", branch=move.from_branch, at=move.from_position)
            assert store.undo_rewind("s").head == move.from_position
            assert store.messages("s") == before
        with pytest.raises(NothingToUndo):
            store.undo_rewind("s")
        assert store.verify() == []
