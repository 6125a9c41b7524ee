"""The messages of a line as a view sends them, before summaries and drafts are inserted.

**Pairs.** Providers refuse a request in which a call has no result, a result has no call, or
another message comes between them. Here each assistant message is followed at once by one result
for each of its calls, in order. The entry of a message names each repair; nothing stored is
changed.

**Stretches.** The pairing of a call and its result depends only on the messages between them. So a
line is divided into stretches: a message, or an answer with its results, however far away. A
stretch is rendered from its own messages and verdicts. Two things may still change it: the missing
results of its calls, while their turn runs, and a message that continues the last answer. From the
first such stretch on, a line is ``loose``; the part before it is final, and if a verdict changes
there, only its stretch is rendered again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple

from ..database import Row
from ..formats import (
    CHAT,
    ApiCall,
    PlacedMessage,
    add_sendable_call,
    find_audio,
    find_reasoning,
    find_wire_values,
    get_sendable_text,
    is_continuing_item,
    list_foreign_types,
    make_api_call,
    remove_audio,
    select_sendable_calls,
)
from ..messages import (
    UNKNOWN_TOOL,
    WIRE_KEY,
    Media,
    Message,
    assemble_message,
    join_call,
    replace_media,
    select_opaque_fields,
)
from ..phrases import render_phrase
from ..policy import Policy
from ..records import LeftOut
from .line_rows import LineRows
from .placeholders import (
    MEDIA_RULE,
    PAST_MEDIA,
    SCREENSHOT,
    UNREADABLE_MEDIA,
    cut_arguments,
    shorten_result,
)
from .verdicts import Verdict, Verdicts
from .visible_set import ViewSight

MessageCalls = tuple[list[Any] | None, dict[str, ApiCall]]
"""The calls of a message as stored (None without calls), and the sendable ones among them by id."""


def build_message_calls(rows: list[Row]) -> dict[int, MessageCalls]:
    """Return the calls of messages from their rows, by position.

    A call in the usual shape needs no check of its texts: columns hold only text that can be sent.
    """
    calls: dict[int, MessageCalls] = {}
    for seq, call_id, name, form, arguments, extra in rows:
        if seq not in calls:
            stored: list[Any] = []
            sendable: dict[str, ApiCall] = {}
            calls[seq] = (stored, sendable)
        call = join_call(call_id, name, form, arguments, extra)
        if extra is None and call_id and name and call_id not in sendable:
            sendable[call_id] = make_api_call((len(stored), call_id, name, arguments))
        else:
            add_sendable_call(sendable, seq, len(stored), call)
        stored.append(call)
    return calls


class LineMessage(NamedTuple):
    """A message of the line after the rules were applied.

    ``call`` is the place of the call that a result answers, ``calls`` are the sendable calls of an
    assistant, ``sound`` is the content if no part of it needs a repair.
    """

    seq: int
    message: Message
    call: tuple[int, int] | None = None
    tool_name: str | None = None
    calls: tuple[ApiCall, ...] = ()
    sound: str | None = None


make_line_message: Callable[[tuple[Any, ...]], LineMessage] = partial(tuple.__new__, LineMessage)
"""Builds a message from its fields, in C because there may be thousands."""


class LineStretch(NamedTuple):
    """Where a stretch begins: its first position, and its index among the placed messages."""

    seq: int
    begin: int


class PairedMessages(NamedTuple):
    """The messages of a line, each in its place, and their stretches.

    ``loose`` is the index of the first stretch that may still change.
    """

    placed: list[PlacedMessage]
    stretches: list[LineStretch]
    loose: int


def pair_messages(
    items: list[LineMessage],
    policy: Policy,
    *,
    turn_over: bool = False,
) -> PairedMessages:
    """Return the messages so that calls and results are paired, adjacent and in order.

    ``turn_over``: a new turn begins after the messages, so none of their turns is open.
    """
    return _Pairing(items, policy, turn_over).pair()


class _Pairing:
    """The state of a pairing: the messages placed so far, and the calls without results yet."""

    def __init__(self, items: list[LineMessage], policy: Policy, turn_over: bool) -> None:
        self._items, self._policy = items, policy
        self._continued = {
            place
            for place, item in enumerate(items)
            if WIRE_KEY in item.message
            and place
            and items[place - 1].message["role"] == "assistant"
            and is_continuing_item(item.message)
        }
        self._results = {item.call: place for place, item in enumerate(items) if item.call}
        self._sendable: set[tuple[int, int] | None] | None = None
        if policy.orphans == "adopt":
            self._sendable = {(item.seq, call.position) for item in items for call in item.calls}
        self._running = find_open_turn(items)
        self._open_from = items[-1].seq if turn_over and items else self._running
        self._placed: list[PlacedMessage] = []
        self._stretches: list[LineStretch] = []
        self._waiting: list[tuple[int, ApiCall]] = []
        self._loose: int | None = None
        self._reach = -1

    def pair(self) -> PairedMessages:
        """Return the messages in their places."""
        continued, waiting = self._continued, self._waiting
        placed, stretches = self._placed, self._stretches
        for place, item in enumerate(self._items):
            seq, message, call, tool_name, calls, sound = item
            if place > self._reach:
                self._reach = place
                if place not in continued:
                    stretches.append(LineStretch(seq, len(placed)))
            if calls:
                self._place_calling(item)
            elif message["role"] != "tool":
                placed.append(PlacedMessage(seq, message, None, (), None, sound))
            elif self._sendable is not None and call not in self._sendable:
                self._place_orphan(seq, message, tool_name)
            if waiting and place + 1 not in continued:
                self._place_results(place)
        loose = len(stretches) - 1 if self._loose is None else self._loose
        return PairedMessages(placed, stretches, loose)

    def _place_calling(self, item: LineMessage) -> None:
        """Place an assistant message with the calls that are sent, unless it is empty then."""
        seq, message, _, _, calls, sound = item
        self._waiting += [(seq, call) for call in calls]
        sent, repair = calls, None
        if self._policy.unanswered == "drop":
            sent = tuple(each for each in calls if (seq, each.position) in self._results)
            dropped = len(calls) - len(sent)
            repair = f"{dropped} calls without result left out" if dropped else None
        if sent or message.get("content"):
            self._placed.append(PlacedMessage(seq, message, repair, sent, None, sound))

    def _place_orphan(self, seq: int, message: Message, tool_name: str | None) -> None:
        """Place a result without a call after a made-up call."""
        call_id = get_sendable_text(message, "tool_call_id") or f"call_{seq}"
        name = tool_name or get_sendable_text(message, "name") or UNKNOWN_TOOL
        call = ApiCall(0, call_id, name, "{}")
        function = {"name": call.name, "arguments": call.arguments}
        tool_call = {"id": call.id, "type": "function", "function": function}
        calling = {"role": "assistant", "content": None, "tool_calls": [tool_call]}
        self._placed += (
            PlacedMessage(None, calling, f"the result at {seq} has no call", (call,)),
            PlacedMessage(seq, message, None, (), call_id),
        )

    def _place_results(self, place: int) -> None:
        """Place the results of an answer's calls after its last message, which is at ``place``."""
        items, results, placed = self._items, self._results, self._placed
        for calling, call in self._waiting:
            found = results.get((calling, call.position))
            if found is None:
                self._place_missing(calling, call)
                continue
            place += 1
            if found > self._reach:
                self._reach = found
            seq, message, _, _, _, sound = items[found]
            repair = None if found == place else "moved to its call"
            answer = PlacedMessage(seq, message, repair, (), call.id, sound, call_seq=calling)
            placed.append(answer)
        self._waiting.clear()

    def _place_missing(self, seq: int, call: ApiCall) -> None:
        """Place a made-up result for a call that has none, if the policy wants one.

        While its turn runs, a result may still come, so the stretch is loose. Calls of finished
        turns are never kept open.
        """
        if self._loose is None and seq > self._running:
            self._loose = len(self._stretches) - 1
        unanswered = self._policy.unanswered
        if unanswered == "synthetic" or (unanswered == "keep" and seq <= self._open_from):
            text = render_phrase("no_result", self._policy.language)
            message = {"role": "tool", "tool_call_id": call.id, "content": text}
            self._placed.append(
                PlacedMessage(
                    None, message, f"call {call.id} has no result", (), call.id, call_seq=seq
                )
            )


