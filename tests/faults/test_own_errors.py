"""A mistake in this package arrives as itself and changes nothing; what a host brings along, and
the rules of a view, fail without ending the host's turn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from conversations import NOW, Agent

from store import Policy, Store
from store.database.schema import METADATA

AGENT = Policy.named("agent")
SHORT = Policy(keep_turns=1)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store with a conversation in which there is something of everything."""
    with Store(url, durability="normal") as opened:
        opened.create_session("s", title="A talk", metadata={"a": 1}, now=NOW)
        opened.append("s", {"role": "user", "content": [{"type": "text", "text": "go"}], "id": "m"})
        for seed in range(3):
            opened.append("s", Agent(seed).run(), now=NOW)
        opened.compact("s", SHORT, lambda _: "A summary. " * 5, now=NOW)
        opened.append("s", [*Agent(7).run(), {"role": "user", "content": "and?"}], now=NOW)
        opened.record_usage("s", input=5, output=2, details={"a": 1}, now=NOW)
        opened.annotate("s", 1, "rating", {"stars": 5}, now=NOW)
        opened.index()
        yield opened


def rows(store: Store) -> dict[str, list[Any]]:
    """Return all rows of a store, but for the index of a search."""
    tables = [each for each in METADATA.sorted_tables if each.name != "search_rows"]
    with store.database.reading() as connection:
        read = {each.name: connection.execute(each.select()).fetchall() for each in tables}
    return {name: sorted(map(repr, found)) for name, found in read.items()}


def said(text: str) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": text}


Use = Callable[[Store], Any]
OURS: dict[str, tuple[type[Exception], Use]] = {
    "store.history.lines.POINTER.row": (TypeError, lambda s: s.messages("s")),
    "store.history.raw_messages.assemble_rows": (KeyError, lambda s: s.messages("s")),
    "store.history.raw_messages.join_call": (AttributeError, lambda s: s.messages("s")),
    "store.messages.json_text.parse_json": (TypeError, lambda s: s.messages("s")),
    "store.view.build.load_token_counts": (TypeError, lambda s: s.view("s", AGENT, now=NOW)),
    "store.view.build.judge_line": (ValueError, lambda s: s.view("s", AGENT, now=NOW)),
    "store.view.message_rendering.pair_messages": (
        IndexError,
        lambda s: s.view("s", AGENT, now=NOW),
    ),
    "store.view.build.load_view_context": (AssertionError, lambda s: s.view("s", now=NOW)),
    "store.view.explanation.build_entries": (KeyError, lambda s: s.view("s", now=NOW).entries),
    "store.context.request.gather_parts": (TypeError, lambda s: s.context("s", "be kind", now=NOW)),
    "store.search.query.make_snippet": (ValueError, lambda s: [*s.search("file")]),
    "store.history.append.encode_message": (
        KeyError,
        lambda s: s.append("s", {**said("never"), "name": "ann"}),
    ),
    "store.history.append.facts.build_fact_rows": (
        AttributeError,
        lambda s: s.append("s", said("never")),
    ),
    "store.history.append.lines.Pointer.changed": (
        AssertionError,
        lambda s: s.append("s", said("never")),
    ),
    "store.history.heads.insert_session": (TypeError, lambda s: s.fork("s", 3)),
    "store.history.heads.update_head": (ValueError, lambda s: s.rewind("s", 3)),
    "store.history.redaction.build_end_pointer": (
        IndexError,
        lambda s: s.redact("s", 3, "asked for"),
    ),
    "store.history.sessions.write_keys": (KeyError, lambda s: s.set_metadata("s", {"b": 2})),
    "store.history.usages._build_usage_row": (
        TypeError,
        lambda s: s.record_usage("s", input=1, output=1),
    ),
    "store.history.erasure._delete_session": (TypeError, lambda s: s.delete_session("s")),
    "store.history.message_notes.INSERT_NOTE.run": (
        AttributeError,
        lambda s: s.annotate("s", 2, "rating", 1),
    ),
    "store.compaction.workflow.prepare_job": (
        RecursionError,
        lambda s: s.compact("s", SHORT, lambda _: "x", now=NOW),
    ),
}
"""Functions of the package, what is raised in them, and an operation that calls them."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", OURS)
def test_a_mistake_of_ours_arrives_as_itself(store: Store, name: str) -> None:
    """Nobody is told of damage, nothing is half written, and the store goes on."""
    kind, use = OURS[name]
    before, bug = rows(store), kind("a mistake of ours")
    with patch(name, side_effect=bug), pytest.raises(kind) as caught:
        use(store)
    assert caught.value is bug
    assert rows(store) == before
    assert store.append("s", said("later"))
    assert store.verify() == []


def test_a_mistake_of_ours_in_a_step_arrives_as_itself(store: Store) -> None:
    """The host may go on: the step left nothing, its other steps are stored."""
    bug = TypeError("a mistake of ours")

    def work(steps: Any) -> None:
        steps.append("s", said("one"))
        with patch("store.history.append.lines.Pointer.changed", side_effect=bug):
            with pytest.raises(TypeError) as caught:
                steps.append("s", said("never"))
            assert caught.value is bug
        steps.append("s", said("two"))

    store.atomically(work)
    assert [each.message["content"] for each in store.messages("s", -2)] == ["one", "two"]


def test_a_compaction_that_a_mistake_of_ours_ends_is_recorded_as_failed(store: Store) -> None:
    """It is an operation of several transactions: what ended it is in its record."""
    bug = KeyError("a mistake of ours")
    before = store.messages("s")
    with (
        patch("store.compaction.workflow.finish_compaction", side_effect=bug),
        pytest.raises(KeyError) as caught,
    ):
        store.compact("s", SHORT, lambda _: "A summary. " * 5, now=NOW)
    assert caught.value is bug
    assert store.messages("s") == before
    assert store.compactions("s")[-1].outcome == "failed"


# --- what is held back ----------------------------------------------------------------------------


class Broken(Exception):
    """What only a host's code, or a patch, raises."""


