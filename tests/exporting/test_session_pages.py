"""A session as a page of HTML: everything of it can be opened there, and nothing of it acts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from html_reading import PageReader, list_hostile_texts, read_page

from store import Policy, Store
from store.errors import InvalidValue
from store.exporting import export_session, find_fork_siblings, session_lines
from store.importing import import_file

NOW = 1_764_270_000_000
MINUTE = 60_000
KEY = "sk-a1B2c3D4e5F6g7H8i9J0"


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return an answer that calls a tool."""
    function = {"name": name, "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, content: str) -> dict[str, Any]:
    """Return a result of a tool."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def page_of(store: Store, session_id: str, **asked: Any) -> str:
    """Return a session as a page."""
    return "".join(session_lines(store, session_id, shape="html", **asked).lines)


def article(page: str, seq: int) -> str:
    """Return the part of a page that shows a position, up to the next message."""
    return page.partition(f'id="m{seq}"')[2].partition("<article")[0]


@pytest.fixture
def talk(store: Store) -> str:
    """Give a session that has a little of everything."""
    session = store.create_session(project_root="/home/ann/app", now=NOW).id
    store.append(session, {"role": "system", "content": "Be brief. " * 60}, now=NOW)
    store.append(session, {"role": "user", "content": f"Read **it** with {KEY}"}, now=NOW)
    store.record_usage(session, input=1_000, output=50, cached=900, cost=0.0123, now=NOW)
    store.append(session, call("a", "Read", '{"path": "/home/ann/app/a.py"}'), now=NOW)
    store.append(session, result("a", "x = 1"), now=NOW + MINUTE)
    store.append(session, call("b", "Bash", '{"command": "make"}'), now=NOW + MINUTE)
    store.append(session, {**result("b", "no rule"), "messageStatus": "error"}, now=NOW + MINUTE)
    store.append(session, {"role": "assistant", "content": "First answer."}, now=NOW + 2 * MINUTE)
    store.rewind(session, 6)
    store.append(session, {"role": "assistant", "content": "Second answer."}, now=NOW + 3 * MINUTE)
    return session


def test_a_page_has_what_was_said_when_and_what_it_cost(store: Store, talk: str) -> None:
    """Each result with its call, what failed open, the other answer as a tab, each position."""
    page = page_of(store, talk)
    reader = read_page(page)
    assert reader.elements.count("article") == 6  # four, and two answers at the same place
    assert {"m1", "m2", "m3", "m4", "m5", "m6", "m7"} < {*reader.ids}
    assert "<strong>it</strong>" in article(page, 2)
    assert "1,000 in, 90 % cached" in article(page, 3)
    assert "x = 1" in article(page, 4)
    assert (
        " open"
        in re.findall("<details[^>]*>", article(page, 5))[-1] + page.split('id="m6"')[0][-60:]
    )
    assert "60.0 s" in article(page, 3) or "1 min" in article(page, 3)
    assert page.index("First answer.") < page.index("Second answer.")
    assert "1/2" in page
    assert "$0.0123" in page
    assert "a leads out" not in reader.elements


def test_an_answer_of_a_fork_is_a_tab_where_it_came_in_with_the_session(
    store: Store, tmp_path: Path
) -> None:
    """In the order in which they were made, from whichever of them; a fork made here is none."""
    answers = [tree_message(name, "assistant", f"Answer {name}.") for name in "ABC"]
    answers[1]["replies"] = [tree_message("d", "prompter", "And then?")]
    root = tree_message("root", "prompter", "Why?") | {"replies": answers}
    path = tmp_path / "tree.jsonl"
    path.write_text(json.dumps({"message_tree_id": "t", "prompt": root}) + "\n", "utf-8")
    (whole, *forks) = (each.id for each in import_file(store, path).sessions)
    store.fork(whole, 1, "made here")
    store.append("made here", {"role": "assistant", "content": "Answer D."})
    for number, name in enumerate((whole, *forks), 1):
        page = page_of(store, name)
        assert [f"Answer {each}." in page for each in "ABCD"] == [True] * 3 + [False]
        assert re.findall(r'aria-label="(\d/\d)" checked', page) == [f"{number}/3"]
        assert page.count("<p>And then?</p>") == 1
    assert sorted(find_fork_siblings(store, store.session("made here"))) == [2]
    assert find_fork_siblings(store, store.session(whole))[2][-1].session.id == "made here"


def tree_message(name: str, role: str, text: str) -> dict[str, Any]:
    """Return a message of a tree of the Open Assistant."""
    return {"message_id": name, "role": role, "text": text, "replies": []}


def test_what_a_compaction_hides_can_be_opened(store: Store) -> None:
    """Behind its summary; the positions stay those of the line."""
    store.create_session("c", now=NOW)
    for number in range(6):
        said = {"role": "user", "content": f"question {number} " * 60}
        store.append("c", [said, {"role": "assistant", "content": f"answer {number} " * 60}])
    store.compact("c", Policy(keep_turns=1), lambda _: "It was **all** questions.")
    page = page_of(store, "c")
    assert read_page(page).ids == [f"m{seq}" for seq in range(1, 13)]
    band = page[page.index('<details class="band">') : page.index("</div></details>")]
    assert "<strong>all</strong>" in band
    assert 'id="m10"' in band
    assert 'id="m11"' not in band
    assert "It was" not in page_of(store, "c", only="said")  # nobody said it
    assert "question 3" in page_of(store, "c", only="said")


def test_a_page_ends_at_a_position_or_shows_what_is_sent(store: Store, talk: str) -> None:
    """With a policy each message that it changed says why."""
    assert "Second answer." not in page_of(store, talk, at=6)
    store.append(talk, {"role": "user", "content": "Go on."})
    policy = Policy.named("agent", clear_keep=0, min_saving=0, trigger_tokens=1)
    sent = page_of(store, talk, policy=policy, now=NOW + 9 * MINUTE)
    assert read_page(sent).elements.count("input") == 0
    assert "First answer." not in sent


@pytest.mark.parametrize("shape", ["html", "markdown"])
def test_only_what_was_said_can_be_shown(
    store: Store, talk: str, tmp_path: Path, shape: str
) -> None:
    """Without prompts and tools, and without what a program said for its user."""
    program = "<system-reminder>Do it.</system-reminder>"
    store.append(
        talk, [{"role": "user", "content": each} for each in (program, f"{program} Thanks.")]
    )
    page = "".join(session_lines(store, talk, shape=shape, only="said").lines)
    assert "Second answer." in page
    assert "Thanks." in page
    done = export_session(store, talk, tmp_path / "page", shape=shape, only="said")
    assert done.messages == (4 if shape == "html" else 3)  # with the answer that was left
    for word in ("Be brief", "Bash", "x = 1", "no rule", "Do it."):
        assert word not in page


@pytest.mark.parametrize("shape", ["html", "markdown"])
def test_a_page_can_be_masked(store: Store, talk: str, run: Run, shape: str) -> None:
    """The command tells how many places it masked, as a program is told."""
    done = export_session(store, talk, f"s.{shape}", shape=shape, mask=True)
    page = Path(f"s.{shape}").read_text("utf-8")
    assert "/home/ann" not in page
    assert KEY not in page
    assert "~/a" in page
    assert done.keys >= 1
    assert done.homes >= 1
    if store.database.path:
        told = run("--db", store.database.path, "export", talk, "--as", shape, "--mask", "-o", "t")
        assert f"masked: {done.homes} home folder" in told.out
        assert Path("t").read_text("utf-8") == page


def test_what_is_for_pages_is_refused_elsewhere(store: Store, talk: str) -> None:
    """A file that a program reads is whole."""
    for asked in ({"only": "said"}, {"mask": True}):
        with pytest.raises(InvalidValue, match="are for pages"):
            session_lines(store, talk, shape="openai", **asked)
    with pytest.raises(InvalidValue, match="there is said"):
        session_lines(store, talk, shape="html", only="written")


def test_an_owner_sees_its_own_pages(store: Store) -> None:
    """A scoped face exports, too."""
    ann = store.scoped("ann")
    ann.create_session("mine")
    ann.append("mine", {"role": "user", "content": "Hello."})
    page = "".join(session_lines(ann, "mine", shape="html").lines)
    assert "Hello." in page


@pytest.mark.sqlite_only
def test_a_hostile_session_does_nothing(store: Store) -> None:
    """Its title, folder, messages, tools, summaries and other branches."""
    texts = list_hostile_texts("http://127.0.0.1:9")
    store.create_session("h", title="<script>x</script>" * 3, project_root="/home/<b onclick=x>")
    for number, text in enumerate(texts):
        safe = text.encode("utf-8", "replace").decode().replace("\0", "")
        store.append("h", {"role": "user", "content": safe})
        store.append("h", call(f"c{number}", safe[:200] or "x", '{"a": "<script>"}'))
        store.append("h", result(f"c{number}", safe))
    store.rewind("h", 4)
    store.append("h", {"role": "user", "content": "</main><script>"})
    store.undo_rewind("h")
    store.compact("h", Policy(keep_turns=2), lambda _: "".join(texts[:9]).replace("\0", ""))
    for asked in ({}, {"only": "said"}, {"mask": True}, {"policy": Policy()}):
        reader: PageReader = read_page(page_of(store, "h", **asked))
        assert reader.elements.count("main") == 1
