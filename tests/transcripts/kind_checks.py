"""What every kind of transcript owes: counted by a reader of the test's own, and again as it grows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from store import Store
from store.importing import ImportReport, import_file
from store.transcripts import sniff

FORMATS = ("openai", "responses", "anthropic", "gemini")


class Counts(NamedTuple):
    """What a file holds, as the test's own reader counted it."""

    sessions: int
    messages: int
    calls: int = 0
    results: int = 0


class Brought(NamedTuple):
    """What came of a file: the report, and each session with its messages and its usages."""

    report: ImportReport
    sessions: list[Any]
    messages: list[list[dict[str, Any]]]
    usages: list[Any]


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """Write a value a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def write_tables(path: Path, script: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> Path:
    """Write a database: its tables, then rows of them."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(script)
        for table, row in rows:
            places = ", ".join("?" * len(row))
            database.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", [*row.values()]
            )
    return path


def bring(path: Path, kind: str, **options: Any) -> Brought:
    """Import a file twice into a store of its own; the second time nothing is new."""
    assert sniff(path) == kind
    with Store(":memory:") as store:
        report = import_file(store, path, **options)
        assert report.kind == kind
        again = import_file(store, path, **options)
        assert [each.appended for each in again.sessions] == [0] * len(report.sessions)
        sessions = [store.session(each.id) for each in report.sessions]
        lines = [[each.message for each in store.messages(each.id)] for each in sessions]
        for session, line in zip(sessions, lines, strict=True):
            check_requests(store, session.id, line)
        return Brought(report, sessions, lines, store.usages())


def check_requests(store: Store, session_id: str, line: list[dict[str, Any]]) -> None:
    """Every text, call and result of a line is in the requests of all formats."""
    for form in FORMATS:
        sent = json.dumps(store.view(session_id, format=form).messages, ensure_ascii=False)
        for message in line:
            said = message.get("content")
            if isinstance(said, str) and message["role"] != "system":
                assert json.dumps(said, ensure_ascii=False)[1:-1][:60] in sent, (form, said)
            for call in message.get("tool_calls", ()):
                assert call["function"]["name"] in sent, (form, call)


def check_counts(brought: Brought, counts: Counts) -> None:
    """What is stored is what the file holds."""
    said = [message for line in brought.messages for message in line]
    calls = [call["id"] for each in said for call in each.get("tool_calls", ())]
    results = [each["tool_call_id"] for each in said if each["role"] == "tool"]
    found = Counts(len(brought.sessions), len(said), len(calls), len(results))
    assert found == counts
    assert {*results} <= {*calls}
    assert [note for note in brought.report.notes if note.broken] == []


def check_growth(path: Path, kind: str, states: Iterable[Callable[[Path], object]]) -> None:
    """A file that was imported in each of its states is what it is when imported at once."""
    with Store(":memory:") as grown, Store(":memory:") as whole:
        for write in states:
            write(path)
            import_file(grown, path, kind=kind)
        import_file(whole, path)
        names = [each.id for each in whole.sessions()]
        assert {each.id for each in grown.sessions()} == {*names}
        for name in names:
            assert told(grown, name) == told(whole, name)


def check_prefixes(path: Path, kind: str, rows: list[Any], first: int = 1) -> None:
    """Every prefix of a file of lines, then the whole, is the whole at once."""
    ends = range(first, len(rows) + 1)
    states = [lambda at, end=end: write_rows(at, rows[:end]) for end in ends]
    check_growth(path, kind, states)


def told(store: Store, name: str) -> list[Any]:
    """Return a session's title and messages, and its totals."""
    usages = store.usages(name)
    spent = [sum(getattr(each, key) for each in usages) for key in ("input", "output", "cached")]
    models = sorted({each.model or "" for each in usages})
    messages = [each.message for each in store.messages(name)]
    return [store.session(name).title, messages, spent, models]
