"""An agent on a store.

It asks a model, runs tools, is killed in mid-turn, and goes on as if nothing had happened.

    python examples/agent.py [FOLDER]

The model plays a script, so that every run prints the same; the tools, the store and the crash are
real. With a FOLDER the project, the store and a log of all requests stay there. `Agent` is the part
to read.
"""

from __future__ import annotations

import hashlib
import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from file_tools import FileTools, write
from scripted_model import PROJECT, START, TURNS, ScriptedModel

from store import Context, Policy, Store
from store.context import LAYERS
from store.recall import NAME, answer

Message = dict[str, Any]
Model = Callable[[list[Message], list[Any] | None], Message]

SESSION = "shop"
STEP = 20_000
"""Ms from one message to the next."""
WINDOW = 5_500
WIDTH, MOST = 90, 7
SYSTEM = "You are a careful engineer. Read before you write, and run the check after every change."
POLICY = Policy.named("agent", context_window=WINDOW, clear_keep=4, recall=True)
"""A small window and few results that stay, so that there is something to clear and to compact."""


class Agent:
    """Turns of one session: each is the user's input, and steps until the model answers."""

    def __init__(self, store: Store, project: Path, model: Model) -> None:
        self.store, self.model = store, model
        self.tools = FileTools(project, self.now)
        self.log = Log(project.parent / "requests.jsonl")
        self.fixed_tokens = 0

    def now(self) -> int:
        """Return the time, in ms: here it goes on with each message."""
        said = self.store.messages(SESSION, start=-1)
        return said[0].stored_at + STEP if said else START

    def ask(self, text: str, away: int = 0) -> str:
        """Begin a turn, after so many ms in which the user was away; return its answer.

        The input is stored first, as typed, so that a crash cannot lose it.
        """
        self.store.append(SESSION, {"role": "user", "content": text}, now=self.now() + away)
        return self.go_on()

    def go_on(self) -> str:
        """Take the steps that are left of the current turn; return its answer.

        Each is stored as it happens.
        """
        while True:
            self.make_room()
            request = self.request()
            self.fixed_tokens = request.fixed_tokens
            self.log.note(request, self.now())
            reply = self.model(request.messages, request.tools)
            self.store.record_usage(
                SESSION,
                input=request.tokens,
                output=len(str(reply)) // 4,
                cached=request.stable_prefix_tokens,
                now=self.now(),
            )
            self.store.append(SESSION, reply, now=self.now())
            if "tool_calls" not in reply:
                return str(reply["content"])
            for call in reply["tool_calls"]:
                self.take(call)

    def make_room(self) -> None:
        """Let the store clear and compact before a request, where the policy says so."""
        done = self.store.compact_if_needed(
            SESSION, POLICY, fixed_tokens=self.fixed_tokens, now=self.now()
        )
        if done and done.kind == "clear":
            say(f"    clearing {done.id}: {len(done.cleared)} results gave way to a line each")
        elif done and done.hidden:
            say(f"    compaction {done.id}: messages {done.hidden} gave way to a summary")

    def request(self) -> Context:
        """Return what is sent to the model.

        Prompts, rules, history, input, steps, what is left to do; beside the tools for files the
        one that calls back what is out of sight.
        """
        return self.store.context(
            SESSION, SYSTEM, self.tools.definitions(), policy=POLICY, now=self.now(), recall=True
        )

    def take(self, call: Message) -> None:
        """Run a tool, and store all that it says."""
        content = self.run(call["function"]["name"], call["function"]["arguments"])
        result = {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": content,
            "timestamp": self.now(),
        }
        self.store.append(SESSION, result, now=self.now())

    def run(self, name: str, arguments: str) -> str:
        """Return what a tool says."""
        if name == NAME:
            return answer(self.store, SESSION, arguments, policy=POLICY)
        return self.tools.run(name, arguments)


