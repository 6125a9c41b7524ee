"""The sessions of one owner: no operation gets at another's, on any face."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from store import (
    AsyncScoped,
    AsyncStore,
    AsyncStreaming,
    Owned,
    Policy,
    Scoped,
    Store,
    Streaming,
)
from store.errors import DraftNotFound, InvalidValue, SessionExists, SessionNotFound, StoreError

NOW = 1_800_000_000_000
SECRET = "secret"
HIS = "secret-session"
NOBODYS = "secret-of-nobody"
DRAFT = "a draft of "
TURNS = Policy.named("turns")
Try = Callable[[Any], Any]
FOREIGN = (HIS, NOBODYS)


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def names(face: type) -> set[str]:
    """Return the public names of a face."""
    return {name for name in dir(face) if not name.startswith("_")}


def gone(*args: Any, **options: Any) -> tuple[list[Any], dict[str, Any], type[StoreError]]:
    """Return a call that has to find no session; HIS stands for each session that is not hers."""
    return [*args], options, SessionNotFound


def _no_draft(**options: Any) -> tuple[list[Any], dict[str, Any], type[StoreError]]:
    """Return a call that has to find no draft; DRAFT stands for one of a session not hers."""
    return [DRAFT], options, DraftNotFound


Call = tuple[list[Any], dict[str, Any], type[StoreError] | None]
TRIES: dict[str, list[Call]] = {
    "metrics": [([], {}, None)],
    "observe": [(["no function"], {}, InvalidValue)],
    "create_session": [
        ([HIS], {}, SessionExists),
        ([HIS], {"exist_ok": True}, SessionExists),
        (["new"], {"owner": "bob"}, InvalidValue),
    ],
    "session": [gone(HIS), gone(session_id=HIS)],
    "title": [gone(HIS)],
    "sessions": [
        ([], {}, None),
        ([], {"order": "created", "where": {SECRET: 1}}, None),
        ([], {"prefix": SECRET, "archived": True}, None),
        gone(tree=HIS),
        gone(after=HIS),
        ([], {"owner": "bob"}, InvalidValue),
    ],
    "count_sessions": [
        ([], {"prefix": SECRET}, None),
        gone(tree=HIS),
        ([], {"owner": "bob"}, InvalidValue),
    ],
    "archive": [gone(HIS)],
    "unarchive": [gone(HIS)],
    "rename_session": [gone(HIS, "mine"), gone(HIS, "mine", expected="no")],
    "set_metadata": [gone(HIS, {"mine": 1}), gone(HIS, {"mine": 1}, merge=True)],
    "set_origin": [gone(HIS, "mine", "mine")],
    "file_state": [([SECRET], {}, None), ([SECRET], {"owner": "bob"}, InvalidValue)],
    "set_file_state": [
        ([SECRET, "mine"], {}, None),
        ([SECRET, "mine"], {"owner": "bob"}, InvalidValue),
    ],
    "set_project_root": [gone(HIS, "/mine"), (["shared", "/mine"], {}, StoreError)],
    "append": [
        gone(HIS, said("mine")),
        ([HIS, said("mine")], {"create": True}, SessionExists),
        ([HIS, said("mine")], {"create": True, "metadata": {"mine": 1}}, SessionExists),
        gone(HIS, said("mine"), expected_head=99),
        gone(session_id=HIS, messages=[said("mine")], expected="no"),
        gone(HIS, said("another", id="secret-id")),
    ],
    "messages": [gone(HIS), gone(HIS, at=99), gone(HIS, branch=1)],
    "message": [gone(HIS, 1), gone(HIS, "secret-id")],
    "find": [
        (["secret-id"], {}, None),
        gone("secret-id", HIS),
        gone("secret-id", session=HIS),
        (["secret-id"], {"owner": "bob"}, InvalidValue),
        ([], {"prefix": "secret"}, None),
        gone(session=HIS, prefix="secret"),
    ],
    "turns": [gone(HIS)],
    "recall": [gone(HIS, SECRET), gone(HIS, [SECRET], budget=9)],
    "index": [([], {}, None), ([], {"owner": "bob"}, InvalidValue)],
    "search": [
        ([SECRET], {}, None),
        ([SECRET], {"left": True, "order": "newest"}, None),
        ([SECRET[:-1]], {"left": True}, None),
        ([SECRET], {"roles": ["title"]}, None),
        gone(SECRET, session=HIS),
        gone("one", session=HIS, left=True),
        ([SECRET], {"owner": "bob"}, InvalidValue),
    ],
    "fork": [
        gone(HIS),
        gone(source=HIS, at=1, session_id="mine"),
        (["hers"], {"owner": "bob"}, InvalidValue),
        (["hers"], {"session_id": HIS}, SessionExists),
    ],
    "rewind": [gone(HIS, 0), gone(HIS, 99)],
    "switch": [gone(HIS, 1), gone("hers", None, of=HIS), (["shared", 2], {}, InvalidValue)],
    "branches": [gone(HIS)],
    "siblings": [gone(HIS, 1)],
    "replace": [gone(HIS, 0, said("mine"))],
    "pop": [gone(HIS)],
    "undo_rewind": [gone(HIS)],
    "head_moves": [gone(HIS)],
    "view": [gone(HIS)],
    "check": [gone(HIS, TURNS)],
    "requests": [gone(HIS)],
    "request": [gone(HIS, 1), gone(HIS, 99)],
    "record_usage": [gone(HIS, input=5, output=1), gone(HIS, input=5, output=1, seq=1)],
    "usages": [
        ([], {}, None),
        ([], {"since": NOW - 1, "until": NOW + 1, "limit": 9}, None),
        gone(HIS),
        gone(session_id=HIS, since=NOW),
        ([], {"owner": "bob"}, InvalidValue),
    ],
    "annotate": [gone(HIS, 1, "mine", 1), gone(HIS, 1, SECRET, None), gone(HIS, 99, "mine", 1)],
    "annotations": [
        ([], {}, None),
        ([], {"key": SECRET}, None),
        (["shared"], {}, None),
        (["shared"], {"key": SECRET}, None),
        gone(HIS),
        gone(HIS, key=SECRET),
        ([], {"owner": "bob"}, InvalidValue),
    ],
    "usage_totals": [
        *(([], {"by": by}, None) for by in ("model", "session", "owner", "day")),
        gone(HIS),
        gone(HIS, by="session"),
        ([], {"owner": "bob"}, InvalidValue),
    ],
    "compactions": [gone(HIS)],
    "hidden": [gone(HIS)],
    "replaced": [gone(HIS)],
    "view_sql": [gone(HIS)],
    "plan_clearing": [gone(HIS, TURNS)],
    "plan_compaction": [gone(HIS, TURNS)],
    "hide": [gone(HIS, 1, 1), gone(HIS, 1, 1, "mine", expected="no")],
    "undo_compaction": [gone(HIS, 1)],
    "redact": [gone(HIS, 1, "mine"), (["shared", 1, "mine"], {}, StoreError)],
    "redactions": [gone(HIS), gone(None)],
    "pages": [gone(HIS), gone(HIS, size=1)],
    "compact": [gone(HIS, TURNS), gone(session_id=HIS, policy=TURNS, reason="llm_call")],
    "compact_if_needed": [gone(HIS, TURNS, max_tokens=1)],
    "count_tokens": [gone(HIS)],
    "context": [gone(HIS), gone(HIS, "system", user_input="now", at=99)],
    "wait": [gone(HIS, None, 0.0), gone(HIS, "no", timeout=0.0)],
    "drafts": [gone(HIS), ([], {}, None), ([], {"owner": "bob"}, InvalidValue)],
    "finish_draft": [_no_draft(), _no_draft(owner=None), (["0"], {"owner": "bob"}, InvalidValue)],
    "follow": [_no_draft(), _no_draft(key="reasoning")],
    "discard_draft": [_no_draft(), _no_draft(owner="ann")],
    "streaming": [gone(HIS, said("mine")), gone(HIS, said("mine"), expected="no")],
    "prune": [
        ([0], {}, None),
        ([0], {"owner": "bob"}, InvalidValue),
    ],
    "delete_session": [
        gone(HIS),
        gone("hers", HIS),
        gone(HIS, expected="no"),
        (["hers"], {"costs": "none"}, InvalidValue),
        ([[HIS]], {"missing": "ignore"}, None),
    ],
    "forget": [gone(HIS), gone(HIS, expected="no"), (["hers"], {"costs": "none"}, InvalidValue)],
    "calls": [gone(HIS), gone(HIS, kind="terminal", failed=True)],
    "open_calls": [gone(HIS)],
    "frame": [(["calls", HIS], {}, SessionNotFound)],
    "files": [gone(HIS), gone(HIS, SECRET)],
    "reading": [
        ([lambda t: t.messages(HIS)], {}, SessionNotFound),
        ([lambda t: t.sessions()], {}, None),
        ([lambda t: t.owner == "ann" or t.verify()], {}, None),
    ],
    "atomically": [
        ([lambda t: t.messages(HIS)], {}, SessionNotFound),
        ([lambda t: t.append(HIS, said("mine"), create=True)], {}, SessionExists),
        ([lambda t: t.sessions()], {}, None),
        ([lambda t: t.owner == "ann" or t.verify()], {}, None),
    ],
}
"""How each operation is asked for what is another's, and the error it raises (None: no word)."""
EVERY = [(name, number) for name, calls in TRIES.items() for number in range(len(calls))]
STEPS = [(name, number) for name, number in EVERY if name in names(Owned)]


