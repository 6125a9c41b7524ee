"""The log of requests: each is made again as it was sent, whatever was done to the session since."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from conversations import NOW
from pydantic_core import to_json

from store import AsyncStore, InvalidValue, Policy, Store, StoreError
from store.context import Context
from store.exporting import export_store
from store.importing import import_file
from store.policy import POLICIES
from store.records import View
from store.view.sent_digest import KeyedMessages, SentDigest

FORMATS = ("openai", "responses", "anthropic", "gemini")
TOOLS = [{"name": "Read", "description": "Read it.", "input_schema": {"type": "object"}}]


class Sent(NamedTuple):
    """What was sent."""

    messages: list[Any]
    system: Any
    tools: Any
    layers: dict[str, int]


def of_context(made: Context) -> Sent:
    """What a request with all its layers sends."""
    return Sent(made.messages, made.system, made.tools, made.layers)


def of_view(made: View) -> Sent:
    """What a view sends."""
    return Sent(made.messages, made.system, None, {"history": made.stats.tokens})


def record_all(
    store: Store, session_id: str, root: Path, at: int | None = None, turn: int = 0
) -> list[Sent]:
    """Record a request and a view by every ready policy, the formats in turn from one on."""
    sent = []
    for number, name in enumerate(POLICIES, turn):
        options: dict[str, Any] = {"at": at, "format": FORMATS[number % len(FORMATS)]}
        options |= {"policy": Policy.named(name), "record": True}
        told = "Go on with @a.py and @b/c.py." if number % 2 else None
        made = store.context(
            session_id,
            system="Be brief.",
            tools=TOOLS if number % 3 else "Read: read it",
            user_input=told,
            root=root,
            cache_markers=number % 4 == 2,
            **options,
        )
        sent += [of_context(made), of_view(store.view(session_id, **options))]
    return sent


def check_all(store: Store, session_id: str, sent: list[Sent]) -> None:
    """Compare each recorded request with what was sent: the same text, byte for byte."""
    assert [each.number for each in store.requests(session_id)] == [*range(1, len(sent) + 1)]
    for number, (messages, system, tools, layers) in enumerate(sent, 1):
        made = store.request(session_id, number)
        assert made.missing == ()
        told = (made.messages, made.system, made.tools)
        assert json.dumps(told) == json.dumps((messages, system, tools))
        assert made.layers == layers
        assert made.tokens == sum(layers.values())


def change_all(store: Store, session_id: str, root: Path, sent: dict[str, list[Sent]]) -> None:
    """Do to a session and its project whatever may change its next requests; record in between."""
    head = store.session(session_id).head
    (root / "CODE_LAW.md").write_text("Law two.", encoding="utf-8")
    (root / "a.py").unlink()
    for policy in (Policy.named("agent", keep_turns=1), Policy.named("turns", keep_turns=1)):
        try:
            store.compact(session_id, policy, lambda _: "A summary. " * 5)
        except StoreError:  # there is nothing to compact
            continue
    sent[session_id] += record_all(store, session_id, root)
    fork = store.fork(session_id, at=max(1, head - 2)).id
    sent[fork] = record_all(store, fork, root)
    store.append(fork, [{"role": "user", "content": "Other."}])
    store.rewind(session_id, to=max(1, head // 2))
    store.append(session_id, [{"role": "user", "content": "Another."}])
    sent[session_id] += record_all(store, session_id, root)
    if head > 1:
        store.undo_rewind(session_id)


def log_and_change(store: Store, session_id: str, root: Path, positions: list[int]) -> None:
    """Record requests, change what they were made of, and compare."""
    root.mkdir(exist_ok=True)
    (root / "CODE_LAW.md").write_text("Law one.", encoding="utf-8")
    (root / "a.py").write_text("x = 1", encoding="utf-8")
    sent = {
        session_id: [
            each
            for turn, at in enumerate(positions)
            for each in record_all(store, session_id, root, at, turn)
        ]
    }
    change_all(store, session_id, root, sent)
    for each, requests in sent.items():
        check_all(store, each, requests)


@pytest.fixture
def logged(url: str) -> Iterator[Store]:
    """A store with a session ``s`` of an agent at work."""
    with Store(url, durability="normal") as store:
        store.create_session("s", now=NOW)
        store.append("s", {"role": "user", "content": "Mend @a.py."}, now=NOW)
        for number in range(6):
            name = "Bash" if number % 2 else "Read"
            function = {"name": name, "arguments": json.dumps({"path": "a.py", "command": "make"})}
            call = {"id": f"c{number}", "type": "function", "function": function}
            result = {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": f"line {number}\n" * 90,
            }
            asked = {"role": "assistant", "content": None, "tool_calls": [call]}
            store.append("s", [asked, {**result, "timestamp": NOW - 10**7 + number}], now=NOW)
        store.append("s", [{"role": "assistant", "content": "Done."}], now=NOW)
        yield store


def test_a_request_is_made_again_byte_for_byte(logged: Store, tmp_path: Path) -> None:
    """By every ready policy, after compactions, a rewind, a fork and other rules of the project."""
    log_and_change(logged, "s", tmp_path / "project", [3, logged.session("s").head])
    assert logged.verify() == []


def recordings() -> Iterator[Path]:
    """Yield recorded conversations, some of each program."""
    for folder in sorted(path for path in TRANSCRIPTS.glob("*") if path.is_dir()):
        found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        yield from [path for path in found if path.stat().st_size < 400_000][:3]


@pytest.mark.slow
@pytest.mark.sqlite_only
@needs_transcripts
@pytest.mark.parametrize("path", [*recordings()], ids=lambda path: path.name[:60])
def test_requests_of_recordings_are_made_again(path: Path, tmp_path: Path) -> None:
    """Each of the conversations of many programs, at its middle and its end."""
    with Store(":memory:", durability="normal") as store:
        try:
            report = import_file(store, path)
        except StoreError:
            pytest.skip("no conversation is in it")
        for place, imported in enumerate(report.sessions[:2]):
            if head := store.session(imported.id).head:
                log_and_change(store, imported.id, tmp_path / str(place), [max(1, head // 2), head])


def spread() -> Iterator[Path]:
    """Yield recorded conversations of each program: the two largest that are not over some size."""
    for folder in sorted(path for path in TRANSCRIPTS.glob("*") if path.is_dir()):
        sizes = [(path.stat().st_size, path) for path in folder.rglob("*") if path.is_file()]
        yield from [path for size, path in sorted(sizes) if size < 400_000][-2:]


@pytest.mark.slow
@pytest.mark.sqlite_only
@needs_transcripts
@pytest.mark.parametrize("path", [*spread()], ids=lambda path: path.name[:60])
def test_every_request_of_a_recording_is_made_again(path: Path, tmp_path: Path) -> None:
    """Those that its program made, one before each answer, by every ready policy."""
    with Store(":memory:", durability="normal") as store:
        (imported, *_) = import_file(store, path).sessions
        are_answers = [is_answer(each.message) for each in store.messages(imported.id)]
        places = enumerate(pairwise(are_answers), 1)
        asked = [seq for seq, pair in places if pair == (False, True)]
        log_and_change(store, imported.id, tmp_path / "project", asked or [len(are_answers)])


def is_answer(message: dict[str, Any]) -> bool:
    """Tell whether a model made a message, or an item of one."""
    kind = str(message.get("type", ""))
    return bool(message.get("role", "" if kind.endswith("_output") else "assistant") == "assistant")


@pytest.mark.sqlite_only
def test_the_digest_of_a_request_continues_that_of_the_one_before(tmp_path: Path) -> None:
    """And is that of the whole text, whatever the caller did to the messages of the one before."""
    (tmp_path / "a.py").write_text("x = 1", encoding="utf-8")
    with Store(":memory:", durability="normal") as store:
        store.create_session("s", project_root=str(tmp_path))
        store.append("s", {"role": "system", "content": "Lead."})
        for turn in range(3):
            for number in range(12):
                told = {"role": "user", "content": f"Mend @a.py, {turn} {number}."}
                store.append("s", [told, {"role": "assistant", "content": "Done."}])
            for system, policy in (("One.", "raw"), ("Two.", "agent")):
                view = store.view("s", Policy.named(policy), record=True)
                made = store.context(
                    "s", system, [*TOOLS], "Go on.", policy=Policy.named(policy), record=True
                )
                sent = [{"messages": view.messages}]
                sent += [{"messages": made.messages, "tools": made.tools}]
                digests = [each.digest for each in store.requests("s")][-2:]
                assert digests == [sha256(to_json(each)).digest() for each in sent]
                view.messages[-1]["content"] = made.messages[-1]["content"] = "Changed."
            if turn:
                store.compact("s", Policy.named("agent", keep_turns=1), lambda _: "Short. " * 5)
        assert {store.request("s", 1 + number).missing for number in range(12)} == {()}


def test_equal_beginnings_are_digested_once() -> None:
    """Messages of the request before are not read again, as far as whole batches of them go."""
    messages = [{"role": "user", "content": str(number)} for number in range(100)]
    digest = SentDigest()
    keyed = KeyedMessages([*range(100)], messages)
    whole = digest.compute((messages, None, None), keyed)
    assert digest.compute(([{}] * 96 + messages[96:], None, None), keyed) == whole
    changed = keyed._replace(keys=[*range(40), 1000, *range(41, 100)])
    assert digest.compute(([{}] * 32 + messages[32:], "s", None), changed) != whole
    assert digest.compute(([{}] * 96 + messages[96:], None, None), changed) == whole


def test_a_usage_belongs_to_the_request_before_it(logged: Store) -> None:
    """Also where the input was stored after the request; a second usage belongs to none."""
    head = logged.session("s").head
    logged.view("s", record=True, now=NOW)
    logged.record_usage("s", input=50, output=5, now=NOW)
    logged.record_usage("s", input=60, output=6, now=NOW)
    logged.context("s", user_input="And now?", record=True, now=NOW)
    logged.append("s", {"role": "user", "content": "And now?"}, now=NOW)
    logged.record_usage("s", input=70, output=7, now=NOW)
    logged.view("s", record=True, now=NOW)
    told = [(each.seq, each.usage and each.usage.input) for each in logged.requests("s")]
    assert told == [(head, 50), (head, 70), (head + 1, None)]
    with logged.database.reading() as connection:
        query = "SELECT request, input, policy FROM request_log ORDER BY request"
        found = [tuple(row) for row in connection.exec_driver_sql(query)]
    assert found == [(1, 50, "default"), (2, 70, "turns"), (3, None, "default")]


@pytest.mark.parametrize("record", [False, True])
def test_a_part_of_the_requests_is_listed(logged: Store, record: bool) -> None:
    """With their numbers and usages; those of positions, and of them the newest."""
    for number, at in enumerate((1, 3, 3, 5, 2, 7)):
        logged.view("s", at=at, record=record)
        logged.record_usage("s", input=number, output=1, seq=at, now=NOW + number)
    everything = logged.requests("s")
    assert [each.recorded for each in everything] == [record] * 6
    for asked, numbers in (
        ({"start": 2, "stop": 4}, [2, 3, 4]),
        ({"last": 2}, [5, 6]),
        ({"stop": 4, "last": 1}, [4]),
        ({"first_seq": 2, "last_seq": 3}, [2, 3, 5]),
        ({"last_seq": 4, "last": 1}, [5]),
        ({"start": 7}, []),
        ({"last": 0}, []),
    ):
        assert logged.requests("s", **asked) == [everything[each - 1] for each in numbers], asked
    for name, value in (("last", -1), ("start", "1"), ("last_seq", 2.5), ("stop", 2**70)):
        with pytest.raises(InvalidValue, match=name):
            logged.requests("s", **{name: value})


def test_the_log_tells_what_is_as_before(logged: Store) -> None:
    """The tokens at the beginning of a request that the last one had, too."""
    policy = Policy.named("raw")
    for at in (7, 9, 3):
        logged.view("s", policy, at=at, record=True)
    first, second, third = logged.requests("s")
    told = [first.unchanged_tokens, second.unchanged_tokens, third.unchanged_tokens]
    assert told == [None, first.tokens, third.tokens]


def test_nothing_is_recorded_unless_asked(logged: Store) -> None:
    """The usages of a session without records stand for its requests."""
    logged.view("s")
    logged.context("s")
    assert logged.requests("s") == []
    logged.record_usage("s", input=9, output=1, seq=2, now=NOW)
    made = logged.request("s", 1)
    assert (made.recorded, made.seq, made.usage and made.usage.input) == (False, 2, 9)
    assert made.messages == logged.view("s", Policy.named("raw"), at=2, now=NOW).messages
    for number in (0, 2, True, "1"):
        with pytest.raises(InvalidValue, match="has no request"):
            logged.request("s", number)  # type: ignore[arg-type]


def texts_of(store: Store) -> list[str]:
    """The texts of all requests."""
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT content FROM request_texts ORDER BY content")
        return [content for (content,) in rows]


def test_what_was_redacted_is_missing(logged: Store) -> None:
    """No text of a request repeats the message; other requests are as they were."""
    logged.view("s", record=True, at=2, now=NOW)
    logged.context("s", system="Be brief.", user_input="The secret is 4711.", record=True, now=NOW)
    logged.append("s", {"role": "user", "content": "The secret is 4711."}, now=NOW)
    logged.context("s", system="Be brief.", record=True, now=NOW)
    head = logged.session("s").head
    logged.redact("s", head, "a secret", now=NOW)
    assert not [text for text in texts_of(logged) if "4711" in text]
    assert "Be brief." in texts_of(logged)
    before, asked, after = (logged.request("s", number) for number in (1, 2, 3))
    assert before.missing == ()
    assert asked.missing[0].startswith("user_input: its text was removed")
    assert after.missing[-1] == f"message {head}: redacted"
    assert logged.verify() == []


def test_an_erased_session_takes_its_requests_along(logged: Store) -> None:
    """Texts that a fork's requests have, too, stay; a new session of that id counts from 1."""
    logged.context("s", system="Both.", user_input="Mine.", record=True, now=NOW)
    logged.fork("s", session_id="f", now=NOW)
    assert logged.requests("f") == []
    logged.context("f", system="Both.", user_input="Theirs.", record=True, now=NOW)
    logged.delete_session("s", now=NOW)
    assert "Mine." not in texts_of(logged)
    assert {"Both.", "Theirs."} <= {*texts_of(logged)}
    assert logged.request("f", 1).missing == ()
    logged.create_session("s", now=NOW)
    logged.view("s", record=True, now=NOW)
    assert [each.number for each in logged.requests("s")] == [1]
    logged.delete_session("s", "f", now=NOW)
    assert texts_of(logged) == []


