"""A thousand sessions of every kind in one store."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path

import pytest
from conftest import TRANSCRIPTS
from judge import JUDGES, complaints

from store import Store
from store.importing import ImportReport, import_file
from store.transcripts import STORE_HEAD_KEY, TRANSCRIPT_KINDS

sys.path.append(str(Path(__file__).resolve().parents[1] / "transcripts"))

from made_up import LONG, SAMPLES, Write

FILES = 1_000
COLUMNS = ("files", "sessions", "messages", "calls", "views", "valid")

Table = dict[str, Counter[str]]


def made(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield files, each with the name of its session: recorded ones, then made-up ones."""
    recorded = sorted(path for path in TRANSCRIPTS.glob("*/*") if path.is_file())
    yield from ((f"recorded-{number}", path) for number, path in enumerate(recorded))
    every: list[tuple[str, Write]] = [*SAMPLES.items(), *LONG.items()]
    left = max(len(every), FILES - len(recorded))
    for number, (kind, write) in enumerate(islice(cycle(every), left)):
        path = folder / f"{kind}-{number}"
        write(path)
        yield path.name, path


def content(path: Path) -> str:
    """Return what is equal for stores that hold the same.

    The index of searches is left out, and the settings, in which an import remembers its files.
    """
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'search%'"
    with closing(sqlite3.connect(path)) as rows:
        names = sorted(name for (name,) in rows.execute(tables) if name != "settings")
        found = [[name, *rows.execute(f'SELECT * FROM "{name}"')] for name in names]
    text = "\n".join(repr(each) for each in found)
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def counted(report: ImportReport) -> Counter[str]:
    """Return what a file holds."""
    counts = Counter(files=1, sessions=len(report.sessions))
    for each in report.sessions:
        counts += Counter(messages=each.messages, calls=each.tool_calls)
    return counts


def judged(store: Store, session_id: str) -> Counter[str]:
    """Return how many requests of a session there are, and how many are valid."""
    views = {name: store.view(session_id, format=name) for name in JUDGES}
    wrong = [complaints(name, view.messages, view.system) for name, view in views.items()]
    return Counter(views=len(views), valid=wrong.count([]))


def shown(table: Table) -> str:
    """Return the table as lines of text."""
    total = sum(table.values(), Counter[str]())
    lines = [" " * 16 + "".join(name.rjust(10) for name in COLUMNS)]
    for kind, counts in (*sorted(table.items()), ("all", total)):
        cells = (f"{counts[name]:,}".rjust(10) for name in COLUMNS)
        lines.append(kind.ljust(16) + "".join(cells))
    return "\n".join(lines)


@pytest.mark.no_cover
@pytest.mark.slow
def test_a_thousand_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Imported twice nothing changes; every view is valid in every format, the store whole."""
    (tmp_path / "in").mkdir()
    files = list(made(tmp_path / "in"))
    table: Table = {}
    with Store(tmp_path / "chat.db", durability="normal") as store:
        for name, path in files:
            report = import_file(store, path, session_id=name)
            counts = table.setdefault(report.kind, Counter())
            counts.update(counted(report))
            for each in report.sessions:
                counts.update(judged(store, each.id))
        before = content(tmp_path / "chat.db")
        for name, path in files:
            again = import_file(store, path, session_id=name)
            assert {each.appended for each in again.sessions} == {0}, path
        assert content(tmp_path / "chat.db") == before
        assert store.verify() == []
    with capsys.disabled():
        print(f"\n{shown(table)}")
    assert {*table} == {*TRANSCRIPT_KINDS} - {STORE_HEAD_KEY}
    assert sum(counts["files"] for counts in table.values()) >= FILES
    assert {kind: each for kind, each in table.items() if each["valid"] < each["views"]} == {}
