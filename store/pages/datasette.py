"""Metadata for Datasette: what views and columns mean, facets, and queries that are ready."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from .page_rendering import FOLDER
from .sql import load_ready_queries

COLUMN_UNITS = {"seconds": "second"}
"""The units of columns, in the words of Datasette."""


def build_datasette_metadata(database: str, columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return metadata for Datasette, which calls the store ``database``, after its file.

    ``columns`` are those of each view, as `store.inspection.views` returns them.
    """
    described = tomllib.loads((FOLDER / "views.toml").read_text("utf-8"))
    tables = {
        name: describe_view(view, names, described["columns"])
        for name, names in columns.items()
        for view in [described["views"][name]]
    }
    queries = {
        re.sub(r"\W+", "_", each.question.lower()).strip("_"): {
            "title": each.question,
            "sql": each.sql,
        }
        for each in load_ready_queries()
    }
    return {
        "title": "Conversations",
        "description": "A store of conversations. Times are UTC, positions begin at 1.",
        "databases": {database: {"tables": tables, "queries": queries}},
    }


def describe_view(
    view: Mapping[str, Any], names: Sequence[str], columns: Mapping[str, str]
) -> dict[str, Any]:
    """Return the metadata of a view with these columns."""
    meanings = {**columns, **view.get("columns", {})}
    told = {
        "description": view["description"],
        "columns": {name: meanings[name] for name in names},
        "units": {name: unit for name, unit in COLUMN_UNITS.items() if name in names},
        "facets": view.get("facets", []),
    }
    return told | ({"sort_desc": view["sort"]} if "sort" in view else {})
