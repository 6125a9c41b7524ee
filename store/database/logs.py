"""The loggers of the package: an exception of a host's handler ends no operation."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

from ..errors import describe_origin


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that reports the failure of a handler, as `logging` does, on the error output."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave a line and its fields as they are."""
        return msg, kwargs

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