@pytest.fixture(scope="module")
def chats(store: Store) -> Store:
    """Return a store with sessions of two owners and of nobody, and one that continues another's."""
    for session_id, owner in ((HIS, "bob"), (NOBODYS, None)):
        metadata = {SECRET: 1}
        store.create_session(session_id, title=SECRET, owner=owner, metadata=metadata, now=NOW)
        store.append(session_id, [said(SECRET, id="secret-id"), said(SECRET)], now=NOW)
        store.redact(session_id, 2, SECRET, now=NOW)
        usage = {"model": SECRET, "details": {SECRET: 1}, "cost": 1.5}
        store.record_usage(session_id, input=5, output=1, **usage, now=NOW)
        with suppress(KeyError), store.streaming(session_id, said(SECRET)):
            raise KeyError
        store.annotate(session_id, 1, SECRET, SECRET, now=NOW)
    store.create_session("hers", owner="ann", now=NOW)
    store.append("hers", [said("one"), said("two")], now=NOW)
    store.create_session("public", owner="bob", now=NOW)
    store.append("public", [said("one"), said(SECRET)], now=NOW)
    store.annotate("public", 1, SECRET, SECRET, now=NOW)
    store.rewind("public", 1, now=NOW)
    store.fork("public", session_id="shared", owner="ann", now=NOW)
    return store


