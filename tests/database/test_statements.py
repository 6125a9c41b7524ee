"""Every statement of the package as text.

Kept for review, bound to one tree, and answered from an index.

``CONVOSTORE_WRITE_SQL=1 pytest tests/database/test_statements.py`` writes ``tests/sql/<room>.sql``
anew, a clause a line, and ``tests/sql/<room>.postgresql.sql`` with those that differ on PostgreSQL
by more than the mark of a parameter; what a change of the code does to its statements is then in
the diff.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import ROOT
from fan_outs import FANS_OUT
from sql_printing import printed
from sqlalchemy import func, text

import store
from store import Store
from store.database import schema
from store.database.schema import TREE_TABLES
from store.database.statements import DIALECTS, Insertion, Statement
from store.errors import InvalidValue, SessionNotFound, StoreError
from store.history.usages import LAST_USAGE

SQL = ROOT / "tests" / "sql"
WRITE = "CONVOSTORE_WRITE_SQL"

LONGEST_LINE = 120
"""Characters of a line of a kept statement."""

TREE_NAMES = {table.name for table in TREE_TABLES}


class Named(NamedTuple):
    """A statement with the name under which it is kept, ``module.NAME`` or ``module.NAME.place``."""

    name: str
    statement: Statement[Any]


def modules() -> Iterator[Any]:
    """Yield the modules of the package; the command and adapters have no statements."""
    for found in pkgutil.walk_packages(store.__path__, "store."):
        if not found.name.startswith(("store.cli", "store.__main__", "store.adapters")):
            yield importlib.import_module(found.name)


def statements() -> Iterator[Named]:
    """Yield every statement that is a constant of a module, those in tuples too."""
    for module in modules():
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, value in vars(module).items():
            several = value if isinstance(value, tuple) else (value,)
            if not any(isinstance(each, Statement) for each in several):
                continue
            if not re.search(rf"^[\w, ]*\b{name}\b[^(\n]*=", source, re.MULTILINE):
                continue  # another module's, merely used here
            for place, each in enumerate(several, start=1):
                if isinstance(each, Statement):
                    suffix = f".{place}" if isinstance(value, tuple) else ""
                    yield Named(f"{module.__name__.removeprefix('store.')}.{name}{suffix}", each)


STATEMENTS = sorted(statements())


def test_no_function_of_a_host_is_taken() -> None:
    """What the store calls its own table functions, a host's `func` still means as the host's
    database does.
    """
    for name in ("elements", "pairs"):
        assert (
            str(getattr(func, name)("x").compile(compile_kwargs={"literal_binds": True}))
            == f"{name}('x')"
        )


# --- Kept for review ------------------------------------------------------------------------------


PARAMETER = re.compile(r"%\((\w+)\)s(?:::\w+(?:\[\])?)?")
"""A parameter as it is sent to a server: its name, and its type."""


def shown(statement: Statement[Any], dialect: str) -> str:
    """Return a statement's text with parameters as SQLite marks them."""
    text = PARAMETER.sub(r":\1", statement.text(dialect))
    return printed(text if dialect == "sqlite" else text.replace("%%", "%"))


def kept_files() -> dict[str, str]:
    """Return the statements of each room, by the name of the file that keeps them."""
    files: dict[str, str] = {}
    for named in STATEMENTS:
        room = named.name.partition(".")[0]
        common, other = (shown(named.statement, dialect) for dialect in ("sqlite", "postgresql"))
        texts = {f"{room}.sql": common}
        if "".join(other.split()) != "".join(common.split()):
            texts[f"{room}.postgresql.sql"] = other
        for name, each in texts.items():
            files[name] = f"{files.get(name, '')}-- {named.name}\n{each.rstrip()}\n\n"
    return files


def test_the_texts_are_those_that_were_reviewed() -> None:
    """The texts that run are the texts that are kept; see above for how to keep new ones."""
    current = kept_files()
    if os.environ.get(WRITE):
        for path in SQL.glob("*.sql"):
            path.unlink()
        for name, text in current.items():
            (SQL / name).write_text(text, encoding="utf-8")
    kept = {path.name: path.read_text(encoding="utf-8") for path in SQL.glob("*.sql")}
    assert kept == current, f"statements have changed: run with {WRITE}=1"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_printing_a_statement_changes_white_space_alone(dialect: str) -> None:
    """What is kept for review is, word for word, what runs; its lines are short."""
    for named in STATEMENTS:
        text = named.statement.text(dialect)
        shown = printed(text)
        assert "".join(shown.split()) == "".join(text.split()), named.name
        assert max(map(len, shown.splitlines())) <= LONGEST_LINE, named.name


