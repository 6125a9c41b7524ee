"""Conversations as they come in real life, and worse: strategies for hypothesis."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from store import Policy

Message = dict[str, Any]

NOW = 1_769_822_400_000
MINUTE = 60_000
ROOT = "F:/Projects/snow-cli"

# --- conversations written out --------------------------------------------------------------------

DONE = '{"stdout":"Done in 3.2s, no warnings","stderr":"","exitCode":0}'


class Script:
    """A conversation put together line by line.

    What is called returns the position of the result.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def tool(
        self,
        name: str | None,
        content: Any,
        minutes: float | None,
        arguments: Any = "{}",
        /,
        **more: Any,
    ) -> int:
        """Call a tool, whose result came so many minutes before NOW (None: nobody knows)."""
        call_id = f"call-{len(self.messages)}"
        call = {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": call_id, "content": content, **more}
        if minutes is not None:
            result["timestamp"] = NOW - round(minutes * MINUTE)
        self.messages.append(result)
        return len(self.messages)

    def command(self, content: Any = DONE, minutes: float | None = 60, **more: Any) -> int:
        """Run a command."""
        return self.tool("terminal-execute", content, minutes, **more)

    def commands(self, count: int, **more: Any) -> list[int]:
        """Run commands, the later the newer."""
        return [self.command(minutes=60 - place, **more) for place in range(count)]

    def read(
        self, path: Any, minutes: float | None = 60, content: Any = "1→import x from y", **more: Any
    ) -> int:
        """Read a file, or several."""
        lines = {key: more.pop(key) for key in ("startLine", "endLine") if key in more}
        return self.tool(
            "filesystem-read", content, minutes, json.dumps({"filePath": path, **lines}), **more
        )

    def reads(self, path: Any, count: int, **more: Any) -> list[int]:
        """Read the same again, the later the newer."""
        return [self.read(path, minutes=60 - place, **more) for place in range(count)]

    def user(self, text: str = "go on") -> int:
        """Say something."""
        self.messages.append({"role": "user", "content": text})
        return len(self.messages)


# --- arbitrary messages: anything that JSON can say -----------------------------------------------

HALVES = ("\ud83d", "\ude00", "\ud83d\ude00", "\ude00\ud83d", "a\ud800b")
"""Surrogates alone, in the order in which a JSON reader joins them to one character, and in the
other.
"""

texts = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=12),
    st.sampled_from(
        ["", " ", "\0", "a\0b", "=", "=e30=", "null", "[]", "文件", "😀", "e\u0301", *HALVES]
    ),
    st.lists(st.sampled_from([*HALVES, "x", "\0", "😀"]), max_size=4).map("".join),
)
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [0, 1, -1, 0.0, -0.0, 1.0, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**400, 1e308, 5e-324]
    ),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
storable_roles = st.sampled_from(
    ["user", "assistant", "tool", "system", "developer", "function", "Tool", "文件", "😀"]
)

functions = st.fixed_dictionaries(
    {}, optional={"name": texts | values, "arguments": texts | values, "more": values}
)
calls = st.one_of(
    values,
    st.fixed_dictionaries(
        {
            "id": texts,
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": texts, "arguments": texts}),
        }
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "id": texts | values,
            "type": values,
            "function": functions | values,
            "name": values,
            "arguments": values,
        },
    ),
)
arbitrary_messages = st.builds(
    lambda known, unknown: {**unknown, **known},
    st.fixed_dictionaries(
        {"role": storable_roles},
        optional={
            "content": texts | values,
            "name": texts | values,
            "timestamp": numbers | values,
            "messageStatus": texts | values,
            "tool_call_id": texts | values,
            "tool_calls": st.lists(calls, max_size=3) | values,
        },
    ),
    st.dictionaries(texts, values, max_size=2),
).filter(lambda message: "id" not in message)

# --- conversations of an agent: messy, but everything in them has one plain meaning ---------------

KINDS = {
    "terminal-execute": "terminal",
    "Bash": "terminal",
    "filesystem-read": "file_read",
    "Read": "file_read",
    "filesystem-edit": "file_edit",
    "ace-text_search": "search",
    "mystery": None,
}
"""The tools of these conversations and the kinds that the store gives them."""

FILES = {
    "a.ts": ["a.ts", "./a.ts", "src/../a.ts", f"{ROOT}/a.ts", "F:\\Projects\\snow-cli\\a.ts"],
    "src/b.ts": ["src/b.ts", "src//b.ts", ".\\src\\b.ts", f"{ROOT}/src/b.ts"],
    "dir": ["dir", "dir/"],
    "/etc/hosts": ["/etc/hosts", "/etc/../etc/hosts"],
}
"""The files of these conversations, each with its spellings."""

