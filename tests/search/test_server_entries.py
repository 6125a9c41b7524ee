"""Entries on a server: written with their messages, and once for those that were stored before."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from store import Policy, Store, copying
from store.history import append, search_entries
from store.history.lines import Line, lock_session
from store.inspection import query
from store.search import index

pytestmark = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"),
    reason="no server: set CONVOSTORE_TEST_URL to the URL of one",
)

KEYS = "SELECT seq, summary FROM search_rows ORDER BY branch, seq, summary"


def said(text: str) -> dict[str, str]:
    """A message of a user."""
    return {"role": "user", "content": text}


def reached(url: str) -> str | None:
    """Return how far entries are written."""
    rows = query(url, "SELECT value FROM settings WHERE name = 'search_entries'").rows
    return str(rows[0][0]) if rows else None


def lose_entries(store: Store) -> None:
    """Leave a store as one of a release that wrote no entries."""
    with store.database.writing() as connection:
        index.clear_index(connection)


def test_entries_are_written_with_their_messages(url: str, tmp_path: Path) -> None:
    """Of messages, summaries, replaced texts and copied trees: no search has to write one."""
    with Store(url) as store, Store(tmp_path / "other.db") as other:
        assert reached(url) == "complete"
        store.create_session("s")
        store.append("s", [said("a secret of parcels"), said("two"), said("three")])
        assert query(url, KEYS).rows == [(1, 0), (2, 0), (3, 0)]
        store.compact("s", Policy(keep_messages=1), summarizer=lambda *_: "About harbours.")
        store.redact("s", 1, "a name", replacement="nothing of boxes")
        assert query(url, KEYS).rows == [(1, 0), (2, 0), (2, 1), (3, 0)]
        (words,) = query(url, "SELECT CAST(words AS text) FROM search_rows WHERE seq = 1").rows
        assert "secret" not in words[0]
        other.create_session("t")
        other.append("t", [said(f"copied {number}") for number in range(70)])
        other.compact("t", Policy(keep_messages=1), summarizer=lambda *_: "About quays.")
        copying.copy(other, store)
        for word, count in {
            "boxes": 1,
            "parcels": 0,
            "harbours": 1,
            "copied": 70,
            "quays": 1,
        }.items():
            hits = store.search(word, limit=100)
            assert (len(hits), hits.behind) == (count, 0), word
        assert not store.health().behind
        assert store.verify() == []
        store.delete_session("t")
        store.delete_session("s")
        assert query(url, KEYS).rows == []


def test_older_messages_get_their_entries_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps, in the order of their keys; who goes on begins where the last one ended."""
    monkeypatch.setattr(index, "STEP_MESSAGES", 4)
    with Store(url) as store:
        for name in ("a", "b"):
            store.create_session(name)
            store.append(name, [said(f"word {number}") for number in range(5)])
        lose_entries(store)
        assert len(store.search("word", limit=50)) == 10
        assert len(query(url, KEYS).rows) == 4
        begun = json.loads(reached(url) or "")
    with Store(url) as store:
        store.append("a", said("word of now"))
        store.search("word")
        assert json.loads(reached(url) or "") > begun
        assert store.index().waiting == 0
        assert (reached(url), store.search("now").behind) == ("complete", 0)
        assert len(query(url, KEYS).rows) == 11


def test_an_older_text_replaces_no_newer_one(url: str) -> None:
    """Whoever adds entries may have read a message before it was redacted."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", said("a secret"))
        lose_entries(store)
        with store.database.reading() as connection:
            found = index._find_new_messages(connection)
            (entry,) = index._build_message_entries(connection, found)
        store.redact("s", 1, "a name")
        with store.database.writing() as connection:
            place = index.search_entries.EntryPlace(*entry[:4])
            index.search_entries.add_older_entry(connection, place, entry.text)
        assert not store.search("secret")


def test_an_erased_text_gets_no_entry(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure waits for who writes older entries, and what it took is left out."""
    add_entry, lock_trees = search_entries.add_older_entry, search_entries.lock_trees_by_number
    with Store(url) as store, Store(url) as another:
        for name in ("a", "b", "c"):
            store.create_session(name)
            store.append(name, [said("a secret"), said("of parcels"), said("and quays")])
            store.compact(name, Policy(keep_messages=1), summarizer=lambda *_: "About harbours.")
        lose_entries(store)
        erasures = [threading.Thread(target=another.delete_session, args=(name,)) for name in "ab"]

        def lock_after_erasure(*arguments: Any) -> None:
            if not erasures[0].ident:
                erasures[0].start()
                erasures[0].join()
            lock_trees(*arguments)

        def add_while_erasing(*arguments: Any) -> None:
            if not erasures[1].ident:
                erasures[1].start()
                erasures[1].join(0.3)
                assert erasures[1].is_alive()
            add_entry(*arguments)

        monkeypatch.setattr(search_entries, "lock_trees_by_number", lock_after_erasure)
        monkeypatch.setattr(search_entries, "add_older_entry", add_while_erasing)
        assert store.index().waiting == 0
        erasures[1].join()
        assert query(url, KEYS).rows == [(1, 0), (2, 0), (2, 1), (3, 0)]
        assert {hit.session_id for hit in store.search("secret")} == {"c"}
        assert reached(url) == "complete"


def test_switching_search_on_waits_for_writers(url: str) -> None:
    """What an append before it leaves without an entry gets one; while it is off none is written."""
    with Store(url) as store, Store(url) as another:
        store.create_session("s")
        store.index(on=False)
        store.append("s", said("unseen"))
        assert (query(url, KEYS).rows, reached(url)) == ([], None)
        switched = threading.Thread(target=another.index, kwargs={"on": True})
        with store.database.writing() as connection:
            line = Line(connection, lock_session(connection, "s", None))
            append.insert_batch(line, append.prepare_batch(said("late"), 1))
            connection.exec_driver_sql("SELECT 1")  # by now the server has its rows
            switched.start()
            switched.join(0.3)
            assert switched.is_alive()
        switched.join()
        assert [each.seq for each in store.search("late")] == [2]
        assert (len(query(url, KEYS).rows), reached(url)) == (2, "complete")


PLANS = """SELECT generic_plans, custom_plans FROM pg_prepared_statements
WHERE statement LIKE '%%search_rows%%$1%%' = {} AND custom_plans + generic_plans > 0"""


def test_searches_are_planned_for_their_words(url: str) -> None:
    """A rare word is looked up where a frequent one is not; all else is planned once for all."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", [said(f"about parcels number {number}") for number in range(9)])
        for _ in range(20):
            assert len(store.search("parcels", session="s")) == 9
        with store.database.reading() as connection:
            searches, others = (
                connection.exec_driver_sql(PLANS.format(each)).all() for each in ("true", "false")
            )
    assert searches
    assert [generic for generic, custom in searches if generic or custom < 10] == []
    assert max(generic for generic, _ in others) > 0
