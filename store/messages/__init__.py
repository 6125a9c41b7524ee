"""Messages: split into columns when they are stored, and put together again when they are read.

Nothing here knows SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from .columns import (
        Columns,
        Message,
        StoredCall,
        assemble,
        content_text,
        digest_content,
        digest_row,
        find_digest_version,
        join_call,
        part_text,
    )
    from .copying import copy_message, copy_value
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
    from .media import MEDIA_TYPES, Media, find_media, is_unreadable, parse_media, replace_media
    from .prepared_messages import (
        TIME_KEYS,
        GivenMessage,
        PreparedMessage,
        find_message_time,
        has_no_time,
        is_model,
        prepare,
        prepare_object,
        to_object,
    )
    from .redacted_messages import (
        NO_ARGUMENTS,
        REDACTED,
        UNKNOWN_TOOL,
        is_neutral_id,
        is_redacted,
        neutral_id,
        redact_message,
    )
    from .wire_fields import WIRE, list_provider_data, opaque_fields

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
    "PreparedMessage",
    "StoredCall",
    "assemble",
    "content_text",
    "copy_message",
    "copy_value",
    "decode",
    "decode_as",
    "digest_content",
    "digest_row",
    "encode",
    "find_digest_version",
    "find_media",
    "find_message_time",
    "has_no_time",
    "is_integer",
    "is_model",
    "is_neutral_id",
    "is_redacted",
    "is_unreadable",
    "join_call",
    "list_provider_data",
    "neutral_id",
    "opaque_fields",
    "parse_media",
    "part_text",
    "prepare",
    "prepare_object",
    "problem_of",
    "redact_message",
    "replace_media",
    "to_object",
    "utf8_size",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        columns=(
            "Columns Message StoredCall assemble content_text digest_content digest_row "
            "find_digest_version join_call part_text"
        ),
        copying="copy_message copy_value",
        json_text=(
            "DEPTH_LIMIT INTEGER_LIMIT SIZE_LIMIT decode decode_as encode is_integer problem_of "
            "utf8_size"
        ),
        media="MEDIA_TYPES Media find_media is_unreadable parse_media replace_media",
        prepared_messages=(
            "TIME_KEYS GivenMessage PreparedMessage find_message_time has_no_time is_model "
            "prepare prepare_object to_object"
        ),
        redacted_messages=(
            "NO_ARGUMENTS REDACTED UNKNOWN_TOOL is_neutral_id is_redacted neutral_id redact_message"
        ),
        wire_fields="WIRE list_provider_data opaque_fields",
    )
