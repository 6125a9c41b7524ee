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
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from file_tools import FileTools, write
from scripted_model import PROJECT, START, TURNS, ScriptedModel

from store import Context, Policy, Store
from store.context import LAYERS

Message = dict[str, Any]
Model = Callable[[list[Message], list[Any] | None], Message]

SESSION = "shop"
WIDTH, MOST = 90, 7
SYSTEM = "You are a careful engineer. Read before you write, and run the check after every change."
POLICY = Policy.named("turns", context_window=2_500, keep_turns=2)
"""A small window, so that there is something to compact."""


class Agent:
    """Turns of one session: each is the user's input, and steps until the model answers."""

    def __init__(self, store: Store, project: Path, model: Model) -> None:
        self.store, self.model = store, model
        self.tools = FileTools(project, self.now)
        self.log = Log(project.parent / "requests.jsonl")

    def now(self) -> int:
        """Return the time, in ms: here it goes on by 20 seconds with each message."""
        return START + 20_000 * self.store.session(SESSION).head

    def ask(self, text: str) -> str:
        """Begin a turn; return its answer.

        The input is stored first, as typed, so that a crash cannot lose it.
        """
        compacted = self.store.compact_if_needed(
            SESSION, POLICY, user_input=text, reason="llm_call", now=self.now()
        )
        if compacted and compacted.hidden:
            say(
                f"    compaction {compacted.id} {compacted.outcome}:"
                f" messages {compacted.hidden} gave way to a summary"
            )
        self.store.append(SESSION, {"role": "user", "content": text}, now=self.now())
        return self.go_on()

    def go_on(self) -> str:
        """Take the steps that are left of the current turn; return its answer.

        Each is stored as it happens.
        """
        while True:
            request = self.request()
            self.log.note(request)
            reply = self.model(request.messages, self.tools.definitions())
            usage = {
                "input": request.tokens,
                "output": len(str(reply)) // 4,
                "cached": request.stable_prefix_tokens,
            }
            self.store.record_usage(SESSION, **usage, now=self.now())
            self.store.append(SESSION, reply, now=self.now())
            if "tool_calls" not in reply:
                return str(reply["content"])
            for call in reply["tool_calls"]:
                self.take(call)

    def request(self) -> Context:
        """Return what is sent to the model.

        Prompts, rules, history, input, steps, what is left to do.
        """
        return self.store.context(
            SESSION, SYSTEM, self.tools.definitions(), policy=POLICY, now=self.now()
        )

    def take(self, call: Message) -> None:
        """Run a tool, and store all that it says."""
        content = self.tools.run(call["function"]["name"], call["function"]["arguments"])
        result = {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": content,
            "timestamp": self.now(),
        }
        self.store.append(SESSION, result, now=self.now())


class Log:
    """Prints what is sent, and keeps it in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent = 0
        self.turn: int | None = None

    def note(self, request: Context) -> None:
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
        pieces = [(each.layer, each.seq) for each in request.pieces]
        fields = {**request._asdict(), "pieces": pieces, "view": request.view.at}
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
            say(f"    answer: {agent.ask(turn.wants)}")


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
    """Print that nothing was lost, by the crash or by the compaction."""
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
    with TemporaryDirectory(prefix="convostore-agent-") as temporary:
        folder = Path(*arguments[:1] or [temporary])
        if folder.exists() and any(folder.iterdir()):
            return f"{folder} is not empty"
        run(folder)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
