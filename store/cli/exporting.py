"""The command that brings sessions out: export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated, Any

import typer

from .. import transcripts
from ..errors import StoreError
from ..face import Store
from ..importing import is_file_of
from ..messages import Message
from ..records import Session, View
from . import render
from .options import (
    At,
    Fields,
    Now,
    PolicyName,
    Provider,
    SessionId,
    ViewFormat,
    existing,
    find,
    moment_of,
    place,
    policy_of,
    require_folder,
    require_new,
)

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to, readable by you alone.",
        show_default="stdout",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]
AsView = Annotated[
    bool, typer.Option("--view", help="Export what would be sent to the model instead.")
]


def export(
    ctx: typer.Context,
    session: SessionId,
    output: Output = None,
    force: Force = False,
    view: AsView = False,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    format: ViewFormat = Provider.openai,  # noqa: A002 - the option's name
) -> None:
    """Write a session's raw messages, one JSON object a line.

    `import` reads them back equal. --format is that of a view.
    """
    rules, moment = policy_of(policy, fields), moment_of(now)
    with existing(ctx) as store:
        found = find(store, session).id
        messages, before = _raw(store, found, at), _before(store.session(found))
        if view:
            built = store.view(found, rules, at=at, now=moment, format=format.value)
            messages, before = iter(_sent(built)), []
        if output is None:
            render.write(_lines(chain(before, messages)))
            return
        if is_file_of(place(ctx).file, output):
            raise StoreError(f"{str(output)!r} is the store itself; export to another file")
        rows = _lines(chain(before, messages), ascii_only=False)
        count = _write_private(output, rows, replace=force) - len(before)
    render.say(f"{render.counted(count, 'message')} written to {output}")


def _sent(view: View) -> list[Any]:
    """Return what is sent, in front the system text that goes beside the messages."""
    return view.messages if view.system is None else [{"system": view.system}, *view.messages]


def _before(session: Session) -> list[Message]:
    """Return the row that says whose a session is and where its project; none where none does."""
    told = {transcripts.PROJECT_ROOT: session.project_root, transcripts.OWNER: session.owner}
    row = {key: text for key, text in told.items() if text is not None}
    return [row] if row else []


def _raw(store: Store, session_id: str, at: int | None) -> Iterator[Message]:
    return (stored.message for page in store.pages(session_id, at=at) for stored in page)


def _lines(messages: Iterable[Message], *, ascii_only: bool | None = None) -> Iterator[str]:
    for message in messages:
        yield render.json_text(message, ascii_only=ascii_only) + "\n"


def _write_private(path: Path, lines: Iterable[str], *, replace: bool) -> int:
    """Write lines to a file of mode 0600, whole or not at all; return how many.

    Raises StoreError where it exists, or its folder does not.
    """
    require_new(path, replace=replace)
    require_folder(path)
    with _beside(path) as file:
        return sum(1 for line in lines if file.write(line))


@contextmanager
def _beside(path: Path) -> Iterator[IO[str]]:
    """Give a private file beside another, whose place it takes in one step when all went well."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}", delete=False
    ) as file:
        try:
            yield file
            file.close()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
