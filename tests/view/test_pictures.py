"""Pictures in tool results: never their base64 as text, the newest sent if asked for, others named.

Each shape that a program in use writes them in is one of `SHAPES`.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from store import Policy, Store
from store.messages import find_media, parse_media
from store.policy import POLICIES
from store.tokens import IMAGE_TOKENS

Message = dict[str, Any]
BYTES = base64.b64encode(bytes(750_000)).decode()
URL = f"data:image/png;base64,{BYTES}"
SHAPES: dict[str, Message] = {
    "chat": {"type": "image_url", "image_url": {"url": URL, "detail": "high"}},
    "chat, bare": {"type": "image_url", "image_url": URL},
    "responses": {"type": "input_image", "image_url": URL},
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": BYTES},
    },
    "mcp": {"type": "image", "data": BYTES, "mimeType": "image/png"},
    "ai sdk": {"type": "image", "image": URL, "mediaType": "image/png"},
}
NAMED = "[Not shown here: image/png, 750 kB]"
SEEN = {"type": "image_url", "image_url": {"url": URL}}


def session(store: Store, *contents: Any) -> str:
    """Make a session with a call, and its result, of each content."""
    session_id = store.create_session().id
    store.append(session_id, {"role": "user", "content": "look"})
    for number, content in enumerate(contents):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "shot"}}
        store.append(session_id, {"role": "assistant", "content": None, "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": content}
        store.append(session_id, result)
    return session_id


def english(**fields: Any) -> Policy:
    """A policy whose placeholders are English."""
    return Policy(language="en", **fields)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("format", ["openai", "react"])
def test_no_picture_goes_out_as_text(store: Store, shape: Message, format: str) -> None:  # noqa: A002
    """Its type and size do, beside the text of the result; the store keeps what went in."""
    content = [{"type": "text", "text": "done"}, shape]
    session_id = session(store, content)
    view = store.view(session_id, english(), format=format)
    sent = json.dumps(view.messages)
    assert BYTES[:99] not in sent
    assert NAMED in sent
    assert "done" in sent
    assert store.messages(session_id, 3)[0].message["content"] == content


@pytest.mark.parametrize(
    "content", [SHAPES["anthropic"], [{"type": "tool_result", "content": [SHAPES["mcp"]]}]]
)
def test_pictures_are_found_wherever_they_are(store: Store, content: Any) -> None:
    """As the content itself, and in the results that other shapes put into it."""
    sent = json.dumps(store.view(session(store, content), english()).messages)
    assert BYTES[:99] not in sent
    assert NAMED in sent


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_old_pictures_give_way_first(store: Store, shape: Message) -> None:
    """Those that stay follow behind the results of their calls, in a message of the user's."""
    session_id = session(store, [shape], [shape, shape], "no picture")
    view = store.view(session_id, english(picture_keep=1))
    assert [message["role"] for message in view.messages] == [
        *("user", "assistant", "tool", "assistant", "tool", "user", "assistant", "tool")
    ]
    assert view.messages[2]["content"] == [{"type": "text", "text": NAMED}]
    first, second = view.messages[4]["content"]
    assert first["text"] == NAMED
    assert second["text"] == "[image/png, 750 kB]"
    assert view.messages[5]["content"] == [SEEN]
    assert [entry.rule for entry in view.entries if entry.seq in (3, 5)] == ["picture"] * 2


def test_pictures_of_several_calls_follow_the_last_result(store: Store) -> None:
    """Nothing may stand between a message's calls and their results."""
    session_id = store.create_session().id
    calls = [{"id": each, "type": "function", "function": {"name": "shot"}} for each in "ab"]
    store.append(session_id, {"role": "assistant", "content": None, "tool_calls": calls})
    for each in "ab":
        content = [SHAPES["mcp"]]
        store.append(session_id, {"role": "tool", "tool_call_id": each, "content": content})
    view = store.view(session_id, english(picture_keep=9))
    assert [message["role"] for message in view.messages] == ["assistant", "tool", "tool", "user"]
    assert view.messages[3]["content"] == [SEEN, SEEN]


