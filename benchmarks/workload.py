"""A made-up coding session, the same on every run.

What programs really store, in sizes and in shape.

Of the tool calls 45 % read files and 35 % run commands; the sizes of results are log-normal (median
2 KB, 99th percentile 60 KB), a message has 3.4 KB in the mean. A fifth of the texts has characters
beyond ASCII, half of the commands answer with a JSON object. Nothing here knows databases.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from typing import Any

Message = dict[str, Any]

ROOT = "/home/dev/project"
START = 1_760_000_000_000
_MEDIAN, _SIGMA = 2048, 1.46  # the 99th percentile of this log-normal is 30 medians
_TOOLS = {
    "filesystem-read": 45,
    "terminal-execute": 35,
    "filesystem-edit": 10,
    "ace-text_search": 7,
    "filesystem-list": 3,
}
_COMMANDS = (
    "npm test -- --run",
    "python -m pytest -q",
    "git status --short",
    "cargo build",
    "make lint",
    "ls -la src",
)
_WORDS = (
    "def",
    "return",
    "import",
    "class",
    "self",
    "for",
    "in",
    "if",
    "value",
    "path",
    "line",
    "read",
    "result",
)
_CORPUS = 400_000


def conversation(size: int, *, seed: int = 1, small: bool = False) -> Iterator[Message]:
    """Yield so many messages of a coding session.

    ``small`` ones have contents of at most 40 characters.
    """
    return islice(_turns(random.Random(seed), small), size)


def payload(messages: list[Message]) -> int:
    """Return the bytes of all that was said: contents, names, ids and arguments in UTF-8."""
    return sum(_size(message) for message in messages)


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_size, below))


def _turns(rng: random.Random, small: bool) -> Iterator[Message]:
    clock = count(START, 1)
    moment = 0
    for number in count(1):
        for message in _turn(rng, number):
            moment += rng.randint(1_000, 20_000)
            if small:
                message["content"] = message["content"][:40]
            yield {**message, "timestamp": next(clock) + moment}


def _turn(rng: random.Random, number: int) -> Iterator[Message]:
    yield {"role": "user", "content": _text(rng, rng.randint(40, 600))}
    for step in range(rng.randint(3, 12)):
        calls = [
            _call(rng, f"call_{number}_{step}_{position}")
            for position in range(rng.choices((1, 2, 3), (80, 15, 5))[0])
        ]
        yield {"role": "assistant", "content": _text(rng, rng.randint(0, 400)), "tool_calls": calls}
        for call in calls:
            yield {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": _result(rng, call["function"]["name"]),
            }
    yield {"role": "assistant", "content": _text(rng, rng.randint(200, 2_000))}


def _call(rng: random.Random, call_id: str) -> Message:
    name = rng.choices(tuple(_TOOLS), tuple(_TOOLS.values()))[0]
    arguments = json.dumps(_arguments(rng, name), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _arguments(rng: random.Random, name: str) -> Message:
    if name == "terminal-execute":
        return {"command": rng.choice(_COMMANDS), "workingDirectory": ROOT, "timeout": 30_000}
    if name == "ace-text_search":
        return {"pattern": rng.choice(_WORDS), "fileGlob": "**/*.py", "maxResults": 100}
    if name == "filesystem-list":
        return {"dirPath": "src"}
    if name == "filesystem-edit":
        old, new = (_text(rng, min(20_000, int(rng.lognormvariate(6, 1)))) for _ in range(2))
        return {"filePath": _path(rng), "searchContent": old, "replaceContent": new}
    shape = rng.random()
    if shape < 0.1:
        return {"filePath": [_path(rng) for _ in range(rng.randint(2, 4))]}
    if shape < 0.3:
        return {"filePath": f"{ROOT}/{_path(rng)}"}
    first = rng.randint(1, 400)
    return {"filePath": _path(rng), "startLine": first, "endLine": first + rng.randint(20, 400)}


def _path(rng: random.Random) -> str:
    """Return one of 200 files, some of them much more often than others."""
    number = min(199, int(rng.expovariate(1 / 40)))
    return f"src/{('api', 'core', 'ui', 'db')[number % 4]}/module_{number}.py"


def _result(rng: random.Random, name: str) -> str:
    text = _text(rng, int(rng.lognormvariate(0, _SIGMA) * _MEDIAN))
    if rng.random() < 0.04:
        return f"Error: {text}"
    if name != "terminal-execute" or rng.random() < 0.5:
        return text
    code = rng.choices((0, 1, 2), (88, 10, 2))[0]
    answer = {
        "stdout": text,
        "stderr": text[:200] if code else "",
        "exitCode": code,
        "command": rng.choice(_COMMANDS),
    }
    return json.dumps(answer, ensure_ascii=False)


def _text(rng: random.Random, length: int) -> str:
    corpus = _corpus(rng.random() < 0.2)
    start = rng.randrange(_CORPUS)
    return corpus[start : start + length]


@cache
def _corpus(beyond_ascii: bool) -> str:
    """Return a long text like code.

    It is long enough for a slice of half a million characters at any start.
    """
    rng = random.Random(7)
    words = (*_WORDS, "配置", "文件", "—", "é") if beyond_ascii else _WORDS
    lines = (
        "    " * rng.randint(0, 3) + " ".join(rng.choices(words, k=rng.randint(2, 12)))
        for _ in range(_CORPUS // 20)
    )
    text = "\n".join(lines)
    return text * (3 * _CORPUS // len(text) + 1)
