"""The store of a command, found without naming it each time.

The first of these is used: the store that ``--db`` names; the store that $CONVOSTORE_DB names; a
file ``convostore.db`` in the current folder, if it exists; the user's own store. Only the last is a
guess that may surprise, so every command without ``--db`` names its store on standard error.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_data_path

from ..errors import StoreError
from . import render

STORE_FILE = "convostore.db"
STORE_VARIABLE = "CONVOSTORE_DB"

_PASSWORD_PATTERN = re.compile(r"(?<=:)[^:/@]+(?=@)")


class StorePlace(NamedTuple):
    """The path or URL of a store, and whether the command line named it."""

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
        """Return the name of a store that the command line did not name, otherwise ""."""
        return "" if self.named else f"store: {_PASSWORD_PATTERN.sub('***', self.target)}"

    def tell(self) -> None:
        """Name the store on standard error, unless the command line named it."""
        if self.guessed:
            render.print_remark(self.guessed)

    @property
    def exists(self) -> bool:
        """Tell whether the store's file is there; of a server nothing is known."""
        return self.file is None or self.file.exists()

    def require(self) -> None:
        """Raise StoreError if the store is in a file and the file is missing."""
        if self.exists:
            return
        here = f"{STORE_FILE!r} here, nor at " if self.target == str(locate_own_store()) else ""
        raise StoreError(
            f"there is no store at {here}{str(self.file)!r};"
            " make one with `convostore import` or `create`, or name it with --db"
        )

    def make_room(self) -> None:
        """Create the folder of a user's own store, readable by nobody else."""
        if self.target == str(locate_own_store()):
            locate_own_store().parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def choose_place(db: str | None) -> StorePlace:
    """Return the store of a command from the value of ``--db``."""
    if db is not None:
        return StorePlace(db)
    return StorePlace(
        os.environ.get(STORE_VARIABLE)
        or (STORE_FILE if Path(STORE_FILE).exists() else str(locate_own_store())),
        named=False,
    )


def locate_own_store() -> Path:
    """Return the path of a user's own store."""
    return user_data_path("convostore", appauthor=False) / STORE_FILE
