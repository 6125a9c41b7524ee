"""The public calls, each made on one store after the other, in an order in which all of them work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from store import Policy, Store
from store.errors import StoreError

NOW = 1_800_000_000_000
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "hello needle", "id": "m1"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "x/y.py"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "read_file", "content": "the text of a file"},
    {"role": "assistant", "content": "done"},
]
MORE = {"role": "user", "content": "more"}
KEEP_ONE = Policy(keep_messages=1)


def summarize(*_: Any) -> str:
    """Return a summary."""
    return "All of it."


def stream(store: Store) -> None:
    """Stream an answer."""
    with store.streaming("s", {"role": "assistant"}, every_bytes=0) as answer:
        answer.write("a")
        assert "".join(store.drafts("s")[0].message["content"]) == "a"


def leave_draft(store: Store) -> str:
    """Leave a draft behind; return its id."""
    answer = store.streaming("s", {"role": "assistant"}, every_bytes=0)
    try:
        with answer:
            answer.write("half")
            raise KeyError
    except KeyError:
        return answer.draft


CALLS: dict[str, Callable[[Store], Any]] = {
    "create_session": lambda store: store.create_session(
        "s", owner="ann", title="T", metadata={"k": "v"}, now=NOW
    ),
    "append": lambda store: len(store.append("s", SAID, now=NOW)),
    "append one": lambda store: store.append("s", MORE)[0].seq,
    "append an id again": lambda store: len(store.append("s", SAID[0])),
    "append create": lambda store: len(store.append("t", [MORE] * 30, create=True)),
    "session": lambda store: store.session("s").head,
    "title": lambda store: store.title("s"),
    "messages": lambda store: [each.message for each in store.messages("s")],
    "messages last": lambda store: [each.seq for each in store.messages("s", last=2)],
    "pages": lambda store: [len(each) for each in store.pages("s", size=2)],
    "message": lambda store: store.message("s", "m1").message,
    "view": lambda store: store.view("s", now=NOW).messages,
    "view agent": lambda store: store.view("s", Policy.named("agent"), now=NOW).messages,
    "view record": lambda store: store.view("s", record=True, now=NOW).messages,
    "requests": lambda store: len(store.requests("s")),
    "request": lambda store: store.request("s", 1).messages,
    "calls": lambda store: len(store.calls("s")),
    "open_calls": lambda store: len(store.open_calls("s")),
    "files": lambda store: len(store.files("s")),
    "turns": lambda store: len(store.turns("s")),
    "check": lambda store: store.check("s", Policy.named("agent"), max_tokens=1000).should_compact,
    "context": lambda store: store.context("s", "Be brief.", None, "Hi", now=NOW).messages,
    "count_tokens": lambda store: store.count_tokens("s") is not None,
    "record_usage": lambda store: store.record_usage("s", input=10, output=2, model="m").number,
    "usages": lambda store: len(store.usages()),
    "usages of an owner": lambda store: len(store.usages(owner="ann")),
    "usages of a session": lambda store: len(store.usages("s")),
    "usage_totals": lambda store: len(store.usage_totals(by=["model", "session"])),
    "annotate": lambda store: store.annotate("s", 1, "star", value=True).value,
    "annotations": lambda store: len(store.annotations("s")),
    "annotations of an owner": lambda store: len(store.annotations(owner="ann")),
    "annotations of a key": lambda store: len(store.annotations(key="star")),
    "set_metadata": lambda store: store.set_metadata("s", {"z": 1}, merge=True).metadata,
    "rename_session": lambda store: store.rename_session("s", "U").title,
    "set_project_root": lambda store: store.set_project_root("s", "/p").project_root,
    "archive": lambda store: store.archive("s").archived,
    "unarchive": lambda store: store.unarchive("s").archived,
    "fork": lambda store: store.fork("s", 4, "f").head,
    "append to a fork": lambda store: store.append("f", MORE)[0].seq,
    "pop": lambda store: len(store.pop("f")),
    "replace": lambda store: len(store.replace("f", 4, [MORE])),
    "rewind": lambda store: store.rewind("s", 4).head,
    "undo_rewind": lambda store: store.undo_rewind("s").head,
    "rewind and append": lambda store: (store.rewind("s", 4).head, store.append("s", MORE)[0].seq),
    "head_moves": lambda store: len(store.head_moves("s")),
    "branches": lambda store: len(store.branches("s")),
    "siblings": lambda store: len(store.siblings("s", 5)),
    "switch": lambda store: store.switch("s", store.branches("s")[0].branch).head,
    "plan_compaction": lambda store: store.plan_compaction("t", KEEP_ONE) is not None,
    "plan_clearing": lambda store: store.plan_clearing("t", KEEP_ONE) is not None,
    "compact": lambda store: store.compact("t", KEEP_ONE, summarizer=summarize).outcome,
    "compact_if_needed": lambda store: (
        store.compact_if_needed("t", KEEP_ONE, summarizer=summarize, max_tokens=10**6) is None
    ),
    "view compacted": lambda store: store.view("t", now=NOW).messages,
    "hidden": lambda store: len(store.hidden("t")),
    "compactions": lambda store: len(store.compactions("t")),
    "undo_compaction": lambda store: (
        store.undo_compaction("t", store.compactions("t")[-1].id) is not None
    ),
    "hide": lambda store: store.hide("s", 2, 3, "they talked") is not None,
    "view hidden": lambda store: store.view("s", now=NOW).messages,
    "replaced": lambda store: len(store.replaced("s")),
    "recall": lambda store: store.recall("s", "needle") is not None,
    "find in a session": lambda store: len(store.find("m1", session="s")),
    "find": lambda store: len(store.find("m1")),
    "find of an owner": lambda store: len(store.find("m1", owner="ann")),
    "sessions": lambda store: sorted(each.id for each in store.sessions()),
    "sessions of an owner": lambda store: len(store.sessions(owner="ann")),
    "sessions after": lambda store: len(store.sessions(after=store.sessions(limit=1)[0])),
    "sessions by a prefix": lambda store: len(store.sessions(prefix="s")),
    "sessions by metadata": lambda store: len(store.sessions(where={"k": "v"})),
    "sessions created": lambda store: len(store.sessions(order="created")),
    "sessions of a tree": lambda store: len(store.sessions(tree="s")),
    "count_sessions": lambda store: store.count_sessions(),
    "count_sessions of an owner": lambda store: store.count_sessions(owner="ann"),
    "search": lambda store: len(store.search("needle")),
    "search of an owner": lambda store: len(store.search("needle", owner="ann")),
    "search in a session": lambda store: len(store.search("needle", session="s")),
    "search newest": lambda store: len(store.search("more", order="newest")) > 0,
    "search by session": lambda store: len(store.search("more", by="session")) > 0,
    "index": lambda store: store.index().waiting,
    "index anew": lambda store: store.index(anew=True).waiting,
    "wait": lambda store: store.wait("s", store.session("s").revision, 0.2),
    "atomically": lambda store: store.atomically(
        lambda steps: [steps.append("s", MORE)[0].seq, steps.append("s", MORE)[0].seq]
    ),
    "atomically in two trees": lambda store: store.atomically(
        lambda steps: [len(steps.append(each, MORE)) for each in "st"]
    ),
    "reading": lambda store: store.reading(lambda state: state.session("s").head),
    "streaming": stream,
    "drafts": lambda store: len(store.drafts(owner="ann")),
    "follow": lambda store: "".join(store.follow(leave_draft(store))),
    "finish_draft": lambda store: store.finish_draft(store.drafts("s")[0]).seq,
    "discard_draft": lambda store: store.discard_draft(leave_draft(store)).live,
    "redact": lambda store: store.redact("s", 1, "a name") is not None,
    "redactions": lambda store: len(store.redactions()),
    "view redacted": lambda store: store.view("s", now=NOW).messages,
    "forget": lambda store: store.forget("s") is not None,
    "scoped": lambda store: len(store.scoped("ann").sessions()),
    "prices": lambda store: len(store.prices()),
    "size": lambda store: len(store.size().parts) > 0,
    "health": lambda store: bool(store.health()),
    "verify": lambda store: [str(each) for each in store.verify()],
    "prune": lambda store: store.prune(idle=10_000) is not None,
    "copies": lambda store: len(store.copies()),
    "delete_session": lambda store: store.delete_session("f") is not None,
    "delete_owner": lambda store: len(store.delete_owner("ann")),
    "erasures": lambda store: len(store.erasures()) > 0,
    "verify after all": lambda store: [str(each) for each in store.verify()],
}
"""Calls whose answers are the same wherever they are made."""


def make_calls(store: Store) -> dict[str, str]:
    """Make every call; return what it answered, or how it failed."""
    answers = {}
    for name, call in CALLS.items():
        try:
            answers[name] = repr(call(store))
        except (StoreError, AssertionError, LookupError) as error:
            answers[name] = f"{type(error).__name__}: {error}"
    return answers
