"""Pictures, sounds and files in tool results: the newest are sent, the older ones are named.

A screenshot is a million characters of base64, and costs its tokens again in every request that
follows, so the old ones give way first.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ..messages import Media, Message, replace_media
from ..policy import Policy
from .repair import Item, open_turn

RULE = "picture"
"""The rule of entries in which pictures gave way, and the name of its reason."""
SCREENSHOT = "computer_screenshot"
"""The type of what a computer's call has for a result."""
PAST, UNREADABLE = "past_picture", "unreadable_picture"
"""The names of its other reasons."""


class Shown(NamedTuple):
    """Messages with the pictures that are sent, and why others gave way, by position.

    ``any``: there is a picture, sent or not.
    """

    items: list[Item]
    named: dict[int, str]
    any: bool = False


def is_sent(policy: Policy) -> bool:
    """Tell whether a policy sends any picture of a result."""
    return policy.picture_keep != 0 or policy.picture_current_turn


def shown(items: list[Item], policy: Policy, *, turn_over: bool) -> Shown:
    """Return messages of a line, in order, with those pictures of results named that are not sent.

    ``turn_over``: a new turn begins behind them.
    """
    if not any(_may_have_pictures(item) for item in items if item.message["role"] == "tool"):
        return Shown(items, {})
    runs_from = inf if turn_over or not policy.picture_current_turn else open_turn(items)
    newest = _Newest(policy)
    named: dict[int, str] = {}
    seen = [*items]
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        newest.is_running = item.seq >= runs_from
        seen[place] = _with_newest(item, newest)
        if seen[place] is not item:
            named[item.seq] = newest.why
    return Shown(seen, named, newest.met_any)


def _may_have_pictures(item: Item) -> bool:
    return not isinstance(item.message.get("content"), str)


class _Newest:
    """What stands for each picture, asked of the newest first; None for one that is sent."""

    def __init__(self, policy: Policy) -> None:
        self._left = inf if policy.picture_keep == "all" else policy.picture_keep
        self._text = policy.picture_placeholder
        self._reason = PAST if policy.picture_current_turn else RULE
        self.is_running = False
        self.met_any = False
        self.why = RULE

    def __call__(self, media: Media) -> Message | None:
        self.met_any = True
        self._left -= 1
        is_sent = self.is_running or self._left >= 0
        if is_sent and media.is_readable:
            return None
        self.why = UNREADABLE if is_sent else self._reason
        return media.named(self._text)


def _with_newest(item: Item, newest: _Newest) -> Item:
    """Return a message with what stands for its pictures, if it is a result.

    A computer's screenshot stays: its call takes nothing else for a result.
    """
    if item.message["role"] != "tool" or not _may_have_pictures(item):
        return item
    content = item.message.get("content")
    if isinstance(content, dict) and content.get("type") == SCREENSHOT:
        newest.met_any = True
        return item
    seen = replace_media(content, newest)
    if seen is content:
        return item
    return item._replace(message={**item.message, "content": _as_parts(seen, content)})


def _as_parts(seen: object, content: object) -> object:
    """Return a content that was one part alone as a list of parts."""
    return seen if isinstance(content, list) else [seen]
