"""The log of requests: a record of each request as it is sent, and its reconstruction.

A request follows from its line, its policy and a few texts, so these are kept, with the digest of
what was sent. Whatever changes later is no part of it: only the compactions that were in force
count, the kinds of tools and the rules of the project are as they were.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, takewhile
from operator import eq
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..database import pause_gc
from ..errors import InvalidPolicy, InvalidValue, StoreError, quote_value
from ..formats import CHAT, replace_surrogates
from ..history import (
    INPUT_TEXT,
    NO_LIMIT,
    Line,
    Pointer,
    RequestRange,
    RequestRow,
    RequestTurn,
    find_request_turn,
    insert_request,
    lines,
    list_numbered_usages,
    list_redactions,
    list_request_numbers,
    load_placed_usages,
    load_request_texts,
    load_session_requests,
    load_tool_kinds,
    reserve_request,
    session_branches,
)
from ..messages import decode_as
from ..policy import Policy
from ..records import Finding, Request, RequestSummary, Usage, View
from ..release import find_release
from ..tokens import estimate
from ..view import (
    Explanation,
    ExplanationInputs,
    KeyedMessages,
    MessageKey,
    RequestBasis,
    SentDigest,
    SentParts,
    ViewContext,
    build_view,
    load_view_context,
    select_active_records,
)
from .layers import LAYERS, Piece, Reminders
from .project_rules import Law
from .request import (
    AddedPieces,
    Context,
    GatheredParts,
    RequestInputs,
    assemble_request,
    count_leading,
    find_recap,
    gather_view_parts,
    is_sent_in_order,
    list_added_pieces,
    order_parts,
)

CONTEXT, VIEW = "context", "view"
"""What made a request: `Store.context` or `Store.view`."""
MADE_ANEW_POLICY = "raw"
"""The ready policy by which a request is made that has a usage, and no record."""
CHECKED_REQUESTS = 20
"""About the number of recorded requests that a check makes again."""
KEPT_SESSIONS = 64
"""The sessions whose last recorded request is remembered, to compare the next one with."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MOVED_PROJECT = "it is another one by now, so paths in results are other ones"
LOST_TEXT = "its text was removed by an erasure or a redaction"
OTHER_BYTES = "this store gives others"

SentKeys = tuple[int, list[int]]
"""The number of a recorded request, and a hash of each of its messages."""
_last_sent: OrderedDict[tuple[int, str], SentKeys] = OrderedDict()


class RequestDraft(NamedTuple):
    """A request before it is recorded: its columns, its texts, and its parts in order.

    ``costs`` are the tokens of its parts, ``keys`` their hashes.
    """

    columns: dict[str, Any]
    texts: dict[str, str]
    costs: list[int]
    keys: list[int]


# --- Recording ------------------------------------------------------------------------------------


def draft_view(made: View) -> RequestDraft:
    """Return the record of a view."""
    costs = _get_basis(made).costs
    sent: SentParts = (made.messages, made.system, None)
    keyed = _get_basis(made).keyed
    columns = _list_view_columns(made, {"history": sum(costs.tokens)}, sent, keyed)
    texts = _list_view_texts(made)
    return RequestDraft({"kind": VIEW, **columns}, texts, costs.tokens, costs.keys)


def draft_context(
    request: Context, inputs: RequestInputs, gathered: GatheredParts, law: Law
) -> RequestDraft:
    """Return the record of a request with all its layers."""
    added = list_added_pieces(inputs, gathered, law)
    layers, costs, keys = _measure_layers(request, gathered, added)
    sent = (request.messages, request.system, request.tools)
    keyed = _key_request(gathered, added) if is_sent_in_order(inputs, gathered) else None
    columns = _list_view_columns(gathered.view, layers, sent, keyed)
    texts = _list_view_texts(gathered.view)
    for name, text in _list_given_texts(inputs, gathered, law).items():
        if text:
            texts[name] = replace_surrogates(text).replace("\0", REPLACEMENT)
    return RequestDraft({"kind": CONTEXT, **columns}, texts, costs, keys)


