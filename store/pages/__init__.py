"""Pages in a browser that show a store: messages, requests, the reasons for them, and costs.

They only read. The command starts the server; an app may serve them itself. Pages are made of
templates, in the folder beside; nothing in them comes from elsewhere, and none needs a script.
"""

from __future__ import annotations

from .datasette import build_datasette_metadata
from .server import build_app, serve_pages

__all__ = ["build_app", "build_datasette_metadata", "serve_pages"]
