"""Two stores that keep what they made, one that keeps nothing, and whatever may happen to them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from conversations import MINUTE, NOW, ROOT, Message
from sqlalchemy import text

from store import Policy, Scoped, Store, StoreError
from store.database import lease
from store.errors import InvalidValue
from store.history import erasure, erasure_batches
from store.records import View

FORMATS = ("openai", "responses", "anthropic", "gemini", "react")
SMALL = {"terminal_keep": 1, "file_read_keep": 1, "clear_keep": 1}
READY = [Policy.named(name) for name in ("default", "agent", "turns", "frugal")]
READY += [Policy.named(each.name, **SMALL) for each in READY]
BATCHED = Policy(**SMALL, clearing="batched", clear_min_freed=1)
READY += [
    BATCHED,
    Policy(**SMALL, any_tool=True),
    Policy(**SMALL, judge_at="turn", batch_rule="any"),
    Policy(**SMALL, protect_current_turn=True, picture_keep=1, show_drafts=True),
    Policy(**SMALL, any_tool=True, cut_arguments=True, foreign_reasoning="text"),
    Policy(**SMALL, undated="stored_at", summary_role="merge", recall=True),
]
STEPS = 40
OWNERS = ("ann", "bob")


class World:
    """Two stores on one database, one that keeps nothing, and what happens to its sessions.

    One of the two has little room.
    """

    def __init__(self, url: str, lines: list[list[Message]], rng: random.Random) -> None:
        self.rng, self.lines, self.now = rng, lines, NOW
        rooms = (rng.choice([1, 20_000, 60_000]), 64_000_000)
        self.ours = [Store(url, durability="normal", cache_bytes=room) for room in rooms]
        self.plain = Store(url, durability="normal", cache_bytes=0)
        self.sessions = [self.plain.create_session(project_root=ROOT).id]
        self.step = 0
        self.policy = Policy()

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

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """As if in another process: nobody here is told what is to be forgotten."""
        forget, lease.invalidate_trees = lease.invalidate_trees, lambda _: None
        try:
            yield
        finally:
            lease.invalidate_trees = forget

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

    def steps_of_agent(self) -> None:
        """Do so several times between two looks."""
        for _ in range(self.rng.randint(2, 6)):
            self.step_of_agent()

    def foreign(self) -> None:
        """Append what another format has: thoughts, pictures, calls whose arguments are no text."""
        self.step += 1
        name = self.rng.choice([*FOREIGN])
        self.store.append(self.session, FOREIGN[name](self.step), format=name)

    def pop(self) -> None:
        """Take the last message off."""
        self.store.pop(self.session)

    def replace(self) -> None:
        """Say something else in the place of the end."""
        session = self.session
        other = {"role": "user", "content": "rather see @b.py"}
        self.store.replace(session, self.place(session), [other])

    def draft(self) -> None:
        """Begin an answer that breaks off."""
        begun = {"role": "assistant", "content": ""}
        with suppress(ConnectionError), self.store.streaming(self.session, begun) as answer:
            answer.write("so far")
            raise ConnectionError

    def end_draft(self) -> None:
        """Make one a message, or none."""
        draft = self.rng.choice(self.plain.drafts(self.session))
        self.rng.choice([self.store.finish_draft, self.store.discard_draft])(draft)

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

    def fork_for_owner(self) -> None:
        """Fork for somebody whose it is then."""
        session, owner = self.session, self.rng.choice(OWNERS)
        self.sessions.append(self.store.fork(session, at=self.place(session), owner=owner).id)

    def act_as_owner(self) -> None:
        """Say something, or go back, where only an owner's sessions are seen."""
        session, face = self.session, self.store.scoped(self.rng.choice(OWNERS))
        if self.rng.random() < 0.5:
            face.rewind(session, to=self.place(session))
        face.append(session, {"role": "user", "content": "mine"})

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
        self.store.compact_if_needed(self.session, BATCHED, now=self.now)

    def hide(self) -> None:
        """Hide a range by name."""
        session = self.session
        first, last = sorted((self.place(session), self.place(session)))
        summary = self.rng.choice([None, "what was said"])
        self.store.hide(session, first, last, summary)

    def hide_few(self) -> None:
        """Hide a short range."""
        session = self.session
        first = self.rng.randint(1, 1 + self.plain.session(session).head)
        self.store.hide(session, first, first + self.rng.randint(0, 6))

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

    def begin_erasing(self) -> None:
        """Erase a session, and leave its messages to others."""
        if len(self.sessions) > 1:
            session = self.sessions.pop(self.rng.randrange(len(self.sessions)))
            with self.plain.database.writing() as connection:
                erasure.begin_erasure(connection, session, now=self.now)

    def go_on_erasing(self) -> None:
        """Do what others left to do."""
        erasure_batches.continue_erasures(self.plain.database, self.now)

    def fork_again(self) -> None:
        """Erase a fork that was looked at, and fork again: the branch has its number again."""
        session, line = self.session, self.rng.choice(self.lines)
        for number in range(2):
            name = self.store.fork(session).id
            begun = [{"role": "user", "content": f"take {number}"}] * (1 + number)
            self.store.append(name, [*begun, *line])
            before, self.sessions = self.sessions, [name]
            self.same(self.policy)
            self.sessions = before
            self.store.delete_session(name)

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
            steps.redact(session, 1, "never redacted")
            for policy in READY[:6]:
                steps.view(session, policy, now=self.now)
                steps.check(session, policy, now=self.now)
            steps.messages(session, -3)
            raise InvalidValue("taken back")

        self.store.atomically(work)

    # what is looked at

    def same(self, policy: Policy) -> None:
        """Views and requests are those of a store that keeps nothing."""
        for session in self.rng.sample(self.sessions, min(2, len(self.sessions))):
            name = self.rng.choice(FORMATS) if self.rng.random() < 0.4 else "openai"
            options: dict[str, Any] = {"now": self.now, "format": name}
            if self.rng.random() < 0.1:
                options["at"] = self.place(session)
            fresh = self.plain.view(session, policy, **options)
            for store in self.ours:
                alike(store.view(session, policy, **options), fresh)
            self.same_request(session, policy, options)
            self.same_newest(session)
            self.same_answer(session, policy)

    def same_request(self, session: str, policy: Policy, options: dict[str, Any]) -> None:
        """Whole requests are, too."""
        given = {"user_input": self.rng.choice([None, "and now?"]), "policy": policy, **options}
        fresh = self.plain.context(session, "be good", **given)
        for store in self.ours:
            request = store.context(session, "be good", **given)
            assert request.messages == fresh.messages
            spoil(request.messages)
            assert request.layers == fresh.layers
            assert request.pieces == fresh.pieces
            assert request.system == fresh.system
            assert request.stable_prefix_tokens == fresh.stable_prefix_tokens
            assert request.first_changed == fresh.first_changed
            spoil([piece.placed.message for piece in request.pieces])
            spoil([call.arguments for piece in request.pieces for call in piece.placed.calls])
            alike(request.view, fresh.view, sent=False)

    def same_newest(self, session: str) -> None:
        """The ends of its line are, too, down to the order of keys."""
        start = self.rng.choice([-1, -3, -20, 1, self.place(session)])
        fresh = self.plain.messages(session, start)
        for store in self.ours:
            read = store.messages(session, start)
            assert read == fresh
            assert json.dumps([each.message for each in read]) == json.dumps(
                [each.message for each in fresh]
            )
            spoil([each.message for each in read])

    def same_answer(self, session: str, policy: Policy) -> None:
        """Whatever else is asked is answered alike, with a result or with an error."""
        ask = self.rng.choice(ASKED)
        fresh = answer(ask, self.plain, session, policy, self.now)
        for store in self.ours:
            assert answer(ask, store, session, policy, self.now) == fresh


