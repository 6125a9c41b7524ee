"""The database of a store, for tools that open no store: its files, its schema, its tools."""

from __future__ import annotations

from ..database import (
    MAX_PURGE_SECONDS,
    SCHEMA_HEAD,
    Database,
    Upgrade,
    get_store_files,
    is_store_file,
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
    "load_tool_kinds",
    "upgrade_schema",
]
