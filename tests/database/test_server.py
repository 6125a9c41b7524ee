"""What only a server can do to a store: keep a writer waiting, and break connections."""

from __future__ import annotations

import os
import re
import socketserver
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from conftest import ROOT

from store import Store
from store.database import Statement
from store.errors import (
    ConnectionLost,
    InvalidValue,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreFull,
    Unavailable,
)
from store.history.append import append_messages
from tests import wheel_server

on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)

CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def said(content: object, **keys: object) -> dict[str, object]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def connected(url: str) -> Any:
    """Return a connection of the driver itself."""
    psycopg = pytest.importorskip("psycopg")
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


@pytest.fixture
def psql(url: str) -> Iterator[Any]:
    """Give a connection that knows nothing of the store."""
    with closing(connected(url)) as connection:
        yield connection


@on_server
def test_a_writer_waits_to_its_deadline(url: str, psql: Any) -> None:
    """Behind a row that another holds it gets StoreBusy, and nothing was written."""
    with Store(url, timeout=0.5) as store:
        store.create_session("s")
        with psql.transaction():
            psql.execute("SELECT * FROM sessions FOR UPDATE")
            begun = time.monotonic()
            with pytest.raises(StoreBusy, match="until the deadline"):
                store.append("s", said("too early"))
            assert 0.4 < time.monotonic() - begun < 30
        assert store.append("s", said("after"))[0].seq == 1


