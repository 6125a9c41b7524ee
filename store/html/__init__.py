"""Stored messages as HTML that is safe to show, whatever they say.

Pages and notebooks are made here: the calling rooms choose the contents (`ShownMessage`, `Band`,
`Alternatives`), this one how. Templates and the style sheet are files in ``templates``. A message
adds no script, no element and no attribute of its own: texts are escaped, Markdown is read without
HTML, links lead to the web or to a mailbox, and pictures are their own bytes. Nothing is fetched.
Every caller imports it on first use, as Jinja2, Pygments and the reader of Markdown are slow to
load.
"""

from __future__ import annotations

from .flow import Alternatives, Band, CallEnd, Item, ShownMessage, is_result_message
from .markdown_text import render_markdown
from .message_parts import can_show_picture
from .notebooks import NotebookTable, describe_message, render_one_message, render_record
from .pages import render_frame, render_messages, render_session_page
from .source_code import render_code
from .templates import TEMPLATE_FOLDER, load_style_sheet, make_environment

__all__ = [
    "TEMPLATE_FOLDER",
    "Alternatives",
    "Band",
    "CallEnd",
    "Item",
    "NotebookTable",
    "ShownMessage",
    "can_show_picture",
    "describe_message",
    "is_result_message",
    "load_style_sheet",
    "make_environment",
    "render_code",
    "render_frame",
    "render_markdown",
    "render_messages",
    "render_one_message",
    "render_record",
    "render_session_page",
]
