"""What is read is compared with what was stored: by exports and copies always, by every read of a
store that is opened with `check_reads`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conversations import NOW, Agent
from sqlalchemy import Connection, text

from store import Policy, Store
from store.errors import Damaged, StoreError
from store.exporting import export_session, export_store

LATER = NOW + 1_000_000
SHAPES = (None, "openai", "anthropic", "markdown")


def fill(store: Store) -> None:
    """Write a session of forty turns, compacted, with usages and a note, and a fork of it."""
    store.create_session("s", project_root="/p", metadata={"a": 1}, now=NOW)
    for turn in range(40):
        asked = {"role": "user", "content": f"Turn {turn}. " * 20}
        store.append("s", [asked, *Agent(turn).run()], now=NOW + turn)
        store.record_usage("s", input=5, output=2, now=NOW + turn)
    done = store.compact("s", Policy(keep_turns=20), lambda _: "A summary. " * 9, now=NOW + 100)
    assert done.outcome == "applied"
    store.hide("s", store.session("s").head - 8, store.session("s").head - 6, "Aside.", now=NOW)
    store.append("s", [*Agent(50).run(), {"role": "user", "content": "go", "id": "m"}], now=NOW)
    store.fork("s", at=90, session_id="f", now=NOW + 300)
    store.append("f", {"role": "user", "content": "another way"}, now=NOW + 301)
    store.annotate("s", 1, "rating", {"stars": 5}, now=NOW)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file of a closed store."""
    path = tmp_path_factory.mktemp("closed") / "chat.db"
    with Store(path, durability="normal") as store:
        fill(store)
    return path


@pytest.fixture
def filled(url: str) -> Iterator[str]:
    """Give the URL of a store in which there is something to compare."""
    with Store(url, durability="normal") as store:
        fill(store)
    return url


Ask = Callable[[Store], Any]


def views(store: Store, name: str) -> Any:
    """Return a session's view by several policies, with what it says of itself."""
    made = [store.view(name, Policy.named(each), now=LATER) for each in ("raw", "agent", "default")]
    return [(each.messages, each.entries, each.stats) for each in made]


READS: dict[str, Ask] = {
    f"{kind} of {name}": ask
    for name in ("s", "f")
    for kind, ask in {
        "messages": lambda s, name=name: s.messages(name),
        "views": lambda s, name=name: views(s, name),
        "context": lambda s, name=name: s.context(name, "be kind", now=LATER).messages,
        "compactions": lambda s, name=name: s.compactions(name),
        "hidden": lambda s, name=name: s.hidden(name),
        "usages": lambda s, name=name: s.usages(name),
        "moves": lambda s, name=name: s.head_moves(name),
        "notes": lambda s, name=name: s.annotations(name),
        "branches": lambda s, name=name: s.branches(name),
        "session": lambda s, name=name: s.session(name),
        "check": lambda s, name=name: s.check(
            name, Policy.named("agent"), max_tokens=9_000, now=LATER
        ),
    }.items()
}
READS |= {
    "sessions": lambda s: s.sessions(),
    "all usages": lambda s: s.usages(),
    "a message": lambda s: s.message("s", "m"),
}


