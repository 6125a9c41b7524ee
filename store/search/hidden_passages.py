"""Recall: find messages that a view hides, and those that rules cleared or shortened.

A query has names or words. Each finds the messages that contain it, and rarer ones count more. A
passage is a whole group, a single message or a call with all its results, since a result says
little without its call. So a visible call with a hidden result is found too: the placeholder of a
cleared result names a file or a command, and that name recalls the result. A call about a name
counts more than a mention of it, and a call that reads it counts most.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from sqlalchemy import Connection, select

from ..clock import Now, require_moment
from ..database import Statement, message_facts
from ..errors import InvalidValue, quote_value
from ..history import Line, Segment, lines, load_calls, load_tool_kinds, raw_messages
from ..messages import Message, fold_text, join_message_texts
from ..policy import Policy
from ..records import Passage
from ..text import ELLIPSES, ELLIPSIS, JsonFields
from ..tokens import estimate
from ..tools import find_kind_name
from ..view import build, describe_target, rules
from .documents import MessageKey, list_trees, load_documents_messages
from .hits import Search
from .index_state import is_index_behind, is_search_on
from .query import MOST_HITS, build_query
from .scope import Scope
from .terms import Term, cut_excerpt, has_term, parse_terms

AGENT_POLICY = Policy.named("agent")
RECALL_BUDGET = 6_000
"""Tokens of all passages together: enough for the usual read of a file."""
HIDDEN_REASON = "hidden"
PASSAGE_BATCH = 8
"""Passages that are read at once."""
LEAST_SHOWN_LENGTH = 80
"""Code points that are shown at least of a message that does not fit."""

MOST_PASSAGES = 100
"""The best passages, which are tried for the budget."""
MENTION, ABOUT, READ_CALL = 1, 2, 3
"""The weights of a term in a mention, in a call about it, and in a call that reads it."""

LINE_ROLES = Statement(
    select(message_facts.c.seq, message_facts.c.role)
    .where(lines.match_run(message_facts))
    .order_by(message_facts.c.seq)
)

TermPositions = dict[Term, set[int]]
"""The hidden positions that have each term."""
StoredMessage = tuple[int, Message]
"""A message, and its position before it."""
PassageGroup = tuple[int, int]
"""The first and the last position of a group: a message, or a call with its results."""
TargetNames = dict[str, tuple[Term, ...]]
"""The possible names of a call's target, as `_compare_name` returns them, with their terms."""


class AskedCalls(NamedTuple):
    """The calls about a query: the weights of its terms in their groups, and the calls' ids."""

    weights: dict[tuple[PassageGroup, Term], int]
    ids: dict[PassageGroup, set[str]]


class HiddenPart(NamedTuple):
    """The hidden positions of a line, and the terms to find in them.

    ``reasons`` has the reason for each position; ``placeholders`` are the texts in place of cleared
    results; ``groups`` has the group of each position.
    """

    line: Line
    terms: tuple[Term, ...]
    reasons: dict[int, str]
    placeholders: dict[int, str]
    groups: dict[int, PassageGroup]
    runs: list[Segment]

    def message_keys(self, group: PassageGroup) -> list[MessageKey]:
        """Return the keys of the messages of a group."""
        tree_id, first, last = self.line.pointer.tree_id, *group
        at = bisect_left(self.runs, first, key=lambda run: run.last)
        return [
            (tree_id, run.branch, seq)
            for run in self.runs[at:]
            for seq in range(max(first, run.first), min(last, run.last) + 1)
        ]

    def answered_calls(self) -> Iterator[tuple[PassageGroup, str, JsonFields]]:
        """Yield the calls with results in groups of hidden positions: group, id and function."""
        groups = {self.groups[seq] for seq in self.reasons}
        answered = {group[0]: group for group in groups if group[0] < group[1]}
        for run in self.runs if answered else ():
            place = run.within(self.line.pointer.tree_id)
            for seq, calls in load_calls(self.line.connection, place).items():
                for call in calls if seq in answered else ():
                    function = call.get("function") if isinstance(call, dict) else None
                    if isinstance(function, dict):
                        yield answered[seq], str(call.get("id")), function

    def asked_calls(self, names: TargetNames, policy: Policy) -> AskedCalls:
        """Return the calls with a hidden part whose file or command is one of the names.

        A line in place of a result shortens the target of its call, so the call may not contain it.
        """
        asked = AskedCalls({}, {})
        line = self.line
        root = line.pointer.project_root
        kinds = {**load_tool_kinds(line.connection), **policy.tool_kinds}
        shown = [
            (form, terms)
            for name, terms in names.items()
            for form in (name, _compare_name(describe_target({"command": name}, "terminal", root)))
        ]
        for group, call_id, function in self.answered_calls():
            arguments = function.get("arguments")
            kind = kinds.get(find_kind_name(function.get("name"), arguments) or "")
            target = describe_target(arguments, kind, root)
            about = (terms for name, terms in shown if _is_about(target, name))
            for term in chain.from_iterable(about):
                known = asked.weights.get((group, term), MENTION)
                asked.weights[group, term] = max(known, READ_CALL if kind == "file_read" else ABOUT)
                asked.ids.setdefault(group, set()).add(call_id)
        return asked

    def term_positions(self, session_id: str) -> TermPositions:
        """Return the hidden positions of each term, without terms that are not found.

        The index is used if it has all messages of the session; otherwise they are read.
        """
        line = self.line
        tree_id = line.pointer.tree_id
        scope = Scope(session_id, tree=tree_id, trees=list_trees(line.connection, [tree_id]))
        positions: TermPositions = {term: set() for term in self.terms}
        texts: Iterable[tuple[int, str]] = self.placeholders.items()
        if is_search_on(line.connection) and not is_index_behind(line.connection, scope):
            for term in self.terms:
                query = build_query(
                    term.text, scope, None, None, None, None, "newest", MOST_HITS, None
                )
                matches = Search(line.connection, query._replace(terms=(term,))).matches()
                messages = (each.document.seq for each in matches if not each.document.summary)
                positions[term] = {*islice(messages, MOST_HITS)} & self.reasons.keys()
        else:
            stored = raw_messages.load_chat_messages(line, 1, line.pointer.head)
            read = (
                (each.seq, join_message_texts(each.message) if each.seq in self.reasons else "")
                for each in stored
            )
            texts = chain(read, texts)
        for seq, text in texts:
            folded = fold_text(text)
            for term in self.terms:
                if has_term(folded, term):
                    positions[term].add(seq)
        return {term: found for term, found in positions.items() if found}


