"""Views that go on from what is kept: they are those of a store that keeps nothing, always."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from conversations import (
    MINUTE,
    NOW,
    ROOT,
    Message,
    busy_conversations,
    conversations,
    messy_conversations,
    policies,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from store import Policy, Store, StoreError
from store.errors import InvalidValue
from store.records import View

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

FORMATS = ("openai", "responses", "anthropic", "gemini", "react")
READY = [Policy.named(name) for name in ("default", "agent", "turns", "frugal")]
STEPS = 24


class World:
    """Two stores on one database, one that keeps nothing, and what happens to its sessions."""

    def __init__(self, url: str, lines: list[list[Message]], rng: random.Random) -> None:
        self.rng, self.lines, self.now = rng, lines, NOW
        self.ours = [Store(url, durability="normal") for _ in range(2)]
        self.plain = Store(url, durability="normal", cache_bytes=0)
        self.sessions = [self.plain.create_session(project_root=ROOT).id]
        self.step = 0

    def close(self) -> None:
        """Give back what is open."""
        for store in (*self.ours, self.plain):
            store.close()

    @property
    def store(self) -> Store:
        """Either of the two that keep something."""
        return self.rng.choice(self.ours)

    @property
    def session(self) -> str:
        """Any of the sessions."""
        return self.rng.choice(self.sessions)

    def place(self, session: str) -> int:
        """Any position of its line."""
        return self.rng.randint(0, self.plain.session(session).head)

    # what may happen, each by its name

    def append(self) -> None:
        """Append some of a line, wherever it is cut."""
        line = self.rng.choice(self.lines)
        begin = self.rng.randint(0, len(line))
        self.store.append(self.session, line[begin : begin + self.rng.randint(1, 5)])

    def step_of_agent(self) -> None:
        """Call some tools and answer the calls, as an agent does."""
        self.step += 1
        calls = [self.call(number) for number in range(self.rng.randint(1, 3))]
        results = [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": self.rng.choice(
                    ["done " * 40, "Error: no", '{"stdout":"x","exitCode":1}']
                ),
                "timestamp": self.now - self.rng.choice([0, 0, 5, 60]) * MINUTE,
            }
            for call in calls
        ]
        if self.rng.random() < 0.2:
            results = results[: self.rng.randint(0, len(results))]
        said = {"role": "assistant", "content": "so", "tool_calls": calls}
        asked = [{"role": "user", "content": "and see @a.py"}] if self.rng.random() < 0.2 else []
        self.store.append(self.session, [*asked, said, *results])

    def call(self, number: int) -> Message:
        """A call to a tool, whose id comes again."""
        name = self.rng.choice(["filesystem-read", "filesystem-read", "terminal-execute", "edit"])
        path = self.rng.choice(["a.py", "b.py", "c.py"])
        arguments = f'{{"filePath": "{path}"}}'
        if self.rng.random() < 0.2:
            arguments = '{"filePath": ["a.py", "b.py", "a.py"]}'
        function = {"name": name, "arguments": arguments}
        return {"id": f"c{self.step % 7}-{number}", "type": "function", "function": function}

    def rewind(self) -> None:
        """Go back."""
        session = self.session
        self.store.rewind(session, to=self.place(session))

    def undo_rewind(self) -> None:
        """Go forth again."""
        self.store.undo_rewind(self.session)

    def fork(self) -> None:
        """Fork at any position."""
        session = self.session
        self.sessions.append(self.store.fork(session, at=self.place(session)).id)

    def switch(self) -> None:
        """Go to any branch that was left, or stay."""
        session = self.session
        branch = self.rng.choice(self.plain.branches(session)).branch
        self.store.switch(session, branch)

    def compact(self) -> None:
        """Hide what is old."""
        policy = Policy(keep_messages=self.rng.randint(1, 4), summary_max_chars=200)
        self.store.compact(self.session, policy, now=self.now)

    def clear(self) -> None:
        """Clear old results."""
        policy = Policy.named("agent", clear_keep=1, cache_lifetime=1, clear_min_freed=0)
        self.store.compact_if_needed(self.session, policy, now=self.now)

    def hide(self) -> None:
        """Hide a range by name."""
        session = self.session
        first, last = sorted((self.place(session), self.place(session)))
        summary = self.rng.choice([None, "what was said"])
        self.store.hide(session, first, last, summary)

    def undo_compaction(self) -> None:
        """Bring back what is hidden."""
        known = [(each, self.plain.compactions(each)) for each in self.sessions]
        session, there = self.rng.choice([pair for pair in known if pair[1]])
        self.store.undo_compaction(session, self.rng.choice(there).id or 0)

    def redact(self) -> None:
        """Take the words out of a message."""
        session = self.session
        self.store.redact(session, self.place(session), "private")

    def erase(self) -> None:
        """Erase a session, whose branch numbers may come again."""
        if len(self.sessions) > 1:
            session = self.sessions.pop(self.rng.randrange(len(self.sessions)))
            self.store.delete_session(session)

    def set_root(self) -> None:
        """Say where the project is."""
        self.store.set_project_root(self.session, self.rng.choice([ROOT, "/elsewhere", None]))

    def set_kind(self) -> None:
        """Say of what kind a tool is."""
        name, kind = (
            self.rng.choice(["edit", "filesystem-read"]),
            self.rng.choice(["terminal", "file_read", "other"]),
        )
        with self.plain.database.writing() as connection:
            connection.execute(text("DELETE FROM tool_kinds WHERE name = :n"), {"n": name})
            connection.execute(
                text("INSERT INTO tool_kinds (name, kind) VALUES (:n, :k)"), {"n": name, "k": kind}
            )

    def record_usage(self) -> None:
        """Record a request."""
        self.store.record_usage(self.session, input=100, output=1, now=self.now)

    def count_tokens(self) -> None:
        """Count tokens."""
        self.store.count_tokens(self.session)

    def archive(self) -> None:
        """Put a session away."""
        self.store.archive(self.session)

    def pass_time(self) -> None:
        """Let time pass, or be another clock."""
        self.now += self.rng.choice([1, 10, 20, -5]) * MINUTE

    def atomic(self) -> None:
        """Look at what is taken back."""
        session = self.session

        def work(steps: Any) -> None:
            steps.append(session, [{"role": "user", "content": "never said"}])
            steps.view(session, now=self.now)
            raise InvalidValue("taken back")

        self.store.atomically(work)

    # what is looked at

    def same(self, policy: Policy) -> None:
        """Views and requests are those of a store that keeps nothing."""
        for session in self.sessions:
            name = self.rng.choice(FORMATS) if self.rng.random() < 0.4 else "openai"
            options: dict[str, Any] = {"now": self.now, "format": name}
            if self.rng.random() < 0.1:
                options["at"] = self.place(session)
            fresh = self.plain.view(session, policy, **options)
            for store in self.ours:
                alike(store.view(session, policy, **options), fresh)
            self.same_request(session, policy, options)

    def same_request(self, session: str, policy: Policy, options: dict[str, Any]) -> None:
        """Whole requests are, too."""
        given = {"user_input": self.rng.choice([None, "and now?"]), "policy": policy, **options}
        fresh = self.plain.context(session, "be good", **given)
        for store in self.ours:
            request = store.context(session, "be good", **given)
            assert request.messages == fresh.messages
            assert request.layers == fresh.layers
            assert request.pieces == fresh.pieces
            assert request.system == fresh.system
            alike(request.view, fresh.view)


HAPPENS: list[tuple[Callable[[World], None], int]] = [
    (World.append, 6),
    (World.step_of_agent, 12),
    (World.pass_time, 3),
    (World.rewind, 1),
    (World.undo_rewind, 1),
    (World.fork, 1),
    (World.switch, 1),
    (World.compact, 2),
    (World.clear, 1),
    (World.hide, 1),
    (World.undo_compaction, 1),
    (World.redact, 1),
    (World.erase, 1),
    (World.set_root, 1),
    (World.set_kind, 1),
    (World.record_usage, 2),
    (World.count_tokens, 1),
    (World.archive, 1),
    (World.atomic, 1),
]


def alike(view: View, fresh: View) -> None:
    """Two views are the same; what is the caller's may be changed."""
    assert view.messages == fresh.messages
    assert view.system == fresh.system
    assert view.entries == fresh.entries
    assert view.stats == fresh.stats
    spoil(view.messages)
    spoil([entry.message for entry in view.entries])


def spoil(value: Any) -> None:
    """Change everything that can be changed."""
    for each in list(value.values() if isinstance(value, dict) else value):
        if isinstance(each, dict | list):
            spoil(each)
    value.clear()


some_lines = st.lists(
    st.one_of(conversations, busy_conversations, messy_conversations), min_size=1, max_size=2
)


@law(max_examples=120)
@given(some_lines, st.one_of(st.sampled_from(READY), policies), st.integers(0, 2**32))
def test_what_is_kept_is_what_would_be_made_anew(
    url: str, lines: list[list[Message]], policy: Policy, seed: int
) -> None:
    """Whatever two stores on one database do to its sessions, and whatever is done to a view."""
    world = World(url, lines, random.Random(seed))
    try:
        play(world, policy, STEPS)
    finally:
        world.close()


def play(world: World, policy: Policy, steps: int) -> None:
    """Let things happen, and look after each."""
    acts, weights = zip(*HAPPENS, strict=True)
    for act in world.rng.choices(acts, weights, k=steps):
        with suppress(StoreError, IndexError):
            act(world)
        world.same(policy if world.rng.random() < 0.8 else world.rng.choice(READY))
