"""Pictures, sounds and files in a content: their types and sizes, and texts to replace them.

Their bytes are base64 text, a million characters for a screenshot, so they are never sent as text:
a format that has a part for them sends it, any other sends their type and size.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .columns import Message

MEDIA_TYPES = (
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "video_url"),
    *("file", "input_file", "document", "computer_screenshot"),
)
"""Types of the parts that hold media."""
TYPE_KEYS = ("media_type", "mimeType", "mimetype", "mime_type", "mediaType", "format")
"""Keys of the type of the bytes, in the shapes in use."""
URL_KEYS = ("url", "image_url", "image", "file_data", "video_url")
"""Keys of an address, which may be a data URL with the bytes themselves."""
DATA_KEYS = ("data", "file_data")
"""Keys of the base64 of the bytes alone."""
LINK_TYPES = ("image_url", "input_image", "video_url", "computer_screenshot")
"""Parts that are media even if they only link to them."""
MEDIA_TEXT = "[{type}, {size}]"
"""The text for media that a format has no part for; a text that is not base64 is shown itself."""

_DATA_SCHEME = "data:"
_BASE64_MARK = ";base64,"
_LONGEST_LINK = 200
_WEB_SCHEMES = ("https://", "http://")
_TEXT_PART_TYPES = frozenset(("text", "input_text", "output_text", "refusal"))
_URL_ALPHABET = str.maketrans("-_", "+/")


class Media(NamedTuple):
    """A picture, sound or file: its type, its address, and its base64 if it is at hand."""

    type: str
    url: str
    data: str | None = None

    @property
    def size(self) -> str:
        """The size in bytes, in readable form; the address if the part only links to the media."""
        if self.data is None:
            return self.url[:_LONGEST_LINK]
        count = len(self.data.rstrip("=")) * 3 // 4
        for unit, name in ((1_000_000, "MB"), (1_000, "kB")):
            if count >= unit:
                return f"{count / unit:.3g} {name}"
        return f"{count} B"

    @property
    def is_readable(self) -> bool:
        """Whether a provider can read it: it is base64, or has an address that it can open.

        Cleaned transcripts have `REDACTED!` or the like instead of pictures, and a request that
        contains one is refused for ever.
        """
        if self.data is None:
            return self.url.startswith(_WEB_SCHEMES)
        try:
            a2b_base64(self.data, strict_mode=True)
        except ValueError:
            return False
        return True

    def named(self, text: str | None = None) -> Message:
        """Return a text part that says its ``{type}`` and ``{size}``; None for the usual text."""
        size = self.size
        if text is None and self.data is not None and not self.is_readable:
            size = self.data[:_LONGEST_LINK]
        with_type = (MEDIA_TEXT if text is None else text).replace("{type}", self.type)
        return {"type": "text", "text": with_type.replace("{size}", size)}


MediaReplacer = Callable[[Media], Message | None]
"""A function that returns a replacement for media; None leaves them as they are."""


def parse_media(part: object) -> Media | None:
    """Return the media of a content part, in any of the shapes in use; None if it has none."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind not in MEDIA_TYPES or _is_text_document(part):
        return None
    fields = _flatten_part(part)
    url = find_text_under(fields, URL_KEYS)
    if url and url.startswith(_DATA_SCHEME) and _BASE64_MARK in url:
        told, _, data = url.removeprefix(_DATA_SCHEME).partition(_BASE64_MARK)
        plain = _normalize_base64(data)
        return Media(
            told or _guess_media_type(kind),
            url if plain is data else _render_data_url(told, plain),
            plain,
        )
    held = find_text_under(fields, DATA_KEYS)
    if held is not None:
        return _build_data_media(
            find_text_under(fields, TYPE_KEYS) or _guess_media_type(kind), held
        )
    links = kind in LINK_TYPES and url and not url.startswith(_DATA_SCHEME)
    return Media(_guess_media_type(kind), url) if links and url else None


def _is_text_document(part: Message) -> bool:
    """Tell a document that has plain text under the key of bytes."""
    source = part.get("source")
    return isinstance(source, dict) and source.get("type") == "text"


def replace_media(value: Any, change: MediaReplacer) -> Any:
    """Return a content, or any value in it, with a change applied to its media, the last one first.

    Returns the same value if nothing is changed.
    """
    found = parse_media(value)
    if found is not None:
        made = change(found)
        return value if made is None else made
    if isinstance(value, list):
        return _keep_if_same(value, [replace_media(each, change) for each in reversed(value)][::-1])
    if isinstance(value, dict):
        return _keep_if_same(
            value, {key: replace_media(held, change) for key, held in value.items()}
        )
    return value


def is_unreadable(value: Any) -> bool:
    """Tell a part that no provider can read, or that contains such a part."""
    if isinstance(value, list):
        return any(map(is_unreadable, value))
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if isinstance(kind, str) and kind in _TEXT_PART_TYPES:
        return False
    media = parse_media(value)
    if media is not None:
        return not media.is_readable
    return _promises_bytes(value) or any(map(is_unreadable, value.values()))


def _promises_bytes(part: Message) -> bool:
    """Tell a part that should have bytes, and has none."""
    if part.get("type") not in MEDIA_TYPES or _is_text_document(part):
        return False
    source, fields = part.get("source"), _flatten_part(part)
    is_base64 = isinstance(source, dict) and source.get("type") == "base64"
    return is_base64 or (find_text_under(fields, URL_KEYS) or "").startswith(_DATA_SCHEME)


def find_media(content: Any) -> list[Media]:
    """Return the media in a content, the first one first."""
    found: list[Media] = []
    replace_media(content, found.append)
    return found[::-1]


def _keep_if_same(value: Any, made: Any) -> Any:
    """Return the original value if the changed one is the same."""
    pairs = zip(_list_held_values(value), _list_held_values(made), strict=True)
    return value if all(old is new for old, new in pairs) else made


def _list_held_values(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


def _flatten_part(part: Message) -> Message:
    """Return the fields of a part and of the objects in it, which describe its media."""
    flat = dict(part)
    for held in part.values():
        if isinstance(held, dict):
            flat |= held
    return flat


def find_text_under(fields: Message, keys: tuple[str, ...]) -> str | None:
    """Return the first text that is not empty under some keys; None if there is none."""
    found = (fields.get(key) for key in keys)
    return next((each for each in found if isinstance(each, str) and each), None)


def _build_data_media(told: str, data: str) -> Media:
    plain = _normalize_base64(data)
    return Media(told, _render_data_url(told, plain), plain)


def _render_data_url(told: str, data: str) -> str:
    return f"{_DATA_SCHEME}{told}{_BASE64_MARK}{data}"


def _normalize_base64(data: str) -> str:
    """Return base64 in the alphabet that all accept; Gemini's client writes that of URLs."""
    return data.translate(_URL_ALPHABET) if "-" in data or "_" in data else data


def _guess_media_type(kind: str) -> str:
    """Return the media type, as far as the type of the part alone tells it."""
    return kind.removeprefix("input_").removesuffix("_url")