def _list_given_texts(
    inputs: RequestInputs, gathered: GatheredParts, law: Law
) -> dict[str, str | None]:
    """Return the texts of a request that no message has, by name."""
    reminders = gathered.reminders.by_seq
    return {
        "system": inputs.system,
        "tools": None if inputs.tools is None else json.dumps(inputs.tools, default=str),
        "code_law": law.text,
        INPUT_TEXT: inputs.user_input,
        "todo_recap": find_recap(inputs, gathered),
        "reminders": json.dumps([*reminders.items()]) if reminders else None,
        "cache_markers": "true" if gathered.marked else None,
    }


def record_request(connection: Connection, session_id: str, draft: RequestDraft) -> int:
    """Record a request that is about to be sent; return its number. Raises SessionNotFound."""
    unchanged: int | None = None
    pointer, number = reserve_request(connection, session_id, draft.texts)
    name = (pointer.tree_id, session_id)
    known, keys = _last_sent.pop(name, (0, []))
    if known and known == number - 1:
        same = sum(takewhile(bool, map(eq, keys, draft.keys)))
        unchanged = sum(draft.costs[:same])
    insert_request(connection, pointer, number, draft.columns, draft.texts, unchanged)
    _last_sent[name] = (number, draft.keys)
    while len(_last_sent) > KEPT_SESSIONS:
        _last_sent.popitem(last=False)
    return number


def _list_view_columns(
    made: View, layers: dict[str, int], sent: SentParts, keyed: KeyedMessages | None
) -> dict[str, Any]:
    """Return the columns of a request that follow from its view."""
    inputs = _get_inputs(made)
    sight = inputs.sight
    return {
        "branch": made.branch,
        "seq": made.at,
        "at": sight.now,
        "newest_record": max((each.id or 0 for each in sight.records), default=0),
        "tokens": sum(layers.values()),
        "format": inputs.format,
        "policy_name": sight.policy.name,
        "release": find_release(),
        "digest": _get_basis(made).digest.compute(sent, keyed),
        "layers": json.dumps(layers),
        "compactions": json.dumps([each.id for each in select_active_records(sight.records)]),
    }


def _get_inputs(made: View) -> ExplanationInputs:
    assert isinstance(made.explained, Explanation)
    return made.explained.inputs


def _get_basis(made: View) -> RequestBasis:
    assert isinstance(made.explained, Explanation)
    assert made.explained.basis
    return made.explained.basis


def _list_view_texts(made: View) -> dict[str, str]:
    """Return the policy of a view, the kinds of tools in force and the project's folder."""
    basis = _get_basis(made)
    texts = {"policy": basis.policy, "kinds": basis.kinds}
    return texts | ({"project_root": basis.project_root} if basis.project_root else {})


def _measure_layers(
    request: Context, gathered: GatheredParts, added: AddedPieces
) -> tuple[dict[str, int], list[int], list[int]]:
    """Return the tokens of each layer, and the tokens and hashes of all parts in their order."""
    tokens, keys = _list_stored_costs(gathered)
    split = count_leading(gathered.placed, [each.message for each in gathered.placed])
    first, end = _find_turn(gathered)
    tools = request.layered.tools
    layers = dict.fromkeys(LAYERS, 0)
    layers["system"], layers["tools"] = sum(tokens[:split]), estimate(tools)
    layers["history"] = sum(tokens[split:first])
    layers["user_input"], layers["steps"] = sum(tokens[first:end]), sum(tokens[end:])
    for piece in chain(*added):
        layers[piece.layer] += piece.tokens
    costs = order_parts([*map(_list_tokens, added)], tokens, split)
    hashes = order_parts([*map(_list_hashes, added)], keys, split)
    return layers, [layers["tools"], *costs], [hash(tools), *hashes]


