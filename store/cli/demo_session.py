"""A made-up coding session for the demo: in an hour an agent mends a small price calculator.

Data, little code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..records import Message

DEMO_START = 1_741_942_800_000
"""2025-03-14 09:00 UTC, in ms."""
DEMO_NOW = DEMO_START + 62 * 60_000
"""The moment the demo builds its views for."""
DEMO_ROOT = "/home/ada/parcel"

_RATES_SOURCE = '''"""What a parcel costs: by weight, distance and how fast it goes."""

from dataclasses import dataclass

from parcel.money import cents

TIERS = [
    # up to kg, base price, price for each zone crossed
    (1, 4.20, 0.55),
    (2, 5.40, 0.70),
    (5, 7.90, 1.05),
    (10, 11.60, 1.60),
    (31.5, 19.99, 2.75),
]
EXPRESS = 1.6
INSURANCE = 0.012


class TooHeavy(ValueError):
    """No tier takes this weight."""


@dataclass(frozen=True)
class Parcel:
    weight: float
    zones: int
    value: float = 0.0
    express: bool = False


def tier(weight: float) -> tuple[float, float, float]:
    """Return the cheapest tier that takes a weight."""
    if weight <= 0:
        raise ValueError(f"a parcel weighs more than {weight} kg")
    for limit, base, per_zone in TIERS:
        if weight < limit:
            return limit, base, per_zone
    raise TooHeavy(f"{weight} kg is over the limit of {TIERS[-1][0]} kg")


def quote(parcel: Parcel) -> float:
    """Return the price of a parcel in euros."""
    _, base, per_zone = tier(parcel.weight)
    price = base + per_zone * parcel.zones
    if parcel.express:
        price *= EXPRESS
    if parcel.value > 500:
        price += parcel.value * INSURANCE
    return cents(price)


def bill(parcels: list[Parcel]) -> float:
    """Return what several parcels cost together; from the tenth on, ten per cent less."""
    total = sum(quote(parcel) for parcel in parcels)
    if len(parcels) >= 10:
        total *= 0.9
    return cents(total)
'''
_MENDED_RATES = _RATES_SOURCE.replace("weight < limit", "weight <= limit")
_CHINESE_RATES = _MENDED_RATES.replace(
    "a parcel weighs more than {weight} kg", "包裹重量必须大于 0,收到 {weight} kg"
).replace(
    "{weight} kg is over the limit of {TIERS[-1][0]} kg", "{weight} kg 超过上限 {TIERS[-1][0]} kg"
)

_RATES_TESTS = """import pytest

from parcel.rates import Parcel, TooHeavy, bill, quote, tier


@pytest.mark.parametrize(("weight", "limit"), \
[(0.5, 1), (1.5, 2), (4.9, 5), (5, 5), (9, 10), (31.5, 31.5)])
def test_a_tier_takes_its_limit(weight: float, limit: float) -> None:
    assert tier(weight)[0] == limit


def test_too_heavy() -> None:
    with pytest.raises(TooHeavy):
        tier(40)


def test_ten_parcels_cost_less() -> None:
    assert bill([Parcel(1.5, 2)] * 10) == 61.2
"""
_MONEY_SOURCE = '''"""Amounts of money."""


def cents(amount: float) -> float:
    """Round an amount to whole cents."""
    return int(amount * 100) / 100
'''
_CHANGELOG = """# Changelog

## Unreleased

