"""Rows about what comes in: any text, whatever size, hostile names."""

from __future__ import annotations

import json
import math
import random
import string
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from store import Store
from store.errors import InvalidMessage, StoreError

from .rows import Count, Row, said

FUZZED = 2000
NASTY = "\x00\x1b\u2028\ufeff\ud800\udbff\udc00\udfff\U0001f600\uffff\"\\'%_"
NUMBERS = (0, -1, 2**53 + 1, -(2**63), 2**70, 0.1, -0.0, 1e308, 5e-324, 1e400 - 1e400)


def any_text(chance: random.Random) -> str:
    """Return a short text with much in it that breaks encodings."""
    letters = string.printable if chance.random() < 0.4 else NASTY
    return "".join(chance.choice(letters) for _ in range(chance.randrange(12)))


def any_value(chance: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = chance.randrange(4 if depth > 3 else 6)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind == 1:
        return chance.choice([each for each in NUMBERS if not math.isnan(each)])
    if kind < 4:
        return any_text(chance)
    count = chance.randrange(4)
    if kind == 4:
        return [any_value(chance, depth + 1) for _ in range(count)]
    return {any_text(chance): any_value(chance, depth + 1) for _ in range(count)}


def exact(value: object) -> str:
    """Return what tells values apart, types and signs included."""
    return repr(value)


def is_valid(messages: list[dict[str, Any]]) -> bool:
    """Tell whether an API could read the messages: JSON of true text, results after their calls."""
    json.dumps(messages, allow_nan=False, ensure_ascii=False).encode()
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        waiting += [call["id"] for call in message.get("tool_calls") or ()]
    return not waiting


def fuzzed_messages(url: str, _: Path) -> Count:
    """Append messages of any values; count those that come out as they went in."""
    chance, held = random.Random(1), 0
    with Store(url, durability="normal") as store:
        store.create_session("s")
        for _number in range(FUZZED // 50):
            extra = [any_value(chance) for _ in range(50)]
            line = [said(any_text(chance), **{f"x{any_text(chance)}": each}) for each in extra]
            store.append("s", line)
            found = [each.message for each in store.messages("s", start=-50)]
            held += sum(exact(new) == exact(old) for new, old in zip(found, line, strict=True))
        valid = is_valid(store.view("s").messages)
    return held if valid else 0, FUZZED


def nested(levels: int) -> Any:
    """Return lists within lists."""
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


def itself() -> list[Any]:
    """Return a list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


def shared() -> Any:
    """Return lists that are held twice by the next, again and again."""
    value: Any = ["x"]
    for _ in range(26):
        value = [value, value]
    return value


def call(*ids: object) -> dict[str, Any]:
    """Return a message with calls of these ids."""
    function = {"name": "read", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: object) -> dict[str, Any]:
    """Return a result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": "found"}


def limits() -> Iterator[list[dict[str, Any]]]:
    """Yield lines at and beyond what a store takes."""
    for number in (math.nan, math.inf, -math.inf, 2**70, 2**12_999, 10**3_900, 10**4_000):
        yield [said("x", number=number)]
    for levels in (150, 195, 201, 100_000):
        yield [said("x", nested=nested(levels))]
    for content in (" " * 1_000_000, "\x00", "\ud800", "\udc00\ud800", "x" * 70_000_000, ""):
        yield [said(content)]
    for value in (itself(), shared(), {1: 2}, {"x"}, b"x", object()):
        yield [said("x", value=value)]
    for moment in (-(2**63), 2**63 - 1, 2**63, 0, -1, "yesterday"):
        yield [said("x", timestamp=moment)]
    yield [call("a", "a"), result("a"), result("a")]
    yield [call("a"), said("x"), result("a"), result("a")]
    yield [call("a"), result("b")]
    yield [result("a"), call("a")]
    yield [call("x" * 600, "%'\"\x00"), result("%'\"\x00")]
    yield [call(*map(str, range(2000)))]
    yield [{"role": "tool", "content": "no id"}]
    yield [{"role": ""}]


def values_at_the_limits(url: str, _: Path) -> Count:
    """Append what is at the limits; count what is stored equal or refused, with a view that holds."""
    held = total = 0
    with Store(url, durability="normal") as store:
        for line in limits():
            total += 1
            session = store.create_session().id
            kept: list[Any] = []
            with suppress(InvalidMessage):
                store.append(session, line)
                kept = line
            found = [each.message for each in store.messages(session)]
            equal = [exact(each) for each in found] == [exact(each) for each in kept]
            held += equal and is_valid(store.view(session).messages)
    return held, total


SYNTAX = "% _ %% a% a_ ab * ? [a] ' '' \" ` \\ \\' -- /* $1 :id %(id)s %s ?1 {} {0} a* ^a a:b ( ) NEAR( \"a"
PHRASES = ("'; DROP TABLE messages; --", "' OR '1'='1", "a AND b", "a OR", "NOT")
SIGNS = (
    "\u202eab",
    "\U0001f600",
    "é",
    "e\u0301",
    "\t",
    "\n",
    "\x1b[2J",
    "\x00",
    "a\x00b",
    "\ud800",
)
NAMES = (*SYNTAX.split(), *PHRASES, *SIGNS, "x" * 512, "x" * 513, " ", "")


def hostile_names(url: str, _: Path) -> Count:
    """Give sessions, titles, keys and calls hostile names; count those that find only their own."""
    held, made = 0, 0
    with Store(url, durability="normal") as store:
        store.create_session("own")
        store.append("own", said("SECRET"))
        for name in NAMES:
            with suppress(StoreError):
                store.create_session(name, title=name, metadata={name: name})
                made += 1
                store.append(name, [said(name, id=name), call(name), result(name)])
            held += _finds_its_own(store, name)
        whole = len(store.sessions(limit=1000)) == made + 1 and store.verify() == []
        whole &= [each.message for each in store.messages("own")] == [said("SECRET")]
    return held if whole else 0, len(NAMES)


def _finds_its_own(store: Store, name: str) -> bool:
    """Tell whether a name leads to what has it and to nothing else, or is refused."""
    reads = (store.session, store.messages, store.view, store.turns, store.head_moves)
    for read in (*reads, store.find, lambda name: store.message("own", name)):
        with suppress(StoreError):
            if "SECRET" in repr(read(name)):
                return False
    with suppress(StoreError):
        return {each.session_id for each in store.find(name)} <= {name}
    return True


ROWS: dict[str, Row] = {
    "S1": Row("hostile names of sessions, titles, keys and calls", "any", hostile_names),
    "X1": Row("2,000 messages of any values, surrogate halves and NUL", "any", fuzzed_messages),
    "X2": Row("values at the limits, stored or refused", "any", values_at_the_limits),
}
