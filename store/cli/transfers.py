"""The command that brings a store to another database: copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from .. import Store
from ..copying import Copied
from ..copying import copy as copy_store
from ..errors import InvalidValue
from ..inspection import is_write_protected
from ..text import format_count
from . import render, tables
from .options import Json, StorePlace

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
        done = _copy_with_bar(old, new, check=check)
    render.print_answer(done._asdict(), *_describe_copy(done, check=check), json=json)
    raise typer.Exit(int(bool(done.left or (check and done.same < done.trees))))


def _copy_with_bar(old: Store, new: Store, *, check: bool) -> Copied:
    """Copy with a progress bar; Ctrl-C tells how to go on."""
    reached = (0, 0)
    with tables.build_progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("comparing" if check else "copying", total=None)

        def tell(done: int, total: int) -> None:
            nonlocal reached
            reached = done, total
            bar.update(task, completed=done, total=total)

        try:
            return copy_store(old, new, tell, check=check)
        except KeyboardInterrupt:
            bar.stop()
            done, total = reached
            said = f"stopped after {done:,} of {total:,} sessions with their forks"
            render.print_problem(f"{said}; the same command goes on from there")
            raise


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
