"""The words of a question, and errors that are the same but for numbers, paths and ids."""

from __future__ import annotations

import pytest

from store import InvalidValue
from store.tools import find_like_error, list_error_lines, parse_question_words


def test_words_that_say_nothing_are_left_out() -> None:
    """Names come first; the endings of plain words do not count; a quotation stays whole."""
    words = parse_question_words('Why did we change the parsers of load_group in "make all"?')
    assert [word.text for word in words] == ['"load_group"', '"make all"', "parser…"]
    assert [bool(words[2].pattern.search(text)) for text in ("a parser", "reparser")] == [1, 0]
    assert [word.text for word in parse_question_words("what did we do?")] == [
        "what…",
        '"did"',
        '"we"',
        '"do"',
    ]
    with pytest.raises(InvalidValue, match="no word"):
        parse_question_words("?")


def test_an_error_is_the_same_with_other_numbers_paths_and_ids() -> None:
    """The line most like one that is asked for, if it is like enough."""
    asked = list_error_lines("/srv/a.c:17: fatal error: table_12.h not found\n\n5")
    assert asked == ["fatal error table h not found"]
    lines = ["error: quinoa", "b/zones.c:9: fatal error: table_4711.h not found", "not here"]
    found = find_like_error(asked, lines)
    assert found is not None
    assert (found.likeness, found.line) == (1.0, lines[1])
    assert find_like_error(asked, ["all is well"]) is None
