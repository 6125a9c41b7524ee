"""``python -m tests.recordings FOLDER``: print a digest of everything that is made of recordings.

Each file of a folder of recorded conversations is imported into a store of its own. For each of its
sessions a line is printed for its raw messages, its view in each format by each ready policy, its
context, plan and compaction, and its export in each shape: file, session, what, SHA-256. Two
checkouts do the same if they print the same lines; ``--values NAME`` prints the values of one file
instead of their digests, to see where they differ.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic_core import to_jsonable_python

from store import Policy, Store, StoreError
from store.exporting import export_session
from store.importing import import_file
from store.policy import POLICIES

FORMATS = ("openai", "responses", "anthropic", "gemini")
SHAPES = (None, *FORMATS, "claude_code", "codex", "markdown")
NOW = 1_900_000_000_000
UNSTABLE = ("tree_id", "revision", "stored_at", "digest", "created_at", "updated_at")
"""Fields that differ each time, whatever the code does."""
MADE_UP = re.compile(
    r"(req|msg)_[0-9a-f]{24}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
"""Ids in an export that are made up for what has none."""


def results_of(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield what is made of a file: of which session, what it is, and its value."""
    with Store(":memory:") as store:
        try:
            report = import_file(store, path)
        except StoreError as error:
            yield "", "refused", f"{type(error).__name__}: {error}"
            return
        yield "", "report", [report.kind, [each[1:] for each in report.sessions], report.notes]
        for place, imported in enumerate(report.sessions):
            for what, make in works(store, imported.id):
                yield str(place), what, attempt(make)


def attempt(make: Callable[[], Any]) -> Any:
    """Return what a call returns as JSON values, or the error that it raises in words."""
    try:
        return plain(to_jsonable_python(make(), serialize_unknown=True, bytes_mode="hex"))
    except StoreError as error:
        return f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    """Return a value without the fields that differ each time."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in UNSTABLE}
    if isinstance(value, list):
        return list(map(plain, value))
    return value


def works(store: Store, session_id: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what is made of a session, by name; compactions come last, since they change it."""
    yield "messages", lambda: [each.message for each in store.messages(session_id)]
    for name in POLICIES:
        policy = Policy.named(name)
        for form in FORMATS:
            yield f"view {name} {form}", partial(parts_of, store, session_id, policy, form)
        yield f"check {name}", partial(store.check, session_id, policy, max_tokens=100_000)
        yield f"plan {name}", partial(store.plan_compaction, session_id, policy, now=NOW)
        yield f"context {name}", partial(request_of, store, session_id, policy)
    for shape in SHAPES:
        yield f"export {shape}", partial(exported, store, session_id, shape)
    for name in POLICIES:
        yield f"compact {name}", partial(compacted, store, session_id, name)


def parts_of(store: Store, session_id: str, policy: Policy, form: str) -> list[Any]:
    """Return the messages, the entries and the figures of a view."""
    view = store.view(session_id, policy, now=NOW, format=form)
    entries = [[each.seq, each.rule, each.reason, each.tokens] for each in view.entries]
    return [view.messages, view.system, entries, view.stats]


def request_of(store: Store, session_id: str, policy: Policy) -> list[Any]:
    """Return the messages of a whole request."""
    return store.context(session_id, policy=policy, now=NOW).messages


def exported(store: Store, session_id: str, shape: str | None) -> list[str]:
    """Return the lines of an export without the times and ids that it makes up."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "export")
        export_session(store, session_id, path, shape=shape, now=NOW)
        text = path.read_text(encoding="utf-8", errors="replace")
        return MADE_UP.sub("", text).splitlines()


def compacted(store: Store, session_id: str, name: str) -> list[Any]:
    """Compact a fork by the store's own summarizer; return the record and the view after it."""
    fork = store.fork(session_id, now=NOW)
    policy = Policy.named(name)
    record = store.compact(fork.id, policy, now=NOW)
    messages = store.view(fork.id, policy, now=NOW + 1).messages
    return [record._replace(session_id=session_id), messages]


def main(arguments: list[str]) -> int:
    """Run the program."""
    folder, *wanted = arguments
    shows_values = wanted[:1] == ["--values"]
    names = wanted[1:] if shows_values else wanted
    root = Path(folder).absolute()
    # What has no time is stored at one moment; exports name the folder that they are made in.
    moment = patch.object(time, "time_ns", return_value=NOW * 1_000_000)
    with moment, chdir(tempfile.gettempdir()):
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            file = str(path.relative_to(root))
            if names and not any(name in file for name in names):
                continue
            for session, what, value in results_of(path):
                text = json.dumps(value, ensure_ascii=False, default=repr)
                digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
                print(file, session, what, text if shows_values else digest, sep="\t", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