def _key_request(gathered: GatheredParts, added: AddedPieces) -> KeyedMessages | None:
    """Return the keys of the messages that a request sends to a chat."""
    keyed = _get_basis(gathered.view).keyed
    if keyed is None:
        return None
    stored, reminders, placed = [*keyed.keys], gathered.reminders.by_seq, gathered.placed
    for place, each in enumerate(placed) if reminders else ():
        if each.seq and (text := reminders.get(each.seq)):
            stored[place] = (id(keyed.held[place]), text)
    around: list[list[MessageKey]] = [[repr(each.message) for each in pieces] for pieces in added]
    return keyed._replace(keys=order_parts(around, stored, count_leading(placed, keyed.held)))


def _list_tokens(pieces: list[Piece]) -> list[int]:
    return [piece.tokens for piece in pieces]


def _list_hashes(pieces: list[Piece]) -> list[int]:
    return [hash((piece.layer, piece.message["content"])) for piece in pieces]


def _list_stored_costs(gathered: GatheredParts) -> tuple[list[int], list[int]]:
    """Return the tokens and hashes of the messages of the view, reminders included."""
    _, tokens, keys, _ = _get_basis(gathered.view).costs
    reminders = gathered.reminders.by_seq
    if reminders:
        tokens, keys = [*tokens], [*keys]
        for place, each in enumerate(gathered.placed):
            if each.seq and (text := reminders.get(each.seq)):
                tokens[place] += estimate(text)
                keys[place] = hash((keys[place], text))
    return tokens, keys


def _find_turn(gathered: GatheredParts) -> tuple[int, int]:
    """Return the places in a view where the current turn begins, and where its steps do."""
    placed = gathered.placed
    end = len(placed)
    if gathered.begins is None:
        return end, end
    while end and placed[end - 1].seq != gathered.begins:
        end -= 1
    first = end
    while first and placed[first - 1].seq == gathered.begins:
        first -= 1
    return (first, end) if end else (len(placed), len(placed))


# --- Making a request again -----------------------------------------------------------------------


class RemadeRequest(NamedTuple):
    """A request as it was made again."""

    sent: SentParts
    view: View


def list_requests(
    connection: Connection,
    session_id: str,
    *,
    start: int = 1,
    stop: int | None = None,
    last: int | None = None,
    first_seq: int = 0,
    last_seq: int | None = None,
) -> list[RequestSummary]:
    """Return the recorded requests of a session, oldest first.

    A session without any has those of its usages: such a request is not ``recorded``. They have the
    numbers ``start`` to ``stop`` (None: to the newest) and ended at the positions ``first_seq`` to
    ``last_seq`` (None: any); of them the ``last`` ones are returned (None: all). Raises
    SessionNotFound, InvalidValue.
    """
    bounds = {"start": start, "stop": stop, "first_seq": first_seq, "last_seq": last_seq}
    bounds["last"] = last
    asked = [_validate_bound(name, value) for name, value in bounds.items()]
    pointer = lines.load_pointer(connection, session_id)
    return _list_range(connection, pointer, RequestRange(*asked))


def _validate_bound(name: str, value: int | None) -> int:
    """Return a bound of a range, None: the largest. Raises InvalidValue naming it."""
    if value is not None and (type(value) is not int or not 0 <= value <= NO_LIMIT):
        raise InvalidValue(f"{name} must be a whole number from 0, not {quote_value(value)}")
    return NO_LIMIT if value is None else value


def _list_range(
    connection: Connection, pointer: Pointer, asked: RequestRange
) -> list[RequestSummary]:
    rows = load_session_requests(connection, pointer, asked)
    if rows is None:
        numbered = list_numbered_usages(connection, pointer, asked)
        return [_summarize_usage(each, number) for number, each in numbered]
    places = [row.usage_place for row in rows if row.usage_place]
    linked = load_placed_usages(connection, pointer, places)
    with pause_gc(len(rows)):
        return [
            _summarize_row(pointer.session_id, row, row.usage_place and linked.get(row.usage_place))
            for row in rows
        ]


