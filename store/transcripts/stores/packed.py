"""What LangGraph packs: values as JSON or MessagePack, objects of LangChain's among them.

No code of a pickle is run, and no class is imported.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from ...errors import StoreError
from ...text import JsonFields

ARRAY, SNAPSHOT = 6, 7
"""Codes of packed objects that are not (module, class, what it is made of, …)."""


def decode_packed_column(kind: object, held: bytes) -> Any:
    """Return what a column holds, None where it cannot be read."""
    try:
        if kind == "json":
            return json.loads(held, object_hook=_unwrap_langchain_object)
        return _unpack_msgpack(held) if kind == "msgpack" else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _unwrap_langchain_object(fields: JsonFields) -> Any:
    """Return what an object of LangChain's was made of; any other as it is."""
    if not {"lc", "type", "id"} <= fields.keys() or fields["type"] != "constructor":
        return fields
    return fields.get("kwargs") or fields.get("args")


def _unpack_msgpack(held: bytes) -> Any:
    """Return what was packed, of objects what they were made of. Raises ValueError, StoreError."""
    try:
        import ormsgpack
    except ImportError as problem:
        how = "pip install 'convostore[langgraph]'"
        raise StoreError(f"the checkpoints are packed; to read them: {how}") from problem
    unpack = partial(ormsgpack.unpackb, option=ormsgpack.OPT_NON_STR_KEYS)
    return unpack(held, ext_hook=_unpack_extension)


def _unpack_extension(code: int, held: bytes) -> Any:
    if code == ARRAY:
        return None
    made = _unpack_msgpack(held)
    return made if code == SNAPSHOT else made[2]
