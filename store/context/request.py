"""A request as it is sent: rules and prompts in front, then the view, the input, the running turn.

The layers have a fixed order: those that seldom change come first, so that a provider's prompt
cache keeps them:

    system       the caller's prompt, then the system messages that begin the line
    tools        the caller's tools: beside the messages, or a message if they are a text
    code_law     the project's ``CODE_LAW.md``, as it is now, never stored
    history      summaries and finished turns, in their short form
    user_input   what the user wants now, with a reminder of the files that it mentions
    steps        the messages of the running turn so far, whole
    todo_recap   the open items of the todo list

Without a new input, the last user message is the current one, so a turn cut off by a crash is
resumed by asking again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, bindparam, select

from ..clock import Now, require_moment
from ..database import Statement, get_read_mark, tool_results
from ..errors import InvalidValue, quote_value
from ..formats import CHAT, REACT, Format, PlacedMessage, System, WrittenRequest, get_format
from ..history import Line, RequestTurn, ViewCache, find_request_turn, lines, load_chat_message
from ..messages import Message
from ..phrases import Language, render_phrase
from ..policy import TURNS_POLICY, Policy, check_policy
from ..records import View
from ..tools import is_recap_all_done, render_recap
from ..view import (
    ViewContext,
    compose_view,
    is_of_kind,
    load_view_context,
    load_viewed_pointer,
    prepare_record,
    send_view_queries,
)
from .file_mentions import Root, check_root, mentions, remind
from .layers import (
    LAYERS,
    Hashed,
    Layered,
    Piece,
    Reminders,
    add_reminder,
    list_reminded_messages,
    list_view_pieces,
    make_pieces,
    mark_cache_ends,
)
from .project_rules import Law
from .recall_definition import add_recall_tool

__all__ = ["LAYERS", "TODO_LOOK_BACK", "Context", "Piece", "gather_parts", "mentions", "remind"]

TODO_LOOK_BACK = 2_000
"""Positions before the first visible one in which a todo list is looked for."""
MOST_TODO_LISTS = 4
"""Calls to todo tools, at most, that are asked for a recap."""

_todo_segments = lines.build_segments()
_todo_results = tool_results
TODO_CALLS = Statement(
    select(_todo_results.c.seq, _todo_results.c.call_seq, _todo_results.c.call_position)
    .select_from(_todo_segments)
    .join(
        _todo_results,
        (_todo_results.c.tree_id == bindparam("tree_id"))
        & (_todo_results.c.branch == _todo_segments.c.branch)
        & _todo_results.c.seq.between(_todo_segments.c.first, _todo_segments.c.last),
    )
    .where(is_of_kind("todo"), _todo_results.c.call_seq.is_not(None))
    .order_by(_todo_results.c.seq.desc())
    .limit(bindparam("limit"))
)

PartT = TypeVar("PartT")
Tools = str | Sequence[Mapping[str, Any]]
"""The tools of a request: a text, or a list of definitions as the API takes them."""


class Context(NamedTuple):
    """A request.

    ``messages`` are clean for the API, ``layers`` the tokens of each layer, ``text`` the same as
    ReAct.

    With the format ``react``, ``messages`` are one user message: the text. ``stable_prefix_tokens``
    are the tokens that are the same as in the session's last request, and that a prompt cache still
    holds; ``first_changed`` is the index of the first message that differs from it (None: none
    does). If there was no such request, ``is_first`` is true, and these are 0 and None.
    ``open_turn`` is the position of the user message that is being worked on (None: it is answered
    already, or not stored yet). ``tools`` are sent beside the messages if they were given as
    definitions, in the form of the format. ``pieces`` hold chat messages in every format.
    ``notices`` name existing parts that are not sent, such as project rules that are too long.
    ``system`` is the system text of a format that has a separate place for it, as in a `View`.
    """

    messages: list[Any]
    layered: Layered
    open_turn: int | None
    tools: list[Any] | None
    view: View
    before: Layered | Hashed | None = None
    notices: tuple[str, ...] = ()
    system: System = None

    def __repr__(self) -> str:
        """Return the request in one line."""
        where = f"{quote_value(self.view.session_id)} at {self.view.at}"
        return (
            f"Context({len(self.messages):,} messages, {len(self.tools or ()):,} tools, of {where})"
        )

    def _repr_html_(self) -> str:
        """Return the request for a notebook, in at most 20 KB: its layers and messages."""
        from ..html import NotebookTable, describe_message, render_record

        pieces = self.pieces

        def get_row(number: int) -> tuple[object, ...]:
            piece = pieces[number]
            seq = "" if piece.seq is None else piece.seq
            role, text = piece.message.get("role"), describe_message(piece.message)
            return seq, piece.layer, role, text, f"{piece.tokens:,}"

        facts = [("tokens", f"{self.tokens:,}"), *((k, f"{v:,}") for k, v in self.layers.items())]
        table = NotebookTable(("", "layer", "role", "content", "tokens"), len(pieces), get_row)
        title = f"Request of {self.view.session_id} at {self.view.at}"
        return render_record(title, facts, table)

    @property
    def pieces(self) -> list[Piece]:
        """Each message in its layer, with its tokens."""
        return self.layered.pieces

    @property
    def layers(self) -> dict[str, int]:
        """The tokens of each layer."""
        return self.layered.tokens

    @property
    def is_first(self) -> bool:
        """Whether the store assembled no request for the session before."""
        return self.before is None

    @property
    def stable_prefix_tokens(self) -> int:
        """The tokens that are as in the request before."""
        return sum(self.layered.costs[: self._same])

    @property
    def first_changed(self) -> int | None:
        """The index of the first message that differs from the request before."""
        if self.before is None or self._same == len(self.before.hashes):
            return None
        return max(0, self._same - 1)

    @property
    def _same(self) -> int:
        """The number of parts at the beginning that are as before: the tools, then messages."""
        if self.before is None:
            return 0
        return sum(takewhile(bool, map(eq, self.before.hashes, self.layered.hashes)))

    @property
    def fixed_tokens(self) -> int:
        """The tokens of all parts except the view and the new input: for `Store.check`.

        They include the reminders of files, also that of the new input: each later request has it.
        """
        given = (piece for piece in self.pieces if piece.seq is None)
        new = sum(each.tokens - each.reminder for each in given if each.layer == "user_input")
        return self.tokens - self.view.stats.tokens - new

    @property
    def tokens(self) -> int:
        """All tokens of the request."""
        return sum(self.layers.values())

    @property
    def text(self) -> str:
        """The request as ReAct text.

        Tool definitions come first, made-up calls are left out.
        """
        (whole,) = _write_in_format(REACT, self.pieces, self.layered.tools).messages
        return str(whole["content"])


LEADING_ROLES = ("system", "developer")
"""The roles of the messages that may begin a line."""


class RequestInputs(NamedTuple):
    """The arguments of `Store.context` for a request; None where the store is to find them."""

    system: str | None = None
    tools: Tools | None = None
    user_input: str | None = None
    todo_recap: str | None = None
    policy: Policy = TURNS_POLICY

    @property
    def tools_text(self) -> str | None:
        """The tools, where they are described in a text."""
        return self.tools if isinstance(self.tools, str) else None

    @property
    def definitions(self) -> list[Mapping[str, Any]] | None:
        """The tools, where they are definitions as the API takes them."""
        if self.tools is None or isinstance(self.tools, str):
            return None
        return list(self.tools)


def check_inputs(
    system: object,
    tools: object,
    user_input: object,
    todo_recap: object,
    policy: Policy | None,
    *,
    recall: bool = False,
) -> RequestInputs:
    """Return the inputs of a caller.

    Raises InvalidValue for a value that is no text, no list of tools, or no policy.
    """
    texts = {"system": system, "user_input": user_input, "todo_recap": todo_recap}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise InvalidValue(f"{name} is a text, not {type(text).__name__}")
    if tools is not None and not isinstance(tools, str):
        are_objects = isinstance(tools, Sequence) and all(
            isinstance(each, Mapping) for each in tools
        )
        if not are_objects:
            raise InvalidValue(
                "tools must be a text, or a list of definitions in the form of the API"
            )
    chosen = TURNS_POLICY if policy is None else check_policy(policy)
    given: Any = add_recall_tool(tools) if recall else tools  # type: ignore[arg-type]
    return RequestInputs(system, given, user_input, todo_recap, chosen)  # type: ignore[arg-type]


AddedPieces = tuple[list[Piece], list[Piece], list[Piece]]
"""The pieces before the system messages of a line, after them, and at the end."""


class GatheredParts(NamedTuple):
    """The parts of a request that come from the store."""

    view: View
    """The view in the format of the request."""
    placed: list[PlacedMessage]
    """The same before it is written in a format."""
    begins: int | None
    """Where the current turn begins; None: its input is not stored."""
    answered: bool
    """Whether the last stored turn has its answer."""
    recap: str | None
    """The recap of the last todo list."""
    project_root: Root | None
    """Where the project's files are: as the caller says, else as the session does."""
    reminders: Reminders
    in_order: bool = False
    """Whether the view sends a message for each that is placed."""
    marked: bool = False
    """Whether the ends of layers are marked for a prompt cache."""
    since: int | None = None
    """The mark of the read, for caches of the values that were read (`get_read_mark`)."""

    @property
    def without_messages(self) -> GatheredParts:
        """The same without the messages given to the caller, who may change them."""
        return self._replace(view=self.view._replace(messages=[]))


