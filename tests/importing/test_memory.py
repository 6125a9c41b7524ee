"""What an import holds in memory does not grow with what was said."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bring
from store import Store, StoreError
from store.importing import import_file, session
from store.transcripts import KeyNumbers, disk_buffer

Fields = dict[str, Any]
Writer = Callable[[int], Fields]
ROWS = 150
LONG = 20_000


def moment(number: int) -> str:
    """Return when a row is written."""
    return f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"


def written(path: Path, rows: Iterable[Fields]) -> Path:
    """Write rows as lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def of_claude_code(number: int) -> Fields:
    """Return a row of a session of Claude Code, each below the one before."""
    role = "assistant" if number % 2 else "user"
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "timestamp": moment(number),
        "message": {"role": role, "content": f"{number} {'x' * LONG}"},
        "toolUseResult": "y" * LONG,
    }


def of_codex(number: int) -> Fields:
    """Return a row of a rollout: what a user said, or an answer."""
    role = "assistant" if number % 2 else "user"
    text = {"type": "output_text", "text": f"{number} {'x' * LONG}"}
    item = {"type": "message", "role": role, "content": [text]}
    return {"timestamp": moment(number), "type": "response_item", "payload": item}


def of_pi(number: int) -> Fields:
    """Return an entry of pi, behind the one before."""
    head = {"type": "session", "id": "s", "cwd": "/", "timestamp": moment(0)}
    message = {"role": "user", "content": f"{number} {'x' * LONG}"}
    above = f"e{number - 1}" if number else None
    entry = {"type": "message", "id": f"e{number}", "parentId": above, "message": message}
    return {**head, **entry} if number else head


def of_droid(number: int) -> Fields:
    """Return an entry of Droid, behind the one before."""
    entry = of_pi(number)
    return entry | {"type": "message" if number else "session_start"}


def of_copilot_cli(number: int) -> Fields:
    """Return an event of Copilot CLI."""
    data = {"content": f"{number} {'x' * LONG}"} if number else {"sessionId": "s"}
    kind = "user.message" if number else "session.start"
    event = {"type": kind, "id": f"e{number}", "parentId": None, "timestamp": moment(number)}
    return {**event, "data": data}


def of_gemini_cli(number: int) -> Fields:
    """Return a line of Gemini CLI."""
    said = {"type": "user", "content": f"{number} {'x' * LONG}", "timestamp": moment(number)}
    return {"id": f"m{number}", **said} if number else {"sessionId": "s", "projectHash": "h"}


def of_qwen_code(number: int) -> Fields:
    """Return a row of Qwen Code, below the one before."""
    row = of_claude_code(number)
    del row["toolUseResult"]
    message = {"role": row["type"], "parts": [{"text": f"{number} {'x' * LONG}"}]}
    return row | {"message": message}


def of_openai(number: int) -> Fields:
    """Return a message of a chat."""
    return {"role": "user", "content": f"{number} {'x' * LONG}", "timestamp": 1_700_000_000_000}


WRITERS: dict[str, Writer] = {
    "claude_code": of_claude_code,
    "codex": of_codex,
    "pi": of_pi,
    "droid": of_droid,
    "copilot_cli": of_copilot_cli,
    "gemini_cli": of_gemini_cli,
    "qwen_code": of_qwen_code,
    "openai": of_openai,
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", WRITERS)
def test_memory_is_that_of_a_few_messages(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of what was said at most, whether it is new or known; none of it is lost."""
    monkeypatch.setattr(disk_buffer, "BUFFER_MEMORY_BYTES", LONG)
    monkeypatch.setattr(session, "BATCH_SIZE", 4 * LONG)
    monkeypatch.setattr(session, "MESSAGE_PAGE_SIZE", 2)
    short, long = (
        written(tmp_path / f"{n}.jsonl", map(WRITERS[kind], range(n))) for n in (3, ROWS)
    )
    with Store(tmp_path / "chat.db", durability="normal", cache_bytes=0) as store:
        import_file(store, short, session_id="short")
        heads = []
        for _ in ("new", "known"):
            tracemalloc.start()
            (told,) = import_file(store, long).sessions
            assert tracemalloc.get_traced_memory()[1] < ROWS * LONG / 4
            tracemalloc.stop()
            heads.append((told.messages, told.appended))
        assert heads in ([(ROWS, ROWS), (ROWS, 0)], [(ROWS - 1, ROWS - 1), (ROWS - 1, 0)])


@pytest.mark.slow
def test_a_file_of_four_times_the_size_needs_no_more(tmp_path: Path) -> None:
    """But for what is kept of each row."""
    runs = []
    for name, size in (("short", 20), ("long", 80)):
        written = bring.fill(tmp_path / name, size * bring.MB, 1)
        runs.append((written, bring.measured(tmp_path / name)))
    (short, before), (long, after) = runs
    assert after.memory - before.memory < (long - short) / 5


# --- what keeps it small --------------------------------------------------------------------------


def test_values_come_from_the_buffer_as_they_were_put_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In any order, also while others are put on it, in memory and in a file."""
    monkeypatch.setattr(disk_buffer, "BUFFER_MEMORY_BYTES", 300)
    values: list[Any] = ["", "\ud800", {"a": [1, 1.5, True, None]}, 2**70, "x" * 1000, [], "é"]
    with disk_buffer.DiskBuffer() as held:
        places: list[int] = []
        for value in values * 3:
            places.append(held.put(value))
            assert held.at(places[len(places) // 2]) == values[len(places) // 2 % len(values)]
        assert [held.at(place) for place in reversed(places)] == [*reversed(values * 3)]
        nested: Any = []
        for _ in range(3000):
            nested = [nested]
        with pytest.raises(RecursionError):
            held.put(nested)


def test_nothing_is_stored_where_no_room_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the folder that has none, and how to name another one."""
    monkeypatch.setattr(disk_buffer, "BUFFER_MEMORY_BYTES", LONG)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    path = written(tmp_path / "f.jsonl", map(of_claude_code, range(3)))
    with Store(tmp_path / "chat.db") as store:
        with pytest.raises(StoreError, match=r"cannot keep what was read in .*gone.*TMPDIR"):
            import_file(store, path)
        assert store.sessions() == []


def test_names_lead_to_what_was_put_there_last() -> None:
    """In the order in which the names came; what is taken away comes last when it comes again."""
    with disk_buffer.DiskBuffer() as held:
        values, expected = disk_buffer.BufferedMapping(held), {}
        for number in range(40):
            name = f"{number % 7}"
            values[name] = expected[name] = {"n": number}
            if number % 5 == 0:
                assert values.pop(name) == expected.pop(name)
            assert [*values.items()] == [*expected.items()]
        values["1"]["n"] = "changed"
        assert values == expected
        assert [*reversed(values)] == [*reversed(expected)]


def test_numbers_are_those_of_a_dict() -> None:
    """Whatever the keys are; equal values of other types are other keys."""
    numbers, expected = KeyNumbers(), {}
    for number in range(5000):
        key = f"key {number * 7 % 3001}"
        assert (key in numbers) == (key in expected)
        assert numbers.setdefault(key, number) == expected.setdefault(key, number)
        if number % 5 == 0:
            numbers[key] = expected[key] = -number
    assert len(numbers) == len(expected)
    assert {key: numbers.get(key) for key in expected} == expected
    assert numbers.get("another") is None
    numbers[1, "a"] = 5
    assert (numbers.get((1, "a")), numbers.get((True, "a")), numbers.get(("1", "a"))) == (
        5,
        None,
        None,
    )
