"""Messages as columns and back, and what is refused."""

from __future__ import annotations

import decimal
import json
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from conversations import HALVES, arbitrary_messages, values
from hypothesis import given, settings
from pydantic import BaseModel

from store.errors import InvalidMessage, StoreError
from store.messages import (
    DEPTH_LIMIT,
    SIZE_LIMIT,
    Columns,
    Message,
    assemble_message,
    columns,
    decode,
    digest_content,
    encode,
    extract_content_text,
    is_integer,
    join_call,
    prepare_message,
    prepare_object,
    prepare_plain_message,
)
from store.text import is_text
from store.tokens import FRAMING_TOKENS, estimate_message_tokens, estimate_size


def there_and_back(message: Message) -> Message:
    """Take a message apart and put it together."""
    p = prepare_message(message)
    return assemble_message(p.columns, [join_call(*call) for call in p.calls] or None)


def refused(message: Any, index: int = 0) -> InvalidMessage:
    """Return how a message is refused."""
    with pytest.raises(InvalidMessage) as caught:
        prepare_message(message, index)
    return caught.value


def nested(levels: int, kind: type = list) -> Any:
    """So many lists or objects, one in the other."""
    value: Any = 0
    for _ in range(levels):
        value = [value] if kind is list else {"k": value}
    return value


# --- there and back -------------------------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
SHAPES: list[Message] = [
    {"role": "user"},
    {"role": "user", "content": None},
    {"role": "user", "content": ""},
    {"role": "user", "content": "text"},
    {"role": "user", "content": []},
    {"role": "user", "content": {}},
    {"role": "user", "content": 0},
    {"role": "user", "content": False},
    {"role": "user", "content": "null"},
    {"role": "user", "content": "=abc"},
    {"role": "user", "content": "a\0b"},
    *({"role": "user", "content": halves} for halves in HALVES),
    *({"role": "user", "name": halves, halves: {halves: [halves]}} for halves in HALVES),
    {"role": "user", "content": ["\ud83d\ude00", "😀"]},
    {"role": "user", "\ud83d\ude00": 1, "😀": 2},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "tool_calls": []},
    {"role": "assistant", "tool_calls": None},
    {"role": "assistant", "tool_calls": {"not": "a list"}},
    {"role": "assistant", "tool_calls": [None, 5, "text", [], {}, CALL]},
    {"role": "assistant", "tool_calls": [{**CALL, "index": 0}]},
    {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": "n", "arguments": "{}"}}],
    },
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"arguments": "{}"}}],
    },
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "n"}}],
    },
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "n", "arguments": "{}"}}],
    },
    {"role": "assistant", "tool_calls": [{**CALL, "id": None}]},
    {"role": "assistant", "tool_calls": [{**CALL, "id": 5}]},
    {"role": "assistant", "tool_calls": [{**CALL, "id": ""}]},
    {"role": "assistant", "tool_calls": [{**CALL, "id": "\0"}]},
    {"role": "assistant", "tool_calls": [{**CALL, "type": "custom"}]},
    {
        "role": "assistant",
        "tool_calls": [{"type": "custom", "id": "c", "custom": {"name": "n", "input": "i"}}],
    },
    {"role": "assistant", "tool_calls": [{"id": "c", "name": "flat", "arguments": {"a": 1}}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "function": None}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]},
    {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": None, "arguments": None}}]},
    {
        "role": "assistant",
        "tool_calls": [{**CALL, "function": {"name": "n", "arguments": {"path": "\ud800"}}}],
    },
    {
        "role": "assistant",
        "tool_calls": [{**CALL, "function": {"name": "n", "arguments": "\ud83d\ude00"}}],
    },
    {
        "role": "assistant",
        "tool_calls": [{**CALL, "function": {"name": "n", "arguments": "{broken"}}],
    },
    {
        "role": "assistant",
        "tool_calls": [{**CALL, "function": {"arguments": "x", "name": "n", "strict": True}}],
    },
    {"role": "tool", "tool_call_id": None, "content": "x"},
    {"role": "tool", "tool_call_id": 7, "content": "x"},
    {"role": "tool", "tool_call_id": "", "content": "x", "messageStatus": "error", "timestamp": 0},
    {"role": "user", "timestamp": 1.5},
    {"role": "user", "timestamp": 1.0},
    {"role": "user", "timestamp": True},
    {"role": "user", "timestamp": 2**63},
    {"role": "user", "timestamp": "2026-01-31"},
    {"role": "user", "timestamp": None, "messageStatus": None, "name": None},
    {"role": "user", "id": "m1"},
    {"role": "user", "id": 0},
    {"role": "user", "id": -5},
    {"role": "user", "id": ""},
    {"role": "user", "id": None},
    {"role": "user", "id": 1.5},
    {"role": "user", "id": ["a", "list"]},
    {"role": "user", "id": "\ud800"},
    {
        "role": "user",
        "branch": 1,
        "seq": 2,
        "extra": {"extra": 3},
        "content_form": "text",
        "digest": "x",
    },
    {"role": "user", "content": 10**1000, "float": -0.0, "tiny": 5e-324},
]


