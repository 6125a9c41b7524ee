"""What counts as a message: for triggers, limits, windows and what stays."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from store import Policy, Store
from store.records import View

NOW = 1_767_225_600_000
COUNTING = Policy.named("message_count")
FACT = "不要动 prod"


def _dead(_: Any) -> str:
    raise ConnectionError("the model is away")


def _talk(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"第{number}项对吗"},
        {"role": "assistant", "content": "对"},
    ]


def _says(view: View, text: str) -> bool:
    return any(text in str(message.get("content")) for message in view.messages)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("length", [100, 400, 686, 1500])
def test_a_talk_of_short_messages_has_a_summary_from_its_fortieth_message_on(
    store: Store, length: int
) -> None:
    """S2.8, S2.31: what a summary tells stays, though it takes more tokens than it hides."""

    def summarizer(_: Any) -> str:
        told = f"对话摘要：用户要求始终用中文回答，{FACT}。"
        return told + "确认了配置项。" * ((length - len(told)) // 7)

    session = store.create_session(now=NOW).id
    opening = {"role": "user", "content": f"请始终用中文回答，{FACT}"}
    store.append(session, [opening, {"role": "assistant", "content": "好"}], now=NOW)
    for number in range(100):
        now = NOW + number * 60_000
        store.append(session, _talk(number), now=now)
        store.compact_if_needed(session, COUNTING, summarizer, now=now)
        view = store.view(session, COUNTING, now=now)
        if number >= 19:
            assert view.entries[0].rule == "summary"
            assert len(view.messages) <= 50
        assert _says(view, FACT)


def test_a_policy_whose_tokens_run_out_first_wants_a_summary_to_have_fewer_tokens(
    store: Store,
) -> None:
    """A trigger by tokens that fires wants tokens to be freed."""
    policy = Policy(trigger_messages=6, trigger_tokens=20, keep_messages=2, facts_chars=0)
    session = store.create_session(now=NOW).id
    for number in range(5):
        store.append(session, _talk(number), now=NOW)
    made = store.compact_if_needed(session, policy, lambda _: "摘" * 400, now=NOW)
    assert made is not None
    assert made.outcome == "rejected"
    assert "smaller" in (made.error or "")


def test_the_hard_limit_counts_calls_and_results_that_a_view_makes_up(store: Store) -> None:
    """S2.7: results without calls get calls, calls without results get results."""
    session = store.create_session(now=NOW).id
    for number in range(60):
        lost = {"role": "tool", "tool_call_id": f"lost{number}", "content": "r", "timestamp": NOW}
        store.append(session, [{"role": "user", "content": "u"}, lost], now=NOW + number)
        store.compact_if_needed(session, COUNTING, _dead, now=NOW + number)
        assert len(store.view(session, COUNTING, now=NOW + number).messages) <= 50


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(12))
def test_no_view_is_over_the_hard_limit_after_rewinds_into_the_midst_of_calls(
    store: Store, seed: int
) -> None:
    """S2.7: whatever has no call or no result, and the count is that of the view."""
    chance = random.Random(seed)
    session = store.create_session(now=NOW).id
    for number in range(60):
        calls = [f"c{number}_{place}" for place in range(chance.randint(1, 5))]
        store.append(session, {"role": "user", "content": f"do {number}"}, now=NOW + number)
        store.append(
            session, {"role": "assistant", "content": None, "tool_calls": [*map(_call, calls)]}
        )
        results = [{"role": "tool", "tool_call_id": call, "content": "ok"} for call in calls]
        store.append(session, results[: chance.randint(0, len(results))])
        if chance.random() < 0.3:
            head = store.session(session).head
            store.rewind(session, to=max(1, head - chance.randint(1, 4)))
        store.compact_if_needed(session, COUNTING, _dead, now=NOW + number)
        view = store.view(session, COUNTING, now=NOW + number)
        assert len(view.messages) <= 50
        told = store.plan_compaction(session, COUNTING, now=NOW + number)
        assert told.messages_before == len(view.messages)


def test_trimming_hides_no_more_turns_than_the_limit_asks_for(store: Store) -> None:
    """What is made up goes with what it is made up for."""
    policy = COUNTING.model_copy(update={"hard_limit": 10, "trigger_messages": 10})
    session = store.create_session(now=NOW).id
    for number in range(20):
        lost = {"role": "tool", "tool_call_id": f"lost{number}", "content": "r"}
        store.append(session, [{"role": "user", "content": f"u{number}"}, lost], now=NOW)
    store.compact_if_needed(session, policy, _dead, now=NOW)
    assert 8 <= len(store.view(session, policy, now=NOW).messages) <= 10


# --- one meaning of "message" in four formats -----------------------------------------------------


def _call(call_id: str) -> dict[str, Any]:
    function = {"name": "Bash", "arguments": json.dumps({"command": "ls"})}
    return {"id": call_id, "type": "function", "function": function}


Round = tuple[str, list[list[str]], str]
"""What a user asks, the ids of the calls of each step, and the answer."""


def _random_talk(seed: int) -> list[Round]:
    chance = random.Random(seed)
    rounds = []
    for turn in range(20):
        steps = [
            [f"c{turn}_{step}_{place}" for place in range(chance.randint(1, 4))]
            for step in range(chance.randint(0, 3))
        ]
        rounds.append((f"question {turn}", steps, f"answer {turn}"))
    return rounds


def _chat(asked: str, steps: list[list[str]], answer: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    for calls in steps:
        said.append({"role": "assistant", "content": "I look", "tool_calls": [*map(_call, calls)]})
        said += [{"role": "tool", "tool_call_id": call, "content": "ok"} for call in calls]
    return [*said, {"role": "assistant", "content": answer}]


def _anthropic(asked: str, steps: list[list[str]], answer: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    for calls in steps:
        uses = [
            {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}
            for call in calls
        ]
        said.append({"role": "assistant", "content": [{"type": "text", "text": "I look"}, *uses]})
        results = [{"type": "tool_result", "tool_use_id": call, "content": "ok"} for call in calls]
        said.append({"role": "user", "content": results})
    return [*said, {"role": "assistant", "content": [{"type": "text", "text": answer}]}]


def _gemini(asked: str, steps: list[list[str]], answer: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": asked}]}]
    for calls in steps:
        uses = [
            {"functionCall": {"id": call, "name": "Bash", "args": {"command": "ls"}}}
            for call in calls
        ]
        said.append({"role": "model", "parts": [{"text": "I look"}, *uses]})
        results = [
            {"functionResponse": {"id": call, "name": "Bash", "response": {"output": "ok"}}}
            for call in calls
        ]
        said.append({"role": "user", "parts": results})
    return [*said, {"role": "model", "parts": [{"text": answer}]}]


def _responses(asked: str, steps: list[list[str]], answer: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [_item("user", "input_text", asked)]
    for calls in steps:
        said.append({"type": "reasoning", "id": f"rs_{calls[0]}", "summary": []})
        said.append(_item("assistant", "output_text", "I look"))
        said += [
            {"type": "function_call", "call_id": call, "name": "Bash", "arguments": "{}"}
            for call in calls
        ]
        said += [
            {"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls
        ]
    return [*said, _item("assistant", "output_text", answer)]


def _item(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


WRITERS = {
    "openai": _chat,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "responses": _responses,
}


def _first_compaction(store: Store, wire: str, talk: list[Round]) -> tuple[int, int, int, int]:
    """Return at which turn a talk was compacted first, and of which turns the summary is."""
    session = store.create_session(now=NOW).id
    begins: list[int] = []
    for turn, said in enumerate(talk):
        begins.append(store.session(session).head + 1)
        store.append(session, WRITERS[wire](*said), now=NOW, format=wire)
        made = store.compact_if_needed(session, COUNTING, lambda _: "told", now=NOW)
        if made:
            assert made.outcome == "applied", made.error
            assert made.hidden is not None
            first, last = made.hidden
            first_turn = sum(begin <= first for begin in begins)
            assert last + 1 in begins
            sizes = (made.messages_before or 0, made.messages_after or 0)
            return turn, first_turn, begins.index(last + 1), sizes[0] - sizes[1]
    raise AssertionError("nothing was compacted")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(50))
def test_the_same_talk_is_compacted_at_the_same_turns_in_four_formats(
    store: Store, seed: int
) -> None:
    """A2.15: each entry of a history counts, in whatever pieces a wire has it."""
    talk = _random_talk(seed)
    found = {wire: _first_compaction(store, wire, talk) for wire in WRITERS}
    assert len(set(found.values())) == 1, found


def test_items_of_one_answer_are_one_message_of_those_that_stay(store: Store) -> None:
    """Six messages are kept, whatever number of items they came in."""
    session = store.create_session(now=NOW).id
    for turn in range(4):
        said = _responses(f"question {turn}", [[f"a{turn}", f"b{turn}"]], "answer")
        store.append(session, said, now=NOW, format="responses")
    policy = Policy(keep_messages=6, boundary="group", facts_chars=0)
    store.compact(session, policy, lambda _: "told", now=NOW)
    left = store.view(session, policy, now=NOW).messages
    assert [message["role"] for message in left[1:]] == [
        "assistant",
        *("user", "assistant", "tool", "tool", "assistant"),
    ]


def test_a_summary_of_one_long_message_is_worth_it(store: Store) -> None:
    """As many messages, and far fewer tokens."""
    session = store.create_session(now=NOW).id
    store.append(session, [{"role": "user", "content": "长" * 4000}, *_talk(1)[:1]], now=NOW)
    policy = COUNTING.model_copy(update={"keep_messages": 1})
    made = store.compact(session, policy, lambda _: "对话摘要：很长。", now=NOW)
    assert (made.outcome, made.messages_before, made.messages_after) == ("applied", 2, 2)
