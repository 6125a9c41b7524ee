"""Sessions of Gemini CLI and of Qwen Code, which grew from it: both hold the Gemini API's parts."""

from . import gemini_cli, qwen_code

__all__ = ["gemini_cli", "qwen_code"]