def find_open_turn(items: list[LineMessage]) -> int:
    """Return the position of the last user message, 0 where there is none."""
    users = (item.seq for item in reversed(items) if item.message.get("role") == "user")
    return next(users, 0)


class SentMedia(NamedTuple):
    """Messages with the media that are sent, and why others were replaced, by position.

    ``has_any``: there are media, sent or not, so the whole line or the time decides about them.
    """

    items: list[LineMessage]
    replaced: dict[int, str]
    has_any: bool


def select_media(
    sight: ViewSight,
    items: list[LineMessage],
    format: str,  # noqa: A002 - the public name
    *,
    turn_over: bool,
) -> SentMedia:
    """Return messages of a line, in order, with a description of media that are not sent.

    A chat gets no id of audio that its provider has deleted. ``turn_over``: a new turn begins after
    the messages.
    """
    policy = sight.policy
    has_audio = format == CHAT.name and any(find_audio(item.message) for item in items)
    sent = [*items]
    for place, item in enumerate(items) if has_audio else ():
        ends = (find_audio(item.message) or {}).get("expires_at")
        if not isinstance(ends, int | float) or sight.now < ends * 1_000:
            continue
        sent[place] = item._replace(message=remove_audio(item.message))
    places = [
        place
        for place, item in enumerate(items)
        if item.message["role"] == "tool" and not isinstance(item.message.get("content"), str)
    ]
    if not places:
        return SentMedia(sent, {}, has_audio)
    running_from = inf if turn_over or not policy.picture_current_turn else find_open_turn(items)
    newest = _NewestMedia(policy)
    replaced: dict[int, str] = {}
    for place in reversed(places):
        item = items[place]
        content = item.message.get("content")
        if isinstance(content, dict) and content.get("type") == SCREENSHOT:
            newest.met_any = True  # it stays: its call takes no other result
            continue
        newest.is_running = item.seq >= running_from
        described = replace_media(content, newest)
        if described is not content:
            parts = described if isinstance(content, list) else [described]
            sent[place] = item._replace(message={**item.message, "content": parts})
            replaced[item.seq] = newest.reason
    return SentMedia(sent, replaced, newest.met_any or has_audio)


