"""Answers that broke off in a view: as a policy asks for it, where they belong, and always valid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from store import Policy, Store
from tests.formats.judge import complaints

SHOWN = Policy(show_drafts=True, language="en")
NOTICE = "[This answer was interrupted here]"
CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "a.py"}


def user(text: str) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    """A whole answer."""
    return {"role": "assistant", "content": text}


@pytest.fixture
def chat(url: str) -> Iterator[Store]:
    """A store with a session in which something was asked."""
    with Store(url, durability="normal") as store:
        store.create_session("s")
        store.append("s", user("why?"))
        yield store


def broken(store: Store, text: str, session: str = "s") -> None:
    """Let an answer break off."""
    with suppress(KeyError), store.streaming(session, {"role": "assistant"}) as streamed:
        streamed.write(text)
        raise KeyError


def told(store: Store, session: str = "s", **options: Any) -> list[str]:
    """What a view says, message by message; a draft without its notice."""
    view = store.view(session, SHOWN, **options)
    said = [str(each["content"]) for each in view.messages]
    return [each.replace(f"\n\n{NOTICE}", " …") for each in said]


def test_a_draft_is_shown_where_it_is_asked_for(chat: Store) -> None:
    """As an assistant's message that says that it was interrupted; its entry says why it is there."""
    broken(chat, "Because")
    chat.append("s", user("go on"))
    assert len(chat.view("s").messages) == 2
    view = chat.view("s", SHOWN)
    assert view.messages[1] == answer(f"Because\n\n{NOTICE}")
    entry = view.entries[1]
    assert (entry.seq, entry.rule) == (None, "draft")
    assert chat.drafts("s")[0].draft in entry.reason
    assert view.stats.replaced == {"draft": 1}
    assert view.stats.first_changed == 2
    assert view.stats.tokens == sum(each.tokens for each in view.entries)


BROKEN = [
    ("gemini", {"role": "model", "parts": []}, {"parts": [{"text": "Because"}]}),
    ("responses", {"type": "message", "role": "assistant"}, {"content": "Because"}),
    ("anthropic", {"role": "assistant"}, {"content": [{"type": "text", "text": "Because"}]}),
]


@pytest.mark.parametrize(("named", "began", "came"), BROKEN)
def test_a_draft_of_any_format_says_what_came(
    chat: Store, named: str, began: dict[str, Any], came: dict[str, Any]
) -> None:
    """In its own words, as soon as it has any."""
    with suppress(KeyError), chat.streaming("s", began, format=named) as answer:
        assert told(chat) == ["why?"]
        answer.update(came)
        raise KeyError
    assert told(chat) == ["why?", "Because …"]


def test_the_language_of_the_notice(chat: Store) -> None:
    """Is that of the policy, unless it is given."""
    broken(chat, "Because")
    for policy, notice in (
        (Policy(show_drafts=True), "[此回答在此中断]"),
        (Policy(show_drafts=True, draft_notice="(cut)"), "(cut)"),
    ):
        assert chat.view("s", policy).messages[-1]["content"] == f"Because\n\n{notice}"


def test_an_answer_in_its_place_ends_it(chat: Store) -> None:
    """Also a part of one that was finished; and one that says nothing is not shown."""
    broken(chat, "Be")
    broken(chat, "")
    assert told(chat) == ["why?", "Be …"]
    chat.append("s", [answer("Because."), user("ah")])
    assert told(chat) == ["why?", "Because.", "ah"]
    assert told(chat, at=1) == ["why?", "Be …"]


def test_it_is_shown_on_lines_through_what_it_answers(chat: Store) -> None:
    """Of its session: not where the question is another one, again where it is the same."""
    chat.append("s", [answer("because"), user("and?")])
    broken(chat, "and so")
    chat.replace("s", 2, user("or?"))
    assert told(chat) == ["why?", "because", "or?"]
    chat.undo_rewind("s")
    assert told(chat) == ["why?", "because", "and?", "and so …"]
    chat.append("s", user("go on"))
    chat.rewind("s", 3)
    broken(chat, "and that")
    chat.append("s", user("please"))
    chat.rewind("s", 3)
    assert told(chat) == ["why?", "because", "and?", "and so …", "and that …"]
    assert told(chat, at=2) == ["why?", "because"]
    assert told(chat, chat.fork("s").id) == ["why?", "because", "and?"]


@pytest.mark.parametrize("unanswered", ["synthetic", "drop", "keep"])
@pytest.mark.parametrize("format", ["openai", "react", "responses", "anthropic", "gemini"])
def test_calls_keep_their_results(chat: Store, unanswered: str, format: str) -> None:  # noqa: A002
    """A draft comes neither between them nor behind a call that waits for its result."""
    policy = SHOWN.model_copy(update={"unanswered": unanswered})
    chat.append("s", ASKS)
    broken(chat, "meanwhile")
    for added in (None, RESULT, user("so?")):
        if added:
            chat.append("s", added)
        view = chat.view("s", policy)
        roles = [(each["role"], bool(each.get("tool_calls"))) for each in view.messages]
        for (_, asks), (role, _) in pairwise(roles):
            assert asks == (role == "tool")
        sent = chat.view("s", policy, format=format)
        assert sent.messages
        if format != "react" and (added or unanswered != "keep"):
            assert complaints(format, sent.messages, sent.system) == []
    assert [each for each in told(chat) if "meanwhile" in each] == ["meanwhile …"]


def test_nothing_is_shown_of_what_is_hidden(chat: Store) -> None:
    """Behind a compaction a draft is hidden as the message that it answers is."""
    chat.append("s", [answer("because " * 50), user("and?")])
    broken(chat, "early")
    chat.append("s", [user("go on"), answer("yes " * 50), user("then?")])
    broken(chat, "late")
    assert "early …" in told(chat)
    made = chat.compact("s", Policy(keep_turns=1), lambda _: "All said.")
    assert made.outcome == "applied"
    shown = told(chat)
    assert shown[-2:] == ["then?", "late …"]
    assert "early …" not in shown


def test_before_the_first_message_there_is_nothing_to_answer(chat: Store) -> None:
    """So a draft there is not shown: no request begins with an answer."""
    chat.rewind("s", 0)
    broken(chat, "hello")
    assert told(chat) == []


def test_a_draft_goes_with_what_it_answers(chat: Store) -> None:
    """Where that is hidden by name, and where what came in its place is; else it stays."""
    broken(chat, "Because")
    chat.append("s", [user("go on"), answer("so"), user("well?")])
    for first, last, left in (
        (1, 1, ["go on", "so", "well?"]),
        (2, 2, ["why?", "so", "well?"]),
        (3, 3, ["why?", "Because …", "go on", "gone", "well?"]),
    ):
        made = chat.hide("s", first, last, "gone" if first == 3 else None)
        assert told(chat) == left
        chat.undo_compaction("s", made.id or 0)
