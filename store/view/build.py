"""The view: the messages for the model, computed from a line by the rules of a policy.

First the rules judge the narrow tables. Then one scan of each run reads the messages, except the
contents that will be replaced. Last, calls and results are paired and the messages are written for
the API. No stored byte changes.

**The next view extends the rendered line of the last one** (`ViewCache`). Its new messages replace
the part that was still loose, and stretches with changed verdicts are rendered again. The whole
line is rendered if a part of it depends on the whole, or if much has changed.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, partial
from sys import getsizeof
from typing import NamedTuple

from sqlalchemy import Connection

from .. import history
from ..clock import Now, require_moment
from ..database import get_logger, measure_bytes, pause_gc
from ..errors import InvalidValue
from ..formats import (
    ANTHROPIC,
    CHAT,
    CHAT_NAMES,
    GEMINI,
    RESPONSES,
    PlacedMessage,
    WrittenRequest,
    add_reasoning,
    copy_written_message,
    get_format,
    keep_own_markers,
    remove_extensions,
    rename_continuation,
    render_draft_text,
)
from ..history import lines, raw_messages, session_branches
from ..messages import Message, extract_content_text
from ..phrases import Language
from ..policy import STANDARD_POLICY, Policy, check_policy
from ..records import View
from .counts import TokenCounts, extend_token_counts, load_token_counts, send_estimates
from .early_queries import load_viewed_pointer, send_view_queries
from .explanation import (
    Explanation,
    ExplanationInputs,
    RequestBasis,
    find_earlier_request,
    measure_placed,
)
from .line_rows import LineRows, LineUse, load_plain_rows
from .log_messages import LOG_LANGUAGE, LogMessage, get_named_language
from .message_rendering import LineStretch, RenderedSegment, keep_sent_names, render_segment
from .read_files import ReadFiles, load_read_paths, log_reads, read_logger
from .row_rendering import WritePlainRequest, write_plain_line
from .rules import RULE_LOG_TEXTS
from .sent_digest import KEY_BYTES, SentDigest, key_messages
from .verdicts import FRAME_BYTES, JudgedLine, Verdicts, judge_line, load_replacements
from .visible_set import ActiveSummary, HiddenRange, ViewContext, load_view_context

view_logger = get_logger(__name__)

DEMANDED_RULE_LINES = ("terminal", "file_read")
"""The rules whose lines of the log are demanded in Chinese (S0.29, S1.41)."""
RULE_LOG_MESSAGES = {
    rule: LogMessage(
        logging.INFO,
        f"a view replaces results by the rule `{rule}`: how many",
        texts,
        "zh" if rule in DEMANDED_RULE_LINES else LOG_LANGUAGE,
    )
    for rule, texts in RULE_LOG_TEXTS.items()
}
DRAFT_RULE = "draft"
DRAFT_REASON = "an answer that broke off, which is no message: draft {}"
BYTES_PER_TOKEN = 4
"""Bytes of a text for each of its estimated tokens; less of one that is not ASCII."""
ROW_BYTES = 600
"""Bytes of a message's row without its content; a call without its arguments takes as many."""
COST_BYTES = 100
"""Bytes of the measures of a message."""
MOST_PATCHES = 100
"""Stretches that are rendered again one by one; if more change, the whole line is."""
OWN_FORMATS = (RESPONSES.name, ANTHROPIC.name, GEMINI.name)
"""The formats in which a line is plain if all of it came in them."""
_FRAMED_KEYS = frozenset(("role", "content", "tool_call_id", "timestamp", "messageStatus"))
_FRAMED_CALL_KEYS = _FRAMED_KEYS | {"tool_calls"}
"""Keys of a message whose sizes are measured apart, or counted in the frame."""