class _NewestMedia:
    """Decides about media, the newest first: None sends one, a message describes it."""

    def __init__(self, policy: Policy) -> None:
        self._remaining = inf if policy.picture_keep == "all" else policy.picture_keep
        self._placeholder = policy.picture_placeholder
        self._past_reason = PAST_MEDIA if policy.picture_current_turn else MEDIA_RULE
        self.is_running = False
        self.met_any = False
        self.reason = MEDIA_RULE

    def __call__(self, media: Media) -> Message | None:
        self.met_any = True
        self._remaining -= 1
        is_sent = self.is_running or self._remaining >= 0
        if is_sent and media.is_readable:
            return None
        self.reason = UNREADABLE_MEDIA if is_sent else self._past_reason
        return media.named(self._placeholder)


UNPAIRED_REASONS = {
    "tool": "a result of no call",
    "assistant": "it says nothing but calls without results",
}
"""Why pairing leaves a message out, by its role."""

NO_CALLS: MessageCalls = (None, {})


class RenderedSegment(NamedTuple):
    """Rendered runs of a line: each message in its place, and the verdicts of the results.

    ``loose`` is the index of the first stretch that may still change. ``pictured`` says why media
    were replaced, by position. ``earliest_call`` is the first message that results answer.
    ``left_out`` are the messages that are not sent, by position.
    """

    placed: list[PlacedMessage]
    judged: Verdicts
    stretches: list[LineStretch]
    loose: int
    pictured: dict[int, str]
    has_pictures: bool
    """Whether the whole line or the time decides about parts: pictures, ids of audio."""
    earliest_call: int
    left_out: dict[int, LeftOut]

    @property
    def loose_begin(self) -> int:
        """The index of the first placed message that may still change."""
        return self.stretches[self.loose].begin if self.stretches else 0


def render_segment(
    sight: ViewSight,
    judged: Verdicts,
    rows: LineRows,
    format: str,  # noqa: A002 - the public name
    *,
    turn_over: bool,
) -> RenderedSegment:
    """Return the messages in rows of a line as a format sends them, paired and in order."""
    policy = sight.policy
    stored, judged = _build_line_messages(rows, judged, policy)
    items: list[LineMessage] = []
    left_out: dict[int, LeftOut] = {}
    for item in stored:
        if "content" not in item.message and (why := _explain_unsent(item, format, policy)):
            left_out[item.seq] = why
        else:
            items.append(item)
    items, pictured, has_media = select_media(sight, items, format, turn_over=turn_over)
    placed, stretches, loose = pair_messages(items, policy, turn_over=turn_over)
    if "drop" in (policy.unanswered, policy.orphans):
        sent = {each.seq for each in placed if each.seq is not None}
        for seq, message, *_ in items:
            if seq not in sent:
                role = message["role"]
                left_out[seq] = LeftOut(seq, role, UNPAIRED_REASONS[role])
    for place, each in enumerate(placed):
        if isinstance(each.message.get("content"), str):
            continue
        if kinds := sorted({*list_foreign_types(each.message)}):
            reason = f"no part of a chat, sent as its JSON text: {', '.join(kinds)}"
            repair = "; ".join(filter(None, (each.repair, reason)))
            placed[place] = each._replace(repair=repair)
    return RenderedSegment(
        placed,
        judged,
        stretches,
        loose,
        pictured,
        has_media,
        min((item.call[0] for item in items if item.call), default=sight.last),
        left_out,
    )


