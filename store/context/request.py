"""A request as it is sent: rules and prompts in front, then the view, the input, the running turn.

The layers stand in a fixed order, so that what seldom changes comes first and a provider's prompt
cache keeps it:

    system       the caller's prompt, then the system messages that begin the line
    tools        the caller's tools: beside the messages, or a message if they are a text
    code_law     the project's ``CODE_LAW.md``, as it is now, never stored
    history      summaries and finished turns, in their short form
    user_input   what the user wants now, with a reminder of the files that it mentions
    steps        what was done about it so far, whole
    todo_recap   what is left to do

Where there is no new input, the last user message is the current one: so a turn that a crash cut
off is resumed by asking again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple

from ..errors import InvalidValue
from ..formats import CHAT, REACT, Format, Placed, System, Written, format_named
from ..messages import Message
from ..policy import TURNS, Policy, checked
from ..ready import Language
from ..records import View
from .at_files import mentions, remind
from .gathered import LOOK_BACK, Gathered, gather
from .law import Law
from .layered import Hashed, Layered, as_json
from .pieces import LAYERS, Piece, made, of_view, reminded, with_markers, with_reminders

__all__ = ["LAYERS", "LOOK_BACK", "Context", "Piece", "gather", "mentions", "remind"]

Tools = str | Sequence[Mapping[str, Any]]


class Context(NamedTuple):
    """A request.

    ``messages`` are clean for the API, ``layers`` the tokens of each layer, ``text`` the same as
    ReAct.

    With the format ``react``, ``messages`` are one user message: the text. ``stable_prefix_tokens``
    are as in the request that the store assembled before for the session: what a prompt cache still
    holds; ``first_changed`` is the index of the first message that differs from it (None: none
    does). Where there was none, ``is_first`` says so, and these are 0 and None. ``open_turn`` is
    the position of the user message that is being worked on (None: it is answered already, or not
    stored yet). ``tools`` are sent beside the messages, where they were given as definitions.
    ``pieces`` hold chat messages in every format. ``notices`` say what is not sent though it is
    there, such as project rules that are too long. ``system`` is the system text of a format that
    has a place of its own for it, as in a `View`.
    """

    messages: list[Any]
    layered: Layered
    open_turn: int | None
    tools: list[Any] | None
    view: View
    before: Layered | Hashed | None = None
    notices: tuple[str, ...] = ()
    system: System = None

    @property
    def pieces(self) -> list[Piece]:
        """Each message in its layer, with what it costs."""
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
        """How much a request begins with of the one before: its tools, then messages."""
        return 0 if self.before is None else _common(self.before.hashes, self.layered.hashes)

    @property
    def fixed_tokens(self) -> int:
        """The tokens of what is neither of the view nor the new input: for `Store.check`.

        Reminders of files are among them, that of the new input too: each later request has it.
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

        Tool definitions stand in front, made-up calls are left out.
        """
        (whole,) = _written(REACT, self.pieces, self.tools).messages
        return str(whole["content"])


LEADING = ("system", "developer")
"""The roles of what may begin a line."""


class Asked(NamedTuple):
    """What the caller of `Store.context` gives of a request; None where the store is to find it."""

    system: str | None = None
    tools: Tools | None = None
    user_input: str | None = None
    todo_recap: str | None = None
    policy: Policy = TURNS

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


def asked(
    system: object,
    tools: object,
    user_input: object,
    todo_recap: object,
    policy: Policy | None,
) -> Asked:
    """Return what a caller gives of a request.

    Raises InvalidValue for what is no text, no list of tools, or no policy.
    """
    _require_texts(system=system, user_input=user_input, todo_recap=todo_recap)
    _require_tools(tools)
    chosen = TURNS if policy is None else checked(policy)
    return Asked(system, tools, user_input, todo_recap, chosen)  # type: ignore[arg-type]


def _require_texts(**given: object) -> None:
    for name, text in given.items():
        if text is not None and not isinstance(text, str):
            raise InvalidValue(f"{name} is a text, not {type(text).__name__}")


def _require_tools(tools: object) -> None:
    if tools is None or isinstance(tools, str) or _is_list_of_objects(tools):
        return
    raise InvalidValue("tools are a text, or a list of definitions as the API takes them")


def assemble(
    asked: Asked,
    gathered: Gathered,
    law: Law,
    *,
    format: str,  # noqa: A002 - the public name
    marked: bool = False,
) -> Context:
    """Return a request from what the caller gave, what the store has, and the project's rules."""
    merges = asked.policy.summary_role == "merge"
    pieces = partial(_layered, asked, gathered.explained, law)
    layered = Layered(pieces, asked.definitions, merges=merges)
    if gathered.in_order and not (merges or marked):
        written = Written(_in_order(asked, gathered, law))
    else:
        sent = with_markers(layered.pieces) if marked else layered.pieces
        language = asked.policy.language
        written = _written(format_named(format), sent, asked.definitions, language)
    return Context(
        messages=written.messages,
        system=written.system,
        layered=layered,
        open_turn=None if gathered.answered else gathered.begins,
        tools=asked.definitions,
        view=gathered.view,
        notices=(law.problem,) if law.problem else (),
    )


