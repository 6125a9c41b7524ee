"""Two owners with forks both ways: what one writes, the other's reads do not show.

Every operation of an owner's face is here, as a write or as a read; so a new one has to be added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from store import Policy, Scoped, Store
from store.errors import CompactionError, StoreError

NOW = 1_800_000_000_000
LATER = NOW + 10**9
WORD = "zanzibar"
TURNS = Policy.named("turns", keep_turns=1)
POLICIES = (
    Policy(),
    Policy.named("agent"),
    Policy(show_drafts=True, terminal_keep=1, terminal_max_age=0, file_read_keep=1),
)
LIMIT = 1_000
"""Tokens of a window that the lines of these tests do not fill."""


def said(content: str, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def turn(number: int, name: str) -> list[dict[str, Any]]:
    """Return a turn in which a file is read and a command run."""
    calls = [
        {"id": f"r{number}", "function": {"name": "Read", "arguments": '{"file_path": "/p/a.py"}'}},
        {"id": f"b{number}", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}},
    ]
    results = [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": f"{name} line of a file\n" * 9,
            "timestamp": NOW + number,
        }
        for call in calls
    ]
    asked = said(f"{name} question {number}", id=f"{name}-{number}")
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**c, "type": "function"} for c in calls],
    }
    return [asked, called, *results, {"role": "assistant", "content": f"{name} answer {number}"}]


def summary(request: object) -> str:
    """Write a summary."""
    return f"A summary of {WORD}."


class World(NamedTuple):
    """A store, who writes and who reads, and the sessions of each: their own, and one handed over."""

    store: Store
    writer: Scoped
    reader: Scoped
    written: tuple[str, ...]
    read: tuple[str, ...]


def made(store: Store, writer: str, reader: str) -> World:
    """Return a world in which each has forks of the other's sessions, made in the midst."""
    for owner in ("ann", "bob"):
        face = store.scoped(owner)
        face.create_session(
            owner, title=f"of {owner}", metadata={owner: 1}, project_root="/p", now=NOW
        )
        for number in range(4):
            face.append(owner, turn(number, owner), now=NOW)
        face.record_usage(owner, input=500, output=5, seq=5, now=NOW)
        face.annotate(owner, 1, "rating", owner, now=NOW)
        face.context(owner, system=owner, user_input=f"{owner} asks", record=True, now=NOW)
        face.hide(owner, 1, 5, f"{owner} said", now=NOW)
        face.rewind(owner, 18, now=NOW)
        face.append(owner, [said("again"), {"role": "assistant", "content": "so"}], now=NOW)
    for source, owner in (("ann", "bob"), ("bob", "ann")):
        handed = f"{owner}-of-{source}"
        store.fork(source, at=15, session_id=handed, owner=owner, now=NOW)
        store.fork(handed, at=12, session_id=f"{handed}-back", owner=source, now=NOW)
        face = store.scoped(owner)
        face.fork(handed, at=9, session_id=f"{handed}-on", now=NOW)
        face.append(handed, turn(7, owner), now=NOW)
        with suppress(KeyError), face.streaming(handed, {"role": "assistant"}) as answer:
            answer.write("half")
            raise KeyError
    faces = store.scoped(writer), store.scoped(reader)
    store.index()
    return World(store, *faces, *(tuple(each.id for each in face.sessions()) for face in faces))


Write = Callable[[Scoped, str], object]


def streamed(face: Scoped, session_id: str) -> object:
    """Stream an answer, and break another one off."""
    with face.streaming(session_id, {"role": "assistant"}) as answer:
        answer.write(WORD)
    with suppress(KeyError), face.streaming(session_id, {"role": "assistant"}) as answer:
        answer.write(WORD)
        raise KeyError
    return answer.draft


def backdated(face: Scoped, session_id: str) -> None:
    """Record usages of shared positions, with whatever moment."""
    for seq, now in ((3, 10**12), (9, LATER), (None, NOW), (1, NOW - 10**9)):
        spent = {"model": WORD, "details": {WORD: 1}, "cost": 9.5}
        face.record_usage(session_id, input=900_000, output=1, seq=seq, now=now, **spent)  # type: ignore[arg-type]


