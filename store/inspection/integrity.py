"""Whether everything is still as it was stored.

Reads the whole store once, in one state of it, and says what is not as it was. Nothing is trusted
that can be worked out again: each message's SHA-256 from its rows, the seals of other rows from
theirs, the facts of each tool result from the raw rows of its line, the schema from a store made
anew, positions and heads from the log of moves. The rows are read in the order of their keys as a
few streams side by side, so any store fits in memory. Damage is an answer here, never an error:
what cannot be read is named, and reading goes on with the next branch. So does a check that cannot
run: it is a finding `unchecked`, and the others are made.

Nothing can be told about what may change after it was written: titles, metadata, kinds of tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sqlalchemy import Connection, text

from ..database import logger
from ..records import Finding
from .invariants import parsed_rules
from .key_check import check_keys
from .line_check import OLDER, check_lines, resumable, unchecked
from .schema_check import check_schema
from .seal_check import check_seals
from .structures import structures

_log = logger(__name__)

LIMIT = 1_000
"""Findings that are listed; a damaged index alone could give one for each row."""


def verify(connection: Connection) -> list[Finding]:
    """Check everything that can be checked and return what is wrong, at most 1,000 findings.

    [] means that all is well. Changes nothing. Takes as long as reading every message once. What an
    earlier release did not hold fast is told in the log.
    """
    damage = []
    for finding in examine(connection):
        if finding.check == OLDER:
            _log.info("%s: %s", finding.where, finding.problem)
        else:
            damage.append(finding)
    return damage


def examine(connection: Connection) -> list[Finding]:
    """Return what is wrong, and what an earlier release did not hold fast, a finding `OLDER`."""
    findings = _findings(connection)
    if connection.dialect.name != "sqlite":
        return _listed(findings)
    with _damaged_text(connection):
        return _listed(findings)


def _findings(connection: Connection) -> Iterator[Finding]:
    for name, check in CHECKS:
        try:
            with resumable(connection):
                yield from check(connection)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other checks run
            yield unchecked(f"check of {name}", error)


@contextmanager
def _damaged_text(connection: Connection) -> Iterator[None]:
    """Let damaged text be read meanwhile, so that it is found wrong."""
    driver: Any = connection.connection.driver_connection
    driver.text_factory = _mended
    try:
        yield
    finally:
        driver.text_factory = str


def _mended(value: bytes) -> str:
    return value.decode(errors="replace")


def _listed(findings: Iterator[Finding]) -> list[Finding]:
    listed = list(islice(findings, LIMIT))
    if next(findings, None):
        more = f"there is more; only {LIMIT:,} findings are listed"
        listed.append(Finding("limit", "the store", more))
    return listed


def _check_rules(connection: Connection) -> Iterator[Finding]:
    for rule in parsed_rules():
        yield from rule.breaches(connection.execute(text(rule.query)))


CHECKS = (
    ("integrity", structures),
    ("schema", check_schema),
    ("rules", _check_rules),
    ("seals", check_seals),
    ("keys", check_keys),
    ("lines", check_lines),
)
"""All that is checked, in this order; what cannot be read in one is told, and the next begins."""
