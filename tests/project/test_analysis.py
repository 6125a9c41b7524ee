"""The ten questions of `examples/analysis.sql`, asked on both engines."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from conftest import ROOT, TRANSCRIPTS, needs_transcripts
from sqlalchemy import text

from store import Policy, Store
from store.cli.demo_session import DEMO_NOW, build_conversation
from store.importing import import_file
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
    # The store has no notes, drafts and regenerated answers, and its month is another.
    assert found or any(each in line for each in ("note_log", "draft_log", "forked_at", "'04'"))


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


# --- a home of recorded sessions ------------------------------------------------------------------

FOLDERS = {
    "claude_code": "claude_code_jsonl",
    "codex": "codex_rollout",
    "copilot_cli": "copilot_cli_events",
    "gemini_cli": "gemini_cli_chat",
    "pi": "pi_session",
}
"""Program → the folder of its recorded sessions."""
ANSWERED_BY_TOTALS = {
    "What did each project cost?": ["project"],
    "What did each program cost by month?": ["source", "month"],
    "What did each month cost, by model?": ["month", "model"],
}
"""Questions in one line, and the keys of the totals that answer them, too."""
ASKED_OF_OTHERS = ("draft_log", "request_log", "branch_messages", "forked_at")
"""Views of what no import brings, and a column that answers regenerated by chat programs fill."""


@needs_transcripts
@pytest.mark.slow
def test_questions_to_a_home_of_five_programs(url: str) -> None:
    """Each has an answer; costs are those of the totals, to 10⁻⁹ dollars."""
    with Store(url, durability="normal") as store:
        for folder in FOLDERS.values():
            for path in sorted((TRANSCRIPTS / folder).iterdir()):
                import_file(store, path)
        sessions = store.sessions(limit=1000)
        assert {each.source for each in sessions} == {*FOLDERS}
        answers = [usage for usage in store.usages() if usage.seq]
        for number, usage in enumerate(answers[::50]):
            store.annotate(usage.session_id, usage.seq, "rating", number % 5)
        with store.database.reading() as connection:
            edited = text(
                "SELECT MAX(at) FROM file_log WHERE kind = 'file_edit' AND path LIKE '%.ts'"
            )
            month = str(connection.execute(edited).scalar_one())[5:7]
            asked = {
                line: line.replace("%.py", "%.ts").replace("'04'", f"'{month}'") for line in LINES
            }
            told = {line: connection.execute(text(sql)).all() for line, sql in asked.items()}
            costs = [row.cost for row in connection.execute(text("SELECT cost FROM usage_costs"))]
        for by in ("model", "session", "owner", "project", "source", "day", "week", "month"):
            totals = store.usage_totals(by=by)
            assert sum(each.requests for each in totals) == len(costs) > 1000
            assert sum(each.unpriced for each in totals) == costs.count(None)
            summed = math.fsum(cost for cost in costs if cost is not None)
            assert abs(summed - math.fsum(each.cost or 0 for each in totals)) <= 1e-9
    questions = dict(re.findall(r"^\| (.*) \| `(SELECT .*)` \|$", PAGE, re.MULTILINE))
    for line, rows_told in told.items():
        assert rows_told or any(view in line for view in ASKED_OF_OTHERS), line
    for question, keys in ANSWERED_BY_TOTALS.items():
        rows_told = told[questions[question]]
        said = {tuple(row)[: len(keys)]: row.dollars for row in rows_told}
        with Store(url) as store:
            totals = store.usage_totals(by=keys)
        for total in totals:
            assert abs((said[total.name] or 0) - (total.cost or 0)) <= 1e-9, total
        assert sum(1 for cost in said.values() if cost) == sum(1 for each in totals if each.cost)
