"""What a line's view has and costs now, and what the next request adds to it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..history import Line, Pointer, find_request_turn
from ..policy import Policy
from ..tokens import third_of_length
from ..view import (
    ViewContext,
    VisibleSet,
    count_view_messages,
    estimate_view_tokens,
    load_view_context,
    load_visible_set,
)
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

    context: ViewContext
    tokens: int
    coming: Added

    @property
    def messages(self) -> int:
        """The messages of the view; they are counted once, and only where something asks."""
        return count_view_messages(self.context)

    @property
    def added(self) -> int:
        """The tokens that the next request adds; of an input that is stored already none."""
        if not self.context.turn_over:
            return self.coming.fixed_tokens
        return self.coming.fixed_tokens + self.coming.input_tokens

    @property
    def to_send(self) -> int:
        """The tokens of the next request, by the estimate."""
        return self.tokens + self.added

    @property
    def over(self) -> bool:
        """Whether the next request would be over the window of the policy."""
        return overflows(self.context.policy, self.to_send)

    @property
    def to_free(self) -> float:
        """The tokens that a compaction has to free; none of a view over the window."""
        if self.over:
            return 0.0
        return self.context.policy.least_freed * self.tokens

    @property
    def goes_by_messages(self) -> bool:
        """Whether the policy has a trigger by messages, and no other one fires."""
        return goes_by_messages(self.context.policy, self.to_send)

    def trigger(self, tokens: int) -> str | None:
        """Return which trigger fires if the next request has so many tokens, in words."""
        policy = self.context.policy
        messages = self.messages if counts_messages(policy, tokens) else 0
        return triggered(policy, messages=messages, tokens=tokens)

    def tokens_with(self, left: VisibleSet) -> int:
        """Return the tokens that the view has if this is left visible of the line."""
        return estimate_view_tokens(self.context._replace(visible=left))

    def messages_with(self, left: VisibleSet) -> int:
        """Return the messages that the view has if this is left visible of the line."""
        return count_view_messages(self.context._replace(visible=left))


def budget(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    now: int,
    added: Added = NOTHING_ADDED,
) -> Budget:
    """Return what a line's view costs; with an input what it will cost in a request for that."""
    over = _ends_turn(connection, pointer, added.user_input)
    context = load_view_context(
        connection, pointer, policy, last=pointer.head, now=now, turn_over=over
    )
    if policy.compact_cold_from is not None and is_cold(context):
        context = context._replace(policy=when_cold(policy))
    return budget_of(context, added)


def budget_of(context: ViewContext, added: Added = NOTHING_ADDED) -> Budget:
    """Return what the view of a look has."""
    return Budget(context, estimate_view_tokens(context), added)


def _ends_turn(connection: Connection, pointer: Pointer, user_input: str) -> bool:
    """Tell whether a new turn begins with an input; not with one that is stored already."""
    return (
        bool(user_input)
        and find_request_turn(Line(connection, pointer), pointer.head, user_input).over
    )


def budget_by_now(before: Budget, connection: Connection, pointer: Pointer, now: int) -> Budget:
    """Return what a line's view costs in a later transaction.

    It is what it was before, if the line has not changed since.
    """
    context = before.context._replace(connection=connection)
    if _is_unchanged(context, pointer):
        return before._replace(context=context)
    return budget(connection, pointer, context.policy, now, before.coming)


def _is_unchanged(context: ViewContext, pointer: Pointer) -> bool:
    """Tell whether a session is where it was at a look, with the same left visible."""
    left = load_visible_set(context.connection, pointer, pointer.head)
    return (context.pointer, context.visible) == (pointer, left)