## 1.4.1
- Express parcels are quoted with insurance.
"""

_WHEEL_OUTPUT = "Successfully built parcel-1.4.1-py3-none-any.whl"
_BUILD_OUTPUT = "\n".join(
    [
        "python -m build --wheel",
        "* Creating isolated environment: venv+pip...",
        *(
            f"Collecting dependency-{n:02}\n  Using cached dependency_{n:02}-{n}.4.{n % 7}.whl"
            for n in range(1, 61)
        ),
        *(
            f"copying src/parcel/zones/zone_{n:03}.json -> build/lib/parcel/zones"
            for n in range(1, 121)
        ),
        _WHEEL_OUTPUT,
    ]
)
_FAILURE_OUTPUT = """..F...F. [100%]
=================================== FAILURES ===================================
______________________ test_a_tier_takes_its_limit[5-5] ________________________
E   assert 10 == 5
____________________ test_a_tier_takes_its_limit[31.5-31.5] ____________________
E   parcel.rates.TooHeavy: 31.5 kg is over the limit of 31.5 kg
2 failed, 6 passed in 0.21s"""


class DemoCall(NamedTuple):
    """A tool call of the agent and its result; None: no result yet."""

    tool: str
    arguments: dict[str, Any]
    result: str | None


class DemoStep(NamedTuple):
    """A message of one role at a minute of the session.

    An agent's step includes the results of its calls.
    """

    minute: float
    role: str
    text: str | None
    calls: tuple[DemoCall, ...] = ()


def _build_terminal_call(command: str, stdout: str = "", exit_code: int = 0) -> DemoCall:
    output = {"stdout": stdout, "stderr": "", "exitCode": exit_code, "command": command}
    return DemoCall("terminal-execute", {"command": command}, _dump_json(output))


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _build_read_call(path: str, text: str, **lines: int) -> DemoCall:
    numbered = enumerate(text.splitlines(), 1)
    kept = [
        f"{n}->{line}"
        for n, line in numbered
        if lines.get("startLine", 1) <= n <= lines.get("endLine", n)
    ]
    return DemoCall("filesystem-read", {"filePath": path, **lines}, "\n".join(kept))


def _build_edit_call(path: str, old: str, new: str) -> DemoCall:
    arguments = {"filePath": path, "searchContent": old, "replaceContent": new}
    return DemoCall(
        "filesystem-edit_search", arguments, f"✅ File edited successfully: {path} (1 replacement)"
    )


def _build_agent_step(minute: float, text: str | None, *calls: DemoCall) -> DemoStep:
    return DemoStep(minute, "assistant", text, calls)


RATES, MONEY, LOG = "src/parcel/rates.py", "src/parcel/money.py", "CHANGELOG.md"
DEMO_STEPS = (
    DemoStep(
        0,
        "system",
        "You are a careful engineer. Read before you write, and run the tests after every change.",
    ),
    DemoStep(
        0,
        "user",
        "Customers say that a parcel of exactly 5 kg is charged as one of 10 kg. Please fix it.",
    ),
    _build_agent_step(
        0.5,
        "I look around first.",
        _build_terminal_call("git status --short && ls", "CHANGELOG.md\nMakefile\nsrc\ntests"),
    ),
    _build_agent_step(
        1, None, DemoCall("ace-text_search", {"pattern": "def (tier|quote)"}, f"{RATES}:33,43")
    ),
    _build_agent_step(2, "The tiers are in one file.", _build_read_call(RATES, _RATES_SOURCE)),
    _build_agent_step(
        3,
        "Its test, and that part once more.",
        _build_read_call("tests/test_rates.py", _RATES_TESTS),
        _build_read_call(f"./{RATES}", _RATES_SOURCE, startLine=33, endLine=52),
    ),
    _build_agent_step(
        4, "Does it build at all?", _build_terminal_call("make build", _BUILD_OUTPUT)
    ),
    _build_agent_step(
        7, "Now the tests.", _build_terminal_call("pytest -q", _FAILURE_OUTPUT, exit_code=1)
    ),
    _build_agent_step(
        8,
        "Both failures are at a limit: `<` should be `<=`.",
        _build_read_call(RATES, _RATES_SOURCE),
    ),
    _build_agent_step(
        9, None, _build_edit_call(RATES, "if weight < limit:", "if weight <= limit:")
    ),
    _build_agent_step(
        10, None, _build_terminal_call("pytest -q", "........ [100%]\n8 passed in 0.19s")
    ),
    _build_agent_step(
        11, "Fixed: a tier now takes the parcels that weigh exactly its limit. All 8 tests pass."
    ),
    DemoStep(
        14,
        "user",
        "Good. And three parcels for 19.99 cost 59.96 instead of 59.97 on the invoice. Same cause?",
    ),
    _build_agent_step(
        15,
        "No, that is rounding.",
        _build_read_call(f"{DEMO_ROOT}/{RATES}", _MENDED_RATES),
        _build_read_call(MONEY, _MONEY_SOURCE),
    ),
    _build_agent_step(
        16,
        "`int` cuts where it should round.",
        _build_edit_call(MONEY, "int(amount * 100) / 100", "round(amount, 2)"),
    ),
    _build_agent_step(
        17,
        None,
        _build_terminal_call(
            "pytest -q && python -m parcel --weight 20 --count 3", "8 passed in 0.18s\n59.97 EUR"
        ),
    ),
    _build_agent_step(18, "It was: `cents` cut instead of rounding. 3 × 19.99 is 59.97 now."),
    DemoStep(24, "user", "顺便把错误信息改成中文,客服要直接转给客户看。"),
    _build_agent_step(25, "好的,先看一下现在的错误信息。", _build_read_call(RATES, _MENDED_RATES)),
    _build_agent_step(
        26,
        None,
        _build_edit_call(RATES, "is over the limit of", "超过上限"),
        _build_edit_call(RATES, "a parcel weighs more than", "包裹重量必须大于 0,收到"),
    ),
    _build_agent_step(
        27,
        None,
        _build_terminal_call("python -m parcel --weight 40", "40 kg 超过上限 31.5 kg"),
        _build_terminal_call("pytest -q", "........ [100%]\n8 passed in 0.20s"),
    ),
    _build_agent_step(28, "改好了:两条错误信息都是中文,测试全部通过。"),
    DemoStep(
        40,
        "user",
        "Before we release: read it all once more, and put both fixes into the changelog.",
    ),
    _build_agent_step(
        41,
        "Reading both.",
        _build_read_call(RATES, _CHINESE_RATES),
        _build_read_call(LOG, _CHANGELOG),
    ),
    _build_agent_step(
        43,
        None,
        _build_edit_call(
            LOG, "## Unreleased", "## Unreleased\n- A tier takes its limit.\n- Cents are rounded."
        ),
    ),
    _build_agent_step(45, None, _build_terminal_call("make build | tail -1", _WHEEL_OUTPUT)),
    _build_agent_step(
        48, "One last look at the file as it will go out.", _build_read_call(RATES, _CHINESE_RATES)
    ),
    _build_agent_step(
        49,
        None,
        _build_terminal_call(
            "git diff --stat", f" {LOG} | 2 ++\n {MONEY} | 2 +-\n {RATES} | 6 +++---"
        ),
    ),
    _build_agent_step(50, "Everything is in place. Shall I tag it?"),
    DemoStep(60, "user", "Yes, tag 1.4.2 and push."),
    _build_agent_step(
        61,
        "Tagging and pushing.",
        DemoCall("terminal-execute", {"command": "git tag 1.4.2 && git push --tags"}, None),
    ),
)


def build_conversation() -> list[Message]:
    """Return the session as messages of the OpenAI shape."""
    return [
        message
        for number, step in enumerate(DEMO_STEPS)
        for message in _build_step_messages(number, step)
    ]


def _build_step_messages(number: int, step: DemoStep) -> Iterator[Message]:
    """Yield a step's message and the results of its calls, a second apart."""
    at = DEMO_START + round(step.minute * 60_000)
    message: Message = {"role": step.role, "content": step.text, "timestamp": at}
    calls = {f"call_{number:02}_{place}": call for place, call in enumerate(step.calls)}
    if calls:
        message["tool_calls"] = [
            _build_openai_call(call_id, call) for call_id, call in calls.items()
        ]
    yield message
    for call_id, call in calls.items():
        at += 1000
        if call.result is not None:
            yield {"role": "tool", "tool_call_id": call_id, "content": call.result, "timestamp": at}


def _build_openai_call(call_id: str, call: DemoCall) -> Message:
    function = {"name": call.tool, "arguments": _dump_json(call.arguments)}
    return {"id": call_id, "type": "function", "function": function}
