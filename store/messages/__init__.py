"""What goes in: a message as the caller gave it, taken apart into columns, and put together again.

Nothing here knows SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..doors import door

if TYPE_CHECKING:
    from .columns import (
        Columns,
        Message,
        StoredCall,
        assemble,
        content_digest,
        content_text,
        dated_digest,
        digest_version,
        join_call,
        part_text,
    )
    from .copying import owned, owned_value
    from .json_text import (
        DEPTH_LIMIT,
        INTEGER_LIMIT,
        SIZE_LIMIT,
        decode,
        decode_as,
        encode,
        is_integer,
        problem_of,
        utf8_size,
    )
    from .media import MEDIA_TYPES, Media, changed, is_unreadable, media_in, media_of
    from .prepared_messages import (
        TIME_KEYS,
        GivenMessage,
        Prepared,
        as_object,
        is_model,
        moment_of,
        prepare,
        taken_apart,
        tells_no_time,
    )
    from .redacted_messages import (
        NO_ARGUMENTS,
        REDACTED,
        UNKNOWN_TOOL,
        is_neutral,
        is_redacted,
        neutral_id,
        without_words,
    )
    from .wire_fields import WIRE, opaque_fields, set_apart

__all__ = [
    "DEPTH_LIMIT",
    "INTEGER_LIMIT",
    "MEDIA_TYPES",
    "NO_ARGUMENTS",
    "REDACTED",
    "SIZE_LIMIT",
    "TIME_KEYS",
    "UNKNOWN_TOOL",
    "WIRE",
    "Columns",
    "GivenMessage",
    "Media",
    "Message",
    "Prepared",
    "StoredCall",
    "as_object",
    "assemble",
    "changed",
    "content_digest",
    "content_text",
    "dated_digest",
    "decode",
    "decode_as",
    "digest_version",
    "encode",
    "is_integer",
    "is_model",
    "is_neutral",
    "is_redacted",
    "is_unreadable",
    "join_call",
    "media_in",
    "media_of",
    "moment_of",
    "neutral_id",
    "opaque_fields",
    "owned",
    "owned_value",
    "part_text",
    "prepare",
    "problem_of",
    "set_apart",
    "taken_apart",
    "tells_no_time",
    "utf8_size",
    "without_words",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
        columns=(
            "Columns Message StoredCall assemble content_digest content_text dated_digest "
            "digest_version join_call part_text"
        ),
        json_text=(
            "DEPTH_LIMIT INTEGER_LIMIT SIZE_LIMIT decode decode_as encode is_integer problem_of "
            "utf8_size"
        ),
        media="MEDIA_TYPES Media changed is_unreadable media_in media_of",
        wire_fields="WIRE opaque_fields set_apart",
        copying="owned owned_value",
        prepared_messages=(
            "TIME_KEYS GivenMessage Prepared as_object is_model moment_of prepare taken_apart "
            "tells_no_time"
        ),
        redacted_messages=(
            "NO_ARGUMENTS REDACTED UNKNOWN_TOOL is_neutral is_redacted neutral_id without_words"
        ),
    )
