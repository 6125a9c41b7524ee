"""Large pictures and files of messages: kept once a tree, and equal to what went in."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from conversations import NOW
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from store import Policy, Store
from store.copying import copy
from store.database.schema import METADATA
from store.errors import Damaged
from store.exporting import export_store
from store.history import erasure, erasure_batches, raw_messages
from store.importing import import_file
from store.inspection import integrity
from store.messages import attach_bytes, detach_bytes, encode

LIMIT = 64 * 1024
TABLES = ("attachments", "message_attachments")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


def made(size: int, seed: int = 0) -> bytes:
    """Return bytes that look like no other seed's."""
    return random.Random(seed).randbytes(size)


def encoded(size: int, seed: int = 0) -> str:
    """Return base64 of so many bytes."""
    return base64.b64encode(made(size, seed)).decode()


def openai(data: str) -> list[dict[str, Any]]:
    """Return a question with a picture and a file, of a chat."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}
    parts = [{"type": "text", "text": "sée"}, picture, {"type": "file", "file": file}]
    return [{"role": "user", "content": parts}]


def anthropic(data: str) -> list[dict[str, Any]]:
    """Return a question with a picture, and a result with another."""
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data},
    }
    call = {"type": "tool_use", "id": "t1", "name": "shot", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [picture]}
    return [
        {"role": "user", "content": [picture, {"type": "text", "text": "see"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]


def gemini(data: str) -> list[dict[str, Any]]:
    """Return a question with a picture, and an answer with one, in the alphabet of URLs."""
    in_url = data.translate(str.maketrans("+/", "-_"))
    return [
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]},
        {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": in_url}}]},
    ]


def responses(data: str) -> list[dict[str, Any]]:
    """Return items with a picture, a file, and the picture that a call returned."""
    url = f"data:image/png;base64,{data}"
    said = [
        {"type": "input_image", "image_url": url},
        {"type": "input_file", "filename": "f", "file_data": url},
    ]
    shown = [{"type": "input_image", "image_url": url}]
    return [
        {"type": "message", "role": "user", "content": said},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": shown},
    ]


FORMATS = {"openai": openai, "anthropic": anthropic, "gemini": gemini, "responses": responses}


def calls(name: str, data: str) -> list[Any]:
    """Return messages of a format with calls that were given bytes, and some made by providers."""
    given = {"path": "a.png", "any key": data, "of": [f"data:image/png;base64,{data}"]}
    text = json.dumps(given)
    if name == "anthropic":
        use = {"type": "tool_use", "id": "t2", "name": "write_file", "input": given}
        done = {"type": "tool_result", "tool_use_id": "t2", "content": "done"}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [done]}]
    if name == "gemini":
        parts = [{"functionCall": {"name": "write_file", "args": given}}]
        done = [{"functionResponse": {"name": "write_file", "response": {"result": "done"}}}]
        return [{"role": "model", "parts": parts}, {"role": "user", "parts": done}]
    if name == "responses":
        call = {"call_id": "d", "name": "write_file"}
        return [
            {"type": "image_generation_call", "id": data[:9], "status": "done", "result": data},
            {"type": "function_call", **call, "arguments": text},
            {"type": "function_call_output", "call_id": "d", "output": "done"},
            {"type": "custom_tool_call", "call_id": "e", "name": "write_file", "input": data},
        ]
    functions = [("write_file", text), ("Bash", f'{{"command": "{data}"}}'), ("view_file", given)]
    tool_calls = [
        {"id": tool, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for tool, arguments in functions
    ]
    sounds = {"audio": {"id": "s", "data": data}, "tool_calls": tool_calls}
    return [
        {"role": "assistant", "content": None, **sounds},
        *({"role": "tool", "tool_call_id": tool, "content": "done"} for tool, _ in functions[:2]),
    ]


def counts(store: Store) -> list[int]:
    """Return how many attachments there are, and how many places that have them."""
    with store.database.reading() as connection:
        return [
            connection.scalar(select(func.count()).select_from(METADATA.tables[name])) or 0
            for name in TABLES
        ]


def fill(store: Store, name: str, sizes: list[int], only: bool = True) -> list[Any]:
    """Append the messages of a format with pictures of some sizes; return all of the session."""
    if only:
        store.create_session(name, now=NOW)
    given: list[Any] = []
    for size in sizes:
        data = encoded(size, size)
        given += [*FORMATS[name](data), *calls(name, data)]
    for message in given:
        store.append(name, message, format=None if name == "openai" else name, now=NOW)
    return given


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FORMATS)
def test_messages_come_back_equal_whatever_the_size(store: Store, name: str) -> None:
    """Up to 64 KB they stay in the text; all are the same for those who read."""
    sizes = [LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 2, 100_000]
    given = fill(store, name, sizes)
    assert [each.message for each in store.messages(name)] == given
    assert [each.message for each in store.messages(name, start=-2)] == given[-2:]
    assert counts(store)[0] == 3
    assert store.view(name, format=name).messages
    assert [each.message for page in store.pages(name, size=2) for each in page] == given
    if store.database.path:
        assert store.verify() == []


@pytest.mark.slow
def test_views_are_those_of_pictures_in_the_text(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests, views, summaries and searches do not tell how the pictures of a line are kept."""
    clearing = Policy(any_tool=True, clear_keep=0, min_saving=0, cut_arguments=True)
    policies = [Policy(), Policy.named("agent"), clearing]
    with Store(tmp_path / "inline.db", durability="normal") as inline:
        for name in FORMATS:
            fill(store, name, [LIMIT + 1] * 2)
        monkeypatch.setattr("store.history.append.LEAST_ATTACHED_LENGTH", 10**9)
        for name in FORMATS:
            fill(inline, name, [LIMIT + 1] * 2)
            one, other = store.messages(name), inline.messages(name)
            assert [each.digest for each in one] == [each.digest for each in other]
            for asked in ("calls", "open_calls", "files", "turns"):
                assert getattr(store, asked)(name) == getattr(inline, asked)(name)
            for policy in policies:
                for target in FORMATS:
                    views = [
                        each.view(name, policy, format=target, now=NOW + 10**9)
                        for each in (store, inline)
                    ]
                    assert views[0].messages == views[1].messages
            done = [
                each.compact(name, Policy(keep_turns=1), now=NOW).outcome
                for each in (store, inline)
            ]
            assert done == ["applied", "applied"]
            assert store.view(name).messages == inline.view(name).messages
        assert counts(inline) == [0, 0]
        for words in ("see", "write_file", encoded(LIMIT + 1, LIMIT + 1)[:6]):
            hits = [each.search(words, limit=100) for each in (store, inline)]
            found = [{(hit.session_id, hit.seq) for hit in each} for each in hits]
            assert found[0] == found[1] != set()


