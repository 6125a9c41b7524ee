"""`convostore demo`: everything at once on a built-in session, in a store of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.rule import Rule
from rich.text import Text

from .. import Store
from ..context import Piece
from ..errors import StoreError
from ..importing import import_file
from ..inspection import query
from ..policy import Policy
from ..records import Entry, View
from . import compactions, demo_session, render, requests, sql, tables
from .terminal import Column, TableRow, style_label

MAX_DEMO_WIDTH = 100
DEMO_SESSION = "demo"
DEMO_FORK = "demo-fork"
FORK_AT, REWIND_TO = 22, 32
DEMO_POLICY = Policy(name="demo", keep_turns=2, language="en")
DEMO_LAW = "- Money is counted in cents."
DEMO_INPUT = "Does @src/parcel/rates.py keep to it?"
SUMMARY_LINES = 12
"""Lines of the summary that are shown."""

DEMO_QUERY = """SELECT tool_name, kind, COUNT(*) AS results, SUM(length) AS characters
FROM tool_log WHERE session_id = 'demo'
GROUP BY tool_name, kind ORDER BY characters DESC"""

NEXT_STEPS = (
    "convostore demo --keep demo.db        keep this store, to try commands on",
    "convostore import ~/.claude/projects  bring in your own; Codex and others too",
    "convostore sessions                   list them",
    "convostore view SESSION --explain     see what would be sent of one, and why",
    "docs/guide.md                         the library by example",
)
"""What to do after the demo."""

KEEP_REASON = "errors always stay"
"""A reason to keep that is worth showing among the replacements."""

CHANGE_COLUMNS = (
    Column("#", number=True),
    Column("rule"),
    Column("saved", number=True),
    Column("command or file", clip="end"),
    Column("why", wide=True),
)


KeepPath = Annotated[
    Path | None,
    typer.Option("--keep", metavar="PATH", help="Keep the demo's store in this file."),
]


def demo(keep: KeepPath = None) -> None:
    """Show what the store does, on a session of a coding agent."""
    if keep and keep.exists():
        raise StoreError(f"{str(keep)!r} exists already; keep the demo in a new file")
    with TemporaryDirectory(prefix="convostore-demo-") as folder:
        path = keep or Path(folder, "demo.db")
        with Store(path) as store:
            for number, (title, part) in enumerate(DEMO_PARTS.items(), 1):
                _print_heading(f"{number}. {title}")
                part(store, Path(folder))
    _print_heading("What next")
    if keep:
        viewed = f"view {DEMO_SESSION} --now {demo_session.DEMO_NOW} --explain"
        render.print_lines(f"kept: convostore --db {keep} {viewed}", "")
    render.print_lines(*NEXT_STEPS)


def show_import(store: Store, folder: Path) -> None:
    """Import the session from a file, like any transcript."""
    file = folder / "session.jsonl"
    lines = [render.format_json(message) + "\n" for message in demo_session.build_conversation()]
    file.write_text("".join(lines), "utf-8")
    store.create_session(DEMO_SESSION, title="Parcel prices", project_root=demo_session.DEMO_ROOT)
    imported = import_file(store, file, session_id=DEMO_SESSION).sessions[0]
    again = import_file(store, file, session_id=DEMO_SESSION).sessions[0]
    render.print_lines(
        "An agent mends a price calculator, in an hour: "
        f"{imported.appended} messages, {imported.tool_calls} tool calls.",
        f"Imported once more, {again.appended} are new:"
        " every message is known by its place and digest.",
    )


def show_savings(store: Store, _: Path) -> None:
    """Compare the costs of the raw messages and of the view."""
    built = _compute_demo_view(store)
    raw, sent, replaced = built.stats.raw_tokens, built.stats.tokens, built.stats.replaced
    rows = [("raw", raw, "tokens, estimated"), ("view", sent, f"{1 - sent / raw:.0%} less")]
    for rule, saved in built.stats.saved_by_rule.items():
        rows.append((rule, saved, f"saved in {replaced[rule]} messages"))
    render.show_bars(rows, width=_limit_width())
    stored = [each.message for each in store.messages(DEMO_SESSION)]
    equal = "yes" if (stored == demo_session.build_conversation()) else "NO"
    untouched = f"Nothing stored is touched: all {built.at} messages read back equal: {equal}."
    render.print_lines("", untouched)


def show_replacements(store: Store, _: Path) -> None:
    """List the changes of the view with their reasons, and the old results that it kept."""
    messages = (stored.message for stored in store.messages(DEMO_SESSION))
    calls = (call for message in messages for call in message.get("tool_calls", ()))
    arguments = {call["id"]: _parse_first_argument(call) for call in calls}
    told = [
        entry
        for entry in _compute_demo_view(store).entries
        if entry.rule or entry.reason == KEEP_REASON
    ]
    rows = [_build_change_row(entry, arguments[entry.message["tool_call_id"]]) for entry in told]
    render.show_table(CHANGE_COLUMNS, rows, width=_limit_width())


def _build_change_row(entry: Entry, called: str) -> TableRow:
    return (
        entry.seq if entry.seq is not None else "+",
        style_label(entry.rule or "kept"),
        entry.tokens_saved or None,
        render.shorten_to_line(called, 40),
        entry.reason,
    )


def show_moves(store: Store, _: Path) -> None:
    """Fork, rewind, undo: nothing is copied and nothing is lost."""
    now = demo_session.DEMO_NOW
    _print_session_counts(store, "before", DEMO_SESSION)
    store.fork(
        DEMO_SESSION, at=FORK_AT, session_id=DEMO_FORK, title="Another way to fix it", now=now
    )
    store.append(DEMO_FORK, {"role": "user", "content": "Try it with decimal instead."}, now=now)
    _print_session_counts(store, f"fork at {FORK_AT}, append 1", DEMO_FORK)
    store.rewind(DEMO_SESSION, to=REWIND_TO, now=now)
    _print_session_counts(store, f"rewind to {REWIND_TO}", DEMO_SESSION)
    store.undo_rewind(DEMO_SESSION, now=now)
    _print_session_counts(store, "undo", DEMO_SESSION)


def show_compaction(store: Store, _: Path) -> None:
    """Replace the older turns by a summary made without a model, and bring them back."""
    _print_session_counts(store, "before", DEMO_SESSION)
    done = store.compact(DEMO_SESSION, DEMO_POLICY, now=demo_session.DEMO_NOW)
    _print_session_counts(store, "compact", DEMO_SESSION)
    first, *effects = compactions.describe_compaction(done)
    render.print_lines("", first, *(f"  {line}" for line in effects), "")
    entries = _compute_demo_view(store).entries
    found = next(entry for entry in entries if entry.rule == "summary")
    lines = str(found.message["content"]).splitlines()[:SUMMARY_LINES]
    render.print_lines(
        *(
            f"  | {line}"
            for line in [render.shorten_to_line(line, _limit_width() - 8) for line in lines]
        ),
        "  | …",
        "",
    )
    assert done.id is not None
    store.undo_compaction(DEMO_SESSION, done.id, now=demo_session.DEMO_NOW)
    _print_session_counts(store, f"undo compaction {done.id}", DEMO_SESSION)


def show_request(store: Store, folder: Path) -> None:
    """Assemble a request: project rules, finished turns in short, new input with its reminder."""
    (folder / "CODE_LAW.md").write_text(DEMO_LAW, "utf-8")
    built = store.context(
        DEMO_SESSION, user_input=DEMO_INPUT, root=folder, now=demo_session.DEMO_NOW
    )
    render.show_table(
        requests.LAYER_COLUMNS, requests.build_layer_rows(built), width=_limit_width()
    )
    for piece in (*built.pieces[:2], built.pieces[-1]):
        render.print_lines("", *_render_piece_lines(piece))


def _render_piece_lines(piece: Piece) -> Iterator[str]:
    """Yield the lines of a message, each after the name of its layer."""
    for line in str(piece.message["content"]).splitlines():
        said = render.shorten_to_line(line, _limit_width() - 16)
        yield f"  {piece.layer:<10} | {said}"


def show_query(store: Store, _: Path) -> None:
    """Ask the store a question in SQL."""
    render.print_lines(*(f"  {line}" for line in DEMO_QUERY.splitlines()), "")
    assert store.database.path is not None
    found = query(store.database.path, DEMO_QUERY)
    sql.print_query_rows(found.columns, found.rows, width=_limit_width())


def show_verification(store: Store, _: Path) -> None:
    """Verify the store."""
    found = [f"{each.check} at {each.where}: {each.problem}" for each in store.verify()]
    render.print_lines(*found or ["Nothing is wrong."])


DEMO_PARTS: dict[str, Callable[[Store, Path], None]] = {
    "Import: every message is kept as it is": show_import,
    "View: what would be sent to the model": show_savings,
    "Why: each replacement has a reason": show_replacements,
    "Fork, rewind, undo: O(1), nothing is lost": show_moves,
    "Compaction: a recorded event, never a loss": show_compaction,
    "Request: everything that goes to the model": show_request,
    "SQL: the read-only console": show_query,
    "Verify: the promises, checked": show_verification,
}
"""What the demo shows, in order."""


def _compute_demo_view(store: Store) -> View:
    return store.view(DEMO_SESSION, now=demo_session.DEMO_NOW)


def _parse_first_argument(call: dict[str, Any]) -> str:
    arguments = json.loads(call["function"]["arguments"])
    return str(next(iter(arguments.values())))


def _print_session_counts(store: Store, what: str, session_id: str) -> None:
    built = store.view(session_id, now=demo_session.DEMO_NOW)
    counts = f"{built.stats.raw_messages:>3} messages {built.stats.raw_tokens:>6,} tokens raw"
    render.print_lines(f"{what:<20} {session_id:<10}{counts} {built.stats.tokens:>6,} in the view")


def _limit_width() -> int:
    return min(MAX_DEMO_WIDTH, tables.build_console().width)


def _print_heading(title: str) -> None:
    console = tables.build_console(width=_limit_width())
    console.print()
    console.print(Rule(Text(title, "bold"), align="left"))
