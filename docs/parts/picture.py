"""The picture of the README: a stored session beside what is sent of it, drawn from a real run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from store import Store
from store.cli import demo_session
from store.cli.chart import (
    INK_COLOUR,
    Paint,
    Rectangle,
    draw_band,
    draw_block,
    draw_picture,
    draw_words,
    measure_text,
)
from store.records import Entry, View
from store.view.rules import RULE_REASONS

WIDTH = 860
STORED = (0, 240)
SENT = (290, 570)
"""Where each column begins, and its width."""
TOP = 34
GAP = 3
LEAST, LABELLED = 5, 18
"""How high a block is at least, without words and with them."""
PIXELS_PER_TOKEN = 0.04

KEPT = Paint("#2f7d68")
USER = Paint("#3867c9")
ERROR = Paint("#b0532a")
REPLACED = Paint("#c9d1d9", "#24292f")
MADE = Paint("#7d4ac7")
LEGEND = (
    ("what the user said", USER),
    ("what the agent and its tools said", KEPT),
    ("an error", ERROR),
    ("replaced, and why", REPLACED),
    ("made for the API", MADE),
)


class Shown(NamedTuple):
    """One or more messages that the picture shows as one block in each column."""

    stored_tokens: int
    tokens: int
    label: str
    reason: str
    stored_paint: Paint
    paint: Paint


def session_picture() -> str:
    """Return the demo's session: left what is stored, right what is sent, each change explained."""
    view = _run()
    shown = list(_shown(view))
    left = _column(STORED, [(each.stored_tokens, each.label) for each in shown])
    right = _column(SENT, [(each.tokens, each.reason or each.label) for each in shown])
    high = max(left[-1].bottom, right[-1].bottom) + 34
    return draw_picture(
        WIDTH,
        high,
        f"{view.stats.raw_tokens:,} tokens stored, {view.stats.tokens:,} sent, and why",
        [
            *_heads(view),
            *_blocks(shown, left, right),
            *_sum(view, right[-1].bottom),
            *_legend(high - 12),
        ],
    )


def _run() -> View:
    with Store(":memory:") as store:
        store.create_session("demo", project_root=demo_session.DEMO_ROOT)
        store.append("demo", demo_session.build_conversation())
        return store.view("demo", now=demo_session.DEMO_NOW)


def _shown(view: View) -> Iterator[Shown]:
    """Yield the blocks: what was changed or is worth a word alone, what lies between together."""
    asked = _asked(view.entries)
    between: list[Entry] = []
    for entry in view.entries:
        label, reason, stored_paint, paint = _told(entry, asked)
        if not label:
            between.append(entry)
            continue
        yield from _together(between)
        between = []
        stored = entry.tokens + entry.tokens_saved if entry.seq else 0
        yield Shown(stored, entry.tokens, label, reason, stored_paint, paint)
    yield from _together(between)


def _asked(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the command or the file of each tool call, by the call's id."""
    calls = [call for entry in entries for call in entry.message.get("tool_calls", ())]
    return {call["id"]: _first_argument(call["function"]["arguments"]) for call in calls}


def _first_argument(arguments: str) -> str:
    values: dict[str, Any] = json.loads(arguments)
    return str(next(iter(values.values())))


def _told(entry: Entry, asked: dict[str, str]) -> tuple[str, str, Paint, Paint]:
    """Return the words of a block on both sides, and its colours; no words where it needs none."""
    message, place = entry.message, entry.seq or "+"
    asking = f"{place}  {asked.get(message.get('tool_call_id', ''), '')}"
    if entry.rule == "repair":
        return asking, f"made by the store: {entry.reason}", MADE, MADE
    if entry.rule:
        return asking, entry.reason, KEPT, REPLACED
    if entry.reason == RULE_REASONS["error"]:
        return asking, entry.reason, ERROR, ERROR
    if message["role"] == "user":
        return f"{place}  {message['content']}", "", USER, USER
    return "", "", KEPT, KEPT


def _together(entries: list[Entry]) -> Iterator[Shown]:
    if entries:
        tokens = sum(entry.tokens for entry in entries)
        places = [entry.seq for entry in entries if entry.seq]
        named = f"{places[0]}–{places[-1]}" if tokens * PIXELS_PER_TOKEN > LABELLED else ""
        yield Shown(tokens, tokens, named, "", KEPT, KEPT)


def _column(place: tuple[int, int], sizes: list[tuple[int, str]]) -> list[Rectangle]:
    """Return the blocks of a column, one below the other, as high as their tokens."""
    x, wide = place
    heights = [_height(tokens, said) for tokens, said in sizes]
    ends = accumulate((high + GAP if high else 0 for high in heights), initial=TOP)
    return [Rectangle(x, round(y, 1), wide, high) for y, high in zip(ends, heights, strict=False)]


def _height(tokens: int, said: str) -> float:
    if not tokens:
        return 0
    return round(max(LEAST, LABELLED if said else 0, tokens * PIXELS_PER_TOKEN), 1)


def _blocks(shown: list[Shown], left: list[Rectangle], right: list[Rectangle]) -> Iterator[str]:
    for each, stored, sent in zip(shown, left, right, strict=True):
        if each.stored_tokens:
            yield draw_band(stored, sent, each.paint.ground)
            yield draw_block(
                stored, each.stored_paint, each.label, _number(each.stored_tokens, each)
            )
        yield draw_block(sent, each.paint, each.reason or each.label, _number(each.tokens, each))


def _number(tokens: int, each: Shown) -> str:
    return f"{tokens:,}" if each.label else ""


def _heads(view: View) -> Iterator[str]:
    stored = f"stored: {view.stats.raw_tokens:,} tokens"
    sent = f"sent: {view.stats.tokens:,} tokens, each change with its reason"
    for (x, _), said in ((STORED, stored), (SENT, sent)):
        yield draw_words(x, 14, said, INK_COLOUR, size=14)


def _sum(view: View, bottom: float) -> Iterator[str]:
    less = 1 - view.stats.tokens / view.stats.raw_tokens
    yield draw_words(
        SENT[0],
        bottom + 28,
        f"{less:.0%} less is sent; nothing that is stored was changed.",
        size=14,
    )


def _legend(middle: float) -> Iterator[str]:
    x = 0.0
    for said, paint in LEGEND:
        yield draw_block(Rectangle(x, middle - 6, 12, 12), paint)
        yield draw_words(x + 18, middle, said)
        x += 40 + measure_text(said)
