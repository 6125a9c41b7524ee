"""The newest schema of a file as one script: a new store needs none of the steps that led there.

The revisions remain authoritative: the script gives the same schema as the revisions in an empty
file, and a test compares the two. A script of another revision is not used.
"""

from __future__ import annotations

from sqlalchemy import Connection

from .resources import find_folder

SCRIPT_NAME = "schema.sql"
SCRIPT_HEADING = "-- schema {}\n"
"""The first line of the script of a revision."""
STATEMENT_SEPARATOR = "\n\n"
"""The separator before each statement, which no statement contains."""


def read_statements(revision: str) -> list[str]:
    """Return the statements that make a revision of the schema in an empty file.

    The list is empty if the script makes another revision.
    """
    path = find_folder("migrations") / SCRIPT_NAME
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not text.startswith(SCRIPT_HEADING.format(revision)):
        return []
    _, *made = text.split(STATEMENT_SEPARATOR)
    return made


def run_script(connection: Connection, script: list[str]) -> None:
    """Run a script in the transaction of a connection."""
    for statement in script:
        connection.exec_driver_sql(statement)
