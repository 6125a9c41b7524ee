"""Trees of messages."""

from __future__ import annotations

from store.transcripts.events import Opened
from store.transcripts.trees import Tree, tree_events


def test_an_empty_tree_has_no_session() -> None:
    """A conversation in which nothing was said."""
    tree = Tree({}, None, lambda _: [])
    assert list(tree_events(tree, Opened("empty", None, None, {}))) == []