Ask = Callable[[Store, str, Policy, int], object]
ASKED: tuple[Ask, ...] = (
    lambda store, session, policy, now: store.check(session, policy, now=now),
    lambda store, session, policy, now: store.plan_clearing(session, policy, now=now),
    lambda store, session, policy, now: store.plan_compaction(session, policy, now=now),
    lambda store, session, policy, now: store.replaced(session, policy, now=now),
    lambda store, session, policy, now: store.recall(session, "a.py", policy=policy, now=now),
    lambda store, session, policy, now: store.compactions(session),
    lambda store, session, policy, now: store.hidden(session),
    lambda store, session, policy, now: store.turns(session),
    lambda store, session, policy, now: [*store.pages(session, size=3)],
    lambda store, session, policy, now: [
        answer(_seen_by_owner, store.scoped(owner), session, policy, now) for owner in OWNERS
    ],
)


def _seen_by_owner(face: Scoped, session: str, policy: Policy, now: int) -> object:
    seen = face.view(session, policy, now=now)
    return seen.messages, seen.entries, seen.stats, face.messages(session, -3)


def answer(ask: Callable[..., object], store: Store | Scoped, *asked: object) -> object:
    """What a store answers."""
    try:
        return ask(store, *asked)
    except StoreError as error:
        return repr(error)