def moved(face: Scoped, session_id: str) -> None:
    """Go to each branch that there is, and to the other session's."""
    for each in face.branches(session_id):
        face.switch(session_id, each.branch, now=LATER)
    for other in {each.id for each in face.sessions(tree=session_id)} - {session_id}:
        face.switch(session_id, None, of=other, now=LATER)


def undone(face: Scoped, session_id: str) -> None:
    """Undo each compaction of a line."""
    for each in face.compactions(session_id):
        if each.outcome == "applied" and each.undoes is None:
            face.undo_compaction(session_id, each.id or 0, now=LATER)


def several(face: Scoped, session_id: str) -> None:
    """Do several steps as one."""

    def work(t: Any) -> None:
        t.append(session_id, said(WORD), now=LATER)
        t.hide(session_id, 1, 2, WORD, now=LATER)
        t.record_usage(session_id, input=900_000, output=1, seq=2, now=LATER)
        t.annotate(session_id, 1, WORD, WORD, now=LATER)

    face.atomically(work)


def ended(name: str) -> Write:
    """Return what finishes or discards the drafts of a session, after it began one more."""

    def end(face: Scoped, session_id: str) -> None:
        streamed(face, session_id)
        for draft in face.drafts(session_id):
            getattr(face, name)(draft)

    return end


WRITES: dict[str, tuple[Write, ...]] = {
    "create_session": (
        lambda face, s: face.create_session(f"{s}-{WORD}", title=WORD, now=LATER),
        lambda face, s: face.create_session(s, title=WORD, exist_ok=True, now=LATER),
    ),
    "archive": (lambda face, s: face.archive(s),),
    "unarchive": (lambda face, s: (face.archive(s), face.unarchive(s)),),
    "rename_session": (lambda face, s: face.rename_session(s, WORD, now=LATER),),
    "set_origin": (lambda face, s: face.set_origin(s, WORD, WORD),),
    "set_file_state": (lambda face, s: face.set_file_state(WORD, WORD),),
    "set_metadata": (
        lambda face, s: face.set_metadata(s, {WORD: WORD}),
        lambda face, s: face.set_metadata(s, {WORD: 1}, merge=True),
    ),
    "append": (
        lambda face, s: face.append(s, [said(WORD), *turn(9, WORD)], now=LATER),
        lambda face, s: face.append(s, said("of an id", id="bob-0"), dedupe="off", now=LATER),
        lambda face, s: face.append(
            s, {"role": WORD, "content": WORD}, metadata={WORD: 1}, now=LATER
        ),
        lambda face, s: face.append(f"{s}-{WORD}", said(WORD), create=True, now=LATER),
    ),
    "fork": (
        lambda face, s: face.fork(s, at=3, title=WORD, metadata={WORD: 1}, now=LATER),
        lambda face, s: face.fork(s, now=LATER),
    ),
    "rewind": (
        lambda face, s: face.rewind(s, 9, now=LATER),
        lambda face, s: face.rewind(s, 0, now=LATER),
    ),
    "undo_rewind": (
        lambda face, s: (face.rewind(s, 2, now=LATER), face.undo_rewind(s, now=LATER)),
    ),
    "switch": (moved,),
    "replace": (lambda face, s: face.replace(s, 2, said(WORD), now=LATER),),
    "pop": (lambda face, s: face.pop(s, now=LATER),),
    "finish_draft": (ended("finish_draft"),),
    "discard_draft": (ended("discard_draft"),),
    "streaming": (streamed,),
    "annotate": (
        lambda face, s: face.annotate(s, 1, "rating", WORD, now=LATER),
        lambda face, s: face.annotate(s, 2, WORD, {WORD: 1}, now=LATER),
        lambda face, s: face.annotate(s, 1, "rating", None, now=LATER),
    ),
    "record_usage": (backdated,),
    "hide": (
        lambda face, s: face.hide(s, 6, 8, f"Private: {WORD}.", now=LATER),
        lambda face, s: face.hide(s, 6, 8, now=LATER),
    ),
    "undo_compaction": (undone,),
    "compact": (lambda face, s: face.compact(s, TURNS, summary, now=LATER),),
    "compact_if_needed": (
        lambda face, s: face.compact_if_needed(s, TURNS, summary, max_tokens=50, now=LATER),
    ),
    "count_tokens": (lambda face, s: face.count_tokens(s, "quarter_of_length"),),
    "index": (lambda face, s: face.index(),),
    "delete_session": (lambda face, s: face.delete_session(s, now=LATER),),
    "forget": (lambda face, s: face.forget(s, now=LATER),),
    "delete_owner": (lambda face, s: face.delete_owner(),),
    "prune": (lambda face, s: face.prune(0, dry_run=False, now=LATER),),
    "atomically": (several,),
}
"""Writes of a session, later than the forks: each operation of the face that changes anything."""

