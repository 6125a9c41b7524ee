"""``python -m benchmarks.on_server --url URL``: the store beside psycopg by hand, on PostgreSQL.

By hand the same rows are written and read in the store's own tables: a transaction, a statement for
each table, no pipeline; ids, digests, seals and the words of searches are made by the store's own
functions. Several clients, threads of one process, each with a session of its own, do the same by
both ways in turn. The ratios are of the process's CPU time and of the clock, by their medians. A
view by hand loads all messages and applies the rules in Python, as beside a file (`rivals`).
For the lines "load" and "view" the store keeps nothing in memory. Returns 1 where a ratio of CPU
times is above 1.5. ``--url`` names an empty database.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from statistics import median
from typing import Any

import sqlalchemy

from store import Store
from store.database import branches, compute_seal, head_moves, list_sealed_columns, sessions
from store.history.append import prepare_batch
from store.history.lines import generate_revision
from store.history.search_entries import EntryPlace, build_entry
from store.messages import join_message_texts

from . import rivals, workload
from .timing import Pair, Times

MOST = 1.5
Message = dict[str, Any]
Row = tuple[Any, ...]
Work = Callable[[int], object]

_FACTS = """message_facts ON message_facts.tree_id = sessions.tree_id
    AND message_facts.branch = head_branch AND message_facts.seq = head"""
FIND = "SELECT tree_id, head_branch, head, project_root FROM sessions WHERE id = %s"
LOCK = f"""SELECT sessions.tree_id, head_branch, head, COALESCE(turn, 0),
    COALESCE(tokens_through, 0)
FROM sessions LEFT JOIN {_FACTS} WHERE id = %s FOR UPDATE OF sessions"""
LOCK_SOURCE = "SELECT * FROM sessions WHERE id = %s FOR UPDATE"
NEXT_BRANCH = "SELECT max(branch) + 1 FROM branches WHERE tree_id = %s"
_COLUMNS = """role, name, status, tool_call_id, created_at, message_id, extra, content_form,
    content"""
INSERT_MESSAGE = f"""INSERT INTO messages (tree_id, branch, seq, {_COLUMNS}, stored_at, digest)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
INSERT_FACTS = "INSERT INTO message_facts VALUES (%s, %s, %s, %s, %s, %s, %s)"
INSERT_ENTRY = """INSERT INTO search_rows (tree_id, branch, seq, summary, number, words, names)
VALUES (%(tree_id)s, %(branch)s, %(seq)s, %(summary)s, %(number)s, %(words)s, %(names)s)"""
SET_HEAD = """UPDATE sessions SET head = %s, updated_at = %s, updated_second = %s, revision = %s
WHERE tree_id = %s AND id = %s"""
MESSAGES = """SELECT seq, role, name, tool_call_id, created_at, content FROM messages
WHERE tree_id = %s AND branch = %s AND seq BETWEEN 1 AND %s ORDER BY seq"""
CALLS = """SELECT seq, call_id, name, arguments FROM tool_calls
WHERE tree_id = %s AND branch = %s AND seq BETWEEN 1 AND %s ORDER BY seq, position"""
INSERT_ID = "INSERT INTO session_ids (id, tree_id) VALUES (%s, %s)"
INSERT_ANCESTOR = "INSERT INTO ancestors VALUES (%s, %s, 0, %s, 1, %s, %s)"


