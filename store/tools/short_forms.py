"""The short form of a tool result in a finished turn.

A result of the protocol ``{"status", "data", "text", "stats", "context", "error"}`` keeps its
status, its error, and the facts and first items of its data; other JSON and plain text are cut to
the same measure. `SHORT_RULES` lists the kept data of each tool. Everything here is pure and total:
any text is accepted, nothing is raised, the result is never longer than the text, and shortened
again it stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from ..phrases import Language
from ..policy import STANDARD_POLICY
from ..text import JsonFields, decode_json, encode_json, get_at_path
from . import failure
from .excerpts import ValueLimits, translate_markers, trim_value
from .kinds import ToolResultKind
from .results import PROTOCOL_FIELDS, compute_result_facts, is_protocol_result
from .short_rules import (
    ERROR_BEGINNING,
    LINE_WIDTH,
    POINTS,
    STATE_MARKS,
    ShortRule,
    TextCut,
    cut_error,
    find_short_rule,
    shorten_todos,
    shorten_unknown,
    squeeze_value,
)
from .todos import render_recap

TEXT_LEVELS = 4
"""Levels of a JSON value whose texts are cut, each like the text of a result."""

_JSON_STARTS = frozenset("{[ \n\r\t")


def compress(
    tool_name: str,
    content: str,
    *,
    kind: ToolResultKind | None = None,
    failed: bool | None = None,
    language: Language | None = None,
) -> str:
    """Return the short form of a tool's result, or the content itself if the form is not shorter.

    The rule is found by the name of the tool; if the name has none, by the kind, which is looked up
    by the name unless it is given. More is kept of the output of a command that ``failed``; None:
    the default policy decides, by the content alone. ``language`` is the language of the markers
    (None: English, with ``…``).
    """
    rule = find_short_rule(
        tool_name,
        kind,
        lambda: (
            failure.is_failed_result(
                compute_result_facts({"content": content}), STANDARD_POLICY, command=True
            )
            if failed is None
            else failed
        ),
    )
    short = content
    while len(shorter := _shorten_content(rule, short, language or "en")) < len(short):
        short = shorter
    if language is None or short is content:
        return short
    told = translate_markers(language, short)
    return told if len(told) < len(content) else content


def _shorten_content(rule: ShortRule, content: str, language: Language) -> str:
    bare = content.strip() if content[:1] in _JSON_STARTS else ""
    bare = bare if bare[:1] + bare[-1:] in ("{}", "[]") else ""
    if bare:
        with suppress(ValueError, RecursionError):
            value = decode_json(bare)
            if isinstance(value, dict) and is_protocol_result(value):
                return encode_json(_shorten_protocol_result(rule, value, language))
            if rule.plain(content, value):
                return _shorten_text(rule, content)
            said = (
                render_recap(
                    {"todos": value} if isinstance(value, list) else value, language=language
                )
                if rule.shape is shorten_todos
                else None
            )
            if said:
                return encode_json({"recap": said})
            if len(content) <= rule.points:
                return content
            return encode_json(
                squeeze_value(_cut_nested_texts(rule.text, value, TEXT_LEVELS), rule.most)
            )
    return _shorten_text(rule, content)


def _shorten_text(rule: ShortRule, text: str) -> str:
    if ERROR_BEGINNING.match(text) and not rule.keeps_errors:
        return cut_error(text)
    return rule.text(text)


def _cut_nested_texts(cut: TextCut, value: Any, levels: int) -> Any:
    """Return a JSON value with each of its texts cut."""
    if isinstance(value, str):
        return cut(value)
    inner = partial(_cut_nested_texts, cut, levels=levels - 1)
    if levels and isinstance(value, list):
        return [inner(each) for each in value]
    if levels and isinstance(value, dict):
        return {key: inner(each) for key, each in value.items()}
    return value


def _shorten_protocol_result(rule: ShortRule, result: JsonFields, language: Language) -> JsonFields:
    """Return a result of the protocol in short; an error stays whole, whatever the status."""
    data = {} if result.get("data") is None else result["data"]
    short = {"status": result["status"], "data": _shorten_data(rule, data, result, language)}
    if result.get("error") is not None:
        short["error"] = result["error"]
    others = {key: value for key, value in result.items() if key not in PROTOCOL_FIELDS}
    return short | {**trim_value(others, ValueLimits(LINE_WIDTH, 10))}


def _shorten_data(rule: ShortRule, data: Any, result: JsonFields, language: Language) -> Any:
    if not isinstance(data, dict):
        return squeeze_value(data, POINTS)
    if data and rule.reads and not any(name in data for name in rule.reads):
        return shorten_unknown(data, {})
    facts = {}
    for name, places in rule.facts.items():
        values = (get_at_path(place, result) for place in places)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            facts[name] = trim_value(value, ValueLimits(LINE_WIDTH, 20))
    if rule.subject and data and result["status"] != "error":
        facts = {rule.subject: "", **facts}
    is_todo = rule.shape is shorten_todos
    short = shorten_todos(data, facts, language) if is_todo else rule.shape(data, facts)
    kept = {
        name: value
        for name, value in data.items()
        if name in rule.marks and name not in short and value is not None
    }
    marks: JsonFields = trim_value(kept, ValueLimits(LINE_WIDTH, len(STATE_MARKS)))
    return {**short, **marks}