def gather_parts(
    connection: Connection,
    session_id: str,
    policy: Policy,
    user_input: str | None = None,
    *,
    recap: bool = True,
    root: Root | None = None,
    at: int | None = None,
    now: Now = None,
    format: str = CHAT.name,  # noqa: A002 - the public name
    record: bool = False,
) -> GatheredParts:
    """Return the parts of a request that come from the store: view, current turn, todo list.

    Raises SessionNotFound, PositionOutOfRange, and InvalidValue for an unknown format.
    """
    get_format(format)
    pointer, state = load_viewed_pointer(connection, session_id)
    policy, last = check_policy(policy), lines.resolve_position(pointer, at)
    ViewCache(connection, pointer.tree_id).send_changes()  # for the rows of the turn
    send_view_queries(connection, pointer, last, state)
    turn = find_request_turn(Line(connection, pointer), last, user_input)
    view_context = load_view_context(
        connection,
        pointer,
        policy,
        last=last,
        now=require_moment(now),
        turn_over=turn.over,
        state=state,
    )
    gathered = gather_view_parts(view_context, turn, format, record=record)
    project_root = pointer.project_root if root is None else check_root(root)
    return gathered._replace(
        recap=_find_last_recap(view_context, turn.begins or last + 1) if recap else None,
        project_root=project_root,
        reminders=Reminders(project_root, policy.language),
    )


