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

from ..context import Piece
from ..errors import StoreError
from ..face import Store
from ..importing import import_file
from ..inspection import query
from ..policy import Policy
from ..records import Entry, View
from . import assembling, compacting, demo_session, render, tables
from . import store as asking
from .shown import Column, Row, styled

WIDTH = 100
SESSION = "demo"
FORK = "demo-fork"
FORK_AT, REWIND_TO = 22, 32
COMPACTING = Policy(name="demo", keep_turns=2, language="en")
LAW = "- Money is counted in cents."
INPUT = "Does @src/parcel/rates.py keep to it?"
SUMMARY_LINES = 12
"""Lines of the summary that are shown."""

QUESTION = """SELECT tool_name, kind, COUNT(*) AS results, SUM(length) AS characters
FROM tool_log WHERE session_id = 'demo'
GROUP BY tool_name, kind ORDER BY characters DESC"""

NEXT = (
    "convostore demo --keep demo.db        keep this store, to try commands on",
    "convostore import ~/.claude/projects  bring in your own; Codex and others too",
    "convostore sessions                   list them",
    "convostore view SESSION --explain     see what would be sent of one, and why",
    "docs/guide.md                         the library by example",
)
"""What to do after the demo."""

KEPT = "errors always stay"
"""A reason to keep that is worth showing among the replacements."""

ENTRY_COLUMNS = (
    Column("#", number=True),
    Column("rule"),
    Column("saved", number=True),
    Column("command or file", clip="end"),
    Column("why", wide=True),
)


Keep = Annotated[
    Path | None,
    typer.Option("--keep", metavar="PATH", help="Keep the demo's store here, to go on with it."),
]


def demo(keep: Keep = None) -> None:
    """Show what the store does, on a session of a coding agent."""
    if keep and keep.exists():
        raise StoreError(f"{str(keep)!r} exists already; keep the demo in a new file")
    with TemporaryDirectory(prefix="convostore-demo-") as folder:
        path = keep or Path(folder, "demo.db")
        with Store(path) as store:
            for number, (title, part) in enumerate(PARTS.items(), 1):
                _head(f"{number}. {title}")
                part(store, Path(folder))
    _head("What next")
    if keep:
        viewed = f"view {SESSION} --now {demo_session.NOW} --explain"
        render.say(f"kept: convostore --db {keep} {viewed}", "")
    render.say(*NEXT)


def bring_in(store: Store, folder: Path) -> None:
    """Import the session from a file, like any transcript."""
    file = folder / "session.jsonl"
    lines = [render.json_text(message) + "\n" for message in demo_session.conversation()]
    file.write_text("".join(lines), "utf-8")
    store.create_session(SESSION, title="Parcel prices", project_root=demo_session.PROJECT_ROOT)
    imported = import_file(store, file, session_id=SESSION).sessions[0]
    again = import_file(store, file, session_id=SESSION).sessions[0]
    render.say(
        "An agent mends a price calculator, in an hour: "
        f"{imported.appended} messages, {imported.tool_calls} tool calls.",
        f"Imported once more, {again.appended} are new:"
        " every message is known by its place and digest.",
    )


def compare(store: Store, _: Path) -> None:
    """Compare the costs of the raw messages and of the view."""
    built = _view(store)
    raw, sent, replaced = built.stats.raw_tokens, built.stats.tokens, built.stats.replaced
    rows = [("raw", raw, "tokens, estimated"), ("view", sent, f"{1 - sent / raw:.0%} less")]
    for rule, saved in built.stats.saved_by_rule.items():
        rows.append((rule, saved, f"saved in {replaced[rule]} messages"))
    render.bars(rows, width=_width())
    stored = [each.message for each in store.messages(SESSION)]
    equal = "yes" if (stored == demo_session.conversation()) else "NO"
    untouched = f"Nothing stored is touched: all {built.at} messages read back equal: {equal}."
    render.say("", untouched)


def explain(store: Store, _: Path) -> None:
    """List the changes of the view with their reasons, and the old results that it kept."""
    messages = (stored.message for stored in store.messages(SESSION))
    calls = (call for message in messages for call in message.get("tool_calls", ()))
    arguments = {call["id"]: _first_argument(call) for call in calls}
    told = [entry for entry in _view(store).entries if entry.rule or entry.reason == KEPT]
    rows = [_entry_row(entry, arguments[entry.message["tool_call_id"]]) for entry in told]
    render.table(ENTRY_COLUMNS, rows, width=_width())


