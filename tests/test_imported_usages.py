"""Imports keep what requests cost: as the file tells it, and once, however often it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.importing import import_file

SONNET = "claude-sonnet-4-5-20250929"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def claude(number: int, role: str, message: dict[str, Any], after: int) -> dict[str, Any]:
    """Return a row of a Claude Code session."""
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{after}" if after else None,
        "sessionId": "c",
        "timestamp": f"2026-01-01T00:00:{number:02}Z",
        "message": {"role": role, **message},
    }


def asked(number: int, text: str, after: int) -> dict[str, Any]:
    """Return what a user typed."""
    return claude(number, "user", {"content": text}, after)


def answered(number: int, name: str, after: int, output: int) -> dict[str, Any]:
    """Return a row of an answer, which tells what it cost so far."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 40,
        "cache_read_input_tokens": 500,
        "output_tokens": output,
    }
    content = [{"type": "text", "text": f"{name} {number}"}]
    message = {"id": name, "model": SONNET, "content": content, "usage": usage}
    return claude(number, "assistant", message, after)


CLAUDE = [
    asked(1, "go", 0),
    answered(2, "m1", 1, 7),
    answered(3, "m1", 2, 20),
    asked(4, "on", 3),
    answered(5, "m2", 4, 9),
]


def told(store: Store, session_id: str) -> list[tuple[int, ...]]:
    """Return the tokens of usages, as recorded."""
    return [
        (each.seq, each.input, each.output, each.cached, each.written)
        for each in store.usages(session_id)
    ]


def test_an_answer_of_several_lines_costs_once(store: Store, tmp_path: Path) -> None:
    """With model, parts of the cache and the moment; at the request's end."""
    file = written(tmp_path / "c.jsonl", CLAUDE)
    for _ in range(2):
        import_file(store, file)
        assert told(store, "c") == [(1, 543, 20, 500, 40), (3, 543, 9, 500, 40)]
    first = store.usages("c")[0]
    assert (first.model, first.provider) == (SONNET, "anthropic")
    assert first.at == 1_767_225_602_000
    assert first.cost == pytest.approx((3 * 3 + 40 * 3.75 + 500 * 0.3 + 20 * 15) / 1e6)
    assert first.details["told"]["input_tokens"] == 3
    assert store.verify() == []


def test_an_answer_that_grew_costs_once(store: Store, tmp_path: Path) -> None:
    """Imported when it was half written, and again when it was whole."""
    file = written(tmp_path / "c.jsonl", CLAUDE[:2])
    import_file(store, file)
    assert told(store, "c") == [(1, 543, 7, 500, 40)]
    import_file(store, written(file, CLAUDE))
    assert _sums(store, "c") == (1086, 29, 1000, 80)


def test_a_line_written_anew_costs_once(store: Store, tmp_path: Path) -> None:
    """With --replace answers are stored again; what was paid for them is not."""
    file = written(tmp_path / "c.jsonl", CLAUDE)
    import_file(store, file)
    other = [asked(1, "go!", 0), *CLAUDE[1:]]
    import_file(store, written(file, other), replace=True)
    assert len(store.branches("c")) == 2
    assert _sums(store, "c") == (1086, 29, 1000, 80)


def _sums(store: Store, session_id: str) -> tuple[int, ...]:
    (total,) = store.usage_totals(session_id, by="session")
    return total.input, total.output, total.cached, total.written


def codex(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    """Return a row of a rollout."""
    at = f"2026-01-01T00:00:{number:02}Z"
    return {"type": kind, "timestamp": at, "payload": payload}


def spoken(number: int, role: str, text: str) -> dict[str, Any]:
    """Return a row that says something."""
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
    return codex(number, "response_item", type="message", role=role, content=content)


def counted(number: int, last: int, total: int | None) -> dict[str, Any]:
    """Return a row that tells what the last request cost, and all of them."""
    usage = {"input_tokens": last, "cached_input_tokens": last // 2, "output_tokens": 4}
    info: dict[str, Any] = {"last_token_usage": usage}
    if total is not None:
        info["total_token_usage"] = {"input_tokens": total}
    return codex(number, "event_msg", type="token_count", info=info)


def rollout(counts: list[list[tuple[int, int | None]]]) -> list[dict[str, Any]]:
    """Return a rollout in which each answer is followed by some counts."""
    rows = [
        codex(0, "session_meta", id="x", cwd="/p"),
        codex(0, "turn_context", model="gpt-5", cwd="/p"),
    ]
    for number, told_ in enumerate(counts, 1):
        rows += [spoken(number * 10, "user", f"q{number}")]
        rows += [spoken(number * 10 + 1, "assistant", f"a{number}")]
        rows += [counted(number * 10 + 2, *each) for each in told_]
    return rows


@pytest.mark.parametrize(
    ("counts", "inputs"),
    [
        ([[(10, 10)], [(20, 30)]], [10, 20]),
        ([[(10, 10), (10, 10)], [(20, 30)]], [10, 20]),
        ([[(10, 10)], [(10, 10)], [(10, 20)]], [10, 10]),
        ([[(10, 10)], [(10, 10), (20, 30)]], [10, 20]),
        ([[(10, 10), (7, 17)], [(20, 37)]], [10, 7, 20]),
        ([[(10, None), (10, None)], [(20, None)]], [10, 20]),
        ([[], [(20, 20)]], [20]),
    ],
)
def test_a_total_told_again_counts_once(
    store: Store, tmp_path: Path, counts: list[list[tuple[int, int | None]]], inputs: list[int]
) -> None:
    """Of the same answer or a later one; what no answer stands for is paid all the same."""
    file = written(tmp_path / "rollout.jsonl", rollout(counts))
    for _ in range(2):
        import_file(store, file)
        usages = store.usages("x")
        assert [each.input for each in usages] == inputs
    assert {(each.model, each.cached * 2 <= each.input) for each in usages} == {("gpt-5", True)}
    assert all(each.cost for each in usages)


@pytest.mark.parametrize("usage", [None, 5, {}, {"input_tokens": -1}, {"output_tokens": "many"}])
def test_what_tells_no_tokens_is_no_usage(store: Store, tmp_path: Path, usage: Any) -> None:
    """Whatever stands there, the messages are imported."""
    row = answered(2, "m1", 1, 7)
    row["message"]["usage"] = usage
    report = import_file(store, written(tmp_path / "c.jsonl", [CLAUDE[0], row]))
    assert report.sessions[0].appended == 2
    assert store.usages() == []