def test_a_tool_has_the_kind_that_it_had(logged: Store) -> None:
    """A later release may know the tool as another one."""
    policy = Policy(terminal_keep=0, terminal_max_age=0, file_read_keep=1)
    made = logged.view("s", policy, record=True)
    assert made.stats.replaced
    with logged.database.writing() as connection:
        connection.exec_driver_sql("UPDATE tool_kinds SET kind = 'search'")
    assert logged.view("s", policy).messages != made.messages
    again = logged.request("s", 1)
    assert (again.messages, again.missing) == (made.messages, ())
    assert again.policy["terminal_keep"] == 0


def test_another_project_is_told(logged: Store) -> None:
    """Paths in results follow from the folder, so the bytes may be others."""
    logged.set_project_root("s", "/p")
    policy = Policy(terminal=False, file_read_keep=0)
    logged.view("s", policy, record=True, now=NOW)
    assert logged.request("s", 1).missing == ()
    assert logged.verify() == []


@pytest.mark.sqlite_only
def test_requests_move_with_a_store(logged: Store, tmp_path: Path) -> None:
    """Into a file, and from it into another store."""
    sent = record_all(logged, "s", tmp_path)
    export_store(logged, tmp_path / "all.jsonl")
    with Store(":memory:") as other:
        assert import_file(other, tmp_path / "all.jsonl").notes == []
        check_all(other, "s", sent)