def view(
    connection: Connection,
    session_id: str,
    policy: Policy | None = None,
    *,
    at: int | None = None,
    now: Now = None,
    format: str = "openai",  # noqa: A002 - the public name
    branch: int | None = None,
    record: bool = False,
    whole: bool = False,
) -> View:
    """Return the messages for the model: a line up to position ``at``, by a policy at a moment.

    Defaults: ``at`` is the end of the line, ``policy`` is ``Policy()``, ``now`` is the present. For
    coding agents ``Policy.named("agent")`` is the better policy. The same line, policy and moment
    always give the same messages, unless a compaction is recorded later at that very position.
    ``branch`` names a line that the session can go back to, so that its requests can be replayed
    too. ``record`` keeps the request in the log, in a transaction of its own: `requests` lists it,
    and `request` makes it again. With ``whole`` the messages keep all that is stored of them, such
    as ids, times and keys of an app, and have the texts that are sent; that is no request, so it
    goes neither with ``record`` nor with another format. Raises SessionNotFound,
    PositionOutOfRange, and InvalidValue for a branch or an unknown format.
    """
    get_format(format)
    if whole and (record or format != CHAT.name):
        raise InvalidValue(
            f"whole messages are no request: give no record=, and format={CHAT.name!r}"
        )
    pointer, state = load_viewed_pointer(connection, session_id)
    if branch is not None:
        pointer = session_branches.find_branch_end(connection, pointer, branch)
    last = lines.resolve_position(pointer, at)
    rules = STANDARD_POLICY if policy is None else check_policy(policy)
    send_view_queries(connection, pointer, last, state)
    moment = require_moment(now)
    context = load_view_context(connection, pointer, rules, last=last, now=moment, state=state)
    made = build_view(context, format, record=record)
    return made._replace(messages=[each.message for each in made.entries]) if whole else made


def build_view(context: ViewContext, format: str, *, record: bool = False) -> View:  # noqa: A002 - the public name
    """Return the view of a look; one to ``record`` tells the kinds of tools in force."""
    first = context.visible.first_kept
    runs = partial(context.told, first, context.last)
    with pause_gc(context.last - first), raw_messages.report_damage(context.connection, runs):
        line = _load_line(context, format, plain=not record and _may_be_plain(context, format))
        if isinstance(line, PlainLine):
            return _write_plain_view(context, format, line)
        made = _compose_view(context, format, line)
        if record:
            prepare_record(context, format, made)
        return made.written(format)


def prepare_record(context: ViewContext, format: str, made: ComposedView) -> None:  # noqa: A002 - as above
    """Add what a record of a view needs; the next one measures and digests new messages only."""
    names = [context.build_cache_name(each, format) for each in ("costs", "digest")]
    explained, cache = made.explained, context.cache
    known, digest = map(cache.load, names) if cache.is_enabled else (None, None)
    costs, digest = measure_placed(explained.inputs, known), digest or SentDigest()
    if cache.is_enabled:
        cache.save(names[0], costs, COST_BYTES * len(costs.tokens))
        cache.save(names[1], digest, KEY_BYTES * len(costs.tokens))
    keyed = None if made.sent is None else key_messages(made.placed, made.sent)
    kinds, policy, root = context.load_kinds(), str(names[0][-1]), context.pointer.project_root
    explained.basis = RequestBasis(kinds, policy, root, costs, digest, keyed)


def _may_be_plain(context: ViewContext, format: str) -> bool:  # noqa: A002 - the public name
    """Tell whether a view may be its summaries and then the messages of its rows, one for each."""
    visible, policy = context.visible, context.policy
    cuts = policy.cut_arguments and (
        policy.clearing == "always" or "arguments" in visible.cleared.values()
    )
    is_own = format in OWN_FORMATS and policy.foreign_reasoning != "text"
    return (
        (format == CHAT.name or is_own)
        and not (policy.cache_control and format == ANTHROPIC.name)
        and not (visible.pinned or visible.ranges or policy.show_drafts or cuts)
        and not (policy.summary_role == "merge" and visible.summaries)
    )


def _write_plain_view(context: ViewContext, format: str, line: PlainLine) -> View:  # noqa: A002 - as above
    """Return the view of a plain line; its messages are placed only for an explanation."""
    stored, write = line
    sight, turn_over, pointer = context.sight, context.turn_over, context.pointer
    summaries = [_place_summary(each, sight.policy) for each in sight.visible.summaries]

    @cache
    def place() -> list[PlacedMessage]:
        stored.use.is_explained = True
        judged = stored.judged.final
        with pause_gc(len(stored.rows.messages)):
            made = render_segment(sight, judged, stored.rows, format, turn_over=turn_over)
        return [*summaries, *made.placed]

    explained = _explain(context, format, stored, place)
    sent, system = write(summaries)
    return View(sent, explained, pointer.session_id, pointer.branch, context.last, system)


