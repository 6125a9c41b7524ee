"""Trees that grow between two imports: what is new is appended, or a fork."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from store import Store
from store.importing import import_file

Parents = dict[str, str | None]
NAME = "tree"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give a store."""
    with Store(tmp_path / "chat.db", durability="normal") as opened:
        yield opened


def exported(parents: Parents, current: str) -> dict[str, Any]:
    """Return a conversation of ChatGPT: a question below an answer, and the other way round."""
    mapping = {}
    for node, parent in parents.items():
        role = ("user", "assistant")[len(path_to(parents, node)) % 2 == 0]
        content = {"content_type": "text", "parts": [node]}
        message = {"id": node, "author": {"role": role}, "content": content}
        mapping[node] = {"id": node, "parent": parent, "message": message}
    return {"conversation_id": NAME, "mapping": mapping, "current_node": current}


def path_to(parents: Parents, node: str | None) -> list[str]:
    """Return the nodes down to one."""
    path = []
    while node is not None:
        path.append(node)
        node = parents[node]
    return path[::-1]


def leaves(parents: Parents) -> set[str]:
    """Return the nodes that nothing follows."""
    return {*parents} - {*parents.values()}


def lines(store: Store) -> dict[str, list[str]]:
    """Return what the line of each session says."""
    return {
        each.id: [str(said.message["content"]) for said in store.messages(each.id)]
        for each in store.sessions()
    }


def stored(store: Store) -> int:
    """Count the messages that are stored, on whichever line."""
    with store.database.reading() as connection:
        return connection.scalar(text("SELECT COUNT(*) FROM messages"))


def taken(store: Store, file: Path, parents: Parents, current: str) -> None:
    """Import a tree twice; what is in the store then is what the file says, each node once."""
    file.write_text(json.dumps(exported(parents, current)))
    report = import_file(store, file)
    assert {each.differs_at for each in report.sessions} == {None}
    known = lines(store)
    assert known[NAME] == path_to(parents, current)
    for leaf in leaves(parents):
        assert path_to(parents, leaf) in known.values()
    again = import_file(store, file)
    assert {each.appended for each in again.sessions} == {0}
    assert lines(store) == known
    assert stored(store) == len(parents)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(40))
def test_a_tree_may_grow_anywhere(store: Store, tmp_path: Path, seed: int) -> None:
    """Whichever answer is made anew, whichever path is the present one then."""
    chance = random.Random(seed)
    parents: Parents = {"n1": None}
    for _ in range(5):
        for _ in range(chance.randint(1, 3)):
            parents[f"n{len(parents) + 1}"] = chance.choice([*parents])
        current = chance.choice(sorted(leaves(parents)))
        taken(store, tmp_path / "tree.json", parents, current)
    assert store.verify() == []


def test_a_branch_of_a_branch_begins_where_most_of_its_path_stands(
    store: Store, tmp_path: Path
) -> None:
    """Not where the line was that is left: that is behind the first of its nodes only."""
    parents: Parents = {"n1": None, "n2": "n1", "n3": "n2", "n4": "n3", "n5": "n2", "n6": "n1"}
    taken(store, tmp_path / "tree.json", parents, "n5")
    parents |= {"n7": "n3"}
    taken(store, tmp_path / "tree.json", parents, "n6")
    assert lines(store)["tree/branch-n7"] == ["n1", "n2", "n3", "n7"]
