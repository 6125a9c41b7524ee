"""The cache of rendered views in an open store, and how the next view extends a cached one.

**Why a cached view is valid.** A message never changes, and a branch only gets longer. So the first
messages of a line are rendered in the same way each time, as long as the other inputs of the view
are equal: `ViewInputs` names these, and all of them are read in the transaction of the view. Only
redactions and erasures change stored contents, and they are counted. The entries under a branch
belong to one line: a fork, new messages after a rewind, and another session's way through the same
messages are on branches of their own.

If one of these inputs differs, if the line is shorter, or if a part of the view depends on the
whole line (only the newest pictures are sent), the whole view is rendered again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from sys import getsizeof
from typing import NamedTuple

from ..database import get_read_mark, get_reader_cache, measure_bytes
from ..formats import CHAT, CHAT_NAMES, PlacedMessage, rename_continuation
from ..history import load_kinds_json
from ..messages import Message
from .context import ViewContext
from .counts import TokenCounts, extend_token_counts, load_token_counts
from .judging import Verdicts
from .pairing import LineStretch
from .read_files import ReadFiles, load_replaced_files
from .rejudging import (
    FRAME_BYTES,
    JudgedLine,
    ViewInputs,
    build_view_inputs,
    judge_line,
    render_policy_text,
    weigh_judged_line,
)
from .rendering import RenderedSegment, UnsentItem, render_segment

MOST_PATCHES = 100
"""Stretches that are rendered again one by one; if more change, the whole line is."""
_FRAMED_KEYS = frozenset(("role", "content", "tool_call_id", "timestamp", "messageStatus"))
_FRAMED_CALL_KEYS = _FRAMED_KEYS | {"tool_calls"}
"""Keys of a message whose sizes are measured apart, or counted in the frame."""


class FollowedLine(NamedTuple):
    """A line as rendered up to a position, which a later view extends.

    ``written`` is the request, message for message, if it can be written in parts; ``times`` counts
    how often each id of a call is in it before the first loose stretch.
    """

    truth: ViewInputs
    last: int
    judged: JudgedLine
    rendered: RenderedSegment
    tokens: TokenCounts
    files: ReadFiles
    written: list[Message] | None
    times: Mapping[str, int]
    size: int


def follow_line(context: ViewContext, format: str) -> FollowedLine:  # noqa: A002 - the public name
    """Return the rendered line of a look, extending the cached one if there is one."""
    kept = get_reader_cache(context.connection)
    if kept is None:
        return _render_whole_line(
            context,
            format,
            build_view_inputs(context, ""),
            judge_line(context, None),
            is_kept=False,
        )
    key = (*context.line.values(), "view", format, render_policy_text(context.policy))
    truth = build_view_inputs(context, load_kinds_json(context.connection))
    known: FollowedLine | None = kept.get(key)
    if known is not None and known.truth != truth:
        known = None
    judged = judge_line(context, known.judged if known else None)
    grown = _extend_followed_line(context, format, known, judged) if known else None
    kept.count(hit=grown is not None)
    followed = grown or _render_whole_line(context, format, truth, judged, is_kept=True)
    kept.put(key, followed, followed.size, get_read_mark(context.connection))
    return followed


def _render_whole_line(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    truth: ViewInputs,
    judged: JudgedLine,
    *,
    is_kept: bool,
) -> FollowedLine:
    """Return a whole line, rendered; it is written and measured only if it is cached."""
    runs = context.visible_runs()
    made = render_segment(context, judged.final, runs, format, turn_over=context.turn_over)
    sends_pictures = made.has_pictures and (
        context.policy.picture_keep != 0 or context.policy.picture_current_turn
    )
    is_written = is_kept and format == CHAT.name and not sends_pictures
    written, times = _write_line_end(made, {}) if is_written else (None, {})
    return FollowedLine(
        truth,
        context.last,
        judged,
        made,
        load_token_counts(context, runs),
        load_replaced_files(context, made.judged),
        written,
        times,
        _weigh_messages(made.placed) + weigh_judged_line(truth, judged) if is_kept else 0,
    )


def _extend_followed_line(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    known: FollowedLine,
    judged: JudgedLine,
) -> FollowedLine | None:
    """Return a cached line with its new messages, None if the whole line must be rendered again."""
    before = known.rendered
    if judged.changed is None or before.has_pictures or not before.stretches:
        return None
    first = before.stretches[before.loose].seq
    if first < context.visible.first_kept or context.visible.holes:
        return None
    tail = _render_part(context, format, judged, first, context.last, turn_over=context.turn_over)
    if tail is None:
        return None
    settled = [seq for seq in judged.changed if seq < first]
    patches = _render_patches(context, format, before, judged, settled)
    if patches is None:
        return None
    return _merge_followed_line(context, known, judged, tail, patches)


StretchPatch = tuple[int, RenderedSegment]
"""The place of a stretch among the rendered messages, and the stretch as rendered again."""


def _render_part(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    judged: JudgedLine,
    first: int,
    last: int,
    *,
    turn_over: bool,
) -> RenderedSegment | None:
    """Return a part of a line, rendered; None if it depends on other parts."""
    places = range(first, last + 1)
    here = {seq: judged.final[seq] for seq in places if seq in judged.final}
    part = render_segment(context, here, context.shown(first, last), format, turn_over=turn_over)
    if part.has_pictures or part.earliest_call < first:
        return None
    return part


def _render_patches(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    before: RenderedSegment,
    judged: JudgedLine,
    changed: list[int],
) -> list[StretchPatch] | None:
    """Return the stretches of changed verdicts, rendered again; None if one does not fit."""
    found = {_find_stretch(seq, before) for seq in changed}
    if len(found) > MOST_PATCHES:
        return None
    patches: list[StretchPatch] = []
    for place in found:
        stretch, following = before.stretches[place : place + 2]
        if stretch.seq < context.visible.first_kept:
            return None
        part = _render_part(context, format, judged, stretch.seq, following.seq - 1, turn_over=True)
        if part is None or len(part.placed) != following.begin - stretch.begin:
            return None
        patches.append((stretch.begin, part))
    return patches


def _find_stretch(seq: int, made: RenderedSegment) -> int:
    """Return the place of the stretch that includes a position."""
    behind = LineStretch(seq, len(made.placed))
    return bisect_right(made.stretches, behind) - 1


def _merge_followed_line(
    context: ViewContext,
    known: FollowedLine,
    judged: JudgedLine,
    tail: RenderedSegment,
    patches: list[StretchPatch],
) -> FollowedLine:
    """Return a cached line with a new end and with some stretches rendered again."""
    before = known.rendered
    begin = _find_loose_begin(before)
    placed = before.placed[:begin] + tail.placed
    told = before.judged | tail.judged
    size = known.size + FRAME_BYTES * (len(judged.found) - len(known.judged.found))
    size += _weigh_messages(tail.placed) - _weigh_messages(before.placed[begin:])
    for place, patch in patches:
        stretch = slice(place, place + len(patch.placed))
        size += _weigh_messages(patch.placed) - _weigh_messages(placed[stretch])
        placed[stretch] = patch.placed
        told |= patch.judged
    stretches = [each._replace(begin=each.begin + begin) for each in tail.stretches]
    made = RenderedSegment(
        placed,
        told,
        before.stretches[: before.loose] + stretches,
        before.loose + tail.loose,
        {},
        False,
        before.earliest_call,
        _merge_unsent_items(before, tail),
    )
    written, times = _rewrite_request(known, tail, patches)
    return FollowedLine(
        known.truth,
        context.last,
        judged,
        made,
        extend_token_counts(context, known.tokens, known.last),
        _update_read_files(context, known.files, judged, told),
        written,
        times,
        size,
    )


def _merge_unsent_items(before: RenderedSegment, tail: RenderedSegment) -> dict[int, UnsentItem]:
    """Return the messages left out of a line with a new end, which replaces the loose part."""
    first = before.stretches[before.loose].seq
    settled = {seq: each for seq, each in before.left_out.items() if seq < first}
    return settled | tail.left_out


def _find_loose_begin(made: RenderedSegment) -> int:
    return made.stretches[made.loose].begin if made.stretches else 0


def _update_read_files(
    context: ViewContext, known: ReadFiles, judged: JudgedLine, told: Verdicts
) -> ReadFiles:
    """Return the files of the replaced reads; those of newly replaced ones are read."""
    changed = judged.changed or ()
    fresh = {seq: told[seq] for seq in changed if seq in told}
    stays = {seq: files for seq, files in known.items() if seq not in fresh}
    return stays | load_replaced_files(context, fresh)


WrittenLine = tuple[list[Message] | None, Mapping[str, int]]
"""A request to which messages can be added, and how often each of its settled ids is in it.

