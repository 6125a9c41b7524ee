"""What is still told after a compaction at the beginning of a turn: reuse, and facts of the range.

The facts are what a person would miss first: what the user said, whole; the last answer, whole; and
what each command came to, by the last line of its newest output that has words in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from store import Compaction, Policy, Store, View

from ..facts import COMMANDS
from ..recorded import Message
from .recording import Recording, bare
from .replay import sight
from .reuse import Sight, Tally, in_whole, look
from .strings import String, calls, texts

USER, ANSWER, OUTCOME = "user texts", "last answers", "outcomes"
SHORT, LONG = "< 15k", "≥ 15k"
LONG_FROM = 15_000
"""Tokens of a hidden range from which on it is counted as a long one."""
WORTH_HIDING = 3_000
"""Tokens that a range has to have to be hidden here."""
POINTS = 3
"""At most so many places in a session."""
COMPARED = 60
"""Code points in which what a command came to is compared: a summary may cut it."""

PROGRAM_TALK = re.compile(
    r"<(local-command-[a-z]+|command-[a-z]+|system-reminder|task-notification|environment_context"
    r"|user_instructions|skill|turn_aborted|user_shell_command)>.*?</\1>"
    r"|\A\s*(Caveat: The messages below|\[Request interrupted|Base directory for this skill"
    r"|# AGENTS\.md instructions|This session is being continued|Unknown skill: |\[Image: ).*",
    re.DOTALL,
)
"""What programs put into the mouth of the user."""
_FRAME = re.compile(r"\[.*\]\Z|Shell cwd was reset")
"""A line of the program that ran a command."""
_TELLING = re.compile(r"\w.*\w")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class Told:
    """What compactions came to: tried, applied, tokens hidden and of views, reuse, facts told.

    ``facts`` are all of them; both are counted by what they are and by the length of the range.
    """

    tried: int = 0
    applied: int = 0
    hidden: int = 0
    tokens: int = 0
    reuse: Tally = field(default_factory=Tally)
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    facts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Told) -> None:
        """Count what others came to."""
        self.tried += other.tried
        self.applied += other.applied
        self.hidden += other.hidden
        self.tokens += other.tokens
        self.reuse.add(other.reuse)
        self.told.update(other.told)
        self.facts.update(other.facts)

    def share(self, fact: str, length: str) -> float | None:
        """Return the share of facts that is still told; None where there are none."""
        facts = self.facts[fact, length]
        return self.told[fact, length] / facts if facts else None


def together(each: Iterable[Told]) -> Told:
    """Return what all compactions came to."""
    total = Told()
    for told in each:
        total.add(told)
    return total


def compacted(recording: Recording, policy: Policy) -> Told:
    """Compact a session at the beginnings of some turns, each in a fork of its own."""
    found: list[Told] = []
    with Store(":memory:", durability="normal") as store:
        session = store.create_session(project_root=recording.transcript.root).id
        for index, group in recording.steps():
            store.append(session, group, now=recording.moments[index])
        for index in points(recording):
            now = recording.moments[index]
            fork = store.fork(session, at=index).id
            done = store.compact(fork, policy, now=now)
            view = store.view(fork, policy, now=now)
            found.append(_look(recording, index, done, view))
    return together(found)


def points(recording: Recording) -> list[int]:
    """Return the first answers of some turns that have enough before them, evenly spread.

    Where no tool is called a program speaks for the user: what it says is no text of the user's.
    """
    if not any(message.get("tool_calls") for message in recording.messages):
        return []
    roles = recording.roles(len(recording.messages))
    answers = (each for each in range(1, len(roles)) if roles[each] == "assistant")
    starts = [each for each in answers if roles[each - 1] == "user"]
    enough = [each for each in starts if recording.size(range(each - 1)) >= WORTH_HIDING]
    wanted = min(POINTS, len(enough))
    return [enough[place * len(enough) // wanted - 1] for place in range(1, wanted + 1)]


def facts(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield what should be told of messages: its kind and its text, in one line."""
    for text in dict.fromkeys(_of_user(messages)):
        yield USER, text
    answers = (_content(each) for each in messages if each["role"] == "assistant")
    for text in [*filter(None, answers)][-1:]:
        yield ANSWER, text
    for text in dict.fromkeys(_outcomes(messages)):
        yield OUTCOME, text[:COMPARED]


