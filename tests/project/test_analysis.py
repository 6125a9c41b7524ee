"""The ten questions of `examples/analysis.sql`, asked on both engines."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import ROOT
from sqlalchemy import text

from store import Policy, Store
from store.cli.demo_session import DEMO_NOW, build_conversation
from store.inspection import query, views

FILE = ROOT / "examples" / "analysis.sql"
QUESTION = re.compile(r"^-- question (\d+): .*\n((?:.*\n)*?.*;)$", re.MULTILINE)
PAGE = (ROOT / "docs" / "analysis.md").read_text("utf-8")
LINES = re.findall(r"^\| .* \| `(SELECT .*)` \|$", PAGE, re.MULTILINE)
"""The questions of the page, each in one line."""
MOST_CHARACTERS = 200
QUERIES = {int(number): sql for number, sql in QUESTION.findall(FILE.read_text("utf-8"))}
SECOND = 1000


@pytest.fixture(scope="module")
def talked(store: Store) -> Store:
    """Give a store with a session, a fork, a compaction, usages and what a rewind left."""
    store.create_session("talk", title="Parcels", project_root="/home/ada/parcel", now=DEMO_NOW)
    store.append("talk", build_conversation(), now=DEMO_NOW)
    assert store.compact("talk", Policy(keep_turns=2), lambda _: "Said.", now=DEMO_NOW).hidden
    store.record_usage("talk", input=900, output=90, cached=300, model="m", cost=0.5, now=DEMO_NOW)
    store.record_usage("talk", input=100, output=10, model="other", now=DEMO_NOW)
    store.view("talk", record=True, now=DEMO_NOW)
    store.fork("talk", session_id="fork", now=DEMO_NOW)
    store.fork("fork", session_id="again", now=DEMO_NOW)
    head = store.session("talk").head
    for said_, after in (("Left: the PARCEL.", 1), ("Go on.", 61), ("And now?", 122)):
        said = {"role": "user", "content": said_, "timestamp": DEMO_NOW + after * SECOND}
        store.append("talk", said, now=DEMO_NOW)
        if after == 1:
            store.rewind("talk", head, now=DEMO_NOW)
    return store


@pytest.mark.parametrize("line", LINES)
def test_a_question_in_one_line_asks_views(talked: Store, line: str) -> None:
    """Short, of no raw table, and answered by either engine."""
    assert len(line) <= MOST_CHARACTERS
    assert {*re.findall(r"(?:FROM|JOIN) (\w+)", line)} <= {*views(talked.database.url)}
    with talked.database.reading() as connection:
        found = connection.execute(text(line)).all()
    assert found or "note_log" in line or "draft_log" in line


def test_there_are_ten_lines() -> None:
    """The test's pattern finds each query of the page."""
    assert len(LINES) == PAGE.count("`SELECT ") >= 10


def rows(store: Store, number: int) -> list[dict[str, Any]]:
    """Return what a question is answered."""
    with store.database.reading() as connection:
        return [*map(dict, connection.execute(text(QUERIES[number])).mappings())]


def test_there_are_ten() -> None:
    """Numbered in order, and the test's pattern finds each of them whole."""
    assert [*QUERIES] == [*range(1, 11)]
    assert sum(sql.count(";") for sql in QUERIES.values()) == 10


@pytest.mark.parametrize("number", QUERIES)
def test_each_question_has_an_answer(talked: Store, number: int) -> None:
    """It runs as it stands on the engine, and finds something."""
    assert rows(talked, number)


@pytest.mark.sqlite_only
@pytest.mark.parametrize("number", QUERIES)
def test_the_console_runs_it(talked: Store, number: int) -> None:
    """What a person does with the file: the command's console refuses none of it."""
    told = query(talked.database.path or "", QUERIES[number], timeout=30.0)
    assert [dict(zip(told.columns, row, strict=True)) for row in told.rows] == rows(talked, number)


def test_forks_are_counted_once(talked: Store) -> None:
    """Messages, commands and usages are those that were said, run and paid."""
    said = len(build_conversation()) + 2
    assert sum(each["messages"] for each in rows(talked, 1)) == said
    whole = {each.message.get("tool_call_id") for each in talked.messages("talk")} - {None}
    assert 0 < len(rows(talked, 4)) < len(whole)
    assert {each["session_id"] for each in rows(talked, 4)} == {"talk"}
    paid = rows(talked, 9)
    assert [(each["model"], each["requests"], int(each["input"])) for each in paid] == [
        ("m", 1, 900),
        ("other", 1, 100),
    ]
    assert [each["percent_cached"] for each in paid] == [33, 0]
    assert [each["billed"] for each in paid] == [0.5, None]


def test_the_tree_and_the_longest(talked: Store) -> None:
    """Who continues whom, and what each said itself."""
    assert [(each["path"], each["depth"]) for each in rows(talked, 8)] == [
        ("talk", 0),
        ("talk > fork", 1),
        ("talk > fork > again", 2),
    ]
    assert rows(talked, 5)[0]["session_id"] == "talk"
    assert {each["own_messages"] for each in rows(talked, 5)[1:]} == {0}


def test_pauses_and_words(talked: Store) -> None:
    """Seconds between turns; words on the line and on what was left."""
    (pause,) = rows(talked, 6)
    assert pause["session_id"] == "talk"
    assert pause["longest_away"] >= 61
    found = rows(talked, 10)
    assert {each["on_line"] for each in found} == {0, 1}
    assert sum(each["on_line"] == 0 for each in found) == 1


def test_what_is_hidden_is_what_views_hide(talked: Store) -> None:
    """On each line that has the compaction, with its reason."""
    hidden = rows(talked, 7)
    assert [each["session_id"] for each in hidden] == ["again", "fork", "talk"]
    assert {each["reason"] for each in hidden} == {"manual"}
    assert hidden[-1]["messages"] == len(talked.hidden("talk"))
