"""Commands about policies: policy list, policy show, policy check."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from ..policy import POLICIES, STANDARD_POLICY, Policy
from ..text import format_count
from . import render
from .options import FieldChanges, Json, complete_policy, read_policy_file, resolve_policy
from .terminal import Column, TableRow

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

TRIGGER_TEXTS = {
    "trigger_messages": "{} messages",
    "trigger_ratio": "{:.0%} of the window",
    "trigger_usage": "usage at {:.0%} of the window",
    "trigger_tokens": "{:,} tokens",
    "compact_cold_from": "{:,} tokens in a cold cache",
}
"""The triggers of a policy, in words."""
WINDOW_FIELDS = ("trigger_ratio", "trigger_usage", "overflow_ratio")
"""The fields that are shares of a window."""
BATCHED_FIELDS = {"clear_min_freed"}
WARM_FIELDS = {"clear_warm_freed", "clear_warm_share", "clear_warm_keep"}
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
        lambda policy: (
            policy.clearing != "batched" and bool(policy.model_fields_set & BATCHED_FIELDS)
        ),
        "clear_min_freed is for clearing = batched: it changes nothing",
    ),
    (
        lambda policy: policy.clearing != "cold" and bool(policy.model_fields_set & WARM_FIELDS),
        "clear_warm_freed, _share and _keep are for clearing = cold: they change nothing",
    ),
)
"""Contradictions between fields of a policy, with their messages."""

PolicyArgument = Annotated[
    str,
    typer.Argument(
        metavar="POLICY", help="A ready policy, or a TOML file.", autocompletion=complete_policy
    ),
]
PolicyFile = Annotated[str, typer.Argument(metavar="FILE", help="A TOML file.")]
TomlOption = Annotated[bool, typer.Option("--toml", help="Print a TOML file to begin with.")]

policy_ = typer.Typer(add_completion=False)


@policy_.callback(invoke_without_command=True)
def run_policy_group(ctx: typer.Context) -> None:
    """List, show and check policies; they need no store."""
    if ctx.invoked_subcommand is None:
        list_policies()


@policy_.command("list")
def list_policies(json: Json = False) -> None:
    """List the ready policies with their triggers, kept messages and actions on failures."""
    ready = [Policy.named(name) for name in POLICIES]
    if json:
        render.print_json_list(each.model_dump() for each in ready)
    else:
        rows: list[TableRow] = []
        for each in ready:
            triggers = ", ".join(_describe_triggers(each)) or "never by itself"
            turns = format_count(each.keep_turns, "turn")
            kept = f"{each.keep_messages} messages, {turns}" if each.keep_messages else turns
            failure = str(each.on_failure)
            if each.hard_limit is not None:
                failure += f", at most {each.hard_limit} messages"
            rows.append((each.name, triggers, kept, each.prompt, failure))
        render.show_table(POLICY_COLUMNS, rows)


@policy_.command("show")
def show_policy(
    name: PolicyArgument = "default",
    fields: FieldChanges = None,
    toml: TomlOption = False,
    json: Json = False,
) -> None:
    """Show every field of a policy, and its changes of the defaults."""
    shown = resolve_policy(name, fields)
    if json:
        render.print_json(shown.model_dump())
    elif toml:
        lines = ['base = "default"', f"name = {_render_toml_value(shown.name)}"]
        for field, value in shown:
            if field == "name":
                continue
            line = f"{field} = {_render_toml_value(value)}"
            if value is None:
                line = f"# {field} is not set"
            elif value == getattr(STANDARD_POLICY, field):
                line = f"# {line}"
            lines.append(line)
        render.print_lines(*lines)
    else:
        rows: list[TableRow] = []
        for field, value in shown:
            default = getattr(STANDARD_POLICY, field)
            text = "" if value == default else _format_field_value(default)
            rows.append((field, _format_field_value(value), text))
        render.show_table(FIELD_COLUMNS, rows)


@policy_.command("check")
def check_policy_file(file: PolicyFile, json: Json = False) -> None:
    """Check a file with a policy, and print its errors or warnings."""
    from ..summaries import load

    checked = read_policy_file(file)
    load(checked.prompt)
    notes = [*_list_policy_warnings(checked)]
    changes = {
        name: value
        for name, value in checked
        if name != "name" and value != getattr(STANDARD_POLICY, name)
    }
    told = ", ".join(f"{name}={_format_field_value(value)}" for name, value in changes.items())
    said = f"{checked.name}: a policy that changes {told or 'nothing'}"
    answer = {"policy": checked.name, "changes": changes, "notes": notes}
    render.print_answer(answer, said, *notes, json=json)


def _describe_triggers(policy: Policy) -> Iterator[str]:
    for name, text in TRIGGER_TEXTS.items():
        value = getattr(policy, name)
        if value is not None:
            yield text.format(value)


def _list_policy_warnings(policy: Policy) -> Iterator[str]:
    """Yield notes about fields of a policy that may be unintended."""
    if not any(_describe_triggers(policy)):
        yield "it has no trigger: compact_if_needed never writes a summary by it"
    shares = [name for name in WINDOW_FIELDS if getattr(policy, name) is not None]
    if policy.context_window is None and shares:
        yield f"{', '.join(shares)} need a window: each check has to be given max_tokens"
    for found, note in CONTRADICTIONS:
        if found(policy):
            yield note


def _format_field_value(value: Any) -> str:
    return "" if value is None else json_format.dumps(value, ensure_ascii=False)


def _render_toml_value(value: Any) -> str:
    """Return a value as TOML, written as in JSON except for the equal signs of a table."""
    if isinstance(value, dict):
        pairs = (
            f"{_render_toml_value(key)} = {_render_toml_value(each)}" for key, each in value.items()
        )
        return f"{{ {', '.join(pairs)} }}"
    return json_format.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
