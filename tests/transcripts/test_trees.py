"""Trees of messages."""

from __future__ import annotations

from store.transcripts.parser_events import SessionEvent
from store.transcripts.trees import Tree, build_tree_events


def test_an_empty_tree_has_no_session() -> None:
    """A conversation in which nothing was said."""
    tree = Tree({}, None, lambda _: [])
    assert list(build_tree_events(tree, SessionEvent("empty", None, None, {}))) == []
