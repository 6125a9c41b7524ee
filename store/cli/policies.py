"""Commands about policies: policy list, policy show, policy check."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from ..policy import DEFAULT, Policy
from ..ready import POLICIES
from ..text import format_count
from . import render
from .options import Fields, Json, complete_policy, loaded, policy_of
from .shown import Column, Row

FIELD_COLUMNS = (
    Column("field"),
    Column("value", wide=True),
    Column("default", wide=True),
)
POLICY_COLUMNS = (
    Column("policy"),
    Column("compacts at", wide=True),
    Column("keeps", wide=True),
    Column("prompt"),
    Column("without a summary", wide=True),
)

TRIGGERS = {
    "trigger_messages": "{} messages",
    "trigger_ratio": "{:.0%} of the window",
    "trigger_usage": "usage at {:.0%} of the window",
    "trigger_tokens": "{:,} tokens",
    "compact_cold_from": "{:,} tokens in a cold cache",
}
"""The triggers of a policy, in words."""
OF_WINDOW = ("trigger_ratio", "trigger_usage", "overflow_ratio")
"""The fields that are shares of a window."""
OF_BATCHES = {"clear_min_freed"}
OF_WARM = {"clear_warm_freed", "clear_warm_share", "clear_warm_keep"}
"""The fields that only one way of clearing knows."""
CONTRADICTIONS: tuple[tuple[Callable[[Policy], bool], str], ...] = (
    (
        lambda policy: policy.on_failure == "trim" and policy.hard_limit is None,
        "on_failure is trim but there is no hard_limit: a failure changes nothing",
    ),
    (
        lambda policy: policy.on_failure != "trim" and policy.hard_limit is not None,
        "there is a hard_limit but on_failure is not trim: no limit is kept to",
    ),
    (
        lambda policy: (
            policy.trigger_messages is not None and policy.trigger_messages <= policy.keep_messages
        ),
        "trigger_messages is not above keep_messages: it fires before anything can be hidden",
    ),
    (
        lambda policy: policy.least_turns is not None and policy.least_turns >= policy.keep_turns,
        "least_turns is not below keep_turns: it changes nothing",
    ),
    (
        lambda policy: policy.clearing != "batched" and bool(policy.model_fields_set & OF_BATCHES),
        "clear_min_freed is for clearing = batched: it changes nothing",
    ),
    (
        lambda policy: policy.clearing != "cold" and bool(policy.model_fields_set & OF_WARM),
        "clear_warm_freed, _share and _keep are for clearing = cold: they change nothing",
    ),
)
"""Contradictions between fields of a policy, with their messages."""

Name = Annotated[
    str,
    typer.Argument(
        metavar="POLICY", help="A ready policy, or a TOML file.", autocompletion=complete_policy
    ),
]
File = Annotated[str, typer.Argument(metavar="FILE", help="A TOML file.")]
Toml = Annotated[bool, typer.Option("--toml", help="Print a TOML file to begin with.")]

policy_ = typer.Typer(add_completion=False)


@policy_.callback(invoke_without_command=True)
def alone(ctx: typer.Context) -> None:
    """List, show and check policies; they need no store."""
    if ctx.invoked_subcommand is None:
        list_()


@policy_.command("list")
def list_(json: Json = False) -> None:
    """List the ready policies: when each compacts, what it keeps, what a failure does."""
    ready = [Policy.named(name) for name in POLICIES]
    if json:
        render.print_json_list(each.model_dump() for each in ready)
    else:
        render.table(POLICY_COLUMNS, map(_row, ready))


@policy_.command("show")
def show(
    name: Name = "default",
    fields: Fields = None,
    toml: Toml = False,
    json: Json = False,
) -> None:
    """Show every field of a policy, and what it changes of the defaults."""
    shown = policy_of(name, fields)
    if json:
        render.print_json(shown.model_dump())
    elif toml:
        lines = ['base = "default"', f"name = {_toml_value(shown.name)}"]
        render.say(*(lines + [_toml_line(name, value) for name, value in shown if name != "name"]))
    else:
        render.table(FIELD_COLUMNS, [_field(name, value) for name, value in shown])


@policy_.command("check")
def check(file: File, json: Json = False) -> None:
    """Say whether a file holds a policy that can be used, and what to know about it."""
    from ..summaries import load

    checked = loaded(file)
    load(checked.prompt)
    notes = [*_notes(checked)]
    changes = {
        name: value for name, value in checked if name != "name" and value != getattr(DEFAULT, name)
    }
    said = f"{checked.name}: a policy that changes {_changed(changes) or 'nothing'}"
    answer = {"policy": checked.name, "changes": changes, "notes": notes}
    render.answer(answer, said, *notes, json=json)


def _row(each: Policy) -> Row:
    triggers = ", ".join(_triggers(each)) or "never by itself"
    return (
        each.name,
        triggers,
        _kept(each),
        each.prompt,
        (
            each.on_failure
            if each.hard_limit is None
            else f"{each.on_failure}, at most {each.hard_limit} messages"
        ),
    )


def _kept(policy: Policy) -> str:
    turns = format_count(policy.keep_turns, "turn")
    if policy.keep_messages:
        return f"{policy.keep_messages} messages, {turns}"
    return turns


def _triggers(policy: Policy) -> Iterator[str]:
    for name, text in TRIGGERS.items():
        value = getattr(policy, name)
        if value is not None:
            yield text.format(value)


def _field(name: str, value: Any) -> Row:
    default = getattr(DEFAULT, name)
    return name, _value(value), "" if value == default else _value(default)


def _changed(changes: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in changes.items())


def _notes(policy: Policy) -> Iterator[str]:
    """Yield notes about fields of a policy that may be unintended."""
    if not any(_triggers(policy)):
        yield "it has no trigger: compact_if_needed never writes a summary by it"
    if shares := _shares_of_no_window(policy):
        yield f"{shares} need a window: each check has to be given max_tokens"
    for found, note in CONTRADICTIONS:
        if found(policy):
            yield note


def _shares_of_no_window(policy: Policy) -> str:
    """Return the fields that are shares of a window, if the policy has no window."""
    if policy.context_window is not None:
        return ""
    return ", ".join(name for name in OF_WINDOW if getattr(policy, name) is not None)


def _value(value: Any) -> str:
    return "" if value is None else json_format.dumps(value, ensure_ascii=False)


def _toml_line(name: str, value: Any) -> str:
    if value is None:
        return f"# {name} is not set"
    line = f"{name} = {_toml_value(value)}"
    return f"# {line}" if value == getattr(DEFAULT, name) else line


def _toml_value(value: Any) -> str:
    """Return a value as TOML, written as in JSON except for the equal signs of a table."""
    if isinstance(value, dict):
        pairs = (f"{_toml_value(key)} = {_toml_value(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return json_format.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
