"""How much of a view a prompt cache still holds: the beginning that is as it was in the last recorded request."""

from __future__ import annotations

from itertools import takewhile

from sqlalchemy import Connection

from .budget import last_usage
from .compactions import Record, Visible, active, shown
from .lines import Pointer
from .policy import Policy
from .records import Entry
from .verdicts import Verdict, verdicts


def unchanged_tokens(
    connection: Connection, pointer: Pointer, policy: Policy, known: list[Record], entries: list[Entry], last: int
) -> int | None:
    """Return the tokens of the entries before the first that the last recorded request did not have as it is.

    The request is the one that `record_usage` recorded last, at its position and moment, by the same policy.
    """
    usage = last_usage(connection, pointer, last)
    if usage is None:
        return None
    recorded = [record for record in known if record.head <= usage.seq and record.created_at <= usage.at]
    then = shown(connection, pointer, active(recorded))
    there = list(takewhile(lambda entry: _was_there(entry, then, usage.seq), entries))
    judged: dict[int, Verdict] = {}
    if any(entry.message.get("role") == "tool" for entry in there):
        judged = verdicts(connection, pointer, policy, then, last=usage.seq, now=usage.at)
    rules = {seq: verdict.rule for seq, verdict in judged.items()}
    return sum(entry.tokens for entry in takewhile(lambda entry: _is_same(entry, rules), there))


def _was_there(entry: Entry, then: Visible, last: int) -> bool:
    """Tell whether an entry, however written, was in a request about positions up to ``last``."""
    if entry.rule == "summary":
        return any(entry.reason.endswith(f"compaction {each.compaction}") for each in then.summaries)
    return entry.seq is None or entry.seq in then.pinned or then.first_kept <= entry.seq <= last


def _is_same(entry: Entry, rules: dict[int, str | None]) -> bool:
    """Tell whether an entry that was there is as it was, by the rules that replaced results then.

    One whose turn was finished and that is whole is short already.
    """
    if entry.seq is None or entry.rule == "summary":
        return True
    was, rule = rules.get(entry.seq), None if entry.rule == "repair" else entry.rule
    return was == rule or (was == "tool_output" and rule is None)
