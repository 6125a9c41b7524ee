"""``python -m benchmarks.requests FOLDER``.

Recorded conversations assembled as whole requests, turn by turn.

Before each assistant message the request is assembled as an agent would, by the policy ``turns``.
Each must be valid for the API, have its running turn whole, and begin as the one before it in the
same turn. The table says what each layer takes over all requests of a session, and what the rules
save. The program ends with 1 where anything is wrong.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from store import Context, Policy, Store
from store.context.request import Piece
from tests.refusals import refusals

from .recorded import START, Transcript, groups, largest, parser

PROMPT = "You are a coding agent. Keep the rules of the project."
POLICY = Policy.named("turns")
SHOWN = ("system", "history", "user_input", "steps", "todo_recap")
RULES = ("tool_output", "terminal", "file_read")


class Outcome(NamedTuple):
    """What the requests of a session came to.

    Tokens of each layer, and saved by each rule, summed up over all.
    """

    transcript: str
    kind: str
    requests: int
    layers: dict[str, int]
    saved: dict[str, int]
    stable: int
    violations: list[str]

    @property
    def sent(self) -> int:
        """All tokens of all requests."""
        return sum(self.layers.values())


def assembled(transcript: Transcript) -> Outcome:
    """Assemble each request of a session, in a store of its own."""
    layers: Counter[str] = Counter()
    saved: Counter[str] = Counter()
    violations: list[str] = []
    number = stable = 0
    with Store(":memory:", durability="normal") as store:
        for number, (before, now) in enumerate(_requests(store, transcript), 1):
            layers.update(now.layers)
            saved.update(now.view.stats.saved_by_rule)
            stable += now.stable_prefix_tokens
            violations += [f"request {number}: {problem}" for problem in _wrong(before, now)]
        stored = [each.message for each in store.messages(transcript.name)]
        if stored != transcript.messages[: len(stored)] or len(stored) != len(transcript.messages):
            violations.append("the raw messages are not what went in")
    return Outcome(
        transcript.name, transcript.kind, number, dict(layers), dict(saved), stable, violations
    )


def _requests(store: Store, transcript: Transcript) -> Iterator[tuple[Context | None, Context]]:
    """Yield each request with the one before it."""
    session, moment = store.create_session(transcript.name, project_root=transcript.root).id, START
    before: Context | None = None
    for group in groups(transcript.messages):
        moment = max(
            moment,
            START,
            *(each["timestamp"] for each in group if isinstance(each.get("timestamp"), int)),
        )
        if group[0].get("role") == "assistant":
            context = store.context(session, PROMPT, root="", policy=POLICY, now=moment)
            yield before, context
            before = context
        store.append(session, group, now=moment)


def _wrong(before: Context | None, now: Context) -> Iterator[str]:
    """Yield whatever is wrong with a request."""
    for problem in refusals(now.messages):
        yield f"the API refuses {problem}"
    running = {piece.seq for piece in now.pieces if piece.layer in ("user_input", "steps")}
    for entry in now.view.entries:
        if entry.seq in running and entry.rule not in (None, "repair"):
            yield f"position {entry.seq} of the running turn is not whole: {entry.rule}"
    if before and before.open_turn == now.open_turn is not None:
        was, is_now = _lasting(before), _lasting(now)
        if len(is_now) < len(was) or not all(map(_same, was, is_now)):
            yield "it does not begin as the one before it"


def _lasting(context: Context) -> list[Piece]:
    """Return what must stay while a turn runs: everything but the recap."""
    return [piece for piece in context.pieces if piece.layer != "todo_recap"]


def _same(was: Piece, now: Piece) -> bool:
    """Tell whether a message stays.

    What stands for a missing result gives way to the result when it comes.
    """
    stand_in = was.seq is None and was.message["role"] == "tool"
    awaited = stand_in and was.message["tool_call_id"] == now.message.get("tool_call_id")
    return was.message == now.message or awaited


COLUMNS = (
    "transcript",
    "kind",
    "requests",
    "sent",
    *SHOWN,
    *(f"- {rule}" for rule in RULES),
    "stable",
    "violations",
)
WIDTHS = (14, 12, 8, 11, 8, 11, 10, 11, 10, 13, 10, 11, 6, 10)


def line(outcome: Outcome) -> str:
    """Return an outcome as a line of the table."""
    cells: list[Any] = [
        outcome.transcript[-14:],
        outcome.kind,
        outcome.requests,
        f"{outcome.sent:,}",
    ]
    cells += [f"{outcome.layers.get(layer, 0):,}" for layer in SHOWN]
    cells += [f"{outcome.saved.get(rule, 0):,}" for rule in RULES]
    cells += [f"{outcome.stable / (outcome.sent or 1):.0%}", len(outcome.violations)]
    return " ".join(map(str.ljust, map(str, cells), WIDTHS)).rstrip()


def summed_up(found: Sequence[Outcome], kind: str) -> Outcome:
    """Return outcomes as one."""
    layers: Counter[str] = Counter()
    saved: Counter[str] = Counter()
    for each in found:
        layers.update(each.layers)
        saved.update(each.saved)
    requests, stable = sum(each.requests for each in found), sum(each.stable for each in found)
    problems = [problem for each in found for problem in each.violations]
    return Outcome("together", kind, requests, dict(layers), dict(saved), stable, problems)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where anything is wrong."""
    asked = parser("requests", __doc__, of="sessions of each kind", wanted=5).parse_args(arguments)
    transcripts, unread = largest(asked.folder, asked.largest, of_each_kind=True)
    found: list[Outcome] = []
    if not asked.json:
        print(f"{len(transcripts)} sessions; {unread} files are of no kind that is read")
        print(*map(str.ljust, COLUMNS, WIDTHS))
    for transcript in transcripts:
        found.append(assembled(transcript))
        if not asked.json:
            print(
                line(found[-1]),
                *(f"    {each}" for each in found[-1].violations[:10]),
                sep="\n",
                flush=True,
            )
    if asked.json:
        print(json.dumps([outcome._asdict() for outcome in found], indent=1))
    else:
        for kind in dict.fromkeys(each.kind for each in found):
            print(line(summed_up([each for each in found if each.kind == kind], kind)))
        print(line(summed_up(found, "all")))
    return int(not found or any(outcome.violations for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
