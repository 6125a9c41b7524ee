"""Searches by rarity: for questions in words of a person."""

from __future__ import annotations

import pytest

from store import InvalidValue, Store
from store.search import index_queries
from store.search.terms import parse_terms


def test_the_rarest_words_come_first(store: Store) -> None:
    """A message with one rare word is above those with several common ones."""
    store.create_session("s")
    common = [
        {"role": "user", "content": f"the build fails again {number:02}"} for number in range(20)
    ]
    store.append("s", [*common[:10], {"role": "user", "content": "quinoa"}, *common[10:]])
    hits = store.search("quinoa build", order="rarest", limit=3)
    assert hits[0].seq == 11
    assert [hit.seq for hit in hits[1:]] == [21, 20]
    assert hits[0].snippet == "quinoa"
    whole = store.search("quinoa build", order="rarest", limit=50, session="s")
    assert len(whole) == 21
    assert [hit.score for hit in whole] == sorted((hit.score for hit in whole), reverse=True)


def test_rarity_is_that_of_the_owner(store: Store) -> None:
    """The messages of others change neither order nor score; nor are they found."""
    for owner, texts in (("ann", ["apple pear", "pear", "plum"]), ("bob", ["apple"] * 50)):
        store.create_session(owner, owner=owner)
        store.append(owner, [{"role": "user", "content": text} for text in texts])
        found = store.scoped("ann").search("apple pear", order="rarest")
        assert [(hit.seq, round(hit.score, 9)) for hit in found] == [
            (hit.seq, round(hit.score, 9))
            for hit in store.search("apple pear", order="rarest", session="ann")
        ]
        assert {hit.session_id for hit in found} == {"ann"}


def test_prompts_come_last_and_there_is_no_next_page(store: Store) -> None:
    """As in the best order."""
    store.create_session("p")
    store.append("p", [{"role": role, "content": "apple"} for role in ("system", "user")])
    hits = store.search("apple", order="rarest", session="p")
    assert [hit.role for hit in hits] == ["user", "system"]
    with pytest.raises(InvalidValue, match="next page"):
        store.search("apple", order="rarest", after=hits[0])
    with pytest.raises(InvalidValue, match="next page"):
        store.search("apple", order="rarest", by="session")


@pytest.mark.sqlite_only
def test_a_prefix_is_searched_as_the_words_of_the_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find the same, and the words are those of the state that is searched."""
    store.create_session("words")
    said = ("Chang", "change it", "the CHANGED one", "exchange", "chan", "changed", "chané changé")
    store.append("words", [{"role": "user", "content": each} for each in said])

    def find(text: str) -> list[int]:
        return [hit.seq for hit in store.search(text, order="newest", session="words")]

    assert find("chang…") == [7, 6, 3, 2, 1]
    assert find('"chang…" one') == find('one "chang…"') == [3]
    with store.database.reading() as connection:
        (term,) = index_queries.add_index_words(connection, parse_terms("Chang…"))
        assert term.index_words == ("chang", "change", "changed")
        monkeypatch.setattr(index_queries, "MOST_INDEX_WORDS", 2)
        (term,) = index_queries.add_index_words(connection, parse_terms("Chang…"))
        assert term.index_words == ()
    assert find("chang…") == [7, 6, 3, 2, 1]
    monkeypatch.undo()
    store.append("words", {"role": "user", "content": "changelog"})
    assert find("chang…") == [8, 7, 6, 3, 2, 1]
