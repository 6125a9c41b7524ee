"""Verification of a whole store: every difference from the stored data is a finding.

The whole store is read once, in one state of it. Everything that can be computed again is compared:
each message's SHA-256 with its rows, the seals of other rows with these rows, the facts of each
tool result with the raw rows of its line, the schema with that of a new store, positions and heads
with the log of moves. The rows are read in the order of their keys as a few parallel streams, so
any store fits in memory. Damage is a finding, never an error: an unreadable place is named, and
reading goes on with the next branch. A check that cannot run is a finding ``unchecked``, and the
other checks still run.

Titles, metadata and kinds of tools may change after they were written, so they are not compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from sqlalchemy import URL, Connection, text

from ..database import (
    SCHEMA_HEAD,
    Database,
    get_logger,
    is_write_protected,
    read_version,
    upgrade_schema,
    write_copy,
)
from ..errors import StoreError, check_progress
from ..history import check_ancestors
from ..records import Finding, ProgressCallback
from .checks import (
    OLDER,
    build_store_query,
    check_keys,
    check_kinds,
    check_schema,
    check_seals,
    check_structures,
    open_savepoint,
    parse_rules,
    report_unchecked_place,
)
from .line_checks import check_lines

_integrity_logger = get_logger(__name__)

StoreChecks: TypeAlias = tuple[tuple[str, Callable[[Connection], Iterable[Finding]]], ...]
"""Checks of a store with their names, in order; each yields its findings."""

MOST_FINDINGS = 1_000
"""Findings that are listed; a damaged index alone could give one for each row."""


def verify(connection: Connection, *, progress: ProgressCallback | None = None) -> list[Finding]:
    """Run all checks and return at most 1,000 findings.

    [] means a sound store. Nothing is changed. The call takes as long as reading every message
    once; a sample of the recorded requests is made again. ``progress`` gets the number of checks
    done so far, and of all. Messages that an earlier release did not protect are reported in the
    log.
    """
    return verify_store(connection, progress, ())


def verify_store(
    connection: Connection, progress: ProgressCallback | None, added: StoreChecks
) -> list[Finding]:
    """Run all checks, and those ``added`` by rooms that this one does not know."""
    check_progress(progress)
    damage = []
    for finding in examine_store(connection, progress, added):
        if finding.check == OLDER:
            _integrity_logger.info("%s: %s", finding.where, finding.problem)
        else:
            damage.append(finding)
    return damage


def examine_store(
    connection: Connection,
    progress: ProgressCallback | None = None,
    added: StoreChecks = (),
) -> list[Finding]:
    """Return all damage, and a finding `OLDER` for messages that earlier releases left open."""
    with _allow_damaged_text(connection):
        findings = _run_checks(connection, progress, (*CHECKS, *added))
        first = list(islice(findings, MOST_FINDINGS))
        if next(findings, None):
            more = f"there is more; only {MOST_FINDINGS:,} findings are listed"
            first.append(Finding("limit", "the store", more))
        return first


def _run_checks(
    connection: Connection, progress: ProgressCallback | None, checks: StoreChecks
) -> Iterator[Finding]:
    for number, (name, check) in enumerate(checks, 1):
        try:
            with open_savepoint(connection):
                yield from check(connection)
        except Exception as error:  # noqa: BLE001 - after any error the other checks run
            yield report_unchecked_place(f"check of {name}", error)
        if progress is not None:
            progress(number, len(checks))


@contextmanager
def _allow_damaged_text(connection: Connection) -> Iterator[None]:
    """Make damaged text of a file readable meanwhile, so that the checks can report it."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    driver.text_factory = lambda value: value.decode(errors="replace")
    try:
        yield
    finally:
        driver.text_factory = str


def check_rules(connection: Connection) -> Iterator[Finding]:
    """Yield the breaches of the rules between rows."""
    for rule in parse_rules():
        yield from rule.breaches(
            connection.execute(text(build_store_query(rule, connection.dialect.name)))
        )
    yield from check_ancestors(connection)


CHECKS: StoreChecks = (
    ("integrity", check_structures),
    ("schema", check_schema),
    ("rules", check_rules),
    ("seals", check_seals),
    ("keys", check_keys),
    ("kinds", check_kinds),
    ("lines", check_lines),
)
"""All checks in order; if damage stops one, it is reported and the next begins."""


@contextmanager
def open_for_reading(target: str | os.PathLike[str] | URL) -> Iterator[Connection]:
    """Open a store for one read, without an upgrade."""
    database = Database(target, read_only=is_write_protected(target))
    with closing(database), database.reading() as connection:
        yield connection


def check(
    target: str | os.PathLike[str] | URL,
    added: StoreChecks = (),
    progress: ProgressCallback | None = None,
) -> list[Finding]:
    """Return the findings in a store, as `Store.verify` does, without an upgrade of the store.

    ``added`` are more checks by name, such as `store.context.check_requests`. ``progress`` gets the
    number of checks done so far, and of all.

    An additional finding ``older`` names messages that an earlier release did not protect; it is no
    damage.

    In a file of an older release the structures are checked in place, and all else in a temporary
    copy, which is upgraded to the newest schema. Raises StoreError for a target that is no store,
    or cannot be read at all.
    """
    with closing(Database(target, read_only=is_write_protected(target))) as database:
        with database.reading() as connection:
            found = read_version(connection)
            if found == SCHEMA_HEAD:
                return examine_store(connection, progress, added)
            findings = list(check_structures(connection))
        if found is None or database.path is None:
            problem = f"the schema is {found}, it should be {SCHEMA_HEAD}"
            advice = "`convostore migrate` makes it so"
            return [*findings, Finding("schema", "alembic_version", f"{problem}; {advice}")]
        return findings or _check_upgraded_copy(database, added, progress)


def _check_upgraded_copy(
    database: Database, added: StoreChecks, progress: ProgressCallback | None
) -> list[Finding]:
    """Return the findings in a temporary copy with the newest schema."""
    with TemporaryDirectory(prefix="convostore-") as folder:
        try:
            copy = write_copy(database, Path(folder, "chat.db"))
            with closing(Database(copy)) as copied:
                upgrade_schema(copied, copy=False)
                with copied.reading() as connection:
                    return examine_store(connection, progress, added)
        except StoreError as error:
            return [Finding("schema", "the store", f"cannot be upgraded: {error}")]
