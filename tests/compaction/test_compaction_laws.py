"""What holds whatever happens.

Random conversations, compactions, ranges hidden by name, failures, clearings, forks, rewinds,
switches and undos.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pytest
from conversations import NOW, Agent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refusals

from store import Compaction, Policy, Session, Store, View
from store.errors import CompactionError, NothingToUndo
from store.summaries import SummaryRequest
from store.tokens import estimate

Message = dict[str, Any]
PROBE = Policy(
    terminal_keep=1, terminal_max_age=0, file_read_keep=1, clearing="batched", clear_min_freed=0
)
"""The policy of the views that are compared: it shows summaries and clearings alike."""


class Event(NamedTuple):
    """What was recorded on a line: at which head, what it hides but for what it pins.

    One that undoes another names it.
    """

    head: int
    made: Compaction
    undoes: int | None = None

    @property
    def hides(self) -> set[int]:
        """The positions in its range."""
        first, last = self.made.hidden or (1, 0)
        return set(range(first, last + 1))


class Past(NamedTuple):
    """What is known of a line.

    Its messages, the last view taken at each of its heads, where branches begin on it, and what was
    recorded.
    """

    messages: list[Message]
    views: dict[int, View]
    starts: set[int]
    events: tuple[Event, ...] = ()

    def until(self, at: int) -> Past:
        """What is known of the line up to a position."""
        views = {place: view for place, view in self.views.items() if place <= at}
        starts = {start for start in self.starts if start <= at} | {at}
        events = tuple(event for event in self.events if event.head <= at)
        return Past(self.messages[:at], views, starts, events)

    def recorded(self, made: Compaction, undoes: int | None = None) -> Past:
        """What is known once something was recorded at the head."""
        event = Event(len(self.messages), made, undoes)
        return self._replace(events=(*self.events, event))

    @property
    def in_force(self) -> list[Event]:
        """What was recorded and not undone."""
        undone = {event.undoes for event in self.events}
        return [event for event in self.events if not event.undoes and event.made.id not in undone]

    @property
    def by_name(self) -> set[int]:
        """The positions that were hidden by name."""
        named = (event.hides for event in self.in_force if event.made.kind == "hide")
        return set().union(*named)

    def shown(self) -> list[int | str]:
        """What a view has, the slow way: positions, and texts in the place of hidden ranges."""
        hidden: set[int] = set()
        texts: dict[int, str] = {}
        for event in self.in_force:
            hidden = (hidden | event.hides) - {*event.made.pinned}
            texts = {last: text for last, text in texts.items() if last not in event.hides}
            if event.made.kind == "hide" and event.made.summary:
                texts[max(event.hides)] = event.made.summary
        shown: list[int | str] = []
        for place in range(1, len(self.messages) + 1):
            shown += [place] if place not in hidden else []
            shown += [texts[place]] if place in texts else []
        return shown


class Line:
    """What is known of a session: its line, and those that it can go back to, by branch.

    What was left comes back as it was, with what is recorded there later; of a source's branches
    with nothing that is recorded later.
    """

    def __init__(self, session: Session, past: Past, others: dict[int, Past]) -> None:
        self.session_id, self.branch, self.past, self.others = (
            session.id,
            session.branch,
            past,
            others,
        )
        self.own, self.left = {session.branch}, list[tuple[int, int]]()

    @property
    def messages(self) -> list[Message]:
        """The messages of the line."""
        return self.past.messages

    @property
    def here(self) -> tuple[int, int]:
        """The branch and the head."""
        return self.branch, len(self.messages)

    def goes(self, session: Session, past: Past) -> None:
        """Stand on another branch."""
        self.others[self.branch] = self.past
        self.others.pop(session.branch, None)
        self.branch, self.past = session.branch, past
        self.own.add(self.branch)

    def seen_by_fork(self) -> dict[int, Past]:
        """What a fork may go back to."""
        return {
            branch: past.until(len(past.messages))
            for branch, past in self.others.items()
            if branch not in self.own or len(past.messages) > max(past.starts, default=0)
        }


class World:
    """Sessions of one tree and what may happen to them; the same numbers give the same history."""

    def __init__(self, store: Store) -> None:
        self.store, self.clock = store, NOW
        self.lines = [Line(store.create_session(), Past([], {}, set()), {})]

    def happen(self, number: int) -> None:
        """Let one thing happen to one session, and look at it afterwards."""
        chance = Random(number)
        self.clock += chance.choice([1, 1000, 600_000])
        line = chance.choice(self.lines)
        events = [self.append, self.append, self.append, self.compact, self.compact, self.clear]
        events += [self.hide, self.hide]
        moves = [self.fork, self.rewind, self.switch, self.switch, self.undo_rewind]
        chance.choice([*events, *moves, self.undo_compaction, self.use])(line, chance)
        self.look(line)

    def append(self, line: Line, chance: Random) -> None:
        """Talk on."""
        agent = Agent(chance.randrange(2**40))
        messages = [message for _ in range(chance.randrange(1, 4)) for message in agent.run()]
        messages += [
            {"role": "user", "content": "and then? " * chance.choice([1, 40])}
        ] * chance.randrange(2)
        self.store.append(line.session_id, messages)
        line.past = line.past._replace(messages=[*line.messages, *messages])

    def compact(self, line: Line, chance: Random) -> None:
        """By any policy and any summarizer; meanwhile something else may happen."""
        policy = Policy(
            keep_messages=chance.choice([0, 0, 2, 5]),
            keep_turns=chance.choice([1, 1, 2]),
            window_messages=chance.choice([None, 3, 8]),
            boundary=chance.choice(["turn", "group"]),
            hard_limit=chance.choice([None, 4, 10]),
            previous_summary=chance.choice(["fold", "append"]),
            on_failure=chance.choice(["abort", "trim", "skip", "truncate"]),
            transcript_max_chars=chance.choice([1000, 400_000]),
            facts_chars=chance.choice([0, 200]),
            trigger_tokens=chance.choice(
                [None, 1 + self.store.check(line.session_id, Policy()).tokens * 9 // 10]
            ),
        )
        before, by_name = list(line.messages), line.past.by_name

        def summarizer(request: SummaryRequest) -> Any:
            told = range(request.first, request.last + 1)
            assert [
                before[seq - 1]
                for seq in told
                if before[seq - 1]["role"] not in SYSTEM and seq not in by_name
            ] == [*request.messages]
            if chance.random() < 0.4:
                chance.choice(
                    [
                        self.append,
                        self.append,
                        self.fork,
                        self.rewind,
                        self.switch,
                        self.undo_compaction,
                        self.hide,
                    ]
                )(line, chance)
            if chance.random() < 0.3:
                raise RuntimeError("no model")
            return chance.choice(["a summary", "", "long " * 500, "long " * 50, None, "x"])

        chosen = None if chance.random() < 0.2 else summarizer
        made = self.store.compact(line.session_id, policy, chosen, now=self.clock)
        assert (made.outcome == "applied") == (made.hidden is not None)
        if made.outcome == "applied":
            line.past = line.past.recorded(made)
            assert made.tokens_after < made.tokens_before  # type: ignore[operator]
            if (
                policy.trigger_tokens
                and not made.error
                and made.tokens_after >= policy.trigger_tokens
            ):  # type: ignore[operator]
                assert (
                    made.tokens_after - estimate(str(made.summary)) + ROUNDED
                    >= policy.trigger_tokens
                )  # type: ignore[operator]

    def hide(self, line: Line, chance: Random) -> None:
        """By name: what may not go is refused, and what goes is hidden whole."""
        text = chance.choice([None, f"what was said {self.clock} {len(line.past.events)}"])
        places = range(1, len(line.messages) + 1)
        made = None
        for first in chance.sample(places, min(6, len(places))):
            last = min(len(places), first + chance.choice([0, 0, 1, 2, 5]))
            with suppress(CompactionError):
                made = self.store.hide(line.session_id, first, last, text, now=self.clock)
                break
        if made is None:
            return
        line.past = line.past.recorded(made)
        (begins, ends) = made.hidden or (0, 0)
        assert begins <= first <= last <= ends
        assert (made.kind, made.outcome, made.summary) == ("hide", "applied", text)
        sent = self.store.view(line.session_id, Policy.named("raw"), now=NOW).messages
        assert made.messages_after == len(sent)

    def summaries(self, line: Line) -> int:
        """How many summaries stand that compactions made."""
        entries = self.store.view(line.session_id, now=NOW).entries
        by_name = {event.made.id for event in line.past.in_force if event.made.kind == "hide"}
        return sum(
            entry.rule == "summary"
            and int(entry.reason.rpartition("compaction ")[2]) not in by_name
            for entry in entries
        )

    def clear(self, line: Line, chance: Random) -> None:
        """Replace what the rules say by now."""
        self.store.compact_if_needed(line.session_id, PROBE, now=self.clock)

    def use(self, line: Line, chance: Random) -> None:
        """Send a request."""
        self.store.record_usage(
            line.session_id, input=chance.randrange(1000), output=1, now=self.clock
        )

    def fork(self, line: Line, chance: Random) -> None:
        """Begin another session, which knows what its source knew there."""
        branch = chance.choice([None, None, *line.others])
        past = line.past if branch is None else line.others[branch]
        at = self._place(past, chance)
        if at is not None:
            fork = self.store.fork(line.session_id, at=at, branch=branch, now=self.clock)
            others = line.seen_by_fork()
            if at == len(past.messages):
                others.pop(branch or 0, None)
            self.lines.append(Line(fork, past.until(at), others))

    def rewind(self, line: Line, chance: Random) -> None:
        """Go back."""
        at = self._place(line.past, chance)
        if at is not None and at < len(line.messages):
            line.left.append(line.here)
            line.goes(self.store.rewind(line.session_id, at, now=self.clock), line.past.until(at))

    def switch(self, line: Line, chance: Random) -> None:
        """Go to what was left, to its end or into the middle of it."""
        branch = chance.choice([line.branch, *line.others])
        past = line.past if branch == line.branch else line.others[branch]
        at = self._place(past, chance)
        if at is None or (branch, at) == line.here:
            return
        line.left.append(line.here)
        session = self.store.switch(line.session_id, branch, at, now=self.clock)
        line.goes(session, past if session.branch == branch else past.until(at))
        if at == len(past.messages) and branch not in line.own:
            del line.others[branch]

    def undo_rewind(self, line: Line, chance: Random) -> None:
        """Be again where the last of these began."""
        if not line.left:
            with pytest.raises(NothingToUndo):
                self.store.undo_rewind(line.session_id)
            return
        session = self.store.undo_rewind(line.session_id, now=self.clock)
        branch, head = line.left.pop()
        past = line.others[branch]
        line.goes(session, past if session.branch == branch else past.until(head))

    def undo_compaction(self, line: Line, chance: Random) -> None:
        """Take the last one in force back."""
        in_force = [
            made for made in self.store.compactions(line.session_id) if made.outcome == "applied"
        ]
        if in_force:
            undone = self.store.undo_compaction(line.session_id, in_force[-1].id, now=self.clock)
            line.past = line.past.recorded(undone, undone.id)
            assert undone.outcome == "undone"

    def look(self, line: Line) -> None:
        """Take the view of now: it can be sent, and no message is lost."""
        view = self.store.view(line.session_id, PROBE, now=NOW)
        line.past.views[len(line.messages)] = view
        assert refusals(view.messages) == []
        raw = [stored.message for stored in self.store.messages(line.session_id)]
        assert raw == line.messages
        shown = [entry.seq for entry in view.entries if entry.seq is not None]
        hidden = self.store.hidden(line.session_id)
        assert len(shown) == len(set(shown))
        assert not set(shown) & set(hidden)
        assert set(shown) | set(hidden) | set(view.stats.left_out) == set(range(1, len(raw) + 1))
        assert not [seq for seq in hidden if raw[seq - 1]["role"] in SYSTEM]
        expected = line.past.shown()
        texts = {each for each in expected if isinstance(each, str)}
        said = [
            entry.seq or entry.message["content"]
            for entry in view.entries
            if entry.seq or entry.message["content"] in texts
        ]
        assert {*said, *view.stats.left_out} == {*expected}
        moves = {seq for seq, message in enumerate(raw, 1) if message["role"] == "tool"}
        stays = [each for each in expected if each not in moves | {*view.stats.left_out}]
        assert [each for each in said if each not in moves] == stays
        assert hidden.keys() == {*range(1, len(raw) + 1)} - {*expected}
        users = [seq for seq, message in enumerate(raw, 1) if message["role"] == "user"]
        assert not users or users[-1] in shown

    def remember(self) -> None:
        """Take every view of the past again, on all branches."""
        for line in self.lines:
            self.look(line)
            listed = {each.branch: each.head for each in self.store.branches(line.session_id)}
            known = line.others | {line.branch: line.past}
            assert listed == {branch: len(past.messages) for branch, past in known.items()}
            for branch, past in known.items():
                for at, then in past.views.items():
                    self.take_again(line.session_id, branch, at, then)
            for at, then in line.past.views.items():
                shown = {each.seq for each in then.entries} | set(then.stats.left_out)
                assert (
                    set(self.store.hidden(line.session_id, at=at)) == set(range(1, at + 1)) - shown
                )

    def take_again(self, session_id: str, branch: int, at: int, then: View) -> None:
        """Take a view as it was taken."""
        now = self.store.view(session_id, PROBE, at=at, now=NOW, branch=branch)
        assert now.messages == then.messages, at
        assert [each[:4:2] for each in now.entries] == [each[:4:2] for each in then.entries]

    def _place(self, past: Past, chance: Random) -> int | None:
        """A position, often one where a branch begins or the head is.

        There records are told apart by their order.
        """
        places = [*range(1, len(past.messages) + 1), *past.starts, len(past.messages)]
        if chance.random() < 0.4:
            places = [*past.starts, len(past.messages)]
        return chance.choice([at for at in places if at] or [None])


SYSTEM = ("system", "developer")
ROUNDED = 2
"""Tokens by which the parts of a text may differ from the whole."""


@settings(max_examples=30)
@given(st.lists(st.integers(0, 2**40), min_size=25, max_size=60))
@example([0] * 23 + [57486, 45])  # a message with an entry among its calls that is no call
def test_nothing_is_ever_lost_and_every_view_comes_again(store: Store, numbers: list[int]) -> None:
    """Views can be sent, raw is unchanged, each message is in a view or a recorded range, and no
    past is rewritten.
    """
    world = World(store)
    for number in numbers:
        world.happen(number)
    world.remember()


@pytest.mark.slow
def test_the_store_is_sound_afterwards(store: Store) -> None:
    """After a long history of one seed, and after all of the above in the same store."""
    world = World(store)
    for number in range(300):
        world.happen(number)
    world.remember()
    made: list[Compaction] = [
        each for line in world.lines for each in store.compactions(line.session_id)
    ]
    assert {each.outcome for each in made} == {"applied", "failed", "rejected", "undone"}
    assert {each.kind for each in made} == {"summary", "hide", "clear"}
    assert store.verify() == []


READY: list[Callable[[], Policy]] = [
    lambda name=name: Policy.named(name, context_window=3_000)  # type: ignore[misc]
    for name in ("default", "message_count", "token_ratio", "turns", "raw")
]


@settings(max_examples=10)
@given(
    st.lists(st.integers(0, 2**40), min_size=30, max_size=60), st.sampled_from(READY), st.booleans()
)
@pytest.mark.slow
def test_every_ready_policy_lives_through_a_session(
    store: Store, numbers: list[int], ready: Callable[[], Policy], fails: bool
) -> None:
    """Checked before each request, compacted where it says so.

    The request can be sent, and holds the question.
    """
    policy, session_id = ready(), store.create_session().id

    def summarizer(request: SummaryRequest) -> str:
        if fails:
            raise RuntimeError("no model")
        return "what we did"

    for place, number in enumerate(numbers):
        question = {"role": "user", "content": f"question {place}"}
        store.append(session_id, [*Agent(number).run(), question])
        store.compact_if_needed(session_id, policy, summarizer, now=NOW + place)
        view = store.view(session_id, policy, now=NOW + place)
        assert refusals(view.messages) == []
        assert view.messages[-1] == question
        assert store.check(session_id, policy, now=NOW + place).tokens >= 0
    assert [stored.seq for stored in store.messages(session_id)] == list(
        range(1, store.session(session_id).head + 1)
    )