SPELLINGS = [spelling for known in FILES.values() for spelling in known]
IDS = ["c1", "c2", "c3", "c4"]
ODD_IDS = ["", None, "\ud800", "\udfff", "call_2_0", 7]
NAMES = [*KINDS, *KINDS, *KINDS, "", None, "read file", 5]
ODD_ARGUMENTS = ["{}", "", '{"filePath": "a.ts"', "not json", "[1]", None, 5]
ODD_CALLS = [None, "call", [], {}, {"id": "c1"}]
ROLES = ["user", "user", "assistant", "assistant", "system", "developer", "critic", "Tool"]
STATUSES = ["error", "pending", "completed", None, 5]
OUTPUT = {
    "stdout": ["", "built", "x" * 40],
    "stderr": ["", "", "", "refused", None],
    "exitCode": [0, 0, 0, 1, -9, "1", None],
}
CONTENTS: list[Any] = [
    *("1→import x", "x" * 30, "", "Error: no such file", "  Error: later", "An Error: not first"),
    *('{"stdout": "cut off', '{"stderr" : "spaced"}', "text \0 and \ud83d\ude00"),
    *(None, 5, {"stdout": "an object"}, ["a list"], []),
    [
        {"type": "image_url", "image_url": {"url": "data:\ud800"}},
        {"type": "text", "text": "\ud800"},
    ],
    [{"type": "image_url"}, {"type": "text"}, {"type": "odd", "x": 1}, "plain", None],
    *(
        "\n".join(f"{number}: found" for number in range(300)),
        [{"type": "text", "text": "long line " * 400}],
    ),
    json.dumps(
        {
            "status": "success",
            "data": {"recap": "[1/2] so"},
            "text": "t" * 90,
            "stats": {},
            "context": {},
        }
    ),
]
BORDERS = [NOW - 15 * MINUTE, NOW - 15 * MINUTE - 1, NOW - 15 * MINUTE + 1, NOW + MINUTE, 0, -5]
ODD_MOMENTS = [NOW - 20 * MINUTE + 0.5, True, None, "yesterday", 2**64]


