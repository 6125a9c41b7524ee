"""The command that brings a store to another database: copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from .. import Store
from ..copying import Copied
from ..copying import copy as copy_store
from ..errors import InvalidValue
from ..inspection import is_write_protected
from ..text import format_count
from . import render
from .options import Json, StorePlace

GOES_ON = "the same command goes on from there"

SourceStore = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The store to copy: a file or a URL.")
]
TargetStore = Annotated[
    str, typer.Argument(metavar="TARGET", help="The other one: a file or a URL, maybe new.")
]
CompareOnly = Annotated[
    bool, typer.Option("--check", help="Compare all rows of both stores, and write nothing.")
]


def copy(
    ctx: typer.Context,
    source: SourceStore,
    target: TargetStore,
    check: CompareOnly = False,
    json: Json = False,
) -> None:
    """Copy a store to a file or a server while it is in use.

    Stopped or run again, it copies only what the target lacks. The exit status is 1 if something
    was left, with --check if something differs.
    """
    if ctx.find_root().params.get("db") is not None:
        raise InvalidValue("copy names both of its stores; leave --db out")
    StorePlace(source).require()
    if check:
        StorePlace(target).require()
    with Store(source, read_only=is_write_protected(source)) as old, Store(target) as new:
        title = "comparing" if check else "copying"
        with render.show_progress(title, "sessions with their forks", GOES_ON) as tell:
            done = copy_store(old, new, tell, check=check)
    render.print_answer(done._asdict(), *_describe_copy(done, check=check), json=json)
    raise typer.Exit(int(bool(done.left or (check and done.same < done.trees))))


def _describe_copy(done: Copied, *, check: bool) -> Iterable[str]:
    """Yield the lines that tell of a copy."""
    brought = ("lacking", "older") if check else ("copied", "brought up to date")
    yield (
        f"{format_count(done.trees, 'session')} with forks: {done.new:,} {brought[0]},"
        f" {done.grown:,} {brought[1]}, {done.same:,} the same"
    )
    for each in done.left:
        names = ", ".join(each.session_ids) or "a session that was deleted"
        yield f"left: {names}: {each.reason}"
    for session_id in done.deleted:
        yield f"deleted from the source, still in the target: {session_id}"
