"""What cannot be seen takes no place: nothing gives way to a result that is hidden or redacted."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from conversations import MINUTE, NOW, ROOT, Message

from store import Policy, Store, StoreError
from store.policy import LANGUAGE_TEXTS
from store.records import View

PLACEHOLDERS = {texts["file_read_placeholder"] for texts in LANGUAGE_TEXTS.values()}
TOOLS = {"filesystem-read": "file_read", "terminal-execute": "terminal"}


def step(number: int, tool: str, *paths: str, at: int = 0) -> list[Message]:
    """A call and its result, which says its number and its files."""
    named: Any = paths[0] if len(paths) == 1 else [*paths]
    arguments = json.dumps({"filePath": named, "command": "make"})
    function = {"name": tool, "arguments": arguments}
    call = {"id": f"c{number}", "type": "function", "function": function}
    content = " ".join([str(number), *paths])
    result = {"role": "tool", "tool_call_id": call["id"], "content": content}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {**result, "timestamp": at or NOW - (120 - number) * MINUTE},
    ]


def begun(store: Store, tool: str, steps: int) -> str:
    """A session with so many results of a tool, at the positions 3, 5 and so on."""
    session = store.create_session(project_root=ROOT).id
    store.append(session, {"role": "user", "content": "begin"})
    for number in range(steps):
        store.append(session, step(number, tool, "a.py"))
    return session


def results(view: View) -> list[Any]:
    """What the results of a view say."""
    return [each["content"] for each in view.messages if each["role"] == "tool"]


@pytest.mark.parametrize("tool", TOOLS)
def test_redacted_results_take_no_place(url: str, tool: str) -> None:
    """The only result whose words are left stays; redacted ones are not replaced either."""
    with Store(url, durability="normal") as store:
        session = begun(store, tool, 6)
        before = store.view(session, now=NOW)
        assert before.stats.replaced == {TOOLS[tool]: 1}
        for seq in (5, 7, 9, 11, 13):
            store.redact(session, seq, "secret")
        view = store.view(session, now=NOW)
        assert results(view) == ["0 a.py", *["[redacted]"] * 5]
        assert view.stats.replaced == {}
        assert {entry.reason for entry in view.entries if entry.seq in (5, 13)} == {
            "its words were taken out"
        }
        store.append(session, step(7, tool, "a.py"))
        assert results(store.view(session, now=NOW))[0] == "0 a.py"


@pytest.mark.parametrize("tool", TOOLS)
def test_redacted_results_that_were_brought_in_take_no_place(url: str, tool: str) -> None:
    """As an export has them: nothing of this store says that they were redacted."""
    with Store(url, durability="normal") as store:
        session = begun(store, tool, 1)
        for number in range(1, 7):
            call, result = step(number, tool, "a.py")
            store.append(session, [call, {**result, "content": "[redacted]", "redacted": True}])
        assert results(store.view(session, now=NOW))[0] == "0 a.py"
        for number in range(7, 13):
            call, result = step(number, tool, "a.py")
            store.append(session, [call, {**result, "content": "[redacted]"}])
        assert results(store.view(session, now=NOW))[0] != "0 a.py"


@pytest.mark.parametrize("tool", TOOLS)
def test_results_that_are_hidden_by_name_take_no_place(url: str, tool: str) -> None:
    """The newest of those that are left stay, in a store that knows the view from before too."""
    with Store(url, durability="normal") as store:
        session = begun(store, tool, 10)
        store.append(session, [{"role": "assistant", "content": "ok"}, {"role": "user"}])
        assert store.view(session, now=NOW).stats.replaced == {TOOLS[tool]: 5}
        hidden = store.hide(session, 12, 21, "tried")
        view = store.view(session, now=NOW)
        assert results(view) == [f"{number} a.py" for number in range(5)]
        assert view.stats.replaced == {"summary": 1}
        store.undo_compaction(session, hidden.id or 0)
        assert store.view(session, now=NOW).stats.replaced == {TOOLS[tool]: 5}


def test_what_is_out_of_sight_keeps_nothing_from_being_cleared(url: str) -> None:
    """Of the newest results of any tool those count that can be seen."""
    policy = Policy(any_tool=True, terminal=False, file_read=False, clear_keep=2)
    with Store(url, durability="normal") as store:
        session = store.create_session(project_root=ROOT).id
        for number in range(6):
            call, result = step(number, "edit", "a.py")
            said = " ".join(f"src/word_{number}_{each}.py" for each in range(90))
            store.append(session, [call, {**result, "content": said}])
        store.append(session, {"role": "assistant", "content": "so"})
        assert store.view(session, policy, now=NOW).stats.replaced == {"any_tool": 4}
        store.redact(session, 12, "secret")
        store.hide(session, 9, 10)
        view = store.view(session, policy, now=NOW)
        assert {e.seq for e in view.entries if e.rule == "any_tool"} == {2, 4}
        store.append(session, [*step(7, "edit", "b.py"), {"role": "assistant", "content": "so"}])
        view = store.view(session, policy, now=NOW)
        assert {e.seq for e in view.entries if e.rule == "any_tool"} == {2, 4, 6}


def test_a_recorded_clearing_points_to_no_read_that_is_gone(url: str) -> None:
    """The read that is the newest one left is shown again; others stay cleared."""
    policy = Policy(clearing="batched", clear_min_freed=0, file_read_keep=1, terminal=False)
    with Store(url, durability="normal") as store:
        session = store.create_session(project_root=ROOT).id
        for number in range(3):
            call, result = step(number, "filesystem-read", "a.py")
            store.append(session, [call, {**result, "content": f"{number} " * 400}])
        store.append(session, {"role": "user", "content": "go on"})
        store.compact_if_needed(session, policy, now=NOW)
        assert store.view(session, policy, now=NOW).stats.replaced == {"file_read": 2}
        store.redact(session, 6, "secret")
        view = store.view(session, policy, now=NOW)
        assert view.stats.replaced == {"file_read": 1}
        assert results(view)[1:] == ["1 " * 400, "[redacted]"]


# --- a placeholder tells the truth ----------------------------------------------------------------

FILES = ("a.py", "b.py", "c.py")
SESSIONS, PARTS = 1_000, 40


class Told(NamedTuple):
    """What a result says of itself: its number and its files."""

    number: int
    paths: frozenset[str]


def told(content: str) -> Told:
    """Read what `step` has written, in its first line."""
    number, *paths = content.partition("\n")[0].split()
    return Told(int(number), frozenset(paths))


def placeholders_tell_the_truth(store: Store, session: str, policy: Policy, now: int) -> int:
    """Demand that who is told to see the newest reads sees them; return how often that is said."""
    view = store.view(session, policy, now=now)
    stored = {each.seq: each.message for each in store.messages(session)}
    reads = [e for e in view.entries if e.seq and stored[e.seq]["role"] == "tool"]
    whole = [e for e in reads if e.message["content"] == stored[e.seq or 0]["content"]]
    newest = [told(str(e.message["content"])) for e in whole if e.message["content"][0] != "["]
    replaced = [e for e in reads if e.message["content"] in PLACEHOLDERS]
    for entry in replaced:
        paths = told(stored[entry.seq or 0]["content"]).paths
        kept = [sum(path in each.paths for each in newest) for path in paths]
        assert min(kept) >= policy.file_read_keep
    return len(replaced)


class Lived:
    """A session to which all happens that takes results out of sight."""

    def __init__(self, store: Store, number: int) -> None:
        self.store, self.rng, self.now, self.step = store, random.Random(number), NOW, 0
        self.session = store.create_session(project_root=ROOT).id
        self.store.append(self.session, {"role": "user", "content": "begin"})
        fields = {
            "file_read_keep": self.rng.choice([1, 1, 2, 3]),
            "terminal_keep": 1,
            "judge_at": self.rng.choice(["now", "now", "turn"]),
            "protect_current_turn": self.rng.random() < 0.2,
            "range_aware": self.rng.random() < 0.2,
            "language": self.rng.choice(["zh", "en"]),
            "clearing": self.rng.choice(["always", "always", "batched"]),
            "clear_min_freed": 0,
            "tool_output": self.rng.random() < 0.4,
            "any_tool": self.rng.random() < 0.3,
            "clear_keep": self.rng.choice([1, 2, 4]),
        }
        self.policy = Policy(**fields)

    def place(self) -> int:
        """Any position."""
        return self.rng.randint(1, self.store.session(self.session).head)

    def read(self) -> None:
        """Read some files, now or as it was a while ago."""
        for _ in range(self.rng.randint(1, 4)):
            self.step += 1
            paths = self.rng.sample(FILES, self.rng.choice([1, 1, 1, 2]))
            at = self.now - self.rng.choice([0, 0, 0, 30]) * MINUTE
            call, result = step(self.step, "filesystem-read", *paths, at=at)
            long = {**result, "content": result["content"] + self.rng.choice(["", "\nx" * 600])}
            self.store.append(self.session, [call, long])

    def ask(self) -> None:
        """Begin a turn."""
        said = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "more"}]
        self.store.append(self.session, said)

    def redact(self) -> None:
        """Take the words out of results."""
        for _ in range(self.rng.randint(1, 4)):
            self.store.redact(self.session, self.place(), "private")

    def hide(self) -> None:
        """Hide a range, with a text in its place or without."""
        first, last = sorted((self.place(), self.place()))
        self.store.hide(self.session, first, last, self.rng.choice([None, "tried"]))

    def compact(self) -> None:
        """Hide what is old, or clear it."""
        policy = Policy(keep_messages=self.rng.randint(1, 9))
        if self.rng.random() < 0.5:
            self.store.compact(self.session, policy, lambda _: "so far", now=self.now)
        else:
            self.store.compact_if_needed(self.session, self.policy, now=self.now)

    def undo(self) -> None:
        """Bring back what was hidden."""
        made = self.store.compactions(self.session)
        self.store.undo_compaction(self.session, self.rng.choice(made).id or 0)

    def move(self) -> None:
        """Go back, or on in a fork."""
        if self.rng.random() < 0.5:
            self.store.rewind(self.session, to=self.place())
        else:
            self.session = self.store.fork(self.session, at=self.place()).id

    def live(self, acts: int) -> int:
        """Let things happen, and look after each; return how many placeholders there were."""
        happens = (self.read, self.ask, self.redact, self.hide, self.compact, self.undo, self.move)
        seen = 0
        for act in self.rng.choices(happens, (9, 3, 3, 2, 2, 1, 1), k=acts):
            with suppress(StoreError, IndexError):
                act()
            self.now += self.rng.choice([1, 5]) * MINUTE
            seen += placeholders_tell_the_truth(self.store, self.session, self.policy, self.now)
        return seen


@pytest.mark.no_cover
@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_is_told_to_see_the_newest_reads_sees_them(url: str, part: int) -> None:
    """In a thousand sessions: each file of a replaced read has as many whole reads as are kept."""
    each = SESSIONS // PARTS
    with Store(url, durability="normal") as store:
        numbers = range(part * each, (part + 1) * each)
        assert sum(Lived(store, number).live(16) for number in numbers) > each


def test_what_older_reads_point_to_has_no_short_form(url: str) -> None:
    """A file that was read more often than is kept; of others and of older ones it is enough."""
    policy = Policy.named("turns", file_read_keep=2, undated="stored_at")
    with Store(url, durability="normal") as store:
        session = store.create_session(project_root=ROOT).id
        for number, path in enumerate(["a.py", "a.py", "b.py", "a.py", "b.py"]):
            call, result = step(number, "filesystem-read", path)
            store.append(session, [call, {**result, "content": f"{number} {path}" + "\nx" * 600}])
        store.append(session, [{"role": "assistant", "content": "ok"}, {"role": "user"}])
        rules = {e.seq: e.rule for e in store.view(session, policy, now=NOW).entries}
        assert [rules[seq] for seq in (2, 4, 6, 8, 10)] == [
            *("file_read", None, "tool_output", None, "tool_output")
        ]
        call, result = step(7, "filesystem-read", "b.py")
        store.append(session, [call, result, {"role": "assistant", "content": "ok"}])
        store.append(session, {"role": "user", "content": "go on"})
        rules = {e.seq: e.rule for e in store.view(session, policy, now=NOW).entries}
        assert [rules[seq] for seq in (6, 10)] == ["file_read", None]


@pytest.mark.parametrize("clearing", ["always", "batched"])
def test_a_read_whose_newest_one_is_cleared_is_cleared_like_it(url: str, clearing: str) -> None:
    """By the line that names what was in it, which points nowhere."""
    fields = {"clearing": clearing, "clear_min_freed": 0, "clear_keep": 1, "file_read_keep": 1}
    policy = Policy(any_tool=True, terminal=False, **fields)
    with Store(url, durability="normal") as store:
        session = store.create_session(project_root=ROOT).id
        for number, path in enumerate(["a.py", "a.py", "b.py"]):
            call, result = step(number, "filesystem-read", path)
            content = f"{number} {path}" + f"\nword_{number}" * 300
            store.append(session, [call, {**result, "content": content}])
            store.append(session, {"role": "assistant", "content": "so"})
            store.compact_if_needed(session, policy, now=NOW)
            placeholders_tell_the_truth(store, session, policy, NOW)
        rules = [e.rule for e in store.view(session, policy, now=NOW).entries if e.rule]
        assert rules == ["any_tool", "any_tool"]
