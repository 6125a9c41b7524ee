"""Views that go on from what is kept: they are those of a store that keeps nothing, always."""

from __future__ import annotations

import gc
import multiprocessing
import random
import re
import shutil
import sys
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Child, database
from conversations import (
    MINUTE,
    NOW,
    ROOT,
    Agent,
    Message,
    Script,
    busy_conversations,
    conversations,
    messy_conversations,
    policies,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sent import agree
from sqlalchemy import text
from world import READY, STEPS, World, alike, play

from store import Policy, Store, StoreError
from store.database import Cache
from store.database.cache import invalidate_trees
from store.errors import InvalidValue
from store.history import erasure
from store.tools import path_normalization, text_names
from store.view import placeholders
from store.view.build import view

law = partial(
    settings,
    derandomize=True,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)

Fork = Callable[..., Child]

some_lines = st.lists(
    st.one_of(conversations, busy_conversations, messy_conversations), min_size=1, max_size=2
)


@pytest.mark.no_cover
@law(max_examples=64)
@given(some_lines, st.one_of(st.sampled_from(READY), policies), st.binary(min_size=4, max_size=4))
def test_what_is_kept_is_what_would_be_made_anew(
    url: str, lines: list[list[Message]], policy: Policy, seed: bytes
) -> None:
    """Whatever two stores on one database do to its sessions, and whatever is done to a view."""
    world = World(url, lines, random.Random(seed))
    try:
        play(world, policy, STEPS)
    finally:
        world.close()


SESSIONS, PARTS = 1_000, 50
ON_SERVER = 4
"""One of so many sessions is lived on a server, too."""


@pytest.mark.no_cover
@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(600)
def test_however_a_line_came_to_be_its_view_is_one(
    made: str, made_file: Path, tmp_path: Path, part: int
) -> None:
    """In a thousand worlds in a file: kept views, fresh ones and the statement.

    So it is on a server, in a quarter of them.
    """
    is_file = made.startswith("sqlite")
    for number in range(part, SESSIONS, PARTS if is_file else PARTS * ON_SERVER):
        file = tmp_path / f"{number}.db"
        shutil.copy(made_file, file)
        in_file = mask_chance(lived(f"sqlite:///{file}", number))
        if not is_file:
            with database(tmp_path, made) as url:
                assert mask_chance(lived(url, number)) == in_file


def mask_chance(value: Any) -> Any:
    """Return a value without ids of drafts, which are random, and times, which are the present."""
    if isinstance(value, str):
        return re.sub(r"draft [0-9a-f]{32}|\d{4}-\d\d-\d\d \d\d:\d\d", "", value)
    if isinstance(value, dict):
        return {key: mask_chance(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask_chance(each) for each in value]
    return value


class Watched(World):
    """A world of which views and their statements are looked at, and what they say is kept."""

    seen: list[object]

    def same_request(self, session: str, policy: Policy, options: dict[str, Any]) -> None:
        """The one statement says what the view does."""
        asked = {name: value for name, value in options.items() if name != "format"}
        view = self.plain.view(session, policy, **options)
        rows = agree(self.store, session, policy, **asked)
        self.seen.append((view.messages, view.system, view.entries, view.stats, rows))

    def same_newest(self, *_: object) -> None:
        """Look at nothing else."""

    same_answer = same_newest


def lived(url: str, number: int) -> list[object]:
    """What was seen of the world of a number; the same number is the same world."""
    chance = random.Random(number)
    lines = [Agent(chance.randrange(10**6)).run()]
    world = Watched(url, lines, chance)
    world.seen = []
    try:
        play(world, chance.choice(READY), 10)
    finally:
        world.close()
    return world.seen


@law(max_examples=160)
@given(
    st.one_of(conversations, busy_conversations, messy_conversations),
    st.one_of(st.sampled_from(READY), policies),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=4, max_size=12),
    st.none() | st.tuples(st.integers(2, 8), st.integers(0, 4)),
)
def test_a_line_that_grows_is_judged_as_a_whole(
    url: str,
    line: list[Message],
    policy: Policy,
    steps: list[tuple[int, int]],
    hidden: tuple[int, int] | None,
) -> None:
    """However many messages come at a time, and however much time passes between.

    A few may be hidden.
    """
    with Store(url, durability="normal") as store, Store(url, cache_bytes=0) as plain:
        session_id, now = store.create_session(project_root=ROOT).id, NOW - 30 * MINUTE
        for count, minutes in steps:
            batch, line, now = line[:count], line[count:], now + minutes * MINUTE
            store.append(session_id, batch or agent_line(count)[1:])
            if hidden and sum(hidden) < store.session(session_id).head:
                with suppress(StoreError):  # something in it is needed
                    store.hide(session_id, hidden[0], sum(hidden))
                hidden = None
            alike(*(each.view(session_id, policy, now=now) for each in (store, plain)))


# --- each thing that a view follows from ----------------------------------------------------------


HOUR_AGO = NOW - 60 * MINUTE


def step(number: int, content: str, path: str = f"{ROOT}/a.py") -> list[Message]:
    """A call that reads a file, and its result."""
    function = {"name": "filesystem-read", "arguments": f'{{"filePath": "{path}"}}'}
    call = {"id": f"call-{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": content, "timestamp": HOUR_AGO},
    ]


