"""Commands that keep a store alive: backup, restore, purge, verify, doctor, migrate."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from .. import inspection
from ..context import check_requests
from ..errors import InvalidValue, StoreError
from ..inspection import MAX_PURGE_SECONDS, SCHEMA_HEAD, Database, Upgrade, upgrade_schema
from ..records import Health
from ..tools import TOOL_KINDS
from . import render
from .options import Json, announce_store, get_place, open_existing_store, open_store, require_new
from .terminal import Column

DOCTOR_STATUSES = {"fine": 0, "advice": 1, "unusable": 2}
"""The exit status of `doctor` for each state; the worst one counts."""
CONDITION_COLUMNS = (
    Column("about"),
    Column("state"),
    Column("found", wide=True),
    Column("advice", wide=True),
)

VERIFY_ADVICE = "nothing was changed; the same command begins anew"
PURGE_ADVICE = "the file is whole; the same command goes on"

BackupTarget = Annotated[Path, typer.Argument(metavar="PATH", help="The new file.")]
BackupSource = Annotated[Path, typer.Argument(metavar="COPY", help="A copy that `backup` made.")]
ReplaceBackup = Annotated[
    bool, typer.Option("--force", help="Replace an earlier copy with that name.")
]
ReplaceStore = Annotated[
    bool, typer.Option("--force", help="Replace the existing store, which is lost.")
]
PurgeBackups = Annotated[
    bool, typer.Option("--backups", help="Also remove the copies that may contain erased messages.")
]
IdleOnly = Annotated[
    bool, typer.Option("--idle", help="Only if nobody else is reading or writing.")
]
LongestWait = Annotated[
    float,
    typer.Option(
        "--longest", metavar="SECONDS", min=0, help="The maximum time for which writers wait."
    ),
]
MigrationCopy = Annotated[
    Path | None,
    typer.Option(
        "--copy", metavar="PATH", help="Copy the store to this file before it is changed."
    ),
]

Partitions = Annotated[
    int | None,
    typer.Option("--partitions", metavar="N", help="Hash partitions for each table of trees."),
]
OverCitus = Annotated[bool, typer.Option("--citus", help="Distribute over the nodes of Citus.")]
CheckParts = Annotated[bool, typer.Option("--check", help="List how each table lies.")]
PARTS_COLUMNS = (Column("table"), Column("kind"), Column("by"), Column("parts"))

FINDING_COLUMNS = (
    Column("check"),
    Column("where", wide=True),
    Column("problem", wide=True),
)


def backup(
    ctx: typer.Context,
    path: BackupTarget,
    force: ReplaceBackup = False,
    json: Json = False,
) -> None:
    """Copy a store while it is in use, and check the copy."""
    get_place(ctx).require()
    require_new(path, replace=force)
    with closing(Database(get_place(ctx).target)) as database:
        made = inspection.backup(database, path, replace=force)
    announce_store(ctx)
    render.print_answer(made._asdict(), f"{made.path}: {made.size:,} bytes, checked", json=json)
    if made.number is None:
        render.print_problem("the store could not list this copy: remove it yourself after erasing")


def restore(
    ctx: typer.Context,
    copy: BackupSource,
    force: ReplaceStore = False,
    json: Json = False,
) -> None:
    """Check a copy, then replace the store by it."""
    if not copy.exists():
        raise StoreError(f"there is no file {str(copy)!r}")
    require_new(get_place(ctx).file, replace=force)
    get_place(ctx).make_room()
    done = inspection.restore(copy, get_place(ctx).target, replace=force)
    announce_store(ctx)
    said = f"{done.path} is the store of {copy} now, of schema {done.schema}"
    back = (
        f"session {each} was erased since, and is back: delete it again" for each in done.erased
    )
    said_again = (
        f"message {seq} of session {each} was redacted since, and is back: redact it again"
        for each, seq in done.redacted
    )
    render.print_answer(done._asdict(), said, *back, *said_again, json=json)


def purge(
    ctx: typer.Context,
    backups: PurgeBackups = False,
    idle: IdleOnly = False,
    longest: LongestWait = MAX_PURGE_SECONDS,
    json: Json = False,
) -> None:
    """Rewrite the file without any byte of erased messages.

    One purge is enough for all erasures.
    """
    drawn = render.show_progress("purging", "steps", PURGE_ADVICE)
    with open_existing_store(ctx) as store, drawn as tell:
        done = store.purge(backups=backups, idle=idle, longest=longest, progress=tell)
    said = "the file holds nothing any more of what was erased" if done else "nothing was purged"
    copies = (f"{each}: removed" for each in done.removed)
    left = (f"{each}: left, it has changed or is out of reach" for each in done.left)
    render.print_answer(done._asdict(), said, *copies, *left, json=json)
    if done.problem:
        raise StoreError(done.problem)


def health(ctx: typer.Context, json: Json = False) -> None:
    """Tell whether the store can be used now, for a probe.

    The exit status is 1 if it cannot, or is of an older schema.
    """
    try:
        with open_existing_store(ctx, read_only=True) as store:  # otherwise it would be upgraded
            found = store.health()
        # It was opened to be read only: if it cannot be written, a problem says so.
        found = found._replace(writable=not found.problems)
    except StoreError as error:
        announce_store(ctx)
        found = Health(problems=(str(error),))
    said = "the store can be read and written" if found else "the store is not well"
    render.print_answer(found._asdict(), said, *found.problems, json=json)
    raise typer.Exit(int(not found))


def doctor(ctx: typer.Context, json: Json = False) -> None:
    """Look for risks to the store, and give advice.

    The exit status is 1 with advice, 2 if the store is unusable.
    """
    found = inspection.doctor(get_place(ctx).target)
    if json:
        render.print_json_list(each._asdict() for each in found)
    else:
        render.show_table(CONDITION_COLUMNS, found)
    announce_store(ctx)
    raise typer.Exit(max(DOCTOR_STATUSES[each.state] for each in found))


def distribute(
    ctx: typer.Context,
    partitions: Partitions = None,
    citus: OverCitus = False,
    check: CheckParts = False,
    json: Json = False,
) -> None:
    """Divide the empty tables of a server, or list how they lie.

    The store is made if there is none. One in use is refused unharmed.
    """
    if (partitions is not None) + citus + check != 1:
        raise InvalidValue("distribute takes one of --partitions N, --citus and --check")
    if get_place(ctx).file:
        raise InvalidValue("only the tables of a server are divided; a file is on one machine")
    with open_store(ctx), closing(Database(get_place(ctx).target)) as database:
        if check:
            found = inspection.list_table_parts(database)
        else:
            found = inspection.divide_tables(database, partitions)
    if json:
        render.print_json_list(each._asdict() for each in found)
    else:
        render.show_table(PARTS_COLUMNS, found)


def migrate(ctx: typer.Context, copy: MigrationCopy = None, json: Json = False) -> None:
    """Upgrade a store to the newest schema.

    Most other commands upgrade it too, and say so.
    """
    get_place(ctx).require()
    with closing(Database(get_place(ctx).target)) as database:
        done = upgrade_schema(database, copy_to=copy, kinds=TOOL_KINDS)
    announce_store(ctx)
    answer = {"from": done.found, "to": SCHEMA_HEAD, "copy": done.copy}
    render.print_answer(answer, _describe_upgrade(done), json=json)
    if copy and not done.copy:
        render.print_problem(
            f"nothing is changed, so nothing is copied; `convostore backup {copy}` copies"
        )


def _describe_upgrade(done: Upgrade) -> str:
    if done.found == SCHEMA_HEAD:
        return f"schema {SCHEMA_HEAD} already: the newest"
    return done.told or f"schema (empty) → {SCHEMA_HEAD}"


def verify(ctx: typer.Context, json: Json = False) -> None:
    """Check the whole store for damage.

    The exit status is 1 if any is found.
    """
    get_place(ctx).require()
    added = (("requests", check_requests),)
    with render.show_progress("checking", "checks", VERIFY_ADVICE) as tell:
        found = inspection.check(get_place(ctx).target, added, tell)
    wrong = [each for each in found if each.check != inspection.OLDER]
    announce_store(ctx)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif wrong:
        render.show_table(FINDING_COLUMNS, wrong)
    else:
        render.print_lines("nothing is wrong")
    for each in found:
        if each not in wrong:
            render.print_remark(f"{each.where}: {each.problem}")
    raise typer.Exit(int(bool(wrong)))
