"""Stores of other libraries and apps, made up after what their own code writes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.importing import ImportReport, import_file

Fields = dict[str, Any]
WEATHER = {"name": "get_weather", "arguments": '{"city": "Paris"}'}


def database(path: Path, tables: str, rows: Iterable[tuple[str, Fields]]) -> Path:
    """Write a database of these tables."""
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(tables)
        for table, row in rows:
            places = ", ".join("?" for _ in row)
            made.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", [*row.values()]
            )
    return path


def imported(path: Path, store: Store) -> ImportReport:
    """Import a file twice, whose bytes stay; the second time nothing is new."""
    before = path.read_bytes()
    report = import_file(store, path)
    again = import_file(store, path)
    assert sum(each.appended for each in again.sessions) == 0
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(path.name)] == [
        path.name
    ]
    assert store.verify() == []
    return report


def said(store: Store, name: str) -> list[tuple[str, Any]]:
    """Return who said what in a session, as a chat's API is told."""
    view = store.view(name)
    return [
        (each["role"], each.get("content") or each["tool_calls"][0]["function"])
        for each in view.messages
    ]


AGENTS = """
CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TIMESTAMP);
"""
ITEMS: list[Fields] = [
    {"role": "user", "content": "Weather in Paris?"},
    {"type": "function_call", "call_id": "c1", "id": "fc_1", "status": "completed", **WEATHER},
    {"type": "function_call_output", "call_id": "c1", "output": "18C"},
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "18C."}],
    },
]


def test_sessions_of_the_agents_sdk(store: Store, tmp_path: Path) -> None:
    """Items as they are; one that cannot be read is told."""
    rows = [("agent_sessions", {"session_id": name}) for name in ("s1", "empty")]
    items = [*map(json.dumps, ITEMS), "{"]
    rows += [("agent_messages", {"session_id": "s1", "message_data": item}) for item in items]
    report = imported(database(tmp_path / "agents.db", AGENTS, rows), store)
    assert (report.kind, [each.id for each in report.sessions]) == ("openai_agents", ["s1"])
    assert [note.text for note in report.notes if note.broken] == ["item 5 of s1 cannot be read"]
    assert [each.message for each in store.messages("s1")] == ITEMS
    assert [role for role, _ in said(store, "s1")] == ["user", "assistant", "tool", "assistant"]


STRUCTURE = """
CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER,
    branch_id TEXT, sequence_number INTEGER);
"""


def test_branches_of_the_agents_sdk(store: Store, tmp_path: Path) -> None:
    """They share the items before they part; the one written to last is the present one."""
    texts = ("q1", "a1", "q2", "a2", "q3")
    rows = [("agent_sessions", {"session_id": "s", "created_at": "2026-01-01 00:00:01"})]
    for words in texts:
        item = {"role": "assistant" if words.startswith("a") else "user", "content": words}
        rows += [("agent_messages", {"session_id": "s", "message_data": json.dumps(item)})]
    lines = {"main": (1, 2, 3, 4), "other": (1, 2, 5)}
    for branch, numbers in lines.items():
        for place, number in enumerate(numbers):
            row = {"message_id": number, "branch_id": branch, "sequence_number": place}
            rows += [("message_structure", {"session_id": "s", **row})]
    path = database(tmp_path / "agents.db", AGENTS + STRUCTURE, rows)
    report = imported(path, store)
    assert [each.id for each in report.sessions] == ["s", "s/branch-3"]
    assert [words for _, words in said(store, "s")] == ["q1", "a1", "q3"]
    assert [words for _, words in said(store, "s/branch-3")] == ["q1", "a1", "q2", "a2"]
    assert store.session("s").created_at == 1767225601000


ADK = """
CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT, update_time REAL);
CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, create_time REAL, update_time REAL);
CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT,
    timestamp REAL, event_data TEXT);
"""