def test_a_picture_is_kept_once_a_tree(store: Store) -> None:
    """Ten messages that have it, forks among them, are one; another tree has its own."""
    (message,) = openai(encoded(LIMIT + 1))
    for session_id in ("s", "other"):
        store.create_session(session_id)
        store.append(session_id, [message] * 5)
    store.fork("s", at=3, session_id="f")
    store.append("f", [message] * 5)
    assert counts(store) == [2, 30]
    assert [each.message for each in store.messages("f")] == [message] * 8
    store.delete_session("s")
    assert counts(store) == [2, 26]
    assert [each.message for each in store.messages("f")] == [message] * 8
    store.delete_session("f")
    assert counts(store) == [1, 10]
    store.delete_session("other")
    assert counts(store) == [0, 0]


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_ten_messages_take_the_room_of_one(tmp_path: Path) -> None:
    """A picture of a megabyte, said ten times, is a megabyte of the file; it goes with the last."""
    path = tmp_path / "chat.db"
    picture = os.urandom(1_000_000)
    part = openai(base64.b64encode(picture).decode())[0]["content"][1]
    with Store(path, durability="normal") as store:
        empty = store.size().used
        store.create_session("s")
        for _ in range(10):
            store.append("s", {"role": "user", "content": [part]})
        assert 990_000 < store.size().used - empty < 1_100_000
        (words,) = (each.bytes for each in store.size(by="session").parts if each.name == "s")
        assert 1_000_000 < words < 1_010_000
        told = store.prune(0, now=NOW * 2)
        assert told.bytes == words
        store.delete_session("s")
        store.purge()
        assert picture[:100] not in path.read_bytes()
        assert store.verify() == []