class ComposedView(NamedTuple):
    """A view that is not written for a provider yet.

    ``sent`` are its messages as cached for the format, None where they still have to be written.
    """

    placed: list[PlacedMessage]
    explained: Explanation
    sent: list[Message] | None
    session_id: str
    branch: int
    at: int
    language: Language

    def written(self, format: str) -> View:  # noqa: A002 - the public name
        """Return the view in a format; the caller may change its messages."""
        with pause_gc(len(self.placed)):
            if self.sent is not None:
                request = WrittenRequest([*map(copy_written_message, self.sent)])
            else:
                request = get_format(format).request(self.placed, self.language)
        messages, system = request
        return View(messages, self.explained, self.session_id, self.branch, self.at, system)


def compose_view(context: ViewContext, format: str = CHAT.name) -> ComposedView:  # noqa: A002 - the public name
    """Return the view of a look, before it is written in a format."""
    with pause_gc(context.last - context.visible.first_kept):
        line = _load_line(context, format, plain=False)
        assert isinstance(line, RenderedLine)
        return _compose_view(context, format, line)


def _compose_view(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    line: RenderedLine,
) -> ComposedView:
    policy, pointer = context.policy, context.pointer
    in_order, sent = _order_messages(context, line)
    explained = _explain(context, format, line, lambda: in_order)
    placed = in_order
    if policy.foreign_reasoning == "text":
        reasoned = add_reasoning(placed, format, extensions=policy.chat_extensions)
        placed, sent = [*reasoned], None
    if not policy.chat_extensions and format == CHAT.name:
        placed, sent = [*map(remove_extensions, placed)], None
    if policy.cache_control and format == ANTHROPIC.name:
        placed = keep_own_markers(placed, format)
    names = (pointer.session_id, pointer.branch, context.last)
    return ComposedView(placed, explained, sent, *names, policy.language)


def _explain(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    line: StoredLine | RenderedLine,
    place: Callable[[], list[PlacedMessage]],
) -> Explanation:
    """Return the explanation of a view, and log what the rules replaced in it.

    ``place`` returns the messages of the view in their places.
    """
    sight, names = context.sight, get_format(format).names
    judged, pictured, left_out = line.judged.final, {}, {}
    if isinstance(line, RenderedLine):
        made = line.rendered
        judged, pictured, left_out = made.judged, made.pictured, made.left_out
    tokens, files = line.tokens, line.files
    stored = context.load_tokens(context.last)
    request = find_earlier_request(context, place)
    explained = Explanation(
        lambda: ExplanationInputs(
            sight,
            names,
            place(),
            judged,
            tokens,
            files,
            pictured,
            stored,
            request,
            left_out,
            format,
        )
    )
    _log_rules(context, explained, judged, files)
    return explained


def _log_rules(
    context: ViewContext, explained: Explanation, judged: Verdicts, files: ReadFiles
) -> None:
    """Log what the rules replaced in a view."""
    session_id, language = context.pointer.session_id, get_named_language(context.policy)
    if read_logger.isEnabledFor(logging.DEBUG):
        unknown = [verdict.seq for verdict in judged.values() if verdict.why == "no_path"]
        log_reads(session_id, files, unknown, language)
    for rule, line in RULE_LOG_MESSAGES.items() if view_logger.isEnabledFor(logging.INFO) else ():
        if times := explained.stats.replaced.get(rule):
            line.log(view_logger, language, times, session_id=session_id, rule=rule)


class StoredLine(NamedTuple):
    """A line as read up to a position, which a later view extends."""

    last: int
    judged: JudgedLine
    rows: LineRows
    tokens: TokenCounts
    files: ReadFiles
    size: int
    use: LineUse


class RenderedLine(NamedTuple):
    """A line as rendered up to a position, which a later view extends.

    ``written`` is the request, message for message, if it can be written in parts; ``times`` counts
    how often each id of a call is in it before the first loose stretch.
    """

    last: int
    judged: JudgedLine
    rendered: RenderedSegment
    tokens: TokenCounts
    files: ReadFiles
    written: list[Message] | None
    times: Mapping[str, int]
    size: int


class PlainLine(NamedTuple):
    """A line whose messages are sent straight from its rows, and what writes them."""

    stored: StoredLine
    write: WritePlainRequest