OF_THE_TREE = {"redact", "set_project_root"}
"""What changes all sessions of a tree, as the guide says; an owner's face refuses it of shared ones."""

Read = Callable[[Scoped, str], object]


def requested(face: Scoped, session_id: str) -> object:
    """Return a whole request, with what it says of the prompt cache."""
    found = face.context(session_id, "system", user_input="now", now=LATER)
    return found.messages, found.text, found.layers, found.stable_prefix_tokens, found.view


def framed(face: Scoped, session_id: str) -> object:
    """Return the rows of frames, where pandas is there."""
    with suppress(StoreError):
        return [face.frame(name, session_id).to_dict("records") for name in ("turns", "usages")]
    return None


READS: dict[str, tuple[Read, ...]] = {
    "metrics": (lambda face, s: face.metrics().models,),
    "observe": (lambda face, s: face.observe(len)(),),
    "file_state": (lambda face, s: face.file_state(WORD),),
    "session": (lambda face, s: face.session(s),),
    "title": (lambda face, s: face.title(s),),
    "sessions": (
        lambda face, s: face.sessions(),
        lambda face, s: face.sessions(tree=s, order="created"),
        lambda face, s: face.sessions(archived=True),
        lambda face, s: face.sessions(where={WORD: WORD}),
    ),
    "count_sessions": (lambda face, s: (face.count_sessions(), face.count_sessions(tree=s)),),
    "calls": (lambda face, s: face.calls(s),),
    "frame": (framed,),
    "open_calls": (lambda face, s: face.open_calls(s),),
    "files": (lambda face, s: face.files(s),),
    "reading": (lambda face, s: face.reading(lambda t: (t.session(s), t.messages(s))),),
    "messages": (
        lambda face, s: face.messages(s),
        lambda face, s: [face.messages(s, branch=each.branch) for each in face.branches(s)],
        lambda face, s: face.messages(s, -3),
    ),
    "pages": (lambda face, s: list(face.pages(s, size=3)),),
    "message": (lambda face, s: face.message(s, 1),),
    "find": (
        lambda face, s: [face.find(f"{name}-{n}", s) for name in ("ann", "bob") for n in range(3)],
        lambda face, s: [face.find("bob-0"), face.find("ann-0"), face.find(f"{WORD}-9")],
        lambda face, s: (face.find(prefix=""), face.find(prefix="b", session=s)),
    ),
    "turns": (lambda face, s: face.turns(s),),
    "branches": (lambda face, s: face.branches(s),),
    "siblings": (lambda face, s: [face.siblings(s, seq) for seq in (1, 3, 10)],),
    "drafts": (lambda face, s: (face.drafts(s), face.drafts()),),
    "follow": (lambda face, s: [[*face.follow(each)] for each in face.drafts(s)],),
    "head_moves": (lambda face, s: face.head_moves(s),),
    "view": (
        *(lambda face, s, p=p: face.view(s, p, now=LATER) for p in POLICIES),
        lambda face, s: face.view(s, at=4, now=LATER, format="anthropic"),
    ),
    "requests": (lambda face, s: face.requests(s),),
    "request": (lambda face, s: [face.request(s, each.number) for each in face.requests(s)],),
    "view_sql": (lambda face, s: face.view_sql(s, POLICIES[0], now=LATER),),
    "check": (
        *(lambda face, s, p=p: face.check(s, p, LIMIT, now=LATER) for p in (*POLICIES, TURNS)),
    ),
    "usages": (lambda face, s: (face.usages(s), face.usages()),),
    "usage_totals": (
        lambda face, s: [face.usage_totals(by=by) for by in ("model", "session", "owner", "day")],
        lambda face, s: face.usage_totals(s),
    ),
    "annotations": (lambda face, s: (face.annotations(s), face.annotations()),),
    "compactions": (lambda face, s: face.compactions(s),),
    "hidden": (lambda face, s: face.hidden(s),),
    "recall": (lambda face, s: (face.recall(s, WORD), face.recall(s, "question line")),),
    "replaced": (lambda face, s: face.replaced(s, POLICIES[2], now=LATER),),
    "plan_clearing": (lambda face, s: face.plan_clearing(s, POLICIES[1], now=LATER),),
    "plan_compaction": (lambda face, s: face.plan_compaction(s, TURNS, now=LATER),),
    "redactions": (lambda face, s: face.redactions(s),),
    "wait": (lambda face, s: face.wait(s, None, 0.0),),
    "context": (requested,),
    "search": (
        lambda face, s: [*face.search(WORD)],
        lambda face, s: [*face.search("question"), *face.search("answer", session=s)],
        lambda face, s: [*face.search("line", order="newest", left=True, limit=50)],
        lambda face, s: [*face.search("said", roles=["summary"])],
    ),
}
"""Reads of a session, and over all sessions of an owner: each operation that changes nothing."""


