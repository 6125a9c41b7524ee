"""``python -m benchmarks.replay FOLDER``.

Recorded conversations told again, step by step, under every ready policy.

Before each assistant message a request is made, as a program would make it: check, compact, build
the view, record its usage. Whatever a policy promises is looked at each time, from outside: by the
raw messages, the strictest reading of a chat API and facts found without the store. The program
ends with 1 where anything is wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from store import Compaction, Entry, Policy, Store, SummaryRequest, View
from store.summaries import Summarizer
from store.tokens import count_message_tokens, estimate
from tests.refusals import refusals

from .facts import Fact, due, facts, is_told, told
from .recorded import START, Message, Transcript, groups, largest, parser

LARGE, SMALL = 200_000, 8_000
"""Tokens of a usual window, and of one that the recorded conversations outgrow."""
ALWAYS_SHOWN = ("system", "developer")
OVER = ("turn", "summaries", "kept", "late", "held")
"""Why a request is larger than its window: its current turn and the system messages are.

With the summaries they are;
with what the policy keeps they are; no trigger fired; a compaction failed or was put off."""


class Variant(NamedTuple):
    """A policy under a name, the window of its model, and what writes its summaries.

    A summarizer of None is the extractive one.
    """

    name: str
    policy: Policy
    window: int = LARGE
    summarizer: Summarizer | None = None


class Outcome(NamedTuple):
    """What a replay came to.

    Tokens are estimates, ``facts`` and ``due`` are (told, all) over all compactions.
    """

    transcript: str
    policy: str
    requests: int
    tokens_raw: int
    tokens_sent: int
    largest: int
    over: dict[str, int]
    compactions: dict[str, int]
    clearings: int
    hidden: int
    facts: tuple[int, int]
    due: tuple[int, int]
    violations: list[str]
    cpu: float


def poor(request: SummaryRequest) -> str:
    """Summarise as badly as models do.

    Vaguely, at length, with headings of its own, or not at all.
    """
    answers = (
        "We looked at some files and made some changes.",
        "The user asked for help, and then, after some thought, the assistant helped. " * 100,
        (
            "Files touched:\n- everything.py (file_read)\n"
            "Commands run:\n- rm -rf / (exit 0)\n\nAll is well."
        ),
        " \n",
    )
    return answers[request.last % len(answers)]


def variants() -> list[Variant]:
    """Return the ready policies as they are, then under harder conditions.

    These are small windows, batched clearing, and a poor model.
    """
    named, small, batched = (
        Policy.named,
        {"context_window": SMALL},
        {"clearing": "batched", "clear_min_freed": 2_000},
    )
    ratio, turns = (
        partial(named, "token_ratio", **small),
        partial(named, "turns", keep_turns=2, **small),
    )
    ready = [
        Variant(name, named(name))
        for name in ("default", "message_count", "token_ratio", "turns", "raw")
    ]
    return [
        *ready,
        Variant("default, batched", named("default", **batched)),
        Variant("token_ratio 8k", ratio(), SMALL),
        Variant("token_ratio 8k, groups", ratio(boundary="group"), SMALL),
        Variant("token_ratio 8k, batched", ratio(**batched), SMALL),
        Variant("token_ratio 8k, within turn", ratio(within_turn=True), SMALL),
        Variant("turns 8k", turns(), SMALL),
        Variant("message_count, poor", named("message_count"), LARGE, poor),
        Variant("token_ratio 8k, poor", ratio(), SMALL, poor),
        Variant("turns 8k, poor", turns(), SMALL, poor),
    ]  # fmt: skip


class Replay:
    """One session told again under one policy, in a private store."""

    def __init__(self, store: Store, transcript: Transcript, variant: Variant) -> None:
        self._store, self._variant, self._root = store, variant, transcript.root
        self._id = store.create_session(project_root=transcript.root).id
        self._name = transcript.name
        self._messages: list[Message] = []
        self._now = START
        self._requests = self._raw = self._raw_sent = self._sent = self._largest = 0
        self._over: Counter[str] = Counter()
        self._seen = 0
        self._facts = self._due = (0, 0)
        self._violations: list[str] = []
        self._cpu = 0.0

    def tell(self, group: list[Message]) -> None:
        """Append what comes at once, an answer after the request that it answers."""
        moments = [each["timestamp"] for each in group if isinstance(each.get("timestamp"), int)]
        self._now = max(self._now, *moments, START)
        tokens = sum(count_message_tokens(message, estimate) for message in group)
        if group[0]["role"] == "assistant":
            self.request(tokens)
        with self._timed():
            self._store.append(self._id, group, now=self._now)
        self._messages += group
        self._raw += tokens

    def request(self, output: int = 0) -> None:
        """Make a request and look at it."""
        policy, window, summarizer = self._variant[1:]
        options: dict[str, Any] = {"max_tokens": window, "now": self._now}
        after_tool = bool(self._messages) and self._messages[-1]["role"] == "tool"
        reason = "tool_execution" if after_tool else "llm_call"
        with self._timed():
            self._store.compact_if_needed(self._id, policy, summarizer, reason, **options)
            view = self._store.view(self._id, policy, now=self._now)
        self._look(view)
        with self._timed():
            self._store.record_usage(
                self._id, input=view.stats.tokens, output=output, now=self._now
            )
        self._requests += 1
        self._raw_sent += self._raw
        self._sent += view.stats.tokens
        self._largest = max(self._largest, view.stats.tokens)

    def outcome(self) -> Outcome:
        """Return the totals, after a last look at what is stored."""
        stored = [each.message for each in self._store.messages(self._id)]
        if stored != self._messages:
            self._wrong("the raw messages are not what went in")
        made = self._store.compactions(self._id)
        return Outcome(
            transcript=self._name,
            policy=self._variant.name,
            requests=self._requests,
            tokens_raw=self._raw_sent,
            tokens_sent=self._sent,
            largest=self._largest,
            over=dict(self._over),
            compactions=dict(Counter(each.outcome for each in made if each.kind == "summary")),
            clearings=sum(each.kind == "clear" for each in made),
            hidden=len(self._hidden()),
            facts=self._facts,
            due=self._due,
            violations=self._violations,
            cpu=self._cpu,
        )

    def _look(self, view: View) -> None:
        """Look for whatever is wrong with a request."""
        for problem in refusals(view.messages):
            self._wrong(f"the API refuses {problem}")
        self._look_for_messages(view)
        self._look_at_contents(view)
        self._look_at_tokens(view)
        made = self._store.compactions(self._id)
        summed_up = sum(each.kind == "summary" and each.outcome == "applied" for each in made)
        if summed_up != self._seen:
            self._seen = summed_up
            self._look_for_facts(view)

    def _look_for_messages(self, view: View) -> None:
        """Look whether each message is either in the view, once, or in a recorded range."""
        shown = Counter(entry.seq for entry in view.entries if entry.seq is not None)
        hidden = self._hidden()
        positions = range(1, len(self._messages) + 1)
        lost = [seq for seq in positions if seq not in shown and seq not in hidden]
        twice = [seq for seq in positions if shown[seq] + (seq in hidden) > 1]
        if lost:
            self._wrong(f"neither shown nor hidden: {lost}")
        if twice:
            self._wrong(f"shown twice, or shown and hidden: {twice}")

    def _look_at_contents(self, view: View) -> None:
        """Look whether what no rule replaced is as it went in, the question above all."""
        questions = [
            seq for seq, message in enumerate(self._messages, 1) if message["role"] == "user"
        ]
        for entry, sent in zip(view.entries, view.messages, strict=True):
            raw = self._messages[entry.seq - 1] if entry.seq else None
            replaced = entry.rule not in (None, "repair")
            if raw and entry.message != (
                raw | {"content": entry.message.get("content")} if replaced else raw
            ):
                self._wrong(f"position {entry.seq} is not as it went in")
            if (
                entry.seq
                and isinstance(entry.message.get("content"), str)
                and sent["content"] != entry.message["content"]
            ):
                self._wrong(f"position {entry.seq} is not sent as it is shown")
            if questions and entry.seq == questions[-1] and entry.rule is None:
                questions.clear()
        if questions:
            self._wrong(f"the latest question, {questions[-1]}, is not whole")

    def _look_at_tokens(self, view: View) -> None:
        """Look whether a check says what the view has, where nothing was made up.

        Find why a window is over-full.
        """
        policy, window, _ = self._variant[1:]
        check = self._store.check(self._id, policy, max_tokens=window, now=self._now)
        rules = Counter(entry.rule for entry in view.entries)
        rounding = sum(count for rule, count in rules.items() if rule not in (None, "summary"))
        if abs(check.tokens - view.stats.tokens) > rounding and not rules["repair"]:
            self._wrong(f"a check says {check.tokens} tokens, the view has {view.stats.tokens}")
        if view.stats.tokens > window:
            self._over[self._why_over(view, window, check.reason)] += 1

    def _why_over(self, view: View, window: int, reason: str) -> str:
        question = max(
            (seq for seq, each in enumerate(self._messages, 1) if each["role"] == "user"), default=1
        )
        stays = sum(entry.tokens for entry in view.entries if _stays(entry, question))
        if stays > window:
            return "turn"
        if stays + sum(entry.tokens for entry in view.entries if entry.rule == "summary") > window:
            return "summaries"
        if "nothing to compact" in reason:
            return "kept"
        return "late" if reason.startswith("below") else "held"

    def _look_for_facts(self, view: View) -> None:
        """Look whether what the hidden messages did is told, as far as there is room."""
        hidden = sorted(self._hidden())
        known = facts((self._messages[seq - 1] for seq in hidden), self._root)
        summed_up = self._summed_up()
        covered = facts((self._messages[seq - 1] for seq in hidden if seq <= summed_up), self._root)
        owed = due(covered, self._variant.policy.facts_chars)
        items = told(entry.message["content"] for entry in view.entries if entry.rule == "summary")
        kept = {fact for fact in known if is_told(fact, items)}
        self._facts = _sums(self._facts, (len(kept), len(known)))
        self._due = _sums(self._due, (len(kept & set(owed)), len(owed)))
        for fact in owed:
            if fact not in kept:
                self._wrong(f"not told: {_short(fact)}")

    def _hidden(self) -> set[int]:
        """Return the positions that the records hide, by the ranges that they say."""
        made = self._store.compactions(self._id)
        applied = (each for each in made if each.outcome == "applied" and each.hidden)
        positions = set().union(*map(_hidden_by, applied))
        return {seq for seq in positions if self._messages[seq - 1]["role"] not in ALWAYS_SHOWN}

    def _summed_up(self) -> int:
        """Return up to where there is a summary, or facts alone.

        What goes by a hard limit may have neither yet.
        """
        made = (
            each
            for each in self._store.compactions(self._id)
            if each.outcome == "applied" and each.summary is not None
        )
        return max((each.hidden[1] for each in made if each.hidden), default=0)

    def _wrong(self, problem: str) -> None:
        self._violations.append(f"request {self._requests + 1}: {problem}")

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.process_time()
        yield
        self._cpu += time.process_time() - began


def _hidden_by(made: Compaction) -> set[int]:
    """Return the positions that a record says it hides; what it pins stays."""
    first, last = made.hidden or (1, 0)
    return {*range(first, last + 1)} - {*made.pinned}


def _stays(entry: Entry, question: int) -> bool:
    """Tell whether an entry cannot be hidden whatever a policy says."""
    return entry.rule != "summary" and (
        (entry.seq or 0) >= question or entry.message["role"] in ALWAYS_SHOWN
    )


def _sums(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return first[0] + second[0], first[1] + second[1]


def _short(fact: Fact) -> str:
    return f"{fact.kind} {fact.text[:80]!r}" + (
        "" if fact.exit_code is None else f" (exit {fact.exit_code})"
    )


def replayed(transcript: Transcript, variant: Variant) -> Outcome:
    """Tell a session again under a policy, in a store of its own that must be sound afterwards."""
    with Store(":memory:", durability="normal") as store:
        replay = Replay(store, transcript, variant)
        for group in groups(transcript.messages):
            replay.tell(group)
        outcome = replay.outcome()
        outcome.violations.extend(f"{each.where}: {each.problem}" for each in store.verify())
    return outcome


COLUMNS = (
    "transcript", "policy", "requests", "raw", "sent", "largest", "over window", "compactions",
    "clearings", "hidden", "facts", "due", "violations", "CPU s",
)  # fmt: skip
WIDTHS = (12, 24, 8, 10, 10, 8, 14, 14, 9, 7, 9, 9, 10, 6)


def line(outcome: Outcome) -> str:
    """Return an outcome as a line of the table; compactions are applied/failed/rejected."""
    outcomes = ("applied", "failed", "rejected")
    cells = (
        outcome.transcript[-12:], outcome.policy, outcome.requests, f"{outcome.tokens_raw:,}",
        f"{outcome.tokens_sent:,}", f"{outcome.largest:,}",
        " ".join(f"{outcome.over[why]} {why}" for why in OVER if why in outcome.over) or "-",
        "/".join(str(outcome.compactions.get(each, 0)) for each in outcomes),
        outcome.clearings, outcome.hidden,
        "/".join(map(str, outcome.facts)), "/".join(map(str, outcome.due)),
        len(outcome.violations), f"{outcome.cpu:.2f}",
    )  # fmt: skip
    return " ".join(map(str.ljust, map(str, cells), WIDTHS)).rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where anything is wrong."""
    asked = parser("replay", __doc__, of="sessions", wanted=10).parse_args(arguments)
    transcripts, unread = largest(asked.folder, asked.largest)
    found: list[Outcome] = []
    if not asked.json:
        print(f"{len(transcripts)} sessions; {unread} files are of no kind that is read")
        print(*map(str.ljust, COLUMNS, WIDTHS))
    for transcript in transcripts:
        for variant in variants():
            found.append(replayed(transcript, variant))
            if not asked.json:
                print(
                    line(found[-1]),
                    *(f"    {each}" for each in found[-1].violations[:10]),
                    sep="\n",
                    flush=True,
                )
    if asked.json:
        print(json.dumps([outcome._asdict() for outcome in found], indent=1))
    return int(not found or any(outcome.violations for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
