"""What an operation of several transactions is given in place of a connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now


class Transactions(NamedTuple):
    """Opens transactions one after the other, and tells the time to each.

    ``soon`` is for what can be done later: it gives up where others write just now. ``clock``
    returns a moment in ms; for None it reads the clock anew.
    """

    reading: Callable[[], AbstractContextManager[Connection]]
    writing: Callable[[], AbstractContextManager[Connection]]
    soon: Callable[[], AbstractContextManager[Connection]]
    clock: Callable[[Now], int]
