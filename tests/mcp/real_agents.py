"""``python -m tests.mcp.real_agents [PROGRAM ...]``: real coding agents call each tool of the MCP server.

Each program is installed from npm, gets an empty home with one session of Claude Code in it, and
the server by ``convostore mcp --install``. A made-up model on loopback then asks for each tool in
turn, in the format of the program's provider. ``--write`` puts what was called and answered into
``docs/mcp.md``; ``--folder`` keeps the installed programs for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from store import Store
from store.exporting import export_session

ModelT = TypeVar("ModelT", bound="Model")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mcp.md"
MARK = re.compile(r"(<!-- agents -->\n).*?(<!-- end -->)", re.DOTALL)
SESSION = "0b8f4d5c-0000-4000-8000-000000000001"
START, MINUTE = 1_767_268_800_000, 60_000
WIDTH = 120
LABELS = ("session", "title", "project", "program", "resume", "at", "notice")
LONGEST = 240
"""Seconds that a program may take for all its calls."""

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sessions", {"limit": 5}),
    ("search", {"text": "quinoa zones"}),
    ("remember", {"text": "why does the quinoa build fail?", "budget": 600}),
    ("recall", {"session": SESSION, "text": "zones.c"}),
    ("read", {"session": SESSION, "seq": 3, "limit": 4}),
    ("files", {"session": SESSION}),
    ("touched", {"path": "src/zones.c"}),
    ("commands", {"failed": True}),
    ("mended", {"text": "fatal error: zones/table_12.h not found"}),
    ("day", {"day": "2026-01-01"}),
    ("fork", {"session": SESSION, "seq": 3}),
    ("note", {"session": SESSION, "seq": 1, "text": "the header is generated"}),
)
"""What the model asks for, in this order."""


class Wire(NamedTuple):
    """How a provider is spoken to.

    ``list_tools`` yields the names of the tools of a request, with what a call repeats beside the
    name; ``list_results`` yields the results of calls in it, by the ids of these; ``call`` and
    ``say`` are the events of an answer with a call, or with a text.
    """

    list_tools: Callable[[dict[str, Any]], Iterator[tuple[str, dict[str, Any]]]]
    list_results: Callable[[dict[str, Any]], Iterator[tuple[str, Any]]]
    call: Callable[[str, str, dict[str, Any], dict[str, Any]], list[dict[str, Any]]]
    say: Callable[[str], list[dict[str, Any]]]


def _list_anthropic_tools(asked: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in asked.get("tools") or ():
        yield tool["name"], {}


def _list_anthropic_results(asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for message in asked["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_result":
                yield block["tool_use_id"], block.get("content")


def _answer_anthropic(block: dict[str, Any], delta: dict[str, Any], stop: str) -> list[Any]:
    usage = {"input_tokens": 100, "output_tokens": 20}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "made-up",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


def _call_anthropic(
    call_id: str, name: str, arguments: dict[str, Any], _: dict[str, Any]
) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    return _answer_anthropic(block, delta, "tool_use")


def _say_anthropic(text: str) -> list[dict[str, Any]]:
    delta = {"type": "text_delta", "text": text}
    return _answer_anthropic({"type": "text", "text": ""}, delta, "end_turn")


def _list_responses_tools(asked: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in asked.get("tools") or ():
        if tool["type"] == "namespace":
            space = {"namespace": tool["name"]}
            yield from ((f"{tool['name']}{each['name']}", space) for each in tool["tools"])
        else:
            yield tool.get("name", tool["type"]), {}


def _list_responses_results(asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for item in asked["input"] if isinstance(asked["input"], list) else ():
        if item.get("type") == "function_call_output":
            yield item["call_id"], item["output"]


def _answer_responses(item: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    done = {"id": "resp_1", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _call_responses(
    call_id: str, name: str, arguments: dict[str, Any], space: dict[str, Any]
) -> list[dict[str, Any]]:
    name = name.removeprefix(space.get("namespace", ""))
    item = {"type": "function_call", "call_id": call_id, "name": name, **space}
    return _answer_responses(item | {"id": f"fc_{call_id}", "arguments": json.dumps(arguments)})


def _say_responses(text: str) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    return _answer_responses(item)


def _list_chat_tools(asked: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in asked.get("tools") or ():
        yield tool["function"]["name"], {}


def _list_chat_results(asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for message in asked["messages"]:
        if message["role"] == "tool":
            yield message["tool_call_id"], message["content"]


def _answer_chat(delta: dict[str, Any], reason: str) -> list[dict[str, Any]]:
    frame = {"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": "made-up"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return [
        frame | {"choices": [{"index": 0, "delta": {"role": "assistant"} | delta}]},
        frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]


def _call_chat(
    call_id: str, name: str, arguments: dict[str, Any], _: dict[str, Any]
) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": call_id, "type": "function", "function": function}
    return _answer_chat({"tool_calls": [call]}, "tool_calls")


def _list_gemini_tools(asked: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tools in asked.get("tools") or ():
        yield from ((each["name"], {}) for each in tools.get("functionDeclarations") or ())


def _list_gemini_results(asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    parts = (part for content in asked["contents"] for part in content["parts"])
    results = (part["functionResponse"] for part in parts if "functionResponse" in part)
    for at, result in enumerate(results):
        yield f"call_{at}", result["response"]


def _answer_gemini(part: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    content = {"role": "model", "parts": [part]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "made-up"}]


WIRES = {
    "messages": Wire(
        _list_anthropic_tools, _list_anthropic_results, _call_anthropic, _say_anthropic
    ),
    "responses": Wire(
        _list_responses_tools, _list_responses_results, _call_responses, _say_responses
    ),
    "completions": Wire(
        _list_chat_tools,
        _list_chat_results,
        _call_chat,
        lambda text: _answer_chat({"content": text}, "stop"),
    ),
    "streamGenerateContent": Wire(
        _list_gemini_tools,
        _list_gemini_results,
        lambda _, name, arguments, __: _answer_gemini(
            {"functionCall": {"name": name, "args": arguments}}
        ),
        lambda text: _answer_gemini({"text": text}),
    ),
}
"""By the last part of the path that is asked."""


WAITS: dict[str, dict[str, Any]] = {
    "ToolSearch": {"query": "+convostore", "max_results": 20},
    "WaitForMcpServers": {},
    "exec_command": {"cmd": "sleep 2"},
}
"""Tools of the programs that are called while the server, or its tools, are not there yet."""
MOST_WAITS = 20


class Model(ThreadingHTTPServer):
    """A model that asks for each tool once, and keeps what they answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.results: dict[str, Any] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, wire: Wire, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of the answer to a request."""
        named = dict(wire.list_tools(asked))
        tools = {tool: name for name in named if (tool := _find_tool(name))}
        given = [*wire.list_results(asked)]
        results = {key: value for key, value in given if key[:5] == "call_"}
        for key, result in results.items():
            self.results[CALLS[int(key[5:])][0]] = result
        if not named or len(results) == len(CALLS):
            return wire.say("All tools have answered.")
        wanted, arguments = CALLS[len(results)]
        if wanted in tools:
            name = tools[wanted]
            return wire.call(f"call_{len(results)}", name, arguments, named[name])
        wait = next((each for each in WAITS if each in named), None)
        waited = len(given) - len(results)
        if wait is None or waited >= MOST_WAITS:
            return wire.say(f"There is no tool {wanted}.")
        return wire.call(f"wait_{waited}", wait, WAITS[wait], {})


def _find_tool(name: str) -> str | None:
    """Return which of our tools a program's name of it means."""
    found = re.fullmatch(r"(?:mcp_+)?convostore_*(\w+)", name)
    return found[1] if found else None


