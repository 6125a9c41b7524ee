"""Messages as programs send them to the APIs, kept in files of many shapes."""

from . import anthropic, openai

__all__ = ["anthropic", "openai"]