def _look(recording: Recording, index: int, done: Compaction, view: View) -> Told:
    """Count what is still told of what a compaction has hidden from the request at an index."""
    if done.outcome != "applied" or done.hidden is None:
        return Told(tried=1)
    places = _places(recording, *done.hidden)
    found = Told(1, 1, recording.size(places), view.stats.tokens)
    shown = sight(view, recording.messages)
    needed = _hidden(recording, index, shown)
    found.reuse.add(look(needed, recording, index, shown, found.tokens))
    _look_for_facts(found, [recording.messages[place] for place in places], recording, view)
    return found


def _look_for_facts(into: Told, hidden: list[Message], recording: Recording, view: View) -> None:
    """Count the facts of hidden messages, and which of them the summaries of a view tell."""
    text, root = _plain(_summaries(view)), recording.transcript.root
    length = LONG if into.hidden >= LONG_FROM else SHORT
    for kind, fact in facts(hidden):
        into.facts[kind, length] += 1
        into.told[kind, length] += _is_told(fact, text, root)


def _hidden(recording: Recording, index: int, shown: Sight) -> list[String]:
    """Return what a request needs of what only hidden messages told."""
    needed = recording.needed(index)
    return [each for each in needed if not in_whole(each, shown, recording, index)]


def _places(recording: Recording, first: int, last: int) -> list[int]:
    """Return the indexes of what is hidden between two positions."""
    pinned = recording.pinned(last)
    return [place for place in range(first - 1, last) if place not in pinned]


def _summaries(view: View) -> str:
    summed_up = (entry.message for entry in view.entries if entry.rule == "summary")
    return "\n".join(map(_content, summed_up))


def _is_told(fact: str, text: str, root: str | None) -> bool:
    """Tell whether a fact stands in a text, paths in it whole or as they are seen from the root."""
    return fact in text or bare(fact, root) in bare(text, root)


def _of_user(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what a person said, without what programs put in."""
    for message in messages:
        text = "\n".join(texts(message)) if message["role"] == "user" else ""
        spoken = _plain(PROGRAM_TALK.sub("", text))
        if spoken:
            yield spoken


def _outcomes(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what commands came to, each as it was last."""
    waiting: dict[str, str] = {}
    newest: dict[str, str] = {}
    for message in messages:
        ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
        waiting.update(zip(ids, map(_command, calls(message)), strict=True))
        command = waiting.pop(str(message.get("tool_call_id")), "")
        if command:
            newest[command] = _last_line("\n".join(texts(message)))
    yield from filter(None, newest.values())


def _command(call: tuple[str, object]) -> str:
    name, arguments = call
    named = arguments if isinstance(arguments, dict) else {}
    command = named.get(COMMANDS.get(name, ""))
    return command if isinstance(command, str) else ""


def _last_line(output: str) -> str:
    """Return the last line that has words in it, without what programs add around an output."""
    if output.startswith("Chunk ID:"):
        output = output.rpartition("\nOutput:\n")[2]
    lines = map(_plain, PROGRAM_TALK.sub("", output).split("\n"))
    telling = [line for line in lines if _TELLING.search(line) and not _FRAME.match(line)]
    return telling[-1] if telling else ""


def _content(message: Message) -> str:
    """Return the text of a message in one line, without its calls."""
    return _plain("\n".join(texts({"content": message.get("content")})))


def _plain(text: str) -> str:
    return " ".join(_CONTROLS.sub("", text).split())
