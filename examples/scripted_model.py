"""A model that plays a script, on a small project.

What it is sent decides which step comes next, as with a real one.

It is a function from request to reply and remembers nothing. So a turn that was cut off goes on
where it was, whoever asks. Each step also looks whether the request has what it must know by now.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from file_tools import write

Message = dict[str, Any]
Call = tuple[str, dict[str, Any]]

START = 1_767_225_600_000
"""When all this happens: 2026-01-01T00:00:00Z, in ms."""
AN_HOUR = 3_600_000

PRICES = '''"""Prices of the shop."""


def total(amount: int, price: float) -> float:
    """Return what some pieces cost; from ten pieces on, a tenth less."""
    discount = 0.1 if amount > 10 else 0.0
    return amount * price * (1 - discount)
'''
CHECK = '''"""Check the prices of the shop."""

import sys

from shop.prices import total

wrong = 0
for amount in range(1, 41):
    expected, got = amount * 2 * (0.9 if amount >= 10 else 1), total(amount, 2)
    wrong += got != expected
    if got == expected:
        print(f"ok: {amount} pieces cost {expected:.2f}")
    else:
        print(f"{amount} pieces: {expected:.2f} expected, got {got:.2f}", file=sys.stderr)
sys.exit(wrong > 0)
'''
PROJECT = {
    "CODE_LAW.md": "# Rules\n\n- Keep functions small.\n",
    "check.py": CHECK,
    "shop/prices.py": PRICES,
    **{f"notes/week_{week:02}.md": f"Sales of week {week}.\n" for week in range(1, 15)},
}
"""The files of the project."""


class Step(NamedTuple):
    """What the model says, and the tools that it calls.

    ``sees`` is what the request must have for it.
    """

    says: str
    calls: tuple[Call, ...] = ()
    sees: str = ""
    dies: bool = False
    """The process is killed before this step, once."""


class Turn(NamedTuple):
    """What the user wants, and the steps that it takes.

    ``before`` happens to the project in the meantime; the user was ``away`` for so many ms.
    """

    wants: str
    steps: tuple[Step, ...]
    before: Callable[[Path], None] = lambda _: None
    away: int = 0


def todos(*states: str) -> Call:
    """Return the call that writes the todo list."""
    texts = ("mend the discount", "run the check", "tell the users in CHANGES.md")
    items = [{"content": text, "status": state} for text, state in zip(texts, states, strict=True)]
    return "TodoWrite", {"todos": items}


def somebody_else(project: Path) -> None:
    """Change a file that the agent has read, behind its back."""
    prices = project / "shop" / "prices.py"
    text = prices.read_text("utf-8").replace("0.1 if", "DISCOUNT if")
    write(prices, f"{text}\n\nDISCOUNT = 0.1\n", START + AN_HOUR)


READ = ("Read", {"path": "shop/prices.py"})
CHECKED = ("Bash", {"command": "python check.py"})
OLD, NEW = "amount > 10", "amount >= 10"
RULE = "- Keep functions small.\n"

TURNS = (
    Turn(
        "Why does the check fail? The prices are in @shop/prices.py.",
        (
            Step(
                "I look around.",
                (("LS", {"path": "."}), ("Glob", {"pattern": "**/*.*"})),
                sees="MUST read this",
            ),
            Step("I read the file and run the check.", (READ, CHECKED), sees="check.py"),
            Step(
                "Ten pieces are not discounted: `> 10` should be `>= 10`.",
                sees="10 pieces: 18.00 expected",
            ),
        ),
    ),
    Turn(
        "Mend it, and keep a list of what is to do.",
        (
            Step(
                "First the list.",
                (todos("in_progress", "pending", "pending"),),
                sees="Ten pieces are not",
            ),
            Step(
                "Who else asks?",
                (("Grep", {"pattern": "amount"}),),
                sees="[0/3] in progress: mend the discount",
            ),
            Step(
                "Only here.",
                (("Edit", {"path": "shop/prices.py", "old": OLD, "new": NEW}),),
                sees="check.py",
            ),
            Step(
                "And now?",
                (CHECKED, todos("completed", "completed", "pending")),
                sees="amount >= 10",
            ),
            Step("Mended; the check passes. The users are still to be told.", sees="ok: 40 pieces"),
        ),
    ),
    Turn(
        "Add a rule: every price is checked. Is anything on it in @docs/prices.md?",
        (
            Step(
                "I read it.",
                (("Read", {"path": "docs/prices.md"}),),
                sees="The user mentioned @docs/prices.md.",
            ),
            Step(
                "There is no such file. I add the rule.",
                (
                    (
                        "Edit",
                        {
                            "path": "CODE_LAW.md",
                            "old": RULE,
                            "new": f"{RULE}- Check every price.\n",
                        },
                    ),
                ),
                sees="NOT_FOUND",
            ),
            Step(
                "The rule is in CODE_LAW.md; docs/prices.md does not exist.",
                sees="- Check every price.",
            ),
        ),
    ),
    Turn(
        "I changed @shop/prices.py. Is it still right?",
        (
            Step("I read it again.", (READ, CHECKED)),
            Step(
                "Yes, the check passes with your DISCOUNT.",
                sees="Note: shop/prices.py was modified externally.",
            ),
        ),
        before=somebody_else,
        away=AN_HOUR,
    ),
    Turn(
        "Tell the users.",
        (
            Step(
                "I write it.",
                (("Write", {"path": "CHANGES.md", "content": "Ten pieces are discounted.\n"}),),
            ),
            Step(
                "Done with the list.",
                (todos("completed", "completed", "completed"),),
                sees="CHANGES.md",
                dies=True,
            ),
            Step(
                "What had the check said at first?",
                (("recall", {"names": ["18.00 expected"]}),),
                sees="[3/3] all done",
            ),
            Step(
                "The users are told in CHANGES.md; ten pieces were 20.00 before.",
                sees="10 pieces: 18.00 expected, got 20.0",
            ),
        ),
    ),
)
"""What happens."""


class ScriptedModel:
    """Plays the script; ``mortal`` models take their process with them at the step that says so."""

    def __init__(self, *, mortal: bool = False) -> None:
        self.mortal = mortal

    def __call__(self, messages: list[Message], tools: list[Message] | None) -> Message:
        """Return the reply to a request.

        Raises AssertionError for a request that lacks what the step must know.
        """
        asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
        turn = next(turn for turn in TURNS if messages[asked]["content"].startswith(turn.wants))
        done = sum(message["role"] == "assistant" for message in messages[asked:])
        step = turn.steps[done]
        assert tools, "the model was told of no tools"
        assert any(step.sees in (message["content"] or "") for message in messages), (
            f"not sent: {step.sees}"
        )
        if step.dies and self.mortal:
            os.kill(os.getpid(), signal.SIGKILL)
        return _reply(step, f"call_{TURNS.index(turn) + 1}_{done + 1}")


def _reply(step: Step, call_id: str) -> Message:
    if not step.calls:
        return {"role": "assistant", "content": step.says}
    functions = [
        {"name": name, "arguments": json.dumps(arguments)} for name, arguments in step.calls
    ]
    calls = [
        {"id": f"{call_id}_{number}", "type": "function", "function": function}
        for number, function in enumerate(functions, 1)
    ]
    return {"role": "assistant", "content": step.says, "tool_calls": calls}
