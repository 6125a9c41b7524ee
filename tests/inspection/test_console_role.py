"""The console on a server: what the role may do, and the docs' recipe for one that only reads."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy
from conftest import ROOT, Run

from store import Store, inspection
from store.errors import QueryRefused

pytestmark = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"),
    reason="no server: set CONVOSTORE_TEST_URL to the URL of one",
)

SAID = "may change this store"


def recipe() -> list[str]:
    """Return the statements that the docs give."""
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    (block,) = re.findall(r"<!-- reader -->\n```postgresql\n(.*?)```", page, re.DOTALL)
    return [line.partition(";")[0] for line in block.splitlines()]


def run_as_owner(url: str, statements: list[str]) -> None:
    """Run statements one by one."""
    engine = sqlalchemy.create_engine(
        url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )
    with closing(engine.connect()) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.fixture
def reader(url: str) -> Iterator[str]:
    """Give the URL of the same store for a role made by the recipe."""
    with Store(url) as store:
        store.create_session("s", title="of a session")
    parts, name = sqlalchemy.make_url(url), f"reader_{uuid.uuid4().hex}"
    assert parts.database
    made = [re.sub(r"\breader\b", name, each) for each in recipe()]
    made = [re.sub(r"\bchat\b", parts.database, each) for each in made]
    run_as_owner(url, made)
    own = parts.set(username=name, password="choose-one")
    yield own.render_as_string(hide_password=False)
    run_as_owner(url, [f"DROP OWNED BY {name}", f"DROP ROLE {name}"])


def test_a_role_that_can_write_is_told_of(url: str, run: Run) -> None:
    """On standard error, beside the answer, whatever the format."""
    with Store(url) as store:
        store.create_session("s")
    role = sqlalchemy.make_url(url).username
    assert inspection.writing_role(url) == role
    for options in ((), ("--json",)):
        done = run("--db", url, "sql", "SELECT id FROM sessions", *options)
        assert done.status == 0
        assert SAID in done.err
        assert f"'{role}'" in done.err
        assert SAID not in done.out


def test_a_role_of_the_recipe_reads_and_is_not_told_of(reader: str, run: Run) -> None:
    """It sees the tables and the views for people, and opens nothing to be upgraded."""
    assert inspection.writing_role(reader) is None
    done = run("--db", reader, "sql", "SELECT title FROM sessions")
    assert (done.status, SAID in done.err) == (0, False)
    assert "of a session" in done.out
    assert "session_messages" in inspection.views(reader)


def test_a_role_of_the_recipe_reads_tables_of_later_releases(url: str, reader: str) -> None:
    """Made by the same owner."""
    run_as_owner(url, ["CREATE TABLE later AS SELECT 1 AS one"])
    assert inspection.query(reader, "SELECT one FROM later").rows == [(1,)]


HARM = (
    "UPDATE sessions SET title = ''",
    "DELETE FROM messages",
    "CREATE TABLE mine (a int)",
    "CREATE TEMPORARY TABLE mine (a int)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_reload_conf()",
)


def test_a_role_of_the_recipe_can_do_no_harm(reader: str) -> None:
    """Not past the console either, where no transaction is read-only."""
    psycopg: Any = pytest.importorskip("psycopg")
    denied = psycopg.errors.InsufficientPrivilege
    with psycopg.connect(reader.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in HARM:
            with pytest.raises(denied):
                connection.execute(statement)
    for statement in HARM[-3:]:
        with pytest.raises(QueryRefused, match="the role is not allowed to"):
            inspection.query(reader, statement)