def exports(store: Store, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield what each export writes."""
    place = folder / "exported"
    for name in ("s", "f"):
        for shape in SHAPES:

            def one(name: str = name, shape: str | None = shape) -> bytes:
                export_session(store, name, place, shape=shape, replace=True)
                return place.read_bytes()

            yield f"export of {name} as {shape}", answer(one)

    def everything() -> bytes:
        export_store(store, place, replace=True)
        return place.read_bytes()

    yield "export of the store", answer(everything)


def answer(ask: Callable[[], Any]) -> str | None:
    """Return what is answered, None for an error of the store's own."""
    try:
        return repr(ask())
    except StoreError:
        return None


def answers(path: Path, folder: Path) -> dict[str, str | None]:
    """Return all that reads and exports answer of a file."""
    found: dict[str, str | None] = {}
    with suppress(StoreError), Store(path, durability="normal", check_reads=True) as store:
        found |= {name: answer(lambda ask=ask: ask(store)) for name, ask in READS.items()}  # type: ignore[misc]
    with suppress(StoreError), Store(path, durability="normal") as store:
        found |= exports(store, folder)
    return found


FLIPS = 2
"""Bytes that are changed, one after the other, in one run of the test."""


@pytest.fixture(scope="module")
def sound(closed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Give the answers of a store in which no byte was changed."""
    folder = tmp_path_factory.mktemp("sound")
    path = folder / "chat.db"
    path.write_bytes(closed.read_bytes())
    found = answers(path, folder)
    assert None not in found.values()
    return found


@pytest.mark.no_cover
@pytest.mark.sampled(500)
@pytest.mark.sqlite_only
@pytest.mark.parametrize("run", range(500))
def test_a_changed_byte_is_never_read_as_something_else(
    closed: Path, sound: dict[str, str | None], tmp_path: Path, run: int
) -> None:
    """Of 1,000: each answer is the one that it was, or an error of the store's own."""
    path, whole = tmp_path / "chat.db", closed.read_bytes()
    for seed in range(run * FLIPS, (run + 1) * FLIPS):
        chance, changed = random.Random(seed), bytearray(whole)
        place = chance.randrange(len(changed))
        changed[place] ^= chance.randrange(1, 256)
        for each in tmp_path.glob("chat.db-*"):
            each.unlink()
        path.write_bytes(changed)
        found = answers(path, tmp_path)
        wrong = [name for name, got in found.items() if got not in (None, sound[name])]
        assert not wrong, (seed, place, wrong)


@pytest.mark.sqlite_only
def test_a_changed_kind_of_a_tool_is_damage(closed: Path, tmp_path: Path) -> None:
    """Whether the row or its index was changed; a kind that rules know may be set by anybody."""
    path = tmp_path / "chat.db"
    path.write_bytes(
        closed.read_bytes().replace(b"filesystem-readfile_read", b"filesystem-readfile_reae")
    )
    with (
        Store(path, check_reads=True) as store,
        pytest.raises(Damaged, match="kind is 'file_reae'"),
    ):
        store.view("s", now=LATER)
    with Store(path) as store:
        assert {each.check for each in store.verify()} == {"kinds"}
    path.write_bytes(
        closed.read_bytes().replace(b"filesystem-readfile_read", b"filesystem-reaefile_read")
    )
    with Store(path, check_reads=True) as store, pytest.raises(Damaged):
        store.view("s", now=LATER)
    path.write_bytes(closed.read_bytes())
    with Store(path, check_reads=True) as store, store.database.writing() as connection:
        connection.execute(text("UPDATE tool_kinds SET kind = 'other' WHERE name = 'Bash'"))
    with Store(path, check_reads=True) as store:
        assert store.view("s", now=LATER).messages
        assert store.verify() == []


@pytest.mark.sqlite_only
def test_a_changed_byte_in_the_text_of_the_schema_is_damage(closed: Path, tmp_path: Path) -> None:
    """SQLite quotes what it cannot read, and Python cannot read the quote."""
    path, whole = tmp_path / "chat.db", closed.read_bytes()
    begin = whole.index(b"CREATE TABLE messages")
    for place in range(begin, begin + 300, 7):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with suppress(StoreError), Store(path) as store:
            store.messages("s")
    path.write_bytes(whole.replace(b"CREATE TABLE messages", b"CREATE TABLX m\xff\xfeages"))
    with pytest.raises(StoreError, match="damaged"):
        Store(path)


# --- which rows are compared ----------------------------------------------------------------------

RELATED = "tree_id = (SELECT tree_id FROM session_ids WHERE id = 's')"
CHANGES = {
    "a content": ("UPDATE messages SET content = 'never said' WHERE seq = 60", "messages of s"),
    "a time": ("UPDATE messages SET stored_at = 5 WHERE seq = 60", "messages of s"),
    "a call": ("UPDATE tool_calls SET name = 'rm' WHERE seq > 60", "messages of s"),
    "a summary": ("UPDATE summaries SET body = 'never said'", "views of s"),
    "a record": (
        "UPDATE compaction_records SET first_kept = first_kept + 2 WHERE first_kept > 0",
        "views of s",
    ),
    "a fact": ("UPDATE message_facts SET tokens = tokens + 1 WHERE seq = 70", "views of s"),
    "a result": ("UPDATE tool_results SET length = length + 1", "views of s"),
    "a usage": ("UPDATE usages SET input = 9", "usages of s"),
    "a note": ("UPDATE notes SET value = '1'", "notes of s"),
    "a branch": (
        "UPDATE branches SET created_at = created_at + 1 WHERE parent_branch IS NOT NULL",
        "branches of f",
    ),
    "a head": ("UPDATE sessions SET head = head - 1 WHERE id = 's'", "messages of s"),
    "an owner": ("UPDATE sessions SET owner = 'eve' WHERE id = 's'", "sessions"),
}
"""Changes that nothing refuses once triggers are gone, and a read that meets each."""


def unguarded(connection: Connection) -> None:
    """Let a transaction change what it likes, for good."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        return
    names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    for (name,) in connection.exec_driver_sql(names).fetchall():
        connection.exec_driver_sql(f"DROP TRIGGER {name}")


def change(url: str, statement: str) -> None:
    """Change rows behind a store's back."""
    with Store(url) as store, store.database.writing() as connection:
        connection.begin()
        unguarded(connection)
        assert connection.execute(text(statement)).rowcount > 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_row_is_refused_where_it_is_read(filled: str, tmp_path: Path, name: str) -> None:
    """By the read that meets it and by an export; an ordinary read does not look."""
    statement, read = CHANGES[name]
    change(filled, statement)
    with Store(filled, check_reads=True) as store:
        with pytest.raises(Damaged, match="run `convostore verify`") as caught:
            READS[read](store)
        assert (caught.value.status, caught.value.retry) == (500, False)
        with pytest.raises(Damaged):
            READS[read](store)
    with Store(filled) as store:
        assert READS[read](store)
        with pytest.raises(Damaged):
            export_store(store, tmp_path / "all.jsonl")
        assert not (tmp_path / "all.jsonl").exists()
        if name not in ("a usage", "a note"):
            with pytest.raises(Damaged):
                export_session(store, "f" if "f" in read.split() else "s", tmp_path / "s.jsonl")
            assert not (tmp_path / "s.jsonl").exists()


@pytest.mark.sqlite_only
def test_a_copy_of_a_damaged_store_is_refused(filled: str, tmp_path: Path) -> None:
    """It is compared before it has its name."""
    change(filled, "UPDATE messages SET content = 'never said' WHERE seq = 60")
    with Store(filled) as store, pytest.raises(StoreError, match="does not pass its check"):
        store.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.slow
def test_a_sound_store_answers_alike(filled: str) -> None:
    """With the check and without; while it grows, is redacted, forked, rewound and erased."""
    with Store(filled, check_reads=True) as checked, Store(filled) as plain:
        for step in (
            lambda: plain.append("s", [*Agent(77).run(), {"role": "user", "content": "on"}]),
            lambda: plain.redact("s", 70, "asked for", now=NOW),
            lambda: plain.rewind("s", plain.session("s").head - 1),
            lambda: plain.append("s", {"role": "user", "content": "again"}),
            lambda: plain.undo_rewind("s"),
            lambda: plain.fork("s", 40, session_id="g"),
            lambda: plain.compact("s", Policy(keep_turns=2), lambda _: "More. " * 9, now=NOW),
            lambda: plain.delete_session("g"),
        ):
            for ask in READS.values():
                assert ask(checked) == ask(plain)
            step()


def test_what_was_changed_after_a_read_is_found_by_the_next(filled: str) -> None:
    """Messages are compared each time; an answer from memory is the one that was compared."""
    with Store(filled, check_reads=True, cache_bytes=0) as store:
        assert store.messages("s")
        change(filled, "UPDATE messages SET content = 'never said' WHERE seq = 60")
        with pytest.raises(Damaged, match="position 60"):
            store.messages("s")
        assert len(store.messages("s", 61)) == store.session("s").head - 60
