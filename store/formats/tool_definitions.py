"""Definitions of tools, given in the form of any provider, in the form of another.

A definition is a name, a description and a schema of the arguments; providers differ in the keys. A
tool that runs at a provider has no other form, so it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..messages import Message
from .call_names import Alphabet

GEMINI_KEY = "functionDeclarations"
DECLARATION_KEYS = (GEMINI_KEY, "function_declarations")
"""The keys under which Gemini has a list of definitions."""
SCHEMA_KEYS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
"""The keys under which providers have the schema of the arguments."""
SCHEMA_TYPES = frozenset(("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"))
"""The names of types in Gemini's own schemas; a JSON schema has them in small letters."""

GivenTools = Sequence[Mapping[str, Any]]


class ToolDefinition(NamedTuple):
    """The definition of a tool that the client runs."""

    name: str
    description: str | None
    schema: Any
    strict: bool | None

    @property
    def named(self) -> Message:
        """The keys that every form has."""
        said = {} if self.description is None else {"description": self.description}
        return {"name": self.name, **said}


def build_chat_tool(tool: ToolDefinition) -> Message:
    """Return a definition as a chat has it."""
    strict = {} if tool.strict is None else {"strict": tool.strict}
    return {"type": "function", "function": {**tool.named, "parameters": tool.schema, **strict}}


def build_responses_tool(tool: ToolDefinition) -> Message:
    """Return a definition as Responses has it; without ``strict`` it would be strict."""
    strict = bool(tool.strict)
    return {"type": "function", **tool.named, "parameters": tool.schema, "strict": strict}


def build_anthropic_tool(tool: ToolDefinition) -> Message:
    """Return a definition as Anthropic has it."""
    return {**tool.named, "input_schema": tool.schema}


def build_gemini_tool(tool: ToolDefinition) -> Message:
    """Return a definition as Gemini has it in its list of them."""
    return {**tool.named, "parametersJsonSchema": tool.schema}


def write_definitions(
    tools: GivenTools, build: Callable[[ToolDefinition], Message], names: Alphabet
) -> list[Message]:
    """Return tools as a provider takes them, with names that it accepts.

    A definition that has the keys of the form stays as it is, if its name is accepted.
    """
    written: list[Message] = []
    declared: list[Message] = []
    declares = build is build_gemini_tool
    for given in tools:
        key = next((key for key in DECLARATION_KEYS if given.get(key)), None)
        for each in given[key] if key else (given,):
            definition = _read_definition(each, key)
            if definition is None:
                written.append({**each})
                continue
            made = build(definition._replace(name=names.fitted(definition.name)))
            is_of_form = made.keys() - {"strict"} <= each.keys() or (key and declares)
            kept = {**each} if is_of_form and names.fits(definition.name) else made
            (declared if declares else written).append(kept)
        if key and (rest := {name: held for name, held in given.items() if name != key}):
            written.append(rest)
    return [{GEMINI_KEY: declared}, *written] if declared else written


def _read_definition(given: Mapping[str, Any], key: str | None) -> ToolDefinition | None:
    """Return the definition in a tool, or in a list under a key; None for a provider's own tool."""
    held = given.get("function", given)
    if not isinstance(held, Mapping) or not isinstance(held.get("name"), str):
        return None
    if given.get("type", "function") != "function" and "input_schema" not in given:
        return None
    no_arguments: Message = {"type": "object", "properties": {}}
    schema = next((held[name] for name in SCHEMA_KEYS if held.get(name)), no_arguments)
    told = held["name"], held.get("description"), _lower_types(schema) if key else schema
    return ToolDefinition(*told, held.get("strict"))


def _lower_types(schema: Any) -> Any:
    """Return a schema with the names of types that a JSON schema has."""
    if isinstance(schema, list):
        return [*map(_lower_types, schema)]
    if not isinstance(schema, Mapping):
        return schema
    lowered = {name: _lower_types(held) for name, held in schema.items()}
    kind = lowered.get("type")
    if isinstance(kind, str) and kind in SCHEMA_TYPES:
        lowered["type"] = kind.lower()
    return lowered
