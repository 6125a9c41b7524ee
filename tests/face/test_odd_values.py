"""What an operation cannot use is refused by an error of the store, whatever it is given for what."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Any

import pytest

from store import Policy, Store, StoreError, inspection, policy
from store.context import mentions, remind
from store.face import Steps
from store.face.streaming import Streaming


class Unspeakable:
    """What cannot even be quoted."""

    def __repr__(self) -> str:
        raise RuntimeError("nothing is said of it")


def nested(levels: int) -> list[Any]:
    """Return a list in a list in a list."""
    inner: list[Any] = []
    for _ in range(levels):
        inner = [inner]
    return inner


ODD = {
    "none": None,
    "yes": True,
    "negative": -1,
    "65 bits": 2**64,
    "thousands of digits": 10**5_000,
    "a fraction": 1.5,
    "not a number": math.nan,
    "infinite": math.inf,
    "a decimal": Decimal(2),
    "nothing": "",
    "NUL": "a\0b",
    "a surrogate": "\ud800",
    "no UTF-8": "\udc80",
    "bytes": b"s",
    "a list": [],
    "a list of none": [None],
    "an object": {},
    "an object without names": {1: 2},
    "nested": nested(100_000),
    "a set": {"s"},
    "any object": object(),
    "unspeakable": Unspeakable(),
    "hidden in a list": [10**5_000],
}
GIVEN: dict[str, Any] = {
    "session_id": "s",
    "messages": {"role": "user", "content": "new"},
    "message": {"role": "assistant"},
    "state": "1 2",
    "number": 1,
    "seq": 2,
    "seq_or_message_id": 2,
    "message_id": "m1",
    "name": "usages",
    "file": "prices.toml",
    "to": 2,
    "after": 2,
    "branch": 1,
    "key": "rating",
    "value": 5,
    "first": 2,
    "last": 3,
    "reason": "secret",
    "text": "word",
    "wanted": "word",
    "metadata": {},
    "title": "title",
    "revision": "unknown",
    "timeout": 0,
    "compaction_id": 1,
    "draft": "unknown",
    "user_input": "word",
    "project_root": "/",
    "policy": Policy(),
    "input": 10,
    "output": 10,
    "source": "s",
    "owner": "of nobody",
    "path": "copy.db",
    "work": Steps.sessions,
    "callback": len,
}
"""What is given for what has to be given."""

PATIENT = {"timeout"}
"""What is waited for, if it is a number."""
Operation = Callable[..., Any]


def _parameters(operation: Operation) -> list[Parameter]:
    return [*inspect.signature(operation).parameters.values()][1:]


OPERATIONS = {
    name: operation
    for name, operation in inspect.getmembers(Store, inspect.isfunction)
    if name[0] != "_" and _parameters(operation)
}


def calls(operation: Operation) -> Iterator[tuple[str, Callable[[Store], Any]]]:
    """Yield calls of an operation that give it one odd value, and what is odd."""
    for odd in _parameters(operation):
        for what, value in ODD.items():
            if odd.name not in PATIENT:
                given = _given(operation) | {odd.name: value}
                yield f"{odd.name}: {what}", partial(_called, operation, given)


def _given(operation: Operation) -> dict[str, Any]:
    """Return what an operation has to be given."""
    return {
        each.name: GIVEN[each.name]
        for each in _parameters(operation)
        if each.default is Parameter.empty and each.kind is not Parameter.VAR_POSITIONAL
    }


def _called(operation: Operation, given: dict[str, Any], store: Store) -> None:
    """Call an operation; go through what it yields, or into what is streamed."""
    signature = inspect.signature(operation)
    several = [
        each for each in given if signature.parameters[each].kind is Parameter.VAR_POSITIONAL
    ]
    args = [given.pop(each) for each in several]
    bound = signature.bind(store, *args) if several else signature.bind(store, **given)
    result = operation(*bound.args, **bound.kwargs, **(given if several else {}))
    if isinstance(result, Iterator):
        list(result)
    if isinstance(result, Streaming):
        with result as answer:
            answer.write("word")


@pytest.fixture
def odd_store(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with one session of some messages; what is named by chance lies in a folder aside."""
    (tmp_path / "aside").mkdir()
    monkeypatch.chdir(tmp_path / "aside")
    with Store(url, durability="normal") as store:
        store.create_session("s", title="title")
        said = ({"role": role, "content": "word"} for role in ("user", "assistant") * 3)
        store.append("s", list(said))
        yield store


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", OPERATIONS)
def test_odd_values_are_taken_or_refused(odd_store: Store, name: str) -> None:
    """No operation ends with an error of Python's own."""
    for what, call in calls(OPERATIONS[name]):
        try:
            with suppress(StoreError):
                call(odd_store)
        except Exception as error:
            raise AssertionError(what) from error
    assert odd_store.verify() == []


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a store": lambda odd: Store(odd, timeout=1).close(),
    "its timeout": lambda odd: Store("chat.db", timeout=odd).close(),
    "its durability": lambda odd: Store("chat.db", durability=odd).close(),
    "an owner": lambda odd: Store("chat.db").scoped(odd),
    "mentions": mentions,
    "remind": remind,
    "a file of a policy": policy.load,
    "a ready policy": Policy.named,
    "a query": lambda odd: inspection.query("chat.db", odd),
    "the store of a query": lambda odd: inspection.query(odd, "SELECT 1"),
    "a copy": lambda odd: inspection.restore(odd, "restored.db"),
    "the place of a copy": lambda odd: inspection.restore("chat.db", odd),
}


@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_or_refuse_odd_values(odd_store: Store, name: str) -> None:
    """Nor does what is no operation of a store."""
    for what, value in (ODD | {"a long name": "x" * 300}).items():
        try:
            with suppress(StoreError):
                FUNCTIONS[name](value)
        except Exception as error:
            raise AssertionError(what) from error
