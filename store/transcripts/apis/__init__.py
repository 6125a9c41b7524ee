"""Messages as programs send them to the APIs, kept in files of many shapes."""

from . import anthropic, exchanges, openai, responses

__all__ = ["anthropic", "exchanges", "openai", "responses"]
