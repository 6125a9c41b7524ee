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


class ListedCommand(NamedTuple):
    """A command as the help lists it."""

    module: str
    line: str


COMMANDS: dict[str, dict[str, ListedCommand]] = {
    "Begin": {
        "demo": ListedCommand("demo", "Show what the store does, on a session of a coding agent."),
        "import": ListedCommand(
            "imports", "Import transcripts of other programs, or their new messages."
        ),
        "sessions": ListedCommand("show", "List the sessions, the last active first."),
    },
    "Look": {
        "show": ListedCommand("show", "Print a session's raw messages, unchanged."),
        "view": ListedCommand("show", "Show the view: the messages for the model, some replaced."),
        "replaced": ListedCommand(
            "show", "List the results that a view replaces or shortens, and why."
        ),
        "context": ListedCommand(
            "requests", "Print a whole request: prompts, rules, history, input, turn."
        ),
        "requests": ListedCommand("request_log", "List the recorded requests of a session."),
        "request": ListedCommand(
            "request_log", "Show a recorded request, and what differs from the one before."
        ),
        "tree": ListedCommand("sessions", "Draw the sessions and their forks as a tree."),
        "stats": ListedCommand("usage", "Show the tokens by role, rule, tool and file."),
        "tokens": ListedCommand("usage", "Count a session's tokens, and keep the counts."),
        "usage": ListedCommand("usage", "Show the cost of requests, or record it."),
        "prices": ListedCommand("usage", "Store the prices of models from a file, or list them."),
        "annotations": ListedCommand("messages", "List the notes on messages."),
        "branches": ListedCommand(
            "heads", "List a session's branches, or their messages at a position."
        ),
        "moves": ListedCommand("heads", "List the moves of a session's head, oldest first."),
        "search": ListedCommand("search", "Find sessions, or messages, by their words."),
        "recall": ListedCommand(
            "search", "Print messages with these words that a view hides or replaces."
        ),
        "mcp": ListedCommand("agents", "Serve past sessions to coding agents by MCP, over stdio."),
        "sql": ListedCommand("sql", "Run a read-only SELECT, or list the views for people."),
        "browse": ListedCommand(
            "pages", "Show the store in a browser: conversations, requests, costs."
        ),
        "datasette": ListedCommand(
            "pages", "Write metadata for Datasette: views, columns, ready queries."
        ),
    },
    "Compact": {
        "compact": ListedCommand(
            "compactions", "Replace the messages that a policy does not keep by a summary."
        ),
        "hide": ListedCommand(
            "compactions", "Hide a range of messages, or replace it by a text of yours."
        ),
        "compactions": ListedCommand(
            "compactions", "List the compactions of a session's line, oldest first."
        ),
        "check": ListedCommand(
            "compactions", "Say whether to compact before the next request, and why."
        ),
        "simulate": ListedCommand(
            "simulation", "Replay a session by each policy, and compare the bills."
        ),
        "policy": ListedCommand("policies", "List, show and check policies; they need no store."),
    },
    "Change": {
        "create": ListedCommand("sessions", "Create a session without messages."),
        "append": ListedCommand("sessions", "Append a message, or all messages of standard input."),
        "rename": ListedCommand("sessions", "Give a session another title."),
        "tag": ListedCommand("sessions", "Set some of a session's metadata, or print them."),
        "archive": ListedCommand("sessions", "Remove a session from the list of active sessions."),
        "unarchive": ListedCommand(
            "sessions", "Return an archived session to the list of active sessions."
        ),
        "fork": ListedCommand("heads", "Continue a session from a position, in a new session."),
        "rewind": ListedCommand("heads", "Move a session's head back to a position."),
        "switch": ListedCommand("heads", "Move a session's head to a branch that it has left."),
        "undo": ListedCommand("heads", "Undo a session's last rewind or switch, or a compaction."),
        "project": ListedCommand("heads", "Set the folder of a session's project."),
        "drafts": ListedCommand(
            "sessions", "List answers that broke off, or are being streamed (live)."
        ),
        "annotate": ListedCommand("messages", "Add a note to a message, such as a rating."),
        "redact": ListedCommand(
            "messages", "Overwrite the content of a message everywhere; asks first."
        ),
        "delete": ListedCommand(
            "sessions", "Erase a session permanently, with its records; asks first."
        ),
        "forget": ListedCommand(
            "sessions", "Erase what a session's line has left permanently; asks first."
        ),
    },
    "Keep": {
        "export": ListedCommand(
            "exports", "Write a session's raw messages, one JSON object a line."
        ),
        "move": ListedCommand("exports", "Continue a session in another program; asks first."),
        "backup": ListedCommand(
            "maintenance", "Copy a store while it is in use, and check the copy."
        ),
        "copy": ListedCommand(
            "transfers", "Copy a store to a file or a server while it is in use."
        ),
        "restore": ListedCommand("maintenance", "Check a copy, then replace the store by it."),
        "purge": ListedCommand(
            "maintenance", "Rewrite the file without any byte of erased messages."
        ),
        "size": ListedCommand(
            "retention", "Show the bytes that a store takes, and the largest parts of it."
        ),
        "prune": ListedCommand(
            "retention", "Erase sessions that were idle for long, or tell what would go."
        ),
        "index": ListedCommand("search", "Index all new messages for searches."),
        "verify": ListedCommand("maintenance", "Check the whole store for damage."),
        "health": ListedCommand(
            "maintenance", "Tell whether the store can be used now, for a probe."
        ),
        "doctor": ListedCommand("maintenance", "Look for risks to the store, and give advice."),
        "distribute": ListedCommand(
            "maintenance", "Divide the empty tables of a server, or list how they lie."
        ),
        "migrate": ListedCommand("maintenance", "Upgrade a store to the newest schema."),
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


class CommandGroup(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help in colours."""
        with allow_styles():
            super().format_help(ctx, formatter)


class LazyCommands(CommandGroup):
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
        return name, import_command(name) if name and listed else None, rest


@cache
def import_command(name: str) -> Any:
    """Return a command, or a group of commands, ready to be called."""
    module = next(listed[name].module for listed in COMMANDS.values() if name in listed)
    room = import_module(f"{__package__}.{module}")
    found = getattr(room, f"{name}_", None) or getattr(room, name)
    group = found if isinstance(found, typer.Typer) else _wrap_single_command(name, found)
    group.info.cls = CommandGroup
    for each in group.registered_commands:
        each.cls = Command
    return typer.main.get_command(group)


def _wrap_single_command(name: str, found: Any) -> typer.Typer:
    group = typer.Typer(add_completion=False)
    group.command(name)(found)
    return group
