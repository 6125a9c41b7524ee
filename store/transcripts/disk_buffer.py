"""A buffer on disk for the messages of a file, until the parser can yield them in order.

Only the end of a file may tell which messages were taken back or compacted, and the title of the
session. So a parser puts messages into a `DiskBuffer`, and keeps in
memory where they are and what sorting needs; ids by which rows name each other become `KeyNumbers`.
"""

from __future__ import annotations

import marshal
import tempfile
from array import array
from collections.abc import Iterator, MutableMapping
from hashlib import blake2b
from typing import Any, Self

from ..errors import StoreError

BUFFER_MEMORY_BYTES = 4 * 1024 * 1024
"""Bytes that are kept in memory before a file is made."""
BUFFER_READ_BYTES = 64 * 1024
"""Bytes that are read of the file, at least."""

MARSHAL_VERSION = 2
"""Version of marshal's format in which equal values are the same bytes, whoever else holds them."""

LENGTH_BYTES = 8
"""Bytes that tell how long a value is that follows them."""
DIGEST_BYTES = 16
"""Bytes that stand for a key: two of a file do not share them."""


def pack_value(value: Any) -> bytes:
    """Return a value of JSON, or a tuple of such, as bytes. Raises RecursionError."""
    try:
        return marshal.dumps(value, MARSHAL_VERSION)
    except ValueError as problem:
        raise RecursionError("a value is nested too deeply") from problem


class DiskBuffer:
    """Values of JSON that are put aside and taken out again, in a file that no one else sees.

    It lies in the folder for temporary files, and is gone with the buffer or with its process.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - it is closed with the buffer
            BUFFER_MEMORY_BYTES, buffering=BUFFER_READ_BYTES
        )
        self._end = 0
        self._at_end = True

    def __enter__(self) -> Self:
        """Return the buffer, which is there as long as the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, value: object) -> int:
        """Keep a value; return its place. Raises RecursionError, and StoreError on a full disk."""
        text = pack_value(value)
        try:
            if not self._at_end:
                self._file.seek(self._end)
            self._file.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        except OSError as problem:
            raise _build_full_disk_error(problem) from problem
        place, self._end = self._end, self._end + LENGTH_BYTES + len(text)
        self._at_end = True
        return place

    def at(self, place: int) -> Any:
        """Return the value at a place, as a copy of its own."""
        try:
            self._at_end = False
            self._file.seek(place)
            length = int.from_bytes(self._file.read(LENGTH_BYTES), "little")
            return marshal.loads(self._file.read(length))  # noqa: S302 - written by `put`
        except OSError as problem:
            raise _build_full_disk_error(problem) from problem


def _build_full_disk_error(problem: OSError) -> StoreError:
    folder = tempfile.gettempdir()
    told = f"cannot keep what was read in {folder!r}: {problem.strerror or problem}"
    return StoreError(f"{told}; TMPDIR names another folder")


class BufferedMapping(MutableMapping[str, Any]):
    """Values in a buffer on disk, by their names, in the order in which these came.

    Values that are taken out are copies: who changes it puts it there again.
    """

    def __init__(self, buffer: DiskBuffer) -> None:
        self._buffer = buffer
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._places)

    def __reversed__(self) -> Iterator[str]:
        """Return the names, the last first."""
        return reversed(self._places)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a value of a name."""
        return name in self._places

    def __getitem__(self, name: str) -> Any:
        """Return a copy of a value."""
        return self._buffer.at(self._places[name])

    def __setitem__(self, name: str, value: object) -> None:
        """Put a value there instead of the one before."""
        self._places[name] = self._buffer.put(value)

    def __delitem__(self, name: str) -> None:
        """Take a value away."""
        del self._places[name]


class KeyNumbers:
    """A number for each key, where there are so many that a dict would be large.

    A key is a value of JSON or a tuple of such. Of each a digest is kept, in the order in which
    they came, and its number; ``_slots`` tells where: a slot is found by the digest's own bits, or
    is the next one that is free. So a key takes 40 bytes, in a dict it took 200.
    """

    def __init__(self) -> None:
        self._slots = array("i", [-1]) * 64
        self._digests = bytearray()
        self._numbers = array("q")

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        """Tell whether a key has a number."""
        return self._slots[self._slot(_digest_key(key))] >= 0

    def get(self, key: object) -> int | None:
        """Return a key's number, None where it has none."""
        entry = self._slots[self._slot(_digest_key(key))]
        return self._numbers[entry] if entry >= 0 else None

    def setdefault(self, key: object, number: int) -> int:
        """Return a key's number; give it this one where it has none."""
        digest = _digest_key(key)
        slot = self._slot(digest)
        entry = self._slots[slot]
        if entry >= 0:
            return self._numbers[entry]
        self._slots[slot] = len(self)
        self._digests += digest
        self._numbers.append(number)
        if 2 * len(self) > len(self._slots):
            self._make_room()
        return number

    def __setitem__(self, key: object, number: int) -> None:
        """Give a key a number, another one where it has one."""
        self.setdefault(key, number)
        self._numbers[self._slots[self._slot(_digest_key(key))]] = number

    def _slot(self, digest: bytes) -> int:
        """Return the slot of a digest, a free one where it has none."""
        slots, digests = self._slots, self._digests
        bits = len(slots) - 1
        slot = int.from_bytes(digest, "little") & bits
        while (entry := slots[slot]) >= 0 and not digests.startswith(digest, DIGEST_BYTES * entry):
            slot = (slot + 1) & bits
        return slot

    def _make_room(self) -> None:
        self._slots = array("i", [-1]) * (2 * len(self._slots))
        for entry in range(len(self)):
            start = DIGEST_BYTES * entry
            digest = bytes(self._digests[start : start + DIGEST_BYTES])
            self._slots[self._slot(digest)] = entry


def _digest_key(key: object) -> bytes:
    return blake2b(pack_value(key), digest_size=DIGEST_BYTES).digest()