class Answers(BaseHTTPRequestHandler):
    """Answers in the format of the path that is asked."""

    server: Model

    def do_POST(self) -> None:
        """Answer with events, or with one object where no stream is asked for."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        wire = WIRES.get(re.split("[/:]", self.path.partition("?")[0])[-1])
        if wire is None:
            self._send("application/json", json.dumps({"input_tokens": 100}))
            return
        events = self.server.answer(wire, asked)
        lines = [
            f"event: {each['type']}\ndata: {json.dumps(each)}\n\n"
            if "type" in each
            else f"data: {json.dumps(each)}\n\n"
            for each in events
        ]
        self._send("text/event-stream", "".join(lines))

    def do_GET(self) -> None:
        """Know no models."""
        self._send("application/json", json.dumps({"data": [], "models": []}))

    def _send(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def show_lines(pattern: str) -> Callable[[str], Iterator[str]]:
    """Return a function that yields the lines of a program that have a pattern."""
    return lambda printed: (each for each in printed.splitlines() if re.search(pattern, each))


def show_events(printed: str) -> Iterator[str]:
    """Yield the calls and the results that Claude Code prints as JSON, in a line each."""
    for line in printed.splitlines():
        if not line.startswith('{"type":'):
            continue
        message = json.loads(line).get("message") or {}
        blocks = message.get("content") if isinstance(message, dict) else ()
        for block in blocks if isinstance(blocks, list) else ():
            if block["type"] == "tool_use" and _find_tool(block["name"]):
                yield f"{block['name']} {json.dumps(block['input'])}"
            elif block["type"] == "tool_result" and block["tool_use_id"][:5] == "call_":
                yield f"  {shorten_answer(read_answer(block['content']))}"


def shorten_answer(answer: Any) -> str:
    """Return the first item of an answer, without what names its session."""
    lists = (each for each in reversed(answer.values()) if isinstance(each, list) and each)
    items = next(lists, [answer])
    told = {key: value for key, value in items[0].items() if key not in LABELS}
    return json.dumps(told or items[0], ensure_ascii=False)


class Agent(NamedTuple):
    """A program: its package, how it is asked, its environment, and files that it needs.

    ``{url}`` in them is where the model listens. ``show`` yields the lines for the page.
    """

    package: str
    command: tuple[str, ...]
    variables: dict[str, str]
    files: dict[str, str]
    show: Callable[[str], Iterator[str]] = show_lines("convostore")


ASKED = "Ask the past."
AGENTS = {
    "claude-code": Agent(
        "@anthropic-ai/claude-code",
        (
            *("claude", "-p", ASKED, "--allowedTools", "mcp__convostore"),
            *("--output-format", "stream-json", "--verbose"),
        ),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "made-up",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "MCP_TIMEOUT": "120000",
        },
        {},
        show_events,
    ),
    "codex": Agent(
        "@openai/codex",
        (
            *("codex", "exec", "--skip-git-repo-check"),
            *("--dangerously-bypass-approvals-and-sandbox", ASKED),
        ),
        {"MADE_UP_KEY": "made-up"},
        {
            ".codex/config.toml": 'model = "made-up"\nmodel_provider = "made"\n\n'
            '[model_providers.made]\nname = "made"\nbase_url = "{url}/v1"\n'
            'env_key = "MADE_UP_KEY"\nwire_api = "responses"\n'
        },
        show_lines(r"^mcp: .*\((completed|failed)"),
    ),
    "gemini-cli": Agent(
        "@google/gemini-cli",
        (
            *("gemini", "-m", "gemini-2.5-pro", "--yolo", "-p", ASKED),
            *("--output-format", "stream-json"),
        ),
        {
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_API_KEY": "made-up",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        {".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
        lambda printed: iter(re.findall(r'"tool_name":"(mcp_convostore_\w+)"', printed)),
    ),
    "opencode": Agent(
        "opencode-ai",
        ("opencode", "run", "-m", "made/up", ASKED),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        {
            ".config/opencode/opencode.json": json.dumps(
                {
                    "provider": {
                        "made": {
                            "npm": "@ai-sdk/openai-compatible",
                            "options": {"baseURL": "{url}/v1", "apiKey": "made-up"},
                            "models": {
                                "up": {
                                    "name": "up",
                                    "attachment": True,
                                    "modalities": {
                                        "input": ["text", "image", "pdf"],
                                        "output": ["text"],
                                    },
                                }
                            },
                        }
                    }
                }
            )
        },
    ),
}


class Outcome(NamedTuple):
    """What each tool answered, and what the program printed."""

    answers: dict[str, Any]
    printed: str


def install_packages(folder: Path, packages: Sequence[str], *, newest: bool = False) -> None:
    """Install programs from npm, with their scripts. Raises CalledProcessError, TimeoutExpired.

    ``newest`` asks for the releases of today, else those known here are good enough.
    """
    known = [] if newest else ["--prefer-offline"]
    options = ["--no-audit", "--no-fund", *known, "--prefix", str(folder)]
    wanted = [f"{package}@latest" for package in packages] if newest else packages
    command = ["npm", "install", *options, *wanted]
    subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)


def ask_agent(name: str, programs: Path) -> Outcome:
    """Install the server in a program, run it in an empty home, and return what was answered."""
    with tempfile.TemporaryDirectory(prefix="agent-") as folder, serve_model(Model) as model:
        home = Path(folder, "home")
        project = home / "parcel"
        project.mkdir(parents=True)
        write_past(home)
        agent = AGENTS[name]
        environment = prepare_home(home, programs, model.url, agent.files, agent.variables)
        command = [sys.executable, "-m", "store", "mcp", "--install", name, "--yes"]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)
        printed = run_program(agent.command, environment, project)
        return Outcome({key: read_answer(each) for key, each in model.results.items()}, printed)


def prepare_home(
    home: Path, programs: Path, url: str, files: dict[str, str], variables: dict[str, str]
) -> dict[str, str]:
    """Write the files of a program into its home; return its environment.

    ``{url}`` in the files and the variables is the address of the model.
    """
    for path, text in files.items():
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{url}", url))
    told = {key: value.replace("{url}", url) for key, value in variables.items()}
    path = f"{programs / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "TERM": "dumb", **told}


def run_program(command: Sequence[str], environment: dict[str, str], folder: Path) -> str:
    """Run a command to its end, and return what it printed."""
    done = subprocess.run(
        command,
        check=False,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LONGEST,
        text=True,
    )
    return done.stdout


def read_answer(result: Any) -> Any:
    """Return the JSON of a tool's answer, wherever a program puts it; otherwise its text."""
    text = result if isinstance(result, str) else json.dumps(result)
    if isinstance(result, list):
        text = "\n".join(str(each.get("text", "")) for each in result)
    if isinstance(result, dict):
        text = str(result.get("output", text))
    decoder = json.JSONDecoder()
    for found in re.finditer(r"\{", text):
        try:
            return decoder.raw_decode(text, found.start())[0]
        except ValueError:
            continue
    return text


