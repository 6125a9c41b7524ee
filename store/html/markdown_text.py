"""Markdown as HTML: without HTML of its own, without pictures, with links that lead to the web."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from .shown_text import clean_text
from .source_code import render_code

LONGEST_MARKDOWN = 200_000
"""Characters that are read as Markdown; a longer text is shown as it is."""
HEADINGS_BELOW = 2
"""The levels of headings that a page has itself."""
LINK_SCHEMES = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)
"""How an address begins that a link may lead to."""

_MARKUP_SIGN = re.compile(r"[*_`\[\]<>|~\\#]|&[#\w]|^[ \t]|^[-+=:]|^\d+[.)]| {2}\n", re.MULTILINE)
"""What a text has to contain to be more than paragraphs."""
_PARAGRAPH_END = re.compile(r"\n{2,}")


def render_markdown(text: str) -> Markup:
    """Return a text in Markdown as HTML.

    HTML in it is shown as text, and a picture as its link. A link that leads neither to the web nor
    to a mailbox is shown as its text.
    """
    shown = clean_text(text).strip("\n")
    if len(shown) > LONGEST_MARKDOWN:
        return Markup('<pre class="plain">{}</pre>').format(shown)
    if not _MARKUP_SIGN.search(shown):
        return Markup("\n").join(map(_render_paragraph, _PARAGRAPH_END.split(shown)))
    # An entity may have become a character that acts
    return Markup(clean_text(_load_parser().render(shown)))  # noqa: S704 - it escapes


def _render_paragraph(text: str) -> Markup:
    return Markup("<p>{}</p>").format(text)


class _SafeRenderer(RendererHTML):
    """The renderer, with links, pictures, code and headings of its own."""

    # The parser adds up plain texts; some of its releases let a Markup escape what is before it.

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Return the beginning of a link, or of its text alone."""
        href = str(tokens[idx].attrs.get("href", ""))
        if not LINK_SCHEMES.match(href):
            return str(Markup('<span class="link" title="{}">').format(href))
        return str(Markup('<a href="{}" rel="noopener noreferrer">').format(href))

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Return the end of the same."""
        opens = (each for each in reversed(tokens[:idx]) if each.type == "link_open")
        href = str(next(opens).attrs.get("href", ""))
        return "</a>" if LINK_SCHEMES.match(href) else "</span>"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Return a piece of code."""
        language = (tokens[idx].info.split() or [""])[0]
        code = render_code(tokens[idx].content, language)
        return str(Markup("<pre><code>{}</code></pre>\n").format(code))

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Return the beginning of a heading, below those of the page."""
        return f"<h{_shift_level(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Return the end of the same."""
        return f"</h{_shift_level(tokens[idx])}>\n"


def _shift_level(token: Token) -> int:
    return min(6, int(token.tag[1:]) + HEADINGS_BELOW)


def _allow_any_link(url: str) -> bool:
    """Take any address: the renderer judges them, so that the text of a link is shown as such."""
    return isinstance(url, str)


@lru_cache(maxsize=1)
def _load_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}, renderer_cls=_SafeRenderer)
    parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    parser.validateLink = _allow_any_link  # type: ignore[method-assign]
    return parser