def test_statements_are_found() -> None:
    """The walk sees what it should: constants, tuples of them, in modules of every floor."""
    found = {named.name for named in STATEMENTS}
    assert {
        "history.raw_messages.MESSAGES_IN_RUN",
        "history.lines.POINTER",
        "view.rules.RESULT_VERDICTS",
        "history.erasure_batches.DELETE_ROWS_BEYOND.1",
        "database.migrate.SCHEMA_VERSION",
    } <= found
    assert set(FANS_OUT) <= found


@pytest.mark.parametrize(
    "named",
    [each for each in STATEMENTS if each.statement.row_type and each.statement.selected],
    ids=lambda named: named.name,
)
def test_a_named_row_has_the_columns_of_its_statement(named: Named) -> None:
    """As many fields as columns; a column that has a field's name stands at that field's place."""
    fields: tuple[str, ...] = getattr(named.statement.row_type, "_fields", ())
    columns = [each.name for each in named.statement.selected]
    shared = [each for each in columns if each in fields]
    assert len(columns) == len(fields)
    assert [fields.index(each) for each in shared] == [columns.index(each) for each in shared]


# --- One tree -------------------------------------------------------------------------------------

ARM = re.compile(r"\b(?:SELECT|DELETE|UPDATE)\b")
USED = re.compile(r"\b(?:FROM|JOIN|UPDATE)\s+(\w+)")
INNERMOST = re.compile(r"\(([^()]*)\)")
BOUND = re.compile(r"\btree_id = (?::tree(?:_id)?\b|\?)")


