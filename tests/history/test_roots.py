"""Another project root: the files of results are told anew, the messages stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from store import Policy, Store
from store.errors import Conflict, Damaged, InvalidValue, SessionNotFound
from store.exporting import session_lines
from store.importing import import_file

NOW = 1_767_225_600_000
ONE = Policy(file_read_keep=1)
Message = dict[str, Any]


def read(number: int, path: str) -> list[Message]:
    """A file that is read."""
    function = {"name": "Read", "arguments": json.dumps({"file_path": path})}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    content = f"content {number}"
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": f"c{number}", "content": content, "timestamp": NOW},
    ]


def reads(*paths: str) -> list[Message]:
    """Files that are read one after the other."""
    return [message for number, path in enumerate(paths) for message in read(number, path)]


def replaced(store: Store, session_id: str) -> list[tuple[int, tuple[str, ...]]]:
    """Which reads a view replaces, and of which files."""
    return [(each.seq, each.paths) for each in store.replaced(session_id, ONE, now=NOW)]


def paths(store: Store) -> list[Any]:
    """All paths that are known, and of which results."""
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT branch, seq, path, start_line, mentions FROM tool_result_paths ORDER BY 1, 2, 3"
        )
        return [tuple(row) for row in rows]


def test_a_fork_that_was_handed_over_has_a_root_of_its_own(url: str) -> None:
    """Files are told by the root of the session in which they were read; nothing is taken for
    damage, whoever is erased, and one root for all tells all of them anew.
    """
    with Store(url, durability="normal") as store:
        store.create_session("a", project_root="/p", owner="ann")
        store.append("a", reads("/p/src/a.ts", "src/b.ts", "/p"))
        store.fork("a", session_id="b", owner="bob")
        store.fork("a", session_id="c", owner="cid", project_root="/home/cid")
        store.append("b", read(9, "/p/src/a.ts"))
        store.append("c", read(9, "/home/cid/src/a.ts"))
        store.fork("b", session_id="d")
        assert replaced(store, "c") == [(2, ("src/a.ts",))]
        assert replaced(store, "b") == []
        assert store.verify() == []
        for session_id in ("b", "a"):
            store.delete_session(session_id)
            assert store.verify() == []
        assert store.set_project_root("c", "/p").project_root == "/p"
        assert store.session("d").project_root == "/p"
        assert replaced(store, "d") == [(2, ("src/a.ts",))]
        assert store.verify() == []


ROOTS = ("/p", None, "/", "/home/ann", "C:/work", "/p/src")
SPELLED = (
    "src/a.ts",
    "/p/src/a.ts",
    "/a.ts",
    "/p",
    "C:/work/src/a.ts",
    "/home/ann/c:/x",
    "../a.ts",
)


def all_reads(store: Store) -> list[Any]:
    """Everything that reads of all sessions return."""
    names = [each.id for each in store.sessions()]
    return [
        (store.messages(name), replaced(store, name), store.view(name, ONE, now=NOW).messages)
        for name in names
    ]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("root", ROOTS)
def test_nothing_is_damage_whichever_root_an_erased_session_had(url: str, root: Any) -> None:
    """Several spellings of one file in a call are one path by one root, and two by another."""
    calls = read(1, "src/a.ts")
    calls[0]["tool_calls"][0]["function"]["arguments"] = json.dumps({"paths": SPELLED})
    with Store(url, durability="normal", check_reads=True) as store:
        store.create_session("a", project_root=root, owner="ann")
        store.append("a", [*calls, *reads(*SPELLED)])
        for number, other in enumerate(ROOTS):
            name = f"f{number}"
            store.fork("a", session_id=name, owner=name, project_root=other)
            store.append(name, reads(*SPELLED))
        store.delete_session("a")
        for number in range(len(ROOTS)):
            assert store.verify() == []
            assert all_reads(store)
            for each in store.sessions():
                assert [*session_lines(store, each.id).lines]
            store.delete_session(f"f{number}")


def test_a_path_of_an_erased_session_that_follows_from_no_root_is_damage(url: str) -> None:
    """Beside others that do; it alone is named."""
    with Store(url, durability="normal") as store:
        store.create_session("a", project_root="/p", owner="ann")
        store.append("a", reads("/p/src/a.ts", "/p/b.ts", "c.ts"))
        store.fork("a", session_id="b", owner="bob", project_root="/q")
        store.delete_session("a")
        with store.database.writing() as connection:
            connection.begin()
            wrong = "UPDATE tool_result_paths SET path = 'd.ts' WHERE path = 'b.ts'"
            assert connection.exec_driver_sql(wrong).rowcount == 1
        assert [each.problem for each in store.verify()] == [
            "is missing",
            "is there, but follows from nothing",
        ]
        with pytest.raises(Damaged):
            session_lines(store, "b")


def test_imported_sessions_are_sound_by_any_root(url: str, tmp_path: Path) -> None:
    """With a root that the file tells, one that is given, and one that is set later."""
    plain, rooted = tmp_path / "plain.jsonl", tmp_path / "rooted.json"
    plain.write_text("".join(json.dumps(each) + "\n" for each in reads(*SPELLED)))
    told = {"messages": reads(*SPELLED), "project_root": "/p"}
    rooted.write_text(json.dumps(told))
    with Store(url, durability="normal", check_reads=True) as store:
        found = [
            import_file(store, path, session_id=f"{path.stem}{number}", project_root=root)
            for path in (plain, rooted)
            for number, root in enumerate((None, "/home/ann"))
        ]
        names = [each.id for report in found for each in report.sessions]
        assert [store.session(name).project_root for name in names] == [
            *(None, "/home/ann"),
            *("/p", "/home/ann"),
        ]
        for name in names:
            store.fork(name, session_id=f"of {name}", owner="bob", project_root="C:/work")
            store.append(f"of {name}", reads(*SPELLED))
            assert all_reads(store)
            store.set_project_root(name, "/p/src")
            assert all_reads(store)
            store.delete_session(name)
            assert all_reads(store)
        assert store.verify() == []


@pytest.mark.sqlite_only
def test_a_root_that_is_set_later_is_as_one_that_was_given(tmp_path: Path) -> None:
    """With forks whose results answer calls of their parent, and rewinds."""
    told: list[Any] = []
    for given, later in (("/p", None), (None, "/p"), ("/other", "/p")):
        with Store(tmp_path / f"{len(told)}.db", durability="normal") as store:
            store.create_session("s", project_root=given)
            store.append("s", [*reads("a.ts", "/p/a.ts", "/other/a.ts"), read(9, "/p/b.ts")[0]])
            store.fork("s", session_id="f")
            store.append("f", [read(9, "/p/b.ts")[1], *reads("/p/./b.ts", "b.ts")])
            store.rewind("s", to=4)
            store.append("s", reads("/p/a.ts"))
            if later:
                raw = [each.message for each in store.messages("f")]
                assert store.set_project_root("s", later).project_root == later
                assert [each.message for each in store.messages("f")] == raw
            assert store.session("f").project_root == "/p"
            assert store.verify() == []
            told.append((paths(store), replaced(store, "s"), replaced(store, "f")))
            store.append("s", reads("a.ts"))
            assert len(replaced(store, "s")) == 3
    assert told[0] == told[1] == told[2]
    assert told[0][1] == [(2, ("a.ts",)), (4, ("a.ts",))]


def test_what_is_no_root_and_no_session(store: Store) -> None:
    """Nothing changes then."""
    made = store.create_session(project_root="/p").id
    with pytest.raises(InvalidValue):
        store.set_project_root(made, 5)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        store.set_project_root("nobody", "/p")
    assert store.session(made).project_root == "/p"
    before = store.session(made).revision
    unset = store.set_project_root(made, None, expected=before)
    assert unset.project_root is None
    assert unset.revision != before
    with pytest.raises(Conflict):
        store.set_project_root(made, "/p", expected=before)


def test_by_the_command(run: Run, tmp_path: Path) -> None:
    """Export and import keep it, an import may give it, and it can be mended."""
    messages = reads("a.ts", "/p/a.ts")
    with Store("convostore.db") as store:
        store.create_session("s", project_root="/p")
        store.append("s", messages)
    ran = run("export", "s", "-o", "out.jsonl")
    assert ran.out == "4 messages written to out.jsonl\n"
    run("export", "s", "--view", "-o", "view.jsonl")
    assert "project_root" not in Path("view.jsonl").read_text()
    assert run("import", "out.jsonl", "--id", "copy").status == 0
    Path("plain.jsonl").write_text("".join(json.dumps(each) + "\n" for each in messages))
    assert run("import", "plain.jsonl", "--id", "given", "--project-root", "/p").status == 0
    assert run("import", "plain.jsonl", "--id", "mended").status == 0
    with Store("convostore.db") as store:
        assert replaced(store, "mended") == []
        assert [each.message for each in store.messages("copy")] == messages
    assert run("project", "mended", "/p").out == "mended: the project is in /p\n"
    with Store("convostore.db") as store:
        for name in ("s", "copy", "given", "mended"):
            assert replaced(store, name) == [(2, ("a.ts",))]
    assert run("project", "mended", "").out == "mended: the project is in no folder\n"


def test_a_conversation_may_say_where_its_project_is(run: Run) -> None:
    """Beside its messages."""
    Path("talk.json").write_text(json.dumps({"messages": reads("a.ts"), "project_root": "/p"}))
    Store("convostore.db").close()
    assert run("import", "talk.json").status == 0
    with Store("convostore.db") as store:
        assert store.session("talk").project_root == "/p"
