from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from store import Store
from store.cli import main
from store.cli.demo import DEMO_FORK, DEMO_PARTS, DEMO_SESSION
from store.cli.demo_session import DEMO_NOW, build_conversation
from store.context.request import LAYERS

Output = pytest.CaptureFixture[str]


@pytest.fixture
def told(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the demo, as wide as it likes to be, and give what it printed."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["demo"]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_tells_the_same_each_time(told: str, capsys: Output) -> None:
    """No clock, no network and no random id decides what it prints."""
    main(["demo"])
    assert capsys.readouterr().out == told


def test_the_demo_shows_every_part_and_fits(told: str) -> None:
    """Each part has its heading, nothing is wrong at the end, no line is wider than 100 columns."""
    for title in DEMO_PARTS:
        assert title in told
    assert "messages read back equal: yes" in told
    assert "Nothing is wrong." in told
    assert max(map(cell_len, told.splitlines())) <= 100


@pytest.mark.slow
def test_the_demo_fits_a_usual_terminal(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns: no line of it is broken by the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if cell_len(line) > 80] == []


def test_the_demo_shows_each_rule_at_work(told: str) -> None:
    """Old output, old reads, an error that stays, a call without result.

    And the view is much smaller than raw.
    """
    for sign in (
        "terminal  ",
        "file_read",
        "repair",
        "errors always stay",
        "make build",
        "has no result",
    ):
        assert sign in told
    raw, view = (
        int(re.search(rf"^{name} +([\d,]+)", told, re.MULTILINE)[1].replace(",", ""))
        for name in ("raw", "view")
    )  # type: ignore[index]
    assert view < 0.6 * raw


def test_fork_and_rewind_are_counted_before_and_after(told: str) -> None:
    """The counts go down with the rewind and come back with the undo."""
    part = told.partition("4. Fork")[2].partition("5. ")[0]
    heads = re.findall(r"^(before|fork|rewind|undo).* (\d+) messages", part, re.MULTILINE)
    assert heads == [("before", "56"), ("fork", "23"), ("rewind", "32"), ("undo", "56")]


def test_a_request_is_shown_by_layers(told: str) -> None:
    """What each layer takes, the project's rules, and the reminder behind the input."""
    part = told.partition("6. Request")[2].partition("7. ")[0]
    rows = re.findall(r"^(\w+) +\d+ +([\d,]+)", part, re.MULTILINE)
    tokens = {layer: int(found.replace(",", "")) for layer, found in rows}
    assert list(tokens) == [*LAYERS, "together"]
    assert tokens.pop("together") == sum(tokens.values())
    assert "code_law   | - Money is counted in cents." in part
    assert "The user mentioned @src/parcel/rates.py." in part


def test_a_compaction_is_shown_and_undone(told: str) -> None:
    """The view shrinks by the compaction, shows its summary, and is as before once it is undone."""
    part = told.partition("5. Compaction")[2].partition("6. ")[0]
    views = re.findall(
        r"^(before|compact|undo compaction 1) .* ([\d,]+) in the view", part, re.MULTILINE
    )
    before, compacted, undone = (int(tokens.replace(",", "")) for _, tokens in views)
    assert compacted < before == undone
    raws = re.findall(r"([\d,]+) tokens raw", part)
    assert len(raws) == 3
    assert len(set(raws)) == 1, "what is stored stays as it is"
    assert "compaction 1 applied" in part
    assert "  | # Summary of conversation from" in part


def test_the_session_has_what_a_demo_needs() -> None:
    """Forty to sixty messages.

    Repeated reads, failures, a parallel call, Chinese, a long log, an open call.
    """
    messages = build_conversation()
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    results = {
        message["tool_call_id"]: message["content"]
        for message in messages
        if message["role"] == "tool"
    }
    assert 40 <= len(messages) <= 60
    assert any(len(message.get("tool_calls", ())) > 1 for message in messages)
    assert [call["id"] for call in calls if call["id"] not in results] == [calls[-1]["id"]]
    assert any('"exitCode": 1' in text for text in results.values())
    assert max(map(len, results.values())) > 5000
    assert any(
        re.search("[一-龥]", message["content"] or "")
        for message in messages
        if message["role"] == "user"
    )
    assert all(message["timestamp"] < DEMO_NOW for message in messages)


@pytest.mark.slow
def test_the_demo_can_be_kept(tmp_path: Path, capsys: Output) -> None:
    """With --keep the store stays, to go on with; an existing file is never touched."""
    path = tmp_path / "kept.db"
    assert main(["demo", "--keep", str(path)]) == 0
    assert f"--db {path}" in capsys.readouterr().out
    with Store(path) as store:
        assert {session.id for session in store.sessions()} == {DEMO_SESSION, DEMO_FORK}
        assert [stored.message for stored in store.messages(DEMO_SESSION)] == build_conversation()
    assert main(["demo", "--keep", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err