def of_anthropic(number: int) -> list[Message]:
    """A thought, a call, and a result with a picture."""
    thought = {"type": "thinking", "thinking": f"hm {number}", "signature": "s"}
    call = {"type": "tool_use", "id": f"t{number % 5}", "name": "Read", "input": {"path": ["a.py"]}}
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    seen = [{"type": "text", "text": "1→ x " * 50}, {"type": "image", "source": picture}]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": seen}
    return [
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [result]},
    ]


def of_responses(number: int) -> list[Message]:
    """An answer of several items, and a result."""
    text = [{"type": "output_text", "text": "so"}]
    call = {"type": "function_call", "call_id": f"f{number % 5}", "name": "Bash", "arguments": "{}"}
    return [
        {"type": "reasoning", "id": f"r{number}", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": text},
        call,
        {
            "type": "function_call_output",
            "call_id": call["call_id"],
            "output": f"out {number} " * 40,
        },
    ]


def of_gemini(_: int) -> list[Message]:
    """A call and a result without any id."""
    call = {"name": "Read", "args": {"file_path": "b.py"}}
    result = {"name": "Read", "response": {"output": "1→ y " * 50}}
    return [
        {"role": "model", "parts": [{"text": "ok"}, {"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": result}]},
    ]


FOREIGN: dict[str, Callable[[int], list[Message]]] = {
    "anthropic": of_anthropic,
    "responses": of_responses,
    "gemini": of_gemini,
}
HAPPENS: list[tuple[Callable[[World], None], int]] = [
    (World.append, 6),
    (World.step_of_agent, 12),
    (World.pass_time, 5),
    (World.rewind, 1),
    (World.undo_rewind, 1),
    (World.fork, 1),
    (World.fork_for_owner, 2),
    (World.act_as_owner, 3),
    (World.switch, 1),
    (World.compact, 2),
    (World.clear, 1),
    (World.hide, 1),
    (World.undo_compaction, 1),
    (World.redact, 1),
    (World.erase, 1),
    (World.steps_of_agent, 3),
    (World.foreign, 3),
    (World.pop, 1),
    (World.replace, 1),
    (World.draft, 1),
    (World.end_draft, 1),
    (World.hide_few, 3),
    (World.fork_again, 2),
    (World.begin_erasing, 1),
    (World.go_on_erasing, 1),
    (World.set_root, 1),
    (World.set_kind, 1),
    (World.record_usage, 2),
    (World.count_tokens, 1),
    (World.archive, 1),
    (World.atomic, 1),
]


def alike(view: View, fresh: View, *, sent: bool = True) -> None:
    """Two views are the same; what is the caller's may be changed."""
    assert not sent or view.messages == fresh.messages
    assert view.system == fresh.system
    assert view.entries == fresh.entries
    assert view.stats == fresh.stats
    for given in (view.messages, view.system, [entry.message for entry in view.entries]):
        if isinstance(given, list):
            spoil(given)


def spoil(value: Any) -> None:
    """Change everything that can be changed."""
    for each in list(value.values() if isinstance(value, dict) else value):
        if isinstance(each, dict | list):
            spoil(each)
    value.clear()


def play(world: World, policy: Policy, steps: int) -> None:
    """Let things happen, and look now and then; a few kinds of things, so that they come together."""
    world.policy = policy
    happens = [each for each in HAPPENS if world.rng.random() < 0.4]
    acts, weights = zip((World.step_of_agent, 9), *happens, strict=True)
    for act in world.rng.choices(acts, weights, k=steps):
        here = world.rng.random() < 0.5
        with suppress(StoreError, IndexError), nullcontext() if here else world.elsewhere():
            act(world)
        if world.rng.random() < 0.4:
            world.same(policy if world.rng.random() < 0.8 else world.rng.choice(READY))
