"""What files of all programs tell of a session, and when each of its messages was said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID, uuid5

from ...records import Message, find_message_time

EXPORT_NAMESPACE = UUID("5a8f1d0e-6f0b-4c52-9d5e-2b1a7c9e4d10")
"""Under which the ids of exported sessions are made."""
LAST_DATE_MOMENT = 253_402_300_799_999
"""The last ms that a date can tell."""
RESULT_ITEM_TYPES = ("tool_result", "function_call_output", "custom_tool_call_output")

TimedMessage = tuple[int, Message]
"""A message as it is sent, and the moment (ms) at which it was said."""


class WritableLine(NamedTuple):
    """A line as it is written: what is said, and where a compaction hides what was before, that.

    Then ``stands`` are the messages that a model is sent instead of the ``hidden`` ones, the
    summary first.
    """

    said: list[TimedMessage]
    hidden: Sequence[TimedMessage] = ()
    stands: Sequence[Message] = ()

    @property
    def size(self) -> int:
        """How many messages were said."""
        return len(self.hidden) + len(self.said)

    @property
    def hidden_until(self) -> int:
        """The time of the last hidden message (ms)."""
        return self.hidden[-1][0]


class WritableSession(NamedTuple):
    """A session as it is written: its new ``id``, where its tools work, when it began (ms)."""

    id: UUID
    cwd: str
    title: str | None
    model: str
    began: int

    def row_id(self, *names: object) -> str:
        """Return an id of a part of it, the same in each export."""
        return str(uuid5(self.id, "/".join(map(str, names))))


def build_session_uuid(*names: object) -> UUID:
    """Return the id of an export, the same for the same names."""
    return uuid5(EXPORT_NAMESPACE, "\n".join(map(str, names)))


def render_iso_moment(moment: int) -> str:
    """Return a moment as programs write it, in UTC."""
    told = datetime.fromtimestamp(min(max(moment, 0), LAST_DATE_MOMENT) // 1000, UTC)
    return f"{told:%Y-%m-%dT%H:%M:%S}.{moment % 1000:03}Z"


def assign_message_moments(
    said: Iterable[Message], sent: Iterable[Message], began: int
) -> Iterator[TimedMessage]:
    """Yield what is sent with when it was said, always later than what stands before it.

    Messages of the same side become one or several of what is sent; so their runs are compared. To
    programs the same words at the same moment are a copy.
    """
    messages = [*said]
    answered = {str(each["tool_call_id"]): each for each in messages if "tool_call_id" in each}
    runs = [[*run] for _, run in groupby(messages, _is_model_item)]
    now = began - 1
    for is_answer, items in groupby(sent, _is_model_item):
        run = runs.pop(0) if runs and _is_model_item(runs[0][0]) == is_answer else []
        now = max(now, _find_first_moment(run) - 1)
        for item in items:
            answers = filter(None, map(answered.get, _list_answered_calls(item)))
            now = max(now + 1, _find_first_moment(answers))
            yield now, item


def _find_first_moment(messages: Iterable[Message]) -> int:
    return next(filter(None, map(find_message_time, messages)), 0)


def _list_answered_calls(item: Message) -> Iterator[str]:
    """Yield the ids of the calls that the sent messages answer."""
    blocks = item.get("content", item.get("parts"))
    for each in [item, *(blocks if isinstance(blocks, list) else [])]:
        if not isinstance(each, dict):
            continue
        if each.get("type") in RESULT_ITEM_TYPES:
            yield str(each.get("tool_use_id") or each.get("call_id"))
        elif "functionResponse" in each:
            yield str(each["functionResponse"]["id"])


def _is_model_item(item: Message) -> bool:
    """Tell what the model said, in any format."""
    kind = str(item.get("type"))
    is_said = item.get("role") in ("assistant", "model")
    return is_said or kind == "reasoning" or kind.endswith("_call")