def unbound_arms(statement: str) -> list[str]:
    """Return the arms of a statement that use a conversation's table without naming the tree."""
    groups = []
    while found := INNERMOST.search(statement):
        groups.append(found[1])
        statement = f"{statement[: found.start()]} {statement[found.end() :]}"
    arms = []
    for group in (*groups, statement):
        starts = [match.start() for match in ARM.finditer(group)]
        arms += [group[start:end] for start, end in pairwise([*starts, len(group)])]
    return [arm for arm in arms if TREE_NAMES & {*USED.findall(arm)} and not BOUND.search(arm)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_statement_names_its_tree(dialect: str) -> None:
    """Each SELECT, UPDATE and DELETE on a conversation's tables binds tree_id (scale rule 7)."""
    unbound = {
        named.name: arms
        for named in STATEMENTS
        if (arms := unbound_arms(PARAMETER.sub(r":\1", named.statement.text(dialect))))
    }
    assert {name: arms for name, arms in unbound.items() if name not in FANS_OUT} == {}
    assert {*FANS_OUT} - {*unbound} == set(), "they name their tree now: take them off the list"


WALKS_OF_SESSIONS = {
    "history.message_lookup.BRANCH_LINES",
    "history.session_branches.INHERITED_END",
    "history.session_branches.SESSION_BRANCHES",
    "history.usages.LAST_USAGE",
}
"""What walks on a server from a fork to its source, which may hold no branch of the line.

The rows of ancestors are of branches, so they do not name these sessions.
"""
PRINTED_CTE = re.compile(
    r"^(?:WITH RECURSIVE )?(\w+)(?:\([^)]*\))? AS [A-Z ]*\($(.*?)^\)", re.MULTILINE | re.DOTALL
)


def list_walks(statement: str) -> list[str]:
    """Return the names of the tables of a printed statement that read themselves."""
    tables = PRINTED_CTE.findall(statement)
    return [name for name, body in tables if re.search(rf"\b(?:FROM|JOIN) {name}\b", body)]


def test_a_server_walks_up_no_tree() -> None:
    """It reads the rows of ancestors; a file, whose branches have none, is walked up."""
    texts = {named.name: shown(named.statement, "postgresql") for named in STATEMENTS}
    recursive = {name: text for name, text in texts.items() if "RECURSIVE" in text}
    assert {*recursive} == WALKS_OF_SESSIONS
    assert [list_walks(text) for text in recursive.values()] == [["sources"]] * len(recursive)
    in_file = shown(LAST_USAGE, "sqlite")
    assert list_walks(in_file) == ["sources", "line"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_look_up_of_ids_is_asked_by_itself(dialect: str) -> None:
    """It may lie on another machine than the trees, where no statement joins the two."""
    texts = [named.statement.text(dialect) for named in STATEMENTS]
    of_ids = [text for text in texts if "session_ids" in text]
    assert len(of_ids) > 2
    assert [text for text in of_ids if TREE_NAMES & {*re.findall(r"\w+", text)}] == []


LOCKS_WITHOUT_ROWS = {
    "database/listener.py": "a hint that somebody waits, without which the store is asked again",
    "database/migrate.py": "migrations run on one machine",
    "database/notifications.py": "the other side of that hint",
}
"""What takes an advisory lock, with the reason: it is held on one machine of several."""


def test_few_locks_are_of_no_row() -> None:
    """A new one is argued for here."""
    package = Path(store.__file__).parent
    sources = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "advisory" in path.read_text(encoding="utf-8")
    }
    assert sources == {*LOCKS_WITHOUT_ROWS}


def test_an_insert_says_the_tree() -> None:
    """Each row of a conversation is written with its tree first."""
    for named in STATEMENTS:
        sql = named.statement.text("sqlite")
        found = re.match(r"INSERT(?: OR \w+)? INTO (\w+) \((\w+)", sql)
        if found and found[1] in TREE_NAMES:
            assert found[2] == "tree_id", named.name


@pytest.mark.parametrize(
    ("statement", "unbound"),
    [
        ("SELECT seq FROM messages WHERE messages.tree_id = :tree_id", 0),
        ("SELECT seq FROM messages WHERE messages.seq = :seq", 1),
        (
            "WITH a AS (SELECT 1 FROM branches WHERE tree_id = :tree_id) SELECT 1 FROM a JOIN messages ON a.x = y",
            1,
        ),
        ("DELETE FROM messages WHERE seq > 0", 1),
        ("UPDATE sessions SET head=:to WHERE sessions.tree_id = :tree", 0),
        ("SELECT name FROM tool_kinds", 0),
    ],
)
def test_the_search_for_unbound_arms_finds_them(statement: str, unbound: int) -> None:
    """The search above finds what it should, and leaves the rest alone."""
    assert len(unbound_arms(statement)) == unbound


# --- From an index --------------------------------------------------------------------------------

SCANNED = {
    "history.ancestry.ANCESTOR_BREACHES": "compares the whole store",
    "history.kept_usages.SUM_KEPT": "sums over the whole store",
    "history.retention.ALL_BYTES.1": "measures the whole store",
    "history.retention.ALL_BYTES.2": "measures the whole store",
    "history.retention.ALL_BYTES.3": "measures the whole store",
    "history.retention.COMPACTED_SESSIONS": "compactions under way are few, and have an index",
    "history.draft_leases.WRITTEN_MOMENTS": "drafts under way are few",
    "history.drafts.ALL_DRAFTS": "reads all that there is",
    "history.erasure.ERASURES": "reads all that there is",
    "history.erasure.MARK_ERASURES_PURGED": "erasures are few, and a purge rewrites the whole file",
    "history.redaction.MARK_REDACTIONS_PURGED": "redactions are few, and a purge rewrites the whole file",
    "history.redaction.REDACTIONS": "reads all that there is",
    "history.request_rows.REQUEST_NUMBERS": "samples the requests of the whole store",
    "history.erasure_log.OPEN_TREES": "walks the index of what is left to do",
    "inspection.dump.ALL_TREES": "lists all that there is",
    "inspection.transfer.ERASED_SESSIONS": "lists all that there is",
    "inspection.usage_statistics.STORE_FILES": "counts over the whole store",
    "inspection.usage_statistics.STORE_TOOLS": "counts over the whole store",
    "inspection.usage_statistics.STORE_TOTALS": "counts over the whole store",
    "search.query.HAS_ROLE": "only for a role that few stores have",
    "search.index.COUNT_DOCUMENTS": "counts over the whole store",
    "search.index.DELETE_ENTRIES": "empties the index",
    "search.index.COUNT_ENTRIES": "counts over the whole store",
}
"""The statements that walk a whole table of conversations, each with its reason."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give a store to ask for plans."""
    with Store(tmp_path_factory.mktemp("plans") / "chat.db") as found:
        yield found


def plan(opened: Store, named: Named) -> list[str]:
    """Return SQLite's plan for a statement, a line for each step."""
    statement = named.statement.text("sqlite")
    values = dict.fromkeys(re.findall(r"(?<!:):(\w+)", statement))
    with opened.database.reading() as connection:
        driver: Any = connection.connection.driver_connection
        return [step for *_, step in driver.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def aliases(statement: str) -> dict[str, str]:
    """Return the tables of conversations by the names that the statement gives them."""
    found = re.findall(r"\b(?:FROM|JOIN|UPDATE|,)\s+(\w+)(?: AS (\w+))?", statement)
    return {alias or table: table for table, alias in found if table in TREE_NAMES}


@pytest.mark.sqlite_only
def test_no_statement_scans_a_conversations_table(opened: Store) -> None:
    """Whatever a statement reads of a conversation it finds by an index, so cost follows what is
    asked for.
    """
    scanned = {named.name: steps for named in STATEMENTS if (steps := scans(opened, named))}
    assert {name: steps for name, steps in scanned.items() if name not in SCANNED} == {}
    assert {*SCANNED} - {*scanned} == set(), "they no longer scan: take them off the list"


def scans(opened: Store, named: Named) -> list[str]:
    """Return the steps of a plan that read a whole table of conversations."""
    tables = aliases(named.statement.text("sqlite"))
    steps = [step.split() for step in plan(opened, named) if step.startswith("SCAN")]
    return [" ".join(step) for step in steps if step[1] in tables]


BY_MESSAGE = {
    "messages",
    "message_facts",
    "tool_calls",
    "tool_results",
    "tool_result_paths",
    "token_counts",
}
"""The tables with as many rows as there are messages."""
OF_A_WHOLE_TREE = {
    "history.erasure.ERASABLE_END": "the last position of a branch, which ends the key",
    "history.session_branches.OWN_BRANCH_END": "the last position of a branch, which ends the key",
    "history.erasure_batches.OPEN_PART": "the last position of a branch, which ends the key",
    "history.view_cache.POINTER_AND_STATE": "ends with the first row",
    "history.view_cache.STATE_OF_TREE": "ends with the first row",
    "history.facts.DELETE_TREE_PATHS": "another folder makes all paths anew",
    "history.facts.ANSWERING_RESULTS": "another folder makes all paths anew",
    "history.message_lookup.FIND_TREE_PREFIX": "a beginning of ids may be common in other trees",
    "inspection.usage_statistics.LINE_FILES": "counts over a tree",
    "inspection.usage_statistics.LINE_TOOLS": "counts over a tree",
    "inspection.dump.FILLED_TABLES": "each search ends with its first row",
}
"""The statements that search these tables by no position, each with its reason."""


@pytest.mark.sqlite_only
def test_no_statement_goes_through_a_tree_to_find_a_line(opened: Store) -> None:
    """A planner that takes the runs of a line for many would read all messages for each of them."""
    found = {named.name for named in STATEMENTS if any(whole_trees(opened, named))}
    assert found == {*OF_A_WHOLE_TREE}


def whole_trees(opened: Store, named: Named) -> Iterator[str]:
    """Yield the steps of a plan that find rows of messages by less than a position or an id."""
    tables = aliases(named.statement.text("sqlite"))
    for step in plan(opened, named):
        found = re.match(r"SEARCH (\w+) .*\((.*)\)", step)
        if found is None or tables.get(found[1]) not in BY_MESSAGE:
            continue
        if not re.search("seq|message_id|rowid", found[2]):
            yield step


HOT = {
    "history.lines.POINTER": ["sessions", "branches"],
    "history.lines.SEGMENTS": ["branches", "parents"],
    "history.raw_messages.MESSAGES_IN_RUN": ["messages"],
    "history.raw_messages.CALLS_IN_RUN": ["tool_calls"],
    "history.append.MESSAGE_LOCATIONS": ["messages"],
    "history.session_branches.SESSION_BRANCHES": [
        "sessions",
        "forks",
        "head_moves",
        "leaving",
        "branches",
        "own",
    ],
    "history.session_branches.INHERITED_END": [
        "sessions",
        "forks",
        "head_moves",
        "leaving",
        "branches",
        "own",
    ],
    "history.session_branches.OWN_BRANCH_END": ["branches", "messages"],
    "history.message_lookup.BRANCH_LINES": [
        "sessions",
        "head_moves",
        "leaving",
        "branches",
        "parents",
    ],
    "history.message_lookup.FIND_MESSAGES": ["messages", "branches", "own", "sessions"],
    "history.message_lookup.FIND_OWNED_MESSAGES": ["messages", "branches", "own", "sessions"],
    "history.message_lookup.FIND_PREFIX": ["messages", "branches", "own", "sessions"],
    "history.message_lookup.FIND_OWNED_PREFIX": ["messages", "branches", "own", "sessions"],
    "history.message_lookup.FIND_TREE_PREFIX": ["messages", "branches", "own", "sessions"],
    "history.message_lookup.FIRST_TURN_POSITION": ["message_facts"],
    "history.sessions.SESSION_OWNER": ["sessions"],
    "face.store.OTHERS_SESSIONS": ["sessions"],
    "history.message_lookup.FIND_TREE_MESSAGES": ["messages", "branches", "own", "sessions"],
    "history.message_lookup.TURN_BEGINNINGS": ["message_facts", "messages"],
    "history.facts.OPEN_CALLS": ["tool_calls"],
    "history.facts.RUN_CALLS": ["tool_calls"],
    "history.facts.ANSWERED_PLACES": ["tool_results"],
    "view.line_rows.VISIBLE_MESSAGES": ["messages"],
    "view.counts.STORED_TOKEN_COUNTS": ["token_counts"],
    "view.rules.RESULT_VERDICTS": ["tool_results", "tool_result_paths", "messages"],
    "view.rules.COVERED_READS": ["tool_results", "tool_result_paths", "messages"],
    "view.rules.CLEARABLE_BORDER": ["tool_results", "messages"],
    "view.visible_set.RECORD_OUTCOMES": ["branches", "parents", "compaction_records"],
    "view.visible_set.RECORDS": ["compaction_records", "summaries"],
    "view.visible_set.ACTIVE_SUMMARY_TEXTS": ["summaries"],
    "compaction.plan.SPANNING_CALL": ["branches", "parents", "tool_results"],
    "compaction.plan.NEXT_USER": ["branches", "parents", "message_facts"],
    "history.token_counts.UNCOUNTED_MESSAGES": ["branches", "parents", "messages", "token_counts"],
    "history.message_notes.LINE_NOTES": ["branches", "parents", "notes"],
    "history.message_notes.LINE_NOTES_OF_KEY": ["branches", "parents", "notes"],
    "history.message_notes.LIST_NOTES_OF_KEY": ["notes", "sessions"],
    "history.message_notes.LIST_OWNED_NOTES": ["notes", "sessions"],
    "history.message_notes.DELETE_NOTE": ["notes"],
    "history.message_notes.DELETE_UNREACHABLE_NOTES": ["notes", "sessions"],
    "history.usages.LIST_SESSION_USAGES": ["sessions", "usages", "branches"],
    "history.usages.LIST_OWNED_USAGES": ["sessions", "usages", "branches"],
    "history.usages.LIST_USAGES": ["sessions", "usages", "branches"],
    "history.usages.SUM_SESSION_USAGES": ["sessions", "usages", "branches"],
    "history.usages.SUM_USAGES_BY_DAY": ["sessions", "usages", "branches"],
    "history.usages.LAST_USAGE": ["branches", "parents", "newest"],
    "history.listing.LIST_PREFIX": ["sessions"],
    "history.listing.LIST_TREE": ["sessions"],
    "history.drafts.DRAFT": ["drafts"],
    "history.drafts.SESSION_DRAFTS": ["drafts"],
    "history.drafts.OWNER_DRAFTS": ["drafts", "sessions"],
    "history.drafts.DRAFT_PIECES": ["draft_pieces"],
    "history.drafts.DELETE_PIECES_FROM": ["draft_pieces"],
    "history.erasure_batches.OPEN_PART": ["erasures", "messages"],
    "history.erasure_batches.DELETE_ROWS_BEYOND.8": ["message_attachments"],
    "history.erasure_batches.DELETE_ROWS_BEYOND.9": ["messages"],
    "history.erasure_batches.DELETE_ROWS_BEYOND.10": ["search_rows"],
    "history.attachments.ATTACHMENT_PLACES": ["message_attachments", "attachments"],
    "history.attachments.DELETE_UNUSED_ATTACHMENTS": ["message_attachments", "attachments"],
    "search.scope.TREE_BRANCHES": ["branches"],
    "search.scope.TREE_SESSIONS": ["sessions"],
    "search.hits.LIST_TITLES": ["sessions"],
    "search.hits.LIST_TITLES_OWNED": ["sessions"],
}
"""What the hot paths look up, table by table (``parents``: the walk up the branches)."""


@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", HOT)
def test_hot_statements_search(opened: Store, name: str) -> None:
    """Each table of a hot statement is searched by an index."""
    (named,) = (each for each in STATEMENTS if each.name == name)
    searched = {
        step.split()[1]
        for step in plan(opened, named)
        if step.startswith("SEARCH") and " USING " in step
    }
    assert {*HOT[name]} <= searched


RANGES = dict.fromkeys(
    (
        "history.raw_messages.MESSAGES_IN_RUN",
        "history.raw_messages.CALLS_IN_RUN",
        "view.line_rows.VISIBLE_MESSAGES",
        "history.message_lookup.TURN_BEGINNINGS",
        "compaction.range_facts.LISTED_RESULTS",
        "compaction.range_facts.UNANSWERED_CALLS",
        "compaction.range_facts.TOUCHED_PATHS",
    ),
    "seq>? AND seq<?",
)


@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", RANGES)
def test_a_line_is_read_as_a_range(opened: Store, name: str) -> None:
    """A run of a line is one range of a key, already in order: nothing is sorted."""
    (named,) = (each for each in STATEMENTS if each.name == name)
    steps = plan(opened, named)
    assert any(f"(tree_id=? AND branch=? AND {RANGES[name]})" in step for step in steps)
    assert [step for step in steps if "TEMP B-TREE" in step] == []


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("name", "join"),
    [("view.rules.RESULT_VERDICTS", ""), ("view.rules.COVERED_READS", " LEFT-JOIN")],
)
def test_the_paths_of_reads_are_looked_up_one_by_one(opened: Store, name: str, join: str) -> None:
    """A planner that begins with the paths, or takes a range of them for each read, would walk far
    too many.
    """
    (named,) = (each for each in STATEMENTS if each.name == name)
    steps = [step for step in plan(opened, named) if " tool_result_paths " in step]
    assert steps == [
        f"SEARCH tool_result_paths USING PRIMARY KEY (tree_id=? AND branch=? AND seq=?){join}"
    ]


@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", ["RESULT_VERDICTS", "COVERED_READS", "CLEARABLE_BORDER"])
def test_the_results_of_a_line_are_looked_up_by_its_runs(opened: Store, name: str) -> None:
    """A planner that begins with the results of the tree would walk those of all its branches, and
    all hidden ones.
    """
    (named,) = (each for each in STATEMENTS if each.name == f"view.rules.{name}")
    steps = [step for step in plan(opened, named) if " tool_results " in step]
    assert steps == [
        "SEARCH tool_results USING PRIMARY KEY (tree_id=? AND branch=? AND seq>? AND seq<?)"
    ]


@pytest.mark.sqlite_only
def test_the_last_usage_is_looked_up_from_the_end_of_each_branch(opened: Store) -> None:
    """A planner that begins with the usages would walk those of the whole tree for each view."""
    (named,) = (each for each in STATEMENTS if each.name == "history.usages.LAST_USAGE")
    steps = [step for step in plan(opened, named) if "usages" in step]
    by_key = "USING INDEX sqlite_autoindex_usages_1 (tree_id=? AND branch=? AND seq"
    assert steps == [f"SEARCH usages {by_key}=? AND usage=?)", f"SEARCH newest {by_key}<?)"]


@pytest.mark.sqlite_only
def test_verdicts_find_what_is_read_again_by_an_index(opened: Store) -> None:
    """A planner that takes the results for few would walk all files for each of them.

    Fifteen times the time.
    """
    (named,) = (each for each in STATEMENTS if each.name == "view.rules.RESULT_VERDICTS")
    steps = [step for step in plan(opened, named) if " files " in step]
    assert steps == ["SEARCH files USING AUTOMATIC COVERING INDEX (seq=?) LEFT-JOIN"]


@pytest.mark.sqlite_only
def test_sessions_with_a_key_are_found_by_it(opened: Store) -> None:
    """All of them begin with the narrowest that is known; what else is asked is looked up."""
    plans = {named.name: plan(opened, named) for named in STATEMENTS if "TAGGED" in named.name}
    tagged = plans["history.listing.LIST_TAGGED"]
    assert tagged[0] == (
        "SEARCH first USING COVERING INDEX ix_session_keys_key_value_tree_id_session_id "
        "(key=? AND value=?)"
    )
    assert "SEARCH of_key2 USING PRIMARY KEY (tree_id=? AND session_id=? AND key=?)" in tagged
    (tree,) = (plan(opened, each) for each in STATEMENTS if each.name.endswith(".LIST_TREE"))
    assert tree[0] == "SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (tree_id=?)"
    (prefix,) = (plan(opened, each) for each in STATEMENTS if each.name.endswith(".LIST_PREFIX"))
    assert prefix[0] == "SEARCH sessions USING INDEX ix_sessions_id (id>? AND id<?)"
    owned = plans["history.listing.LIST_OWNED_TAGGED"]
    assert owned[0].startswith(
        "SEARCH sessions USING INDEX ix_sessions_owner_archived_updated_second"
    )
    assert [step for step in owned if "TEMP B-TREE" in step] == [SORTED_SECOND]


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("name", "range_of"),
    [
        ("LIST_CREATED", "archived_created_at_id (archived=? AND (created_at,id)<(?,?))"),
        (
            "LIST_OWNED_CREATED",
            "owner_archived_created_at_id (owner=? AND archived=? AND (created_at,id)<(?,?))",
        ),
    ],
)
def test_listing_sessions_sorts_nothing(opened: Store, name: str, range_of: str) -> None:
    """The sessions come in the order of their index, so a page of them costs a page."""
    (named,) = (each for each in STATEMENTS if each.name == f"history.listing.{name}")
    assert plan(opened, named) == [f"SEARCH sessions USING INDEX ix_sessions_{range_of}"]