def kept(store: Store) -> list[Any]:
    """Return all that the store has, as far as these tests could change it."""
    ids = sorted(each.id for each in store.sessions())
    read: tuple[Callable[[str], Any], ...] = (
        store.session,
        store.messages,
        store.head_moves,
        store.compactions,
        store.redactions,
        store.usages,
        store.drafts,
        store.annotations,
    )
    return [[each(session_id) for each in read] for session_id in ids] + [store.erasures()]


def _with_draft(store: Store, args: Any, session_id: str) -> list[Any]:
    """Return arguments with the draft of a session where one stands for it."""
    (draft,) = store.drafts(session_id)
    return [draft.draft if each == DRAFT else each for each in args]


def tried(ask: Callable[..., Any], call: Call, foreign: str) -> None:
    """Ask for another's session: an error that says nothing of it, or an answer without it."""
    args, options, expected = call
    args = [foreign if each == HIS else each for each in args]
    options = {key: foreign if each == HIS else each for key, each in options.items()}
    if expected is None:
        assert SECRET not in repr(ask(*args, **options)).replace("secret-id", "")
        return
    with pytest.raises(expected) as told:
        ask(*args, **options)
    assert type(told.value) is expected
    assert SECRET not in str(told.value).replace(HIS, "").replace(foreign, "")