def _load_line(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    *,
    plain: bool,
) -> PlainLine | RenderedLine:
    """Return the line of a look, extending the cached one if there is one.

    It is rendered unless it may be ``plain`` and is. After a view that was explained, the next one
    is rendered: it will probably be explained, too, and a plain line would be rendered whole then.
    """
    cache = context.cache
    known: StoredLine | RenderedLine | None = None
    if cache.is_enabled:
        name, validity = context.build_cache_name("view", format), context.load_validity()
        known = cache.load(name, validity)
    judged = judge_line(context, known.judged if known else None)
    line: PlainLine | RenderedLine | None = None
    known_rows = 1
    if isinstance(known, RenderedLine):
        line, known = _extend_rendered_line(context, format, known, judged), None
    if line is None:
        plain = plain and not (known and known.use.is_explained)
        stored, known_rows = _read_line(context, judged, known)
        write = None
        if plain:
            language = context.policy.language
            write = write_plain_line(stored.rows, judged.final, format, language, known_rows)
        line = PlainLine(stored, write) if write else _render_whole_line(context, format, stored)
    cache.count_view(hit=known_rows > 0)
    if cache.is_enabled:
        cache.count(hit=known_rows > 0)
        kept = line.stored if isinstance(line, PlainLine) else line
        cache.save(name, kept, kept.size, validity)
    return line


def _read_line(
    context: ViewContext, judged: JudgedLine, known: StoredLine | None
) -> tuple[StoredLine, int]:
    """Return a line as it is stored, and how many of its rows are those of a cached one."""
    rows, known_rows = None, 0
    if known and judged.changed is not None:
        changed = {seq: judged.final[seq] for seq in judged.changed}
        replaced = load_replacements(context, changed)
        new_runs = context.shown(known.last + 1, context.last)
        send_estimates(context, new_runs)
        new = load_plain_rows(context, changed, replaced, new_runs)
        rows = known.rows.extend(new, changed)
    if known and rows:
        known_rows = len(known.rows.messages)
        tokens = extend_token_counts(context, known.tokens, known.last)
        files = _load_replaced_files(context, changed, known.files, changed)
    else:
        runs = context.visible_runs()
        replaced = load_replacements(context, judged.final)
        send_estimates(context, runs)
        rows = load_plain_rows(context, judged.final, replaced, runs)
        tokens = load_token_counts(context, runs)
        files = _load_replaced_files(context, judged.final, {}, judged.final)
    size = judged.measure_size(context.visible) + _weigh_rows(context, rows, judged.final)
    return StoredLine(context.last, judged, rows, tokens, files, size, LineUse()), known_rows


def _weigh_rows(context: ViewContext, rows: LineRows, judged: Verdicts) -> int:
    """Return about how many bytes of memory rows take."""
    ends = (context.last, context.visible.first_kept - 1)
    last, before = map(context.load_tokens, ends)
    unread = sum(judged[seq].size for seq in rows.replaced)
    texts = max(0, BYTES_PER_TOKEN * (last - before) - unread)
    return texts + ROW_BYTES * (len(rows.messages) + len(rows.calls))


def _render_whole_line(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    stored: StoredLine,
) -> RenderedLine:
    """Return a whole line, rendered; it is written and measured only if it is cached."""
    last, judged, rows, tokens, files, _, _ = stored
    is_cached = context.cache.is_enabled
    made = render_segment(context.sight, judged.final, rows, format, turn_over=context.turn_over)
    sends_pictures = made.has_pictures and (
        context.policy.picture_keep != 0 or context.policy.picture_current_turn
    )
    is_written = is_cached and format == CHAT.name and not sends_pictures
    written, times = _write_line_end(made, {}) if is_written else (None, {})
    size = judged.measure_size(context.visible) + _weigh_messages(made.placed) if is_cached else 0
    return RenderedLine(last, judged, made, tokens, files, written, times, size)


def _load_replaced_files(
    context: ViewContext, judged: Verdicts, known: ReadFiles, changed: Collection[int]
) -> ReadFiles:
    """Return the files of the replaced reads; only those with changed verdicts are read."""
    fresh = [verdict for seq in changed if (verdict := judged.get(seq))]
    replaced = [verdict.seq for verdict in fresh if verdict.rule == "file_read"]
    gone = {verdict.seq for verdict in fresh} if known else ()
    stays = {seq: files for seq, files in known.items() if seq not in gone}
    return stays | load_read_paths(context, replaced) if replaced else stays


StretchPatch = tuple[int, RenderedSegment]
"""The place of a stretch among the rendered messages, and the stretch as rendered again."""


