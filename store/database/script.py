"""The newest schema of a file as one script: a new store needs none of the steps that led there.

The revisions stay what decides: the script is what they make of an empty file, and a test compares
the two. One that stands at another revision is not used.
"""

from __future__ import annotations

from sqlalchemy import Connection

from .resources import find_folder

NAME = "schema.sql"
HEADING = "-- schema {}\n"
"""How the script begins that makes a revision."""
BETWEEN = "\n\n"
"""What stands before each statement, and in none."""


def statements(revision: str) -> list[str]:
    """Return the statements that make a revision of the schema in an empty file.

    None at all where the script makes another one.
    """
    path = find_folder("migrations") / NAME
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not text.startswith(HEADING.format(revision)):
        return []
    _, *made = text.split(BETWEEN)
    return made


def make(connection: Connection, script: list[str]) -> None:
    """Run a script in the transaction of a connection."""
    for statement in script:
        connection.exec_driver_sql(statement)
