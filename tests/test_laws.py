"""Laws of every conversation, however messy, under every policy and after every history."""

from __future__ import annotations

import json
import math
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conversations import (
    FILES,
    KINDS,
    NOW,
    ROOT,
    Agent,
    Message,
    arbitrary_messages,
    busy_conversations,
    conversations,
    messy_conversations,
    policies,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from refusals import refusals

from store import Policy, Store
from store.errors import InvalidMessage
from store.formats.openai import clean_message
from store.formats.request_messages import PlacedMessage
from store.view.placeholders import shorten_result
from store.view.rules import RULES

law = partial(
    settings,
    derandomize=True,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


def started(store: Store, line: list[Message]) -> str:
    """A new session with this line."""
    session_id = store.create_session(project_root=ROOT).id
    store.append(session_id, line)
    return session_id


def exact(value: object) -> object:
    """A value that equals another only where types do too: 1, 1.0 and True are three."""
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    if isinstance(value, list):
        return [exact(each) for each in value]
    return type(value), math.copysign(1, value) if isinstance(value, float) else None, value


# --- what went in comes out -----------------------------------------------------------------------


@law(max_examples=200)
@given(st.lists(arbitrary_messages, min_size=1, max_size=4))
def test_what_went_in_comes_out(store: Store, line: list[Message]) -> None:
    """``load(append(m)) == m``, to the type, for any JSON, surrogates and NUL included."""
    before = [exact(message) for message in line]
    session_id = started(store, line)
    assert [exact(message) for message in line] == before, "appending changed the caller's objects"
    stored = store.messages(session_id)
    assert [exact(each.message) for each in stored] == before
    assert [each.seq for each in stored] == list(range(1, len(line) + 1))


UNACCEPTABLE: list[Any] = [
    None,
    "text",
    {},
    {"role": 5},
    {"role": "user", "content": math.nan},
    {"role": "user", 1: 2},
]


@law(max_examples=25)
@given(
    st.lists(arbitrary_messages, min_size=1, max_size=4),
    st.sampled_from(UNACCEPTABLE),
    st.integers(0, 3),
    st.booleans(),
)
def test_a_batch_is_stored_whole_or_not_at_all(
    store: Store, line: list[Message], wrong: Any, place: int, fill: bool
) -> None:
    """A message that cannot be stored, anywhere in the batch, leaves no trace of the others."""
    session_id = started(store, [{"role": "user", "content": "before"}] if fill else [])
    place = min(place, len(line))
    with pytest.raises(InvalidMessage) as caught:
        store.append(session_id, [*line[:place], wrong, *line[place:]])
    assert caught.value.index == place
    assert store.session(session_id).head == len(store.messages(session_id)) == int(fill)


@law(max_examples=40)
@given(
    st.lists(
        st.tuples(arbitrary_messages, st.sampled_from(["a", "b", "c", "d", 0, 1, "é", None])),
        max_size=6,
    )
)
def test_a_message_with_an_id_is_stored_once(
    store: Store, drawn: list[tuple[Message, Any]]
) -> None:
    """A call can be repeated, in the same or other batches, and always returns what is stored."""
    line: dict[str, Message] = {}
    for message, given_id in drawn:
        if given_id is not None:
            line.setdefault(str(given_id), {**message, "id": given_id})
    batch = list(line.values())
    session_id = started(store, [])
    stored = store.append(session_id, batch)
    assert store.append(session_id, batch) == stored
    assert store.append(session_id, [*batch[::-1], *batch]) == [*stored[::-1], *stored]
    for message, one in zip(batch, stored, strict=True):
        assert store.append(session_id, message) == [one]
    assert [each.message for each in store.messages(session_id)] == batch


# --- the rules against a slow second writing of the specification ---------------------------------


class Result(NamedTuple):
    """A tool result as the second writing sees it."""

    seq: int
    name: str | None
    arguments: Any
    at: int | None
    status: Any
    text: str
    fields: dict[str, Any]


def oracle(line: list[Message], policy: Policy, now: int) -> dict[int, str]:
    """Which positions are not sent whole, and by which rule, computed from the raw line alone
    (X.7).
    """
    results = linked(line, adopt=policy.orphans == "adopt")
    running = max((i for i, m in enumerate(line, 1) if m["role"] == "user"), default=1)
    judged = results
    if policy.judge_at == "turn":
        judged = [r for r in results if r.seq < running]
        begun = moment(line[running - 1].get("timestamp")) if line else None
        now = (
            begun if begun is not None and begun <= now else -(2**62)
        )  # the clock here is behind that of the store
    ripe = {
        r.seq
        for r in judged
        if r.at is not None and not is_error(r, policy) and r.status != "pending"
        if not (policy.protect_current_turn and r.seq >= running)
    }
    found: dict[int, str | None] = {}
    if policy.terminal:
        found |= {seq: "terminal" for seq in old_output(judged, policy, now) if seq in ripe}
    if policy.file_read:
        found = {**old_reads(judged, policy, ripe, set(found), running), **found}
    if policy.tool_output:
        spared = {*found, *(pointed_to(judged, policy) if policy.file_read else ())}
        finished = [
            r for r in results if r.seq < running and r.status != "pending" and r.seq not in spared
        ]
        found |= {
            r.seq: "tool_output" for r in finished if has_shorten_result(line[r.seq - 1], r, policy)
        }
    return {seq: rule for seq, rule in found.items() if rule}


def has_shorten_result(message: Message, result: Result, policy: Policy) -> bool:
    """A4.2, X.6: errors stay whole where S0 or S1 are in force, but for those of commands."""
    spared = is_error(result, policy) and not is_terminal(result, policy)
    if spared and (policy.terminal or policy.file_read):
        return False
    switches = {"failed": is_error(result, policy), "min_saving": policy.min_saving}
    return (
        shorten_result(message.get("content"), result.name, kind(result, policy), **switches)
        is not None
    )


def linked(line: list[Message], *, adopt: bool) -> list[Result]:
    """Return the results that a view shows, each with the nearest earlier open call of its id."""
    waiting: list[tuple[str, Message]] = []
    results = []
    for seq, message in enumerate(line, 1):
        calls = message.get("tool_calls") if message["role"] == "assistant" else None
        calls = [call for call in calls or [] if isinstance(call, dict)]
        waiting += [(plain(call.get("id")), call) for call in reversed(calls)]
        if message["role"] == "tool":
            wanted = plain(message.get("tool_call_id"))
            place = max(
                (i for i, (call_id, _) in enumerate(waiting) if call_id == wanted), default=None
            )
            if place is not None or adopt:
                results.append(
                    read_off(seq, message, {} if place is None else waiting.pop(place)[1])
                )
    return results


def read_off(seq: int, message: Message, call: Message) -> Result:
    """Return what the rules ask of a result and of the call that it answers."""
    function = call.get("function") or {}
    name = plain(function.get("name")) or plain(message.get("name")) or None
    text, fields = content_of(message.get("content"))
    at, status = moment(message.get("timestamp")), message.get("messageStatus")
    return Result(seq, name, function.get("arguments"), at, status, text, fields)


def plain(value: object) -> str:
    """A text that can be stored as it is; anything else counts as none."""
    if (
        not isinstance(value, str)
        or "\0" in value
        or any("\ud800" <= character <= "\udfff" for character in value)
    ):
        return ""
    return value


def moment(value: Any) -> int | None:
    """A0.9: any number, 0 included; a small one is in seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 2**63:
        return None
    return round(value * 1000) if abs(value) < 10**11 else math.floor(value)


def content_of(content: Any) -> tuple[str, dict[str, Any]]:
    """The text of a content, and the JSON object that it is."""
    if isinstance(content, dict):
        return json.dumps(content, separators=(",", ":")), content
    if isinstance(content, list):
        parts = any(isinstance(part, dict) for part in content) or not content
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        text = (
            "".join(t for t in texts if isinstance(t, str))
            if parts
            else json.dumps(content, separators=(",", ":"))
        )
    else:
        text = (
            "" if content is None else content if isinstance(content, str) else json.dumps(content)
        )
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    return text, fields if isinstance(fields, dict) else {}


def is_terminal(result: Result, policy: Policy) -> bool:
    """S0.21, A0.5."""
    if policy.identity == "sniff" or result.name is None:
        return any(mark in result.text for mark in ('"stdout":', '"stderr":', '"exitCode":'))
    return kind(result, policy) == "terminal"


def kind(result: Result, policy: Policy) -> str | None:
    """X.11."""
    return policy.tool_kinds.get(result.name, KINDS.get(result.name)) if result.name else None


def is_error(result: Result, policy: Policy) -> bool:
    """S0.24, S1.36, A0.3, A0.4, A0.6."""
    if result.text.lstrip().startswith("Error:") or result.status == "error":
        return True
    if not is_terminal(result, policy):
        return False
    code = result.fields.get("exitCode")
    code = code if isinstance(code, int) else None
    if policy.exit_code_is_error and code not in (None, 0):
        return True
    if not result.fields.get("stderr"):
        return False
    return policy.stderr_is_error == "always" or (
        policy.stderr_is_error == "nonzero_exit" and code != 0
    )


def saves(result: Result, placeholder: str, policy: Policy) -> bool:
    """A0.16."""
    return not policy.min_saving or len(result.text) - len(placeholder) >= policy.min_saving


def newest_first(results: list[Result]) -> list[Result]:
    """A0.8, A1.3."""
    return sorted(
        (r for r in results if r.at is not None), key=lambda r: (r.at, r.seq), reverse=True
    )


def old_output(results: list[Result], policy: Policy, now: int) -> list[int]:
    """S0.28."""
    ranked = [
        r for r in newest_first(results) if policy.errors_take_slots or not is_error(r, policy)
    ]
    return [
        r.seq
        for r in ranked[policy.terminal_keep :]
        if is_terminal(r, policy) and r.text and now - (r.at or 0) > policy.terminal_max_age
        if saves(r, policy.terminal_placeholder, policy)
    ]


def files_of(arguments: Any) -> tuple[list[tuple[str, frozenset[int]]], bool]:
    """The files a call reads, each mention with its lines (100 stands for all beyond 99), and if
    all was understood.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return [], True
    if not isinstance(arguments, dict) or arguments.get("filePath") in ("", None):
        return [], True
    named = arguments["filePath"]
    mentions, complete = [], True
    for element in named if isinstance(named, list) else [named]:
        span = element if isinstance(element, dict) else arguments
        path = element.get("path") if isinstance(element, dict) else element
        if not isinstance(path, str):
            complete = False
            continue
        key = next(key for key, known in FILES.items() if path in known)
        mentions.append(
            (key, frozenset(range(span.get("startLine", 1), span.get("endLine", 100) + 1)))
        )
    return mentions, complete


def pointed_to(results: list[Result], policy: Policy) -> set[int]:
    """S1.10, X.3: the newest reads of each file that has more, which what stands for those names.

    No short form takes their place.
    """
    files: dict[str, list[tuple[int, int]]] = {key: [] for key in FILES}
    for read in newest_first(results):
        if kind(read, policy) == "file_read" and not is_error(read, policy):
            mentions = [key for key, _ in files_of(read.arguments)[0]] * (read.status != "pending")
            for key in dict.fromkeys(mentions):
                before = files[key][-1][1] if files[key] else 0
                count = 1 if policy.dedupe else mentions.count(key)
                files[key].append((read.seq, before + count))
    keep = policy.file_read_keep
    over = (ranked for ranked in files.values() if ranked and ranked[-1][1] > keep)
    return {seq for ranked in over for seq, rank in ranked if rank <= keep}


def old_reads(
    results: list[Result], policy: Policy, ripe: set[int], gone: set[int], running: int
) -> dict[int, str | None]:
    """S1.40, A1.1, A1.4, A1.5: what is old.

    None where it stays, for lines that no newer read is sure to show.
    """
    reads = [
        r
        for r in newest_first(results)
        if kind(r, policy) == "file_read" and not is_error(r, policy) and r.status != "pending"
    ]
    count = dict.fromkeys(FILES, 0)
    kept: dict[str, frozenset[int]] = {key: frozenset() for key in FILES}
    found: dict[int, str | None] = {}
    for read in reads:
        mentions, complete = files_of(read.arguments)
        files = {key: [lines for each, lines in mentions if each == key] for key, _ in mentions}
        for key, spans in files.items():
            count[key] += 1 if policy.dedupe else len(spans)
        stale = [count[key] > policy.file_read_keep for key in files]
        says = any(stale) if policy.batch_rule == "any" else bool(stale) and all(stale) and complete
        says = says and read.seq in ripe and saves(read, policy.file_read_placeholder, policy)
        asked = {key: frozenset().union(*spans) for key, spans in files.items()}
        hulls = {key: frozenset(range(min(lines), max(lines) + 1)) for key, lines in asked.items()}
        if says:
            held = not policy.range_aware or all(hull <= kept[key] for key, hull in hulls.items())
            found[read.seq] = "file_read" if held else None
        spared = read.seq in found or read.seq in pointed_to(results, policy)
        whole = spared or not (policy.tool_output and read.seq < running)
        if not found.get(read.seq) and read.seq not in gone and whole:
            for key, lines in asked.items():
                kept[key] |= lines if lines == hulls[key] else frozenset()
    return found


def replaced(store: Store, session_id: str, policy: Policy, **options: Any) -> dict[int, str]:
    """Which positions a view replaces, and by which rule."""
    entries = store.view(session_id, policy, now=NOW, **options).entries
    return {e.seq: e.rule for e in entries if e.rule in RULES and e.seq is not None}


@law(max_examples=250)
@given(conversations, policies)
@example(
    [message for number in (131, 395459, 127) for message in Agent(number).busy_run()],
    Policy(
        file_read_keep=0,
        tool_output=True,
        exit_code_is_error=False,
        stderr_is_error="never",
        range_aware=True,
        min_saving=10,
    ),
)
@example(
    [*Agent(14827).run(), *Agent(702).run()],
    Policy(terminal_keep=0, tool_kinds={"mystery": "terminal"}, judge_at="turn"),
)
def test_the_rules_are_those_of_the_specification(
    store: Store, line: list[Message], policy: Policy
) -> None:
    """SQL over the narrow tables and a loop over the raw line replace the same positions by the
    same rules.
    """
    line = [with_calls_only(message) for message in line]
    assert replaced(store, started(store, line), policy) == oracle(line, policy, NOW)


def with_calls_only(message: Message) -> Message:
    """A message without what cannot be sent as a call.

    Which results such a thing takes has a test of its own.
    """
    given = message.get("tool_calls")
    if not isinstance(given, list):
        return message
    return {
        **message,
        "tool_calls": [
            call for call in given if isinstance(call, dict) and message["role"] == "assistant"
        ],
    }


@law(max_examples=150)
@given(busy_conversations)
def test_the_default_rules_are_those_of_the_specification(
    store: Store, line: list[Message]
) -> None:
    """The same with few places to keep, so that nearly every conversation has much to replace."""
    session_id = started(store, line)
    for policy in (
        Policy(),
        Policy(terminal_keep=1, file_read_keep=1),
        Policy(file_read_keep=1, range_aware=True),
    ):
        assert replaced(store, session_id, policy) == oracle(line, policy, NOW)


# --- every view is API-valid ----------------------------------------------------------------------


@law(max_examples=250)
@given(conversations, policies)
@example(
    [{"role": "user"}, {"role": "assistant", "tool_calls": [{"id": "c"}]}, {"role": "user"}],
    Policy(unanswered="keep"),
)
@example(
    [
        {"role": "assistant", "tool_calls": [{"id": "c"}, {"id": "d"}]},
        {"role": "tool", "tool_call_id": "d"},
        {"role": "assistant", "tool_calls": [{"id": "c"}]},
        {"role": "tool", "tool_call_id": "c"},
    ],
    Policy(unanswered="keep"),
)
def test_every_view_is_valid(store: Store, line: list[Message], policy: Policy) -> None:
    """Calls and results are paired, adjacent and in order, and nothing in the request is refused
    (promise 3).
    """
    view = store.view(started(store, line), policy, now=NOW)
    users = (place for place, entry in enumerate(view.entries) if entry.message["role"] == "user")
    open_from = max(users, default=0) if policy.unanswered == "keep" else None
    assert refusals(view.messages, open_from=open_from) == []
    assert len(view.messages) == len(view.entries) == view.stats.messages


@law(max_examples=60)
@given(st.lists(arbitrary_messages, min_size=1, max_size=6))
def test_a_view_of_anything_is_valid(store: Store, line: list[Message]) -> None:
    """Whatever JSON was stored, the request made of it is not refused."""
    view = store.view(started(store, line), now=NOW)
    assert refusals(view.messages) == []


@law(max_examples=150)
@given(messy_conversations, policies)
def test_a_view_leaves_nothing_out_but_what_the_policy_says(
    store: Store, line: list[Message], policy: Policy
) -> None:
    """Every message is there once, in order but for results moved to their calls.

    System and user messages whole.
    """
    entries = store.view(started(store, line), policy, now=NOW).entries
    shown = [entry.seq for entry in entries if entry.seq is not None]
    said = [seq for seq in shown if line[seq - 1]["role"] != "tool"]
    everything = set(range(1, len(line) + 1))
    droppable = (
        {seq for seq, message in enumerate(line, 1) if message["role"] == "tool"}
        if policy.orphans == "drop"
        else set()
    )
    if policy.unanswered == "drop":
        droppable |= {seq for seq, message in enumerate(line, 1) if message["role"] == "assistant"}
    assert len(shown) == len(set(shown))
    assert everything - set(shown) <= droppable
    assert said == sorted(said)
    for entry in entries:
        if entry.seq is None:
            assert entry.rule == "repair"
            continue
        raw = line[entry.seq - 1]
        if entry.rule in ("terminal", "file_read", "tool_output"):
            assert {**entry.message, "content": 0} == {**raw, "content": 0}
        else:
            assert exact(entry.message) == exact(raw)


@law(max_examples=60)
@given(messy_conversations)
def test_a_message_that_no_rule_touches_is_sent_as_the_format_writes_it(
    store: Store, line: list[Message]
) -> None:
    """System messages and the latest user message are those of the raw line, whole."""
    view = store.view(started(store, line), now=NOW)
    sent = {entry.seq: message for entry, message in zip(view.entries, view.messages, strict=True)}
    for seq, message in enumerate(line, 1):
        if message["role"] in ("system", "developer", "user"):
            assert sent[seq] == clean_message(PlacedMessage(seq, message, None, (), None))


# --- a view is a function, and changes nothing ----------------------------------------------------


def dump(path: Path) -> list[str]:
    """Every row of every table, as text."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        lines = list(connection.iterdump())
    connection.close()
    return lines


@pytest.mark.sqlite_only
@law(max_examples=8)
@given(conversations, policies)
def test_building_a_view_changes_no_byte(
    tmp_path_factory: pytest.TempPathFactory, line: list[Message], policy: Policy
) -> None:
    """Not one row is different afterwards, nor a byte of the file or its log (promise 1, A0.7)."""
    path = tmp_path_factory.mktemp("bytes") / "chat.db"
    with Store(path, durability="normal") as store:
        session_id = started(store, line)
        files = [path, path.with_name(path.name + "-wal")]
        before, held = dump(path), [file.read_bytes() for file in files]
        for at in range(len(line) + 1):
            store.view(session_id, policy, at=at, now=NOW)
        assert dump(path) == before
        assert [file.read_bytes() for file in files] == held


@law(max_examples=60)
@given(conversations, policies, st.data())
def test_a_view_is_a_function_of_line_policy_and_moment(
    store: Store, line: list[Message], policy: Policy, data: st.DataObject
) -> None:
    """The same again, later, on a fork, on a fork's fork, and as it was then (promise 4)."""

    def seen(session: str, **options: Any) -> object:
        return store.view(session, policy, now=NOW, **options)._replace(session_id="", branch=0)

    cut = data.draw(st.integers(0, len(line)))
    session_id = started(store, line[:cut])
    then = seen(session_id)
    store.append(session_id, line[cut:])
    whole, branch = seen(session_id), store.session(session_id).branch
    assert seen(session_id, at=cut) == then
    fork = store.fork(session_id, at=cut).id
    assert seen(fork) == then
    store.append(fork, line[cut:])
    assert seen(fork) == whole
    assert seen(store.fork(fork).id) == whole
    store.rewind(session_id, to=cut)
    assert seen(session_id) == then
    assert seen(session_id, branch=branch) == whole
    store.append(session_id, line[cut:])
    assert seen(session_id) == whole
    if cut < len(line):
        store.undo_rewind(session_id)
    assert seen(session_id) == whole


@law(max_examples=60)
@given(conversations, policies)
def test_it_does_not_matter_how_a_line_was_appended(
    store: Store, line: list[Message], policy: Policy
) -> None:
    """In one batch or one by one, results find the same calls."""
    at_once, piecemeal = started(store, line), started(store, [])
    for message in line:
        store.append(piecemeal, message)
    one, other = store.view(at_once, policy, now=NOW), store.view(piecemeal, policy, now=NOW)
    assert one._replace(session_id=piecemeal, branch=other.branch) == other


@law(max_examples=60)
@given(busy_conversations, st.integers(0, 40))
def test_age_only_ever_replaces_more(store: Store, line: list[Message], minutes: int) -> None:
    """What is replaced at a moment is still replaced at any later one."""
    session_id = started(store, line)
    policy = Policy(terminal_keep=1)
    early = {e.seq for e in store.view(session_id, policy, now=NOW).entries if e.rule == "terminal"}
    late = {
        e.seq
        for e in store.view(session_id, policy, now=NOW + minutes * 60_000).entries
        if e.rule == "terminal"
    }
    assert early <= late


# --- fork, rewind, undo against lists in memory ---------------------------------------------------


class Model:
    """A session as plain lists: its line, and the lines that undoing goes back to."""

    def __init__(self, line: list[Message]) -> None:
        self.line = line
        self.earlier: list[list[Message]] = []


class Histories(RuleBasedStateMachine):
    """Any order of appends, forks, rewinds and undos, in one tree."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, Model] = {}

    @initialize()
    def begin(self) -> None:
        """Make the root session."""
        self.models = {self.store.create_session(project_root=ROOT).id: Model([])}

    def pick(self, data: st.DataObject) -> tuple[str, Model]:
        """Choose a session."""
        session_id = data.draw(st.sampled_from(sorted(self.models)), label="session")
        return session_id, self.models[session_id]

    @rule(data=st.data(), batch=messy_conversations)
    def append(self, data: st.DataObject, batch: list[Message]) -> None:
        """Append a batch."""
        session_id, model = self.pick(data)
        stored = self.store.append(session_id, batch, expected_head=len(model.line))
        assert [each.seq for each in stored] == list(
            range(len(model.line) + 1, len(model.line) + len(batch) + 1)
        )
        model.line = model.line + batch

    @rule(data=st.data())
    @precondition(lambda self: len(self.models) < 8)
    def fork(self, data: st.DataObject) -> None:
        """Fork anywhere."""
        session_id, model = self.pick(data)
        at = data.draw(st.none() | st.integers(0, len(model.line)), label="at")
        made = self.store.fork(session_id, at=at)
        at = len(model.line) if at is None else at
        assert (made.head, made.forked_from, made.forked_at, made.project_root) == (
            at,
            session_id,
            at,
            ROOT,
        )
        self.models[made.id] = Model(model.line[:at])

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        """Rewind to anywhere; to the head it moves nothing, so there is nothing to undo."""
        session_id, model = self.pick(data)
        to = data.draw(st.integers(0, len(model.line)), label="to")
        assert self.store.rewind(session_id, to=to).head == to
        if to < len(model.line):
            model.earlier.append(model.line)
            model.line = model.line[:to]

    @rule(data=st.data())
    @precondition(lambda self: any(model.earlier for model in self.models.values()))
    def undo(self, data: st.DataObject) -> None:
        """Undo the last rewind of a session that has one."""
        session_id = data.draw(
            st.sampled_from(sorted(s for s, m in self.models.items() if m.earlier))
        )
        model = self.models[session_id]
        model.line = model.earlier.pop()
        assert self.store.undo_rewind(session_id).head == len(model.line)

    @rule(data=st.data())
    def read_a_part(self, data: st.DataObject) -> None:
        """Read any range, as of any position."""
        session_id, model = self.pick(data)
        at = data.draw(st.none() | st.integers(0, len(model.line)))
        start = data.draw(st.integers(-3, len(model.line) + 2))
        stop = data.draw(st.none() | st.integers(0, len(model.line) + 2))
        line = list(enumerate(model.line, 1))[:at]
        first = start if start >= 0 else len(line) + 1 + start
        wanted = [
            each for each in line if first <= each[0] <= (len(model.line) if stop is None else stop)
        ]
        assert [
            (m.seq, m.message) for m in self.store.messages(session_id, start, stop, at=at)
        ] == wanted

    @invariant()
    def lines_are_those_of_the_model(self) -> None:
        """Every session reads as its model says."""
        for session_id, model in self.models.items():
            assert self.store.session(session_id).head == len(model.line)
            assert [each.message for each in self.store.messages(session_id)] == model.line

    def teardown(self) -> None:
        """However a line came to be, its view is that of the same line appended at once."""
        for session_id, model in self.models.items():
            flat = started(self.store, model.line)
            for policy in (
                Policy(),
                Policy(
                    terminal_keep=1, file_read_keep=1, orphans="drop", protect_current_turn=True
                ),
            ):
                view = self.store.view(session_id, policy, now=NOW)
                assert (
                    self.store.view(flat, policy, now=NOW)._replace(
                        session_id=session_id, branch=view.branch
                    )
                    == view
                )


@pytest.mark.slow
def test_histories_are_lists(store: Store) -> None:
    """Lines, heads, undoing, ranges and views agree with lists in memory after any history (promise
    5).
    """

    class Here(Histories):
        pass

    Here.store = store
    run_state_machine_as_test(Here, settings=law(max_examples=20, stateful_step_count=15))  # type: ignore[no-untyped-call]
