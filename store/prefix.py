"""How much of a view a prompt cache still holds: the beginning that is as it was in the last recorded request."""

from __future__ import annotations

from sqlalchemy import Connection

from .budget import last_usage
from .compactions import Record, active, shown
from .lines import Pointer
from .policy import Policy
from .records import Entry
from .verdicts import verdicts


def unchanged_tokens(
    connection: Connection, pointer: Pointer, policy: Policy, known: list[Record], entries: list[Entry], last: int
) -> int | None:
    """Return the tokens of the entries before the first that the last recorded request did not have as it is.

    The request is the one that `record_usage` recorded last, at its position and moment, by the same policy.
    """
    usage = last_usage(connection, pointer, last)
    if usage is None:
        return None
    then = shown(active([record for record in known if record.head <= usage.seq and record.created_at <= usage.at]))
    judged = verdicts(connection, pointer, policy, then, last=usage.seq, now=usage.at)
    summaries = {each.compaction for each in then.summaries}
    total = 0
    for entry in entries:
        if entry.rule == "summary":
            same = any(entry.reason.endswith(f"compaction {number}") for number in summaries)
        elif entry.seq is None:
            same = True
        else:
            was = judged.get(entry.seq)
            shown_then = entry.seq in then.pinned or then.first_kept <= entry.seq <= usage.seq
            same = shown_then and _same(was.rule if was else None, entry.rule)
        if not same:
            break
        total += entry.tokens
    return total


def _same(was: str | None, rule: str | None) -> bool:
    """Tell whether a rule leaves a result as it was; one whose turn was finished and that is whole is short already."""
    rule = None if rule == "repair" else rule
    return was == rule or (was == "tool_output" and rule is None)
