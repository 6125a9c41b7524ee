"""A recorded session with its moments, and with what its model said again.

A string that the model says was last told by somebody else, earlier. Every request between the
two had to have it in sight, else the model could not have said it; unless that lies too far ahead
to have been of use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from store.tokens import count_message_tokens, estimate

from ..recorded import START, Message, Transcript, groups
from .strings import String, lines, repeated, strings, texts

STEP = 20_000
"""Ms that a step takes where a recording does not say when it was."""
AHEAD = 60
"""Messages of a recorded future that count as what a request needs."""
RARE = 0.1
"""The share of the sessions up to which a plain word tells one from another."""
PINNED = ("system", "developer")

Positions = dict[String, list[int]]


class Reuse(NamedTuple):
    """That the model says a string at one index which others told last at another."""

    said: int
    told: int
    string: String


class Recording(NamedTuple):
    """A session as it was recorded; ``told`` has the indexes, rising, at which a string is told."""

    transcript: Transcript
    tokens: list[int]
    moments: list[int]
    told: Positions
    reused: list[Reuse]

    @property
    def messages(self) -> list[Message]:
        """What was said, in order; its indexes are from 0, positions in a store from 1."""
        return self.transcript.messages

    @property
    def name(self) -> str:
        """The session's name, in short."""
        return self.transcript.name[-12:]

    def needed(self, index: int) -> list[String]:
        """Return what the request needs that a message answers: each string once, in order."""
        first = bisect_left(self.reused, index, key=_said)
        behind = bisect_left(self.reused, index + AHEAD, key=_said)
        ahead = self.reused[first:behind]
        return [*dict.fromkeys(each.string for each in ahead if each.told < index)]

    def reused_at(self, index: int) -> list[Reuse]:
        """Return what the message at an index says again."""
        first = bisect_left(self.reused, index, key=_said)
        return self.reused[first : bisect_left(self.reused, index + 1, key=_said)]

    def told_before(self, string: String, index: int) -> list[int]:
        """Return the indexes before another one at which a string is told."""
        where = self.told.get(_sought(string), [])
        return where[: bisect_left(where, index)]

    def roles(self, before: int) -> list[str]:
        """Return the roles of the messages before an index."""
        return [message["role"] for message in self.messages[:before]]

    def pinned(self, before: int) -> set[int]:
        """Return the indexes of the messages before another one that no policy leaves out."""
        return {index for index, role in enumerate(self.roles(before)) if role in PINNED}

    def size(self, indexes: Sequence[int] | set[int]) -> int:
        """Return the tokens of some messages together."""
        return sum(self.tokens[index] for index in indexes)

    def steps(self) -> Iterator[tuple[int, list[Message]]]:
        """Yield what was said at once, with the index of its first message."""
        index = 0
        for group in groups(self.messages):
            yield index, group
            index += len(group)


def recorded(transcript: Transcript, common: frozenset[str]) -> Recording:
    """Return a session as it can be measured; ``common`` are words that tell nothing."""
    told = _told(transcript, common)
    return Recording(
        transcript=transcript,
        tokens=[count_message_tokens(message, estimate) for message in transcript.messages],
        moments=[*_moments(transcript.messages)],
        told=told,
        reused=[*_reused(transcript, told)],
    )


def common_words(transcripts: Sequence[Transcript]) -> frozenset[str]:
    """Return the plain words that are in too many of some sessions to tell one from another."""
    counts = Counter(word for transcript in transcripts for word in _words(transcript))
    most = max(1, RARE * len(transcripts))
    return frozenset(word for word, sessions in counts.items() if sessions > most)


def bare(text: str, root: str | None) -> str:
    """Return a text with the root and all below it as they are seen from there.

    A model is told its root before each request, so that its name is nothing to remember.
    """
    if not root:
        return text
    folder = root.rstrip("/\\")
    return text.replace(f"{folder}/", "").replace(folder, ".")


def _words(transcript: Transcript) -> set[str]:
    said = (text for message in transcript.messages for text in texts(message))
    found = (string for text in said for string in strings(text))
    return {string.text for string in found if string.kind == "word"}


def _moments(messages: list[Message]) -> Iterator[int]:
    """Yield when each message was said (ms), never earlier than the one before."""
    now = START
    before = ""
    for message in messages:
        at, role = message.get("timestamp"), message["role"]
        if isinstance(at, int):
            now = max(now, at)
        elif not role == before == "tool":
            now += STEP
        before = role
        yield now


def _told(transcript: Transcript, common: frozenset[str]) -> Positions:
    """Return where each string is told."""
    found: Positions = defaultdict(list)
    for index, message in enumerate(transcript.messages):
        for string in _in_message(message, transcript.root):
            if string.kind != "word" or string.text not in common:
                found[string].append(index)
    return found


def _in_message(message: Message, root: str | None) -> set[String]:
    found: set[String] = set()
    for text in texts(message):
        seen = bare(text, root)
        found |= strings(seen)
        found |= {String("line", line) for line in lines(seen)}
    return found


def _reused(transcript: Transcript, told: Positions) -> Iterator[Reuse]:
    """Yield what the model says again, in order; what it has found out by itself is told once."""
    by_others: dict[String, int] = {}
    for index, message in enumerate(transcript.messages):
        if message["role"] != "assistant":
            by_others |= dict.fromkeys(_in_message(message, transcript.root), index)
            continue
        for string in sorted(_said_again(message, transcript.root)):
            sought = _sought(string)
            first, *_ = told.get(sought, [index])
            last = by_others.get(sought, first)
            if first < index:
                yield Reuse(index, max(first, last), string)


def _said_again(message: Message, root: str | None) -> set[String]:
    """Return what a message of the model may have from before; of lines what an edit repeats."""
    found = {String(kind, bare(text, root)) for kind, text in repeated(message)}
    for text in texts(message):
        found |= strings(bare(text, root))
    return found


def _said(reuse: Reuse) -> int:
    return reuse.said


def _sought(string: String) -> String:
    """Return what to look for: a command may stand in any line."""
    return String("line", string.text) if string.kind == "command" else string
