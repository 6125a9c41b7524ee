"""A request as it is sent: rules and prompts in front, then the view, the user's input and the running turn (S4.4).

The layers stand in a fixed order, so that what seldom changes comes first and a provider's prompt cache keeps it:

    system            L1  the caller's prompt, then the system messages that begin the line  S4.1
    tools             L1  the caller's tools: beside the messages, or a message if a text    S4.1
    code_law          L2  the project's ``CODE_LAW.md``, as it is now, never stored          S4.2
    history           L3  summaries and finished turns, in their short form                  S4.3
    user_input            what the user wants now, with a reminder of the files it mentions  A4.3
    steps                 what was done about it so far, whole                               A4.4
    todo_recap            what is left to do                                                 S4.4

Where there is no new input, the last user message is the current one: so a turn that a crash cut off is resumed by
asking again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from . import lines, rules
from .clock import Now, given
from .compactions import visible
from .errors import InvalidValue
from .formats import react
from .formats.openai import scrubbed
from .lines import Pointer
from .mentions import mentions, remind, reminder
from .messages import Message, content_text
from .policy import Policy, checked
from .records import Entry, View
from .schema import tool_results
from .statements import Statement
from .todos import ALL_DONE, recap
from .tokens import estimate, message_tokens
from .turns import message_at, turn_of
from .view import built, known_format

__all__ = ["LAYERS", "Context", "Piece", "mentions", "remind"]

LAYERS = ("system", "tools", "code_law", "history", "user_input", "steps", "todo_recap")
"""The layers of a request, in their order."""

DEFAULT_FORMAT, REACT = "openai", "react"
"""Formats of messages are those of views, or one message with the whole request as ReAct text."""

LOOK_BACK = 2_000
"""Positions before the first visible one in which a todo list is looked for."""
LISTS = 4
"""Calls to todo tools, at most, that are asked for a recap."""

Tools = str | Sequence[Mapping[str, Any]]

_segments = lines.segments_cte()
_r = tool_results
TODO_CALLS = Statement(
    select(_r.c.seq, _r.c.call_seq, _r.c.call_position)
    .select_from(_segments)
    .join(
        _r,
        (_r.c.tree_id == bindparam("tree_id"))
        & (_r.c.branch == _segments.c.branch)
        & _r.c.seq.between(_segments.c.first, _segments.c.last),
    )
    .where(rules.of_kind("todo"), _r.c.call_seq.is_not(None))
    .order_by(_r.c.seq.desc())
    .limit(bindparam("limit"))
)


class Piece(NamedTuple):
    """One message of a request: its layer, its tokens, its position (None: not stored); ``made`` up by a repair."""

    layer: str
    message: Message
    tokens: int
    seq: int | None = None
    made: bool = False


class Context(NamedTuple):
    """A request: ``messages`` are clean for the API, ``layers`` the tokens of each layer, ``text`` the same as ReAct.

    With the format ``react``, ``messages`` are one user message: the text.
    ``stable_prefix_tokens`` are as in the request that the store assembled before for the session: what a prompt cache
    still holds; ``first_changed`` is the index of the first message that differs from it (None: none does). Where there
    was none, ``is_first`` says so, and these are 0 and None. ``open_turn`` is the position of the user message that
    is being worked on (None: it is answered already, or not stored yet). ``tools`` are sent beside the messages, where
    they were given as definitions.
    """

    messages: list[Message]
    layers: dict[str, int]
    stable_prefix_tokens: int
    first_changed: int | None
    open_turn: int | None
    tools: list[Mapping[str, Any]] | None
    pieces: list[Piece]
    view: View
    is_first: bool = True

    @property
    def tokens(self) -> int:
        """All tokens of the request."""
        return sum(self.layers.values())

    @property
    def text(self) -> str:
        """The request as ReAct text (S4.60); tool definitions stand in front, made-up calls are left out."""
        tools: list[Message] = [{"role": "system", "content": _json(self.tools)}] if self.tools else []
        return scrubbed(react.text([*tools, *(piece.message for piece in self.pieces if not piece.made)]))


class Asked(NamedTuple):
    """What the caller of `Store.context` gives of a request; None where the store is to find it."""

    system: str | None = None
    tools: Tools | None = None
    user_input: str | None = None
    todo_recap: str | None = None


class Gathered(NamedTuple):
    """What the store has of a request; ``begins`` is where the current turn does (None: its input is not stored)."""

    view: View
    begins: int | None
    answered: bool
    recap: str | None
    project_root: str | None


class Requests:
    """The last request of each session that a store assembled, as hashes; the newest sessions only."""

    KEPT = 64

    def __init__(self) -> None:
        self._last: OrderedDict[str, list[int]] = OrderedDict()

    def compared(self, session_id: str, context: Context) -> Context:
        """Return a request with what it has in common with the one before, and remember it."""
        hashes = [hash(_json(context.tools)), *(_hash(piece.message) for piece in context.pieces)]
        before = self._last.pop(session_id, [])
        self._last[session_id] = hashes
        while len(self._last) > self.KEPT:
            self._last.popitem(last=False)
        same = next((i for i, (was, now) in enumerate(zip(before, hashes, strict=False)) if was != now), None)
        if same is None:
            same = min(len(before), len(hashes))
        tokens = [_tools_tokens(context.tools), *(piece.tokens for piece in context.pieces)]
        changed = max(0, same - 1) if same < len(before) else None
        return context._replace(stable_prefix_tokens=sum(tokens[:same]), first_changed=changed, is_first=not before)


def asked(system: object, tools: object, user_input: object, todo_recap: object) -> Asked:
    """Return what a caller gives of a request. Raises InvalidValue for what is no text, or no list of tools."""
    for name, text in (("system", system), ("user_input", user_input), ("todo_recap", todo_recap)):
        if text is not None and not isinstance(text, str):
            raise InvalidValue(f"{name} is a text, not {type(text).__name__}")
    listed = isinstance(tools, Sequence) and all(isinstance(each, Mapping) for each in tools)
    if not (tools is None or isinstance(tools, str) or listed):
        raise InvalidValue("tools are a text, or a list of definitions as the API takes them")
    return Asked(system, tools, user_input, todo_recap)  # type: ignore[arg-type]


def gather(
    connection: Connection,
    session_id: str,
    policy: Policy,
    user_input: str | None = None,
    *,
    recap: bool = True,
    at: int | None = None,
    now: Now = None,
    format: str = DEFAULT_FORMAT,  # noqa: A002 - the public name
) -> Gathered:
    """Return the view of a session as part of a request, where its current turn begins, and its todo list.

    Raises SessionNotFound, PositionOutOfRange, InvalidValue.
    """
    pointer, policy = lines.find(connection, session_id), checked(policy)
    last = lines.position(pointer, at)
    begins, answered, over = turn_of(connection, pointer, last, user_input)
    wire = DEFAULT_FORMAT if format == REACT else known_format(format)
    view = built(connection, pointer, policy, last=last, now=given(now), format=wire, turn_over=over)
    found = _recap(connection, pointer, policy, last, begins or last + 1) if recap else None
    return Gathered(view, begins, answered, found, pointer.project_root)


def assemble(asked: Asked, gathered: Gathered, law: str, policy: Policy, *, format: str) -> Context:  # noqa: A002
    """Return a request from what the caller gave, what the store has, and the rules of the project."""
    role = policy.summary_role if policy.summary_role in ("user", "developer") else "system"
    entries = _entries(gathered)
    leading = next((i for i, piece in enumerate(entries) if not _leads(piece)), len(entries))
    recapped = asked.todo_recap if asked.todo_recap is not None else gathered.recap
    closing = "user" if policy.summary_role == "merge" else role
    pieces = [
        *_made("system", "system", asked.system),
        *(piece._replace(layer="system") for piece in entries[:leading]),
        *_made("tools", "system", asked.tools if isinstance(asked.tools, str) else None),
        *_made("code_law", role, law),
        *entries[leading:],
        *_made("user_input", "user", remind(asked.user_input or "") if gathered.begins is None else None),
        *_made("todo_recap", closing, recapped),
    ]
    if policy.summary_role == "merge":
        pieces = _merged(pieces)
    tools = None if asked.tools is None or isinstance(asked.tools, str) else list(asked.tools)
    layers = dict.fromkeys(LAYERS, 0)
    for piece in pieces:
        layers[piece.layer] += piece.tokens
    layers["tools"] += _tools_tokens(tools)
    messages = [piece.message for piece in pieces]
    open_turn = None if gathered.answered else gathered.begins
    context = Context(messages, layers, 0, None, open_turn, tools, pieces, gathered.view)
    return context if format != REACT else context._replace(messages=[{"role": "user", "content": context.text}])


def _recap(connection: Connection, pointer: Pointer, policy: Policy, last: int, begins: int) -> str | None:
    """Return the recap of the last todo list that says any; of one that was done in an earlier turn there is none."""
    start = max(1, visible(connection, pointer, last).first_kept - LOOK_BACK)
    rows = TODO_CALLS.rows(
        connection,
        tree_id=pointer.tree_id,
        branch=pointer.branch,
        start=start,
        last=last,
        kinds=json.dumps(dict(policy.tool_kinds)),
        limit=LISTS,
    )
    for seq, call_seq, call_position in rows:
        call = message_at(connection, pointer, call_seq)
        found = recap(_arguments(call, call_position), message_at(connection, pointer, seq).get("content"))
        if found:
            return f"Todo recap: {found}" if seq >= begins or not found.endswith(ALL_DONE) else None
    return None


def _arguments(message: Message, position: int) -> object:
    call = message["tool_calls"][position]
    return (call.get("function") or call).get("arguments") if isinstance(call, dict) else None


def _entries(gathered: Gathered) -> list[Piece]:
    """Return the messages of the view in their layers, each user message with its reminder (S4.45)."""
    view, begins = gathered.view, gathered.begins
    layer = "history"
    pieces: list[Piece] = []
    for entry, message in zip(view.entries, view.messages, strict=True):
        if begins is not None and layer == "user_input":
            layer = "steps"
        if begins is not None and entry.seq == begins:
            layer = "user_input"
        made = entry.seq is None and entry.rule == "repair" and message["role"] == "assistant"
        pieces.append(Piece(layer, *_reminded(entry, message), entry.seq, made))
    return pieces


def _reminded(entry: Entry, message: Message) -> tuple[Message, int]:
    """Return a message and its tokens; a user message that mentions files with the reminder to read them."""
    content = message.get("content")
    added = reminder(content_text(content)) if message["role"] == "user" and entry.rule is None else ""
    if not added:
        return message, entry.tokens
    said = remind(content) if isinstance(content, str) else [*(content or ()), {"type": "text", "text": added}]
    return {**message, "content": said}, entry.tokens + estimate(added)


def _leads(piece: Piece) -> bool:
    return piece.seq is not None and piece.message["role"] in ("system", "developer")


def _made(layer: str, role: str, content: str | None) -> Iterable[Piece]:
    """Return the message of a layer that is not stored; none where there is nothing to say."""
    if not content or not content.strip():
        return ()
    message = {"role": role, "content": scrubbed(content)}
    return (Piece(layer, message, message_tokens(message, estimate)),)


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Return a request whose system messages in front are one, for providers that take only one (A2.11)."""
    fronts = list(takewhile(lambda piece: piece.message["role"] == "system", pieces))
    if len(fronts) < 2:
        return pieces
    texts = [content_text(piece.message.get("content")) for piece in fronts]
    first = fronts[0]._replace(message={**fronts[0].message, "content": "\n\n".join(texts)})
    return [first, *pieces[len(fronts) :]]


def _hash(message: Message) -> int:
    content, calls = message.get("content"), message.get("tool_calls")
    said = content if isinstance(content, str) else _json(content)
    return hash((message["role"], said, message.get("tool_call_id"), _json(calls) if calls else None))


def _tools_tokens(tools: object) -> int:
    return estimate(_json(tools)) if tools else 0


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
