"""Which texts have room in a summary, and what it tells of what tools did."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from store import Policy, Store
from store.messages import Message
from store.summaries import KeyAction, SummaryRequest, extractive, render_summary
from store.summaries.extractive_summary import (
    LAST,
    SAID,
    SHOWN,
    USER,
    RankedSpeech,
    SpeechBuffer,
    select_speeches,
)

ONCE = Policy(language="en", told_once=True)
SPEECHES = st.lists(
    st.builds(
        RankedSpeech,
        st.sampled_from(["User", "Assistant"]),
        st.text(alphabet="ab 长\n\0", min_size=1, max_size=200),
        st.sampled_from([USER, SAID, SHOWN]),
    ),
    max_size=12,
)


def said(*texts: tuple[int, str]) -> list[RankedSpeech]:
    """Return texts with their ranks; users say the first rank."""
    return [RankedSpeech("U" if rank == USER else "A", text, rank) for rank, text in texts]


def use(name: str, arguments: Any, result: str, call_id: str) -> list[Message]:
    """Return a call and its result."""
    call = {"id": call_id, "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def asked(messages: list[Message], **fields: Any) -> SummaryRequest:
    """Return a request for a summary of messages."""
    return SummaryRequest(messages, None, "", "", 4000, 1, len(messages), **fields)


def test_users_come_first_then_the_last_answer_then_the_newest() -> None:
    """Whole, in the order in which they were said; what has no room is cut, then left out."""
    texts = said(
        (USER, "u" * 300),
        (SAID, "a" * 300),
        (SAID, "b" * 300),
        (USER, "v" * 300),
        (LAST, "c" * 300),
    )
    whole = ["U: " + "u" * 300, "U: " + "v" * 300, "A: " + "c" * 300]
    assert select_speeches(texts, 911).split("\n") == whole
    assert select_speeches(texts, 1215).split("\n") == [whole[0], "A: " + "b" * 300, *whole[1:]]
    shown = select_speeches(texts, 1100).split("\n")
    assert [*shown[:1], *shown[2:]] == whole
    assert shown[1] == "A: " + "b" * 182 + "..."
    assert select_speeches(texts, 5000).count("\n") == 4


def test_the_largest_texts_of_users_give_way() -> None:
    """To the same length, so that a short request beside a pasted file stays whole."""
    texts = said((USER, "p" * 5000), (USER, "Mend it."), (USER, "q" * 5000), (LAST, "done " * 100))
    pasted, request, other, answer = select_speeches(texts, 1000).split("\n")
    assert request == "U: Mend it."
    assert len(pasted) == len(other) > 300
    assert pasted.endswith("...")
    assert len(answer) >= 245


@given(SPEECHES, st.integers(0, 600))
def test_what_is_selected_keeps_its_room(speeches: list[RankedSpeech], room: int) -> None:
    """The same every time, each line as it was said or cut with a sign, in order."""
    heard = SpeechBuffer(room or 1)
    heard.add(speeches)
    held = heard.ranked()
    text = select_speeches(held, room)
    assert len(text) <= room
    assert text == select_speeches(held, room)
    if sum(len(each.voice) + len(each.text) + 3 for each in held) <= room:
        assert text.split("\n") == [f"{each.voice}: {each.text}" for each in held] or not held


def test_of_very_much_the_first_and_the_newest_are_held() -> None:
    """However much is said, no more is in memory than could have room."""
    heard = SpeechBuffer(100)
    for number in range(10_000):
        request = RankedSpeech("User", f"request {number} " + "x" * 80, USER)
        heard.add([request, RankedSpeech("Assistant", f"answer {number} " + "x" * 80, SAID)])
    held = heard.ranked()
    assert sum(len(each.text) for each in held) <= 100 * 100
    assert held[0].text.startswith("request 0 ")
    assert held[-2].text.startswith("request 9999 ")
    assert held[-1].text.startswith("answer 9999 ")
    assert held[-1].rank == LAST


def test_a_long_answer_is_whole_where_there_is_room() -> None:
    """However many messages there are; programs are no users, and refusals are theirs."""
    answer = "It is done. " * 100
    messages: list[Message] = [
        {"role": "user", "content": "<command-name>/clear</command-name>"},
        {"role": "user", "content": "Mend it."},
        *[
            message
            for n in range(30)
            for message in use("Read", {"file_path": "a"}, "x " * 60, f"c{n}")
        ],
        *use(
            "Edit",
            {"file_path": "a"},
            "The user doesn't want to proceed with this tool use. To tell you how to proceed, the"
            " user said:\nleave it",
            "e",
        ),
        {"role": "assistant", "content": answer},
    ]
    body = extractive(asked(messages)).body
    assert body.split("\n")[:3] == [
        "User: Mend it.",
        "User: leave it",
        f"Assistant: {answer.strip()}",
    ]


def test_deeds_told_once_are_left_to_the_facts() -> None:
    """A view shows what the facts do not tell; the record has all."""
    messages = [
        *use("Bash", {"command": "make"}, "built", "c1"),
        *use("Edit", {"file_path": "a.py"}, "ok", "c2"),
        *use("Grep", {"pattern": "TODO"}, "a.py:1", "c3"),
        *use("WebFetch", {"url": "https://example.org"}, "Error: no route", "c4"),
    ]
    summary = extractive(asked(messages, policy=ONCE))
    assert [action.tool for action in summary.key_actions] == ["Bash", "Edit", "Grep", "WebFetch"]
    assert render_summary(summary) == (
        "# Summary of conversation\n\n**Key Actions:**\n- Used `Grep` to search for TODO\n\n"
        "**Summary:**\n1 file modified."
    )
    without_facts = ONCE.model_copy(update={"facts_chars": 0})
    assert extractive(asked(messages, policy=without_facts)) == extractive(asked(messages))


def test_files_are_told_as_the_root_sees_them() -> None:
    """Those that tools read, changed or patched."""
    patch = "*** Begin Patch\n*** Add File: /srv/app/new.py\n+x\n*** End Patch"
    messages = [
        *use("Read", {"file_path": "/srv/app/a.py"}, "x", "c1"),
        *use("Edit", {"file_path": "/srv/app/a.py"}, "ok", "c2"),
        *use("apply_patch", {"input": patch}, "ok", "c3"),
    ]
    summary = extractive(asked(messages, project_root="/srv/app"))
    assert summary.key_actions == (
        KeyAction("Read", "to read a.py"),
        KeyAction("Edit", "to modify a.py"),
        KeyAction("apply_patch", "to create new.py"),
    )
    assert [change.path for change in summary.file_changes] == ["a.py", "new.py"]


def test_a_summary_of_little_is_shorter_than_that(store: Store) -> None:
    """Else no short range could be compacted; short texts alone stay whole however few there are."""
    session_id = store.create_session().id
    long = "why and wherefore " * 60
    for text in (long, "Thanks."):
        answer: Message = {"role": "assistant", "content": long}
        store.append(session_id, [{"role": "user", "content": text}, answer])
    done = store.compact(session_id, Policy())
    assert done.outcome == "applied"
    assert (done.tokens_after or 0) < (done.tokens_before or 0) * 0.85
    said: list[Message] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Ok."},
    ]
    assert extractive(asked(said)).body == "User: Go.\nAssistant: Ok."
