"""What stays of a redacted message: values of a list, whatever its format and whichever its key."""

from __future__ import annotations

import itertools
import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, Union, get_args, get_origin, get_type_hints

import pytest
import typing_extensions
from conftest import ROOT

from store import Policy, Store
from store.errors import InvalidMessage
from store.exporting import export_session
from store.importing import import_file
from store.messages.redacted_messages import (
    KEPT_ROLES,
    KEPT_STATUSES,
    REDACTED_TEXT,
    make_neutral_id,
)
from store.policy import POLICIES

Message = dict[str, Any]
Path_ = tuple[str | int, ...]
MARK = "Hunter2-Mark"
NOW = 1_800_000_000_000
FORMATS = ("openai", "responses", "anthropic", "gemini")
DEPTH = 6


# --- messages of every kind that the clients' types have ------------------------------------------


def values(hint: Any, depth: int = DEPTH) -> list[Any]:
    """Return a value for each arm of a type, with the mark wherever it is a free text."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Required, typing.NotRequired, typing.Annotated):
        return values(arguments[0], depth)
    if origin is Literal:
        return [arguments[0]]
    if origin in (Union, types.UnionType):
        arms = [arm for arm in arguments if arm is not type(None)]
        return [value for arm in arms for value in values(arm, depth)]
    if typing_extensions.is_typeddict(hint):
        return [] if depth == 0 else [whole(hint, depth - 1)]
    if origin is not None and issubclass(origin, dict | typing.Mapping):
        return [{MARK: MARK}]
    if origin is not None and issubclass(origin, typing.Iterable):
        return [[element for arm in arguments for element in values(arm, depth)]]
    plain = {str: MARK, int: 7, float: 1.5, bool: True, bytes: MARK}
    return [plain.get(hint, {MARK: [MARK]})]


def whole(hint: type[TypedDict], depth: int) -> Message:
    """Return an object with every key of a type; of several values the richest."""
    hints = get_type_hints(hint, include_extras=True)
    found = {key: values(each, depth) for key, each in hints.items()}
    return {
        key: max(some, key=lambda value: len(repr(value))) for key, some in found.items() if some
    }


def of_openai() -> list[Message]:
    """Return messages of Chat Completions."""
    chat = pytest.importorskip("openai.types.chat")
    return values(chat.ChatCompletionMessageParam)


def of_responses() -> list[Message]:
    """Return items of Responses."""
    responses = pytest.importorskip("openai.types.responses")
    return values(responses.ResponseInputItemParam)


def of_anthropic() -> list[Message]:
    """Return messages with each kind of block."""
    beta = pytest.importorskip("anthropic.types.beta")
    blocks = [each for each in values(beta.BetaContentBlockParam) if "type" in each]
    answers = [block for block in blocks if block["type"] != "tool_result"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    said = [block for block in blocks if block["type"] in ("text", "image", "document")]
    return [
        *({"role": "assistant", "content": [block]} for block in answers),
        {"role": "assistant", "content": answers, MARK: MARK},
        {"role": "user", "content": [*results, *said, *results], "id": MARK},
        {"role": "user", "content": MARK},
    ]


def of_gemini() -> list[Message]:
    """Return contents with each kind of part."""
    genai = pytest.importorskip("google.genai.types")
    part = values(genai.PartDict)[0]
    said = {key: held for key, held in part.items() if not key.startswith("function_")}
    camel = {"functionCall": {"name": MARK, "args": {MARK: MARK}}, "thoughtSignature": MARK}
    response = {"name": MARK, "response": {"output": MARK}}
    return [
        *(
            {"role": "model", "parts": [{key: held}]}
            for key, held in said.items()
            if key != "thought"
        ),
        {"role": "model", "parts": [said | {"thought": True}, {"text": MARK}]},
        {"role": "model", "parts": [camel, {"function_call": part["function_call"]}, {MARK: MARK}]},
        {"role": "user", "parts": [{"functionResponse": response}, {"text": MARK}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": response | {"id": MARK, MARK: MARK}, MARK: MARK},
                {"function_response": part["function_response"]},
            ],
        },
    ]


def own() -> list[Message]:
    """Return messages with the keys of the store, and with what no type has."""
    deep: Any = MARK
    for _ in range(100):
        deep = {MARK: [deep]}
    call = {"id": MARK, "type": MARK, MARK: MARK, "function": {"name": MARK, "arguments": MARK}}
    return [
        {"role": "user", "content": MARK, "messageStatus": MARK, "name": MARK, "id": MARK},
        {"role": MARK, "content": MARK, MARK: MARK, "created_at": MARK, "tool_calls": [call]},
        {"role": "user", "content": f"\0{MARK}\0", "name": f"{MARK}\0", "id": f"{MARK}\0"},
        {"role": "user", "content": deep, "id": 7},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call, MARK, {"arguments": {MARK: 1}}],
        },
        {"role": "assistant", "thinking_blocks": [{"type": "thinking", "thinking": MARK}]},
        {"role": "assistant", "reasoning_content": MARK, "refusal": MARK, "audio": {MARK: MARK}},
        {"role": "assistant", "function_call": {"name": MARK, "arguments": MARK}},
        {"role": "function", "name": MARK, "content": MARK},
        {"role": "tool", "tool_call_id": MARK, "content": MARK, "messageStatus": MARK},
        {"role": "tool", "tool_call_ids": [MARK], "name": MARK, "content": {MARK: MARK}},
        {"role": "tool", "content": f'{{"status": "error", "error": "{MARK}", "exitCode": 3}}'},
    ]


SOURCES = {
    "openai": of_openai,
    "responses": of_responses,
    "anthropic": of_anthropic,
    "gemini": of_gemini,
    None: own,
}


def paths(value: Any, before: Path_ = ()) -> Iterator[Path_]:
    """Yield the ways to all objects and texts in a value."""
    if isinstance(value, dict | str):
        yield before
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, held in items:
        if len(before) < 2 * DEPTH:
            yield from paths(held, (*before, key))


def marked(value: Any, way: Path_) -> Any:
    """Return a value with the mark at the end of a way: as the text, or under a key of its own."""
    if way:
        key, *rest = way
        changed = value.copy()
        changed[key] = marked(value[key], tuple(rest))
        return changed
    return {**value, MARK: MARK} if isinstance(value, dict) else MARK


def redact_all(store: Store, session: str) -> None:
    """Redact each message of a session."""
    for seq in range(1, store.session(session).head + 1):
        store.redact(session, seq, "leaked", now=NOW)


def append_each(store: Store, session: str, messages: list[Message], name: str | None) -> int:
    """Append what is taken of some messages; return how many are."""
    taken = 0
    for message in messages:
        try:
            store.append(session, message, format=name, dedupe="off", now=NOW)
        except InvalidMessage:
            continue
        taken += 1
    return taken


def says_mark(store: Store, session: str, tmp_path: Path) -> list[str]:
    """Return by which ways a session still says the mark."""
    ways = {
        "messages": repr(store.messages(session)),
        "titles": repr([store.title(session), store.turns(session)]),
        "find": repr([store.hidden(session), store.compactions(session), store.replaced(session)]),
        "search": repr(store.search("Hunter2")),
        "recall": repr(store.recall(session, "Hunter2")),
        "context": repr(store.context(session, user_input="Go on.", now=NOW)),
    }
    for name, form in itertools.product(POLICIES, FORMATS):
        view = store.view(session, Policy.named(name), now=NOW + 10**9, format=form)
        ways[f"view {name} {form}"] = repr([view.messages, view.system, view.entries])
    for shape in (None, *FORMATS, "claude_code", "codex", "markdown"):
        done = export_session(store, session, tmp_path / "export", shape=shape, replace=True)
        ways[f"export {shape}"] = done.path.read_text("utf-8")
    return [name for name, said in ways.items() if MARK in said]


def files_with_mark(folder: Path) -> list[str]:
    """Return which files of the store hold the mark."""
    files = [each for each in folder.iterdir() if each.name.startswith("chat.db")]
    return [each.name for each in files if MARK.encode() in each.read_bytes()]


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", SOURCES)
def test_no_key_keeps_a_word(name: str | None, path: Path, tmp_path: Path) -> None:
    """Of messages with all keys that a client's types know: no read, no export and no byte."""
    messages = SOURCES[name]()
    with Store(path) as store:
        store.create_session("s", now=NOW)
        assert append_each(store, "s", messages, name) >= 0.6 * len(messages)
        store.index()
        assert files_with_mark(tmp_path)
        store.fork("s", session_id="fork", now=NOW)
        redact_all(store, "s")
        assert store.verify() == []
        assert says_mark(store, "s", tmp_path) == []
        assert says_mark(store, "fork", tmp_path) == []
        assert store.purge()
        assert files_with_mark(tmp_path) == []


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.parametrize("name", SOURCES)
def test_no_place_keeps_a_word(name: str | None, path: Path, tmp_path: Path) -> None:
    """A word in the place of each single text, and under a key of its own in each object."""
    taken = 0
    with Store(path, durability="normal") as store:
        for number, message in enumerate(SOURCES[name]()):
            session = store.create_session(f"s{number}").id
            placed = [marked(message, way) for way in paths(message)]
            taken += append_each(store, session, placed, name)
            redact_all(store, session)
        assert taken > 20
        assert store.verify() == []
        assert all(MARK not in repr(store.messages(each.id)) for each in store.sessions())
        assert store.purge()
        assert files_with_mark(tmp_path) == []


