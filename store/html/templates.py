"""The templates and the style sheet, which are files; every value in a template is escaped."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .shown_text import clean_value

TEMPLATE_FOLDER = Path(__file__).parent / "files"
"""The folder of the templates."""


def make_environment(*folders: Path) -> Environment:
    """Return an environment for templates in some folders, and then those of messages.

    Values are escaped and have no acting characters; a name that is not given is an error.
    """
    return Environment(
        loader=FileSystemLoader([*folders, TEMPLATE_FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=1)
def _load_macros() -> Any:
    return make_environment().get_template("messages.html").module


def find_macro(name: str) -> Callable[..., Markup]:
    """Return a macro of the templates of messages."""
    macro: Callable[..., Markup] = getattr(_load_macros(), name)
    return macro


@lru_cache(maxsize=1)
def load_style_sheet() -> str:
    """Return the style sheet of messages and pages."""
    return (TEMPLATE_FOLDER / "style.css").read_text(encoding="utf-8")