def gather_view_parts(
    view_context: ViewContext,
    turn: RequestTurn,
    format: str,  # noqa: A002 - as above
    *,
    record: bool = False,
) -> GatheredParts:
    """Return the view of a request and its turn, without a recap and without reminders."""
    view = compose_view(view_context, format)
    if record:
        prepare_record(view_context, format, view)
    return GatheredParts(
        view=view.written(format),
        placed=view.placed,
        begins=turn.begins,
        answered=turn.answered,
        recap=None,
        project_root=None,
        reminders=Reminders(kept={}),
        in_order=view.sent is not None,
        since=get_read_mark(view_context.connection),
    )


def _find_last_recap(context: ViewContext, begins: int) -> str | None:
    """Return the recap of the last todo list that has any text.

    There is none of a list that was done before the turn that ``begins`` at a position.
    """
    language = context.policy.language
    rows = TODO_CALLS.rows(
        context.connection,
        **context.line,
        start=max(1, context.visible.first_kept - TODO_LOOK_BACK),
        last=context.last,
        kinds=json.dumps(dict(context.policy.tool_kinds)),
        limit=MOST_TODO_LISTS,
    )
    for seq, call_seq, call_position in rows:  # the newest first
        call = load_chat_message(context.raw, call_seq)["tool_calls"][call_position]
        result = load_chat_message(context.raw, seq).get("content")
        function = call.get("function") or call if isinstance(call, dict) else {}
        if text := render_recap(function.get("arguments"), result, language=language):
            was_done = seq < begins and is_recap_all_done(text)
            return None if was_done else render_phrase("todo_recap", language, recap=text)
    return None


