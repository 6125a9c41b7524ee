"""A long conversation that changes its provider at every turn."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conversations import NOW
from judge import JUDGES, complaints, misfits, own_types

from store import Policy, Store

Message = dict[str, Any]
MESSAGES = 2_000
IN_TURNS = ("anthropic", "gemini")
AS_THEY_CAME = ("anthropic", "responses", "gemini")
"""Formats whose own turn goes out as it came: with what is signed or sealed, and in its order.

Behind a rewind or a summary it may stand in one message with what is left before it.
"""
MINUTE = 60_000


class Talk:
    """What is said, each turn in the words of another provider."""

    def __init__(self) -> None:
        self.chance = Random(7)
        self.calls = 0

    def turn(self, name: str, number: int) -> list[Message]:
        """A question, some rounds of calls and their results, an answer."""
        made: list[Message] = []
        for _ in range(self.chance.randrange(3)):
            called = [self._called(name, number) for _ in range(self.chance.randrange(1, 4))]
            made += ROUNDS[name](called, self)
        said = "so" * self.chance.randrange(1, 30)
        return [ASKED[name](f"question {number}"), *made, ANSWERED[name](said)]

    def _called(self, name: str, number: int) -> str:
        """The id of a call: some are strange, some repeat."""
        self.calls += 1
        odd = self.chance.choice(["functions.Read:0", "x" * 70, f"call|{self.calls}", f"c{number}"])
        return odd if name == "openai" and self.chance.random() < 0.5 else f"id_{self.calls}"

    def said(self) -> str:
        """What a tool returns."""
        return "line\n" * self.chance.randrange(1, 60)


def _of_chat(called: list[str], talk: Talk) -> list[Message]:
    called = [*dict.fromkeys(called)]
    made = [
        {"id": each, "type": "function", "function": {"name": "fs.read", "arguments": '{"p": 1}'}}
        for each in called
    ]
    results = [{"role": "tool", "tool_call_id": each, "content": talk.said()} for each in called]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *results]


def _of_anthropic(called: list[str], talk: Talk) -> list[Message]:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    made = [{"type": "tool_use", "id": each, "name": "Bash", "input": {"c": 1}} for each in called]
    results = [
        {"type": "tool_result", "tool_use_id": each, "content": talk.said()} for each in called
    ]
    return [
        {"role": "assistant", "content": [thought, *made]},
        {"role": "user", "content": results},
    ]


def _of_responses(called: list[str], talk: Talk) -> list[Message]:
    number = f"{called[0]}r"
    return [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "eA=="},
        *(
            {"type": "function_call", "call_id": each, "name": "Read", "arguments": "{}"}
            for each in called
        ),
        *(
            {"type": "function_call_output", "call_id": each, "output": talk.said()}
            for each in called
        ),
    ]


def _of_gemini(called: list[str], talk: Talk) -> list[Message]:
    made = [{"functionCall": {"id": each, "name": "Read", "args": {}}} for each in called]
    results = [
        {"functionResponse": {"id": each, "name": "Read", "response": {"output": talk.said()}}}
        for each in called
    ]
    made[0]["thoughtSignature"] = "c2ln"
    return [{"role": "model", "parts": made}, {"role": "user", "parts": results}]


ROUNDS = {
    "openai": _of_chat,
    "anthropic": _of_anthropic,
    "responses": _of_responses,
    "gemini": _of_gemini,
}
ASKED = {
    "openai": lambda said: {"role": "user", "content": said},
    "anthropic": lambda said: {"role": "user", "content": [{"type": "text", "text": said}]},
    "responses": lambda said: {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": said}],
    },
    "gemini": lambda said: {"role": "user", "parts": [{"text": said}]},
}
ANSWERED = {
    "openai": lambda said: {"role": "assistant", "content": said},
    "anthropic": lambda said: {"role": "assistant", "content": [{"type": "text", "text": said}]},
    "responses": lambda said: {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": said, "annotations": []}],
        "id": f"msg_{len(said)}",
        "status": "completed",
    },
    "gemini": lambda said: {"role": "model", "parts": [{"text": said}]},
}


def converse(path: Path, messages: int) -> None:
    """Talk, rewind and compact; judge each request before its answer is appended."""
    talk, names = Talk(), [*JUDGES]
    policy = Policy(terminal=False, file_read=False, tool_output=False)
    raw: list[Message] = []
    ends: list[tuple[int, int]] = []
    before: dict[str, list[str]] = {}
    with Store(path) as store:
        store.create_session("s")
        number = 0
        while store.session("s").head < messages:
            name = names[number % len(names)]
            turn = talk.turn(name, number)
            for message in turn:
                (stored,) = store.append("s", message, dedupe="off", now=NOW + number * MINUTE)
                raw.append(message)
                ends.append((stored.seq, len(raw)))
            view = store.view("s", policy, format=name, now=NOW)
            assert complaints(name, view.messages, view.system) == []
            if own_types(name) and number % 20 < len(names):
                assert misfits(name, view.messages) == []
            if name in AS_THEY_CAME and before:
                assert view.messages[-len(turn) :] == turn
            sent = [json.dumps(each) for each in view.messages]
            kept = before.get(name, [])[: -1 if name in IN_TURNS else None]
            assert sent[: len(kept)] == kept
            before[name] = sent
            number += 1
            if number % 13 == 0:
                seq, count = ends[-3]
                store.rewind("s", to=seq)
                del raw[count:], ends[-2:]
                before.clear()
            if number % 20 == 0:
                store.compact("s", Policy.named("turns"), summarizer=lambda _: "It went well.")
                before.clear()
        assert [each.message for each in store.messages("s")] == raw
        assert store.compactions("s")
        assert store.verify() == []


@pytest.mark.slow
def test_a_conversation_changes_its_provider(tmp_path: Path) -> None:
    """At every turn: each request is taken, begins as the one before, and raw is as it came."""
    converse(tmp_path / "s.db", 130)


@pytest.mark.slow
def test_two_thousand_messages_through_four_providers(tmp_path: Path) -> None:
    """With rewinds and compactions all along."""
    converse(tmp_path / "s.db", MESSAGES)