def _extend_rendered_line(
    context: ViewContext,
    format: str,  # noqa: A002 - the public name
    known: RenderedLine,
    judged: JudgedLine,
) -> RenderedLine | None:
    """Return a cached line with its new messages, None if the whole line must be rendered again."""
    before, visible = known.rendered, context.visible
    if judged.changed is None or before.has_pictures or not before.stretches:
        return None
    first = before.stretches[before.loose].seq
    if first < visible.first_kept or visible.holes:
        return None
    send_estimates(context, context.shown(known.last + 1, context.last))
    tail = _render_part(context, format, judged, first, context.last, turn_over=context.turn_over)
    changed = (LineStretch(seq, len(before.placed)) for seq in judged.changed if seq < first)
    places = {bisect_right(before.stretches, each) - 1 for each in changed}
    if tail is None or len(places) > MOST_PATCHES:
        return None
    patches: list[StretchPatch] = []
    for place in places:
        stretch, following = before.stretches[place : place + 2]
        if stretch.seq < visible.first_kept:
            return None
        part = _render_part(context, format, judged, stretch.seq, following.seq - 1, turn_over=True)
        if part is None or len(part.placed) != following.begin - stretch.begin:
            return None
        patches.append((stretch.begin, part))
    return _merge_rendered_line(context, known, judged, tail, patches)


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
    replaced = load_replacements(context, here)
    rows = load_plain_rows(context, here, replaced, context.shown(first, last))
    part = render_segment(context.sight, here, rows, format, turn_over=turn_over)
    if part.has_pictures or part.earliest_call < first:
        return None
    return part


def _merge_rendered_line(
    context: ViewContext,
    known: RenderedLine,
    judged: JudgedLine,
    tail: RenderedSegment,
    patches: list[StretchPatch],
) -> RenderedLine:
    """Return a cached line with a new end and with some stretches rendered again."""
    before = known.rendered
    begin, first = before.loose_begin, before.stretches[before.loose].seq
    placed = before.placed[:begin] + tail.placed
    told = before.judged | tail.judged
    size = known.size + FRAME_BYTES * (len(judged.ranked.found) - len(known.judged.ranked.found))
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
        {seq: each for seq, each in before.left_out.items() if seq < first} | tail.left_out,
    )
    written, times = _rewrite_request(known, tail, patches)
    return RenderedLine(
        context.last,
        judged,
        made,
        extend_token_counts(context, known.tokens, known.last),
        _load_replaced_files(context, told, known.files, judged.changed or ()),
        written,
        times,
        size,
    )


WrittenLine = tuple[list[Message] | None, Mapping[str, int]]
"""A request to which messages can be added, and how often each of its settled ids is in it.

None in place of a request that cannot be extended.
"""


def _write_line_end(made: RenderedSegment, times: Mapping[str, int]) -> WrittenLine:
    """Return the rendered end of a line as it is sent to a chat."""
    begin = made.loose_begin
    settled, times = rename_continuation(made.placed[:begin], CHAT_NAMES, times)
    loose, _ = rename_continuation(made.placed[begin:], CHAT_NAMES, times)
    written = CHAT.write([*settled, *loose])
    return (written if len(written) == len(made.placed) else None), times


def _rewrite_request(
    known: RenderedLine, tail: RenderedSegment, patches: list[StretchPatch]
) -> WrittenLine:
    """Return a written request with a new end and with some stretches rendered again."""
    if known.written is None:
        return None, {}
    end, times = _write_line_end(tail, known.times)
    if end is None:
        return None, {}
    written = known.written[: known.rendered.loose_begin] + end
    for place, patch in patches:
        for index, message in enumerate(CHAT.write(patch.placed), place):
            named = keep_sent_names(message, written[index])
            if named is None:
                return None, {}
            written[index] = named
    return written, times


def _weigh_messages(placed: list[PlacedMessage]) -> int:
    """Return about how many bytes of memory messages take."""
    size = FRAME_BYTES * len(placed)
    for each in placed:
        message, calls = each.message, each.calls
        for value in (message.get("content"), *[call.arguments for call in calls]):
            # As stored and as sent; a text is the same object in both.
            size += getsizeof(value) if isinstance(value, str) else 2 * measure_bytes(value)
        framed = _FRAMED_CALL_KEYS if calls else _FRAMED_KEYS
        if not framed >= message.keys():
            size += measure_bytes([value for key, value in message.items() if key not in framed])
    return size


OrderedMessages = tuple[list[PlacedMessage], list[Message] | None]
"""Messages in order, and the same messages as they are sent, if known."""


