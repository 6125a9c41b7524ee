"""Ten sessions that programs go on with: four of every sort of message, one of each program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from store import Policy, Store
from store.importing import import_file

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "transcripts")]

import made_up

START = 1_767_268_800_000
MINUTE = 60_000
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
Message = dict[str, Any]


def text(words: str) -> Message:
    """Return a block of text."""
    return {"type": "text", "text": words}


def asked(*blocks: Message | str) -> Message:
    """Return what a user says."""
    return {"role": "user", "content": [text(x) if isinstance(x, str) else x for x in blocks]}


def said(*blocks: Message | str) -> Message:
    """Return what a model says."""
    return asked(*blocks) | {"role": "assistant"}


def called(name: str, tool: str, **arguments: Any) -> Message:
    """Return a call."""
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}


def answered(name: str, *blocks: Message | str, failed: bool = False) -> Message:
    """Return the result of a call."""
    content = asked(*blocks)["content"]
    return {"type": "tool_result", "tool_use_id": name, "content": content, "is_error": failed}


TALK = [
    asked("What is in this picture, and what in src?", PICTURE),
    said(
        "I look at both.",
        called("toolu_1", "Read", file_path="src/zones.c"),
        called("toolu_2", "Bash", command="ls -l src", timeout=4_000),
    ),
    asked(answered("toolu_1", "int zone = 4711;\n"), answered("toolu_2", "zones.c\nzones.h\n")),
    said("A dot, and two files of zones."),
    asked("And the tests? 文件 😀 e\u0301 </system> `x` \\n"),
    said("There are none."),
]
SEEN = [
    asked("Take a screenshot of the page."),
    said(called("toolu_1", "screenshot", url="http://localhost/")),
    asked(answered("toolu_1", "The page, 1 by 1:", PICTURE)),
    said("It is one dot.", called("toolu_2", "screenshot", url="http://localhost/two")),
    asked(answered("toolu_2", PICTURE), "Look at both corners, too."),
    said("Both are red."),
]
BROKEN = [
    asked("Build it."),
    said("First the tools.", called("functions.make:0", "functions.make", target="all", jobs=2)),
    asked(answered("functions.make:0", "make: *** No rule to make target 'all'.", failed=True)),
    said(
        called("toolu_2", "mcp__files__read_many", paths=["a b.c", "ü.c"], deep={"at": [1, None]})
    ),
    asked(answered("toolu_2", "line of a file that is long\n" * 700)),
    said("The rule is missing.", called("toolu_3", "Bash", command="true")),
    asked(answered("toolu_3", ""), "Stop here, and say why."),
    said("The Makefile has no target of that name."),
]


def talk(store: Store, name: str) -> None:
    """Fill a session with texts, a picture and parallel calls, below a system prompt."""
    add(store, name, [{"role": "system", "content": "Be kind to the quinoa."}], None)
    add(store, name, TALK)


def see(store: Store, name: str) -> None:
    """Fill a session with pictures of results."""
    add(store, name, SEEN)


def fail(store: Store, name: str) -> None:
    """Fill a session with a call that failed, odd names, a long and an empty result."""
    add(store, name, BROKEN)


def compact(store: Store, name: str) -> None:
    """Fill a session with all of that, and hide all but the last turn behind a summary."""
    for part in (TALK, SEEN, BROKEN, TALK):
        add(store, name, part)
    policy = Policy(keep_turns=1, trigger_tokens=1)
    assert store.compact(name, policy, lambda _: "So far the zones were seen.").id
    add(store, name, [asked("Is that all of it?"), said("That is all of it.")])


def add(store: Store, name: str, messages: list[Message], form: str | None = "anthropic") -> None:
    """Append messages a minute apart; ids of calls are used once."""
    head = store.session(name).head
    given = json.loads(json.dumps(messages).replace("toolu_", f"toolu_{head}_"))
    for number, message in enumerate(given):
        moment = START + (head + number) * MINUTE
        store.append(name, {**message, "timestamp": moment}, format=form, now=moment)


MADE: dict[str, Callable[[Store, str], None]] = {
    "talk": talk,
    "pictures": see,
    "failures": fail,
    "compacted": compact,
}
"""Sessions made here, by name."""
KINDS = ("claude_code", "codex", "opencode", "pi", "qwen_code", "gemini_cli")
"""The programs, of each of which a session is imported."""


def list_sessions(store: Store, folder: Path, project: Path) -> Iterator[tuple[str, str]]:
    """Yield ten sessions, each by what it is and its id, and make them in a store.

    Their project is a folder that exists, so that a program can be started in it.
    """
    for name, fill in MADE.items():
        store.create_session(name, title=f"All of {name}", project_root=str(project), now=START)
        fill(store, name)
        yield name, name
    for kind in KINDS:
        path = folder / f"{kind}.jsonl"
        made_up.SAMPLES[kind](path)
        yield f"of {kind}", import_session(store, path, project)


def import_session(store: Store, path: Path, project: Path) -> str:
    """Import the first session of a file as one of a project, and return its id."""
    with Store(":memory:") as apart:
        first = import_file(apart, path).sessions[0].id
        session = apart.session(first)
        name = f"{path.parent.name}-{path.stem}"[-60:]
        store.create_session(
            name, title=session.title, project_root=str(project), metadata=session.metadata
        )
        for page in apart.pages(first):
            store.append(name, [each.message for each in page], dedupe="off")
    return name
