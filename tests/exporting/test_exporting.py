"""Exports that a program calls: the same bytes as the command's, and errors of the store."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from store import AsyncStore, Policy, Store
from store.errors import InvalidValue, PositionOutOfRange, SessionNotFound, StoreError
from store.exporting import Shape, export_session, export_store, session_lines
from store.exporting.programs import PROGRAMS
from store.exporting.shapes import PEOPLE_SHAPES
from store.importing import import_file

NOW = 1_741_946_520_000
MESSAGES = [
    {"role": "user", "content": "Hi \u2028 \ud800 there."},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "More."},
]


@pytest.fixture
def store(run: Run) -> Iterator[Store]:
    """Give a store of the folder in which commands run."""
    with Store("convostore.db") as opened:
        opened.create_session("s", title="Mine", owner="ann", project_root="/w", now=NOW)
        opened.append("s", MESSAGES, now=NOW)
        yield opened


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [None, *Shape])
def test_a_file_is_the_commands(store: Store, run: Run, shape: str | None) -> None:
    """To the byte, in each shape, of the whole line and of what is sent; private."""
    asked = ["--as", shape] if shape else []
    for number, (policy, option) in enumerate([(None, []), (Policy(), ["--view"])]):
        mine, theirs = Path(f"{number}.mine"), Path(f"{number}.theirs")
        done = export_session(store, "s", mine, shape=shape, policy=policy, now=NOW)
        run("export", "s", "-o", str(theirs), "--now", str(NOW), *asked, *option)
        assert mine.read_bytes() == theirs.read_bytes()
        assert stat.S_IMODE(mine.stat().st_mode) == 0o600
        assert (done.path, done.sessions, done.messages) == (mine, 1, 3)
        assert (done.advice is not None) is (shape in PROGRAMS)


def test_what_is_exported_comes_back(store: Store) -> None:
    """A session with what it says, to a position; a whole store as it was."""
    name = import_file(store, export_session(store, "s", "again.jsonl", at=2).path).sessions[0].id
    assert [each.message for each in store.messages(name)] == MESSAGES[:2]
    assert (store.session(name).owner, store.session(name).project_root) == ("ann", "/w")
    done = export_store(store, "all.jsonl")
    assert (done.sessions, done.messages, done.advice) == (2, 5, None)
    with Store("other.db") as other:
        import_file(other, done.path)
        assert other.sessions() == store.sessions()


def test_lines_are_made_as_they_are_taken(store: Store) -> None:
    """For a download: the first one is there before the last is asked for."""
    written = session_lines(store, "s")
    assert json.loads(next(written.lines)) == {"project_root": "/w", "owner": "ann"}
    assert written.messages == len([*written.lines]) == 3


def test_an_owner_exports_its_own_sessions(store: Store) -> None:
    """And no other's; nor over the store's own file."""
    assert export_session(store.scoped("ann"), "s", "ann.jsonl", shape="codex").messages == 3
    with pytest.raises(SessionNotFound):
        export_session(store.scoped("bob"), "s", "bob.jsonl")
    assert not Path("bob.jsonl").exists()
    with pytest.raises(StoreError, match="the store itself"):
        export_session(store.scoped("ann"), "s", "convostore.db", replace=True)


def test_it_can_be_awaited(store: Store) -> None:
    """By whoever has an `AsyncStore`, of all sessions or of an owner's; and an import likewise."""

    async def work() -> tuple[Any, ...]:
        async with AsyncStore(store) as awaited:
            done = await awaited.call(export_session, "s", "s.jsonl", shape="anthropic")
            with pytest.raises(SessionNotFound):
                await awaited.scoped("bob").call(export_session, "s", "bob.jsonl")
            return done.messages, (await awaited.call(import_file, "s.jsonl")).kind

    assert asyncio.run(work()) == (3, "openai")


REFUSED: list[tuple[dict[str, Any], type[StoreError], str]] = [
    ({"session_id": "none"}, SessionNotFound, "none"),
    ({"shape": "pdf"}, InvalidValue, "there are openai"),
    ({"shape": 1}, InvalidValue, "there are openai"),
    ({"at": 9}, PositionOutOfRange, "9"),
    ({"path": "no/such/folder.jsonl"}, StoreError, "no folder"),
    ({"path": "there.jsonl"}, StoreError, "replace=True"),
    (
        {"path": "link.jsonl", "replace": True},
        StoreError,
        "a link, a folder or a device, and is not replaced",
    ),
    (
        {"path": "pipe", "replace": True},
        StoreError,
        "a link, a folder or a device, and is not replaced",
    ),
    ({"path": "a" * 300, "replace": True}, StoreError, "cannot write"),
    ({"path": "a\0b"}, InvalidValue, "not the path of a file"),
    ({"path": "convostore.db-wal", "replace": True}, StoreError, "the store itself"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("asked", "error", "told"), REFUSED)
def test_what_is_refused_leaves_no_file(
    store: Store, asked: dict[str, Any], error: type[StoreError], told: str
) -> None:
    """By an error of the store that says what was wrong; a file that is there stays as it was."""
    Path("there.jsonl").write_text("mine")
    Path("link.jsonl").symlink_to("there.jsonl")
    os.mkfifo("pipe")
    before = sorted(path for path in Path().iterdir() if "convostore.db" not in path.name)
    with pytest.raises(error, match=told):
        export_session(store, **({"session_id": "s", "path": "new.jsonl"} | asked))
    after = sorted(path for path in Path().iterdir() if "convostore.db" not in path.name)
    assert after == before
    assert Path("there.jsonl").read_text() == "mine"
    assert Path("link.jsonl").is_symlink()
    assert Path("pipe").is_fifo()


PNG, PDF = "iVBORw0KGgo=", "JVBERi0xLjQ="
SEEN = [
    {"type": "text", "text": "see"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
    },
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("shape", [None, *(each for each in Shape if each not in PEOPLE_SHAPES)])
def test_an_export_has_the_pictures_and_files_of_results(
    store: Store, run: Run, shape: Shape | None, compacted: bool
) -> None:
    """Of turns that are long over, too: what is not in the file is lost to whoever goes on."""
    session_id = store.create_session(project_root="/w", now=NOW).id
    for number in range(3):
        turn = [
            {"role": "user", "content": [{"type": "text", "text": f"look {number}"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"t{number}", "name": "shot", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": SEEN}],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "so " * 2_000}]},
        ]
        store.append(session_id, turn, format="anthropic")
    if compacted:
        policy = Policy.named("agent", trigger_tokens=1, keep_turns=1)
        store.compact(session_id, policy)
        assert store.hidden(session_id)
    path = export_session(store, session_id, "out.jsonl", shape=shape).path
    written = path.read_text("utf-8")
    assert "此处" not in written
    assert "Not shown here" not in written
    assert written.count(PNG) == 3
    # Codex and pi have pictures in results, and no files
    assert written.count(PDF) == (0 if shape in (Shape.codex, Shape.pi) else 3)
    if shape != Shape.gemini:
        (again,) = import_file(store, path, session_id="again").sessions
        stored = [each.message for each in store.messages(again.id)]
        assert json.dumps(stored).count(PNG) == 3