@on_server
def test_nothing_is_kept_of_a_server_that_was_lost(url: str, psql: Any) -> None:
    """Another may take its place, and have less: the numbers of what it lacks come again."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", said("kept"))
        store.view("s")
        assert store.cache_info().entries > 0
        psql.execute(CUT_OFF)
        assert store.session("s").head == 1
        assert store.cache_info().entries == 0


@on_server
def test_who_may_not_wait_at_all_does_not(url: str, psql: Any) -> None:
    """No time at all is not what a server takes 0 for, which is for ever."""
    held = threading.Event()

    def hold() -> None:
        with psql.transaction():
            psql.execute("SELECT * FROM sessions FOR UPDATE")
            held.set()
            time.sleep(2)

    with Store(url, timeout=0) as store:
        store.create_session("s")
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        with pytest.raises(StoreBusy):
            store.append("s", said("too early"))
        thread.join()


@on_server
def test_a_reader_waits_to_its_deadline(url: str, psql: Any) -> None:
    """Behind a table that another changes it gets StoreBusy."""
    with Store(url, timeout=0.5) as store:
        store.create_session("s")
        with psql.transaction():
            psql.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreBusy):
                store.session("s")
        assert store.session("s").head == 0


@on_server
@pytest.mark.slow
def test_the_deadline_is_one_for_all_locks_of_a_transaction(url: str, psql: Any) -> None:
    """What was waited for the first lock is not waited again for the second."""
    held = threading.Event()

    def hold() -> None:
        with psql.transaction():
            psql.execute("SELECT * FROM sessions FOR UPDATE")
            held.set()
            time.sleep(5)

    with Store(url, timeout=6) as store, closing(connected(url)) as other:
        store.create_session("s")
        other.autocommit = False
        other.execute("LOCK TABLE messages IN EXCLUSIVE MODE")
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        begun = time.monotonic()
        with pytest.raises(StoreBusy):
            store.append("s", said("too early"))
        assert 5 < time.monotonic() - begun < 10  # not 5 s and 6 more
        thread.join()


@on_server
def test_a_server_that_fell_silent_is_given_up(url: str, psql: Any) -> None:
    """Of every connection the driver is told how long it may take, and what asks if one lives."""
    with Store(url, timeout=7) as store, store.database.reading() as connection:
        driver: Any = connection.connection.driver_connection
        told = driver.info.get_parameters()
    assert told["connect_timeout"] == "7"
    assert int(told["keepalives_idle"]) + int(told["keepalives_interval"]) * 3 == 60
    assert told["keepalives_count"] == "3"


@on_server
@pytest.mark.parametrize(("durability", "level"), [("full", "on"), ("normal", "off")])
def test_what_each_connection_is_told(url: str, durability: Any, level: str) -> None:
    """How commits reach the disk, and how long one lock is waited for."""
    with (
        Store(url, timeout=7, durability=durability) as store,
        store.database.reading() as connection,
    ):
        shown = [
            connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("synchronous_commit", "lock_timeout", "transaction_isolation")
        ]
    assert shown == [level, "7s", "repeatable read"]


@on_server
def test_after_a_lost_connection_reading_goes_on(url: str, psql: Any) -> None:
    """However many idle connections broke, no reader notices."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", said("kept"))
        threads = [threading.Thread(target=store.messages, args=["s"]) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        psql.execute(CUT_OFF)
        for _ in range(4):
            assert [each.message["content"] for each in store.messages("s")] == ["kept"]


@on_server
def test_after_a_lost_connection_one_write_is_told(url: str, psql: Any) -> None:
    """The write that finds it broken says that nothing was written; the next one is as ever."""
    with Store(url) as store:
        store.create_session("s")
        psql.execute(CUT_OFF)
        with pytest.raises(ConnectionLost, match="nothing was written"):
            store.append("s", said("lost"))
        assert store.append("s", said("after"))[0].seq == 1


@on_server
def test_a_commit_of_unknown_outcome_can_be_repeated(url: str, psql: Any) -> None:
    """Where the connection breaks in the commit, the error says so, and how to go on."""
    with Store(url) as store:
        store.create_session("s")

        def cut_off() -> None:
            with store.database.writing() as connection:
                append_messages(connection, "s", said("once", id="m"), now=1)
                psql.execute(CUT_OFF)

        with pytest.raises(ConnectionLost, match="nobody knows"):
            cut_off()
        store.append("s", said("once", id="m"))
        assert store.append("s", said("once", id="m"))[0].seq == 1
        assert store.session("s").head == 1


LOSING = """
import sys
from store import Store, StoreError
with Store(sys.argv[1]) as store:
    store.create_session("s")
    print("ready", flush=True)
    input()
    try:
        store.append("s", {"role": "user", "content": "x"})
    except StoreError:
        print("told")
"""


@on_server
def test_a_lost_connection_leaves_no_traceback(url: str, psql: Any) -> None:
    """A host that set up no logging finds nothing on its error output."""
    with subprocess.Popen(
        [sys.executable, "-c", LOSING, url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        psql.execute(CUT_OFF)
        assert process.communicate("\n") == ("told\n", "")


def test_a_url_with_a_port_that_is_no_number_is_refused() -> None:
    """The error is the store's own."""
    with pytest.raises(InvalidValue, match="not a database URL"):
        Store("postgresql://user@host:port/name")


# --- which error it is ----------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_unavailable() -> None:
    """The same call may be made again: nothing was written."""
    pytest.importorskip("psycopg")
    with pytest.raises(Unavailable, match="nothing was written") as caught:
        Store("postgresql://nobody@127.0.0.1:1/nothing", timeout=1)
    assert (caught.value.status, caught.value.retry) == (503, True)


@on_server
def test_a_database_or_role_that_is_not_there_is_not_unavailable(url: str) -> None:
    """Asking again would not help."""
    named = sqlalchemy.make_url(url)
    for wrong in (named.set(database="no_such_base"), named.set(username="no_such_role")):
        with pytest.raises(StoreError) as caught:
            Store(wrong)
        assert caught.value.retry is False


class AskingForPassword(socketserver.BaseRequestHandler):
    """A server that answers whoever comes by asking for a password in clear text."""

    def handle(self) -> None:
        """Read what a client begins with, ask, and wait until it leaves."""
        self.request.recv(4096)
        self.request.sendall(b"R" + struct.pack("!ii", 8, 3))
        self.request.recv(4096)


def test_a_password_that_is_lacking_is_not_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking again would not help."""
    pytest.importorskip("psycopg")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), AskingForPassword) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"postgresql://ann@127.0.0.1:{server.server_address[1]}/chat"
        with pytest.raises(StoreError, match="no password supplied") as caught:
            Store(f"{address}?sslmode=disable&gssencmode=disable")
        server.shutdown()
    assert caught.value.retry is False


@on_server
def test_a_server_without_connections_left_is_unavailable(url: str, psql: Any) -> None:
    """An open store says so, and goes on as soon as there is one again."""
    name = sqlalchemy.make_url(url).database
    role = f"crowd_{name}"[:63]
    psql.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    crowd = sqlalchemy.make_url(url).set(username=role)
    with pytest.raises(Unavailable, match="too many connections"):
        Store(crowd)
    with Store(url) as store:
        store.create_session("s")
        psql.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
        psql.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        with pytest.raises(Unavailable):
            Store(crowd)
        psql.execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1")
        assert store.session("s").head == 0
    psql.execute(f"DROP ROLE {role}")


@pytest.mark.slow
def test_a_server_that_is_stopped_and_started_again(tmp_path: Path) -> None:
    """A write is told of the lost connection, later calls that there is no server; then all is as
    before.
    """
    if wheel_server.lacking():
        pytest.skip(wheel_server.lacking() or "")
    with wheel_server.started() as server, Store(server.url, timeout=2) as store:
        store.create_session("s")
        store.append("s", said("kept"))
        server.stop()
        with pytest.raises(ConnectionLost) as lost:
            store.append("s", said("never"))
        assert (lost.value.status, lost.value.retry) == (503, False)
        with pytest.raises(Unavailable):
            store.append("s", said("never"))
        with pytest.raises(Unavailable):
            store.messages("s")
        server.start()
        assert store.append("s", said("after"))[0].seq == 2
        assert store.verify() == []


@on_server
def test_a_connection_that_is_ended_in_a_transaction_is_lost(url: str, psql: Any) -> None:
    """In a step it is told as it is at the end of an operation; nothing of it was written."""
    with Store(url) as store:
        store.create_session("s")

        def work(steps: Any) -> None:
            steps.append("s", said("one"))
            psql.execute(CUT_OFF)
            with pytest.raises(ConnectionLost, match="nothing was written"):
                steps.append("s", said("two"))
            raise KeyError

        with pytest.raises(KeyError):
            store.atomically(work)

        def write() -> None:
            with store.database.writing() as connection:
                append_messages(connection, "s", said("never"), now=1)
                psql.execute(CUT_OFF)
                append_messages(connection, "s", said("never"), now=1)

        with pytest.raises(ConnectionLost) as caught:
            write()
        assert caught.value.retry is False
        assert store.messages("s") == []


@on_server
@pytest.mark.parametrize(
    ("state", "in_commit", "kind"),
    [
        ("08006", False, ConnectionLost),
        ("08P01", False, ConnectionLost),
        ("40003", False, ConnectionLost),
        ("57P01", False, ConnectionLost),
        ("57P02", False, ConnectionLost),
        ("57P05", False, ConnectionLost),
        ("XX000", True, ConnectionLost),
        ("XX000", False, StoreError),
        ("25006", False, ReadOnly),
        ("0A000", False, ReadOnly),
        ("55P03", False, StoreBusy),
        ("53100", False, StoreFull),
    ],
)
def test_what_a_server_reports(
    url: str, psql: Any, state: str, in_commit: bool, kind: type[StoreError]
) -> None:
    """A trigger raises the state, at once or when the transaction commits."""
    psql.execute(
        f"""CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not during recovery' USING ERRCODE = '{state}'; END $$"""
    )
    late = "CONSTRAINT TRIGGER failing AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED"
    soon = "TRIGGER failing BEFORE INSERT ON messages"
    psql.execute(f"CREATE {late if in_commit else soon} FOR EACH ROW EXECUTE FUNCTION fail()")
    with Store(url) as store:
        store.create_session("s")
        with pytest.raises(kind) as caught:
            store.append("s", said("never"))
        assert type(caught.value) is kind
        assert "nobody knows" in str(caught.value) or not in_commit
        psql.execute("DROP TRIGGER failing ON messages")
        assert store.append("s", said("after"))[0].seq == 1


@on_server
def test_a_server_that_takes_no_writes_can_be_read(url: str, psql: Any) -> None:
    """Writes are refused as read-only, and nothing was written."""
    name = sqlalchemy.make_url(url).database
    with Store(url) as store:
        store.create_session("s")
        store.append("s", said("kept"))
    psql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with Store(url) as store:
        assert len(store.messages("s")) == 1
        with pytest.raises(ReadOnly, match="nothing was written") as caught:
            store.append("s", said("never"))
        assert (caught.value.status, caught.value.retry) == (403, False)
    psql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")


LIMITS = """SELECT CAST(setting AS int), source, current_setting('citus.propagate_set_commands')
FROM pg_settings WHERE name = 'lock_timeout'"""


@on_server
@pytest.mark.parametrize("pooler", [False, True])
def test_a_writer_tells_the_nodes_of_citus_how_long_it_waits(
    url: str, psql: Any, pooler: bool
) -> None:
    """They do not know the settings of a connection: each transaction has its limit."""
    limits = Statement(sqlalchemy.text(LIMITS))
    for source in ("session" if pooler else "client", "session"):
        with Store(url, timeout=10, pooler=pooler) as store, store.database.writing() as connection:
            limit, *told = limits.one(connection)
        assert 9_000 < limit <= 10_000
        assert told == [source, "local"]
        psql.execute("CREATE TABLE IF NOT EXISTS pg_dist_node (groupid int)")


@on_server
def test_no_guard_asks_for_the_name_of_its_table(url: str, psql: Any) -> None:
    """A partition, or a part on another machine, has another one."""
    Store(url).close()
    sources = [
        row[0]
        for row in psql.execute("SELECT prosrc FROM pg_proc WHERE prorettype = 'trigger'::regtype")
    ]
    guards = [each for each in sources if "never change" in each]
    assert len(guards) >= 2
    assert [each for each in guards if re.search(r"TG_TABLE_NAME\s*(=|LIKE|IN)", each)] == []


@on_server
def test_no_view_walks_up_a_tree(url: str, psql: Any) -> None:
    """A cluster refuses a recursion over many trees, and a server does not plan it well."""
    Store(url).close()
    views = psql.execute(
        "SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema()"
    ).fetchall()
    assert len(views) >= 10
    assert [name for name, definition in views if "RECURSIVE" in definition.upper()] == []


@on_server
@pytest.mark.slow
def test_the_row_of_a_session_is_updated_in_its_page(url: str, psql: Any) -> None:
    """No append changes a column of an index; each second does, once.

    So the server writes no new entries of indexes, and takes the room of old rows again.
    """
    with Store(url, durability="normal") as store:
        for name in map(str, range(20)):
            store.create_session(name)
            for number in range(50):
                store.append(name, said(f"{number}"))
    row, ends = (0, 0), time.monotonic() + 20
    while row[1] < 1000 and time.monotonic() < ends:  # a connection reports at its end
        (row,) = psql.execute(
            """SELECT COALESCE(sum(n_tup_hot_upd), 0), COALESCE(sum(n_tup_upd), 0)
            FROM pg_stat_user_tables WHERE relname LIKE 'sessions%'"""
        ).fetchall()
    assert row[1] >= 1000
    assert row[0] / row[1] >= 0.9, row
