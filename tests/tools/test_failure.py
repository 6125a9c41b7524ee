"""One meaning of failure.

The view, statistics, the facts of a compaction, summaries and short forms say the same.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from store import Policy, Store
from store.compaction.range_facts import load_hidden_facts
from store.history.lines import load_pointer
from store.inspection.usage_statistics import Statistics, statistics
from store.messages import Message
from store.summaries import SummaryRequest, extractive
from store.tools.failure import FAILURE_SIGNS, is_command_output, is_failed_result
from store.tools.kinds import TOOL_KINDS
from store.tools.results import Facts, compute_result_facts
from store.tools.short_forms import compress
from store.view import load_view_context

ERRORS_STAY = "errors always stay"


def statistics_of(store: Store, session: str, **options: Any) -> Statistics:
    """Return the statistics of a session."""
    return store.database.read(lambda connection: statistics(connection, session, **options))


def facts_of(store: Store, session: str, policy: Policy, last: int) -> list[Any]:
    """Return the facts of a whole line."""

    def collect(connection: Connection) -> list[Any]:
        context = load_view_context(
            connection, load_pointer(connection, session), policy, last=last, now=10**12
        )
        return load_hidden_facts(context, 1, last)

    return store.database.read(collect)


NAMES = ("Bash", "Read", "own", None)
STREAMS = {
    "stdout": st.just("done"),
    "stderr": st.sampled_from(["", "warning"]),
    "exitCode": st.sampled_from([0, 3]),
}
CONTENTS = st.one_of(
    st.sampled_from(["done", "Error: no", " Error: no", "Exit code 2"]),
    st.fixed_dictionaries({}, optional={**STREAMS, "status": st.just("error")}).map(json.dumps),
)
RESULTS = st.tuples(st.sampled_from(NAMES), CONTENTS, st.sampled_from([None, "error", "pending"]))
POLICIES = st.builds(
    Policy,
    terminal=st.just(False),
    file_read=st.just(False),
    stderr_is_error=st.sampled_from(["always", "nonzero_exit", "never"]),
    exit_code_is_error=st.booleans(),
    identity=st.sampled_from(["call", "sniff"]),
    tool_kinds=st.dictionaries(
        st.sampled_from(["own", "Bash"]), st.sampled_from(["terminal", "other"])
    ),
)


@pytest.fixture
def messages() -> list[Message]:
    """A question, a command that warned and ended well, and a file that holds an exit code."""
    warned = json.dumps({"stdout": "built", "stderr": "warning: old", "exitCode": 0})
    read = json.dumps({"exitCode": 3, "name": "what a file holds"})
    return [
        {"role": "user", "content": "go"},
        *used("Bash", warned, {"command": "make"}),
        *used("Read", read),
    ]


def used(
    name: str | None, content: str, arguments: Any = None, status: str | None = None
) -> list[Message]:
    """Return a call and its result; without a name the result alone."""
    result: Message = {"role": "tool", "tool_call_id": "c", "content": content, "timestamp": 1}
    if status:
        result["messageStatus"] = status
    if name is None:
        return [result]
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments or {})},
    }
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def failures(line: list[Message], policy: Policy) -> list[int]:
    """Return the positions of the results that failed, as Python reads the table."""
    found = []
    for seq, message in enumerate(line, 1):
        before = line[seq - 2].get("tool_calls") if seq > 1 else None
        name = before[0]["function"]["name"] if before else None
        kind = policy.tool_kinds.get(str(name)) or TOOL_KINDS.get(str(name))
        facts = compute_result_facts(message)
        command = is_command_output(name, kind, facts.looks_terminal, policy)
        if message["role"] == "tool" and is_failed_result(facts, policy, command=command):
            found.append(seq)
    return found


@settings(max_examples=60, deadline=None)
@given(drawn=st.lists(RESULTS, max_size=12), policy=POLICIES)
def test_python_and_sql_agree_on_what_failed(
    store: Store, drawn: list[Any], policy: Policy
) -> None:
    """The table of signs is read alike by both, whatever the facts and the policy.

    Statistics count the same.
    """
    line = [
        message for name, content, status in drawn for message in used(name, content, status=status)
    ]
    session = store.create_session().id
    store.append(session, line)
    as_stored = [
        each for each in store.view(session, policy, now=10**12 + 2).entries if each.rule is None
    ]
    expected = failures(line, policy)
    assert all((each.reason == ERRORS_STAY) is (each.seq in expected) for each in as_stored)
    assert sum(each.failed for each in statistics_of(store, session, policy=policy).tools) == len(
        expected
    )
    told = facts_of(
        store, session, policy.model_copy(update={"facts_chars": 10**6}), max(len(line), 1)
    )
    assert sum(fact.kind == "error" for fact in told) == len(expected)


@pytest.mark.parametrize(("choice", "count"), [("always", 1), ("nonzero_exit", 0), ("never", 0)])
def test_a_warning_is_a_failure_where_the_policy_says_so(
    store: Store, messages: list[Message], choice: Any, count: int
) -> None:
    """A command with something on stderr and exit code 0 is the same to all that tell of it."""
    policy = Policy(stderr_is_error=choice, language="en")
    session = store.create_session().id
    store.append(session, messages)
    entries = store.view(session, policy, now=10**12 + 2).entries
    assert sum(entry.reason == ERRORS_STAY for entry in entries) == count
    assert sum(tool.failed for tool in statistics_of(store, session, policy=policy).tools) == count
    facts = facts_of(store, session, policy, len(messages))
    assert [fact.text for fact in facts if fact.kind == "error"] == ["warning: old"] * count
    said = extractive(
        SummaryRequest(messages, None, "", "", 4000, 1, len(messages), policy=policy)
    ).key_actions
    assert said[0].result == f"to run make: exit 0, {'warning: old' if count else 'built'}"


def test_an_exit_code_in_a_file_is_no_failure(store: Store, messages: list[Message]) -> None:
    """What was read may say anything; only a command ends with an exit code."""
    session = store.create_session().id
    store.append(session, messages)
    assert [tool.failed for tool in statistics_of(store, session).tools if tool.name == "Read"] == [
        0
    ]
    told = extractive(SummaryRequest(messages, None, "", "", 4000, 1, len(messages)))
    assert "3" not in told.key_actions[1].result


def test_the_short_form_of_a_command_follows_the_verdict() -> None:
    """More stays of what failed, as the policy has it and not as the text looks."""
    text = "\n".join(
        [
            "begin",
            *(f"line {n}" for n in range(100)),
            "error: inside",
            *("x" * 40 for _ in range(99)),
        ]
    )
    warned = json.dumps({"stdout": text, "stderr": "warning", "exitCode": 0})
    assert (
        compress("Bash", warned)
        == compress("Bash", warned, failed=True)
        != compress("Bash", warned, failed=False)
    )
    ended = f"Exit code 2\n{text}"
    assert "error: inside" in compress("Bash", ended)
    assert "error: inside" not in compress("Bash", ended, failed=False)


def test_every_sign_is_a_fact_and_every_choice_a_field() -> None:
    """The table names what there is.

    Columns of a result, fields of a policy and values that these can have.
    """
    for sign in FAILURE_SIGNS:
        assert {test.fact for test in sign.tests} <= set(Facts._fields)
        if sign.choice:
            assert (
                getattr(Policy(**{sign.choice.field: sign.choice.value}), sign.choice.field)
                == sign.choice.value
            )
