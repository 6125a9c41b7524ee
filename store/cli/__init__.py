"""The command ``convostore``: a thin layer over the store, and the only room that uses a terminal.

Commands are plain functions in the modules of this room, named in one table; a module is imported
when one of its commands is called. Errors of the store become one line on standard error and exit
status 2. Nothing in the package may import this room.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from ..errors import StoreError, describe_read_error
from ..policy import FIELD_PROBLEMS
from ..release import find_release
from . import render
from .commands import LazyCommands
from .options import STORE_VARIABLE, choose_place
from .terminal import allow_styles, escape_output

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["main"]

OK, FAILED, INTERRUPTED, BROKEN_PIPE = 0, 2, 130, 141

app = typer.Typer(
    cls=LazyCommands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH_OR_URL",
        help="The store: a file, or an SQLAlchemy URL.",
        show_default=f"${STORE_VARIABLE}; ./convostore.db if it is there; one of your own",
    ),
]
Version = Annotated[bool, typer.Option("--version", help="Print the version and exit.")]


@app.callback(invoke_without_command=True)
def convostore(
    ctx: typer.Context,
    db: Db = None,
    show_version: Version = False,
) -> None:
    """Keep every message of a conversation unchanged, and compute the view for the model."""
    ctx.obj = choose_place(db)
    if show_version:
        render.print_lines(f"convostore {find_release() or '(not installed)'}")
    elif ctx.invoked_subcommand is None:
        with allow_styles():
            sys.stdout.write(ctx.get_help())  # prints by itself if rich draws it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Return its exit status: 0, 1 for findings, 2 for an error, 130 for Ctrl-C, 141 if nobody reads
    the output any more.
    """
    sys.stdin = sys.stdin or _open_null_stream("r")
    sys.stdout = sys.stdout or _open_null_stream("w")
    sys.stderr = sys.stderr or _open_null_stream("w")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with escape_output():
            status = _run_command(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def _open_null_stream(mode: str) -> TextIO:
    return cast(TextIO, open(os.devnull, mode, encoding="utf-8"))


def _run_command(arguments: list[str]) -> int:
    try:
        return (
            app(_move_db_option_first(arguments), prog_name="convostore", standalone_mode=False)
            or OK
        )
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as ended:
        if ended.code == 1:  # typer's word for a pipe that nobody reads
            raise BrokenPipeError from ended
        raise
    except BrokenPipeError:
        raise
    except typer.TyperException as error:
        render.print_problem(
            f"{_describe_misuse(error)} (`{_find_failed_command(error)} --help` tells more)"
        )
    except StoreError as error:
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()) if note)
        render.print_problem(f"{error}{where}")
    except OSError as error:
        render.print_problem(_describe_system_error(error))
    return FAILED


def _describe_misuse(error: typer.TyperException) -> str:
    """Return the problem of a command line."""
    from pydantic import ValidationError  # listing the commands does without

    cause, option = error.__cause__, getattr(error, "param", None)
    if option is None or not isinstance(cause, ValidationError):
        return error.format_message()
    return f"{_render_parameter_name(option)} {_describe_validation_problem(cause)}"


def _render_parameter_name(option: Any) -> str:
    """Return an option or an argument as written in the help."""
    if option.param_type_name == "argument":
        return str(option.metavar or option.name.upper())
    return str(max(option.opts, key=len))


def _describe_validation_problem(problem: ValidationError) -> str:
    """Return the expected kind of a value, and the given value."""
    found = problem.errors()[0]
    if found["type"] == "value_error":
        return f"does not fit: {found['ctx']['error']}".rstrip(".")
    right = FIELD_PROBLEMS.get(found["type"], "is something else")
    limits = found.get("ctx", {})
    return f"{right.format(**limits)}, not {found['input']!r:.80}"


def _find_failed_command(error: typer.TyperException) -> str:
    """Return the command that an error is about."""
    ctx = getattr(error, "ctx", None)
    return ctx.command_path if ctx else "convostore"


def _describe_system_error(error: OSError) -> str:
    """Return the refusal of the system, and its file."""
    if error.filename is None or error.strerror is None:
        return describe_read_error(error)
    return f"{os.fspath(error.filename)!r}: {error.strerror}"


def _move_db_option_first(arguments: list[str]) -> list[str]:
    """Return the arguments with --db before the command, wherever it stood: there it is read."""
    first: list[str] = []
    others: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*first, *others, argument, *rest]
        if argument == "--db":
            value = next(rest, None)
            if value is None:
                return [argument]  # the command alone says what it lacks
            first.extend([argument, value])
        elif argument.startswith("--db="):
            first.append(argument)
        else:
            others.append(argument)
    return [*first, *others]