def _order_messages(context: ViewContext, line: RenderedLine) -> OrderedMessages:
    """Return the messages in order: pinned ones, summaries, then the rest with its insertions.

    If more than summaries is inserted, the messages have to be written again.
    """
    placed, sent = line.rendered.placed, line.written
    visible, policy = context.visible, context.policy
    if visible.holes:
        placed, sent = [*_insert_range_summaries(placed, visible.holes, policy)], None
    end = 0
    if visible.pinned:
        pinned = [index for index, each in enumerate(placed) if each.seq in visible.pinned]
        end = max(pinned, default=-1) + 1
    while end and end < len(placed) and placed[end].call_id is not None:
        end += 1
    summaries = [_place_summary(each, policy) for each in visible.summaries]
    placed = [*placed[:end], *summaries, *placed[end:]]
    if sent is not None:
        sent = [*sent[:end], *CHAT.write(summaries), *sent[end:]]
    if policy.show_drafts:
        placed, sent = insert_drafts(context, placed), None
    if policy.summary_role == "merge" and visible.active_summaries:
        placed, sent = merge_summaries(placed), None
    return placed, sent


def _insert_range_summaries(
    placed: list[PlacedMessage],
    holes: tuple[HiddenRange, ...],
    policy: Policy,
) -> Iterator[PlacedMessage]:
    """Yield messages with the summaries of hidden ranges in their places, never within a group."""
    waiting = deque(holes)
    for index, each in enumerate(placed):
        if each.call_id is None:
            seq = (placed[index + 1] if each.is_made_up_call else each).seq or 0
            while waiting and waiting[0].last < seq:
                yield from _place_range_summary(waiting.popleft(), policy)
        yield each
    for hole in waiting:
        yield from _place_range_summary(hole, policy)


def _place_range_summary(hole: HiddenRange, policy: Policy) -> Iterator[PlacedMessage]:
    if hole.summary:
        yield _place_summary(hole.summary, policy)


def _place_summary(summary: ActiveSummary, policy: Policy) -> PlacedMessage:
    """Return the message in which a summary is sent."""
    message = summary.message(policy)
    compaction = summary.compaction
    return PlacedMessage(None, message, summary.reason, rule="summary", compaction=compaction)


def insert_drafts(context: ViewContext, placed: list[PlacedMessage]) -> list[PlacedMessage]:
    """Return the messages of a view with the answers that broke off in their places.

    A draft is placed after the message that it answers, on every line with this message, until the
    line continues with another answer instead. So the model understands a user who says "go on".
    """
    visible, shown = context.visible, placed
    for draft in history.drafts.list_drafts(context.connection, context.pointer.session_id):
        is_in_sight = max(1, visible.first_kept - 1) <= draft.head <= context.last
        if not (is_in_sight and visible.shows(draft.head) and visible.shows(draft.head + 1)):
            continue
        if not history.drafts.has_answered_message(context.raw, draft):
            continue
        text = render_draft_text(draft.message, draft.format)
        later = (
            index
            for index, each in enumerate(shown)
            if each.seq is not None and each.seq > draft.head and each.call_id is None
        )
        place = next(later, len(shown))
        before, after = shown[:place], shown[place:]
        is_open = bool(before) and bool(before[-1].calls)
        is_answered = bool(after) and after[0].message.get("role") == "assistant"
        if text and not is_open and not is_answered:
            message = {"role": "assistant", "content": f"{text}\n\n{context.policy.draft_notice}"}
            made = PlacedMessage(None, message, DRAFT_REASON.format(draft.draft), rule=DRAFT_RULE)
            shown = [*before, made, *after]
    return shown


def merge_summaries(placed: list[PlacedMessage]) -> list[PlacedMessage]:
    """Return the messages with the summaries merged into the first system message.

    For providers that accept only one. It is placed where the first of them was, so that no summary
    comes after newer messages. In a view without a system message, the first summary is used.
    """
    summaries = [each for each in placed if each.rule == "summary"]
    if not summaries:
        return placed
    system = (each for each in placed if each.message.get("role") == "system" and each.rule is None)
    first = next(system, summaries[0])
    parts = [first, *(each for each in summaries if each is not first)]
    texts = [extract_content_text(each.message.get("content")) for each in parts]
    merged = first._replace(
        message={**first.message, "content": "\n\n".join(texts)},
        repair="; ".join(each.repair or "" for each in summaries),
        rule="summary",
        compaction=summaries[-1].compaction,
    )
    merged_ids = {id(each) for each in parts}
    place = next(index for index, each in enumerate(placed) if id(each) in merged_ids)
    others = [each for each in placed if id(each) not in merged_ids]
    return [*others[:place], merged, *others[place:]]