None in place of a request that cannot be extended.
"""


def _write_line_end(made: RenderedSegment, times: Mapping[str, int]) -> WrittenLine:
    """Return the rendered end of a line as it is sent to a chat."""
    begin = _find_loose_begin(made)
    settled, times = rename_continuation(made.placed[:begin], CHAT_NAMES, times)
    loose, _ = rename_continuation(made.placed[begin:], CHAT_NAMES, times)
    written = CHAT.write([*settled, *loose])
    return (written if len(written) == len(made.placed) else None), times


def _rewrite_request(
    known: FollowedLine, tail: RenderedSegment, patches: list[StretchPatch]
) -> WrittenLine:
    """Return a written request with a new end and with some stretches rendered again."""
    if known.written is None:
        return None, {}
    end, times = _write_line_end(tail, known.times)
    if end is None:
        return None, {}
    written = known.written[: _find_loose_begin(known.rendered)] + end
    for place, patch in patches:
        for index, message in enumerate(CHAT.write(patch.placed), place):
            written[index] = {**message, **_select_call_fields(written[index])}
    return written, times


def _select_call_fields(written: Message) -> Message:
    """Return the calls of a message, or the call that it answers, as they are sent."""
    return {key: written[key] for key in ("tool_calls", "tool_call_id") if key in written}


def _weigh_messages(placed: list[PlacedMessage]) -> int:
    return sum(map(_weigh_message, placed))


def _weigh_message(placed: PlacedMessage) -> int:
    """Return about how many bytes of memory a message takes."""
    message, calls = placed.message, placed.calls
    asked = sum([_weigh_sent_value(call.arguments) for call in calls])
    size = FRAME_BYTES + asked + _weigh_sent_value(message.get("content"))
    framed = _FRAMED_CALL_KEYS if calls else _FRAMED_KEYS
    if framed >= message.keys():
        return size
    return size + measure_bytes([each for key, each in message.items() if key not in framed])


def _weigh_sent_value(value: object) -> int:
    """Return the bytes of a value as stored and as sent; a text is the same object in both."""
    return getsizeof(value) if isinstance(value, str) else 2 * measure_bytes(value)
