"""Messages as programs give and get them: their types, and pure functions that read them."""

from __future__ import annotations

from ..messages import (
    GivenMessage,
    Message,
    extract_content_text,
    extract_part_text,
    find_message_time,
    is_redacted,
    select_opaque_fields,
)

__all__ = [
    "GivenMessage",
    "Message",
    "extract_content_text",
    "extract_part_text",
    "find_message_time",
    "is_redacted",
    "select_opaque_fields",
]
