"""Files of every kind with anything in place of anything: read, or refused with a reason."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZipFile

import pytest
from made_up import SAMPLES

from store import Store, StoreError
from store.exporting import export_store
from store.importing import import_file
from store.transcripts import read

WRONG: list[Any] = [
    *(None, True, 1, -1, 1.5, 10**30, float("nan"), "", "x", "{", "\ud800", "\0"),
    *([], [None], [1], ["x"], [[]], [{}], {}, {"a": 1}, {"type": "x"}, {"text": 1}),
]
"""What may stand where a value of a file stands."""
CELLS: list[Any] = [None, -1, 2**62, 1.5, "", "x", b"", b"\xff", "[]", "{}", "null", '{"a":']
"""What may stand in all cells of a column."""
TRIES = 20
Place = tuple[Any, ...]


@pytest.mark.sampled(240)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_wrong_file_is_read_or_refused(tmp_path: Path, kind: str, seed: int) -> None:
    """By an error of the store, whoever names its kind; what is stored of it is sound."""
    path, chance = tmp_path / "sample", Random(seed)
    SAMPLES[kind](path)
    path = next(tmp_path.iterdir())
    whole = path.read_bytes()
    spoil = spoilt_rows if whole.startswith(b"SQLite") else spoilt_text
    with Store(tmp_path / "store.db", durability="normal") as store:
        for number in range(TRIES):
            path.write_bytes(whole)
            (cut if number % 5 == 0 else spoil)(path, chance)
            for name in (None, kind):
                with suppress(StoreError):
                    deque(read(path, kind=name, beside=True))
            with suppress(StoreError):
                import_file(store, path, kind=chance.choice((None, kind)), beside=True)
        assert store.verify() == []


def test_an_archive_that_points_before_itself_is_refused(tmp_path: Path) -> None:
    """Its directory of files says that they lie where no file has anything."""
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    held = bytearray(path.read_bytes())
    held[-6:-2] = (int.from_bytes(held[-6:-2], "little") + 1000).to_bytes(4, "little")
    path.write_bytes(held)
    for kind in (None, "chatgpt"):
        with Store(tmp_path / "store.db") as store, pytest.raises(StoreError):
            import_file(store, path, kind=kind)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wrong", ["1", "[]", '{"a": 2}', "{", "=", '"x"'])
def test_a_whole_store_with_wrong_metadata_is_left_out(tmp_path: Path, wrong: str) -> None:
    """They are of the row that has no seal, since anybody may change them."""
    path = tmp_path / "all.jsonl"
    with Store(tmp_path / "one.db") as store:
        store.create_session("s", metadata={"a": 1})
        export_store(store, path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    (session,) = (row["sessions"] for row in rows if "sessions" in row)
    session["metadata"] = wrong
    path.write_text("\n".join(map(json.dumps, rows)))
    with Store(tmp_path / "other.db") as other:
        report = import_file(other, path)
        assert any(note.broken and "metadata" in note.text for note in report.notes)
        assert (other.sessions(), other.verify()) == ([], [])


def cut(path: Path, chance: Random) -> None:
    """End a file anywhere, or let some bytes be others."""
    held = bytearray(path.read_bytes())
    if chance.random() < 0.5:
        del held[chance.randrange(len(held)) :]
    for place in chance.choices(range(len(held)), k=3) if held else ():
        held[place] = chance.randrange(256)
    path.write_bytes(held)


def spoilt_text(path: Path, chance: Random) -> None:
    """Put something else in the place of a value, or take its key away; or a line, of plain text."""
    lines: list[Any] = path.read_text("utf-8").splitlines()
    with suppress(ValueError):
        lines = [json.loads(line) for line in lines]
    spoilt = changed(lines, chance.choice([*places(lines)]), chance)
    path.write_text("\n".join(map(as_line, spoilt)), "utf-8", "backslashreplace")


def as_line(value: Any) -> str:
    """Return a line as it is, or a value as one."""
    return value if isinstance(value, str) else json.dumps(value)


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield where a value holds another, at any depth."""
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*place, key)
        if isinstance(held, dict | list):
            yield from places(held, (*place, key))


def changed(value: Any, place: Place, chance: Random) -> Any:
    """Return a value in which a place holds something else, or is no more."""
    key, *inner = place
    held = value.copy()
    if inner:
        held[key] = changed(held[key], tuple(inner), chance)
    elif chance.random() < 0.1:
        del held[key]
    else:
        held[key] = chance.choice(WRONG)
    return held


def spoilt_rows(path: Path, chance: Random) -> None:
    """Drop a table or a column, or put something else into all cells of one, or into one's JSON."""
    with closing(sqlite3.connect(path)) as rows, suppress(sqlite3.Error), rows:
        table = chance.choice([*told(rows, "SELECT name FROM sqlite_schema WHERE type = 'table'")])
        column = chance.choice([*told(rows, f"SELECT name FROM pragma_table_info('{table}')")])
        cells = [*filter(is_json, told(rows, f'SELECT "{column}" FROM "{table}"'))]
        if cells and chance.random() < 0.7:
            cell = chance.choice(cells)
            value = json.loads(cell)
            spoilt = json.dumps(changed(value, chance.choice([*places(value)]), chance))
            rows.execute(
                f'UPDATE "{table}" SET "{column}" = ? WHERE "{column}" = ?', (spoilt, cell)
            )
        elif chance.random() < 0.2:
            rows.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
        elif chance.random() < 0.1:
            rows.execute(f'DROP TABLE "{table}"')
        else:
            rows.execute(f'UPDATE "{table}" SET "{column}" = ?', (chance.choice(CELLS),))


def told(rows: sqlite3.Connection, asked: str) -> Iterator[Any]:
    """Yield the first column of what is asked for."""
    return (row[0] for row in rows.execute(asked))


def is_json(cell: object) -> bool:
    """Tell whether a cell holds an object or a list that holds something."""
    with suppress(ValueError, TypeError):
        value = json.loads(cell)  # type: ignore[arg-type]
        return isinstance(value, dict | list) and bool(value)
    return False