def _summarize_row(session_id: str, row: RequestRow, usage: Usage | None) -> RequestSummary:
    what = (row.kind, row.policy_name, row.format, row.tokens, row.unchanged_tokens, row.digest)
    place = (row.request, session_id, row.branch, row.seq, row.at)
    return RequestSummary._make((*place, *what, usage, True))


def _summarize_usage(usage: Usage, number: int) -> RequestSummary:
    what = (VIEW, MADE_ANEW_POLICY, CHAT.name, usage.input, usage.cached, None)
    place = (number, usage.session_id, usage.branch, usage.seq, usage.at)
    return RequestSummary._make((*place, *what, usage, False))


def load_request(connection: Connection, session_id: str, number: int) -> Request:
    """Return a request of a session, made again as it was sent: the same bytes.

    ``number`` counts the session's records from 1, and is never used again. A session without
    records has its usages instead, whose requests are made by ``Policy.named("raw")``. What has
    been erased or redacted since cannot be sent again: ``missing`` names it. Raises
    SessionNotFound, InvalidValue for a number that the session does not have.
    """
    pointer = lines.load_pointer(connection, session_id)
    is_number = type(number) is int and 0 < number <= NO_LIMIT
    asked = RequestRange(number, number, 0, NO_LIMIT, 1)
    told = _list_range(connection, pointer, asked) if is_number else []
    if not told:
        raise InvalidValue(
            f"session {quote_value(session_id)} has no request {quote_value(number)}; `requests`"
            f" lists the {len(list_requests(connection, session_id))} that it has"
        )
    for row in load_session_requests(connection, pointer, asked) or ():
        return _remake_recorded(connection, pointer, row, *told)
    return _remake_unrecorded(connection, pointer, *told)


def _remake_unrecorded(connection: Connection, pointer: Pointer, told: RequestSummary) -> Request:
    """Return the request of a usage, as the raw line was then."""
    policy = Policy.named(MADE_ANEW_POLICY)
    request = _build_request(told, policy.model_dump(mode="json"))
    try:
        line = session_branches.find_branch_end(connection, pointer, told.branch)
        last = lines.resolve_position(line, told.seq)
        look = load_view_context(connection, line, policy, last=last, now=told.at)
    except StoreError as error:
        return request._replace(missing=(f"its line: {error}",))
    return _add_sent(request, _view_again(look, told.format))


def _remake_recorded(
    connection: Connection, pointer: Pointer, row: RequestRow, told: RequestSummary
) -> Request:
    """Return a recorded request, and the difference from the sent one if there is any."""
    texts = load_request_texts(connection, pointer, row)
    request = _build_request(told, decode_as(dict, texts.get("policy", "{}")))._replace(
        layers=decode_as(dict, row.layers),
        compactions=tuple(decode_as(list, row.compactions)),
        release=row.release or None,
    )
    lost = [f"{name}: {LOST_TEXT}" for name in decode_as(dict, row.texts) if name not in texts]
    try:
        remade = _remake(connection, pointer, row, texts)
    except StoreError as error:
        return request._replace(missing=(*lost, f"its line: {error}"))
    if SentDigest().compute(remade.sent) != row.digest:
        if texts.get("project_root") != pointer.project_root and "project_root" not in lost:
            lost.append(f"the project's folder: {MOVED_PROJECT}")
        lost += _explain_difference(connection, pointer, row, lost)
        request = request._replace(missing=tuple(lost))
    return _add_sent(request, remade)


def _build_request(told: RequestSummary, policy: dict[str, Any]) -> Request:
    """Return a request without its messages."""
    fields: dict[str, Any] = {**told._asdict(), "policy": policy}
    empty: dict[str, Any] = dict.fromkeys(("system", "tools", "release", "view"))
    layers = {"history": told.tokens}
    return Request(**fields, **empty, messages=[], layers=layers, missing=(), compactions=())