SORTED_SECOND = "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"
"""Only rows that are equal in the indexed part of the order are sorted."""


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("name", "range_of"),
    [
        ("LIST_SESSIONS", "archived_updated_second (archived=?)"),
        ("LIST_SESSIONS_AFTER", "archived_updated_second (archived=? AND updated_second<?)"),
        (
            "LIST_OWNED_SESSIONS",
            "owner_archived_updated_second (owner=? AND archived=? AND updated_second<?)",
        ),
    ],
)
def test_listing_active_sessions_sorts_within_a_second(
    opened: Store, name: str, range_of: str
) -> None:
    """A page costs itself and the sessions of the seconds in which it begins and ends."""
    (named,) = (each for each in STATEMENTS if each.name == f"history.listing.{name}")
    searched = f"SEARCH sessions USING INDEX ix_sessions_{range_of}"
    assert plan(opened, named) == [searched, SORTED_SECOND]


# --- What a statement takes -----------------------------------------------------------------------


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "value", [2**63, -(2**70), "\ud800"], ids=["64 bits", "70 bits", "a surrogate"]
)
def test_a_value_that_cannot_be_held_is_refused(opened: Store, value: object) -> None:
    """A statement given what no column can hold raises an error of ours."""
    selected = Statement(text("SELECT :value"))
    with opened.database.reading() as connection:
        with pytest.raises(InvalidValue):
            selected.rows(connection, value=value)
        assert selected.row(connection, value="x") == ("x",)