def recall(
    connection: Connection,
    session_id: str,
    wanted: str | Iterable[str],
    *,
    policy: Policy | None = None,
    budget: int = RECALL_BUDGET,
    now: Now = None,
) -> list[Passage]:
    """Return passages of a session's line that a view hides, wholly or in part, by a query.

    ``wanted`` is a text, whose words all count, or names. Hidden are the messages that a view by
    the ``policy`` (None: ``Policy.named("agent")``) does not send as stored: those that a
    compaction hides, and those that were cleared, shortened or left out. The best passage comes
    first; a passage is a whole message, or a call with all its results. All passages together are
    about ``budget`` tokens at most; if the best one alone is larger, its text around the words is
    returned, and the calls that the names are about are cut last. Raises SessionNotFound,
    InvalidValue.
    """
    if type(budget) is not int or budget < 1:
        raise InvalidValue(f"budget must be a number of tokens from 1, not {quote_value(budget)}")
    policy = AGENT_POLICY if policy is None else policy
    names = _parse_names(wanted)
    terms = tuple(dict.fromkeys(chain.from_iterable(names.values())))
    hidden = _load_hidden_part(connection, session_id, terms, policy, require_moment(now))
    positions = hidden.term_positions(session_id)
    asked = hidden.asked_calls(names, policy)
    for group, term in asked.weights:
        positions.setdefault(term, set()).add(group[0])
    # The fewer hidden messages have a term, the more it counts.
    worth = {
        term: math.log(1 + len(hidden.reasons) / len(found)) for term, found in positions.items()
    }
    group_terms: dict[PassageGroup, list[Term]] = {}
    for term, found in positions.items():
        for group in {hidden.groups[seq] for seq in found}:
            group_terms.setdefault(group, []).append(term)
    scores = {
        group: sum(worth[term] * asked.weights.get((group, term), MENTION) for term in has)
        for group, has in group_terms.items()
    }
    return list(_select_passages(hidden, scores, asked, budget))


def _load_hidden_part(
    connection: Connection,
    session_id: str,
    terms: tuple[Term, ...],
    policy: Policy,
    moment: int,
) -> HiddenPart:
    """Return the positions of a session's line that a view does not send as stored."""
    view = build.view(connection, session_id, policy, now=moment)
    line = Line(connection, lines.load_pointer(connection, session_id))
    head = line.pointer.head
    reasons = dict.fromkeys(range(1, head + 1), HIDDEN_REASON)
    placeholders: dict[int, str] = {}
    for entry in view.entries:
        if entry.seq is not None and entry.rule is None:
            reasons.pop(entry.seq, None)
        elif entry.seq is not None:
            reasons[entry.seq] = entry.rule or HIDDEN_REASON
            if entry.rule in rules.NAMING_RULES:
                placeholders[entry.seq] = str(entry.message.get("content"))
    runs = line.runs(1, head)
    rows = (LINE_ROLES.rows(connection, **run.within(line.pointer.tree_id)) for run in runs)
    starts = [seq for seq, role in chain.from_iterable(rows) if role != "tool" or seq == 1]
    ends = [*(seq - 1 for seq in starts[1:]), head]
    groups = {
        seq: (first, last)
        for first, last in zip(starts, ends, strict=False)
        for seq in range(first, last + 1)
    }
    for seq, reason in [*reasons.items()]:
        reasons.setdefault(groups[seq][0], reason)  # a call counts while its result is hidden
    return HiddenPart(line, terms, reasons, placeholders, groups, runs)