def test_every_face_records(logged: Store) -> None:
    """An owner, steps and a snapshot, which only reads."""
    scoped = logged.scoped("ann")
    scoped.create_session("o")
    scoped.append("o", {"role": "user", "content": "Hi."})
    scoped.view("o", record=True)
    scoped.context("o", record=True)
    logged.atomically(lambda steps: steps.view("o", record=True))
    kinds = [each.kind for each in scoped.requests("o")]
    assert kinds == ["view", "context", "view"]
    assert scoped.request("o", 3).messages == [{"role": "user", "content": "Hi."}]
    with pytest.raises(StoreError):
        logged.scoped("bob").requests("o")
    with pytest.raises(InvalidValue, match="only reads"):
        logged.reading(lambda snapshot: snapshot.view("o", record=True))
    assert len(logged.requests("o")) == 3


@pytest.mark.sqlite_only
def test_requests_are_recorded_from_a_loop(path: Path) -> None:
    """By the same names, awaited."""

    async def work() -> None:
        async with AsyncStore(path) as store:
            await store.create_session("s")
            await store.append("s", {"role": "user", "content": "Hi."})
            sent = await store.context("s", system="Be brief.", record=True)
            await store.view("s", record=True)
            assert (await store.request("s", 1)).messages == sent.messages
            assert len(await store.requests("s")) == 2

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_changed_request_is_found(logged: Store) -> None:
    """`verify` makes a sample of the requests again."""
    logged.view("s", Policy.named("raw"), record=True, now=NOW)
    with logged.database.writing() as connection:
        connection.exec_driver_sql("UPDATE requests SET seq = seq - 1")
    assert {each.check for each in logged.verify()} == {"seal", "requests"}