def looked(world: World, names: Iterable[str]) -> dict[str, list[str]]:
    """Return what the reader sees of each session by some operations."""
    return {
        f"{name} {session_id}": [repr(read(world.reader, session_id)) for read in READS[name]]
        for name in names
        for session_id in world.read
    }


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Return where reads differ, with some of what stands there."""
    found = []
    for key, old in before.items():
        for one, other in zip(old, after[key], strict=True):
            if one != other:
                pairs = enumerate(zip(one, other, strict=False))
                at = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
                found.append(
                    f"{key}: …{one[max(0, at - 40) : at + 80]} is now …{other[max(0, at - 40) : at + 80]}"
                )
    return found


def names(face: type) -> set[str]:
    """Return the public operations of a face."""
    return {name for name in dir(face) if not name.startswith("_")} - {"owner"}


def test_every_operation_is_a_write_or_a_read() -> None:
    """A new one has to be put into one of the tables above."""
    assert {*WRITES} | {*READS} | OF_THE_TREE == names(Scoped)
    assert len(WRITES) + len(READS) + len(OF_THE_TREE) == len(names(Scoped))


DIRECTIONS = (("ann", "bob"), ("bob", "ann"))


SEARCHES = ("search", "recall")
"""Reads of what is indexed, which have a test of their own."""


@pytest.mark.sampled(18)
@pytest.mark.parametrize(("writer", "reader"), DIRECTIONS)
@pytest.mark.parametrize("name", WRITES)
def test_what_one_owner_writes_the_other_does_not_see(
    url: str, name: str, writer: str, reader: str
) -> None:
    """Every read is what it was, byte for byte, whichever session is written to."""
    compare(url, name, (writer, reader), {*READS} - {*SEARCHES})


@pytest.mark.sampled(18)
@pytest.mark.parametrize(("writer", "reader"), DIRECTIONS)
@pytest.mark.parametrize("name", WRITES)
def test_what_one_owner_writes_the_other_does_not_find(
    url: str, name: str, writer: str, reader: str
) -> None:
    """Hits, their order and their scores are what they were, too."""
    compare(url, name, (writer, reader), SEARCHES)


def compare(url: str, name: str, owners: tuple[str, str], reads: Iterable[str]) -> None:
    """Assert that reads of one owner are the same after writes of the other to each session."""
    with Store(url, durability="normal") as store:
        world = made(store, *owners)
        looked(world, reads)  # a request is compared with the one before, so the first is another
        before = looked(world, reads)
        for write in WRITES[name]:
            there = {each.id for each in world.writer.sessions(archived=None)}
            for session_id in sorted(there.intersection(world.written)):
                with suppress(CompactionError):  # of a range that this session cannot hide
                    write(world.writer, session_id)
            assert differences(before, looked(world, reads)) == []
        assert store.verify() == []