def _in_order(asked: Asked, gathered: Gathered, law: Law) -> list[Message]:
    """Return a request for a chat, of what the view sends and what stands around it."""
    language = asked.policy.language
    shown = [*with_reminders(gathered.view, gathered.placed, gathered.project_root, language)]
    stored = zip(gathered.placed, shown, strict=True)
    leading = sum(1 for _ in takewhile(_leads_view, stored))
    return [
        *_chat(made("system", "system", asked.system)),
        *shown[:leading],
        *_chat(_rules(asked, law)),
        *shown[leading:],
        *_chat(_new_input(asked, gathered)),
        *_chat(_left_to_do(asked, gathered, _recap_role(asked.policy))),
    ]


def _chat(pieces: list[Piece]) -> list[Message]:
    return CHAT.write([piece.placed for piece in pieces])


def _leads_view(stored: tuple[Placed, Message]) -> bool:
    placed, message = stored
    return placed.seq is not None and message["role"] in LEADING


def _rules(asked: Asked, law: Law) -> list[Piece]:
    """Return what stands between the system messages and the history."""
    return [
        *made("tools", "system", asked.tools_text),
        *made("code_law", _law_role(asked.policy), law.text),
    ]


def _layered(asked: Asked, gathered: Gathered, law: Law) -> list[Piece]:
    """Return the messages of a request in the order of `LAYERS`."""
    root, language = gathered.project_root, asked.policy.language
    shown = list(of_view(gathered.view, gathered.placed, gathered.begins, root, language))
    leading = list(takewhile(_leads, shown))
    return [
        *made("system", "system", asked.system),
        *(piece._replace(layer="system") for piece in leading),
        *_rules(asked, law),
        *shown[len(leading) :],
        *_new_input(asked, gathered),
        *_left_to_do(asked, gathered, _recap_role(asked.policy)),
    ]


def _law_role(policy: Policy) -> str:
    """Return the role of the project's rules: that of summaries, where it is one of a message."""
    if policy.summary_role in ("user", "developer"):
        return policy.summary_role
    return "system"


def _recap_role(policy: Policy) -> str:
    """Return the role of what is left to do: at the end it cannot be merged into the first one."""
    return "user" if policy.summary_role == "merge" else _law_role(policy)


def _leads(piece: Piece) -> bool:
    """Tell one of the stored system messages that begin a line."""
    return piece.seq is not None and piece.message["role"] in LEADING


def _new_input(asked: Asked, gathered: Gathered) -> list[Piece]:
    """Return what the user says now; nothing where it is stored already."""
    if gathered.begins is not None:
        return []
    said = made("user_input", "user", asked.user_input)
    root, language = gathered.project_root, asked.policy.language
    return [reminded(piece, root, language) for piece in said]


def _left_to_do(asked: Asked, gathered: Gathered, role: str) -> list[Piece]:
    given = asked.todo_recap
    return made("todo_recap", role, gathered.recap if given is None else given)


def _written(
    format: Format,  # noqa: A002 - what it is
    pieces: Sequence[Piece],
    tools: Sequence[Mapping[str, Any]] | None,
    language: Language = "en",
) -> Written:
    """Return a request in a format; tools stand in front where it has no place beside them."""
    placed = [piece.placed for piece in pieces]
    if tools and not format.tools_apart:
        placed.insert(0, Placed(None, {"role": "system", "content": as_json(tools)}))
    return format.request(placed, language)


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(each, Mapping) for each in value)


def _common(before: Sequence[int], now: Sequence[int]) -> int:
    """Return how many of their first numbers two lists have in common."""
    same = map(eq, before, now)
    return sum(takewhile(bool, same))
