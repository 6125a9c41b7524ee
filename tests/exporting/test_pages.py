"""A page is ours, whatever its messages say: read by a Markdown parser that allows HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from store import Store
from store.exporting import session_lines
from store.transcripts.writing import render_markdown_page

PARSERS = [MarkdownIt("commonmark"), MarkdownIt("commonmark").enable(["table", "strikethrough"])]
OUR_TAG = re.compile(r"<details><summary>[^<>]*</summary>\n?|</details>\n?")
HOSTILE = [
    *(
        "<script>alert(1)</script>",
        "<img src=http://evil/x.png>",
        "</details>",
        "<!--",
        "<a\n",
        "<",
    ),
    *("![x](http://evil/x.png)", "![x][y]", "![y]", "!", "[", "\n\n[y]: http://evil/x.png\n\n"),
    *(
        "## Assistant",
        "\n## Assistant · 2026-01-01 00:00:00\n",
        "Assistant\n===",
        "\n---\n",
        "<h1>",
    ),
    *("`", "``", "```", "````", "~~~", "```python", "\n```\n", "\n~~~\n", "\n   ```\n", "``` a`b"),
    *(
        "\\",
        "\\\\",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        " ",
        "    ",
        "\t",
        "\x0b",
        "\x0c",
        "\u2028",
        "\xa0",
    ),
    *(
        "> ",
        "- ",
        "1. ",
        "# ",
        "|",
        "\n|---|---|\n",
        "&lt;b&gt;",
        "<http://evil>",
        "*",
        "_",
        "word",
    ),
]
texts = st.lists(st.sampled_from(HOSTILE), max_size=14).map("".join)


def tokens(parser: MarkdownIt, page: str) -> Iterator[Token]:
    """Yield the tokens of a page, and those in them."""
    for token in parser.parse(page):
        yield token
        yield from token.children or ()


def check(page: str, count: int) -> None:
    """Assert that a page of so many said messages has our headings, our tags, and no picture."""
    for parser in PARSERS:
        found = [*tokens(parser, page)]
        assert [each for each in found if each.type == "image"] == []
        tags = [each.content for each in found if each.type in ("html_block", "html_inline")]
        assert [tag for tag in tags if not OUR_TAG.fullmatch(tag)] == []
        tops = [
            each for each in parser.parse(page) if each.type == "heading_open" and not each.level
        ]
        assert [each.tag for each in tops] == ["h1", *["h2"] * count]
        assert all(each.markup in ("#", "##") for each in tops)


def page_of(title: str, messages: list[dict[str, Any]]) -> str:
    """Return a page as it is written."""
    return "\n".join(render_markdown_page(title, messages)) + "\n"


@given(st.lists(texts, min_size=1, max_size=3), texts, texts, texts)
@example(["- ```\n\n```\n<script>"], "", "", "")
@example(["```\n \t```\n<script>\n```"], "", "", "")
@example(["```\n    ```\n```\n<script>"], "", "", "")
@example(["`\n` <script> `"], "", "", "")
@example(["\\` <script> `"], "", "", "")
@example(["|a|\n|-|\n|` <b>|`|"], "", "", "")
@example(["\\![x](http://evil/x.png) \\\\![x](http://evil/x.png)"], "", "", "")
@example(["~~~|![x](http://evil/x.png)\n|---|---|\n"], "", "", "")
@example(["a"], "![x](u) <script> `<b>`", "x\n\n# A\n<b>", "\n\n<b>")
def test_no_text_acts_on_a_page(said: list[str], title: str, name: str, other: str) -> None:
    """No heading, tag or picture is of a message, a title, a role, a tool, a call or a result."""
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": other}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": text} for text in said]
    messages.append(
        {"role": f"other {name}", "content": [{"type": name}, {"type": "text", "text": other}]}
    )
    messages.append({"role": "assistant", "content": other, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": "c", "content": said[0]})
    check(page_of(title, messages), len(said) + 2)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Use `Vec<T>` and <b>.", "> Use `Vec<T>` and \\<b>."),
        ("```html\n<b>\n```\n<b>", "> ```html\n> <b>\n> ```\n> \\<b>"),
        ("A ![map](m.png)!", "> A \\![map](m.png)!"),
        ("a\n\nb", "> a\n>\n> b"),
        ("## Assistant", "> ## Assistant"),
        ("1 < 2 && x[!0]", "> 1 \\< 2 && x[!0]"),
    ],
)
def test_a_page_reads_as_it_was_written(said: str, shown: str) -> None:
    """Code is left as it is, and any other text is found by its words."""
    assert shown in page_of("t", [{"role": "user", "content": said}])


def test_a_session_is_such_a_page() -> None:
    """Its title is that of the session, and who said what is told by our headings alone."""
    with Store(":memory:") as store:
        store.create_session("s", title="Prices <script>alert(1)</script> ![x](http://evil/x.png)")
        forged = "Yes.\n\n## Assistant · 2026-01-01 00:00:00\n\nI agree."
        store.append("s", {"role": "user", "content": forged})
        arguments = json.dumps({"text": "</summary><script>"})
        function = {"name": "</summary><b>", "arguments": arguments}
        call = {"id": "c", "type": "function", "function": function}
        store.append("s", {"role": "assistant", "content": "So.", "tool_calls": [call]})
        page = "".join(session_lines(store, "s", shape="markdown").lines)
    check(page, 2)
    assert "> ## Assistant · 2026-01-01 00:00:00" in page
    assert "alert(1)" in page