def _add_sent(request: Request, remade: RemadeRequest) -> Request:
    messages, system, tools = remade.sent
    return request._replace(messages=messages, system=system, tools=tools, view=remade.view)


def _remake(
    connection: Connection, pointer: Pointer, row: RequestRow, texts: Mapping[str, str]
) -> RemadeRequest:
    """Make a request again from its line and its texts. Raises StoreError where that is gone."""
    line = session_branches.find_branch_end(connection, pointer, row.branch)
    look = partial(
        load_view_context,
        connection,
        line,
        _restore_policy(connection, texts),
        last=lines.resolve_position(line, row.seq),
        now=row.at,
        records=frozenset(decode_as(list, row.compactions)),
    )
    if row.kind == VIEW:
        return _view_again(look(), row.format)
    turn = find_request_turn(Line(connection, line), row.seq, texts.get(INPUT_TEXT))
    return _assemble_again(look(turn_over=turn.over), turn, row.format, texts)


def _view_again(look: ViewContext, format: str) -> RemadeRequest:  # noqa: A002 - the public name
    view = build_view(look, format)
    return RemadeRequest((view.messages, view.system, None), view)


def _assemble_again(
    look: ViewContext,
    turn: RequestTurn,
    format: str,  # noqa: A002 - the public name
    texts: Mapping[str, str],
) -> RemadeRequest:
    """Return a request with all its layers, made again of its view and its texts."""
    reminders = Reminders(kept=dict(decode_as(list, texts.get("reminders", "[]"))))
    gathered = gather_view_parts(look, turn, format)._replace(
        reminders=reminders, marked="cache_markers" in texts
    )
    tools = json.loads(texts["tools"]) if "tools" in texts else None
    system, user_input, recap = map(texts.get, ("system", INPUT_TEXT, "todo_recap"))
    given = RequestInputs(system, tools, user_input, recap or "", look.policy)
    law = Law(texts.get("code_law", ""))
    request = assemble_request(given, gathered, law, format=format)
    return RemadeRequest((request.messages, request.system, request.tools), gathered.view)


def _restore_policy(connection: Connection, texts: Mapping[str, str]) -> Policy:
    """Return the policy of a request, by which tools have the kinds that they had then."""
    try:
        policy = Policy.model_validate_json(texts.get("policy", ""))
    except ValueError as error:
        raise InvalidPolicy("its policy has fields that this release does not know") from error
    kinds, now = decode_as(dict, texts.get("kinds", "{}")), load_tool_kinds(connection)
    changed = {name: kinds.get(name, "other") for name in {*now, *kinds}}
    changed = {name: kind for name, kind in changed.items() if now.get(name, "other") != kind}
    return policy.model_copy(update={"tool_kinds": {**changed, **policy.tool_kinds}})


def _explain_difference(
    connection: Connection, pointer: Pointer, row: RequestRow, known: list[str]
) -> list[str]:
    """Return why a request cannot be made again as it was sent, beyond what is ``known``."""
    redactions = list_redactions(connection, pointer.session_id)
    redacted = [f"message {each.seq}: redacted" for each in redactions if each.seq <= row.seq]
    if redacted or known:
        return redacted
    return [f"the bytes that release {row.release or '(unknown)'} sent: {OTHER_BYTES}"]


def check_requests(connection: Connection) -> Iterator[Finding]:
    """Make a sample of all recorded requests again, and yield those that differ from the sent ones.

    A request of another release may differ, and one whose parts are gone.
    """
    numbers = list_request_numbers(connection)
    for session_id, number in numbers[:: 1 + len(numbers) // CHECKED_REQUESTS]:
        request = load_request(connection, session_id, number)
        is_of_release = request.release == (find_release() or None)
        if is_of_release and any(OTHER_BYTES in each for each in request.missing):
            place = f"session {session_id!r}, request {number}"
            yield Finding("requests", place, "is not what was sent, when it is made again")