def test_every_method_is_tried() -> None:
    """One that is not known here has to be given its tries first."""
    assert names(Scoped) - {"owner", "delete_owner"} == {*TRIES}
    assert names(AsyncScoped) - {"call"} == names(Scoped)
    assert names(Owned) <= names(Scoped)
    whole = {
        "verify",
        "backup",
        "purge",
        "copies",
        "erasures",
        "sql",
        "scoped",
        "shared",
        "close",
    }
    assert names(Scoped).isdisjoint(whole | {"database", "upgraded"})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize(("name", "number"), EVERY)
def test_nothing_gets_at_anothers_session(
    chats: Store, name: str, number: int, foreign: str
) -> None:
    """It is not there, and nothing of it changes."""
    before = kept(chats)
    method = getattr(chats.scoped("ann"), name)

    def ask(*args: Any, **options: Any) -> Any:
        found = method(*_with_draft(chats, args, foreign), **options)
        if isinstance(found, Streaming):
            found.__enter__()
        return list(found) if isinstance(found, Iterator) else found

    tried(ask, TRIES[name][number], foreign)
    assert kept(chats) == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "number"), STEPS)
def test_no_step_gets_at_anothers_session(chats: Store, name: str, number: int) -> None:
    """Steps of one transaction are scoped likewise."""
    before = kept(chats)

    def ask(*args: Any, **options: Any) -> Any:
        named = _with_draft(chats, args, HIS)
        return chats.scoped("ann").atomically(lambda t: getattr(t, name)(*named, **options))

    tried(ask, TRIES[name][number], HIS)
    assert kept(chats) == before


def test_awaited_methods_are_scoped(chats: Store) -> None:
    """The same for each of them in an event loop."""
    before = kept(chats)

    async def finished(face: AsyncScoped, name: str, args: Any, options: Any) -> Any:
        asked = getattr(face, name)(*_with_draft(chats, args, HIS), **options)
        if isinstance(asked, AsyncStreaming):
            return await asked.__aenter__()
        return [each async for each in asked] if isinstance(asked, AsyncIterator) else await asked

    with asyncio.Runner() as runner:
        opened = AsyncStore(chats)
        face = opened.scoped("ann")
        assert face.owner == "ann"
        for name, number in EVERY:
            ask = partial(_run, runner, finished, face, name)
            tried(ask, TRIES[name][number], HIS)
        runner.run(opened.close())
    assert kept(chats) == before


def _run(
    runner: asyncio.Runner, work: Any, face: AsyncScoped, name: str, *args: Any, **options: Any
) -> Any:
    return runner.run(work(face, name, args, options))