def broken(*_: Any, **__: Any) -> Any:
    """Fail."""
    raise Broken


class BrokenHandler(logging.Handler):
    """A log writer that fails without `handleError`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Fail."""
        raise Broken


@pytest.fixture
def broken_handler() -> Iterator[None]:
    """Let every line of the log meet a handler that fails."""
    handler, logger = BrokenHandler(), logging.getLogger("store")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(level)
    logger.removeHandler(handler)


OTHERS_OFF = {"terminal": False, "file_read": False, "clear_keep": 1}
RULES = {
    "tool_output": ("store.view.placeholders.compress", Policy(tool_output=True, **OTHERS_OFF)),
    "any_tool": ("store.view.placeholders.count_names", Policy(any_tool=True, **OTHERS_OFF)),
    "arguments": (
        "store.view.placeholders._cut_call",
        Policy(any_tool=True, any_tool_placeholder="x", cut_arguments=True, **OTHERS_OFF),
    ),
}
"""Rules that are Python, each with a function of it, and a policy that has it."""


def ended_turns() -> Iterator[dict[str, Any]]:
    """Yield finished turns with long calls and long results."""
    for number in range(4):
        yield {"role": "user", "content": f"turn {number}"}
        arguments = json.dumps({"command": f"echo {number}", "text": "word " * 100})
        function = {"name": "bash", "arguments": arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        found = "".join(f"src/file_{line}.py: def function_{line}\n" for line in range(200))
        yield {"role": "tool", "tool_call_id": f"c{number}", "content": found}
        yield {"role": "assistant", "content": "done"}


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_fails_on_stays_whole(
    store: Store, rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The view has the raw content, and the log names the rule, the error and its place."""
    name, policy = RULES[rule]
    store.create_session("r", now=NOW)
    talk = ({**each, "timestamp": NOW} for each in ended_turns())
    store.append("r", [*talk, {"role": "user", "content": "so?", "timestamp": NOW}], now=NOW)
    later = NOW + 10**9
    assert rule in {each.rule for each in store.view("r", policy, now=later).entries}
    raw = [each.message for each in store.messages("r")]
    store.create_session("again", now=NOW)
    store.append("again", raw, now=NOW)
    with patch(name, side_effect=broken), caplog.at_level("WARNING", "store"):
        view = store.view("again", policy, now=later)
    assert rule not in {each.rule for each in view.entries if each.tokens_saved > 0}
    part = "tool_calls" if rule == "arguments" else "content"
    role = "assistant" if rule == "arguments" else "tool"
    assert [each.get(part) for each in view.messages if each["role"] == role] == [
        each.get(part) for each in raw if each["role"] == role
    ]
    failed = [each for each in caplog.records if getattr(each, "rule", None) == rule]
    assert failed
    assert all(vars(each)["error"].startswith("Broken at test_own_errors:") for each in failed)


def test_a_tokenizer_that_fails_is_estimated(store: Store) -> None:
    """The count is there all the same."""
    with patch.dict("store.tokens.FORMULAS", {"quarter_of_length": broken}):
        from store import tokens

        tokens._counters.pop("quarter_of_length", None)
        try:
            assert store.count_tokens("s", "quarter_of_length")
        finally:
            tokens._counters.pop("quarter_of_length", None)


def test_a_summarizer_that_fails_leaves_the_session_as_it_was(store: Store) -> None:
    """The record has its type; nothing is hidden."""
    before = store.view("s", now=NOW).messages
    done = store.compact("s", Policy(keep_turns=1, on_failure="abort"), broken, now=NOW)
    assert done.outcome == "failed"
    assert "Broken" in (done.error or "")
    assert store.view("s", now=NOW).messages == before


@pytest.mark.usefixtures("broken_handler")
def test_a_log_handler_that_fails_ends_nothing(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its type and place are on the error output, where `logging` reports handlers of its own."""
    assert store.view("s", AGENT, now=NOW).messages
    done = store.compact("s", SHORT, lambda _: "A summary. " * 5, now=NOW)
    assert done.outcome in ("applied", "rejected", "nothing")
    told = capsys.readouterr().err
    assert "a log handler of store." in told
    assert "failed: Broken at test_own_errors:" in told
