"""What LangGraph packs: values as JSON or MessagePack, objects of LangChain's among them.

No code of a pickle is run, and no class is imported.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from ...errors import StoreError
from ...text import Fields

ARRAY, SNAPSHOT = 6, 7
"""Codes of packed objects that are not (module, class, what it is made of, …)."""


def decoded(kind: object, held: bytes) -> Any:
    """Return what a column holds, None where it cannot be read."""
    try:
        if kind == "json":
            return json.loads(held, object_hook=_revived)
        return _unpacked(held) if kind == "msgpack" else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _revived(fields: Fields) -> Any:
    """Return what an object of LangChain's was made of; any other as it is."""
    if not {"lc", "type", "id"} <= fields.keys() or fields["type"] != "constructor":
        return fields
    return fields.get("kwargs") or fields.get("args")


def _unpacked(held: bytes) -> Any:
    """Return what was packed, of objects what they were made of. Raises ValueError, StoreError."""
    try:
        import ormsgpack
    except ImportError as problem:
        how = "pip install 'convostore[langgraph]'"
        raise StoreError(f"the checkpoints are packed; to read them: {how}") from problem
    unpack = partial(ormsgpack.unpackb, option=ormsgpack.OPT_NON_STR_KEYS)
    return unpack(held, ext_hook=_made_of)


def _made_of(code: int, held: bytes) -> Any:
    if code == ARRAY:
        return None
    made = _unpacked(held)
    return made if code == SNAPSHOT else made[2]
