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

from ..policy import DEFAULT
from ..ready import Language
from ..text import Fields, decode_json, encode_json, get_at_path
from . import failure
from .excerpts import Limits, markers_in, trimmed
from .kinds import Kind
from .results import ENVELOPE, is_protocol, result_facts
from .shapes import ERROR, POINTS, WIDTH, digested, recapped, squeezed
from .short_rules import STATE_MARKS, Cut, Places, ShortRule, cut_error, rule_of
from .todos import recap

TEXT_LEVELS = 4
"""Levels of a JSON value whose texts are cut, each like the text of a result."""

_BEFORE_JSON = frozenset("{[ \n\r\t")


def compress(
    tool_name: str,
    content: str,
    *,
    kind: Kind | None = None,
    failed: bool | None = None,
    language: Language | None = None,
) -> str:
    """Return the short form of a tool's result, or the content itself if the form is not shorter.

    The rule is found by the name of the tool; if the name has none, by the kind, which is looked up
    by the name unless it is given. More is kept of the output of a command that ``failed``; None:
    the default policy decides, by the content alone. ``language`` is the language of the markers
    (None: English, with ``…``).
    """
    rule = rule_of(
        tool_name,
        kind,
        lambda: (
            failure.failed(result_facts({"content": content}), DEFAULT, command=True)
            if failed is None
            else failed
        ),
    )
    short = content
    while len(shorter := _shorter(rule, short, language or "en")) < len(short):
        short = shorter
    if language is None or short is content:
        return short
    told = markers_in(language, short)
    return told if len(told) < len(content) else content


def _shorter(rule: ShortRule, content: str, language: Language) -> str:
    bare = content.strip() if content[:1] in _BEFORE_JSON else ""
    bare = bare if bare[:1] + bare[-1:] in ("{}", "[]") else ""
    if bare:
        with suppress(ValueError, RecursionError):
            value = decode_json(bare)
            if isinstance(value, dict) and is_protocol(value):
                return encode_json(_enveloped(rule, value, language))
            if rule.plain(content, value):
                return _of_text(rule, content)
            said = (
                recap({"todos": value} if isinstance(value, list) else value, language=language)
                if rule.shape is recapped
                else None
            )
            if said:
                return encode_json({"recap": said})
            if len(content) <= rule.points:
                return content
            return encode_json(squeezed(_with_texts_cut(rule.text, value, TEXT_LEVELS), rule.most))
    return _of_text(rule, content)


def _of_text(rule: ShortRule, text: str) -> str:
    if ERROR.match(text) and not rule.keeps_errors:
        return cut_error(text)
    return rule.text(text)


def _with_texts_cut(cut: Cut, value: Any, levels: int) -> Any:
    """Return a JSON value with each of its texts cut."""
    if isinstance(value, str):
        return cut(value)
    inner = partial(_with_texts_cut, cut, levels=levels - 1)
    if levels and isinstance(value, list):
        return [inner(each) for each in value]
    if levels and isinstance(value, dict):
        return {key: inner(each) for key, each in value.items()}
    return value


def _enveloped(rule: ShortRule, result: Fields, language: Language) -> Fields:
    """Return a result of the protocol in short; an error stays whole, whatever the status."""
    data = {} if result.get("data") is None else result["data"]
    short = {"status": result["status"], "data": _data(rule, data, result, language)}
    if result.get("error") is not None:
        short["error"] = result["error"]
    others = {key: value for key, value in result.items() if key not in ENVELOPE}
    return short | {**trimmed(others, Limits(WIDTH, 10))}


def _data(rule: ShortRule, data: Any, result: Fields, language: Language) -> Any:
    if not isinstance(data, dict):
        return squeezed(data, POINTS)
    if data and rule.reads and not any(name in data for name in rule.reads):
        return digested(data, {})
    found = {name: _found(result, places) for name, places in rule.facts.items()}
    facts = {name: value for name, value in found.items() if value is not None}
    if rule.subject and data and result["status"] != "error":
        facts = {rule.subject: "", **facts}
    is_todo = rule.shape is recapped
    short = recapped(data, facts, language) if is_todo else rule.shape(data, facts)
    return {**short, **_marks(rule, data, short)}


def _found(result: Fields, places: Places) -> Any:
    """Return the first value in some places of a result, None if there is none."""
    for place in places:
        value = get_at_path(place, result)
        if value is not None:
            return trimmed(value, Limits(WIDTH, 20))
    return None


def _marks(rule: ShortRule, data: Fields, short: Fields) -> Fields:
    """Return the fields that tell the state of a result, if the shape did not keep them."""
    kept = {
        name: value
        for name, value in data.items()
        if name in rule.marks and name not in short and value is not None
    }
    marks: Fields = trimmed(kept, Limits(WIDTH, len(STATE_MARKS)))
    return marks