def test_pictures_count_as_pictures(store: Store) -> None:
    """A check and a view agree of one that is sent; of one that gave way the view says what it saved."""
    session_id = session(store, [SHAPES["mcp"]])
    kept, named = english(picture_keep=1), english()
    sent = store.view(session_id, kept)
    assert IMAGE_TOKENS < sent.stats.tokens < IMAGE_TOKENS + 50
    assert store.check(session_id, kept).tokens == sent.stats.tokens
    entry = store.view(session_id, named).entries[-1]
    assert entry.tokens < 20
    assert entry.tokens + entry.tokens_saved == sent.entries[-1].tokens
    assert entry.reason == "of pictures that are not among the newest 0, type and size are said"


def test_a_named_picture_is_no_loss_of_the_cache(store: Store) -> None:
    """Where none is ever sent: what stands for it is the same in every request."""
    session_id = session(store, [SHAPES["mcp"]], "x")
    store.record_usage(session_id, input=900, output=9)
    view = store.view(session_id, english())
    assert view.stats.unchanged_tokens == view.stats.tokens


def test_what_people_show_stays(store: Store) -> None:
    """A picture in a message of the user's is sent, whatever shape it came in."""
    session_id = store.create_session().id
    shapes = [*SHAPES.values()]
    store.append(session_id, {"role": "user", "content": shapes})
    (message,) = store.view(session_id, english()).messages
    assert [part["image_url"]["url"] for part in message["content"]] == [URL] * len(shapes)


def test_a_role_without_pictures_names_them(store: Store) -> None:
    """An API refuses one in what the assistant said."""
    session_id = store.create_session().id
    store.append(session_id, {"role": "assistant", "content": [SHAPES["chat"]]})
    (message,) = store.view(session_id, english()).messages
    assert message["content"] == [{"type": "text", "text": "[image/png, 750 kB]"}]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
            "[image, https://x/a.png]",
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            "[wav, 3 B]",
        ),
        ({"type": "audio", "data": "A" * 4000}, "[audio, 3 kB]"),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,QUI="}},
            "[application/pdf, 2 B]",
        ),
        ({"type": "document", "source": {"data": BYTES * 2}}, "[document, 1.5 MB]"),
        ({"type": "input_file", "filename": "a.pdf", "file_data": BYTES}, "[file, 750 kB]"),
    ],
)
def test_media_are_named_by_type_and_size(part: Message, named: str) -> None:
    """By the address where they are elsewhere."""
    (media,) = find_media([part])
    assert media.named() == {"type": "text", "text": named}


@pytest.mark.parametrize(
    "part",
    [
        None,
        "image",
        {"type": "text", "text": URL},
        {"type": "file", "name": "a.py", "size": 3},
        {"type": "image", "url": "https://x/a.png"},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": ["image"], "data": BYTES},
    ],
)
def test_what_is_no_media(part: object) -> None:
    """A result may itself be a list of objects of any kind, and nothing of these is replaced."""
    assert parse_media(part) is None


def test_a_request_with_a_picture_and_an_answer_of_two_items(store: Store) -> None:
    """One message more and one less than there are: each is still the one that it was."""
    session_id = session(store, [SEEN])
    thought = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}
    call = {"type": "function_call", "call_id": "c", "name": "Read", "arguments": "{}"}
    text = {"type": "output_text", "text": "a"}
    said = {"type": "message", "role": "assistant", "content": [text]}
    orphan = {"role": "tool", "tool_call_id": "o", "content": "done"}
    store.append(session_id, [{"role": "user", "content": "See @a.py"}, orphan])
    store.append(session_id, [thought, said, call], format="responses")
    policy = english(picture_keep=1)
    with Store(store.database.url, cache_bytes=0) as plain:
        sent, fresh = (each.context(session_id, policy=policy).messages for each in (store, plain))
    assert sent == fresh
    assert "You MUST read" in repr(sent)


# --- of the running turn --------------------------------------------------------------------------