class Pair(NamedTuple):
    """A row of two columns."""

    number: int
    word: str


def test_rows_have_names(url: str) -> None:
    """A statement with a row type gives that type, however its rows are asked for."""
    counted = Statement(text("SELECT :number, 'x'"), row=Pair)
    with Store(url) as opened, opened.database.reading() as connection:
        assert counted.one(connection, number=1).number == 1
        assert counted.row(connection, number=2) == Pair(2, "x")
        assert [each.word for each in counted.rows(connection, number=3)] == ["x"]
        assert [each.number for each in counted.scan(connection, number=4)] == [4]


def test_a_statement_gives_single_values(url: str) -> None:
    """`value` is the first column of the first row, `values` that of all; `one` insists on a row."""
    none = Statement(text("SELECT 1 WHERE 1 = 0"))
    three = Statement(text("SELECT 3, 'x' UNION ALL SELECT 4, 'y'"))
    with Store(url) as opened, opened.database.reading() as connection:
        assert (three.value(connection), three.values(connection)) == (3, [3, 4])
        assert (none.value(connection), none.values(connection)) == (None, [])
        assert none.row(connection) is None
        with pytest.raises(StoreError, match="convostore verify"):
            none.one(connection)


def test_a_value_is_bound_wherever_its_name_is(url: str) -> None:
    """Each in its place, some twice; a percent sign is no mark of one."""
    marked = Statement(text("SELECT :word || '100% %(word)s %s' || :other || :word"))
    with Store(url) as opened, opened.database.reading() as connection:
        assert marked.value(connection, other="é%s", word="$1") == "$1100% %(word)s %sé%s$1"


