"""Commands about policies: policy list, policy show, policy check."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..policy import DEFAULT, POLICIES, Policy, load
from ..prompts import load as load_prompt
from . import render
from .options import Fields, Json, policy_of
from .render import Cell, Column

FIELD_COLUMNS = (Column("field"), Column("value", wide=True), Column("default", wide=True))
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
}
"""The triggers of a policy, in words."""
OF_WINDOW = ("trigger_ratio", "trigger_usage", "overflow_ratio")
"""The fields that are shares of a window."""
OF_BATCHES = {"clear_min_freed", "clear_cold_after"}
"""The fields that only batched clearing knows."""
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
        lambda policy: policy.trigger_messages is not None and policy.trigger_messages <= policy.keep_messages,
        "trigger_messages is not above keep_messages: it fires before anything can be hidden",
    ),
    (
        lambda policy: policy.least_turns is not None and policy.least_turns >= policy.keep_turns,
        "least_turns is not below keep_turns: it changes nothing",
    ),
    (
        lambda policy: policy.clearing == "always" and bool(policy.model_fields_set & OF_BATCHES),
        "clear_min_freed and clear_cold_after are for clearing = batched: they change nothing",
    ),
)
"""What in a policy undoes another part of it, and how to say so."""

group = typer.Typer(help="List, show and check policies; they need no store.", no_args_is_help=False)


@group.callback(invoke_without_command=True)
def policy(ctx: typer.Context) -> None:
    """List, show and check policies; they need no store."""
    if ctx.invoked_subcommand is None:
        list_()


@group.command("list")
def list_(json: Json = False) -> None:
    """List the ready policies: when each compacts, what it keeps, what it does without a summary."""
    ready = [Policy.named(name) for name in POLICIES]
    if json:
        render.print_json_list(each.model_dump() for each in ready)
    else:
        render.table(POLICY_COLUMNS, map(_row, ready))


@group.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="[POLICY]", help="A ready policy, or a TOML file.")] = "default",
    fields: Fields = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print a TOML file to begin with.")] = False,
    json: Json = False,
) -> None:
    """Show every field of a policy, and what it changes of the defaults."""
    shown = policy_of(name, fields)
    if json:
        render.print_json(shown.model_dump())
    elif toml:
        render.say(*_toml(shown))
    else:
        render.table(FIELD_COLUMNS, [_field(name, value) for name, value in shown])


@group.command("check")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file.")],
    json: Json = False,
) -> None:
    """Say whether a file holds a policy that can be used, and what to know about it."""
    checked = load(file)
    load_prompt(checked.prompt)
    notes = _notes(checked)
    if json:
        render.print_json({"policy": checked.name, "changes": _changes(checked), "notes": notes})
        return
    changed = ", ".join(f"{name}={_value(value)}" for name, value in _changes(checked).items())
    render.say(f"{checked.name}: a policy that {f'changes {changed}' if changed else 'changes nothing'}")
    render.say(*notes)


def _row(each: Policy) -> tuple[Cell, ...]:
    kept = [f"{each.keep_messages} messages"] if each.keep_messages else []
    kept.append(render.counted(each.keep_turns, "turn"))
    triggers = [text.format(value) for name, text in TRIGGERS.items() if (value := getattr(each, name)) is not None]
    limit = f", at most {each.hard_limit} messages" if each.hard_limit is not None else ""
    return each.name, ", ".join(triggers) or "never by itself", ", ".join(kept), each.prompt, each.on_failure + limit


def _field(name: str, value: Any) -> tuple[Cell, ...]:
    default = getattr(DEFAULT, name)
    return name, _value(value), "" if value == default else _value(default)


def _changes(policy: Policy) -> dict[str, Any]:
    """Return what a policy changes of the defaults, its name aside."""
    return {name: value for name, value in policy if name != "name" and value != getattr(DEFAULT, name)}


def _notes(policy: Policy) -> list[str]:
    """Return what the writer of a policy may not have meant."""
    notes = []
    if all(getattr(policy, name) is None for name in TRIGGERS):
        notes.append("it has no trigger: compact_if_needed never writes a summary by it")
    shares = [name for name in OF_WINDOW if getattr(policy, name) is not None]
    if shares and policy.context_window is None:
        notes.append(f"{', '.join(shares)} need a window: each check has to be given max_tokens")
    return notes + [note for found, note in CONTRADICTIONS if found(policy)]


def _value(value: Any) -> str:
    return "" if value is None else json_format.dumps(value, ensure_ascii=False)


def _toml(policy: Policy) -> list[str]:
    """Return a policy as lines of a TOML file that loads back equal; what is as the default is a comment."""
    lines = ['base = "default"', f"name = {_toml_value(policy.name)}"]
    for name, value in policy:
        if value is None:
            lines.append(f"# {name} is not set")
        elif name != "name":
            lines.append(f"{'# ' if value == getattr(DEFAULT, name) else ''}{name} = {_toml_value(value)}")
    return lines


def _toml_value(value: Any) -> str:
    """Return a value as TOML: its texts, numbers and lists are written as in JSON, its tables with equal signs."""
    if isinstance(value, dict):
        pairs = (f"{_toml_value(key)} = {_toml_value(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return json_format.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
