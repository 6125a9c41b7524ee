"""``python -m benchmarks.formats``: what messages of a provider's format cost beside a chat's.

The same conversation is stored as messages of a chat and as those of each format, in turn. Told are
the CPU times for the chat, and how many times as long each format takes for all of it: the median
of the rounds, the least of them in brackets. All come back as they went in before they are timed.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from store import Store

from .timing import measure_quickest, measure_seconds
from .workload import ROOT, Message, conversation

CHAT = "openai"
NEWEST = 100
SINGLE = 100
"""How many messages of the chat are appended one by one in a round."""
TRIES = 5
"""How often what changes nothing is done in a round; the quickest counts."""


def convert_to_chat(messages: list[Message]) -> list[Message]:
    """Return messages of a chat without the times that no provider sends."""
    return [{key: held for key, held in each.items() if key != "timestamp"} for each in messages]


def convert_to_responses(
    messages: list[Message], ids: Iterator[int] | None = None
) -> list[Message]:
    """Return items of Responses, with those ids that the provider gives to its own."""
    items: list[Message] = []
    for each in messages:
        if each["role"] == "tool":
            answer = {"call_id": each["tool_call_id"], "output": each["content"]}
            items.append({"type": "function_call_output", **answer})
            continue
        if each["content"]:
            item = {"role": each["role"], "content": each["content"]}
            if each["role"] == "assistant":
                said = {"type": "output_text", "text": each["content"], "annotations": []}
                named = {"id": f"msg_{next(ids):048x}"} if ids else {}
                item |= {**named, "type": "message", "status": "completed", "content": [said]}
            items.append(item)
        for call in each.get("tool_calls", ()):
            named = {"id": f"fc_{next(ids):048x}"} if ids else {}
            asked = {"call_id": call["id"], **call["function"], "status": "completed"}
            items.append({"type": "function_call", **named, **asked})
    return items


def convert_to_anthropic(messages: list[Message]) -> list[Message]:
    """Return messages of Anthropic's API: the results of one answer's calls in one message."""
    made: list[Message] = []
    for each in messages:
        if each["role"] == "tool":
            block = {
                "type": "tool_result",
                "tool_use_id": each["tool_call_id"],
                "content": each["content"],
            }
            if made[-1]["role"] == "user":
                made[-1]["content"].append(block)
            else:
                made.append({"role": "user", "content": [block]})
            continue
        said = [{"type": "text", "text": each["content"]}] if each["content"] else []
        calls = [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
            for call in each.get("tool_calls", ())
        ]
        made.append({"role": each["role"], "content": [*said, *calls]})
    return made


def convert_to_gemini(messages: list[Message]) -> list[Message]:
    """Return contents of Gemini's API: the responses to one answer's calls in one content."""
    made: list[Message] = []
    names: dict[str, str] = {}
    for each in messages:
        if each["role"] == "tool":
            call_id = each["tool_call_id"]
            response = {"output": each["content"]}
            part = {
                "functionResponse": {"id": call_id, "name": names[call_id], "response": response}
            }
            if made[-1]["role"] == "user":
                made[-1]["parts"].append(part)
            else:
                made.append({"role": "user", "parts": [part]})
            continue
        parts: list[Message] = [{"text": each["content"]}] if each["content"] else []
        for call in each.get("tool_calls", ()):
            asked = call["function"]
            names[call["id"]] = asked["name"]
            args = json.loads(asked["arguments"])
            parts.append({"functionCall": {"id": call["id"], "name": asked["name"], "args": args}})
        made.append({"role": "model" if each["role"] == "assistant" else "user", "parts": parts})
    return made


SIDES: dict[str, tuple[str, Callable[[list[Message]], list[Message]]]] = {
    "chat": (CHAT, convert_to_chat),
    "responses": ("responses", convert_to_responses),
    "responses, ids": ("responses", lambda messages: convert_to_responses(messages, count(1))),
    "anthropic": ("anthropic", convert_to_anthropic),
    "gemini": ("gemini", convert_to_gemini),
}
"""The format of each column, and the function that makes its messages of those of a chat."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args(arguments)
    chat = [*conversation(asked.messages)]
    given = {name: convert(chat) for name, (_, convert) in SIDES.items()}
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder, "chat.db"), durability="normal") as store,
    ):
        rounds = []
        for number in range(asked.rounds + 1):
            sides = [*SIDES] if number % 2 else [*reversed(SIDES)]
            rounds.append({each: dict(_times(store, each, number, given[each])) for each in sides})
    print(f"{asked.messages:,} messages, the median (the least) of {asked.rounds} rounds")
    print(_line("", SIDES))
    for operation in rounds[0]["chat"]:
        print(_line(operation, _cells(operation, rounds[1:])))


def _line(operation: str, cells: Any) -> str:
    return " ".join([f"{operation:14}", *(f"{each:>15}" for each in cells)])


def _cells(operation: str, rounds: list[dict[str, dict[str, float]]]) -> Iterator[str]:
    """Yield the chat's time in ms, and then the ratio of each format to it."""
    times = {name: [each[name][operation] for each in rounds] for name in SIDES}
    chat = times.pop("chat")
    yield f"{median(chat) * 1000:.2f} ms"
    for found in times.values():
        yield f"{median(found) / median(chat):.2f} ({min(found) / min(chat):.2f})"


def _times(
    store: Store, side: str, number: int, given: list[Message]
) -> Iterator[tuple[str, float]]:
    """Yield the CPU seconds of each operation on a new session of one side."""
    wire_format = SIDES[side][0]
    name, single = f"{side}-{number}", f"{side}-{number}-single"
    append = partial(store.append, dedupe="off", format=wire_format)
    for each in (name, single):
        store.create_session(each, project_root=ROOT)
    gc.collect()
    yield "append a batch", measure_seconds(lambda: append(name, given))
    few = given[: -(-len(given) * SINGLE // 1_000)]
    yield "one by one", measure_seconds(lambda: [append(single, each) for each in few])
    if [each.message for each in store.messages(name)] != given:
        raise AssertionError(f"messages of {side} came back changed: their times mean nothing")
    yield "load", measure_quickest(lambda: store.messages(name))
    yield f"newest {NEWEST}", measure_quickest(lambda: store.messages(name, -NEWEST))
    forks = [store.fork(name).id for _ in range(TRIES)]  # of a fork nothing is kept in memory
    yield (
        "first view",
        min(measure_seconds(partial(store.view, fork, format=wire_format)) for fork in forks),
    )
    store.delete_session(*forks, single, name)


if __name__ == "__main__":
    main()
