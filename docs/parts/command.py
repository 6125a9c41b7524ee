"""The command: what each of its words does and takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from .markdown import as_table, paragraphs, plain


def commands() -> dict[tuple[str, ...], Any]:
    """Return every command by the words that call it; a group's own commands follow it."""
    from store.cli import app

    return dict(_commands_of(typer.main.get_command(app), ()))


def _commands_of(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name in getattr(command, "commands", ()):
        _, each, _ = command.resolve_command(typer.Context(command), [name])
        yield from _commands_of(each, (*words, name))


def options(command: Any) -> dict[str, Any]:
    """Return what a command takes, by how it is written."""
    return {_written(each): each for each in command.params if not getattr(each, "hidden", False)}


def _written(parameter: Any) -> str:
    value = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "argument":
        more = "..." if parameter.nargs == -1 else ""
        return f"{value}{more}" if parameter.required else f"[{value}]{more}"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {value}"


def command(words: tuple[str, ...]) -> str:
    """Return what a command does and what it takes."""
    found = commands()[words]
    rows = [(f"`{written}`", _meaning(each)) for written, each in options(found).items()]
    return (
        f"{paragraphs(found.help)}\n\n{as_table(['takes', 'meaning'], rows)}"
        if rows
        else paragraphs(found.help)
    )


def _meaning(parameter: Any) -> str:
    default = (
        parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    )
    if default in (None, "") or parameter.param_type_name == "argument" or parameter.is_flag:
        return plain(parameter.help)
    return f"{plain(parameter.help)} Default: {default}."
