"""Exports of ChatGPT.

`nodes` translates a node; `reading` makes a tree of them.
"""

from .reading import has_chatgpt_nodes, parse_chatgpt

__all__ = ["has_chatgpt_nodes", "parse_chatgpt"]