def _explain_unsent(
    item: LineMessage,
    format: str,  # noqa: A002 - the public name
    policy: Policy,
) -> LeftOut | None:
    """Return why a format has no place for a message without content, None if it has one.

    An item that has no place in a chat is sent in its own format only. Reasoning of another format
    is sent if the policy sends it as text.
    """
    message = item.message
    if not select_opaque_fields(message) or find_wire_values(message, format) is not None:
        return None
    if policy.foreign_reasoning == "text" and find_reasoning(message, format):
        return None
    held = message.get(WIRE_KEY)
    wire = held if isinstance(held, dict) else {}
    block, own_format = wire.get("block"), wire.get("format")
    if not isinstance(block, dict):
        kind = message.get("type", message["role"])
        return LeftOut(item.seq, str(kind), "nothing in it is for a chat")
    reason = "nothing in it is for a chat"
    if own_format is not None:
        reason = f"only the format {own_format} has it"
    return LeftOut(item.seq, str(block.get("type", "item")), reason)


def _build_line_messages(
    rows: LineRows, judged: Verdicts, policy: Policy
) -> tuple[list[LineMessage], Verdicts]:
    """Return the visible messages after the rules were applied, and the final verdicts."""
    items: list[LineMessage] = []
    final = {**judged}
    calls_by_seq, replaced = build_message_calls(rows.calls), rows.replaced
    for row in rows.messages:
        stored, sendable = calls_by_seq.get(seq := row[0], NO_CALLS)
        message = assemble_message(row[1:], stored)
        sound = row[-1] if row[-2] == "text" else None
        calls = (*sendable.values(),) if message["role"] == "assistant" else ()
        call = tool_name = None
        if verdict := judged.get(seq):
            call, tool_name = verdict.call, verdict.tool_name
            if seq in replaced:
                message["content"] = replaced[seq]
            elif verdict.rule:
                final[seq] = _rewrite_message(message, verdict, policy)
                if calls and verdict.rule == "arguments":
                    calls = select_sendable_calls(seq, message["tool_calls"])
        elif message["role"] == "tool":
            call, tool_name = rows.answered[seq]
        items.append(make_line_message((seq, message, call, tool_name, calls, sound)))
    return items, final


def _rewrite_message(message: Message, verdict: Verdict, policy: Policy) -> Verdict:
    """Apply a rule that needs the whole message; return the final verdict, or that it is short."""
    if verdict.rule == "arguments":
        message["tool_calls"] = cut_arguments(message["tool_calls"], policy)
        return verdict
    short = shorten_result(
        message.get("content"),
        verdict.tool_name,
        verdict.kind,
        failed=verdict.failed,
        min_saving=policy.min_saving,
        language=policy.language,
    )
    if short is None:
        return verdict._replace(rule=None, why="short")
    message["content"] = short
    return verdict


def keep_sent_names(message: Message, before: Message) -> Message | None:
    """Return a message rendered again with the ids and names of calls that it was sent with.

    None if it has not the role and the number of calls that it was sent with.
    """
    if _get_shape(message) != _get_shape(before):
        return None
    kept = {key: before[key] for key in ("tool_calls", "tool_call_id") if key in before}
    if "tool_calls" in kept:
        pairs = zip(message["tool_calls"], kept["tool_calls"], strict=True)
        kept["tool_calls"] = [_take_arguments(sent, call) for call, sent in pairs]
    return message | kept


def _get_shape(message: Message) -> tuple[str, int]:
    """Return the role of a message, and the number of its calls."""
    return message["role"], len(message.get("tool_calls", ()))


def _take_arguments(sent: Message, call: Message) -> Message:
    """Return a sent call of a function with the arguments of the call rendered again."""
    if "function" not in sent:
        return sent
    function = {**call["function"], "name": sent["function"]["name"]}
    return {**sent, "function": function}
