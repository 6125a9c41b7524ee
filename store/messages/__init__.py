"""What goes in: a message as the caller gave it, taken apart into columns, and put together again.

Nothing here knows SQL.
"""

from __future__ import annotations

from .columns import (
    Columns,
    Message,
    StoredCall,
    assemble,
    content_digest,
    content_text,
    dated_digest,
    join_call,
)
from .json_text import (
    DEPTH_LIMIT,
    INTEGER_LIMIT,
    decode,
    encode,
    is_integer,
    utf8_size,
)
from .preparing import SIZE_LIMIT, TIME_KEYS, Prepared, moment_of, prepare

__all__ = [
    "DEPTH_LIMIT",
    "INTEGER_LIMIT",
    "SIZE_LIMIT",
    "TIME_KEYS",
    "Columns",
    "Message",
    "Prepared",
    "StoredCall",
    "assemble",
    "content_digest",
    "content_text",
    "dated_digest",
    "decode",
    "encode",
    "is_integer",
    "join_call",
    "moment_of",
    "prepare",
    "utf8_size",
]