class Agent:
    """Somebody who talks by chance.

    The same numbers give the same messages, so that hypothesis can shorten a talk.
    """

    def __init__(self, number: int) -> None:
        self.chance = Random(number)

    def once_in(self, times: int) -> bool:
        """Tell whether something rare happens."""
        return self.chance.randrange(times) == 0

    def one(self, choices: Sequence[Any]) -> Any:
        """Choose, and never hand out what another message holds too."""
        return copy.deepcopy(self.chance.choice(choices))

    def ranged(self) -> Message:
        """One file of a batch, mostly with the lines asked for."""
        named: Message = {"path": self.one(SPELLINGS)}
        if not self.once_in(4):
            named["startLine"] = self.chance.randrange(6) * 10 + 1
            if not self.once_in(4):
                named["endLine"] = named["startLine"] + self.chance.choice([0, 9, 19, 39])
        return named

    def arguments(self) -> Any:
        """What a call asks for: mostly to read a file, or some."""
        if self.once_in(8):
            return self.one(ODD_ARGUMENTS)
        if self.once_in(3):
            ranged = self.ranged()
            given = {"filePath": ranged.pop("path"), **ranged}
        elif self.once_in(2):
            given = {"filePath": self.one(SPELLINGS)}
        else:
            given = {
                "filePath": [
                    self.one([self.ranged(), *SPELLINGS[:9]])
                    for _ in range(self.chance.randrange(1, 4))
                ]
            }
            if self.once_in(6):
                given["filePath"] = self.one(
                    ["", None, [], [None, "a.ts"], ["a.ts", 7], [{"lines": 3}]]
                )
        return given if self.once_in(6) else json.dumps(given, ensure_ascii=self.once_in(2))

    def call(self, *, tidy: bool = False) -> Any:
        """One entry of ``tool_calls``, now and then none that can be sent."""
        if not tidy and self.once_in(20):
            return self.one(ODD_CALLS)
        call_id = self.one(ODD_IDS) if not tidy and self.once_in(6) else self.one(IDS)
        name = (
            self.one(["terminal-execute", "filesystem-read", "Read"]) if tidy else self.one(NAMES)
        )
        return {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": self.arguments()},
        }

    def content(self) -> Any:
        """Output of a command, or anything else."""
        if self.once_in(2):
            return self.one(CONTENTS)
        fields = {key: self.one(choices) for key, choices in OUTPUT.items() if not self.once_in(6)}
        text = json.dumps(fields, ensure_ascii=False)
        return [{"type": "text", "text": text}] if self.once_in(10) else text

    def timed(self, message: Message) -> Message:
        """Give a message a time, or none; few moments, so that some are equal."""
        if not self.once_in(10):
            message["timestamp"] = NOW - self.chance.randrange(12) * 5 * MINUTE
            if self.once_in(5):
                message["timestamp"] = self.one([*BORDERS, *ODD_MOMENTS])
        return message

    def result(self, call: Any = None) -> Message:
        """A tool result, of a call or of nobody knows what."""
        message: Message = {"role": "tool", "content": self.content()}
        if isinstance(call, dict) and "id" in call:
            message["tool_call_id"] = call["id"]
        elif not self.once_in(6):
            message["tool_call_id"] = self.one([*IDS, *ODD_IDS])
        if self.once_in(12):
            del message["content"]
        if self.once_in(6):
            message["messageStatus"] = self.one(STATUSES)
        if self.once_in(6):
            message["name"] = self.one(NAMES)
        return self.timed(message)

    def speech(self) -> Message:
        """A message of anybody but a tool."""
        message: Message = {"role": self.one(ROLES), "content": self.content()}
        if self.once_in(12):
            del message["content"]
        if self.once_in(6):
            message["name"] = self.one(NAMES)
        if self.once_in(10):
            message["reasoning_content"] = "unknown to the API"
        if self.once_in(10):
            message["tool_calls"] = self.one([None, [], [self.call()]])
        return self.timed(message)

    def exchange(self, *, tidy: bool = False) -> list[Message]:
        """An assistant's calls and their results, in order or not, all of them or some."""
        calls = [
            self.call(tidy=tidy) for _ in range(1 if tidy else self.chance.choice([1, 1, 2, 3]))
        ]
        results = [self.result(call) for call in calls]
        if self.once_in(4):
            self.chance.shuffle(results)
        if not tidy and self.once_in(6):
            results.pop()
        return [
            self.timed(
                {"role": "assistant", "content": self.one([None, "", "so"]), "tool_calls": calls}
            ),
            *results,
        ]

    def run(self) -> list[Message]:
        """A few messages of any kind."""
        return (
            self.exchange()
            if not self.once_in(3)
            else [self.one([self.speech, self.speech, self.result])()]
        )

    def busy_run(self) -> list[Message]:
        """Mostly a call and its result, of the tools that rules are about."""
        return (
            self.exchange(tidy=True)
            if not self.once_in(12)
            else [{"role": "user", "content": "go on"}]
        )


def _joined(runs: list[list[Message]]) -> list[Message]:
    return [message for run in runs for message in run]


_numbers = st.integers(0, 2**40)
messy_conversations = st.lists(
    _numbers.map(lambda number: Agent(number).run()), min_size=1, max_size=14
).map(_joined)
busy_conversations = st.lists(
    _numbers.map(lambda number: Agent(number).busy_run()), min_size=8, max_size=24
).map(_joined)
"""Mostly calls and results of commands and reads: here the rules have much to do."""
conversations = messy_conversations | busy_conversations

SWITCHES: dict[str, list[Any]] = {
    "terminal": [True, True, True, False],
    "terminal_keep": [5, 5, 0, 1, 2, 3],
    "terminal_max_age": [900_000, 900_000, 0, 899_999, 1_200_000],
    "file_read": [True, True, True, False],
    "file_read_keep": [5, 0, 1, 1, 2, 3],
    "tool_kinds": [
        {},
        {},
        {"mystery": "terminal"},
        {"Bash": "other"},
        {"mystery": "file_read", "Read": "list"},
    ],
    "identity": ["call", "call", "sniff"],
    "errors_take_slots": [False, True],
    "exit_code_is_error": [True, False],
    "stderr_is_error": ["always", "nonzero_exit", "never"],
    "batch_rule": ["all", "any"],
    "dedupe": [True, False],
    "range_aware": [False, True],
    "protect_current_turn": [False, False, True],
    "tool_output": [False, True],
    "judge_at": ["now", "now", "turn"],
    "min_saving": [0, 0, 1, 10, 25],
    "unanswered": ["synthetic", "synthetic", "drop", "keep"],
    "orphans": ["adopt", "adopt", "drop"],
}


def _policy(number: int) -> Policy:
    chance = Random(number)
    return Policy(
        **{
            name: chance.choice(choices)
            for name, choices in SWITCHES.items()
            if chance.random() < 0.6
        }
    )


policies = _numbers.map(_policy)