@contextmanager
def serve_model(kind: Callable[[], ModelT]) -> Iterator[ModelT]:
    """Give a model that listens until the end."""
    model = kind()
    thread = threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        model.shutdown()
        model.server_close()
        thread.join()


def write_past(home: Path) -> None:
    """Write one session of Claude Code into a home: a build that fails, and is mended."""
    folder = home / ".claude" / "projects" / "-srv-parcel"
    folder.mkdir(parents=True)
    with Store(":memory:") as store:
        store.create_session(SESSION, project_root="/srv/parcel", now=START)
        store.append(SESSION, [*list_past_messages()], now=START)
        file = folder / f"{SESSION}.jsonl"
        export_session(store, SESSION, file, shape="claude_code")
    text = file.read_text("utf-8")
    file.write_text(text.replace(json.loads(text.splitlines()[-1])["sessionId"], SESSION), "utf-8")


def list_past_messages() -> Iterator[dict[str, Any]]:
    """Yield the messages of that session."""
    yield {"role": "user", "content": "The build of the quinoa target fails.", "timestamp": START}
    steps = (
        ("Bash", {"command": "make quinoa"}, "fatal error: zones/table_4711.h not found", "error"),
        ("Edit", {"file_path": "/srv/parcel/src/zones.c", "new_string": "x"}, "ok", "completed"),
        ("Bash", {"command": "make quinoa"}, "built", "completed"),
    )
    for number, (name, arguments, result, status) in enumerate(steps, 1):
        at = START + number * MINUTE
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"toolu_{number}", "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": at}
        told = {"role": "tool", "tool_call_id": call["id"], "content": result}
        yield told | {"messageStatus": status, "timestamp": at}
    said = "We keep the table in zones.c, because the header is generated."
    yield {"role": "assistant", "content": said, "timestamp": START + 4 * MINUTE}