def test_a_redaction_takes_the_picture_unless_another_message_has_it(store: Store) -> None:
    """The bytes go with the last message that says them."""
    (message,) = openai(encoded(LIMIT + 1))
    store.create_session("s")
    store.append("s", [message, message])
    store.redact("s", 1, "asked for")
    assert counts(store) == [1, 2]
    assert store.message("s", 2).message == message
    store.redact("s", 2, "asked for", replacement="a picture")
    assert counts(store) == [0, 0]
    assert [each.message["content"] for each in store.messages("s")] == ["[redacted]", "a picture"]
    store.append("s", calls("openai", encoded(LIMIT + 1))[0])
    assert counts(store) == [1, 6]
    store.redact("s", 3, "asked for")
    assert counts(store) == [0, 0]
    if store.database.path:
        assert store.verify() == []


def test_what_is_left_behind_goes(store: Store) -> None:
    """A picture that only a branch has goes when that is forgotten."""
    (message,) = openai(encoded(LIMIT + 1))
    store.create_session("s")
    store.append("s", [{"role": "user", "content": "a"}, message])
    store.replace("s", 1, message)
    assert counts(store) == [1, 4]
    store.forget("s")
    assert counts(store) == [1, 2]
    store.replace("s", 1, {"role": "user", "content": "b"})
    store.forget("s")
    assert counts(store) == [0, 0]


def test_a_picture_of_a_draft_that_goes_elsewhere_meanwhile(store: Store) -> None:
    """The last other message with it is erased while the draft is finished, which waits for it."""
    (message,) = openai(encoded(LIMIT + 1))
    store.create_session("s")
    store.append("s", [{"role": "user", "content": "a"}, message])
    store.fork("s", at=1, session_id="f")
    with suppress(ZeroDivisionError), store.streaming("f", message):
        raise ZeroDivisionError
    (draft,) = store.drafts("f")
    with ThreadPoolExecutor(1) as pool:
        with store.database.writing() as connection:
            opened = erasure.begin_erasure(connection, "s", now=NOW)
            while erasure_batches._erase_slice(connection, opened.tree_id, NOW, seconds=1):
                pass
            finished = pool.submit(store.finish_draft, draft)
            assert not wait([finished], timeout=0.2).done
        assert finished.result().message == message
    assert counts(store) == [1, 2]


@pytest.mark.slow
def test_a_tree_moves_with_its_pictures(store: Store, tmp_path: Path) -> None:
    """Exports, imports and copies, of stores that have them in the text, too."""
    given = {name: fill(store, name, [LIMIT + 1, LIMIT + 2]) for name in FORMATS}
    store.fork("openai", at=1, session_id="f")
    export_store(store, tmp_path / "all.jsonl")
    with Store(tmp_path / "imported.db", durability="normal") as imported:
        import_file(imported, tmp_path / "all.jsonl")
        with Store(tmp_path / "copied.db", durability="normal") as copied:
            copy(store, copied)
            store.append("f", openai(encoded(LIMIT + 3)))
            again = copy(store, copied)
            assert again.grown == 1
            assert copied.verify() == imported.verify() == []
            for name, messages in given.items():
                for each in (imported, copied):
                    assert [found.message for found in each.messages(name)] == messages
            assert copied.messages("f") == store.messages("f")
            assert counts(copied) == counts(store)


def test_a_picture_twice_under_an_id_is_one_message(store: Store) -> None:
    """It is compared by all that it says."""
    message = {**openai(encoded(LIMIT + 1))[0], "id": "m"}
    store.create_session("s")
    first, again = (store.append("s", dict(message))[0] for _ in range(2))
    assert first == again
    assert counts(store) == [1, 2]


@pytest.mark.parametrize("table", TABLES)
def test_the_database_refuses_changes(store: Store, url: str, table: str) -> None:
    """Pictures are as raw as the words beside them."""
    store.create_session("s")
    store.append("s", openai(encoded(LIMIT + 1)))
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    attacks = [f"UPDATE {table} SET digest = digest", f"DELETE FROM {table}"]
    is_file = engine.dialect.name == "sqlite"
    attacks.append(
        f"REPLACE INTO {table} SELECT * FROM {table}" if is_file else f"TRUNCATE {table} CASCADE"
    )
    for attack in attacks:
        with (
            pytest.raises(sqlalchemy.exc.DBAPIError, match="raw rows"),
            engine.begin() as connection,
        ):
            connection.execute(sqlalchemy.text(attack))
    assert counts(store) == [1, 2]


