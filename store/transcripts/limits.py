"""Limits for the import of a file from an untrusted source."""

from __future__ import annotations

import time

from ..errors import InvalidValue, LimitExceeded, quote_value


class Limits:
    """How many bytes may be read, unpacked or made from a file, and how long that may take.

    The time starts at construction. None means no limit.
    """

    def __init__(self, max_bytes: int | None = None, max_seconds: float | None = None) -> None:
        for name, given in (("max_bytes", max_bytes), ("max_seconds", max_seconds)):
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            if given is not None and not (is_number and given > 0):
                raise InvalidValue(f"{name} must be a number above 0, not {quote_value(given)}")
        self._bytes, self._seconds = max_bytes, max_seconds
        self._began = time.monotonic()
        self._made = 0

    def check_size(self, size: int, what: str = "the file has") -> None:
        """Refuse to read so many bytes. Raises LimitExceeded."""
        if self._bytes is not None and size > self._bytes:
            raise LimitExceeded("max_bytes", self._bytes, f"{what} {size:,} bytes")

    def make(self, value: object) -> None:
        """Count the texts of a value made from the file. Raises LimitExceeded.

        A text that occurs in several places counts in each, because it is stored in each.
        """
        waiting = [] if self._bytes is None else [value]
        while waiting:
            held = waiting.pop()
            if isinstance(held, str):
                self._made += len(held if held.isascii() else held.encode(errors="replace"))
                self.check_size(self._made, "what it says takes more than")
            elif isinstance(held, dict):
                waiting += [*held, *held.values()]
            elif isinstance(held, list | tuple):
                waiting += held

    def begin_anew(self) -> None:
        """Reset the count of bytes made, because they are made again; the time goes on."""
        self._made = 0

    def check_time(self) -> None:
        """Raise LimitExceeded if the time is over."""
        if self.is_over():
            assert self._seconds is not None
            raise LimitExceeded("max_seconds", self._seconds, "reading it takes longer")

    def is_over(self) -> bool:
        """Tell whether the time is over."""
        return self._seconds is not None and time.monotonic() - self._began > self._seconds


UNLIMITED = Limits()
