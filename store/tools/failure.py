"""The signs of failure of a tool result: one table, read by Python and rendered into SQL.

A view, the facts of a summary, summaries by rules, short forms and statistics all need to know
whether a result failed. The facts of a result never change, their meaning depends on a policy: a
warning on stderr may be an error or not. So each row of `FAILURE_SIGNS` names facts, says whether
they count in the output of a command only (a file that was read may well hold ``"exitCode": 3``),
and which choice of a policy makes the sign count. `is_failed_result` reads the table for one
result; `render_signs_sql` writes it as a condition for the results of a statement, with
`build_sign_switches` as its values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..policy import Policy


class ResultOutcome(Protocol):
    """The facts of a tool result that tell how it ended, as in `tools.Facts`."""

    @property
    def error_prefix(self) -> int:
        """1 if the text begins with ``Error:``."""

    @property
    def status(self) -> str | None:
        """The status that the message, or its content, gives."""

    @property
    def has_stderr(self) -> int:
        """1 if something was written to stderr."""

    @property
    def exit_code(self) -> int | None:
        """The exit code, if one is given."""


Comparison = Literal["is", "is known and not", "is not"]


class FactTest(NamedTuple):
    """A test of one fact; an unknown fact is None, and NULL in a database."""

    fact: Literal["error_prefix", "status", "has_stderr", "exit_code"]
    comparison: Comparison
    value: int | str


class PolicyChoice(NamedTuple):
    """A field of a policy and the value of it for which a sign counts.

    ``switch`` is the name of its bound parameter.
    """

    switch: str
    field: str
    value: object


class FailureSign(NamedTuple):
    """Facts that together mean a failure."""

    tests: tuple[FactTest, ...]
    commands_only: bool = False
    choice: PolicyChoice | None = None
    """The choice for which it counts; None: always."""


STDERR_TEST = FactTest("has_stderr", "is", 1)
FAILURE_SIGNS = (
    FailureSign((FactTest("error_prefix", "is", 1),)),
    FailureSign((FactTest("status", "is", "error"),)),
    FailureSign((STDERR_TEST,), True, PolicyChoice("stderr_always", "stderr_is_error", "always")),
    FailureSign(
        (STDERR_TEST, FactTest("exit_code", "is not", 0)),
        True,
        PolicyChoice("stderr_nonzero", "stderr_is_error", "nonzero_exit"),
    ),
    FailureSign(
        (FactTest("exit_code", "is known and not", 0),),
        True,
        PolicyChoice("exit_code_is_error", "exit_code_is_error", True),
    ),
)
"""The signs of failure: a result failed if it has any of them."""


_PYTHON_COMPARISONS: Mapping[Comparison, Callable[[object, object], bool]] = {
    "is": operator.eq,
    "is known and not": lambda found, value: found is not None and found != value,
    "is not": operator.ne,
}
_SQL_COMPARISONS: Mapping[Comparison, str] = {
    "is": "{fact} = {value}",
    "is known and not": "{fact} <> {value}",
    "is not": "({fact} IS NULL OR {fact} <> {value})",
}


def is_failed_result(facts: ResultOutcome, policy: Policy, *, command: bool) -> bool:
    """Tell whether a result failed; ``command``: whether `is_command_output` holds for it."""
    return _is_failed_outcome(_get_outcome_facts(facts), _get_policy_choices(policy), command)


class ResultEnd(NamedTuple):
    """The end of a result: an `ResultOutcome` by itself, with few different values."""

    status: str | None
    exit_code: int | None
    has_stderr: int
    error_prefix: int


_CHOICE_FIELDS = tuple(dict.fromkeys(sign.choice.field for sign in FAILURE_SIGNS if sign.choice))
"""The fields of a policy that choose among the signs."""

_get_outcome_facts: Callable[[ResultOutcome], tuple[Any, ...]] = operator.attrgetter(
    *ResultEnd._fields
)
_get_policy_choices: Callable[[Policy], tuple[Any, ...]] = operator.attrgetter(*_CHOICE_FIELDS)


@lru_cache(maxsize=1024)
def _is_failed_outcome(ended: tuple[Any, ...], chosen: tuple[Any, ...], command: bool) -> bool:
    facts, by_field = ResultEnd(*ended), dict(zip(_CHOICE_FIELDS, chosen, strict=True))
    for sign in FAILURE_SIGNS:
        is_chosen = sign.choice is None or by_field[sign.choice.field] == sign.choice.value
        is_counted = is_chosen and (command or not sign.commands_only)
        if is_counted and all(
            _PYTHON_COMPARISONS[test.comparison](getattr(facts, test.fact), test.value)
            for test in sign.tests
        ):
            return True
    return False


def is_command_output(
    tool_name: str | None, kind: str | None, looks_terminal: int, policy: Policy
) -> bool:
    """Tell whether a result is the output of a command.

    The kind of its tool decides; if the tool has no name, the look of the result.
    """
    if is_known_by_look(tool_name, policy):
        return bool(looks_terminal)
    return kind == "terminal"


def is_known_by_look(tool_name: str | None, policy: Policy) -> bool:
    """Tell whether the output of a command is known by its look, not by the kind of its tool."""
    return policy.identity == "sniff" or not tool_name


def build_sign_switches(policy: Policy) -> dict[str, int]:
    """Return the values, 0 or 1, of the parameters that `render_signs_sql` uses."""
    choices = [sign.choice for sign in FAILURE_SIGNS if sign.choice]
    return {choice.switch: int(getattr(policy, choice.field) == choice.value) for choice in choices}


def render_signs_sql(table: str, *, commands_only: bool) -> str:
    """Return SQL that is true for the rows of a table that have a sign of failure.

    It is false or NULL for all others. There are two such conditions: for the signs that count in
    every result, and for those of the output of a command. Bind parameters such as
    ``:stderr_always`` to the values of `build_sign_switches`.
    """
    signs = [sign for sign in FAILURE_SIGNS if sign.commands_only is commands_only]
    any_of_them = " OR ".join(f"({_render_sign_sql(sign, table)})" for sign in signs)
    return f"({any_of_them})"


def _render_sign_sql(sign: FailureSign, table: str) -> str:
    conditions = [f":{sign.choice.switch} = 1"] if sign.choice else []
    for test in sign.tests:
        value = f"'{test.value}'" if isinstance(test.value, str) else test.value
        fact = f"{table}.{test.fact}"
        conditions.append(_SQL_COMPARISONS[test.comparison].format(fact=fact, value=value))
    return " AND ".join(conditions)
