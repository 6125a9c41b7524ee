"""The loggers of the package: an exception of a host's handler ends no operation.

Every record has the same fields, so that one formatter fits all: the session, the seconds since the
operation began, and its owner if the environment asks for owners.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import describe_origin

OWNERS_VARIABLE = "CONVOSTORE_LOG_OWNERS"
"""The variable that is 1 if log records shall tell owners."""


class OperationMark(NamedTuple):
    """The beginning of an operation, and its owner."""

    begun: float
    owner: str | None


running_operation: ContextVar[OperationMark | None] = ContextVar("running_operation", default=None)
"""The innermost operation that runs now."""


def get_record_fields() -> dict[str, object]:
    """Return the fields that every record has."""
    mark = running_operation.get()
    fields: dict[str, object] = dict.fromkeys(("session_id", "owner", "seconds"))
    if mark:
        fields["seconds"] = time.perf_counter() - mark.begun
        fields["owner"] = mark.owner if os.environ.get(OWNERS_VARIABLE) == "1" else None
    return fields


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that reports the failure of a handler, as `logging` does, on the error output."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Return a line as it is, with all fields of a record."""
        return msg, {**kwargs, "extra": {**get_record_fields(), **(kwargs.get("extra") or {})}}

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line."""
        try:
            super().log(level, msg, *args, **{"stacklevel": 2, **kwargs})
        except Exception as error:  # noqa: BLE001 - whatever a host's handler raises
            if logging.raiseExceptions and sys.stderr:
                sys.stderr.write(f"a log handler of {self.name} failed: {describe_origin(error)}\n")


def get_logger(name: str) -> SafeLogger:
    """Return the logger of a module."""
    return SafeLogger(logging.getLogger(name), {})
