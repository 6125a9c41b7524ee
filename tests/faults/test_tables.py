"""Every table answers three questions, so that a new one cannot come in without an answer.

What its rows are, what becomes of them when a session is erased, and how it shows when one of them
was changed by other means than the store's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, NamedTuple, get_type_hints

import pytest
from sqlalchemy import insert, select

from store import Policy, Store
from store.database.schema import METADATA, RAW_TABLES, TREE_TABLES


class Answer(NamedTuple):
    """What is said of a table.

    ``is_a``: raw; derived, so that it can be made again from raw rows; beside raw, so that it says
    something that no raw row does. ``erased``: its rows go with their session; or they are the
    record that stays; or they belong to no session. ``sealed``: by a digest of its own; verified
    against other rows; or open, so that a change of a value is seen by nobody.
    """

    is_a: Literal["raw", "derived", "beside"]
    erased: Literal["with its session", "stays", "belongs to none"]
    sealed: Literal["digest", "verified", "open"]


ANSWERS = {
    "messages": Answer("raw", "with its session", "digest"),
    "tool_calls": Answer("raw", "with its session", "digest"),
    "attachments": Answer("beside", "with its session", "verified"),
    "message_attachments": Answer("beside", "with its session", "verified"),
    "tool_results": Answer("derived", "with its session", "verified"),
    "tool_result_paths": Answer("derived", "with its session", "verified"),
    "message_facts": Answer("derived", "with its session", "verified"),
    "token_counts": Answer("derived", "with its session", "open"),
    "ancestors": Answer("derived", "with its session", "verified"),
    "branches": Answer("beside", "with its session", "verified"),
    "sessions": Answer("beside", "with its session", "verified"),
    "session_ids": Answer("beside", "with its session", "verified"),
    "session_keys": Answer("derived", "with its session", "verified"),
    "running_bills": Answer("beside", "with its session", "open"),
    "head_moves": Answer("beside", "with its session", "verified"),
    "summaries": Answer("beside", "with its session", "open"),
    "compaction_records": Answer("beside", "with its session", "verified"),
    "usages": Answer("beside", "with its session", "verified"),
    "requests": Answer("beside", "with its session", "verified"),
    "request_texts": Answer("beside", "with its session", "verified"),
    "notes": Answer("beside", "with its session", "verified"),
    "redactions": Answer("beside", "with its session", "verified"),
    "drafts": Answer("beside", "with its session", "open"),
    "draft_pieces": Answer("beside", "with its session", "verified"),
    "erasures": Answer("beside", "stays", "verified"),
    "kept_usages": Answer("beside", "stays", "verified"),
    "copies": Answer("beside", "belongs to none", "open"),
    "search_rows": Answer("derived", "with its session", "open"),
    "prices": Answer("beside", "belongs to none", "open"),
    "settings": Answer("beside", "belongs to none", "open"),
    "tool_kinds": Answer("beside", "belongs to none", "open"),
}


def test_every_table_has_an_answer() -> None:
    """A new table is red until somebody has thought about the three."""
    assert {*METADATA.tables} == {*ANSWERS}
    hints = get_type_hints(Answer)
    for answer in ANSWERS.values():
        assert all(value in hints[name].__args__ for name, value in answer._asdict().items())


def test_raw_tables_are_the_guarded_ones() -> None:
    """What is raw is what the triggers guard, and it has a digest."""
    assert {name for name, answer in ANSWERS.items() if answer.is_a == "raw"} == {*RAW_TABLES}
    assert {ANSWERS[name].sealed for name in RAW_TABLES} == {"digest"}


def test_what_is_erased_goes(url: str) -> None:
    """The rows of a session are gone from every table that says so, and from no other."""
    with Store(url, durability="normal") as store:
        other = rows(store)
        call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        call["function"] = {"name": "read_file", "arguments": '{"path": "a.py"}'}
        store.create_session("s", metadata={"key": 1})
        picture = "data:image/png;base64," + "AAAA" * 30_000
        part = {"type": "image_url", "image_url": {"url": picture}}
        store.append("s", {"role": "user", "content": [part]})
        for _ in range(9):
            store.append(
                "s",
                [
                    {"role": "user", "content": "word " * 200},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": "text " * 50},
                ],
            )
        store.compact_if_needed("s", Policy.named("paged"))
        store.rewind("s", 20)
        store.redact("s", 2, "asked for")
        store.context("s", system="Be brief.", record=True)
        store.record_usage("s", input=1, output=1)
        with suppress(KeyError), store.streaming("s", {"role": "assistant"}) as answer:
            answer.write("half")
            raise KeyError
        store.annotate("s", 1, "rating", 5)
        assert store.compact("s", Policy(), lambda _: "said").outcome == "applied"
        with store.database.writing() as connection:
            place = connection.execute(select(METADATA.tables["messages"])).first()
            assert place is not None
            count = (place.tree_id, place.branch, place.seq, "e", 1)
            connection.execute(insert(METADATA.tables["token_counts"]).values(count))
        store.search("word")
        filled = {name for name, count in rows(store).items() if count > other[name]}
        goes = {name for name, each in ANSWERS.items() if each.erased == "with its session"}
        goes -= {"ancestors"} if store.database.path else set()
        assert filled == goes
        store.delete_session("s")
        left = {name for name, count in rows(store).items() if count > other[name]}
        assert left == {name for name, each in ANSWERS.items() if each.erased == "stays"}


def rows(store: Store) -> dict[str, int]:
    """Return how many rows each table has."""
    with store.database.reading() as connection:
        return {
            name: len(connection.execute(select(table)).all())
            for name, table in METADATA.tables.items()
        }


@pytest.mark.parametrize("table", TREE_TABLES, ids=lambda table: table.name)
def test_a_conversations_table_goes_or_stays(table: object) -> None:
    """Whatever belongs to a tree belongs to its sessions, or is the record of what went."""
    assert ANSWERS[str(table)].erased != "belongs to none"