def test_values_that_stay() -> None:
    """The page that lists them has each role, status and kind of id that the code lets stay."""
    text = (ROOT / "docs" / "storage.md").read_text("utf-8")
    section = text.partition("### Redaction of one message")[2].partition("\n### ")[0]
    for word in (*KEPT_ROLES, *KEPT_STATUSES, "other", "unknown_tool", "redacted_"):
        assert f"`{word}`" in section, word


@pytest.mark.parametrize(
    ("given", "stays"),
    [
        ("c1", True),
        ("b", True),
        ("call_17", True),
        ("call_17_0", True),
        ("msg-3/2", True),
        ("4711", True),
        ("3F2504E0-4F89-11D3-9A0C-0305E82C3301", True),
        ("hunter2", False),
        ("ab", False),
        ("call_hunter2", False),
        ("call_4155550132", False),
        ("0123456789abcdef", False),
        ("redacted_hunter2", False),
        ("c1\n", False),
        ("c१", False),
    ],
)
def test_ids_that_stay(given: str, stays: bool) -> None:
    """What counts, what the store makes and UUIDs; what stands for another stands for itself."""
    neutral = make_neutral_id(given)
    assert (neutral == given) is stays
    assert make_neutral_id(neutral) == neutral


# --- what is redacted, and what hangs on it -------------------------------------------------------


