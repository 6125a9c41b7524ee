"""The commands by name: their lines in ``--help``, and their modules, imported when called.

A command is a function of the module that the table names, or a group of functions. It has the
command's name, followed by ``_`` if that name is taken. The line is the first of its docstring,
repeated here so that listing the commands needs none of their modules, and no store.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from .terminal import allow_styles


class Listed(NamedTuple):
    """A command as the help lists it."""

    module: str
    line: str


COMMANDS: dict[str, dict[str, Listed]] = {
    "Begin": {
        "demo": Listed("demo", "Show what the store does, on a session of a coding agent."),
        "import": Listed(
            "transfer", "Import transcripts of other programs, or what is new in them."
        ),
        "sessions": Listed("show", "List the sessions, the last active first."),
    },
    "Look": {
        "show": Listed("show", "Print a session's raw messages, as they went in."),
        "view": Listed("show", "Show what would be sent to the model, and what is replaced."),
        "replaced": Listed("show", "List what a view replaces or shortens, and why."),
        "context": Listed(
            "assembling", "Print a whole request: prompts, rules, history, input, turn."
        ),
        "tree": Listed("writing", "Draw which session continues which, and from where."),
        "stats": Listed("counting", "Show where the tokens go: by role, rule, tool and file."),
        "tokens": Listed("counting", "Count a session's tokens, and keep the counts."),
        "usage": Listed("spending", "Show what requests cost, or record it."),
        "annotations": Listed("noting", "List what is noted beside messages."),
        "branches": Listed(
            "heads", "List the branches of a session, or what they say at a position."
        ),
        "moves": Listed("heads", "List the moves of a session's head, oldest first."),
        "search": Listed("searching", "Find what was said, by its words."),
        "recall": Listed("searching", "Print what a view has out of sight and has these words."),
        "sql": Listed("store", "Run a read-only SELECT, or list the views for people."),
    },
    "Compact": {
        "compact": Listed("compacting", "Hide what a policy does not keep behind a summary."),
        "hide": Listed("hiding", "Hide a range behind a text of yours, or behind nothing."),
        "compactions": Listed(
            "compacting", "List the compactions of a session's line, oldest first."
        ),
        "check": Listed("compacting", "Say whether to compact before the next request, and why."),
        "simulate": Listed("simulating", "Replay a session by each policy, and compare the bills."),
        "policy": Listed("policies", "List, show and check policies; they need no store."),
    },
    "Change": {
        "create": Listed("writing", "Create a session without messages."),
        "append": Listed("writing", "Append a message, or all those that standard input holds."),
        "rename": Listed("writing", "Give a session another title."),
        "tag": Listed("writing", "Set some of a session's metadata, or print them."),
        "archive": Listed("writing", "Take a session out of the list of those in use."),
        "unarchive": Listed("writing", "Put an archived session back among those in use."),
        "fork": Listed("heads", "Continue a session from a position, in a new session."),
        "rewind": Listed("heads", "Move a session's head back to a position."),
        "switch": Listed("heads", "Move a session's head to a branch that it has left."),
        "undo": Listed("heads", "Take back a session's last rewind or switch, or a compaction."),
        "project": Listed("heads", "Set the folder of a session's project."),
        "drafts": Listed("drafting", "List answers that broke off, or are being streamed."),
        "annotate": Listed("noting", "Note something beside a message, such as a rating."),
        "redact": Listed(
            "redacting", "Write over what a message says, wherever shown; asks first."
        ),
        "delete": Listed("heads", "Erase a session for good, with all made from it; asks first."),
    },
    "Keep": {
        "export": Listed("exporting", "Write a session's raw messages, one JSON object a line."),
        "backup": Listed("upkeep", "Copy a store while it is in use, and check the copy."),
        "restore": Listed("upkeep", "Put a copy, once checked, in the place of the store."),
        "purge": Listed("upkeep", "Write the file anew, without a byte of what was erased."),
        "index": Listed("searching", "Let searches find all that is new."),
        "verify": Listed("store", "Check every promise that the data can show broken."),
        "doctor": Listed("upkeep", "Look for what may threaten the store."),
        "migrate": Listed("upkeep", "Bring a store to the newest schema."),
    },
}
"""The commands by their headings in the help."""


class Command(TyperCommand):
    """A command that is named in every error of its arguments."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help in colours."""
        with allow_styles():
            super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments of the command."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if getattr(error, "ctx", None) is None:  # as where an option has no value
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


class Group(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help in colours."""
        with allow_styles():
            super().format_help(ctx, formatter)


class Commands(Group):
    """Lists the commands as the table has them, and imports the one that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for heading, listed in COMMANDS.items():
            for name, each in listed.items():
                self.add_command(TyperCommand(name, help=each.line, rich_help_panel=heading))

    def resolve_command(
        self,
        ctx: Any,
        args: list[str],
    ) -> tuple[str | None, Any, list[str]]:
        """Return the name, the command itself and its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, command(name) if name and listed else None, rest


@cache
def command(name: str) -> Any:
    """Return a command, or a group of commands, ready to be called."""
    module = next(listed[name].module for listed in COMMANDS.values() if name in listed)
    room = import_module(f"{__package__}.{module}")
    found = getattr(room, f"{name}_", None) or getattr(room, name)
    group = found if isinstance(found, typer.Typer) else _alone(name, found)
    group.info.cls = Group
    for each in group.registered_commands:
        each.cls = Command
    return typer.main.get_command(group)


def _alone(name: str, found: Any) -> typer.Typer:
    group = typer.Typer(add_completion=False)
    group.command(name)(found)
    return group
