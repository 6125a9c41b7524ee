"""The chunks of a provider's stream, put together to the answer that it would have returned whole.

A stream is recognized by its first chunk. Chunks are those of the clients of OpenAI (chat and
Responses), Anthropic and Gemini, as dicts. Events that say nothing about the answer are ignored, so
those that a provider adds later do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from ..errors import InvalidValue, quote_value
from ..messages import Message
from ..text import parse_object
from .response_usage import MODEL_KEYS, USAGE_KEYS


class TextDelta(NamedTuple):
    """A text that came for a key of a message in the chat format: ``content`` or ``reasoning``."""

    key: str
    text: str


class ChunkReader:
    """The received part of an answer in one format.

    ``told`` is the model and the usage, as far as they are known; ``is_whole`` tells whether the
    stream has reached its end.
    """

    format = ""
    provider: str | None = None

    def __init__(self) -> None:
        self.told: Message = {}
        self.is_whole = False

    @property
    def response(self) -> Message | None:
        """The facts of an answer, as a response has them; None as long as no usage is."""
        return None if self.told.keys().isdisjoint(USAGE_KEYS) else dict(self.told)

    @property
    def model(self) -> str | None:
        """The model that the stream names."""
        return next(filter(None, map(self.told.get, MODEL_KEYS)), None)

    def add(self, chunk: Message) -> Iterator[TextDelta]:
        """Add a chunk, and yield the texts in it."""
        raise NotImplementedError

    def list_messages(self) -> list[Message]:
        """Return the messages of the answer, as its format writes them."""
        raise NotImplementedError

    def _tell(self, response: Mapping[str, Any], *keys: str) -> None:
        """Keep the model and the usage in a chunk; later usages add to earlier ones."""
        for key in keys:
            value = response.get(key)
            if isinstance(value, Mapping):
                before = self.told.get(key) or {}
                new = {name: each for name, each in value.items() if each is not None}
                self.told[key] = {**before, **new}
            elif value is not None:
                self.told[key] = value


class ChatChunks(ChunkReader):
    """Chunks of OpenAI's chat, and of servers that speak it."""

    format = "openai"
    TEXTS: ClassVar = {
        "content": "content",
        "reasoning_content": "reasoning",
        "reasoning": "reasoning",
    }
    OTHER_TEXTS = ("refusal",)

    def __init__(self) -> None:
        super().__init__()
        self._message: Message = {"role": "assistant", "content": None}
        self._calls: dict[int, Message] = {}

    def add(self, chunk: Message) -> Iterator[TextDelta]:
        """Add a chunk: of several choices the first one counts."""
        self._tell(chunk, "model", "usage")
        self.is_whole = "usage" in self.told
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or {}
            for key in (*self.TEXTS, *self.OTHER_TEXTS):
                text = delta.get(key)
                if text and isinstance(text, str):
                    self._message[key] = (self._message.get(key) or "") + text
                    if key in self.TEXTS:
                        yield TextDelta(self.TEXTS[key], text)
            for call in delta.get("tool_calls") or ():
                self._add_call(call)

    def _add_call(self, delta: Message) -> None:
        """Add the part of a call; servers that number none send whole calls, each with its id."""
        last = max(self._calls, default=-1)
        place = delta.get("index")
        if not isinstance(place, int):
            is_next = bool(delta.get("id")) or last < 0
            place = last + 1 if is_next else last
        call = self._calls.setdefault(place, {"id": None, "type": "function"})
        for key, value in delta.items():
            if key == "index" or value is None:
                continue
            if isinstance(value, Mapping):  # the function, or a tool's own kind of call
                held = call.setdefault(key, {})
                for name, text in value.items():
                    grows = name in ("arguments", "input") and isinstance(held.get(name), str)
                    held[name] = held[name] + (text or "") if grows else text
            else:
                call[key] = value

    def list_messages(self) -> list[Message]:
        """Return the message."""
        calls = [self._calls[place] for place in sorted(self._calls)]
        return [{**self._message, "tool_calls": calls} if calls else dict(self._message)]