class ByHand:
    """A connection of one client, and what it does by hand."""

    def __init__(self, url: sqlalchemy.URL, session_id: str) -> None:
        import psycopg

        name = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self.connection = psycopg.connect(name)
        self.connection.execute("SET synchronous_commit = off")
        self.connection.commit()
        self.session_id, self.numbers = session_id, count(1)

    def append(self, message: Message) -> None:
        """Append a message without tool calls, with its facts and its entry for searches."""
        moment = int(time.time() * 1000)
        batch = prepare_batch(message, moment)
        columns, tokens, digest = batch.messages[0].columns, batch.tokens[0], batch.digests[0]
        execute = self.connection.execute
        with self.connection.transaction():
            row = execute(LOCK, (self.session_id,)).fetchone()
            assert row
            tree_id, branch, head, turn, through = row
            place, turn = (tree_id, branch, head + 1), turn + (columns.role == "user")
            execute(INSERT_MESSAGE, (*place, *columns, moment, digest))
            execute(INSERT_FACTS, (*place, columns.role, turn, tokens, through + tokens))
            execute(INSERT_ENTRY, build_entry(EntryPlace(*place), join_message_texts(message)))
            new = (head + 1, moment, moment // 1000, generate_revision())
            execute(SET_HEAD, (*new, tree_id, self.session_id))

    def load(self) -> list[Message]:
        """Return all messages as they went in."""
        with self.connection.transaction():
            row = self.connection.execute(FIND, (self.session_id,)).fetchone()
            assert row
            line = row[:3]
            calls: dict[int, list[Message]] = {}
            for seq, call_id, name, arguments in self.connection.execute(CALLS, line):
                function = {"name": name, "arguments": arguments}
                call = {"id": call_id, "type": "function", "function": function}
                calls.setdefault(seq, []).append(call)
            rows = self.connection.execute(MESSAGES, line).fetchall()
        return [rivals.build_message(each, calls.get(each[0])) for each in rows]

    def view(self) -> list[Message]:
        """Return the view that the rules give, at the moment of the last message."""
        return rivals.view(self.load(), NOW, workload.ROOT)

    def fork(self) -> None:
        """Create a session that continues this one from its head."""
        moment = int(time.time() * 1000)
        with self.connection.transaction():
            found = self.connection.execute(LOCK_SOURCE, (self.session_id,))
            names = [each.name for each in found.description or ()]
            source = dict(zip(names, found.fetchone() or (), strict=True))
            tree_id, parent, head = source["tree_id"], source["head_branch"], source["head"]
            row = self.connection.execute(NEXT_BRANCH, (tree_id,)).fetchone()
            assert row
            (branch,) = row
            forked = f"{self.session_id}-{next(self.numbers)}"
            self.connection.execute(INSERT_ID, (forked, tree_id))
            stem = {"branch": branch, "parent_branch": parent, "parent_position": head}
            made = {"session_id": forked, "created_at": moment, "records_seen": 0}
            self._insert(branches, {"tree_id": tree_id, **stem, **made})
            self.connection.execute(INSERT_ANCESTOR, (tree_id, branch, parent, head, branch))
            own = {"id": forked, "head_branch": branch, "last_rewind": None, "forked_at": head}
            times = {"created_at": moment, "updated_at": moment, "updated_second": moment // 1000}
            origin = {"forked_from": self.session_id, "revision": generate_revision()}
            self._insert(sessions, {**source, **own, **times, **origin})
            move = {"tree_id": tree_id, "session_id": forked, "move": 1, "kind": "fork"}
            way = {"from_branch": parent, "from_position": head}
            target = {"to_branch": branch, "to_position": head, "moved_at": moment}
            seen = {"earlier_rewind": None, "source_move": 0, "source_record": 0}
            self._insert(head_moves, {**move, **way, **target, **seen})

    def _insert(self, table: sqlalchemy.Table, row: dict[str, Any]) -> None:
        """Insert a row with its seal."""
        sealed = SEALED[table.name]
        row["sealed"] = compute_seal(sealed, [row[name] for name in sealed])
        self.connection.execute(INSERTS[table.name], row)


SEALED = {table.name: list_sealed_columns(table) for table in (branches, sessions, head_moves)}
COLUMNS = {table.name: tuple(table.c.keys()) for table in (branches, sessions, head_moves)}
INSERTS = {
    table.name: f"INSERT INTO {table.name} ({', '.join(COLUMNS[table.name])})"
    f" VALUES ({', '.join(f'%({name})s' for name in COLUMNS[table.name])})"
    for table in (branches, sessions, head_moves)
}
NOW = workload.START + 10**9
SAID = {"role": "user", "content": "Look at the second test of src/parcels.py, please. " * 8}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a line is above its limit."""
    options = _options(arguments)
    url = sqlalchemy.make_url(options.url)
    said = [*workload.conversation(options.messages)]
    while said[-1].get("tool_calls"):  # a request is made once all calls have their results
        said.pop()
    is_missed = False
    with ExitStack() as opened:
        store = opened.enter_context(Store(url, durability="normal", cache_bytes=0))
        keeping = opened.enter_context(Store(url, durability="normal"))
        clients = []
        for number in range(options.clients):
            store.create_session(f"s{number}", project_root=workload.ROOT)
            store.append(f"s{number}", said)
            store.create_session(f"h{number}", project_root=workload.ROOT)
            store.append(f"h{number}", said)
            client = ByHand(url, f"h{number}")
            opened.enter_context(closing(client.connection))
            clients.append(client)
        threads = opened.enter_context(ThreadPoolExecutor(options.clients))
        assert clients[0].load() == [each.message for each in store.messages("s0")] == said
        assert clients[0].view() == list(store.view("s0", now=NOW).messages)
        print(f"{options.clients} clients, sessions of {options.messages} messages")
        print(f"{'':12}{'CPU':>8}{'clock':>8}   ms of ours and by hand: CPU, clock")
        for name, ours, by_hand in list_lines(store, keeping, clients):
            if name in options.only.split(","):
                pair = measure(threads, options, ours, by_hand)
                is_missed |= pair.cpu > MOST
                times = "  ".join(f"{each.cpu:.2f} {each.wall:.2f}" for each in pair)
                print(f"{name:12}{pair.cpu:8.2f}{pair.wall:8.2f}   {times}", flush=True)
    return int(is_missed)


LINES = ("load", "view", "view again", "fork", "append")


def list_lines(
    store: Store, keeping: Store, clients: list[ByHand]
) -> Iterator[tuple[str, Work, Work]]:
    """Yield what is measured: its name, the work of a client's number, and the same by hand."""
    yield "load", lambda n: store.messages(f"s{n}"), lambda n: clients[n].load()
    yield "view", lambda n: store.view(f"s{n}", now=NOW), lambda n: clients[n].view()
    yield "view again", lambda n: keeping.view(f"s{n}", now=NOW), lambda n: clients[n].view()
    yield "fork", lambda n: keeping.fork(f"s{n}"), lambda n: clients[n].fork()
    yield "append", lambda n: keeping.append(f"s{n}", SAID), lambda n: clients[n].append(SAID)


def measure(
    threads: ThreadPoolExecutor, options: argparse.Namespace, ours: Work, by_hand: Work
) -> Pair:
    """Let all clients work in turns by both ways; return the medians for a call of a client."""
    samples: tuple[list[Times], list[Times]] = ([], [])
    for turn in range(options.rounds + 1):
        sides = [*zip((ours, by_hand), samples, strict=True)]
        for work, times in sides if turn % 2 else reversed(sides):
            spent = _time(threads, options.clients, options.calls, work)
            if turn:
                times.append(spent)
    return Pair(*(Times(*map(median, zip(*each, strict=True))) for each in samples))


def _time(threads: ThreadPoolExecutor, clients: int, calls: int, work: Work) -> Times:
    """Return the times of a call in ms: the clock's of a client, and the process's own."""

    def run(client: int) -> None:
        for _ in range(calls):
            work(client)

    gc.collect()
    began, spent = time.perf_counter(), time.process_time()
    list(threads.map(run, range(clients)))
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    return Times(wall / calls * 1000, cpu / calls / clients * 1000)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_server", description=__doc__)
    parser.add_argument("--url", required=True, help="an empty database on a server")
    parser.add_argument("--clients", type=int, default=8, help="threads, each with a session")
    parser.add_argument("--messages", type=int, default=100, help="of a session")
    parser.add_argument("--rounds", type=int, default=15, help="of which the median counts")
    parser.add_argument("--calls", type=int, default=20, help="of each client in a round")
    parser.add_argument("--only", default=",".join(LINES), help="the lines to measure")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
