"""What is still told after a compaction at the beginning of a turn: reuse, and facts of the range.

The facts are what a person would miss first: what the user said, whole; the last answer, whole; and
what each command came to, by the last line of its newest output that has words in it. A summarizer
of a host, or a model, is judged by the same, by probes of what comes next, by names that stand
nowhere in what it read, and by its price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from store import Compaction, Policy, Store, SummaryRequest, View
from store.summaries import Summarizer
from store.tokens import estimate

from ..recorded import Message
from .pricing import ANTHROPIC, PROVIDERS, Request, bill
from .probes import (
    COMPARED,
    PROGRAM_TALK,
    all_texts,
    foreign_names,
    is_told,
    outcomes,
    plain,
    probes,
)
from .recording import Recording
from .replay import sight
from .reuse import Sight, Tally, in_whole, look
from .strings import String, texts

USER, ANSWER, OUTCOME = "user texts", "last answers", "outcomes"
SHORT, LONG = "< 15k", "≥ 15k"
LONG_FROM = 15_000
"""Tokens of a hidden range from which on it is counted as a long one."""
WORTH_HIDING = 3_000
"""Tokens that a range has to have to be hidden here."""
POINTS = 3
"""At most so many places in a session."""


@dataclass(slots=True)
class Told:
    """What compactions came to: tried, applied, tokens hidden and of views, reuse, facts told.

    ``facts`` are all of them; both are counted by what they are and by the length of the range.
    ``asked`` and ``answered`` count probes by their questions; ``names`` of summaries, and
    ``foreign`` ones among them; ``spent`` is the price of summaries, ``bill`` that of sessions.
    """

    tried: int = 0
    applied: int = 0
    hidden: int = 0
    tokens: int = 0
    reuse: Tally = field(default_factory=Tally)
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    facts: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    written: int = 0
    names: int = 0
    foreign: int = 0
    spent: float = 0.0
    bill: float = 0.0

    def add(self, other: Told) -> None:
        """Count what others came to."""
        self.tried += other.tried
        self.applied += other.applied
        self.hidden += other.hidden
        self.tokens += other.tokens
        self.reuse.add(other.reuse)
        self.told.update(other.told)
        self.facts.update(other.facts)
        self.asked.update(other.asked)
        self.answered.update(other.answered)
        self.written += other.written
        self.names += other.names
        self.foreign += other.foreign
        self.spent += other.spent
        self.bill += other.bill

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


class Priced:
    """A summarizer whose price is counted: its prompt as plain input, its answer as output."""

    def __init__(self, summarizer: Summarizer) -> None:
        self._summarizer = summarizer
        self.spent = 0.0

    def __call__(self, request: SummaryRequest) -> Any:
        """Return the summary."""
        made = self._summarizer(request)
        text = made if isinstance(made, str) else str(getattr(made, "body", ""))
        self.spent += estimate(request.prompt) + PROVIDERS["with output"].output * estimate(text)
        return made


def compacted(recording: Recording, policy: Policy, summarizer: Summarizer | None = None) -> Told:
    """Compact a session at the beginnings of some turns, each in a fork of its own.

    The summarizer None is the extractive one, which asks no model and is free.
    """
    whole = bill(everything(recording), ANTHROPIC)
    found: list[Told] = []
    with Store(":memory:", durability="normal") as store:
        session = store.create_session(project_root=recording.transcript.root).id
        for index, group in recording.steps():
            store.append(session, group, now=recording.moments[index])
        for index in points(recording):
            now = recording.moments[index]
            fork = store.fork(session, at=index).id
            priced = Priced(summarizer) if summarizer else None
            done = store.compact(fork, policy, priced, now=now)
            view = store.view(fork, policy, now=now)
            told = _look(recording, index, done, view)
            told.spent, told.bill = priced.spent if priced else 0.0, whole
            found.append(told)
    return together(found)


def everything(recording: Recording) -> Iterator[Request]:
    """Yield the requests of a session that sends everything."""
    for index, role in enumerate(recording.roles(len(recording.messages))):
        if role == "assistant":
            sizes = tuple(recording.tokens[:index])
            yield Request(recording.moments[index], tuple(range(index)), sizes)


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
    for text in dict.fromkeys(filter(None, outcomes(messages).values())):
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
    hidden = [recording.messages[place] for place in places]
    _look_for_facts(found, hidden, recording, view)
    _probe(found, hidden, recording, index, view)
    found.written = estimate(done.summary or "")
    root = recording.transcript.root
    found.names, found.foreign = foreign_names(done.summary or "", hidden, root)
    return found


def _probe(into: Told, hidden: list[Message], recording: Recording, index: int, view: View) -> None:
    """Count the questions that hidden messages can answer, and those that a view answers."""
    text = all_texts(view.messages)
    for question, answer in probes(recording, index, hidden):
        into.asked[question] += 1
        into.answered[question] += is_told(answer, text, recording.transcript.root)


def _look_for_facts(into: Told, hidden: list[Message], recording: Recording, view: View) -> None:
    """Count the facts of hidden messages, and which of them the summaries of a view tell."""
    text, root = plain(_summaries(view)), recording.transcript.root
    length = LONG if into.hidden >= LONG_FROM else SHORT
    for kind, fact in facts(hidden):
        into.facts[kind, length] += 1
        into.told[kind, length] += is_told(fact, text, root)


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


def _of_user(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what a person said, without what programs put in."""
    for message in messages:
        text = "\n".join(texts(message)) if message["role"] == "user" else ""
        spoken = plain(PROGRAM_TALK.sub("", text))
        if spoken:
            yield spoken


def _content(message: Message) -> str:
    """Return the text of a message in one line, without its calls."""
    return plain("\n".join(texts({"content": message.get("content")})))
