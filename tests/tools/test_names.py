"""What counts as a name in a text, and which names are told first."""

from __future__ import annotations

from collections import Counter

import pytest

from store.tools import TextName, count_names, rank_names, text_names


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("see ./src/a.py:12:3: and (lib/b.ts#L4-L9)", "path", ["lib/b.ts", "src/a.py"]),
        ("README.md, and/or e.g. v1.2.3 obj.method()", "path", ["README.md"]),
        ("C:\\app\\main.cs", "path", ["C:\\app\\main.cs"]),
        ("<https://a.example/b?c=1,2>,", "url", ["https://a.example/b?c=1,2"]),
        ("TS2345 ENOENT ValueError OK E2", "error", ["ENOENT", "TS2345", "ValueError"]),
        ("port 8080, 120p, commit d0f01287", "number", ["8080", "d0f01287"]),
        (
            "keep_turns HeadMoved sha256 plain x_1",
            "identifier",
            ["HeadMoved", "keep_turns", "sha256"],
        ),
        ("x_" * 500, "identifier", []),
        ("\0bad_name " + "\ud800worse_name", "identifier", []),
    ],
)
def test_names_are_told_apart(text: str, kind: str, found: list[str]) -> None:
    """Each piece of a text is of one kind; plain words, data and what no database keeps is none."""
    assert sorted(name.text for name in count_names(text) if name.kind == kind) == found


def test_a_name_counts_as_often_as_it_is_there() -> None:
    """However it is written around."""
    found = count_names("a_name 'a_name' other_name(a_name)")
    assert found == {TextName("identifier", "a_name"): 3, TextName("identifier", "other_name"): 1}


def test_the_best_names_come_first() -> None:
    """By kind, by how often, up to five times, and by how short they are; else by the alphabet."""
    found = Counter(
        {
            TextName("number", "8080"): 1,
            TextName("identifier", "long_" * 10): 5,
            TextName("identifier", "b_name"): 5,
            TextName("identifier", "a_name"): 50,
            TextName("path", "b.py"): 1,
            TextName("error", "E501"): 2,
        }
    )
    assert [*rank_names(found)] == ["a_name", "b_name", "E501", "b.py", "long_" * 10, "8080"]


def test_what_is_too_long_for_a_name_is_not_remembered() -> None:
    """A picture in a text is one piece of a million characters."""
    before = text_names._parse_piece_names.cache_info().currsize
    assert not count_names("a_1" * 10**5)
    assert text_names._parse_piece_names.cache_info().currsize == before
