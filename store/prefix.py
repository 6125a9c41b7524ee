"""How much of a view a prompt cache still holds: the beginning that is as it was in the last recorded request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, takewhile

from sqlalchemy import Connection

from .budget import last_usage
from .compactions import Record, Standing, Visible, active, shown
from .lines import Pointer
from .policy import Policy
from .records import Entry
from .verdicts import Verdict, verdicts


def unchanged_tokens(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    known: list[Record],
    visible: Visible,
    entries: list[Entry],
    last: int,
) -> int | None:
    """Return the tokens of the entries before the first that the last recorded request did not have as it is.

    The request is the one that `record_usage` recorded last, at its position and moment, by the same policy.
    """
    usage = last_usage(connection, pointer, last)
    if usage is None:
        return None
    recorded = [each for each in known if (each.head, each.created_at) <= (usage.seq, usage.at)]
    then = shown(connection, pointer, active(recorded))
    begun = _beginning(policy, visible, then, usage.seq)
    there = list(takewhile(lambda entry: _was_there(entry, begun), entries))
    judged: dict[int, Verdict] = {}
    if any(entry.message.get("role") == "tool" for entry in there):
        judged = verdicts(connection, pointer, policy, then, last=usage.seq, now=usage.at)
    rules = {seq: verdict.rule for seq, verdict in judged.items()}
    return sum(entry.tokens for entry in takewhile(lambda entry: _is_same(entry, rules), there))


def _beginning(policy: Policy, now: Visible, then: Visible, last: int) -> set[Standing | int]:
    """Return the positions and summaries that a view begins with as a request about positions up to ``last`` did."""
    pairs = zip(_order(policy, now, last), _order(policy, then, last), strict=False)
    return {each for each, before in takewhile(lambda pair: pair[0] == pair[1], pairs)}


def _order(policy: Policy, visible: Visible, last: int) -> Iterator[Standing | int]:
    """Yield what is visible in the order in which it is sent; merged summaries stand in the first system message."""
    merged = policy.summary_role == "merge"
    leading = (visible.summaries, visible.pinned) if merged else (visible.pinned, visible.summaries)
    return chain(*leading, range(visible.first_kept, last + 1))


def _was_there(entry: Entry, begun: set[Standing | int]) -> bool:
    """Tell whether an entry, however written, is of what a view and a request begin with."""
    if entry.seq is not None:
        return entry.seq in begun
    summaries = (each for each in begun if isinstance(each, Standing))
    return entry.rule == "repair" or any(entry.reason.endswith(f"compaction {each.compaction}") for each in summaries)


def _is_same(entry: Entry, rules: dict[int, str | None]) -> bool:
    """Tell whether an entry that was there is as it was, by the rules that replaced results then.

    One whose turn was finished and that is whole is short already.
    """
    if entry.seq is None or entry.rule == "summary":
        return True
    was, rule = rules.get(entry.seq), None if entry.rule == "repair" else entry.rule
    return was == rule or (was == "tool_output" and rule is None)