def _entry_row(entry: Entry, called: str) -> Row:
    return (
        entry.seq if entry.seq is not None else "+",
        styled(entry.rule or "kept"),
        entry.tokens_saved or None,
        render.one_line(called, 40),
        entry.reason,
    )


def move(store: Store, _: Path) -> None:
    """Fork, rewind, undo: nothing is copied and nothing is lost."""
    now = demo_session.NOW
    _line(store, "before", SESSION)
    store.fork(SESSION, at=FORK_AT, session_id=FORK, title="Another way to fix it", now=now)
    store.append(FORK, {"role": "user", "content": "Try it with decimal instead."}, now=now)
    _line(store, f"fork at {FORK_AT}, append 1", FORK)
    store.rewind(SESSION, to=REWIND_TO, now=now)
    _line(store, f"rewind to {REWIND_TO}", SESSION)
    store.undo_rewind(SESSION, now=now)
    _line(store, "undo", SESSION)


def summarise(store: Store, _: Path) -> None:
    """Replace the older turns by a summary made without a model, and bring them back."""
    _line(store, "before", SESSION)
    done = store.compact(SESSION, COMPACTING, now=demo_session.NOW)
    _line(store, "compact", SESSION)
    first, *effects = compacting.said_of(done)
    render.say("", first, *(f"  {line}" for line in effects), "")
    entries = _view(store).entries
    found = next(entry for entry in entries if entry.rule == "summary")
    lines = str(found.message["content"]).splitlines()[:SUMMARY_LINES]
    render.say(
        *(f"  | {line}" for line in [render.one_line(line, _width() - 8) for line in lines]),
        "  | …",
        "",
    )
    assert done.id is not None
    store.undo_compaction(SESSION, done.id, now=demo_session.NOW)
    _line(store, f"undo compaction {done.id}", SESSION)


def request(store: Store, folder: Path) -> None:
    """Assemble a request: project rules, finished turns in short, new input with its reminder."""
    (folder / "CODE_LAW.md").write_text(LAW, "utf-8")
    built = store.context(SESSION, user_input=INPUT, root=folder, now=demo_session.NOW)
    render.table(assembling.COLUMNS, assembling.rows(built), width=_width())
    for piece in (*built.pieces[:2], built.pieces[-1]):
        render.say("", *_lines_of(piece))


def _lines_of(piece: Piece) -> Iterator[str]:
    """Yield the lines of a message, each after the name of its layer."""
    for line in str(piece.message["content"]).splitlines():
        said = render.one_line(line, _width() - 16)
        yield f"  {piece.layer:<10} | {said}"


def ask(store: Store, _: Path) -> None:
    """Ask the store a question in SQL."""
    render.say(*(f"  {line}" for line in QUESTION.splitlines()), "")
    assert store.database.path is not None
    found = query(store.database.path, QUESTION)
    asking.table(found.columns, found.rows, width=_width())


def check(store: Store, _: Path) -> None:
    """Verify the store."""
    found = [f"{each.check} at {each.where}: {each.problem}" for each in store.verify()]
    render.say(*found or ["Nothing is wrong."])


PARTS: dict[str, Callable[[Store, Path], None]] = {
    "Import: every message is kept as it is": bring_in,
    "View: what would be sent to the model": compare,
    "Why: each replacement has a reason": explain,
    "Fork, rewind, undo: O(1), nothing is lost": move,
    "Compaction: a recorded event, never a loss": summarise,
    "Request: everything that goes to the model": request,
    "SQL: the read-only console": ask,
    "Verify: the promises, checked": check,
}
"""What the demo shows, in order."""


def _view(store: Store) -> View:
    return store.view(SESSION, now=demo_session.NOW)


def _first_argument(call: dict[str, Any]) -> str:
    arguments = json.loads(call["function"]["arguments"])
    return str(next(iter(arguments.values())))


def _line(store: Store, what: str, session_id: str) -> None:
    built = store.view(session_id, now=demo_session.NOW)
    counts = f"{built.stats.raw_messages:>3} messages {built.stats.raw_tokens:>6,} tokens raw"
    render.say(f"{what:<20} {session_id:<10}{counts} {built.stats.tokens:>6,} in the view")


def _width() -> int:
    return min(WIDTH, tables.console().width)


def _head(title: str) -> None:
    console = tables.console(width=_width())
    console.print()
    console.print(Rule(Text(title, "bold"), align="left"))