PLACE = ("tree_id", "branch", "seq")


def test_an_insertion_takes_rows_in_the_order_of_its_names(url: str) -> None:
    """The names decide, not the order of the table's columns; what is not named stays empty."""
    insertion = Insertion(schema.tool_kinds, "kind", "name")
    found = Statement(text("SELECT name, kind FROM tool_kinds WHERE kind = 'of a test'"))
    with Store(url) as opened, opened.database.writing() as connection:
        insertion.insert_many(connection, [("of a test", "tool of mine")])
        insertion.insert_many(connection, [])
        assert found.rows(connection) == [("tool of mine", "of a test")]


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        ((*PLACE, "encoding", "tokens", "token"), "token"),
        ((*PLACE, "encoding"), "tokens"),
        ((*PLACE, "encoding", "tokens", "seq"), ""),
    ],
    ids=["unknown", "left out", "twice"],
)
def test_an_insertion_refuses_names_that_do_not_fit_its_table(
    names: tuple[str, ...], wrong: str
) -> None:
    """A name that is no column, a needed column without a name, a name twice: refused at once."""
    with pytest.raises(TypeError, match=rf"token_counts has other columns: {wrong}$"):
        Insertion(schema.token_counts, *names)


def test_a_statement_knows_its_dialects(url: str) -> None:
    """Texts are compiled once per dialect, with the place holders of its driver."""
    selected = Statement(text("SELECT :value"))
    assert [selected.text(dialect) for dialect in DIALECTS] == ["SELECT :value", "SELECT %(value)s"]
    with Store(url) as opened, opened.database.writing() as connection:
        assert selected.rows(connection, value="1") == [("1",)]
        assert selected.row(connection, value="2") == ("2",)


def test_values_that_no_database_holds_are_refused(url: str) -> None:
    """A number beyond 64 bits is an error of ours, a text with lone surrogates or NUL no id.

    Both block nothing.
    """
    with Store(url, durability="normal") as opened:
        opened.create_session("s")
        message = {"role": "user", "content": "x"}
        attempts: list[tuple[type[StoreError], Callable[[], Any]]] = [
            (InvalidValue, lambda: opened.sessions(limit=2**70)),
            (InvalidValue, lambda: opened.append("s", message, now=2**70)),
            (InvalidValue, lambda: opened.messages("s", branch="x")),  # type: ignore[arg-type]
            (SessionNotFound, lambda: opened.messages("\ud800")),
            (SessionNotFound, lambda: opened.session("a\0b")),
            (SessionNotFound, lambda: opened.append("a\0b", message)),
            (SessionNotFound, lambda: opened.append("\ud800", message)),
        ]
        for error, attempt in attempts:
            with pytest.raises(error):
                attempt()
        opened.append("s", message)
        assert [each.message for each in opened.messages("s")] == [message]