def step(call_id: str, tool: str = "Bash") -> list[Message]:
    """Return a call and its result."""
    function = {"name": tool, "arguments": '{"command": "make"}'}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "name": tool, "content": f"ok {call_id}"},
    ]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "order", [*itertools.permutations((2, 3, 4, 5), 2), (2,), (3,), (5, 4, 3, 2)]
)
def test_neutral_ids_pair_with_those_they_stand_for(url: str, order: tuple[int, ...]) -> None:
    """Whichever of calls and results of one id are redacted, in whichever order, all stay pairs."""
    line = [
        {"role": "user", "content": "Go."},
        *step(MARK),
        *step(MARK, MARK),
        *step("tool of mine"),
    ]
    with Store(url) as store:
        store.create_session("s", now=NOW)
        store.append("s", line, now=NOW)
        store.fork("s", 3, "fork", now=NOW)
        store.append("fork", step(MARK)[::-1][1:], now=NOW)
        store.append("fork", step(MARK)[1:], now=NOW)
        for seq in order:
            store.redact("s", seq, "leaked", now=NOW)
            assert store.verify() == []
            for name, form in itertools.product(("s", "fork"), FORMATS):
                view = store.view(name, Policy.named("raw"), now=NOW, format=form)
                assert [each for each in view.entries if each.rule == "repair"] == []


def test_a_result_of_long_ago_finds_its_redacted_call(url: str) -> None:
    """However many messages lie between; and what comes later to a redacted call is its result."""
    between = [{"role": "user", "content": "Wait."}] * 300
    with Store(url) as store:
        store.create_session("s", now=NOW)
        call, result = step(MARK)
        late_call, late = step("late one")
        store.append("s", [call, late_call, *between, result], now=NOW)
        head = store.session("s").head
        store.redact("s", head, "leaked", now=NOW)
        assert store.verify() == []
        store.redact("s", 1, "leaked", now=NOW)
        store.redact("s", 2, "leaked", now=NOW)
        store.append("s", late, now=NOW)
        assert store.verify() == []
        with store.database.reading() as connection:
            rows = connection.exec_driver_sql("SELECT call_seq FROM tool_results ORDER BY seq")
            assert [each for (each,) in rows] == [1, 2]


