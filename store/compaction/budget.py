"""What a line's view has and costs now, and what the next request adds to it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..history import Line, Pointer, turn_of
from ..policy import Policy
from ..tokens import third_of_length
from ..view import Look, Visible, look_at, view_messages, view_tokens, visible
from .caches import is_cold
from .triggers import counts_messages, goes_by_messages, overflows, triggered, when_cold


class Added(NamedTuple):
    """What the next request adds to a view: an input, and the tokens of prompts, tools and such."""

    user_input: str = ""
    fixed_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """The tokens of the input, as a check counts them."""
        return third_of_length(self.user_input)


NOTHING_ADDED = Added()


class Budget(NamedTuple):
    """A look at a line up to its head, with the tokens of the view by the estimate.

    ``coming`` is what the next request adds. Where a new turn begins with it, the results of the
    last one are counted in their short form.
    """

    look: Look
    tokens: int
    coming: Added

    @property
    def messages(self) -> int:
        """The messages of the view; they are counted once, and only where something asks."""
        return view_messages(self.look)

    @property
    def added(self) -> int:
        """The tokens that the next request adds; of an input that is stored already none."""
        if not self.look.turn_over:
            return self.coming.fixed_tokens
        return self.coming.fixed_tokens + self.coming.input_tokens

    @property
    def to_send(self) -> int:
        """The tokens of the next request, by the estimate."""
        return self.tokens + self.added

    @property
    def over(self) -> bool:
        """Whether the next request would be over the window of the policy."""
        return overflows(self.look.policy, self.to_send)

    @property
    def to_free(self) -> float:
        """The tokens that a compaction has to free; none of a view over the window."""
        if self.over:
            return 0.0
        return self.look.policy.least_freed * self.tokens

    @property
    def goes_by_messages(self) -> bool:
        """Whether the policy has a trigger by messages, and no other one fires."""
        return goes_by_messages(self.look.policy, self.to_send)

    def trigger(self, tokens: int) -> str | None:
        """Return which trigger fires if the next request has so many tokens, in words."""
        policy = self.look.policy
        messages = self.messages if counts_messages(policy, tokens) else 0
        return triggered(policy, messages=messages, tokens=tokens)

    def tokens_with(self, left: Visible) -> int:
        """Return the tokens that the view has if this is left visible of the line."""
        return view_tokens(self.look._replace(visible=left))

    def messages_with(self, left: Visible) -> int:
        """Return the messages that the view has if this is left visible of the line."""
        return view_messages(self.look._replace(visible=left))


def budget(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    now: int,
    added: Added = NOTHING_ADDED,
) -> Budget:
    """Return what a line's view costs; with an input what it will cost in a request for that."""
    over = _ends_turn(connection, pointer, added.user_input)
    look = look_at(connection, pointer, policy, last=pointer.head, now=now, turn_over=over)
    if policy.compact_cold_from is not None and is_cold(look):
        look = look._replace(policy=when_cold(policy))
    return budget_of(look, added)


def budget_of(look: Look, added: Added = NOTHING_ADDED) -> Budget:
    """Return what the view of a look has."""
    return Budget(look, view_tokens(look), added)


def _ends_turn(connection: Connection, pointer: Pointer, user_input: str) -> bool:
    """Tell whether a new turn begins with an input; not with one that is stored already."""
    return bool(user_input) and turn_of(Line(connection, pointer), pointer.head, user_input).over


def budget_by_now(before: Budget, connection: Connection, pointer: Pointer, now: int) -> Budget:
    """Return what a line's view costs in a later transaction.

    It is what it was before, if the line has not changed since.
    """
    look = before.look._replace(connection=connection)
    if _is_unchanged(look, pointer):
        return before._replace(look=look)
    return budget(connection, pointer, look.policy, now, before.coming)


def _is_unchanged(look: Look, pointer: Pointer) -> bool:
    """Tell whether a session is where it was at a look, with the same left visible."""
    left = visible(look.connection, pointer, pointer.head)
    return (look.pointer, look.visible) == (pointer, left)
