"""Pictures, sounds and files in tool results: the newest are sent, the older ones are named.

A screenshot is a million characters of base64, and costs its tokens again in every request that
follows, so the old ones give way first.
"""

from __future__ import annotations

from typing import NamedTuple

from ..messages import Media, Message, changed
from ..policy import Policy
from .repair import Item

RULE = "picture"
"""The rule of entries in which pictures gave way, and the name of its reason."""


class Shown(NamedTuple):
    """Messages with the pictures that are sent, and the positions where older ones gave way.

    ``any``: there is a picture, sent or not.
    """

    items: list[Item]
    named: frozenset[int]
    any: bool = False


def shown(items: list[Item], policy: Policy) -> Shown:
    """Return messages of a line, in order, with all but the newest pictures of results named."""
    if not any(_may_have_pictures(item) for item in items if item.message["role"] == "tool"):
        return Shown(items, frozenset())
    newest = _Newest(policy)
    seen = [_with_newest(item, newest) for item in reversed(items)][::-1]
    pairs = zip(items, seen, strict=True)
    named = frozenset(old.seq for old, new in pairs if old is not new)
    return Shown(seen, named, newest.met_any)


def _may_have_pictures(item: Item) -> bool:
    return not isinstance(item.message.get("content"), str)


class _Newest:
    """What stands for each picture, asked of the newest first."""

    def __init__(self, policy: Policy) -> None:
        self._left = policy.picture_keep
        self._text = policy.picture_placeholder
        self.met_any = False

    def __call__(self, media: Media) -> Message | None:
        self.met_any = True
        self._left -= 1
        return None if self._left >= 0 else media.named(self._text)


def _with_newest(item: Item, newest: _Newest) -> Item:
    """Return a message with what stands for its pictures, if it is a result."""
    if item.message["role"] != "tool" or not _may_have_pictures(item):
        return item
    content = item.message.get("content")
    seen = changed(content, newest)
    if seen is content:
        return item
    return item._replace(message={**item.message, "content": _as_parts(seen, content)})


def _as_parts(seen: object, content: object) -> object:
    """Return a content that was one part alone as a list of parts."""
    return seen if isinstance(content, list) else [seen]