def read_line() -> list[Message]:
    """A line of which a view names what it clears."""
    steps = (step(number, f"{ROOT}/b_{number}.py says so " * 40) for number in range(8))
    return [{"role": "user", "content": "begin"}, *(each for pair in steps for each in pair)]


NAMING = Policy(any_tool=True, file_read=False, clear_keep=2)
HIDDEN = 4, 7


def hide_later(store: Store, session_id: str) -> None:
    """Hide a range."""
    store.hide(session_id, *HIDDEN)


def undo_it(store: Store, session_id: str) -> None:
    """Bring back what was hidden last."""
    store.undo_compaction(session_id, store.compactions(session_id)[-1].id or 0)


def kind_of_reads(store: Store, _: str) -> None:
    """Let reads be commands."""
    with store.database.writing() as connection:
        connection.execute(text("DELETE FROM tool_kinds WHERE name = 'filesystem-read'"))
        connection.execute(text("INSERT INTO tool_kinds VALUES ('filesystem-read', 'terminal')"))


Act = Callable[[Store, str], object]
CHANGED: dict[str, tuple[Policy, Act, Act]] = {
    "visible: hidden": (NAMING, lambda *_: None, hide_later),
    "visible: shown again": (NAMING, hide_later, undo_it),
    "visible: another text": (
        NAMING,
        lambda store, session: store.hide(session, *HIDDEN, "one text"),
        lambda store, session: store.hide(session, *HIDDEN, "another text"),
    ),
    "visible: compacted": (
        NAMING,
        lambda *_: None,
        lambda store, session: store.compact(session, Policy(keep_turns=1), lambda _: "so far"),
    ),
    "root": (NAMING, lambda *_: None, lambda store, session: store.set_project_root(session, "/x")),
    "counts: redacted": (
        NAMING,
        lambda *_: None,
        lambda store, session: store.redact(session, 1, "private"),
    ),
    "kinds": (Policy(terminal_keep=1, file_read=False), lambda *_: None, kind_of_reads),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("what", CHANGED)
def test_what_a_view_follows_from_is_asked_anew(
    url: str, fork: Fork, what: str, grows: bool
) -> None:
    """Whatever of it another process changes, and whether anything is said meanwhile or not."""
    policy, before, change = CHANGED[what]
    with (
        Store(url, durability="normal") as ours,
        Store(url, durability="normal", cache_bytes=0) as other,
    ):
        session_id = other.create_session(project_root=ROOT).id
        other.append(session_id, read_line())
        before(other, session_id)
        for _ in range(2):
            old = ours.view(session_id, policy, now=NOW).entries
            other.append(session_id, {"role": "user", "content": "more"})
        old = ours.view(session_id, policy, now=NOW).entries
        fork(change, other, session_id).result()
        if grows:
            other.append(session_id, {"role": "user", "content": "and more"})
        view, fresh = (each.view(session_id, policy, now=NOW) for each in (ours, other))
        assert fresh.entries[: len(old)] != old
        alike(view, fresh)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("policy", [NAMING, Policy.named("raw")])
def test_numbers_that_come_again_are_of_other_messages(
    url: str, fork: Fork, policy: Policy, elsewhere: bool
) -> None:
    """A fork behind an erased one has its branch: nothing of the erased one is in its views.

    Whichever process erases it.
    """
    with Store(url, durability="normal") as store:
        session_id = store.create_session(project_root=ROOT).id
        store.append(session_id, {"role": "user", "content": "begin"})
        views = []
        for word in ("first", "other"):
            name = store.fork(session_id).id
            said = [step(number, f"/src/{word}_{number}.py " * 90) for number in range(6)]
            store.append(name, [*(each for pair in said for each in pair), *read_line()])
            views.append(store.view(name, policy, now=NOW).messages)
            branch = store.branches(name)[-1].branch
            erase = partial(store.delete_session, name)
            fork(erase).result() if elsewhere else erase()
        assert branch == 2
        assert "first" in repr(views[0])
        assert "first" not in repr(views[1])
        assert "other" in repr(views[1])


def test_what_was_taken_out_shows_while_others_erase(url: str, fork: Fork) -> None:
    """A view is taken between the beginning of an erasure, with a redaction in it, and its end."""
    with Store(url, durability="normal") as store, Store(url) as other:
        session_id = store.create_session().id
        store.append(session_id, [{"role": "user", "content": SECRET}, *read_line()])
        forked = store.fork(session_id).id
        store.append(forked, read_line())
        store.redact(forked, store.session(forked).head, "private")
        fork(partial(begin_erasing, other, forked)).result()
        for _ in range(2):
            assert SECRET in repr(store.view(session_id, now=NOW).messages)
            assert SECRET in repr(store.messages(session_id, -50))
        fork(other.purge).result()
        fork(partial(other.redact, session_id, 1, "private")).result()
        assert SECRET not in repr(store.view(session_id, now=NOW).messages)
        assert SECRET not in repr(store.messages(session_id, -50))


def begin_erasing(store: Store, session_id: str) -> None:
    """Begin to erase a session, and leave the rest to others."""
    with store.database.writing() as connection:
        erasure.begin_erasure(connection, session_id, now=NOW)


def test_what_was_taken_back_is_not_remembered(url: str) -> None:
    """What a transaction saw and did not keep is in no later view."""
    with Store(url, durability="normal") as store:
        session_id = begun(store)

        def work(steps: Any) -> None:
            steps.append(session_id, [*step(1, "/src/never.py " * 90), *read_line()])
            steps.view(session_id, NAMING, now=NOW)
            raise InvalidValue("taken back")

        with pytest.raises(InvalidValue):
            store.atomically(work)
        store.append(session_id, [*step(1, "/src/whole.py " * 90), *read_line()])
        shown = repr(store.view(session_id, NAMING, now=NOW).messages)
    assert "whole" in shown
    assert "never" not in shown


@pytest.mark.parametrize("fields", [{"protect_current_turn": True}, {"any_tool": True}])
def test_borders_pass_results_beside_a_hidden_range(url: str, fields: dict[str, Any]) -> None:
    """Those in the range grow old with the others, and nothing is said of them."""
    policy = Policy(terminal_keep=1, clear_keep=2, **fields)
    with Store(url, durability="normal") as store, Store(url, cache_bytes=0) as plain:
        session_id = store.create_session().id
        store.append(session_id, [each for now in range(8) for each in command_at(now)])
        store.hide(session_id, *HIDDEN)
        for now in range(5, 45, 5):
            asked = [{"role": "user", "content": "go on"}] if now % 15 == 0 else []
            store.append(session_id, asked + command_at(now))
            later = NOW + now * MINUTE
            alike(*(each.view(session_id, policy, now=later) for each in (store, plain)))


def command_at(minutes: int) -> list[Message]:
    """Run a command so many minutes after NOW."""
    script = Script()
    script.command(minutes=-minutes)
    return script.messages


# --- words that were taken out --------------------------------------------------------------------

SECRET = "hunter2"
TAKEN_OUT: dict[str, Act] = {
    "redact": lambda store, session: [store.redact(session, seq, "private") for seq in (2, 3)],
    "delete_session": lambda store, session: store.delete_session(session),
    "purge": lambda store, session: store.delete_session(session, purge=True),
    "atomically": lambda store, session: store.atomically(
        lambda steps: [steps.redact(session, seq, "private") for seq in (2, 3)]
    ),
}


def in_memory(*stores: Store) -> str:
    """All that is kept in memory, as text."""
    return repr([each.database.cache._values for each in stores])


@pytest.mark.parametrize("how", TAKEN_OUT)
def test_words_that_are_taken_out_are_kept_in_no_memory(url: str, how: str) -> None:
    """They go at once, from every open store of the process; what is kept of others stays."""
    with Store(url, durability="normal") as store, Store(url) as other:
        secret, apart = (store.create_session(project_root=ROOT).id for _ in range(2))
        store.append(secret, [*step(1, f"{SECRET}.py said " * 90, f"{SECRET}.py"), *read_line()])
        store.append(secret, [{"role": "user", "content": "and?"}])
        store.append(apart, read_line())
        for each in (store, other):
            for policy in (NAMING, Policy.named("raw")):
                each.view(secret, policy, now=NOW)
                each.view(apart, policy, now=NOW)
                each.messages(secret)
                each.messages(apart)
        assert in_memory(store).count(f"{SECRET}.py") > in_memory(store).count(f"{SECRET}.py said")
        assert SECRET in in_memory(other)
        before = [each.cache_info().entries for each in (store, other)]
        assert before == [8, 8]
        assert text_names._parse_piece_names.cache_info().currsize > 0
        assert path_normalization._normalise_text_path.cache_info().currsize > 0
        TAKEN_OUT[how](store, secret)
        assert SECRET not in in_memory(store, other)
        assert text_names._parse_piece_names.cache_info().currsize == 0
        assert path_normalization._normalise_text_path.cache_info().currsize == 0
        assert [each.cache_info().entries for each in (store, other)] == [4, 4]


def test_stores_are_opened_while_words_are_taken_out() -> None:
    """By other threads: who is told to forget is no list that changes under the hand."""
    interval, done = sys.getswitchinterval(), threading.Event()

    def open_many() -> None:
        opened: list[Cache] = []
        while not done.is_set():
            opened = [*opened[-100:], Cache(1)]

    opening = threading.Thread(target=open_many)
    sys.setswitchinterval(1e-6)
    opening.start()
    try:
        for number in range(2_000):
            invalidate_trees([number])
    finally:
        sys.setswitchinterval(interval)
        done.set()
        opening.join()


def test_what_was_read_before_is_not_kept_behind(url: str) -> None:
    """A reader of the state from before an erasure keeps nothing that it read there."""
    with Store(url, durability="normal") as store:
        secret = begun(store)
        store.append(secret, {"role": "user", "content": SECRET})
        with store.database.reading() as connection:
            view(connection, secret, Policy(), now=NOW)
            store.delete_session(secret)
            assert SECRET in repr(view(connection, secret, Policy(), now=NOW).messages)
        assert SECRET not in in_memory(store)


# --- how much is kept, and by whom ----------------------------------------------------------------


def agent_line(count: int, size: int = 100) -> list[Message]:
    """A line of a user and so many commands."""
    line: list[Message] = [{"role": "user", "content": "begin"}]
    for number in range(count):
        function = {"name": "terminal-execute", "arguments": "{}"}
        call = {"id": f"call-{number}", "type": "function", "function": function}
        line.append({"role": "assistant", "content": None, "tool_calls": [call]})
        line.append({"role": "tool", "tool_call_id": call["id"], "content": "x" * size})
    return line


def begun(store: Store, count: int = 5, size: int = 100) -> str:
    """A session with such a line."""
    session_id = store.create_session().id
    store.append(session_id, agent_line(count, size))
    return session_id


def test_lines_of_results_are_asked_for_together(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many results a view names, memory is asked as often as for a few; each is read once.

    Also where nothing is kept.
    """
    asked, read = [], []
    line_of = placeholders._load_result_line
    with Store(url, durability="normal", cache_bytes=0) as store:
        monkeypatch.setattr(store.database.cache, "get", lambda key: asked.append(key))
        monkeypatch.setattr(
            placeholders, "_load_result_line", lambda *of: read.append(of) or line_of(*of)
        )
        for count in (10, 100):
            asked.clear(), read.clear()
            store.view(begun(store, count, size=2_000), NAMING, now=NOW)
            assert len(asked) == 1
            assert len(read) == count - NAMING.clear_keep


def test_lines_of_results_are_those_of_a_store_s_own(tmp_path: Path) -> None:
    """A copy goes on by itself: results of the same place, tool and length are others there."""
    shown = []
    with Store(tmp_path / "chat.db") as store:
        session_id = begun(store, 0)
        store.backup(tmp_path / "copy.db")
    for name, word in (("chat", "first"), ("copy", "other")):
        with Store(tmp_path / f"{name}.db") as store:
            store.append(session_id, [*step(1, f"/src/{word}.py " * 90), *agent_line(2)])
            shown.append(repr(store.view(session_id, NAMING, now=NOW).messages))
    assert "first" in shown[0]
    assert "first" not in shown[1]
    assert "other" in shown[1]


def test_what_was_of_use_is_counted(url: str) -> None:
    """A first view is made anew, later ones go on from it."""
    with Store(url, durability="normal") as store:
        session_id = begun(store)
        for _ in range(3):
            store.view(session_id, now=NOW)
            store.append(session_id, {"role": "user", "content": "more"})
        info = store.cache_info()
        assert (info.hits, info.misses, info.entries) == (2, 1, 1)
        assert 0 < info.bytes <= info.limit == 64_000_000


def test_nothing_is_kept_where_nothing_may_be(url: str) -> None:
    """By a store that was told so, and in a transaction that writes."""
    with Store(url, durability="normal", cache_bytes=0) as store:
        session_id = begun(store)
        assert store.view(session_id, now=NOW) == store.view(session_id, now=NOW)
        assert store.cache_info() == (0, 0, 0, 0, 0)
    with Store(url, durability="normal") as store:
        store.atomically(lambda steps: steps.view(session_id, now=NOW))
        assert store.cache_info()[:4] == (0, 0, 0, 0)


def test_no_more_is_kept_than_there_is_room_for(url: str) -> None:
    """What was asked for last stays; what is larger than all the room is not kept at all."""
    with Store(url, durability="normal", cache_bytes=100_000) as store:
        sessions = [begun(store) for _ in range(6)]
        for session_id in sessions:
            store.view(session_id, now=NOW)
            assert store.cache_info().bytes <= 100_000
        before = store.cache_info()
        assert 0 < before.entries < len(sessions)
        store.view(sessions[-1], now=NOW)
        assert store.cache_info().hits == before.hits + 1
        kept = store.cache_info()
        store.view(begun(store, 1, 200_000), now=NOW)
        assert store.cache_info()[2:] == kept[2:]


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize("rounds", [0, 1, 10, 100])
@pytest.mark.parametrize("name", ["default", "agent"])
def test_what_is_kept_is_as_large_as_it_is_counted(url: str, name: str, rounds: int) -> None:
    """Neither of a short session, of which there may be thousands, nor of a long one, is it more."""
    policy = Policy.named(name)
    with Store(url, durability="normal") as store:
        half = 64 if rounds < 10 else 8  # among few short ones the growth of the table tells more
        made = [begun(store, rounds) for _ in range(2 * half)]

        def look(sessions: list[str]) -> None:
            for session_id in sessions:
                store.view(session_id, policy, now=NOW, at=rounds)
                store.view(session_id, policy, now=NOW)

        look(made[:half])  # a server's driver then knows which statements it prepares
        assert traced(store, partial(look, made[half:])) <= 0
        assert store.cache_info().bytes > 0


ASKED = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
ODD: dict[str, list[Message]] = {
    "parts": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 999}],
    "wide": [{"role": "user", "content": "文" * 9_999 + "😀"}],
    "named": [{"role": "user", "content": "a", "name": "n" * 9_999}],
    "other keys": [{"role": "assistant", "content": "a", "thought": "t" * 9_999}],
    "deep": [{"role": "assistant", "content": "a", "thought": [{"t": each} for each in "ab" * 99]}],
    "calls": [{"role": "assistant", "content": "a", "tool_calls": [ASKED] * 99}],
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_kept_of_odd_messages_is_counted(url: str, odd: str, format: str) -> None:  # noqa: A002
    """Wherever their words are; and the text that stands for hidden ones."""
    policy = Policy(unanswered="drop")

    def look(store: Store, session_id: str) -> None:
        store.view(session_id, policy, now=NOW, format=format)
        for _ in range(2):
            store.messages(session_id, -3)

    with Store(url, durability="normal") as store:
        first, *others = [store.create_session().id for _ in range(4)]
        for session_id in (first, *others):
            store.append(session_id, [*agent_line(2), *ODD[odd], {"role": "user", "content": "go"}])
            store.hide(session_id, 2, 3, "s" * 9_999)
        look(store, first)
        assert traced(store, lambda: [look(store, each) for each in others]) <= 0


def traced(store: Store, work: Callable[[], object]) -> int:
    """How many bytes more work leaves in memory than are counted."""
    counted = store.cache_info().bytes
    tracemalloc.start()
    try:
        work()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return taken - (store.cache_info().bytes - counted)


@pytest.mark.parametrize("limit", [-1, 1.5, "64", None, True])
def test_a_limit_is_a_number_of_bytes(url: str, limit: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidValue, match="cache_bytes"):
        Store(url, cache_bytes=limit)


def test_explanations_outlive_the_store(url: str) -> None:
    """They are made of what was read with the view."""
    with Store(url, durability="normal") as store:
        session_id = begun(store)
        view = store.view(session_id, now=NOW)
        store.delete_session(session_id)
    assert [each.seq for each in view.entries] == list(range(1, 12))
    assert view.stats.messages == 11


def test_threads_share_what_is_kept(url: str) -> None:
    """Some append, some look, at several sessions: each sees some state that there was."""
    with Store(url, durability="normal") as store:
        sessions = [begun(store) for _ in range(2)]

        def work(number: int) -> bool:
            session_id = sessions[number % 2]
            if number % 3 == 0:
                store.append(session_id, {"role": "user", "content": f"{number}"})
            view = store.view(session_id, now=NOW)
            raw = [each.message["content"] for each in store.messages(session_id, stop=view.at)]
            return [each["content"] for each in view.messages] == raw and len(raw) == view.at

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(120)))


@pytest.mark.slow
def test_processes_see_what_others_do(url: str) -> None:
    """While another process appends, rewinds and redacts, views are those of the moment."""
    context = multiprocessing.get_context("spawn")
    with Store(url, durability="normal") as store, Store(url, cache_bytes=0) as plain:
        session_id = begun(store)
        other = context.Process(target=change_for_a_while, args=(url, session_id))
        other.start()
        while other.is_alive():
            moment = moment_of(plain, session_id)
            views = [each.view(session_id, READY[0], now=NOW) for each in (store, plain)]
            newest = [each.messages(session_id, -20) for each in (store, plain)]
            if moment_of(plain, session_id) == moment:
                alike(*views)
                assert newest[0] == newest[1]
        other.join()
        assert other.exitcode == 0
        alike(store.view(session_id, now=NOW), plain.view(session_id, now=NOW))


def moment_of(store: Store, session_id: str) -> tuple[str, int]:
    """What tells one moment of a session from another."""
    return store.session(session_id).revision, len(store.redactions())


def change_for_a_while(url: str, session_id: str) -> None:
    """Change a session in many ways."""
    rng = random.Random(1)
    with Store(url, durability="normal", cache_bytes=0) as store:
        for number in range(150):
            head = store.session(session_id).head
            store.append(session_id, agent_line(1)[rng.randint(0, 1) :])
            if number % 10 == 9:
                store.rewind(session_id, to=rng.randint(1, head))
            if number % 25 == 24:
                store.redact(session_id, rng.randint(1, head // 2 + 1), "private")