def _parse_names(wanted: str | Iterable[str]) -> TargetNames:
    """Return the names to recall: a text and each of its words, or names. Raises InvalidValue."""
    if isinstance(wanted, str):
        terms = parse_terms(wanted)
        words = {_compare_name(term.text): (term,) for term in terms}
        return {_compare_name(wanted): tuple(terms)} | words
    names: TargetNames = {}
    for name in wanted if isinstance(wanted, Iterable) else [wanted]:
        if not isinstance(name, str):
            raise InvalidValue(f"the query must be a text or names, not {quote_value(name)}")
        phrase = name.replace('"', " ")
        names[_compare_name(name)] = tuple(parse_terms(f'"{phrase}"'))
    return names


def _compare_name(name: str) -> str:
    """Return the compared form of a name: without quotes, case, or an ellipsis at its end."""
    plain = " ".join(fold_text(name).replace('"', " ").split())
    return plain.rstrip("".join(ELLIPSES)) if plain.endswith(ELLIPSES) else plain


def _is_about(target: str, name: str) -> bool:
    """Tell whether a call's file or command has a name; either path may be longer."""
    known = _compare_name(target)
    if not known or not name:
        return False
    is_path = known.endswith(f"/{name}") or name.endswith(f"/{known}")
    # The longer ellipsis of a placeholder in English leaves less of a cut name.
    begins = known[: -len(ELLIPSES[1])].rstrip()
    is_cut = target.endswith(ELLIPSIS) and name.startswith(begins)
    return known == name or is_path or is_cut


def _select_passages(
    hidden: HiddenPart, scores: dict[PassageGroup, float], asked: AskedCalls, budget: int
) -> Iterator[Passage]:
    """Yield the best passages that fit in a budget; cut the first if it alone is too large."""
    best = sorted(scores, key=lambda group: (-scores[group], -group[0]))
    left = budget
    for at in range(0, min(len(best), MOST_PASSAGES), PASSAGE_BATCH):
        batch = best[at : at + PASSAGE_BATCH]
        keys = {group: hidden.message_keys(group) for group in batch}
        messages = load_documents_messages(
            hidden.line.connection, chain.from_iterable(keys.values())
        )
        for group in batch:
            stored = [(key[-1], messages[key]) for key in keys[group]]
            text = _write_passage(stored, [join_message_texts(message) for _, message in stored])
            if group == best[0] and estimate(text) > budget:
                ids = asked.ids.get(group, set())
                text = _fit_passage(stored, hidden.terms, ids, budget)
            tokens = min(budget, estimate(text))
            if tokens <= left:
                left -= tokens
                reason = next(hidden.reasons[seq] for seq, _ in stored if seq in hidden.reasons)
                yield Passage(*group, reason, scores[group], text, tokens)


def _fit_passage(
    stored: list[StoredMessage],
    terms: tuple[Term, ...],
    ids: set[str],
    budget: int,
) -> str:
    """Return a passage cut to a budget around the terms; the asked calls are cut last."""
    texts = [join_message_texts(message) for _, message in stored]
    lengths = [*map(len, texts)]
    is_asked = []
    for _, message in stored:
        is_part = str(message.get("tool_call_id")) in ids or "tool_calls" in message
        is_asked.append(bool(ids) and is_part)
    room = sum(lengths)
    least = LEAST_SHOWN_LENGTH * len(stored)
    while True:
        limits = _share_room(lengths, is_asked, room)
        limited = zip(texts, limits, strict=True)
        cut = (cut_excerpt(text, terms, limit) for text, limit in limited)
        text = _write_passage(stored, cut)
        tokens = estimate(text)
        if tokens <= budget or room <= least:
            return text
        room = max(least, min(room - 1, room * budget // tokens))


def _share_room(
    lengths: Sequence[int],
    is_asked: Sequence[bool],
    room: int,
) -> list[int]:
    """Return the limit of each text: first the asked ones are whole, then the shorter ones."""
    limits = [*lengths]
    places = range(len(lengths))
    order = sorted(places, key=lambda at: (not is_asked[at], lengths[at]))
    for rank, at in enumerate(order):
        left = order[rank:]
        equal = [each for each in left if is_asked[each] == is_asked[at]]
        reserved = LEAST_SHOWN_LENGTH * (len(left) - len(equal))
        share = max(LEAST_SHOWN_LENGTH, (room - reserved) // len(equal))
        limits[at] = min(lengths[at], share)
        room -= limits[at]
    return limits


def _write_passage(stored: list[StoredMessage], texts: Iterable[str]) -> str:
    """Return the messages of a passage, each with its text."""
    shown = []
    for (seq, message), text in zip(stored, texts, strict=True):
        speaker = "calls" if message.get("tool_calls") else str(message["role"])
        shown.append(f"[{seq}] {speaker}: {text}")
    return "\n".join(shown)