def test_sessions_of_the_agent_development_kit(store: Store, tmp_path: Path) -> None:
    """Owners, times, calls with their responses; what only changes the state says nothing."""
    call = {"id": "c1", "name": "get_weather", "args": {"city": "Paris"}}
    answered = {"id": "c1", "name": "get_weather", "response": {"result": "18C"}}
    contents: list[Fields | None] = [
        {"role": "user", "parts": [{"text": "Weather in Paris?"}]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"function_call": call}]},
        {"role": "user", "parts": [{"function_response": answered}]},
        {"role": "model", "parts": [{"text": "18C."}]},
        None,
    ]
    key = {"app_name": "app", "user_id": "ann"}
    times = {"create_time": 1_700_000_000.5, "update_time": 1_700_000_009.0}
    rows = [("sessions", {**key, "id": "s2", "state": '{"a": 1}', **times})]
    usage = {"prompt_token_count": 10, "candidates_token_count": 5, "total_token_count": 15}
    for number, content in enumerate(contents):
        event = {"id": f"e{number}", "author": "root", "content": content}
        event |= {"usage_metadata": usage} if number == 1 else {}
        row = {"id": f"e{number}", "invocation_id": "i", "timestamp": 1_700_000_001 + number}
        rows += [("events", {**key, "session_id": "s2", **row, "event_data": json.dumps(event)})]
    report = imported(database(tmp_path / "adk.db", ADK, rows), store)
    assert report.kind == "adk"
    session = store.session("s2")
    assert (session.owner, session.created_at, session.head) == ("ann", 1_700_000_000_500, 4)
    assert said(store, "s2") == [
        ("user", "Weather in Paris?"),
        ("assistant", WEATHER),
        ("tool", "18C"),
        ("assistant", "18C."),
    ]
    assert store.message("s2", 2).message["reasoning_content"] == "Hm."
    assert session.metadata == {"adk": {"app_name": "app", "state": {"a": 1}}}
    assert [(each.input, each.output) for each in store.usages("s2")] == [(10, 5)]


def test_moments_as_the_kits_other_service_writes_them(store: Store, tmp_path: Path) -> None:
    """As ISO text, in UTC."""
    key = {"app_name": "app", "user_id": "ann"}
    event = {"id": "e", "content": {"role": "user", "parts": [{"text": "Hi"}]}}
    told = {"session_id": "s3", "timestamp": "2026-01-01 00:00:02", "event_data": json.dumps(event)}
    rows = [
        ("sessions", {**key, "id": "s3", "state": "{}", "create_time": "2026-01-01 00:00:01"}),
        ("events", {**key, **told}),
    ]
    tables = ADK.replace("REAL", "DATETIME")
    imported(database(tmp_path / "adk.db", tables, rows), store)
    assert store.session("s3").created_at == 1767225601000
    assert store.message("s3", 1).message["timestamp"] == 1767225602000


LLM = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT,
    options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER,
    datetime_utc TEXT, input_tokens INTEGER);
"""
LLM_TOOLS = """
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT, tool_call_id TEXT,
    exception TEXT);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE system_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
"""
RESPONSES = [
    {
        "id": "r1",
        "prompt": "Weather in Paris?",
        "system": "Be kind.",
        "response": "",
        "input_tokens": 9,
    },
    {"id": "r2", "prompt": "", "system": "Be kind.", "response": "18C."},
    {"id": "r3", "prompt": "Thanks.", "system": None, "response": "Bye."},
]


def logged(path: Path, tables: str, more: list[tuple[str, Fields]], name: str = "k1") -> Path:
    """Write a log of a conversation."""
    rows: list[tuple[str, Fields]] = [
        ("conversations", {"id": name, "name": "Weather", "model": "m"})
    ]
    for number, response in enumerate(RESPONSES):
        told = {"conversation_id": name, "datetime_utc": f"2026-01-01T00:00:0{number}+00:00"}
        rows.append(("responses", {**response, **told}))
    return database(path, tables, [*rows, *more])


def test_conversations_that_llm_logged(store: Store, tmp_path: Path) -> None:
    """Prompts, answers, calls with their results, the system prompt once."""
    call = {"response_id": "r1", "tool_call_id": "c1", **WEATHER}
    result = {"response_id": "r2", "tool_call_id": "c1", "name": "get_weather", "output": "18C"}
    more = [("tool_calls", call), ("tool_results", result)]
    for number, table in enumerate(("prompt_fragments", "system_fragments"), 1):
        more.append(("fragments", {"id": number, "content": f"Fragment {number}."}))
        more.append((table, {"response_id": "r3", "fragment_id": number}))
    report = imported(logged(tmp_path / "logs.db", LLM + LLM_TOOLS, more), store)
    assert report.kind == "llm"
    assert report.notes == []
    assert store.session("k1").title == "Weather"
    assert said(store, "k1") == [
        ("system", "Be kind."),
        ("user", "Weather in Paris?"),
        ("assistant", WEATHER),
        ("tool", "18C"),
        ("assistant", "18C."),
        ("system", "Fragment 2."),
        ("user", "Fragment 1.\nThanks."),
        ("assistant", "Bye."),
    ]


def test_an_older_log_of_llm(store: Store, tmp_path: Path) -> None:
    """Without tables of tools."""
    report = imported(logged(tmp_path / "logs.db", LLM, [], "k2"), store)
    assert (report.notes, store.session("k2").head) == ([], 6)


LLM_THREADS = """
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT,
    text TEXT, payload TEXT);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
    resolved_model TEXT, input_tokens INTEGER, output_tokens INTEGER, duration_ms INTEGER, datetime_utc TEXT);