# --- Contents of any kind -------------------------------------------------------------------------

BORDER = (LIMIT + 1 + 2) // 3 * 4
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="


@st.composite
def strings(draw: st.DrawFn) -> str:
    """Texts that are base64, nearly base64, or look like a reference; around the limit."""
    size = draw(st.integers(LIMIT - 4, LIMIT + 8))
    data = base64.b64encode(bytes([draw(st.integers(0, 255))]) * size).decode()
    change = draw(st.sampled_from(["", "cut", "end", "middle", "url", "start", "reference"]))
    digit = draw(st.sampled_from([*DIGITS, '"', "\\", "é", "\n", "\ud800"]))
    at = draw(st.integers(0, len(data)))
    return {
        "": data,
        "cut": data[:-1],
        "end": data.rstrip("=")[:-1] + digit + "=" * data.count("="),
        "middle": data[:at] + digit + data[at:],
        "url": data.translate(str.maketrans("+/", "-_")),
        "start": f"data:image/png{digit};base64,{data}",
        "reference": f"sha256:{data[:64]}{data}",
    }[change]


KEYS = ("data", "url", "file_data", "text", "image_url", "sha256", 'a":"data', "content")
values: st.SearchStrategy[Any] = st.recursive(
    strings() | st.just("sha256:" + "0" * 64) | st.sampled_from(["", "data", '":"']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=4,
)


@pytest.mark.sqlite_only
@settings(max_examples=300)
@given(value=values, number=st.integers(0, 4))
def test_any_text_comes_back_to_the_character(value: Any, number: int) -> None:
    """Whatever a text holds, a content or another, it is the one that went in."""
    text = encode([value])
    found = detach_bytes(text, number)
    if found is not None:
        assert len(found.text) < len(text)
        assert attach_bytes(found.text, found.attached) == text


@settings(max_examples=60)
@given(value=values, data=st.data())
def test_a_look_alike_stays_what_it_is(store: Store, value: Any, data: st.DataObject) -> None:
    """A message that looks like a reference is none, whether its tree has such bytes or not."""
    session_id = store.create_session().id
    (picture,) = openai(encoded(LIMIT + 1))
    store.append(session_id, picture)
    stored = store.database.read(
        lambda connection: connection.execute(
            select(METADATA.tables["messages"].c.content).order_by(sqlalchemy.text("stored_at"))
        ).scalars()
    )
    looks = data.draw(st.sampled_from([*filter(None, stored)][-1:]))
    parts = [{"type": "image", "image_url": value}, *json.loads(looks)] if looks[0] == "[" else []
    arguments = data.draw(st.sampled_from([looks, {"of": value}, value, f" {looks}"]))
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}, "type": "function"}
    given = [
        {"role": "user", "content": parts},
        {"role": "user", "content": looks},
        {"role": "assistant", "content": looks, "tool_calls": [call, value], "more": [value]},
        picture,
    ]
    store.append(session_id, given)
    assert [each.message for each in store.messages(session_id)] == [picture, *given]


@pytest.mark.sqlite_only
def test_damage_is_found(store: Store) -> None:
    """By `verify`, and by whoever reads what is not there."""
    store.create_session("s")
    store.append("s", openai(encoded(LIMIT + 1)))
    store.append("s", calls("openai", encoded(LIMIT + 1)))
    changes = {
        "UPDATE messages SET extra = '{}' WHERE extra LIKE '_ %'": "heads",
        "UPDATE tool_calls SET arguments_form = 'text'": "heads",
        "UPDATE tool_calls SET arguments = 'x' || arguments": "digest",
        "INSERT INTO attachments SELECT tree_id, x'00', x'00' FROM attachments": "heads",
        "UPDATE messages SET content_form = 'json'": "heads",
        "UPDATE message_attachments SET position = position + 1": "digest",
        "DELETE FROM message_attachments": "digest",
    }
    for change, check in changes.items():
        with suppress(KeyError), store.database.writing() as connection:
            connection.begin()
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            for (name,) in connection.exec_driver_sql(names).fetchall():
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
            connection.exec_driver_sql(change)
            assert check in {each.check for each in integrity.verify(connection)}
            if check == "digest":
                with pytest.raises(Damaged):
                    raw_messages.load_session_messages(connection, "s")
            raise KeyError