class AnthropicChunks(ChunkReader):
    """Events of Anthropic's messages."""

    format, provider = "anthropic", "anthropic"
    DELTAS: ClassVar = {
        "text_delta": ("text", "content"),
        "thinking_delta": ("thinking", "reasoning"),
        "signature_delta": ("signature", None),
        "input_json_delta": ("partial_json", None),
    }
    """Type of a delta → its key, which is that of the block, and the key of the text in a chat."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Message] = {}
        self._inputs: dict[int, str] = {}

    def add(self, chunk: Message) -> Iterator[TextDelta]:
        """Add an event."""
        kind, place = chunk.get("type"), chunk.get("index", -1)
        if kind == "message_start":
            self._tell(chunk.get("message") or {}, "type", "model", "usage")
        elif kind == "message_delta":
            self._tell(chunk, "usage")
            self.is_whole = True
        elif kind == "content_block_start":
            block = chunk.get("content_block") or {}
            self._blocks[place] = {key: each for key, each in block.items() if each is not None}
        elif kind == "content_block_delta" and place in self._blocks:
            delta, block = chunk.get("delta") or {}, self._blocks[place]
            if delta.get("type") == "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
            key, shown = self.DELTAS.get(str(delta.get("type")), ("", None))
            text = str(delta.get(key) or "")
            if key == "partial_json":
                self._inputs[place] = self._inputs.get(place, "") + text
            elif key:
                block[key] = str(block.get(key) or "") + text
                if shown and text:
                    yield TextDelta(shown, text)

    def list_messages(self) -> list[Message]:
        """Return the message; an empty text is no block that the API takes back."""
        blocks = (
            {**block, "input": parse_object(self._inputs[place])}
            if place in self._inputs
            else block
            for place, block in sorted(self._blocks.items())
        )
        said = [each for each in blocks if each.get("type") != "text" or each.get("text")]
        return [{"role": "assistant", "content": said}]


class ResponsesChunks(ChunkReader):
    """Events of OpenAI's Responses: each item of the output is a message of its own.

    A message that the stream has not ended is ``incomplete``, with the text that came.
    """

    format, provider = "responses", "openai"
    TEXTS: ClassVar = {
        "response.output_text.delta": "content",
        "response.refusal.delta": "content",
        "response.reasoning_summary_text.delta": "reasoning",
        "response.reasoning_text.delta": "reasoning",
    }

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, Message] = {}
        self._texts: dict[int, str] = {}

    def add(self, chunk: Message) -> Iterator[TextDelta]:
        """Add an event."""
        kind, response = str(chunk.get("type")), chunk.get("response") or {}
        self._tell(response, "object", "model", "usage")
        if kind == "response.output_item.done":
            self._items[chunk.get("output_index", len(self._items))] = chunk.get("item") or {}
        elif kind in ("response.completed", "response.incomplete"):
            self.is_whole = True
            self._items = dict(enumerate(response.get("output") or self._items.values()))
            self._texts.clear()
        elif kind in self.TEXTS and chunk.get("delta"):
            key, text = self.TEXTS[kind], str(chunk["delta"])
            if key == "content":
                place = chunk.get("output_index", len(self._items))
                self._texts[place] = self._texts.get(place, "") + text
            yield TextDelta(key, text)

    def list_messages(self) -> list[Message]:
        """Return the items that are whole, and the text of the others."""
        begun = self._texts if self._texts or self._items else {0: ""}
        items = {place: _build_begun_item(text) for place, text in begun.items()} | self._items
        return [dict(item) for _, item in sorted(items.items())]


def _build_begun_item(text: str) -> Message:
    """Return the item of a message that broke off."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "incomplete", "content": content}


class GeminiChunks(ChunkReader):
    """Responses of Gemini, each a part of the whole."""

    format, provider = "gemini", "google"

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Message] = []

    def add(self, chunk: Message) -> Iterator[TextDelta]:
        """Add a chunk: of several candidates the first one counts."""
        self._tell(chunk, "model_version", "modelVersion", "usage_metadata", "usageMetadata")
        for candidate in (chunk.get("candidates") or ())[:1]:
            self.is_whole |= bool(candidate.get("finishReason") or candidate.get("finish_reason"))
            for part in (candidate.get("content") or {}).get("parts") or ():
                new = {key: value for key, value in part.items() if value is not None}
                text = new.get("text")
                if isinstance(text, str):
                    if text:
                        yield TextDelta("reasoning" if new.get("thought") else "content", text)
                    last = self._parts[-1] if self._parts else {}
                    is_plain = new.keys() | last.keys() <= {"text", "thought"}
                    if is_plain and "text" in last and last.get("thought") == new.get("thought"):
                        last["text"] += text
                        continue
                if new:
                    self._parts.append(new)

    def list_messages(self) -> list[Message]:
        """Return the content."""
        parts = [each for each in self._parts if each != {"text": ""}]
        return [{"role": "model", "parts": parts}]


_READERS: tuple[tuple[Callable[[Message], bool], type[ChunkReader]], ...] = (
    (lambda chunk: "choices" in chunk, ChatChunks),
    (lambda chunk: bool(chunk.keys() & {"candidates", "usageMetadata"}), GeminiChunks),
    (lambda chunk: bool(chunk.keys() & {"usage_metadata", "prompt_feedback"}), GeminiChunks),
    (lambda chunk: str(chunk.get("type")).startswith("response."), ResponsesChunks),
    (
        lambda chunk: str(chunk.get("type")).startswith(("message_", "content_block_", "ping")),
        AnthropicChunks,
    ),
)
"""The keys of the first chunk of a stream, and the reader of the stream."""


def read_chunk(reader: ChunkReader | None, given: object) -> tuple[ChunkReader, list[TextDelta]]:
    """Add a chunk of a provider's client to a reader (None: a new one); return it and the texts.

    Raises InvalidValue.
    """
    chunk = _dump_chunk(given)
    reader = reader or _choose_reader(chunk)
    try:
        return reader, list(reader.add(chunk))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidValue(f"a chunk cannot be read: {quote_value(chunk)}") from error


def _dump_chunk(chunk: object) -> Message:
    """Return a chunk of a provider's client as an object. Raises InvalidValue."""
    if isinstance(chunk, Mapping):
        return dict(chunk)
    dump = getattr(chunk, "model_dump", None)
    if callable(dump):
        return dict(dump(mode="json", exclude_none=True, warnings=False))
    raise InvalidValue(f"a chunk of a stream is an object of a client, not {quote_value(chunk)}")


def _choose_reader(chunk: Message) -> ChunkReader:
    """Return a reader for the stream that begins with a chunk. Raises InvalidValue."""
    for is_of, reader in _READERS:
        if is_of(chunk):
            return reader()
    raise InvalidValue(
        f"{quote_value(chunk)} is no chunk of a stream of OpenAI (chat or Responses), Anthropic or "
        "Gemini; `write` adds a text"
    )