READY = [name for name in POLICIES if name != "default"]
PROVIDERS = ("openai", "responses", "anthropic", "gemini")


def looks(store: Store, session_id: str, number: int, *pictures: Message) -> None:
    """Append a turn in which a tool gives pictures, and the model has not answered yet."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    content = [{"type": "text", "text": f"here is {number}"}, *pictures]
    store.append(session_id, {"role": "user", "content": f"look {number}"})
    store.append(session_id, {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append(session_id, {"role": "tool", "tool_call_id": f"c{number}", "content": content})


def picture(said: str) -> Message:
    """A picture of its own bytes, in Anthropic's shape."""
    data = base64.b64encode(said.encode()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def bytes_in(view: Any, *pictures: Message) -> list[bool]:
    """Whether a request holds each of some pictures."""
    sent = json.dumps(view.messages)
    return [each["source"]["data"] in sent for each in pictures]


@pytest.mark.parametrize("format", PROVIDERS)
@pytest.mark.parametrize("name", READY)
def test_the_running_turn_has_its_pictures(store: Store, name: str, format: str) -> None:  # noqa: A002
    """By every ready policy but the default profile; whether a view goes on or is made anew."""
    old, new, newer = map(picture, ("old", "new", "newer"))
    session_id = store.create_session().id
    looks(store, session_id, 1, old)
    assert bytes_in(store.view(session_id, Policy.named(name), format=format), old) == [True]
    store.append(session_id, {"role": "assistant", "content": "ok"})
    looks(store, session_id, 2, new, newer)
    view = store.view(session_id, Policy.named(name), format=format)
    stays = Policy.named(name).picture_keep != 0
    assert bytes_in(view, old, new, newer) == [stays, True, True]
    assert [entry.rule for entry in view.entries if entry.seq == 3] == [
        None if stays else "picture"
    ]
    with Store(store.database.url, cache_bytes=0) as plain:
        assert plain.view(session_id, Policy.named(name), format=format).messages == view.messages
    named = store.view(session_id, Policy(), format=format)
    assert bytes_in(named, old, new, newer) == [False] * 3


def test_a_finished_turn_has_its_pictures_named_in_the_policys_language(store: Store) -> None:
    """And the reason says that its turn is over."""
    session_id = store.create_session().id
    looks(store, session_id, 1, picture("old"))
    looks(store, session_id, 2, picture("new"))
    for language, text in (
        ("en", "[Not shown here: image/png, 3 B]"),
        ("zh", "[此处未显示:image/png,3 B]"),
    ):
        view = store.view(session_id, Policy.named("turns", language=language), format="responses")
        assert text in json.dumps(view.messages, ensure_ascii=False)
        (entry,) = (entry for entry in view.entries if entry.rule == "picture")
        assert (entry.seq, entry.reason) == (
            3,
            "of pictures of finished turns, type and size are said",
        )


def test_a_request_for_new_input_names_the_pictures_of_the_turn_before(store: Store) -> None:
    """The turn that a context begins is the running one."""
    session_id = store.create_session().id
    looks(store, session_id, 1, old := picture("old"))
    resumed = store.context(session_id, format="anthropic")
    assert bytes_in(resumed, old) == [True]
    store.append(session_id, {"role": "assistant", "content": "ok"})
    assert bytes_in(store.context(session_id, user_input="more", format="anthropic"), old) == [
        False
    ]


def test_a_picture_that_gave_way_costs_the_cache_once(store: Store) -> None:
    """When its turn ends; then what stands for it is the same in every request."""
    session_id = store.create_session().id
    policy = Policy.named("turns", tool_output=False)
    looks(store, session_id, 1, picture("old"))
    store.record_usage(session_id, input=900, output=9)
    store.append(
        session_id, [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "b"}]
    )
    first = store.view(session_id, policy)
    assert first.stats.unchanged_tokens < first.stats.tokens - first.entries[-1].tokens
    store.record_usage(session_id, input=900, output=9)
    second = store.view(session_id, policy)
    assert second.stats.unchanged_tokens == second.stats.tokens