"""
PICTURE = {"id": "f1", "type": "image/png", "content": b"png"}
REF = [{"fragment": 1}, {"literal": "\nWeather?"}]
LINE: list[tuple[str, str, str, list[Fields]]] = [
    ("m1", "", "system", [{"type": "text", "text": "Be kind."}]),
    (
        "m2",
        "m1",
        "user",
        [{"type": "text", "text_ref": REF}, {"type": "attachment", "attachment": {"id": "f1"}}],
    ),
    (
        "m3",
        "m2",
        "assistant",
        [
            {"type": "reasoning", "text": "Hm."},
            {"type": "tool_call", "tool_call_id": "c1", "name": "w", "arguments": {"a": 1}},
        ],
    ),
    (
        "m4",
        "m3",
        "tool",
        [{"type": "tool_result", "tool_call_id": "c1", "name": "w", "output": "18C"}],
    ),
    ("m5", "m4", "assistant", [{"type": "text", "text": "18C."}]),
    ("m6", "m5", "user", [{"type": "text", "text": "Thanks."}]),
    ("n6", "m5", "user", [{"type": "text", "text": "And in Oslo?"}]),
]


def linked() -> Iterable[tuple[str, Fields]]:
    """Yield the rows of messages, each behind another one, and of their parts."""
    for name, parent, role, parts in LINE:
        yield "messages", {"hash": name, "parent_hash": parent or None, "role": role}
        for position, part in enumerate(parts):
            rest = {key: held for key, held in part.items() if key not in ("type", "text")}
            payload = json.dumps(rest) if rest else None
            told = {"type": part["type"], "text": part.get("text"), "payload": payload}
            yield "parts", {"message_hash": name, "position": position, **told}


def test_threads_that_llm_logged(store: Store, tmp_path: Path) -> None:
    """Parts with what they name, costs of turns, a thread that was forked off another one."""
    thread = {"id": "t1", "name": "Weather", "tip_message_hash": "m6", "datetime_utc": "1"}
    fork = {"id": "t2", "tip_message_hash": "n6", "forked_from": "t1", "datetime_utc": "2"}
    turn = {"id": "r9", "thread_id": "t1", "tip_message_hash": "m5", "model": "m"}
    spent = {"input_tokens": 9, "output_tokens": 2, "datetime_utc": "2026-01-01T00:00:09+00:00"}
    more = [
        *linked(),
        ("attachments", PICTURE),
        ("fragments", {"id": 1, "content": "A text."}),
        ("threads", thread),
        ("threads", fork),
        ("turns", turn | spent),
    ]
    path = logged(tmp_path / "logs.db", LLM + LLM_TOOLS + LLM_THREADS, more, "t1")
    report = imported(path, store)
    assert [(each.id, each.messages) for each in report.sessions] == [("t1", 6), ("t2", 1)]
    url = {"url": "data:image/png;base64,cG5n"}
    assert said(store, "t1")[:3] == [
        ("system", "Be kind."),
        (
            "user",
            [
                {"type": "text", "text": "A text.\nWeather?"},
                {"type": "image_url", "image_url": url},
            ],
        ),
        ("assistant", {"name": "w", "arguments": '{"a": 1}'}),
    ]
    assert said(store, "t2") == [*said(store, "t1")[:5], ("user", "And in Oslo?")]
    assert store.message("t1", 3).message["reasoning_content"] == "Hm."
    assert store.message("t1", 5).message["timestamp"] == 1_767_225_609_000
    assert [(each.input, each.output, each.model) for each in store.usages("t1")] == [(9, 2, "m")]
    assert (store.session("t1").title, store.session("t2").forked_from) == ("Weather", "t1")


def exported(path: Path, value: Any) -> Path:
    """Write a JSON document."""
    path.write_text(json.dumps(value), "utf-8")
    return path


def test_chats_of_open_webui(store: Store, tmp_path: Path) -> None:
    """The present path, an answer that was made anew, calls that an answer tells of."""
    output = [
        {"type": "function_call", "call_id": "c1", **WEATHER},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "18C"}],
        },
        {"type": "message", "content": [{"type": "output_text", "text": "18C."}]},
    ]
    nodes = {
        "u1": {
            "id": "u1",
            "parentId": None,
            "role": "user",
            "content": "Weather?",
            "timestamp": 1_700_000_000,
        },
        "a1": {
            "id": "a1",
            "parentId": "u1",
            "role": "assistant",
            "content": "No idea.",
            "model": "m",
        },
        "a2": {
            "id": "a2",
            "parentId": "u1",
            "role": "assistant",
            "content": "<details/>18C.",
            "output": output,
        },
    }
    chat = {"title": "Weather", "history": {"currentId": "a2", "messages": nodes}}
    value = [
        {"id": "w1", "user_id": "ann", "chat": chat, "created_at": 1_700_000_000, "pinned": False}
    ]
    report = imported(exported(tmp_path / "chats.json", value), store)
    assert (report.kind, [each.id for each in report.sessions]) == (
        "open_webui",
        ["w1", "w1/branch-a1"],
    )
    assert said(store, "w1")[0] == ("user", "Weather?")
    assert [role for role, _ in said(store, "w1")] == ["user", "assistant", "tool", "assistant"]
    assert said(store, "w1")[-1] == ("assistant", "18C.")
    assert said(store, "w1/branch-a1") == [("user", "Weather?"), ("assistant", "No idea.")]
    assert (store.session("w1").owner, store.session("w1/branch-a1").forked_from) == ("ann", "w1")


def test_conversations_of_librechat(store: Store, tmp_path: Path) -> None:
    """Messages below each other; texts of either shape, calls with their results."""

    def node(name: str, text: str, *children: Fields, by_user: bool = False, **more: Any) -> Fields:
        told = {
            "messageId": name,
            "text": text,
            "isCreatedByUser": by_user,
            "children": [*children],
        }
        for child in children:
            child["parentMessageId"] = name
        return {**told, "createdAt": "2026-01-01T00:00:00Z", **more}

    call = {"id": "c1", "name": "get_weather", "args": WEATHER["arguments"], "output": "18C"}
    parts = [{"type": "tool_call", "tool_call": call}, {"type": "text", "text": {"value": "18C."}}]
    root = node(
        "u1", "Weather?", node("a1", "No idea."), node("a2", "", content=parts), by_user=True
    )
    value = {"conversationId": "l1", "title": "Weather", "endpoint": "openAI", "messages": [root]}
    report = imported(exported(tmp_path / "export.json", value), store)
    assert (report.kind, [each.id for each in report.sessions]) == (
        "librechat",
        ["l1", "l1/branch-a1"],
    )
    assert [role for role, _ in said(store, "l1")] == ["user", "assistant", "tool", "assistant"]
    assert said(store, "l1")[2] == ("tool", "18C")
    assert said(store, "l1/branch-a1") == [("user", "Weather?"), ("assistant", "No idea.")]


@pytest.mark.parametrize("is_list", [True, False])
def test_messages_of_librechats_database(store: Store, tmp_path: Path, is_list: bool) -> None:
    """Those of several conversations, in a list or one a line; an answer has steps."""
    call = {"id": "c1", "name": "get_weather", "args": WEATHER["arguments"], "output": "18C"}
    content = [
        {"type": "think", "think": "Hm."},
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": "18C."},
    ]
    answer = {"messageId": "a", "parentMessageId": "u", "isCreatedByUser": False, "text": ""}
    asked = {"messageId": "u", "isCreatedByUser": True, "text": "Weather?", "user": "ann"}
    other = {"messageId": "v", "isCreatedByUser": True, "text": "Hi", "conversationId": "d"}
    first = {"conversationId": "c", "createdAt": {"$date": "2026-01-01T00:00:01Z"}}
    rows = [asked | first, other, answer | first | {"content": content}]
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(rows) if is_list else "\n".join(map(json.dumps, rows)))
    report = imported(path, store)
    assert (report.kind, [each.id for each in report.sessions]) == ("librechat", ["c", "d"])
    assert (store.session("c").owner, store.session("c").created_at) == ("ann", 1767225601000)
    thought, result, last = [each.message for each in store.messages("c", 2)]
    assert (thought["reasoning_content"], thought["tool_calls"][0]["id"]) == ("Hm.", "c1")
    assert (result["content"], last["content"], last["id"]) == ("18C", "18C.", "a")
