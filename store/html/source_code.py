"""Source code with colors, in a few languages and up to a length, so that no text takes long."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from ..text import clearable_cache
from .shown_text import clean_text

LANGUAGES = {
    "bash": "bash sh shell zsh",
    "c": "c h",
    "console": "console shell-session",
    "cpp": "cpp c++ cc hpp cxx",
    "csharp": "csharp c# cs",
    "css": "css",
    "diff": "diff patch",
    "docker": "docker dockerfile",
    "go": "go golang",
    "html": "html htm svg vue",
    "ini": "ini cfg conf",
    "java": "java",
    "javascript": "javascript js mjs cjs jsx",
    "json": "json jsonc jsonl",
    "kotlin": "kotlin kt",
    "lua": "lua",
    "make": "make makefile mk",
    "php": "php",
    "python": "python py python3 pyi",
    "r": "r",
    "ruby": "ruby rb",
    "rust": "rust rs",
    "scss": "scss",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "typescript": "typescript ts tsx",
    "xml": "xml",
    "yaml": "yaml yml",
}
"""The languages that get colors, by Pygments' names, with the names and endings they go by."""
LONGEST_COLORED = 20_000
"""Characters of a piece of code; a longer one has no colors."""

_by_name = {name: language for language, names in LANGUAGES.items() for name in names.split()}
_formatter = HtmlFormatter(nowrap=True)


def find_language(name: str) -> str | None:
    """Return the language of a name, as of a fence or a file; None for one without colors."""
    last = name.strip().lower().rpartition("/")[2]
    return _by_name.get(last.rpartition(".")[2])


@lru_cache(maxsize=64)
def _load_lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@clearable_cache(512)
def render_code(text: str, language: str = "") -> Markup:
    """Return source code as HTML for the inside of a ``pre``.

    ``language`` is a name or the path of a file; code of an unknown one, or a long one, has no
    colors.
    """
    found = find_language(language)
    shown = clean_text(text)
    if found is None or len(shown) > LONGEST_COLORED:
        return escape(shown)
    return Markup(highlight(shown, _load_lexer(found), _formatter))  # noqa: S704 - it escapes
