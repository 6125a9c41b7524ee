"""The triggers of a policy: the cost of a line's view, and whether the view should be compacted.

The triggers themselves are arithmetic. ``tokens`` are those of the next request: as many as the
last one really had or as its view has by the estimate, whichever is more, since a usage does not
include the messages after it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from sqlalchemy import Connection

from ..history import (
    Line,
    Pointer,
    find_last_answer,
    find_request_turn,
    load_message_time,
)
from ..policy import Policy
from ..records import Compaction
from ..tokens import third_of_length
from ..view import (
    ViewContext,
    VisibleSet,
    count_view_messages,
    estimate_view_tokens,
    load_view_context,
)


def set_policy_window(policy: Policy, window: int | None) -> Policy:
    """Return a policy for a model's window of so many tokens (None: the policy's own)."""
    if window is None:
        return policy
    return policy.model_copy(update={"context_window": window})


def allow_any_saving(policy: Policy) -> Policy:
    """Return a policy that makes a compaction however little it frees."""
    return policy.model_copy(update={"least_freed": 0.0})


def counts_messages(policy: Policy, tokens: int) -> bool:
    """Tell whether a trigger depends on the number of messages of a view of so many tokens."""
    if policy.trigger_messages is not None:
        return True
    return policy.min_messages > 0 and find_token_trigger(policy, tokens) is not None


def find_trigger(policy: Policy, *, messages: int, tokens: int) -> str | None:
    """Return the trigger of a policy that fires, in words; None if none does."""
    if messages < policy.min_messages:
        return None
    if policy.trigger_messages is not None and messages >= policy.trigger_messages:
        return f"{messages} messages"
    return find_token_trigger(policy, tokens)


def find_token_trigger(policy: Policy, tokens: int) -> str | None:
    """Return the trigger by tokens that fires, in words; None if none does."""
    limit = policy.trigger_tokens
    if limit is not None and tokens >= limit:
        return f"{tokens} tokens, the limit is {limit}"
    if fills_window(policy, tokens):
        return f"{tokens} of {policy.context_window} tokens"
    return None


def fills_window(policy: Policy, tokens: int) -> bool:
    """Tell whether tokens reach the share of the window from which a policy acts."""
    shares = (policy.trigger_ratio, policy.trigger_usage)
    return any(reaches_share(tokens, share, policy.context_window or 0) for share in shares)


def reaches_share(tokens: int, ratio: float | None, window: int) -> bool:
    """Tell whether tokens reach a share of a window, in whole numbers.

    An unknown window is never reached.
    """
    return ratio is not None and window > 0 and tokens >= Fraction(str(ratio)) * window


def overflows_window(policy: Policy, tokens: int) -> bool:
    """Tell whether tokens are too many to be sent, by the policy's window."""
    return reaches_share(tokens, policy.overflow_ratio or 1.0, policy.context_window or 0)


def still_triggers(record: Compaction, policy: Policy, added_tokens: int = 0) -> bool:
    """Tell whether the view after a compaction would still trigger, with the added tokens."""
    size = get_size_after(record)
    if size is None:
        return False
    messages, tokens = size
    return find_trigger(policy, messages=messages, tokens=tokens + added_tokens) is not None


def mark_still_over(record: Compaction, policy: Policy, added_tokens: int = 0) -> Compaction:
    """Return a compaction that says whether the view after it still triggers or overflows."""
    _, tokens = get_size_after(record) or (0, 0)
    over = overflows_window(policy, tokens + added_tokens)
    return record._replace(still_over=over or still_triggers(record, policy, added_tokens))


def get_size_after(record: Compaction) -> tuple[int, int] | None:
    """Return the messages and tokens of the view after a compaction, if its record has them."""
    messages, tokens = record.messages_before, record.tokens_before
    if record.outcome == "applied":
        messages, tokens = record.messages_after, record.tokens_after
    if messages is None or tokens is None:
        return None
    return messages, tokens


