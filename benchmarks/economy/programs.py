"""Rules by which other programs clear results of tools, told as data, and sessions under them.

They are as their sources and descriptions have them, each with its own defaults. What is cleared
stays cleared. A program has no way back but its own tools, so what it has cleared and its model
needs again is priced as a call of recall is: one more request, and the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from store import Entry
from store.tokens import count_message_tokens, estimate

from ..recorded import Message
from .pricing import MINUTE, Request
from .recording import Recording


class Program(NamedTuple):
    """When a program clears results, which of them stay, and what it puts in place of the others.

    It clears after a pause of ``idle`` ms, in a request of more than ``above`` tokens, at the
    beginning of a turn only if ``at_turn``, and if that many tokens are freed (``least``). What
    stays are the newest ``keep_results``, the newest up to ``keep_tokens``, and all of the newest
    ``keep_turns``.
    """

    placeholder: str
    idle: int = 0
    above: int = 0
    at_turn: bool = False
    least: int = 1
    keep_results: int = 0
    keep_tokens: int = 0
    keep_turns: int = 0


CLEARED = "[Old tool result content cleared]"
IDLE_CLEARING = Program(CLEARED, idle=60 * MINUTE, keep_results=5)
PROGRAMS = {
    "Claude Code, idle": IDLE_CLEARING,
    "Claude Code, idle 5 min": IDLE_CLEARING._replace(idle=5 * MINUTE),
    "Anthropic clear_tool_uses": Program("[cleared]", above=100_000, keep_results=3),
    "opencode prune": Program(
        CLEARED, at_turn=True, least=20_001, keep_tokens=40_000, keep_turns=2
    ),
    "Gemini CLI masking": Program("[masked]", least=30_001, keep_tokens=50_000),
    "masking, 10 newest": Program("Old environment output: (omitted)", keep_results=10),
}
"""The programs and APIs that are compared, by the names of their rows."""


class SentMessage(NamedTuple):
    """A message of a request: its position, as it is sent, and its tokens."""

    seq: int
    message: Message
    tokens: int


class Sent(NamedTuple):
    """A request: its messages as they are sent, each with its position; what was done before it."""

    messages: Sequence[Message]
    entries: Sequence[SentMessage | Entry]
    done: str | None


class ProgramSession:
    """A recorded session under the rules of a program, up to its newest request."""

    recall = None

    def __init__(self, program: Program, recording: Recording) -> None:
        self._program, self._recording = program, recording
        self._shown: list[SentMessage] = []
        self._cleared: set[int] = set()
        self._last_request: int | None = None
        self.done: Counter[str] = Counter()

    @property
    def carried_results(self) -> int:
        """The number of newest results that a clearing leaves."""
        return self._program.keep_results

    def append(self, group: list[Message], _now: int) -> None:
        """Take what was said at once."""
        for place, message in enumerate(group, start=len(self._shown)):
            size = self._recording.tokens[place]
            self._shown.append(SentMessage(place + 1, message, size))

    def send(self, now: int) -> Sent:
        """Return a request now, after the clearing that the program makes before it."""
        done = "clear" if self._clear(now) else None
        entries = self._shown.copy()
        return Sent([each.message for each in entries], entries, done)

    def record_usage(self, request: Request, cached: int | None) -> None:
        """Take what a request came to: the rules of programs do not ask."""

    def _clear(self, now: int) -> bool:
        old = [*self._find_old()] if self._is_due(now) else []
        freed = sum(self._shown[place].tokens for place in old)
        self._last_request = now
        if not old or freed < self._program.least:
            return False
        for place in old:
            message = {**self._shown[place].message, "content": self._program.placeholder}
            size = count_message_tokens(message, estimate)
            self._shown[place] = SentMessage(place + 1, message, size)
        self._cleared.update(old)
        self.done["clear"] += 1
        return True

    def _is_due(self, now: int) -> bool:
        program, before = self._program, self._last_request
        is_idle = not program.idle or (before is not None and now - before >= program.idle)
        is_turn = not program.at_turn or self._shown[-1].message["role"] == "user"
        return is_idle and is_turn and sum(each.tokens for each in self._shown) > program.above

    def _find_old(self) -> Iterator[int]:
        """Yield the places of the results that are not kept and not cleared yet, newest first."""
        results = tokens = turns = 0
        for place in reversed(range(len(self._shown))):
            role = self._shown[place].message["role"]
            turns += role == "user"
            if role != "tool" or place in self._cleared:
                continue
            results += 1
            if turns < self._program.keep_turns:
                continue
            tokens += self._shown[place].tokens
            if results > self._program.keep_results and tokens > self._program.keep_tokens:
                yield place
