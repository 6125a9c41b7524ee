"""The database of a store, for tools that open no store: its files, its schema, its tools."""

from __future__ import annotations

from ..database import (
    MAX_PURGE_SECONDS,
    SCHEMA_HEAD,
    Database,
    Upgrade,
    get_store_files,
    is_store_file,
    is_write_protected,
    upgrade_schema,
)
from ..history import load_tool_kinds

__all__ = [
    "MAX_PURGE_SECONDS",
    "SCHEMA_HEAD",
    "Database",
    "Upgrade",
    "get_store_files",
    "is_store_file",
    "is_write_protected",
    "load_tool_kinds",
    "upgrade_schema",
]
