"""Messages: split into columns when they are stored, and put together again when they are read.

Nothing here knows SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from .attached_bytes import (
        ATTACHED_FORM,
        ATTACHED_MARK,
        CONTENT_NUMBER,
        FIRST_CALL_NUMBER,
        LEAST_ATTACHED_LENGTH,
        REST_NUMBER,
        TEXT_SPAN,
        WHOLE_FORMS,
        AttachedBytes,
        attach_bytes,
        detach_bytes,
    )
    from .columns import (
        EMPTY_CALL_TEXT,
        PLAIN_FORMS,
        TIME_KEYS,
        Columns,
        GivenMessage,
        Message,
        PreparedMessage,
        StoredCall,
        TextSize,
        assemble_message,
        assemble_rows,
        copy_message,
        copy_value,
        decode_rest,
        detach_message,
        digest_content,
        digest_row,
        dump_to_object,
        encode_narrow_bytes,
        extract_content_text,
        extract_part_text,
        find_digest_version,
        find_message_time,
        has_no_time,
        is_model,
        join_call,
        make_columns,
        prepare_message,
        prepare_object,
    )
    from .json_text import (
        DEPTH_LIMIT,
        INTEGER_LIMIT,
        SIZE_LIMIT,
        count_utf8_bytes,
        decode,
        decode_as,
        encode,
        encode_checked,
        find_json_problem,
        is_integer,
    )
    from .media import (
        MEDIA_TYPES,
        Media,
        find_media,
        find_text_under,
        is_unreadable,
        parse_media,
        replace_media,
    )
    from .plain_messages import prepare_plain_message
    from .redacted_messages import (
        NO_ARGUMENTS,
        REDACTED_TEXT,
        UNKNOWN_TOOL,
        is_neutral_id,
        is_redacted,
        make_neutral_id,
        redact_message,
    )
    from .searched_texts import (
        CJK_RUN,
        LONGEST_TERM,
        SHORTEST_PART,
        WORD_PATTERN,
        build_server_forms,
        extract_name_lines,
        fold_text,
        join_message_texts,
        join_summary_texts,
        list_called_functions,
        normalize_text,
        split_cjk,
    )
    from .wire_fields import WIRE_KEY, list_provider_data, select_opaque_fields

__all__ = [
    "ATTACHED_FORM",
    "ATTACHED_MARK",
    "CJK_RUN",
    "CONTENT_NUMBER",
    "DEPTH_LIMIT",
    "EMPTY_CALL_TEXT",
    "FIRST_CALL_NUMBER",
    "INTEGER_LIMIT",
    "LEAST_ATTACHED_LENGTH",
    "LONGEST_TERM",
    "MEDIA_TYPES",
    "NO_ARGUMENTS",
    "PLAIN_FORMS",
    "REDACTED_TEXT",
    "REST_NUMBER",
    "SHORTEST_PART",
    "SIZE_LIMIT",
    "TEXT_SPAN",
    "TIME_KEYS",
    "UNKNOWN_TOOL",
    "WHOLE_FORMS",
    "WIRE_KEY",
    "WORD_PATTERN",
    "AttachedBytes",
    "Columns",
    "GivenMessage",
    "Media",
    "Message",
    "PreparedMessage",
    "StoredCall",
    "TextSize",
    "assemble_message",
    "assemble_rows",
    "attach_bytes",
    "build_server_forms",
    "copy_message",
    "copy_value",
    "count_utf8_bytes",
    "decode",
    "decode_as",
    "decode_rest",
    "detach_bytes",
    "detach_message",
    "digest_content",
    "digest_row",
    "dump_to_object",
    "encode",
    "encode_checked",
    "encode_narrow_bytes",
    "extract_content_text",
    "extract_name_lines",
    "extract_part_text",
    "find_digest_version",
    "find_json_problem",
    "find_media",
    "find_message_time",
    "find_text_under",
    "fold_text",
    "has_no_time",
    "is_integer",
    "is_model",
    "is_neutral_id",
    "is_redacted",
    "is_unreadable",
    "join_call",
    "join_message_texts",
    "join_summary_texts",
    "list_called_functions",
    "list_provider_data",
    "make_columns",
    "make_neutral_id",
    "normalize_text",
    "parse_media",
    "prepare_message",
    "prepare_object",
    "prepare_plain_message",
    "redact_message",
    "replace_media",
    "select_opaque_fields",
    "split_cjk",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        attached_bytes=(
            "ATTACHED_FORM ATTACHED_MARK CONTENT_NUMBER FIRST_CALL_NUMBER LEAST_ATTACHED_LENGTH "
            "REST_NUMBER TEXT_SPAN WHOLE_FORMS AttachedBytes attach_bytes detach_bytes"
        ),
        columns=(
            "EMPTY_CALL_TEXT PLAIN_FORMS TIME_KEYS Columns GivenMessage Message PreparedMessage "
            "StoredCall TextSize assemble_message assemble_rows copy_message copy_value "
            "decode_rest detach_message digest_content digest_row dump_to_object "
            "encode_narrow_bytes extract_content_text extract_part_text find_digest_version "
            "find_message_time has_no_time is_model join_call make_columns prepare_message "
            "prepare_object"
        ),
        json_text=(
            "DEPTH_LIMIT INTEGER_LIMIT SIZE_LIMIT count_utf8_bytes decode decode_as encode "
            "encode_checked find_json_problem is_integer"
        ),
        media=(
            "MEDIA_TYPES Media find_media find_text_under is_unreadable parse_media replace_media"
        ),
        plain_messages="prepare_plain_message",
        redacted_messages=(
            "NO_ARGUMENTS REDACTED_TEXT UNKNOWN_TOOL is_neutral_id is_redacted "
            "make_neutral_id redact_message"
        ),
        searched_texts=(
            "CJK_RUN LONGEST_TERM SHORTEST_PART WORD_PATTERN build_server_forms "
            "extract_name_lines fold_text join_message_texts join_summary_texts "
            "list_called_functions normalize_text split_cjk"
        ),
        wire_fields="WIRE_KEY list_provider_data select_opaque_fields",
    )