def find_problems(outcome: Outcome) -> list[str]:
    """Return which tools were not called, or answered with an error."""
    missing = [f"{tool} was not called" for tool, _ in CALLS if tool not in outcome.answers]
    failed = [
        f"{tool}: {answer}"
        for tool, answer in outcome.answers.items()
        if not isinstance(answer, dict) or answer.get("is_error") or "error" in answer
    ]
    return missing + failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a program did not call each tool."""
    parser = argparse.ArgumentParser(prog="python -m tests.mcp.real_agents", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(AGENTS))
    parser.add_argument("--folder", type=Path, help="where the programs are installed, and kept")
    parser.add_argument(
        "--write", action="store_true", help="write the page, of the releases of today"
    )
    options = parser.parse_args(arguments)
    names = options.programs or list(AGENTS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not (folder / "node_modules").exists():
            packages = [AGENTS[name].package for name in names]
            install_packages(folder, packages, newest=options.write)
        outcomes = {name: ask_agent(name, folder) for name in names}
        versions = {name: read_version(name, folder) for name in names}
    problems = [
        f"{name}: {each}" for name, outcome in outcomes.items() for each in find_problems(outcome)
    ]
    screens = [render_screen(name, versions[name], each) for name, each in outcomes.items()]
    print(*screens, *problems, sep="\n")
    if options.write and not problems:
        text = "\n\n".join(screens)
        page = PAGE.read_text("utf-8")
        PAGE.write_text(MARK.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page), "utf-8")
    return int(bool(problems))


def read_version(name: str, folder: Path) -> str:
    """Return the version of an installed program."""
    package = folder / "node_modules" / AGENTS[name].package / "package.json"
    return str(json.loads(package.read_text("utf-8"))["version"])


def render_screen(name: str, version: str, outcome: Outcome) -> str:
    """Return what a program showed of its calls."""
    printed = re.sub(r"\x1b\[[0-9;]*m", "", outcome.printed)
    lines = [
        each if len(each) <= WIDTH else f"{each[: WIDTH - 1]}…"
        for each in AGENTS[name].show(printed)
    ]
    shown = "\n".join([f"$ {AGENTS[name].command[0]}", *lines])
    return f"{name} {version}\n\n```text\n{shown}\n```"


if __name__ == "__main__":
    sys.exit(main())
