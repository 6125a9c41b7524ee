"""The cases of the wheel `langgraph-checkpoint-conformance`, each with a store of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest

from store import Store
from store.adapters.langgraph import Saver

SPEC = "langgraph.checkpoint.conformance.spec.test_"
CAPABILITIES = (
    *("put", "put_writes", "get_tuple", "list"),
    *("delete_thread", "delete_for_runs", "copy_thread", "prune"),
)
CASES = [
    pytest.param(case, id=f"{name}-{case.__name__}")
    for name in CAPABILITIES
    for case in getattr(import_module(f"{SPEC}{name}"), f"ALL_{name.upper()}_TESTS")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_conformance(case: Callable[[Any], Awaitable[None]]) -> None:
    """A case of theirs passes."""
    with Store(":memory:", durability="normal") as store:
        asyncio.run(case(Saver(store)))  # type: ignore[arg-type]
