"""The index of names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.messages import Message
from store.phrases import render_phrase
from store.summaries import names_index
from store.summaries.names_index import NameIndex, NameUse

HEADING = render_phrase("names_met", "en")


NAME = st.text(alphabet="ab长_/.", min_size=1, max_size=12)
KNOWN = st.dictionaries(
    NAME, st.builds(NameUse, st.integers(0, 3), st.integers(1, 20), st.integers(1, 50)), max_size=12
)


def of(*messages: Message, root: str | None = None) -> NameIndex:
    """Return the names of messages at positions from 1 on."""
    known: NameIndex = {}
    for seq, message in enumerate(messages, 1):
        names_index.add_message(known, seq, message, root)
    return known


def call(**arguments: object) -> Message:
    """Return an assistant's message with one call."""
    function = {"name": "edit", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]}


def test_names_are_met_in_texts_and_in_arguments() -> None:
    """With who said them, in how many messages, and where last; however deep in the arguments."""
    assert of(
        {"role": "user", "content": "mend foo_bar, foo_bar"},
        call(edits=[{"old": "foo_bar\nsetUp"}]),
        {"role": "tool", "tool_call_id": "c", "content": "foo_bar in a/b.py"},
    ) == {"foo_bar": NameUse(3, 3, 3), "setUp": NameUse(1, 1, 2), "a/b.py": NameUse(0, 1, 3)}


def test_paths_are_told_as_the_root_sees_them() -> None:
    """Those below it; the root's name alone is no part of another folder's."""
    text = "/srv/app/src/a.py /srv/apple/b.py /srv/app/src"
    message: Message = {"role": "user", "content": text}
    for root in ("/srv/app", "/srv/app/"):
        assert {*of(message, root=root)} == {"src/a.py", "/srv/apple/b.py", "src"}


def test_what_is_said_and_short_and_new_comes_first() -> None:
    """By the product of the three: who said it and how often, how late, by the code point."""
    known = {
        "old_one": NameUse(0, 1, 1),
        "new_one": NameUse(0, 1, 100),
        "of_user": NameUse(2, 1, 100),
        "of_model": NameUse(1, 1, 100),
        "often": NameUse(0, 8, 100),
        "a/long/path/to/somewhere.py": NameUse(1, 1, 100),
    }
    expected = ["often", "of_model", "of_user", "a/long/path/to/somewhere.py", "new_one", "old_one"]
    assert [*names_index.select_names(known, 1000)] == expected


def test_of_names_without_room_the_next_shorter_one_is_told() -> None:
    """One a line, and none cut."""
    names = ["a/b.py", "x" * 100, "foo_bar"]
    assert names_index.render_index(names, 40) == f"{HEADING}\na/b.py\nfoo_bar"
    assert names_index.render_index(names, len(HEADING) + 7) == f"{HEADING}\na/b.py"
    assert names_index.render_index(names, len(HEADING) + 6) == ""
    assert names_index.render_index([], 1000) == ""


@given(KNOWN, st.integers(0, 80))
def test_an_index_keeps_its_room(known: NameIndex, room: int) -> None:
    """Whole names within their limit, the same every time; what is kept can be read again."""
    ranked = names_index.select_names(known, room)
    text = names_index.render_index(ranked, room)
    assert len(text) <= room
    assert {*text.split("\n")[1:]} <= {*known}
    assert text == names_index.render_index(
        names_index.select_names(dict(reversed(known.items())), room), room
    )
    assert names_index.parse_index(names_index.dump_index(ranked)) == ranked
    assert {*names_index.select_names(known, 1000)} == {*known}


@given(KNOWN, KNOWN, KNOWN)
def test_ranges_are_merged_in_any_portions(
    first: NameIndex, second: NameIndex, third: NameIndex
) -> None:
    """Times are added up, the last position stays the last."""
    together = names_index.merge_indexes(names_index.merge_indexes(first, second), third)
    assert together == names_index.merge_indexes(first, names_index.merge_indexes(second, third))
    assert names_index.merge_indexes({}, first) == names_index.merge_indexes(first, {}) == first


@pytest.mark.parametrize("content", [None, 3, "\0\ud800", [{"type": "image"}], {"a": ["b/c.py"]}])
def test_any_content_may_come_in(content: object) -> None:
    """What is no text has no names."""
    message = {"role": "tool", "content": content, "tool_calls": [None, {"function": 3}]}
    assert {*of(message)} <= {"b/c.py"}
