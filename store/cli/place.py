"""Which store a command is about, where nobody has to say it twice.

The first of these that there is: what `--db` names; what $CONVOSTORE_DB names; a file
`convostore.db` in the current folder; the store that each user has. Only the last is a guess that
may surprise, so every command that was not told by `--db` says on standard error which store it
was.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_data_path

from ..errors import StoreError
from . import render

FILE = "convostore.db"
VARIABLE = "CONVOSTORE_DB"

_PASSWORD = re.compile(r"(?<=:)[^:/@]+(?=@)")


class Place(NamedTuple):
    """A store by its path or URL, and whether the command line named it."""

    target: str
    named: bool = True

    @property
    def file(self) -> Path | None:
        """Return the file that the store is in, None for a server."""
        if "://" not in self.target:
            return Path(self.target).expanduser()
        scheme, _, path = self.target.partition(":///")
        return Path(path.partition("?")[0]) if scheme.startswith("sqlite") else None

    @property
    def guessed(self) -> str:
        """Return which store it was, "" where the command line said so."""
        return "" if self.named else f"store: {_PASSWORD.sub('***', self.target)}"

    def tell(self) -> None:
        """Say on standard error which store it was, unless the command line said so."""
        if self.guessed:
            render.remark(self.guessed)

    @property
    def exists(self) -> bool:
        """Tell whether the store's file is there; of a server nothing is known."""
        return self.file is None or self.file.exists()

    def require(self) -> None:
        """Raise StoreError where the store would be in a file and the file is missing."""
        if self.exists:
            return
        here = f"{FILE!r} here, nor at " if self.target == str(own()) else ""
        raise StoreError(
            f"there is no store at {here}{str(self.file)!r};"
            " make one with `convostore import` or `create`, or name it with --db"
        )

    def make_room(self) -> None:
        """Make the folder of a user's own store, which nobody else may look into."""
        if self.target == str(own()):
            own().parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def place_of(db: str | None) -> Place:
    """Return the store that a command is about, given what `--db` says."""
    if db is not None:
        return Place(db)
    return Place(os.environ.get(VARIABLE) or _found(), named=False)


def _found() -> str:
    if Path(FILE).exists():
        return FILE
    return str(own())


def own() -> Path:
    """Return where a user's own store is."""
    return user_data_path("convostore", appauthor=False) / FILE