def test_an_owner_has_all_that_is_the_owners(url: str) -> None:
    """Everything goes as on the whole store: create, append, fork, compact, wait, delete."""
    with Store(url) as store:
        ann, bob = store.scoped("ann"), store.scoped("bob")
        made = ann.create_session("a", title="t", now=NOW)
        assert (made.owner, ann.owner) == ("ann", "ann")
        assert ann.create_session("a", exist_ok=True) == made
        ann.append("a", [said(1, id="same"), said(2)], now=NOW + 1)
        ann.append("b", said(3), create=True, metadata={"key": 1}, now=NOW + 2)
        bob.append("c", said(4, id="same"), create=True, now=NOW + 3)
        assert ann.fork("a", 1, "f", now=NOW + 4).owner == "ann"
        assert [each.id for each in ann.sessions()] == ["f", "b", "a"]
        assert [each.id for each in ann.sessions(after=ann.session("f"))] == ["b", "a"]
        assert (ann.count_sessions(), ann.count_sessions(tree="a"), bob.count_sessions()) == (
            3,
            2,
            1,
        )
        assert [each.session_id for each in ann.find("same")] == ["f", "a"]
        assert [each.session_id for each in store.find("same", owner="bob")] == ["c"]
        assert [len(page) for page in ann.pages("a", size=1)] == [1, 1]
        assert ann.context("a", user_input="now").text == store.context("a", user_input="now").text
        assert ann.compact("a", TURNS).outcome == "nothing"
        assert ann.wait("a", None, 0) == store.session("a")
        assert ann.redact("a", 1, "why").session_id == "a"
        assert [each.session_id for each in ann.redactions("f")] == ["f"]
        assert [each.input for each in map(_spend, (ann, bob), ("a", "c"))] == [1, 1]
        assert [each.session_id for each in ann.usages()] == ["a"]
        assert [bool(ann.annotate("a", 1, "read", True)), bool(bob.annotate("c", 1, "read", 1))]
        assert [each.session_id for each in ann.annotations(key="read")] == ["a"]
        assert [each.session_id for each in store.annotations(owner="bob")] == ["c"]
        assert [each.name for each in bob.usage_totals(by="session")] == ["c"]
        assert ann.set_project_root("a", "/p").project_root == "/p"
        assert ann.atomically(lambda t: (t.pop("a"), t.create_session("s").owner))[1] == "ann"
        with pytest.raises(InvalidValue, match="a purge"):
            ann.delete_session("a", purge=True)
        assert [each.session_id for each in ann.delete_session("a", "f")] == ["a", "f"]
        assert [each.id for each in store.sessions(owner="bob")] == ["c"]
        assert store.verify() == []


def _spend(face: Any, session_id: str) -> Any:
    return face.record_usage(session_id, input=1, output=1)


@pytest.mark.parametrize("owner", [None, 5, "a\0", "\ud800", b"ann"])
def test_an_owner_is_a_text(chats: Store, owner: Any) -> None:
    """Whoever is nobody sees nothing, not what has no owner."""
    with pytest.raises(InvalidValue, match="owner"):
        chats.scoped(owner)
    opened = AsyncStore(chats)
    with pytest.raises(InvalidValue, match="owner"):
        opened.scoped(owner)
    asyncio.run(opened.close())


def test_messages_are_read_before_others_wait(chats: Store) -> None:
    """What an append has to prepare holds up nobody, and a wrong message stores nothing."""
    ann = chats.scoped("ann")

    def slowly() -> Iterator[dict[str, Any]]:
        chats.append("public", said("meanwhile"))
        yield said("mine")

    assert [each.seq for each in ann.append("hers", slowly())] == [3]
    with pytest.raises(StoreError, match="nothing of the batch"):
        ann.append("new", [said(1), {"role": 5}], create=True)
    with pytest.raises(SessionNotFound):
        chats.session("new")


def test_an_id_that_changes_hands_meanwhile(url: str) -> None:
    """Of those who make a session at once, one is first; nobody appends to another's."""
    told: list[str] = []

    def work(store: Store, owner: str) -> None:
        face = store.scoped(owner)
        for number in range(10):
            try:
                face.append(str(number), said(owner), create=True)
            except SessionExists:
                told.append(owner)

    with Store(url, durability="normal") as store:
        threads = [threading.Thread(target=work, args=(store, name)) for name in ("ann", "bob")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(told) == store.count_sessions() == 10
        for session in store.sessions():
            contents = [each.message["content"] for each in store.messages(session.id)]
            assert contents == [session.owner]
