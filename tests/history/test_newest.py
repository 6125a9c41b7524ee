"""The newest messages of a line, kept in memory: they are those that would be read anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Child

from store import Store
from store.errors import InvalidValue
from store.history import raw_messages
from store.history.raw_messages import MAX_NEWEST_ROWS
from store.records import StoredMessage

Fork = Callable[..., Child]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store that keeps something."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def plain(url: str) -> Iterator[Store]:
    """One on the same database that keeps nothing."""
    with Store(url, durability="normal", cache_bytes=0) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> str:
    """A session of some turns."""
    session_id = store.create_session("s").id
    store.append(session_id, turns(10))
    return session_id


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The positions that are read from the database, first and last of each run."""
    runs: list[tuple[int, int]] = []
    stored = raw_messages.load_stored_rows

    def noted(connection: Any, run: dict[str, int]) -> Any:
        runs.append((run["first"], run["last"]))
        return stored(connection, run)

    monkeypatch.setattr(raw_messages, "load_stored_rows", noted)
    return runs


def turns(count: int, word: str = "so") -> list[dict[str, Any]]:
    """Questions, each with a call and its result; their keys are in an order of their own."""
    return [message for number in range(count) for message in turn(f"{word}-{number}")]


def turn(name: str) -> list[dict[str, Any]]:
    """One of them."""
    function = {"name": "Read", "arguments": f'{{"path": "{name}"}}'}
    call = {"id": name, "type": "function", "function": function}
    return [
        {"content": [{"type": "text", "text": name}], "role": "user"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": name * 9, "timestamp": 5},
    ]


def contents(found: list[StoredMessage]) -> list[Any]:
    """What was said."""
    return [each.message["content"] for each in found]


def test_only_what_is_new_is_read(
    store: Store, plain: Store, session: str, read: list[tuple[int, int]]
) -> None:
    """From the third time on: what was asked for once is not kept."""
    for _ in range(3):
        store.messages(session, -20)
    assert read == [(11, 30), (11, 30)]
    plain.append(session, turn("new"))
    fresh = plain.messages(session, -20)
    read.clear()
    assert store.messages(session, -20) == fresh
    assert store.messages(session, -3) == fresh[-3:]
    assert read == [(31, 33)]
    info = store.cache_info()
    assert (info.hits, info.misses, info.entries) == (3, 2, 1)


def test_who_asks_for_what_is_new_alone_leaves_what_is_kept(
    store: Store, session: str, read: list[tuple[int, int]]
) -> None:
    """It is added to it, so the next one finds all."""
    for _ in range(2):
        store.messages(session, -5)
    store.append(session, turn("new"))
    assert len(store.messages(session, 31)) == 3
    read.clear()
    assert [each.seq for each in store.messages(session, -8)] == [*range(26, 34)]
    assert read == []


def test_what_is_given_out_is_the_caller_s(store: Store, plain: Store, session: str) -> None:
    """Whatever he does to it, down to a call's arguments and the parts of a content."""
    fresh = plain.messages(session, -20)
    for _ in range(4):
        found = store.messages(session, -20)
        assert found == fresh
        for each in found:
            for call in each.message.get("tool_calls", ()):
                call["function"].clear()
            if isinstance(each.message["content"], list):
                each.message["content"][0].clear()
            each.message.clear()


def build_exchange(name: str, number: int) -> list[dict[str, Any]]:
    """Return a question, two calls and their results as a format has them."""
    ids = [f"c-{number}-{each}" for each in range(2)]
    asked = {"path": f"f-{number}", **({"lines": [number, {"to": 9}]} if number % 2 else {})}
    if name == "anthropic":
        calls = [{"type": "tool_use", "id": each, "name": "Read", "input": asked} for each in ids]
        results = [{"type": "tool_result", "tool_use_id": each, "content": each} for each in ids]
        blocks = [{"type": "text", "text": "I"}, {"type": "text", "text": "look"}, *calls]
        return [
            {"role": "user", "content": [{"type": "text", "text": f"ask {number}"}]},
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
    if name == "gemini":
        calls = [{"functionCall": {"id": each, "name": "Read", "args": asked}} for each in ids]
        answers = [{"id": each, "name": "Read", "response": {"output": each}} for each in ids]
        return [
            {"role": "user", "parts": [{"text": f"ask {number}"}]},
            {"role": "model", "parts": calls},
            {"role": "user", "parts": [{"functionResponse": each} for each in answers]},
        ]
    call = {"type": "function_call", "name": "Read", "arguments": '{"path": "f"}'}
    return [
        {"type": "message", "role": "user", "content": f"ask {number}"},
        *({**call, "id": f"fc_{each}", "call_id": each} for each in ids),
        *({"type": "function_call_output", "call_id": each, "output": each} for each in ids),
    ]


def clear_all(value: Any) -> None:
    """Take everything out of a value that a caller was given."""
    for each in [*value.values()] if isinstance(value, dict) else [*value]:
        if isinstance(each, dict | list):
            clear_all(each)
    value.clear()


@pytest.mark.parametrize("name", ["anthropic", "gemini", "responses"])
def test_messages_of_formats_are_built_again_of_what_is_kept(
    store: Store, plain: Store, name: str
) -> None:
    """Wherever the newest begin, also amidst a message, and whatever a caller does to them."""
    session = store.create_session().id
    for number in range(7):
        store.append(session, build_exchange(name, number), format=name)
        for newest in (9, 8, 7, 9):
            for _ in range(2):
                fresh = plain.messages(session, -newest)
                found = store.messages(session, -newest)
                assert repr(found) == repr(fresh)
                for each in found:
                    clear_all(each.message)
    store.rewind(session, store.session(session).head - 1)
    assert store.messages(session, -9) == plain.messages(session, -9)
    store.append(session, build_exchange(name, 8), format=name)
    assert store.messages(session, -12) == plain.messages(session, -12)


def test_no_more_than_so_many_messages_are_kept(store: Store, plain: Store, session: str) -> None:
    """However long a line grows; more than that at once is not kept at all."""
    sizes = []
    for number in range(MAX_NEWEST_ROWS):
        store.append(session, turn(f"{number:05}"))
        assert store.messages(session, -20) == plain.messages(session, -20)
        sizes.append(store.cache_info().bytes)
    assert max(sizes[MAX_NEWEST_ROWS // 2 :]) < 1.1 * max(sizes[: MAX_NEWEST_ROWS // 2])
    before = store.cache_info()
    assert len(store.messages(session, -MAX_NEWEST_ROWS - 1)) == MAX_NEWEST_ROWS + 1
    assert store.cache_info() == before


def test_earlier_ends_are_read_as_they_were(store: Store, plain: Store, session: str) -> None:
    """Behind a rewind, on the branch that follows it, and where the head goes back."""
    for _ in range(2):
        store.messages(session, -9)
    for change in (
        lambda: plain.rewind(session, 24),
        lambda: plain.append(session, turn("instead")),
        lambda: plain.undo_rewind(session),
        lambda: plain.rewind(session, 6),
        lambda: plain.fork(session, session_id="t"),
    ):
        change()
        for start in (-9, -2, 1):
            assert store.messages(session, start) == plain.messages(session, start)
    assert store.messages("t", -4) == plain.messages(session, -4)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_words_that_another_takes_out_are_not_given_again(
    store: Store, plain: Store, session: str, fork: Fork, elsewhere: bool
) -> None:
    """Whichever process redacts them."""
    for _ in range(2):
        assert ["so-9"] in [
            [part["text"] for part in content]
            for content in contents(store.messages(session, -5))
            if isinstance(content, list)
        ]
    if elsewhere:
        fork(plain.redact, session, 28, "private").result()
    else:
        plain.redact(session, 28, "private")
        assert store.cache_info().entries == 0
    assert "text': 'so-9'" not in repr(store.messages(session, -5))
    assert store.messages(session, -5) == plain.messages(session, -5)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_numbers_that_come_again_are_of_other_messages(
    store: Store, plain: Store, session: str, fork: Fork, elsewhere: bool
) -> None:
    """A fork behind an erased one has its branch, and none of its messages."""
    for word in ("first", "other"):
        name = store.fork(session).id
        plain.append(name, turns(3, word))
        for _ in range(3):
            said = repr(contents(store.messages(name, -5)))
            assert (word in said, said.count("first") > 0) == (True, word == "first")
        if elsewhere:
            fork(plain.delete_session, name).result()
        else:
            plain.delete_session(name)


def test_what_was_taken_back_is_not_kept(store: Store, plain: Store, session: str) -> None:
    """A transaction that writes keeps nothing of what it sees."""
    store.messages(session, -5)

    def work(steps: Any) -> None:
        steps.append(session, turn("never"))
        for _ in range(3):
            assert "never" in repr(steps.messages(session, -5))
        raise InvalidValue("taken back")

    with pytest.raises(InvalidValue):
        store.atomically(work)
    store.append(session, turn("said"))
    assert store.messages(session, -5) == plain.messages(session, -5)
    assert "never" not in repr(store.messages(session, -5))


def test_a_store_that_keeps_nothing_reads_all(
    plain: Store, session: str, read: list[tuple[int, int]]
) -> None:
    """Each time."""
    for _ in range(3):
        plain.messages(session, -20)
    assert read == [(11, 30)] * 3
    assert plain.cache_info() == (0, 0, 0, 0, 0)


def test_no_more_bytes_are_kept_than_there_is_room_for(url: str) -> None:
    """What was asked for last stays."""
    with Store(url, durability="normal", cache_bytes=50_000) as store:
        for number in range(9):
            session_id = store.create_session(f"s{number}").id
            store.append(session_id, {"role": "user", "content": "x" * 5_000})
            for _ in range(3):
                store.messages(session_id, -1)
            assert 0 < store.cache_info().bytes <= 50_000
        assert 0 < store.cache_info().entries < 9
