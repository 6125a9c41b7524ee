"""Messages as HTML: nothing of a message acts, and everything that it says is there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from html_reading import list_hostile_texts, read_page

from store import Store
from store.html import (
    Alternatives,
    Band,
    CallEnd,
    ShownMessage,
    render_markdown,
    render_messages,
    render_session_page,
)
from store.html.source_code import render_code

pytestmark = pytest.mark.sqlite_only
PNG = "iVBORw0KGgo="
HOSTILE = list_hostile_texts("http://127.0.0.1:9")


def call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Return a call in the chat shape."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def hostile_messages(text: str) -> list[dict[str, Any]]:
    """Return messages that say a text in every place that is shown, in the shapes of providers."""
    return [
        {"role": "user", "content": text},
        {"role": text, "content": [{"type": text, text: text}, text, 7, {"text": text}]},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": text}, {"type": "text", "text": text}],
            "reasoning_content": text,
            "tool_calls": [
                call("a", text, json.dumps({text: text, "command": text, "old_string": text})),
                call("b", "Write", json.dumps({"file_path": f"a.py{text}", "content": text})),
                call("c", "x", text),
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": text, "messageStatus": "error"},
        {"role": "tool", "tool_call_id": text, "content": [{"type": "text", "text": text}]},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": text}},
                {"type": "image_url", "image_url": {"url": f"data:image/svg+xml;base64,{PNG}"}},
                {"type": "image_url", "image_url": {"url": f"data:{text};base64,{PNG}"}},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": text},
                },
                {"type": "tool_result", "tool_use_id": "b", "content": text, "is_error": True},
            ],
        },
        {"type": "function_call", "call_id": "d", "name": text, "arguments": text},
        {"type": "function_call_output", "call_id": "d", "output": text},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]},
        {"role": "model", "parts": [{"text": text}, {"functionCall": {"name": text, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": text, "response": {"o": text}}}]},
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_acts_on_a_page(text: str) -> None:
    """Wherever it stands: no element, attribute, link or picture of the page is the text's."""
    shown = [
        ShownMessage(number, each, 1, (text,), text, {0: CallEnd(True, 1.0)})
        for number, each in enumerate(hostile_messages(text))
    ]
    apart = [[each._replace(anchor=f"x{way}-{each.seq}") for each in shown] for way in range(3)]
    items = [*shown, Band(text, text, apart[0]), Alternatives("s1", 0, apart[1:])]
    page = "".join(render_session_page(text, [(text, text)], items))
    elements = read_page(page).elements
    assert elements.count("style") == elements.count("main") == elements.count("h1") == 1
    assert elements.count("input") == 2
    assert "img" not in elements


TALK = [
    ShownMessage(1, {"role": "user", "content": "Read **a.py**, please."}, 1_764_270_000_000),
    ShownMessage(
        2,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me look."},
                {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "a.py"}},
                {"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
        margin=("1,200 in",),
        ends={1: CallEnd(True, 2.5)},
    ),
    ShownMessage(
        3,
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "u", "content": "no such folder"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                        }
                    ],
                },
            ],
        },
    ),
    ShownMessage(4, {"role": "assistant", "content": "There is `none`."}),
]


def test_a_result_stands_with_its_call() -> None:
    """The one that failed is open; a picture is its own bytes; each position can be linked to."""
    page = "".join(render_messages(TALK))
    reader = read_page(page)
    assert page.count("<article") == 3
    assert {"m1", "m2", "m3", "m4"} == {*reader.ids}
    assert f'<img src="data:image/png;base64,{PNG}"' in page
    (failed,) = [each for each in page.split("<details") if " open" in each.split(">")[0]]
    assert "no such folder" in failed
    assert "2.5 s" in failed
    assert "<strong>a.py</strong>" in page
    assert "1,200 in" in page


def test_what_is_hidden_and_what_was_left_can_be_opened() -> None:
    """A band has the summary and the messages, alternatives have one radio button each."""
    other = [ShownMessage(2, {"role": "assistant", "content": "No."}, anchor="s2-0-2")]
    items = [
        Band("Compacted", "In **short**", TALK[:1]),
        Alternatives("s2", 1, [other, [TALK[3]._replace(seq=2)]]),
    ]
    page = "".join(render_messages(items))
    assert read_page(page).elements.count("input") == 2
    assert page.index("<strong>short</strong>") < page.index("<strong>a.py</strong>")
    assert "2/2" in page
    assert page.count("checked") == 1


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a\n\nb & c", "<p>a</p>\n<p>b &amp; c</p>"),
        (
            "[x](https://a.example)",
            '<p><a href="https://a.example" rel="noopener noreferrer">x</a></p>\n',
        ),
        ("[x](store/a.py)", '<p><span class="link" title="store/a.py">x</span></p>\n'),
        ("# A", "<h3>A</h3>\n"),
        ("```py\n1\n```", '<pre><code><span class="mi">1</span>\n</code></pre>\n'),
    ],
)
def test_markdown_is_read(text: str, html: str) -> None:
    """As people write it to models."""
    assert render_markdown(text) == html


def test_words_that_are_taken_out_are_in_no_cache_of_code(store: Store) -> None:
    """Colored code is cached until words are removed from any session."""
    text = "the_pass_phrase = 'hunter2'  # of this test alone"
    before = render_code(text, "python")
    assert render_code(text, "python") is before
    store.append("coded", {"role": "user", "content": text}, create=True)
    store.redact("coded", 1, "asked for")
    assert render_code(text, "python") is not before
