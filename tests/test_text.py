"""Texts made shorter: how long they may be, what they say of the rest, and that they stay so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.text import (
    format_count,
    hide_password,
    parse_json,
    parse_object,
    truncate,
    truncate_middle,
    truncate_to_line,
)

texts = st.text("ab \n\t…é", max_size=200)
limits = st.integers(0, 60)
signs = st.sampled_from(["…", "..."])


@given(texts, limits, signs, st.booleans())
def test_a_shortened_text_keeps_its_limit_and_its_beginning(
    text: str, limit: int, ellipsis: str, at_line_end: bool
) -> None:
    """What fits stays as it is, and so does what was shortened."""
    found = truncate(text, limit, ellipsis=ellipsis, at_line_end=at_line_end)
    assert len(found) <= limit or found == text
    assert truncate(found, limit, ellipsis=ellipsis, at_line_end=at_line_end) == found
    if found != text and limit > len(ellipsis):
        assert found.endswith(ellipsis)
        assert text.startswith(found.removesuffix(ellipsis))


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("one\ntwo\nthree\nfour", 15, "one\ntwo\n..."),
        ("one\ntwo and three and four", 16, "one\ntwo and t..."),
        ("one two three four", 16, "one two three..."),
        ("one\ntwo\n", 8, "one\ntwo\n"),
    ],
)
def test_a_text_ends_with_a_line_in_its_last_half(text: str, limit: int, expected: str) -> None:
    """A line that ends sooner is not worth what it would cost."""
    assert truncate(text, limit, ellipsis="...", at_line_end=True) == expected


@given(texts, st.integers(1, 60), signs)
def test_one_line_has_no_line_ends(text: str, limit: int, ellipsis: str) -> None:
    """Nor two spaces side by side; what is left out is said by the ellipsis."""
    found = truncate_to_line(text, limit, ellipsis=ellipsis)
    assert len(found) <= limit
    assert found.split() == found.split(" ") or found == ""
    assert truncate_to_line(found, limit, ellipsis=ellipsis) == found
    whole = " ".join(text.split())
    assert found in (whole, ellipsis[:limit]) or found.endswith(ellipsis[:limit])


def test_of_a_very_long_text_only_the_beginning_is_read() -> None:
    """And the rest is not kept secret, even if what was read is short in one line."""
    assert truncate_to_line("a" + " " * 1000 + "b", 10) == "a…"


@given(texts, st.integers(60, 120), st.sampled_from([None, "..."]))
def test_both_ends_of_a_text_keep_their_limit(text: str, limit: int, gap: str | None) -> None:
    """The last code points stay as they are."""
    found = truncate_middle(text, limit, tail=5, gap=gap)
    assert len(found) <= limit
    assert truncate_middle(found, limit, tail=5, gap=gap) == found
    assert found == text or (found.endswith(text[-5:]) and (gap or " more characters)") in found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        (' {"a": 1}\n', {"a": 1}),
        ("{}", {}),
        ("[1]", {}),
        ('"{}"', {}),
        ("{broken}", {}),
        ("", {}),
        (None, {}),
        ([{"a": 1}], {}),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, {}),
    ],
    ids=lambda value: json.dumps(value)[:20],
)
def test_a_json_object_or_nothing(value: Any, expected: dict[str, Any]) -> None:
    """Whatever comes in, nothing is raised."""
    assert parse_object(value) == expected


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} x', "[1] [2]", "nothing"])
def test_what_is_no_json_text_or_more_than_one_has_no_value(text: str) -> None:
    """Only space around it is to be taken off before."""
    with pytest.raises(ValueError, match=r"Expecting|behind"):
        parse_json(text)
    assert parse_json('{"a": [1, "b"]}') == {"a": [1, "b"]}


@pytest.mark.parametrize(
    ("number", "noun", "told"),
    [
        (1, "entry", "1 entry"),
        (0, "result", "0 results"),
        (2000, "file entry", "2,000 file entries"),
        (3, "day", "3 days"),
    ],
)
def test_a_number_of_things_is_told_in_words(number: int, noun: str, told: str) -> None:
    """One stands alone, and a thing that ends in y becomes several."""
    assert format_count(number, noun) == told


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ann:secret@host:5432/chat", "postgresql://ann:***@host:5432/chat"),
        ("postgresql://ann:a:b@c/d@host/chat", "postgresql://ann:***@host/chat"),
        (
            "postgresql://host:1/c?user=a&password=b@c&x=1",
            "postgresql://host:1/c?user=a&password=***&x=1",
        ),
        ("postgresql:/ann:secret@host/chat", "postgresql:/ann:***@host/chat"),
        ("postgresql:ann:secret@host/chat", "postgresql:ann:***@host/chat"),
        ("postgresql://ann@host:5432/chat", "postgresql://ann@host:5432/chat"),
        ("/home/ann/chat.db", "/home/ann/chat.db"),
    ],
)
def test_a_url_is_told_without_its_passwords(url: str, told: str) -> None:
    """Also one that a person mistyped, or a password whose signs are not quoted."""
    assert hide_password(url) == told
