"""What the rules say of each tool result, and why: the rules' statement run, its answer in words."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection

from .compactions import NEVER, Visible
from .facts import turn_moment, turn_start
from .lines import Pointer
from .policy import Kind, Policy
from .rules import FINISHED, OLD_READS, OUTPUT_SAVED, READS, READS_SAVED, SLOTLESS, VERDICTS
from .shortening import Result, short_savings
from .statements import Row
from .tokens import estimate, estimate_size


class Verdict(NamedTuple):
    """What the rules say of a tool result; ``rule`` None means that it stays, ``why`` is a key of REASONS."""

    seq: int
    call: tuple[int, int] | None
    rule: str | None
    why: str
    length: int
    size: int
    tool_name: str | None
    kind: Kind | None
    branch: int


WHOLE = ("terminal", "file_read")
"""The rules that replace a result as a whole, so that it need not be read."""
RULES = (*WHOLE, "tool_output")
"""The rules, in the order in which they judge (X.7): the first that says something is the one."""

REASONS = {
    "terminal": "output of a command, not one of the newest {slots} tool results, over {minutes} minutes old",
    "file_read": "{keep} newer reads of the same file are kept",
    "tool_output": "its turn is finished, so its short form is enough",
    "short": "its turn is finished, and it is short already",
    "error": "errors always stay",
    "pending": "the tool is still running",
    "undated": "no timestamp, so no age and no rank",
    "current_turn": "part of the current turn",
    "newest": "one of the newest {slots} tool results",
    "young": "not over {minutes} minutes old",
    "small": "replacing it would save too little",
    "no_path": "the file it read is not known",
    "newest_reads": "among the newest {keep} reads of each of its files",
    "uncovered": "newer kept reads do not cover its lines",
    "cleared": "replaced since the cache was last given up",
    "waiting": "to be replaced when the cache is cold or enough is to be freed",
    "other": "no rule is about this tool",
}
"""Why a tool result is replaced or stays."""


def verdicts(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    visible: Visible,
    *,
    last: int,
    now: int,
    turn_over: bool = False,
) -> dict[int, Verdict]:
    """Return what the rules say of each visible tool result up to position ``last``, by position.

    ``turn_over``: a new turn begins behind that position, so the one that it is in is finished.
    """
    values = _values(connection, pointer, policy, visible, last, now, turn_over)
    found = {row[0]: _verdict(row) for row in VERDICTS.rows(connection, **values)}
    if policy.range_aware:
        _keep_uncovered(found, READS.rows(connection, **values))
    if policy.clearing == "batched":
        return {seq: _as_recorded(verdict, visible.cleared.get(seq)) for seq, verdict in found.items()}
    return found


def saved(
    connection: Connection, pointer: Pointer, policy: Policy, visible: Visible, *, now: int, turn_over: bool = False
) -> int:
    """Return about how many tokens the rules save on a line; ``turn_over`` as for `verdicts`."""
    if not any(getattr(policy, rule) for rule in RULES) or (policy.clearing == "batched" and not visible.cleared):
        return 0
    if policy.range_aware or policy.clearing == "batched":
        found = verdicts(connection, pointer, policy, visible, last=pointer.head, now=now, turn_over=turn_over)
        return sum(savings(connection, pointer, policy, found).values())
    values = _values(connection, pointer, policy, visible, pointer.head, now, turn_over)
    slotless = SLOTLESS.row(connection, **values) if policy.terminal else None
    values["slot_at"], values["slot_seq"] = slotless or (None, None)
    total = _sum(OUTPUT_SAVED.row(connection, **values)) if slotless else 0
    if not policy.tool_output:
        return total + (_sum(READS_SAVED.row(connection, **values)) if policy.file_read else 0)
    old_reads = dict[int, int](OLD_READS.rows(connection, **values) if policy.file_read else ())
    finished = [
        Result(pointer.tree_id, branch, seq, name, policy.tool_kinds.get(name, kind), length, size)
        for branch, seq, name, kind, length, size in FINISHED.rows(connection, **values)
        if seq not in old_reads
    ]
    return total + sum(old_reads.values()) + sum(short_savings(connection, policy, finished).values())


def _sum(row: Row | None) -> int:
    assert row is not None
    return int(row[0])


def savings(connection: Connection, pointer: Pointer, policy: Policy, found: dict[int, Verdict]) -> dict[int, int]:
    """Return about how many tokens each replacement saves, by position; what has no shorter form is not replaced."""
    placeholders = {
        "terminal": estimate(policy.terminal_placeholder),
        "file_read": estimate(policy.file_read_placeholder),
    }
    placed = {
        seq: estimate_size(verdict.length, verdict.size) - placeholders[verdict.rule]
        for seq, verdict in found.items()
        if verdict.rule in placeholders
    }
    shortened = [
        Result(pointer.tree_id, verdict.branch, seq, verdict.tool_name, verdict.kind, verdict.length, verdict.size)
        for seq, verdict in found.items()
        if verdict.rule == "tool_output"
    ]
    return placed | short_savings(connection, policy, shortened)


def placeholder(verdict: Verdict, policy: Policy) -> str:
    """Return what stands for a tool result that is replaced as a whole."""
    return policy.terminal_placeholder if verdict.rule == "terminal" else policy.file_read_placeholder


def explanations(policy: Policy) -> dict[str, str]:
    """Return in words what each key of REASONS means under a policy."""
    minutes = f"{policy.terminal_max_age / 60_000:g}"
    values = {"keep": policy.file_read_keep, "slots": policy.terminal_keep, "minutes": minutes}
    return {why: text.format(**values) for why, text in REASONS.items()}


def _values(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    visible: Visible,
    last: int,
    now: int,
    turn_over: bool = False,
) -> dict[str, Any]:
    """Return everything that the rules' statements are given."""
    frozen = policy.judge_at == "turn"
    running, moment = NEVER, now
    if policy.protect_current_turn or policy.tool_output or frozen:
        running = last + 1 if turn_over else turn_start(connection, pointer, last)
    if frozen and not turn_over:
        began = turn_moment(connection, pointer, running)
        moment = began if began is not None and began <= now else -NEVER  # nothing is old by two clocks that disagree
    return {
        "tree_id": pointer.tree_id,
        "branch": pointer.branch,
        "start": visible.first_kept,
        "last": last,
        **_switches(policy),
        "running_from": running,
        "judged_before": running if frozen else NEVER,
        "protected_from": running if policy.protect_current_turn or frozen else NEVER,
        "old_before": moment - policy.terminal_max_age,
    }