def assemble_request(
    inputs: RequestInputs,
    gathered: GatheredParts,
    law: Law,
    *,
    format: str,  # noqa: A002 - the public name
) -> Context:
    """Return a request from the caller's inputs, the store's parts, and the project's rules."""
    merges = inputs.policy.summary_role == "merge"
    pieces = partial(_list_pieces, inputs, gathered.without_messages, law)
    definitions = inputs.definitions
    layered = Layered(pieces, definitions, merges=merges)
    if is_sent_in_order(inputs, gathered):
        written = WrittenRequest(_write_chat_request(inputs, gathered, law))
    else:
        sent = mark_cache_ends(layered.pieces) if gathered.marked else layered.pieces
        language = inputs.policy.language
        written = _write_in_format(get_format(format), sent, layered.tools, language)
    return Context(
        messages=written.messages,
        system=written.system,
        layered=layered,
        open_turn=None if gathered.answered else gathered.begins,
        tools=None if definitions is None else get_format(format).write_tools(definitions),
        view=gathered.view,
        notices=(law.problem,) if law.problem else (),
    )


def is_sent_in_order(inputs: RequestInputs, gathered: GatheredParts) -> bool:
    """Tell whether a request for a chat is the messages of its view, and others around them."""
    merges = inputs.policy.summary_role == "merge"
    return gathered.in_order and not (merges or gathered.marked)


def _write_chat_request(inputs: RequestInputs, gathered: GatheredParts, law: Law) -> list[Message]:
    """Return a request for a chat, of the messages of the view and those around it."""
    placed = gathered.placed
    shown = [*list_reminded_messages(gathered.view, placed, gathered.reminders)]
    leading = count_leading(placed, shown)
    added = list_added_pieces(inputs, gathered, law)
    written = [CHAT.write([piece.placed for piece in pieces]) for pieces in added]
    return order_parts(written, shown, leading)


def _list_pieces(inputs: RequestInputs, gathered: GatheredParts, law: Law) -> list[Piece]:
    """Return the messages of a request in the order of `LAYERS`."""
    begins, reminders = gathered.begins, gathered.reminders
    shown = [*list_view_pieces(gathered.view, gathered.placed, begins, reminders)]
    leading = count_leading(gathered.placed, [piece.message for piece in shown])
    shown[:leading] = (piece._replace(layer="system") for piece in shown[:leading])
    return order_parts(list_added_pieces(inputs, gathered, law), shown, leading)


def order_parts(added: Sequence[list[PartT]], stored: list[PartT], leading: int) -> list[PartT]:
    """Return the explanations of a request in the order of its messages.

    ``added`` are as in `list_added_pieces`; of the ``stored`` so many are ``leading``.
    """
    before, rules, after = added
    return [*before, *stored[:leading], *rules, *stored[leading:], *after]


def count_leading(placed: list[PlacedMessage], messages: Sequence[Message]) -> int:
    """Return the number of stored system messages that begin a line, of messages as placed."""
    roles = (message["role"] in LEADING_ROLES for message in messages)
    pairs = zip(placed, roles, strict=True)
    return sum(1 for _ in takewhile(lambda pair: pair[1] and pair[0].seq is not None, pairs))


def list_added_pieces(inputs: RequestInputs, gathered: GatheredParts, law: Law) -> AddedPieces:
    """Return the pieces before the system messages of a line, after them, and at the end.

    The project's rules have the role of summaries, if that is the role of a message. The todo list
    is at the end, so it cannot be merged into the first system message. The input of the user is
    not added where it is stored already.
    """
    policy = inputs.policy
    role = policy.summary_role if policy.summary_role in ("user", "developer") else "system"
    rules = [
        *make_pieces("tools", "system", inputs.tools_text),
        *make_pieces("code_law", role, law.text),
    ]
    after: list[Piece] = []
    if gathered.begins is None:
        new_input = make_pieces("user_input", "user", inputs.user_input)
        after += [add_reminder(piece, gathered.reminders) for piece in new_input]
    recap_role = "user" if policy.summary_role == "merge" else role
    after += make_pieces("todo_recap", recap_role, find_recap(inputs, gathered))
    return make_pieces("system", "system", inputs.system), rules, after


def find_recap(inputs: RequestInputs, gathered: GatheredParts) -> str | None:
    """Return the open todos: those of the caller, else those of the store."""
    return gathered.recap if inputs.todo_recap is None else inputs.todo_recap


def _write_in_format(
    format: Format,  # noqa: A002 - what it is
    pieces: Sequence[Piece],
    tools: str,
    language: Language = "en",
) -> WrittenRequest:
    """Return a request in a format; ``tools`` come first where it has no other place for them."""
    placed = [piece.placed for piece in pieces]
    if tools and not format.tools_apart:
        placed.insert(0, PlacedMessage(None, {"role": "system", "content": tools}))
    return format.request(placed, language)