@pytest.mark.parametrize("message", SHAPES, ids=ascii)
def test_what_went_in_comes_out(message: Message) -> None:
    """Every shape, common or odd, with no key more or less."""
    before = repr(message)
    assert there_and_back(message) == message
    assert repr(message) == before, "the caller's object is left alone"


@settings(max_examples=150, derandomize=True, database=None)
@given(arbitrary_messages)
def test_anything_comes_out_as_it_went_in(message: Message) -> None:
    """Any JSON object with a role."""
    assert there_and_back(message) == message


@settings(max_examples=150, derandomize=True, database=None)
@given(values)
def test_a_value_is_text_that_every_engine_holds(value: Any) -> None:
    """Encoded text has no NUL and no surrogate, and decodes to the value."""
    text = encode(value)
    assert is_text(text)
    assert decode(text) == value


def test_halves_side_by_side_stay_two() -> None:
    """A JSON reader would join them to one character, so the text is wrapped.

    A lone one is an escape.
    """
    assert encode("\ud800") == '"\\ud800"'
    assert encode("\ud83d\ude00").startswith("=")
    assert encode("😀") == '"😀"'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", True),
        ("文件😀", True),
        ("a\0", False),
        ("\ud800", False),
        (None, False),
        (5, False),
        (b"x", False),
    ],
    ids=ascii,
)
def test_what_a_text_column_holds(value: object, expected: bool) -> None:
    """Strings without NUL and without surrogates."""
    assert is_text(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, True),
        (-(2**63), True),
        (2**63 - 1, True),
        (2**63, False),
        (True, False),
        (1.0, False),
        ("1", False),
    ],
)
def test_what_an_integer_column_holds(value: object, expected: bool) -> None:
    """Whole numbers of 64 bits, and no truth values."""
    assert is_integer(value) is expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", "text"),
        (None, ""),
        (5, ""),
        ({"text": "no part list"}, ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, "b", 5, {"text": None}], "ab"),
    ],
)
def test_the_text_of_a_content(content: object, expected: str) -> None:
    """Strings as they are, the texts of text parts joined, nothing of anything else (A0.12)."""
    assert extract_content_text(content) == expected


