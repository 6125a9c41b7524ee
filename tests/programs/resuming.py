"""What each program needs to go on with a session, and what it then asks the model for."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from store import Policy, Store
from tests.mcp.real_agents import (
    AGENTS,
    ROOT,
    Model,
    Wire,
    prepare_home,
    run_program,
    serve_model,
)

ASKED = "Go on with the quinoa."
SAID = "Gone on."
MADE_UNIQUE = re.compile(r"-[0-9a-f]{10}$")
"""The end of a name of a tool that a provider does not take as it is."""
VIEW = Policy.named("raw", chat_extensions=False)
"""What ``export --view --policy raw`` writes; without a view, texts of ours are in English."""
RAW = Policy.named("raw", language="en", chat_extensions=False)


class Resumable(NamedTuple):
    """A program: its package, its environment and files, and how it is asked.

    ``first`` is put after the name of the program in the command that the export names, ``last``
    at its end.
    """

    package: str
    variables: dict[str, str]
    files: dict[str, str]
    first: tuple[str, ...]
    last: tuple[str, ...]
    cuts: str = ""
    """How a text looks that the program shortens by a rule of its own."""


def _take_agent(
    name: str, first: tuple[str, ...], last: tuple[str, ...], cuts: str = ""
) -> Resumable:
    agent = AGENTS[name]
    return Resumable(agent.package, agent.variables, agent.files, first, last, cuts)


PROGRAMS = {
    "claude_code": _take_agent("claude-code", (), ("-p", ASKED)),
    "codex": _take_agent(
        "codex",
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        (ASKED,),
        r"…\d+ (chars|tokens) truncated…",
    ),
    "opencode": _take_agent("opencode", ("run", "-m", "made/up"), (ASKED,)),
    "gemini_cli": _take_agent("gemini-cli", ("-m", "gemini-2.5-pro", "--yolo"), ("-p", ASKED)),
    "qwen_code": Resumable(
        "@qwen-code/qwen-code",
        {
            "OPENAI_API_KEY": "made-up",
            "OPENAI_BASE_URL": "{url}/v1",
            "OPENAI_MODEL": "gpt-5",
        },
        {
            ".qwen/settings.json": json.dumps(
                {
                    "security": {"auth": {"selectedType": "openai"}},
                    "model": {"generationConfig": {"modalities": {"image": True, "pdf": True}}},
                }
            )
        },
        ("--yolo",),
        ("-p", ASKED),
    ),
    "pi": Resumable(
        "@mariozechner/pi-coding-agent",
        {"PI_OFFLINE": "1"},
        {
            ".pi/agent/models.json": json.dumps(
                {
                    "providers": {
                        "made": {
                            "baseUrl": "{url}",
                            "api": "anthropic-messages",
                            "apiKey": "made-up",
                            "models": [{"id": "up", "input": ["text", "image"]}],
                        }
                    }
                }
            )
        },
        ("--provider", "made", "--model", "up"),
        ("-p", ASKED),
    ),
}
"""The programs by the shapes of exports."""


class Listener(Model):
    """A model that says a word, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, Any]] = []

    def answer(self, wire: Wire, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Keep a request; return the events of an answer."""
        self.requests.append(asked)
        return wire.say(SAID)


class Outcome(NamedTuple):
    """What of a session was looked for in the request, what was missing, and what was shortened."""

    found: int
    missing: list[str]
    cut: list[str]
    printed: str


def resume_session(name: str, programs: Path, store: Path, session: str, *options: str) -> Outcome:
    """Export a session as the command does, follow what it says, and look at the request."""
    program = PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix="resumed-") as folder, serve_model(Listener) as model:
        home = Path(folder)
        environment = prepare_home(home, programs, model.url, program.files, program.variables)
        file = home / "exported.jsonl"
        command = [sys.executable, "-m", "store", "--db", str(store), "export", session]
        command += ["--as", name, "--output", str(file), "--json", *options]
        told = json.loads(run_program(command, environment, ROOT))["next"]
        printed = follow_advice(program, told, file, environment)
        with Store(store) as opened:
            policy = VIEW if "--view" in options else RAW
            return compare(opened, session, model.requests, program, printed, policy)


def resume_moved_session(name: str, programs: Path, store: Path, session: str) -> list[Outcome]:
    """Move a session as the command does, twice, and let the program go on each time.

    The second time nothing that is there may be written over, what was said meanwhile least of all.
    """
    program = PROGRAMS[name]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="moved-") as folder, serve_model(Listener) as model:
        home = Path(folder)
        environment = prepare_home(home, programs, model.url, program.files, program.variables)
        command = [sys.executable, "-m", "store", "--db", str(store), "move", session]
        for again in (False, True):
            model.requests.clear()
            told = run_program([*command, "--to", name, "--yes"], environment, ROOT)
            advice = re.search(r"in /.*", told)
            assert advice, told
            printed = told + follow_advice(program, advice[0], home, environment)
            assert SAID in json.dumps(model.requests) or not again, printed
            with Store(store) as opened:
                outcomes.append(compare(opened, session, model.requests, program, printed))
    return outcomes


def follow_advice(program: Resumable, told: str, file: Path, environment: dict[str, str]) -> str:
    """Do what the command said: put the file there, or give it to a command; ask the program."""
    advice = re.fullmatch(r"(?:put it at (.+), then, )?in (.+?): (?:(.+), then: )?(.+)", told)
    assert advice, told
    place, project, taken, resume = advice.groups()
    if place:
        path = Path(place.replace("~", environment["HOME"], 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        file.rename(path)
    printed = ""
    if taken:
        words = [str(file) if each == "FILE" else each for each in shlex.split(taken)]
        printed = run_program(words, environment, Path(project))
    command, *options = shlex.split(resume)
    words = [command, *program.first, *options, *program.last]
    return printed + run_program(words, environment, Path(project))


# --- what a session says, and what a request says -------------------------------------------------


def compare(
    store: Store,
    session: str,
    requests: list[Any],
    program: Resumable,
    printed: str,
    policy: Policy = RAW,
) -> Outcome:
    """Return what of a session is not in the request that asks to go on."""
    asked = [each for each in requests if ASKED in json.dumps(each, ensure_ascii=False)]
    request = max(asked, key=lambda each: len(json.dumps(each)), default={})
    leaves = [*list_leaves(request)]
    words = "\0".join(map(squeeze, leaves))
    calls = {render_call(*each) for each in list_calls(request)}
    view = store.view(session, policy, format="anthropic")
    said = [view.system, *view.messages] if view.system else view.messages
    missing, cut, found = [], [], 0
    for part in list_parts(said):
        if part["type"] == "tool_use":
            is_there = render_call(part["name"], part["input"]) in calls
        else:
            is_there = squeeze(part["text"]) in words
        found += is_there
        if is_there:
            continue
        shown = part["text"] if "text" in part else json.dumps(part)
        is_cut = program.cuts and was_cut(part.get("text", ""), leaves, program.cuts)
        (cut if is_cut else missing).append(f"{part['type']}: {shown[:120]!r}")
    return Outcome(found, missing, cut, printed)


def was_cut(text: str, leaves: list[str], mark: str) -> bool:
    """Tell whether a text is there but for its middle."""
    for leaf in leaves:
        found = re.search(mark, leaf)
        if found is None:
            continue
        first, last = leaf[: found.start()], leaf[found.end() :]
        if squeeze(first)[-200:] in squeeze(text) and squeeze(last)[:200] in squeeze(text):
            return True
    return False


def list_parts(said: Any) -> Iterator[dict[str, Any]]:
    """Yield the texts, calls and pictures of messages; those of results, too."""
    match said:
        case list():
            for each in said:
                yield from list_parts(each)
        case {"role": _, "content": content} | {"type": "tool_result", "content": content}:
            yield from list_parts(content)
        case str(text) if text.strip():
            yield {"type": "text", "text": text}
        case {"type": "text", "text": str(text)} if text.strip():
            yield {"type": "text", "text": text}
        case {"type": "tool_use"}:
            yield said
        case {"source": {"data": str(data)}}:
            yield {"type": "picture", "text": data}


def list_leaves(value: Any) -> Iterator[str]:
    """Yield all texts of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from list_leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from list_leaves(each)


def list_calls(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and the arguments of the calls in a request, of any provider."""
    if isinstance(value, dict):
        name = value.get("name")
        for key in ("input", "arguments", "args"):
            if isinstance(name, str) and key in value:
                yield name, value[key]
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from list_calls(each)


def render_call(name: str, arguments: Any) -> str:
    """Return a call as a text that is the same for all providers."""
    try:
        told = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        told = arguments
    plain = re.sub("[^A-Za-z0-9]", "_", MADE_UNIQUE.sub("", name))
    return f"{plain} {json.dumps(told, sort_keys=True)}"


def squeeze(text: str) -> str:
    """Return a text without blanks."""
    return "".join(text.split())