class Log:
    """Prints what is sent, and keeps it in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent = 0
        self.turn: int | None = None

    def note(self, request: Context, now: int) -> None:
        """Print the tokens of each layer, how many are cached still, and which messages are new."""
        new = self.sent if request.first_changed is None else request.first_changed
        lines = [f"      {each.layer:10}  {short(each.message)}" for each in request.pieces[new:]]
        if len(lines) > MOST:
            lines[2 : 2 - MOST] = [f"      … {len(lines) - MOST} more"]
        if request.open_turn != self.turn:
            say(row([*LAYERS, "tokens", "cached", "request"]))
        say(
            row(
                [
                    *request.layers.values(),
                    request.tokens,
                    request.stable_prefix_tokens,
                    digest(request.messages),
                ]
            )
        )
        say(*lines)
        self.sent, self.turn = len(request.messages), request.open_turn
        fields = {
            "messages": request.messages,
            "layers": request.layers,
            "stable_prefix_tokens": request.stable_prefix_tokens,
            "first_changed": request.first_changed,
            "open_turn": request.open_turn,
            "tools": request.tools,
            "pieces": [(each.layer, each.seq) for each in request.pieces],
            "view": request.view.at,
            "now": now,
            "is_first": request.is_first,
            "notices": request.notices,
            "system": request.system,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")


def talk(folder: Path, *, mortal: bool) -> None:
    """Go on with the session where it is.

    Finish a turn that was cut off, then take the turns that are left.
    """
    with Store(folder / "chat.db") as store:
        agent = Agent(store, folder / "project", ScriptedModel(mortal=mortal))
        if agent.request().open_turn:
            say("", "The last turn has no answer yet: on with it.")
            say(f"    answer: {agent.go_on()}")
        begun = sum(each.message["role"] == "user" for each in store.messages(SESSION))
        for turn in TURNS[begun:]:
            turn.before(folder / "project")
            say("", f"Turn {TURNS.index(turn) + 1}: {turn.wants}")
            say(f"    answer: {agent.ask(turn.wants, turn.away)}")


def run(folder: Path) -> None:
    """Make a project and a session.

    Talk in a process that is killed in mid-turn, then in this one.
    """
    for name, text in PROJECT.items():
        write(folder / "project" / name, text, START)
    with Store(folder / "chat.db") as store:
        store.create_session(
            SESSION, title="A shop", project_root=str(folder / "project"), now=START
        )
    first = get_context("spawn").Process(target=talk, args=(folder,), kwargs={"mortal": True})
    first.start()
    first.join()
    say("", f"The process was killed: exit code {first.exitcode}.")
    talk(folder, mortal=False)
    with Store(folder / "chat.db") as store:
        report(store)


def report(store: Store) -> None:
    """Print that nothing was lost, by the crash or by what was cleared and compacted."""
    raw, view, hidden = store.messages(SESSION), store.view(SESSION, POLICY), store.hidden(SESSION)
    said = sum(1 + sum(1 + len(step.calls) for step in turn.steps) for turn in TURNS)
    say(
        "",
        f"stored: {len(raw)} of {said} messages, whole:"
        f" {size(each.message for each in raw)} characters",
    )
    say(f"hidden: {len(hidden)} of them, behind a summary")
    say(f"sent:   {len(view.messages)} messages, {size(view.messages)} characters")
    say(f"found:  {len(store.verify())} faults in the store")


def size(messages: Iterable[Message]) -> int:
    """Return how many characters messages have."""
    return sum(len(json.dumps(message)) for message in messages)


def row(columns: Iterable[object]) -> str:
    """Return one line of the table of requests."""
    return "    " + "".join(f"{column:>11}" for column in columns)


def short(message: Message) -> str:
    """Return a message on one line."""
    calls = [
        f"{call['function']['name']}[{call['function']['arguments']}]"
        for call in message.get("tool_calls", ())
    ]
    line = " ".join([message["content"] or "", *calls]).replace("\n", " ")
    return f"{message['role']:9}  {line if len(line) <= WIDTH else line[: WIDTH - 1] + '…'}"


def digest(messages: Sequence[Message]) -> str:
    """Return a few letters that tell equal requests from others."""
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:8]


def say(*lines: str) -> None:
    """Print lines at once: the process may be killed at any moment."""
    for line in lines:
        print(line, flush=True)


def main(arguments: list[str]) -> str | None:
    """Run in a folder of the caller's, which is kept, or in a temporary one.

    Return what is wrong.
    """
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="one that is kept (a temporary one)")
    given: Path | None = parser.parse_args(arguments).folder
    with TemporaryDirectory(prefix="convostore-agent-") as temporary:
        folder = given or Path(temporary)
        if folder.exists() and any(folder.iterdir()):
            return f"{folder} is not empty"
        run(folder)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