def test_an_order_of_keys_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most messages of a caller have their keys in one of few orders: reading them stays quick."""
    texts: list[str] = []

    def noted(text: str) -> Any:
        texts.append(text)
        return decode(text)

    monkeypatch.setattr(columns, "decode", noted)
    for number in range(3):
        message = {"tool_call_id": f"c{number}", "content": "ok", "name": "Read", "role": "tool"}
        back = there_and_back(message)
        assert back == message
        assert [*back] == [*message]
    assert texts == ['[["tool_call_id","content","name","role"],{}]']


# --- columns --------------------------------------------------------------------------------------


ORDERS: list[Message] = [
    {"content": "text", "role": "user"},
    {"name": "n", "timestamp": 5, "content": None, "id": "m", "role": "user"},
    {"id": 7, "role": "user", "timestamp": 1.5, "content": "x"},
    {"other": 1, "role": "user", "another": [2], "content": [{"text": "t", "type": "text"}]},
    {"role": "tool", "tool_call_id": "c", "content": "x"},
    {"ends": {}, "role": "user"},
    {"ends as an order alone does": [[], {}], "role": "user"},
    {"tool_calls": [CALL], "role": "assistant"},
    {"role": "assistant", "tool_calls": [dict(reversed(CALL.items()))]},
    {
        "role": "assistant",
        "tool_calls": [
            {"function": {"arguments": "{}", "name": "n"}, "index": 0, "id": "c", "type": "x"},
            {"arguments": {"a": 1}, "id": None, "name": "n"},
        ],
    },
    *({"role": "user", halves: 1, "content": halves, "name": "n"} for halves in HALVES),
]


@pytest.mark.parametrize("message", ORDERS, ids=ascii)
def test_keys_come_out_in_the_order_in_which_they_went_in(message: Message) -> None:
    """Those of a message, and those of its calls: a prompt cache and a diff see no change."""
    assert json.dumps(there_and_back(message)) == json.dumps(message)


@given(arbitrary_messages)
def test_any_message_comes_out_as_the_same_json_text(message: Message) -> None:
    """Whatever its keys and their order."""
    turned = dict(reversed(message.items()))
    assert json.dumps(there_and_back(message)) == json.dumps(message)
    assert json.dumps(there_and_back(turned)) == json.dumps(turned)


def test_an_order_without_a_list_is_that_of_the_columns() -> None:
    """So what was stored before orders were kept reads as it did."""
    columns = prepare_message({"role": "user", "content": "x"}).columns._replace(
        extra='{"a":1,"b":2}'
    )
    assert assemble_message(columns, None) == {"role": "user", "content": "x", "a": 1, "b": 2}


def test_a_damaged_row_reads_the_same_however_often() -> None:
    """A key of its order that no column has any more is None; one that is not of it is left out."""
    columns = prepare_message({"content": "x", "role": "user", "name": "ann"}).columns
    damaged = columns._replace(name=None, message_id="m", created_at=5)
    for _ in range(2):
        assert assemble_message(damaged, None) == {"content": "x", "role": "user", "name": None}


class Answer(BaseModel):
    """A message as clients of providers return it."""

    content: str | None = None
    refusal: str | None = None
    role: str = "assistant"
    at: datetime | None = None


def test_a_pydantic_object_is_taken_as_what_is_set_in_it() -> None:
    """As JSON, in its own order."""
    given = Answer(content="Yes.", role="assistant", at=datetime(2026, 1, 1, tzinfo=UTC))
    expected = {"content": "Yes.", "role": "assistant", "at": "2026-01-01T00:00:00Z"}
    assert prepare_message(given).message == expected
    assert list(prepare_message(given).message) == list(expected)


def test_a_whole_answer_is_no_message() -> None:
    """It is told where in it the message is."""
    answer = {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}
    assert "append choices[0].message" in str(refused(answer))


class Broken(BaseModel):
    """A message that holds what JSON has not."""

    role: Any = "user"
    content: Any = None


def test_a_pydantic_object_without_json_is_refused() -> None:
    """By our own error, which names its place."""
    assert refused(Broken(role="user", content=object()), 3).index == 3
    assert refused(Broken(content="no role is set")).key == "role"


def test_the_usual_message_leaves_nothing_over() -> None:
    """What every message has is in columns, ready for SQL; nothing is said twice."""
    prepared = prepare_message(
        {
            "role": "assistant",
            "content": "hi",
            "tool_calls": [CALL],
            "timestamp": 10**12,
            "messageStatus": "ok",
            "id": "m",
        }
    )
    assert prepared.columns == Columns(
        role="assistant",
        name=None,
        status="ok",
        tool_call_id=None,
        created_at=10**12,
        message_id="m",
        extra=None,
        content_form="text",
        content="hi",
    )
    assert prepared.calls == (("c1", "Read", "text", "{}", None),)


def test_an_id_that_is_a_number_counts_by_its_digits() -> None:
    """The message can be found by it, and still comes out with the number."""
    assert prepare_message({"role": "user", "id": 17}).columns.message_id == "17"
    assert prepare_message({"role": "user", "id": True}).columns.message_id is None
    assert prepare_message({"role": "user", "id": ""}).columns.message_id is None


def test_a_changed_byte_anywhere_changes_the_digest() -> None:
    """Each column takes part, and a column cannot pass for another."""
    whole = {
        "role": "a",
        "name": "n",
        "messageStatus": "s",
        "tool_call_id": "t",
        "timestamp": 1,
        "id": "i",
        "x": 1,
    }
    variants: list[Message] = [
        {**whole, "content": "c"},
        {**whole, "content": "d"},
        {**whole, "content": None},
        {**whole, "content": ["c"]},
        {**whole, "content": '["c"]'},
        {**whole},
        *(
            {**whole, "content": "c", key: 9 if key in ("timestamp", "x") else "other"}
            for key in whole
        ),
        {"role": "a", "tool_calls": [CALL]},
        {"role": "a", "tool_calls": [{**CALL, "id": "c2"}]},
        {"role": "a", "tool_calls": [{**CALL, "more": 1}]},
        {"role": "a", "tool_calls": [{**CALL, "function": {"name": "Read", "arguments": "{ }"}}]},
        {"role": "a", "tool_calls": [CALL, CALL]},
    ]
    assert len({prepare_message(message).digest for message in variants}) == len(variants)
    assert len(prepare_message(whole).digest) == 32
    prepared = prepare_message(whole)
    assert digest_content(prepared.columns, prepared.calls) == prepared.digest


# --- refusals -------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, str | None, str]] = [
    (None, None, "NoneType"),
    ("text", None, "str"),
    (["role", "user"], None, "list"),
    (b"{}", None, "bytes"),
    ({}, "role", "non-empty text"),
    ({"content": "x"}, "role", "non-empty text"),
    *(
        ({"role": role}, "role", "non-empty text")
        for role in ("", None, 5, ["user"], "a\0", "\ud800", b"user")
    ),
    ({"role": "user", "content": math.nan}, "content", "nan"),
    ({"role": "user", "content": [{"deep": math.inf}]}, "content", "inf"),
    ({"role": "user", "timestamp": -math.inf}, "timestamp", "-inf"),
    ({"role": "user", "content": b"bytes"}, "content", "bytes"),
    ({"role": "user", "content": ("a", "tuple")}, "content", "tuple"),
    ({"role": "user", "content": {"a set"}}, "content", "set"),
    ({"role": "user", "content": [{"x": [bytearray()]}]}, "content", "bytearray"),
    ({"role": "user", "when": datetime.now(tz=UTC)}, "when", "datetime"),
    ({"role": "user", "price": decimal.Decimal(1)}, "price", "Decimal"),
    ({"role": "user", "tool_calls": (CALL,)}, "tool_calls", "tuple"),
    ({"role": "user", "tool_calls": [{"id": object()}]}, "tool_calls", "object"),
    ({"role": "user", 5: "x"}, "5", "keys are text"),
    ({"role": "user", None: "x"}, "None", "keys are text"),
    ({"role": "user", "content": {5: "x"}}, "content", "keys are text"),
    ({"role": "user", "content": [{("a",): "x"}]}, "content", "keys are text"),
    ({"role": "user", "id": 10**5000}, "id", "bits"),
]


@pytest.mark.parametrize(("message", "key", "problem"), REFUSED)
def test_what_cannot_be_stored_is_refused(message: Any, key: str | None, problem: str) -> None:
    """The error names the place in the batch, the key and what is wrong."""
    error = refused(message, 3)
    assert isinstance(error, StoreError)
    assert (error.index, error.key) == (3, key)
    assert problem in error.problem
    assert "message 3" in str(error)
    assert key is None or repr(key) in str(error)


@pytest.mark.parametrize("kind", [list, dict])
def test_nesting_has_a_limit(kind: type) -> None:
    """200 levels are stored and come out, 201 are refused before any parser breaks.

    So is a value that holds itself.
    """
    message = {"role": "user", "content": nested(DEPTH_LIMIT, kind)}
    assert there_and_back(message) == message
    assert (
        "200 levels" in refused({"role": "user", "content": nested(DEPTH_LIMIT + 1, kind)}).problem
    )
    assert refused({"role": "user", "tool_calls": nested(100_000, kind)}).key == "tool_calls"
    itself: list[Any] = []
    itself.append(itself)
    assert refused({"role": "user", "x": itself}).key == "x"


@pytest.mark.parametrize("plain", ["x", "x" * 10_000, 7], ids=["short", "long", "number"])
@pytest.mark.parametrize("made", [lambda x: [x, x], lambda x: {"a": x, "b": x}], ids=["l", "d"])
def test_what_holds_the_same_again_and_again_is_refused(made: Any, plain: object) -> None:
    """Small in memory, and as text longer than any disk."""
    value: Any = [plain]
    for _ in range(60):
        value = made(value)
    error = refused({"role": "user", "content": value})
    assert error.key == "content"
    assert "67,108,864" in error.problem


def test_what_is_shared_a_little_comes_out() -> None:
    """The same list in several places and at several levels is no fault, but may be too deep."""
    part = nested(DEPTH_LIMIT - 2, list)
    message = {"role": "user", "content": [part, [part], part]}
    assert there_and_back(message) == message
    assert "200 levels" in refused({"role": "user", "content": [part, [[part]], part]}).problem


def test_numbers_have_a_limit() -> None:
    """13,000 bits, as the docs say."""
    message = {"role": "user", "number": 2**13_000 - 1, "other": -(2**12_999)}
    assert there_and_back(message) == message
    assert "13,000 bits" in refused({"role": "user", "number": 2**13_000}).problem


def sized(key: str, text: str) -> Message:
    """A message that holds a long text under a key."""
    if key == "tool_calls":
        return {
            "role": "user",
            "tool_calls": [{**CALL, "function": {"name": "n", "arguments": text}}],
        }
    return {"role": "user", "content": "short", key: text}


@pytest.mark.parametrize(
    "key", ["content", "tool_calls", "unknown", "name", "tool_call_id", "messageStatus", "id"]
)
def test_size_has_a_limit(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Bytes as stored, not characters; whatever part of the message they are in is named."""
    monkeypatch.setattr(columns, "SIZE_LIMIT", 300)
    prepare_message(sized(key, "x" * 200))
    prepare_message(sized(key, "文" * 60))
    assert refused(sized(key, "x" * 301), 2).index == 2
    error = refused(sized(key, "文" * 101))
    assert error.key == key
    assert "300" in error.problem