def test_a_message_is_found_by_the_id_it_had(url: str) -> None:
    """By that and by the one that stands for it; and it is not stored again under the first."""
    with Store(url) as store:
        store.create_session("s", now=NOW)
        said = {"role": "user", "content": MARK, "id": MARK}
        store.append("s", said, now=NOW)
        store.redact("s", 1, "leaked", now=NOW)
        (stored,) = store.append("s", said, now=NOW)
        assert (stored.seq, stored.message["content"]) == (1, REDACTED_TEXT)
        neutral = stored.message["id"]
        assert MARK not in neutral
        for given in (MARK, neutral):
            assert store.message("s", given) == stored
            assert [(each.session_id, each.seq) for each in store.find(given)] == [("s", 1)]
            assert [each.seq for each in store.find(given, session="s")] == [1]
        assert store.session("s").head == 1


def test_an_import_knows_what_is_redacted(url: str, tmp_path: Path) -> None:
    """By its id where it has one, which is no longer the one in the file, and by its place."""
    file = tmp_path / "chat.jsonl"
    line = [{"role": "user", "content": MARK, "id": MARK}, *step(MARK), *step("tool of mine", MARK)]
    with Store(url) as store:
        store.create_session("s", now=NOW)
        store.append("s", line, now=NOW)
        export_session(store, "s", file)
        (first,) = import_file(store, file).sessions
        redact_all(store, first.id)
        (again,) = import_file(store, file).sessions
        assert (again.id, again.appended, again.differs_at) == (first.id, 0, None)
        assert MARK not in repr(store.messages(first.id))
        done = export_session(store, first.id, tmp_path / "redacted.jsonl")
        (copy,) = import_file(store, done.path).sessions
        assert [each.message for each in store.messages(copy.id)] == [
            each.message for each in store.messages(first.id)
        ]
        assert store.verify() == []


@pytest.mark.sqlite_only
def test_a_title_that_repeats_a_message_goes_with_it(path: Path, tmp_path: Path) -> None:
    """Of all sessions of the tree, also one that an import made; another title stays."""
    file = tmp_path / "chat.jsonl"
    said = f"{MARK} is what\nI use. " * 9
    file.write_text(json.dumps({"role": "user", "content": said}) + "\n")
    with Store(path) as store:
        session = import_file(store, file).sessions[0].id
        assert MARK in str(store.session(session).title)
        for number, title in enumerate(("Prices", "use", "I use. Hunter2-Mark", MARK.lower())):
            store.fork(session, session_id=f"f{number}", title=title)
        revision = store.session(session).revision
        store.redact(session, 1, "leaked")
        import_file(store, file)
        titles = [store.session(name).title for name in (session, "f0", "f1", "f2", "f3")]
        assert titles == [REDACTED_TEXT, "Prices", "use", REDACTED_TEXT, MARK.lower()]
        assert store.session(session).revision != revision
        assert store.verify() == []
        assert store.purge()
        assert files_with_mark(tmp_path) == []


@pytest.mark.parametrize("form", FORMATS)
def test_neutral_ids_are_taken_by_every_provider(url: str, form: str) -> None:
    """They are sent as they are stored."""
    with Store(url) as store:
        store.create_session("s", now=NOW)
        store.append("s", [{"role": "user", "content": "Go."}, *step(MARK)], now=NOW)
        store.redact("s", 2, "leaked", now=NOW)
        sent = store.view("s", Policy.named("raw"), now=NOW, format=form).messages
        assert repr(sent).count(repr(make_neutral_id(MARK))) == 2


@pytest.mark.parametrize("status", [*sorted(KEPT_STATUSES), "errors", "", None])
def test_a_status_stays_that_is_a_known_word(store: Store, status: str | None) -> None:
    """So a result that failed is one that failed, whatever else goes."""
    session = store.create_session().id
    told = {} if status is None else {"messageStatus": status}
    store.append(session, {"role": "tool", "tool_call_id": "c1", "content": MARK, **told}, now=NOW)
    store.redact(session, 1, "leaked", now=NOW)
    kept = {"messageStatus": status} if status in KEPT_STATUSES else {}
    assert store.messages(session)[0].message == {
        "role": "tool",
        "content": REDACTED_TEXT,
        "redacted": True,
        "tool_call_id": "c1",
        **kept,
    }