def _as_recorded(verdict: Verdict, rule: str | None) -> Verdict:
    """Return a verdict under batched clearing: a result is replaced if a recorded clearing says so, and only then."""
    if rule is None:
        return verdict._replace(rule=None, why="waiting") if verdict.rule else verdict
    return verdict._replace(rule=rule, why="cleared")


def _verdict(row: Row) -> Verdict:
    seq, call_seq, call_position, why, length, size, tool_name, kind, branch = row
    call = None if call_seq is None else (call_seq, call_position)
    return Verdict(seq, call, why if why in RULES else None, why, length, size, tool_name, kind, branch)


def _switches(policy: Policy) -> dict[str, Any]:
    """Return the policy as values of the statement: switches as 0 or 1, placeholders by their length."""
    return {
        "kinds": json.dumps(dict(policy.tool_kinds)),
        "sniff": int(policy.identity == "sniff"),
        "adopt": int(policy.orphans == "adopt"),
        "stderr_always": int(policy.stderr_is_error == "always"),
        "stderr_nonzero": int(policy.stderr_is_error == "nonzero_exit"),
        "exit_code_is_error": int(policy.exit_code_is_error),
        "errors_take_slots": int(policy.errors_take_slots),
        "dedupe": int(policy.dedupe),
        "batch_any": int(policy.batch_rule == "any"),
        "terminal": int(policy.terminal),
        "terminal_keep": policy.terminal_keep,
        "terminal_placeholder": len(policy.terminal_placeholder),
        "file_read": int(policy.file_read),
        "file_read_keep": policy.file_read_keep,
        "file_read_placeholder": len(policy.file_read_placeholder),
        "terminal_tokens": estimate(policy.terminal_placeholder),
        "file_read_tokens": estimate(policy.file_read_placeholder),
        "min_saving": policy.min_saving,
        "tool_output": int(policy.tool_output),
        "errors_stay": int(policy.terminal or policy.file_read),
    }


def _keep_uncovered(found: dict[int, Verdict], reads: list[Row]) -> None:
    """Keep every read whose lines the newer kept reads do not cover (A1.5); a kept one covers in its turn.

    ``reads`` come newest first. Lines that were not read in one piece cover nothing, nor does a read of a finished turn
    that the tool-output rule may shorten.
    """
    kept: dict[str, list[tuple[int, int]]] = {}
    for seq, group in groupby(reads, key=lambda read: read[0]):
        read = [(path, (first or 1, last or NEVER), contiguous) for _, path, first, last, contiguous in group]
        if found[seq].rule == "file_read" and not all(_covers(kept.get(path, []), lines) for path, lines, _ in read):
            found[seq] = found[seq]._replace(rule=None, why="uncovered")
        if found[seq].rule is None:
            for path, lines, contiguous in read:
                kept.setdefault(path, []).extend([lines] if contiguous else [])


def _covers(kept: list[tuple[int, int]], lines: tuple[int, int]) -> bool:
    """Tell whether the kept ranges together hold every line of a range."""
    first, last = lines
    for low, high in sorted(kept):
        if low > first:
            return False
        first = max(first, high + 1)
        if first > last:
            return True
    return first > last
