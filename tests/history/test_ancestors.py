"""The ancestors of branches on a server: what the views and `find` read in place of a walk."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import BigInteger, Connection, bindparam, insert, select, text

from store import Store
from store.database import (
    Statement,
    ancestors,
    branches,
    compaction_records,
    head_moves,
    usages,
)
from store.history import lines
from store.history.ancestry import check_ancestors, write_missing_ancestors
from store.history.message_lookup import BRANCH_LINES
from store.history.sessions import BranchStem, write_branch
from store.history.usages import LAST_USAGE, USAGES_PER_POSITION
from store.view.visible_set import RECORD_OUTCOMES

pytestmark = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
Segments = list[tuple[int, int, int]]


def said(content: str, **fields: Any) -> dict[str, Any]:
    """Return a message of a user."""
    return {"role": "user", "content": content, **fields}


def walk_up(connection: Connection, tree_id: int, branch: int, head: int) -> Segments:
    """Return the segments of a line up to a position, from branch to parent."""
    known = {
        row.branch: row
        for row in connection.execute(select(branches).where(branches.c.tree_id == tree_id))
    }
    found: Segments = []
    at, last = known.get(branch), head
    while at is not None:
        first = at.parent_position + 1
        if first <= last:
            found.insert(0, (at.branch, first, last))
        at, last = known.get(at.parent_branch), min(last, at.parent_position)
    return found


@pytest.fixture
def grown(url: str) -> Iterator[tuple[Store, int]]:
    """Give a session with 500 branches, one below the other and beside each other."""
    chance = random.Random(7)
    with Store(url, durability="normal") as store:
        store.create_session("s")
        store.append("s", said("one"))
        with store.database.writing() as connection:
            tree_id = lines.load_pointer(connection, "s").tree_id
            depth = {1: 1}
            for branch in range(2, 501):
                parent = max(1, branch - chance.choice([1, 1, 1, 2]))
                depth[branch] = depth[parent] + chance.choice([0, 1, 1, 2])
                stem = BranchStem(
                    branch, parent, depth[branch], branch * chance.choice([900, 1100])
                )
                write_branch(connection, tree_id, stem, "s", 1)
        yield store, tree_id


@pytest.mark.slow
def test_the_rows_are_what_a_walk_finds(grown: tuple[Store, int]) -> None:
    """Of every part of a line, at any depth; a branch has few rows, and none that is not due."""
    store, tree_id = grown
    chance = random.Random(8)
    with store.database.reading() as connection:
        counts = Counter(connection.execute(select(ancestors.c.branch)).scalars())
        assert 2 in connection.execute(select(ancestors.c.level)).scalars().all()
        assert 16 < max(counts.values()) <= 64
        for branch in (*range(2, 40), *range(380, 400), *chance.sample(range(2, 501), 60)):
            head = connection.scalar(
                select(branches.c.parent_position).where(
                    branches.c.tree_id == tree_id, branches.c.branch == branch
                )
            )
            whole = walk_up(connection, tree_id, branch, head + 1)
            assert all(one[2] + 1 == other[1] for one, other in pairwise(whole))
            line = {"tree_id": tree_id, "branch": branch}
            assert lines.SEGMENTS.rows(connection, **line, start=1, last=head + 1) == whole
            start = chance.randint(1, head + 1)
            last = chance.randint(start, head + 1)
            part = [
                (each, max(start, first), min(last, end))
                for each, first, end in whole
                if first <= last and end >= start
            ]
            assert lines.SEGMENTS.rows(connection, **line, start=start, last=last) == part
        assert [*check_ancestors(connection)] == []


PARAMETER = re.compile(r"(?<!:):(\w+)")


def walked(statement: Statement[Any], texts: tuple[str, ...]) -> Any:
    """Return the text that a file is asked, which walks up the branches, for a server."""
    walking = text(statement.text("sqlite"))
    names = {*PARAMETER.findall(str(walking))} - {*texts}
    return walking.bindparams(*(bindparam(name, type_=BigInteger()) for name in names))


@pytest.mark.slow
def test_a_server_finds_what_a_walk_finds(grown: tuple[Store, int]) -> None:
    """The records and usages that count on a line, and the lines that go through a position."""
    store, tree_id = grown
    chance = random.Random(9)
    asked = dict.fromkeys((RECORD_OUTCOMES, LAST_USAGE, BRANCH_LINES), 0)
    with store.database.writing() as connection:
        first = connection.execute(select(branches).where(branches.c.tree_id == tree_id)).all()
        ends = {row.branch: row.parent_position + 1 for row in first}
        for number, branch in enumerate(chance.sample(range(2, 501), 120), start=1):
            place = {"tree_id": tree_id, "branch": branch}
            told = {"reason": "manual", "outcome": "applied", "created_at": number}
            made = {**told, "kind": "hide", "session_id": "s"}
            compaction = branch * 1000 + number
            record = {**place, **made, "compaction": compaction, "head": ends[branch]}
            connection.execute(insert(compaction_records).values(**record, sealed=b""))
            usage = dict.fromkeys(("input", "output", "cached", "at"), number)
            seen = {**place, "seq": ends[branch], "usage": branch * USAGES_PER_POSITION}
            connection.execute(insert(usages).values(**seen, **usage, sealed=b""))
            left = {"from_branch": branch, "from_position": ends[branch]}
            move = {"to_branch": 1, "to_position": 1, "moved_at": number, "move": number}
            of_session = {"tree_id": tree_id, "session_id": "s", "kind": "rewind"}
            connection.execute(insert(head_moves).values(**of_session, **left, **move, sealed=b""))
        connection.execute(text("ANALYZE"))
        for branch in (1, 2, 16, 17, 18, 280, 400, *chance.sample(range(20, 501), 5)):
            values = {
                "tree_id": tree_id,
                "branch": branch,
                "session_id": "s",
                "never": lines.NO_LIMIT,
            }
            values |= {
                "last": chance.randint(1, ends[branch]),
                "newest": chance.randint(1, 500_000),
            }
            values["seq"] = values["last"]
            for statement in asked:
                walking = walked(statement, ("session_id",))
                known = connection.execute(walking, values).all()
                names = {*PARAMETER.findall(str(walking))}
                rows = statement.rows(connection, **{name: values[name] for name in names})
                assert [*map(tuple, rows)] == [*map(tuple, known)]
                asked[statement] += len(rows)
    assert min(asked.values()) > 5


@pytest.mark.slow
def test_missing_rows_are_found_and_written(grown: tuple[Store, int]) -> None:
    """Rows that came from another store have none; a changed row and a further one are told."""
    store, tree_id = grown
    of_tree = select(ancestors).order_by(*ancestors.primary_key)

    def breaches() -> list[str]:
        with store.database.reading() as connection:
            return [each.problem for each in check_ancestors(connection)]

    with store.database.writing() as connection:
        before = connection.execute(of_tree).all()
        connection.execute(ancestors.delete())
    assert len(breaches()) > 450
    with store.database.writing() as connection:
        write_missing_ancestors(connection, tree_id)
        assert connection.execute(of_tree).all() == before
    assert breaches() == []
    with store.database.writing() as connection:
        more = before[-1]._asdict() | {"ancestor": 3}
        connection.execute(insert(ancestors).values(more))
    assert breaches() == ["its ancestor 3 of level 2 does not follow from the branches"]


def test_a_chat_of_which_every_answer_was_made_anew(url: str) -> None:
    """A branch a turn: the views and `find` read the whole line, for its forks too."""
    with Store(url, durability="normal") as store:
        store.create_session("s", owner="ann")
        for turn in range(40):
            head = store.append("s", said(f"{turn}", id=f"q{turn}"))[-1].seq
            store.append("s", {"role": "assistant", "content": "no", "id": f"no{turn}"})
            store.rewind("s", head)
            store.append("s", {"role": "assistant", "content": "yes", "id": f"yes{turn}"})
        store.fork("s", 60, session_id="f")
        store.append("f", said("on", id="on"))
        made = store.hide("s", 2, 3, "Hidden.")
        store.fork("s", session_id="g")
        with store.database.reading() as connection:
            for name, head in (("s", 80), ("f", 61), ("g", 80)):
                pointer = lines.load_pointer(connection, name)
                rows = connection.execute(
                    text(
                        "SELECT branch, first, last FROM session_segments"
                        " WHERE session_id = :name ORDER BY first"
                    ),
                    {"name": name},
                )
                known = walk_up(connection, pointer.tree_id, pointer.branch, head)
                assert [*map(tuple, rows)] == known
            hidden = connection.execute(
                text("SELECT session_id, seq FROM hidden_messages ORDER BY session_id, seq")
            )
            assert [*map(tuple, hidden)] == [("g", 2), ("g", 3), ("s", 2), ("s", 3)]
            logged = text("SELECT session_id FROM compaction_log WHERE compaction = :made")
            by = connection.execute(logged, {"made": made.id}).scalars()
            assert sorted(map(str, by)) == ["g", "s"]
        found = {name: [each.session_id for each in store.find(name)] for name in ("q5", "q35")}
        assert {name: sorted(each) for name, each in found.items()} == {
            "q5": ["f", "g", "s"],
            "q35": ["g", "s"],
        }
        assert [each.session_id for each in store.find("no5")] == ["s"]
        assert len(store.find("q5", owner="ann")) == 3
        assert store.find("q5", owner="bob") == []
        store.delete_session("s")
        store.delete_session("g")
        assert [each.session_id for each in store.find("q5")] == ["f"]
        assert store.verify() == []
        store.delete_session("f")
        with store.database.reading() as connection:
            assert connection.execute(select(ancestors)).all() == []