@pytest.mark.parametrize(
    "long", [{"id": "x" * 301}, {"function": {"name": "x" * 301}}, {"more": "x" * 301}]
)
def test_every_part_of_a_call_counts(monkeypatch: pytest.MonkeyPatch, long: Message) -> None:
    """Not only its arguments."""
    monkeypatch.setattr(columns, "SIZE_LIMIT", 300)
    assert refused({"role": "user", "tool_calls": [{**CALL, **long}]}).key == "tool_calls"


def test_the_limit_is_of_the_whole_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small parts are as large as a big one."""
    monkeypatch.setattr(columns, "SIZE_LIMIT", 300)
    refused({"role": "user", "tool_calls": [CALL] * 100})
    refused({"role": "user", "content": "x" * 200, "more": "x" * 200})


# --- plain messages -------------------------------------------------------------------------------

TEXTS = ["", "x", "é中😀", 'a"b\\\n\t\x01\x7f', "\u2028", "a\0b", "\ud800", "日" * 50]
OTHERS: list[Any] = [None, 1, 1_760_000_000_001, 2.5, True, [], {}, "x"]


def plain_candidates(rng: random.Random) -> Message:
    """Return a message of usual keys in any order, with values that fit or do not."""
    others = ["tool_calls", "tool_call_id", "timestamp", "name", "id"]
    keys = ["role", "content", *rng.sample(others, rng.choice([0, 1, 1, 2, 3]))]
    rng.shuffle(keys)
    fitting: dict[str, Callable[[], Any]] = {
        "role": lambda: rng.choice(["user", "assistant", "tool", "system", "function", ""]),
        "timestamp": lambda: 1_760_000_000_001,
        "tool_calls": lambda: [
            {
                "id": rng.choice(TEXTS[:5]),
                "type": "function",
                "function": {"name": rng.choice(TEXTS[:5]), "arguments": rng.choice(TEXTS[:5])},
                **({"index": 0} if rng.random() < 0.1 else {}),
            }
            for _ in range(rng.randint(0, 3))
        ],
    }
    fits = {key: rng.random() < 0.9 for key in keys}
    return {
        key: fitting.get(key, lambda: rng.choice(TEXTS))() if fits[key] else rng.choice(OTHERS)
        for key in keys
    }


def test_a_plain_message_is_prepared_as_any_other() -> None:
    """In one look: its columns, calls, digest and size are those of the general way."""
    rng, plain = random.Random(1), 0
    for _ in range(5_000):
        message = plain_candidates(rng)
        prepared = prepare_plain_message(message)
        if prepared is not None:
            plain += 1
            general = prepare_object(message, 0)
            assert prepared[:6] == general[:6]
            assert prepared.said is not None
            estimated = FRAMING_TOKENS + estimate_size(*prepared.said)
            assert estimated == estimate_message_tokens(message, general.text_size)
    assert plain > 300
    assert prepare_plain_message({"role": "user", "content": "x" * SIZE_LIMIT}) is None