class NextRequest(NamedTuple):
    """The additions of the next request to a view: an input, and tokens of prompts and tools."""

    user_input: str = ""
    fixed_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """The tokens of the input, as a check counts them."""
        return third_of_length(self.user_input)


NO_ADDITIONS = NextRequest()


class ViewCost(NamedTuple):
    """The context of a line's view up to its head, with the tokens of the view by the estimate.

    Where a new turn begins with the next request, the results of the last turn are counted in
    their short form.
    """

    context: ViewContext
    tokens: int
    next_request: NextRequest

    @property
    def messages(self) -> int:
        """The messages of the view; they are counted once, and only when they are needed."""
        return count_view_messages(self.context)

    @property
    def added_tokens(self) -> int:
        """The tokens that the next request adds; an input that is already stored adds none."""
        if not self.context.turn_over:
            return self.next_request.fixed_tokens
        return self.next_request.fixed_tokens + self.next_request.input_tokens

    @property
    def request_tokens(self) -> int:
        """The tokens of the next request, by the estimate."""
        return self.tokens + self.added_tokens

    @property
    def overflows(self) -> bool:
        """Whether the next request would be over the window of the policy."""
        return overflows_window(self.context.policy, self.request_tokens)

    @property
    def least_freed(self) -> float:
        """The tokens that a compaction has to free; none of a view over the window."""
        if self.overflows:
            return 0.0
        return self.context.policy.least_freed * self.tokens

    @property
    def goes_by_messages(self) -> bool:
        """Whether the policy has a trigger by messages, and no trigger by tokens fires."""
        policy = self.context.policy
        if policy.trigger_messages is None:
            return False
        return find_token_trigger(policy, self.request_tokens) is None

    def trigger(self, tokens: int) -> str | None:
        """Return the trigger that fires if the next request has so many tokens, in words."""
        policy = self.context.policy
        messages = self.messages if counts_messages(policy, tokens) else 0
        return find_trigger(policy, messages=messages, tokens=tokens)

    def tokens_with(self, remaining: VisibleSet) -> int:
        """Return the tokens that the view has if only this remains visible of the line."""
        return estimate_view_tokens(self.context._replace(visible=remaining))

    def messages_with(self, remaining: VisibleSet) -> int:
        """Return the messages that the view has if only this remains visible of the line."""
        return count_view_messages(self.context._replace(visible=remaining))


def load_view_cost(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    now: int,
    next_request: NextRequest = NO_ADDITIONS,
) -> ViewCost:
    """Return the cost of a line's view; with an input, its cost in a request for that input.

    A new turn begins with an input, unless the input is already stored. While the provider's cache
    is cold, the policy may compact from fewer tokens on.
    """
    user_input = next_request.user_input
    turn_over = bool(user_input) and (
        find_request_turn(Line(connection, pointer), pointer.head, user_input).over
    )
    context = load_view_context(
        connection, pointer, policy, last=pointer.head, now=now, turn_over=turn_over
    )
    if policy.compact_cold_from is not None and is_cache_cold(context):
        limits = [policy.compact_cold_from, policy.trigger_tokens]
        least = min(limit for limit in limits if limit is not None)
        context = context._replace(policy=policy.model_copy(update={"trigger_tokens": least}))
    return ViewCost(context, estimate_view_tokens(context), next_request)


def is_cache_cold(context: ViewContext) -> bool:
    """Tell whether the last request is so old that no prompt cache of the provider holds it.

    The time of the last request is that of its recorded usage, or else of the newest answer. False
    if there was no request.
    """
    usage = context.load_last_request()
    answer = None if usage else find_last_answer(context.raw, context.last)
    requested_at = usage.at if usage else None
    if answer is not None:
        requested_at = load_message_time(context.raw, answer)
    return (
        requested_at is not None
        and context.now - requested_at >= context.policy.prompt_cache.lifetime
    )
