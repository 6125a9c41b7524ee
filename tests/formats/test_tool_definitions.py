"""Definitions of tools in the forms of providers."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from store import Store

SCHEMA = {"type": "object", "properties": {"at": {"type": ["string", "null"]}}}
FORMS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {
            "type": "function",
            "function": {"name": "look", "description": "Look.", "parameters": SCHEMA},
        }
    ],
    "responses": [
        {
            "type": "function",
            "name": "look",
            "description": "Look.",
            "parameters": SCHEMA,
            "strict": False,
        }
    ],
    "anthropic": [{"name": "look", "description": "Look.", "input_schema": SCHEMA}],
    "gemini": [
        {
            "functionDeclarations": [
                {"name": "look", "description": "Look.", "parametersJsonSchema": SCHEMA}
            ]
        }
    ],
}


@pytest.fixture(scope="module")
def asked(store: Store) -> Store:
    """Return a store with a session that asks something."""
    store.create_session("s")
    store.append("s", {"role": "user", "content": "Hi"})
    return store


@pytest.mark.parametrize(("given", "wanted"), [*permutations(FORMS, 2)])
def test_each_form_becomes_each_other(asked: Store, given: str, wanted: str) -> None:
    """With the same name, description and schema; the provider's default is not strict."""
    made = asked.context("s", tools=FORMS[given], format=wanted).tools
    expected: list[dict[str, Any]] = FORMS[wanted]
    if (given, wanted) == ("responses", "openai"):
        expected = [{**expected[0], "function": {**expected[0]["function"], "strict": False}}]
    assert made == expected


@pytest.mark.parametrize("name", FORMS)
def test_a_definition_of_the_form_stays(asked: Store, name: str) -> None:
    """Whatever other keys it has, and tools of the provider beside it."""
    own = [*FORMS[name], {"type": "web_search_20250305", "name": "web_search"}]
    own[0] = {**own[0], "cache_control": {"type": "ephemeral"}} if name == "anthropic" else own[0]
    assert asked.context("s", tools=own, format=name).tools == own


def test_names_and_schemas_are_accepted(asked: Store) -> None:
    """A name is sent as the calls of it are; the types of a schema are in small letters."""
    declared = {"name": "a b", "parameters": {"type": "OBJECT", "properties": {}}}
    tools = [{"function_declarations": [declared]}]
    (made,) = asked.context("s", tools=tools, format="anthropic").tools or []
    assert made["input_schema"] == {"type": "object", "properties": {}}
    assert made["name"].startswith("a_b-")
    assert (
        asked.context("s", tools=FORMS["gemini"]).text
        == asked.context("s", tools=FORMS["gemini"], format="anthropic").text
    )
