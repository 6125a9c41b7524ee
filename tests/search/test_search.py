"""Search: what is found, what is not, and what it costs whom."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, Run, needs_transcripts
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.recorded import largest
from store import Policy, Store
from store.database.statements import Statement
from store.errors import InvalidValue, SessionNotFound, StoreError
from store.messages import WORD_PATTERN, join_message_texts, split_cjk
from store.records import Hits
from store.search import documents, hits, index, scope
from store.search import hits as searching
from store.search.terms import parse_terms

NOW = 1_767_225_600_000


def said(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": content, **more}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a message that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": "c1", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def found(hits: Hits) -> list[tuple[str, int]]:
    """Return which sessions and positions were found."""
    return [(hit.session_id, hit.seq) for hit in hits]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store of its own to each test: what is in the index is part of it."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def chats(store: Store) -> Store:
    """Return a store with sessions of two owners."""
    store.create_session("trip", title="Über die Reise", owner="ann", now=NOW)
    store.append(
        "trip",
        [
            said("Where is the Café in Zürich?"),
            call("read_file", path="src/parcel/zonesTable.py", note="第一章\n数据库设计"),
            {"role": "tool", "tool_call_id": "c1", "content": "class RequestQueueFactory: 42"},
            said("我们用SQLite数据库"),
            said([{"type": "text", "text": "the blue"}, {"type": "text", "text": "bird sings"}]),
        ],
        now=NOW,
    )
    store.create_session("other", title="Another one", owner="bob", now=NOW)
    store.append("other", [said("bird and café of bob"), said("nothing")], now=NOW)
    return store


ASKED = {
    "zürich": [("trip", 1)],
    "zurich cafe": [("trip", 1)],
    "CAFÉ where": [("trip", 1)],
    '"the café"': [("trip", 1)],
    '"café the"': [],
    "reise": [("trip", 0)],
    "uber": [("trip", 0)],
    "read_file": [("trip", 2)],
    "src/parcel/zonesTable.py": [("trip", 2)],
    "parcel": [("trip", 2)],
    "onesTab": [("trip", 2)],
    "arcel/zon": [("trip", 2)],
    "parcel onesTab": [("trip", 2)],
    "queuefact": [("trip", 3)],
    "RequestQueueFactory": [("trip", 3)],
    "数据库": [("trip", 4), ("trip", 2)],
    "数据": [("trip", 4), ("trip", 2)],
    "库": [("trip", 4), ("trip", 2)],
    "据": [("trip", 4), ("trip", 2)],
    "章": [("trip", 2)],
    "库设": [("trip", 2)],
    "用SQLite数据": [("trip", 4)],
    "据数": [],
    "bluebird": [],
    "blue bird": [("trip", 5)],
    "42": [("trip", 3)],
    "nowhere": [],
    '"': [],
    "( OR * ^ :": [],
    "NEAR AND": [],
    'wher"e': [],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_is_found(chats: Store, asked: str) -> None:
    """Words, words in a row, names and their parts, pairs of signs; whatever their case is."""
    assert sorted(found(chats.search(asked, owner="ann"))) == sorted(ASKED[asked])


def test_a_hit_tells_where_and_what(chats: Store) -> None:
    """Its place leads to the message; its marks stand around the words."""
    (hit,) = chats.search("zurich")
    stored = chats.message(hit.session_id, hit.seq)
    assert stored.message["content"] == hit.snippet
    assert [hit.snippet[first:last] for first, last in hit.marks] == ["Zürich"]
    assert (hit.role, hit.on_line, hit.at, hit.branch) == ("user", True, NOW, 1)
    assert hit.score > 0


def test_a_snippet_shows_most_of_the_words(store: Store) -> None:
    """Of a long text a line: the one that has most of what was asked for."""
    store.create_session("s")
    store.append("s", said("alpha " + "x " * 500 + "alpha beta\ngamma" + " y" * 500))
    (hit,) = store.search("alpha beta")
    assert hit.snippet[0] == hit.snippet[-1] == "…"
    assert "alpha beta gamma" in hit.snippet
    assert [hit.snippet[first:last] for first, last in hit.marks] == ["alpha", "beta"]


def test_a_part_of_a_name_is_marked_with_the_sign_that_it_begins_with(store: Store) -> None:
    """Also where that sign is the first of the name's part, before any word of it."""
    store.create_session("s")
    store.append("s", said("gone: alpha.beta_gamma"))
    (hit,) = store.search(".beta_ga")
    assert [hit.snippet[first:last] for first, last in hit.marks] == [".beta_ga"]


def test_nothing_of_another_owner(chats: Store) -> None:
    """Whose sessions are asked for decides; a session of others is none."""
    assert found(chats.search("bird", owner="ann")) == [("trip", 5)]
    assert found(chats.search("bird", owner="bob")) == [("other", 1)]
    assert chats.search("bird", owner="nobody") == []
    assert found(chats.scoped("bob").search("cafe")) == [("other", 1)]
    assert chats.scoped("bob").search("zurich") == []
    assert chats.search("bird", session="trip", owner="bob") == []
    assert chats.search("reise", session="trip", owner="bob") == []
    with pytest.raises(SessionNotFound):
        chats.scoped("bob").search("bird", session="trip")


def test_what_is_asked_for_is_narrowed(chats: Store) -> None:
    """By session, roles, tools and moments."""
    assert found(chats.search("bird", session="other")) == [("other", 1)]
    assert found(chats.search("42", roles=["tool"])) == [("trip", 3)]
    assert chats.search("42", roles="user") == []
    assert chats.search("reise", roles=["user"]) == []
    assert found(chats.search("reise", roles=["title"])) == [("trip", 0)]
    assert found(chats.search("zonesTable", tools=["read_file"])) == [("trip", 2)]
    assert found(chats.search("42", tools="read_file")) == [("trip", 3)]
    assert chats.search("42", tools=["shell"]) == []
    assert chats.search("zurich", since=NOW + 1) == []
    assert found(chats.search("zurich", since=NOW, until=NOW)) == [("trip", 1)]
    assert chats.search("zurich", until=NOW - 1) == []


@pytest.mark.parametrize("order", ["best", "newest"])
@pytest.mark.parametrize("ranked", [searching.MOST_RANKED, 5])
def test_pages_hold_each_hit_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, order: str, ranked: int
) -> None:
    """The next page begins behind the last hit, in titles, in words and in names."""
    monkeypatch.setattr(searching, "MOST_RANKED", ranked)
    monkeypatch.setattr(searching, "TEXT_BATCH", 4)
    for number in range(3):
        name = f"s{number}"
        store.create_session(name, title=f"apple {number}")
        store.append(name, [said("apple " * (each + 1) + "tail" * each) for each in range(8)])
        store.append(name, said("greenAppleTree"))
    store.index()
    whole = store.search("apple", order=order)
    pages: list[Any] = []
    while page := store.search("apple", order=order, limit=4, after=pages[-1] if pages else None):
        pages += page
    assert len(whole) == 20
    assert len({*found(store.search("apple", limit=100))}) == 30
    assert found(Hits(pages[:20])) == found(whole)
    assert len({*found(Hits(pages))}) == len(pages) == 30
    assert [hit.role for hit in pages[:3]] == ["title"] * 3
    assert [hit.seq for hit in pages[-3:]] == [9] * 3
    if order == "newest" or ranked == 5:
        expected = [(f"s{number}", seq) for number in (2, 1, 0) for seq in range(8, 0, -1)]
        assert found(Hits(pages[3:-3])) == expected
    else:
        scores = [hit.score for hit in pages[3:]]
        assert scores == sorted(scores, reverse=True)


def test_a_shared_message_is_one_hit(chats: Store) -> None:
    """A fork has it, too; when the session rewinds, the fork alone has it on its line."""
    chats.fork("trip", 4, session_id="fork")
    assert found(chats.search("zurich")) == [("trip", 1)]
    assert found(chats.search("zurich", session="fork")) == [("fork", 1)]
    assert chats.search("sings", session="fork", left=True) == []
    chats.rewind("trip", 3)
    assert found(chats.search("sqlite")) == [("fork", 4)]
    assert chats.search("sings") == []
    (left,) = chats.search("sings", left=True)
    assert (left.session_id, left.seq, left.on_line) == ("trip", 5, False)
    chats.append("trip", said("elsewhere"))
    chats.switch("trip", left.branch)
    assert found(chats.search("sings")) == [("trip", 5)]
    assert found(chats.search("elsewhere", left=True)) == [("trip", 4)]


def test_summaries_are_found(store: Store) -> None:
    """By what they say; they stand for their last position."""
    store.create_session("s")
    store.append("s", [said(f"word {number} " * 40) for number in range(9)])
    assert store.search("hippopotamus") == []
    assert store.compact("s", Policy(), lambda _: "A Hippopotamus came.").outcome == "applied"
    (hit,) = store.search("hippopotamus")
    assert (hit.role, hit.session_id, hit.on_line) == ("summary", "s", True)
    assert store.compactions("s")[0].hidden == (1, hit.seq)
    assert store.search("hippopotamus", roles=["user"]) == []
    store.delete_session("s")
    assert store.search("hippopotamus") == []


# --- The index ------------------------------------------------------------------------------------


def rows(store: Store) -> int:
    """Return how many rows the index has."""
    with store.database.reading() as connection:
        return int(index.COUNT_ENTRIES.value(connection))


@pytest.mark.sqlite_only
def test_an_append_writes_nothing_to_the_index_of_a_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search does, some messages at a time; it says how many it did not look at."""
    monkeypatch.setattr(hits, "BACKLOG_SECONDS", -1)
    monkeypatch.setattr(hits, "LEAST_READ", 0)
    store.create_session("s")
    store.append("s", [said(f"w.{number:04}") for number in range(2 * index.STEP_MESSAGES + 10)])
    assert rows(store) == 0
    first = store.search("0001")
    assert (found(first), first.behind, rows(store)) == (
        [("s", 2)],
        index.STEP_MESSAGES + 10,
        index.STEP_MESSAGES,
    )
    assert store.search(f"{index.STEP_MESSAGES:04}").behind == 10
    last = store.search(f"{2 * index.STEP_MESSAGES:04}")
    assert (found(last), last.behind) == ([("s", 2 * index.STEP_MESSAGES + 1)], 0)
    store.append("s", [said("and more")] * 300)
    assert store.index()[:3] == (True, 2 * index.STEP_MESSAGES + 310, 0)
    assert store.search("more").behind == 0


@pytest.mark.sqlite_only
def test_an_index_with_many_new_entries_is_merged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search looks into all parts of an index; few new entries are not worth a merged one."""
    monkeypatch.setattr(index, "STEP_MESSAGES", 4)
    store.create_session("s")
    for new, parts, last in ((80, 1, 80), (4, 2, 84), (20, 1, 104)):
        store.append("s", [said(f"every w.{number:04}") for number in range(last - new, last)])
        store.index()
        with store.database.reading() as connection:
            counted = scope.cache_statement(documents.get_index_sql(connection).parts)
            assert counted.value(connection) == parts
        assert len(store.search("every", limit=200)) == last
        assert found(store.search(f"w.{last - 1:04}")) == [("s", last)]


@pytest.mark.sqlite_only
def test_a_step_is_bounded_by_what_it_reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long messages are few in it, but there is always one."""
    monkeypatch.setattr(index, "STEP_LENGTH", 1000)
    store.create_session("s")
    store.append("s", [said("long " * 1000)] * 5)
    store.search("x")
    assert rows(store) == 1
    store.search("x")
    assert rows(store) == 2


def test_a_busy_store_is_searched_as_far_as_it_is(store: Store) -> None:
    """Where others write, a search waits for nobody, and finds what is new all the same."""
    store.create_session("s")
    store.append("s", said("first"))
    store.search("first")
    store.append("s", said("second, then first"))
    with store.database.writing() as connection:
        Statement(index.COUNT_ENTRIES._construct).value(connection)
        hits = store.search("first")
        assert (found(hits), hits.behind) == ([("s", 1), ("s", 2)], 0)
    assert found(store.search("second")) == [("s", 2)]


def test_searching_is_switched_off(url: str) -> None:
    """For everybody who has the store; nothing of the index is left."""
    with Store(url, durability="normal") as store, Store(url) as another:
        store.create_session("s")
        store.append("s", said("needle"))
        assert found(store.search("needle")) == [("s", 1)]
        assert store.index(on=False)[:3] == (False, 0, 1)
        assert store.index(on=False).on is False
        for each in (store, another):
            with pytest.raises(StoreError, match="switched off"):
                each.search("needle")
        assert store.index()[:2] == (False, 0)
        assert store.index(on=True)[:3] == (True, 1, 0)
        assert found(another.search("needle")) == [("s", 1)]
        assert store.verify() == []


def test_an_index_is_made_anew(store: Store) -> None:
    """It is what it was."""
    store.create_session("s")
    store.append("s", [said(f"word{number} needle") for number in range(50)])
    before = store.search("needle", order="newest")
    store.index(anew=True)
    assert store.search("needle", order="newest") == before


def test_messages_of_an_erased_ones_row_are_found(store: Store) -> None:
    """What is appended after an erasure has the place of what went, and is found all the same."""
    for name in ("a", "b"):
        store.create_session(name)
        store.append(name, [said(f"{name} word")] * 5)
    assert len(store.search("word")) == 10
    store.delete_session("b")
    assert len(store.search("word")) == 5
    store.create_session("c")
    store.append("c", [said("c other")] * 9)
    assert (len(store.search("other")), len(store.search("word"))) == (9, 5)


def test_what_is_erased_or_redacted_is_found_no_more(store: Store) -> None:
    """At once, in every way of asking."""
    for name in ("s", "gone"):
        store.create_session(name)
        store.append(name, [said("secretWord here"), call("read_file", path="secretWord.py")])
    assert len(store.search("secretWord")) == 4
    assert len(store.search("cretWor")) == 4
    store.delete_session("gone")
    store.redact("s", 1, "asked for")
    store.redact("s", 2, "asked for")
    for asked in ("secretWord", "cretWor", "here"):
        assert store.search(asked, left=True) == store.search(asked, order="newest") == []


@pytest.mark.sqlite_only
def test_a_purge_leaves_no_word(path: Path) -> None:
    """Words of what was erased or redacted are in the index until then, and it is whole after."""
    words = ("hippopotamus", "rhinoceros")

    def held() -> list[bool]:
        with Store(path) as again:
            again.database.empty_log()
        return [word.encode() in path.read_bytes() for word in words]

    with Store(path) as store:
        store.create_session("s")
        store.append("s", [said("a rhinoceros"), said("a giraffe")])
        store.create_session("gone")
        store.append("gone", said("a hippopotamus"))
        assert len(store.search("a")) == 3
        (erased,) = store.delete_session("gone")
        store.redact("s", 1, "asked for")
        assert erased.purged is False
        assert held() == [True, True]
        assert store.purge().done
        assert [each.purged for each in store.erasures()] == [True]
        assert store.search("a", session="s", left=True).behind == 0
        assert found(store.search("giraffe")) == [("s", 2)]
    assert held() == [False, False]


@pytest.mark.sqlite_only
def test_a_store_that_nobody_searches_has_no_index(path: Path) -> None:
    """Its tables are made by the first search, and known to the check of the schema."""
    made = Statement(
        scope.cache_statement("SELECT name FROM sqlite_schema WHERE name LIKE 'search%'")._construct
    )
    with Store(path) as store:
        with store.database.reading() as connection:
            assert made.values(connection) == ["search_rows"]
        store.create_session("s")
        store.append("s", said("word"))
        store.search("word")
        with store.database.reading() as connection:
            assert "search_words" in made.values(connection)
        assert store.verify() == []
        store.backup(path.with_name("copy.db"))
    with Store(path.with_name("copy.db")) as copy:
        assert found(copy.search("word")) == [("s", 1)]


# --- What comes in --------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.text(alphabet=st.characters() | st.sampled_from('"*()^:-+数据库カナ한국\0'), max_size=60))
def test_no_text_is_an_error(shared: Store, asked: str) -> None:
    """Whatever a user types; nothing at all is told as such."""
    if not asked.strip():
        with pytest.raises(InvalidValue, match="the query is empty"):
            shared.search(asked)
        return
    assert isinstance(shared.search(asked), list)
    assert isinstance(shared.search(asked, order="newest"), list)


@settings(max_examples=200)
@given(
    st.lists(
        st.text(
            alphabet=st.characters(
                codec="utf-8", exclude_categories=["Cs", "Cn", "Co"], max_codepoint=0x2FFF
            )
            | st.sampled_from("数据库设计カナかな한국어_./"),
            max_size=30,
        ),
        max_size=4,
    )
)
def test_each_word_finds_its_message(shared: Store, texts: list[str]) -> None:
    """Latin, Greek, Cyrillic, Chinese, Japanese, Korean, mixed: what went in is found."""
    session = shared.create_session().id
    stored = shared.append(session, [said(text) for text in texts])
    shared.index()
    for each, text in zip(stored, texts, strict=True):
        for word in text.split():
            if word.isalpha() and all(map(is_known, word)):
                assert (session, each.seq) in found(shared.search(word, session=session))


def is_known(sign: str) -> bool:
    """Tell a sign that is a letter for every engine."""
    return (
        sign.isascii()
        or "À" <= sign <= "ɏ"
        or "α" <= sign <= "я"
        or sign in "数据库设计カナかな한국어"
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give a store that all examples share."""
    with Store(tmp_path_factory.mktemp("search") / "chat.db", durability="normal") as opened:
        yield opened


@pytest.mark.parametrize(
    "options",
    [
        {"text": 5},
        {"text": ""},
        {"text": " \n"},
        {"roles": "boss"},
        {"roles": ["user", "assistent"]},
        {"order": "worst"},
        {"limit": -1},
        {"limit": 1.5},
        {"limit": 10_000},
        {"after": "x"},
        {"roles": [5]},
        {"tools": ["\ud800"]},
        {"owner": 5},
        {"since": "yesterday"},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(shared: Store, options: dict[str, Any]) -> None:
    """By an error of ours that names it."""
    with pytest.raises(InvalidValue):
        shared.search(**{"text": "x", **options})
    with pytest.raises(SessionNotFound):
        shared.search("x", session="nowhere")


def test_a_role_is_known_once_a_message_has_it(chats: Store) -> None:
    """Any other is refused, with the one that may be meant."""
    with pytest.raises(InvalidValue, match="did you mean 'assistant'"):
        chats.search("bird", roles=["assistent"])
    with pytest.raises(InvalidValue, match="'boss'; roles are user, "):
        chats.search("bird", roles=["boss"])
    chats.append("trip", {"role": "boss", "content": "No birds, please."})
    assert [hit.role for hit in chats.search("birds", roles=["boss"])] == ["boss"]


@needs_transcripts
@pytest.mark.slow
def test_each_word_of_recordings_finds_its_message(tmp_path: Path) -> None:
    """A sample of the words of recorded sessions; the index is smaller than what it is of."""
    recorded, _ = largest(TRANSCRIPTS, 6, of_each_kind=True)
    chance, length = random.Random(1), 0
    with Store(tmp_path / "chat.db", durability="normal") as store:
        for number, each in enumerate(recorded):
            store.create_session(f"s{number}")
            store.append(f"s{number}", each.messages)
            length += sum(len(join_message_texts(message).encode()) for message in each.messages)
        assert store.index().size < 1.5 * length
        for number, each in enumerate(recorded):
            for seq in chance.sample(range(len(each.messages)), min(8, len(each.messages))):
                words = [
                    word
                    for word in WORD_PATTERN.findall(join_message_texts(each.messages[seq]))
                    if word.isascii()
                ]
                for word in chance.sample(words, min(4, len(words))):
                    hits = store.search(word, session=f"s{number}", limit=1000)
                    assert (f"s{number}", seq + 1) in found(hits), word


# --- Texts ----------------------------------------------------------------------------------------


def test_signs_are_kept_as_pairs() -> None:
    """Runs of signs as pairs, and the last alone; what is asked for without it."""
    assert split_cjk("用SQLite数据库。") == " 用 SQLite 数据 据库 库 。"
    assert [
        (each.index_text.split(), each.is_prefix) for each in parse_terms('数据库 库 a数 数a "x y"')
    ] == [
        (["数据", "据库"], False),
        (["库"], True),
        (["a", "数"], True),
        (["数", "a"], False),
        (["x", "y"], False),
    ]


def test_what_a_message_says() -> None:
    """Texts of its parts, names of tools, keys and values of arguments; no data of pictures."""
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    message = {**call("edit", path="a.py", lines=[1, {"to": "二"}]), "content": parts}
    assert join_message_texts(message).split() == [
        "one",
        "edit",
        "path",
        "a.py",
        "lines",
        "1",
        "to",
        "二",
    ]
    odd = {"role": "assistant", "tool_calls": [5, {"function": {"arguments": "{"}}]}
    assert join_message_texts(odd) == "{"


# --- The command ----------------------------------------------------------------------------------


@pytest.fixture
def place(path: Path) -> Path:
    """Give the path of a store with two sessions."""
    with Store(path) as store:
        store.create_session("trip", owner="ann")
        store.append(
            "trip", [said("Where is the blue bird?"), said("A bird", "assistant")], now=NOW
        )
    return path


@pytest.mark.sqlite_only
def test_the_command_finds(run: Run, place: Path) -> None:
    """A line that says where, below it what, with marks; JSON for programs."""
    ran = run("--db", place, "search", "blue", "BIRD", "--messages")
    assert (ran.status, ran.out) == (
        0,
        "trip 1 user 2026-01-01 00:00:00Z\n  Where is the **blue** **bird**?\n",
    )
    told = json.loads(run("--db", place, "search", "bird", "--newest", "--messages", "--json").out)
    assert ([each["seq"] for each in told["hits"]], told["behind"]) == ([2, 1], 0)
    options = ("--session", "tr", "--owner", "ann", "--role", "user", "--limit", 1, "--left")
    moments = ("--since", "2025-12-31T00:00Z", "--until", NOW)
    ran = run("--db", place, "search", "bird", *options, *moments, "--messages", "--json")
    assert [each["seq"] for each in json.loads(ran.out)["hits"]] == [1]
    ran = run("--db", place, "search", "bird", "--tool", "x")
    assert (ran.status, ran.out, ran.err) == (0, "", "nothing has these words\n")
    assert run("--db", place, "search", "bird", "--since", "x").status == 2
    for words, options, problem in (("", (), "empty"), ("bird", ("--role", "usr"), "'user'")):
        refused = run("--db", place, "search", words, *options)
        assert (refused.status, refused.out) == (2, "")
        assert problem in refused.err


@pytest.mark.sqlite_only
def test_the_command_keeps_the_index(run: Run, place: Path) -> None:
    """It takes in what is waiting, is switched off and on, and made anew."""
    assert json.loads(run("--db", place, "index", "--json").out)["messages"] == 2
    assert run("--db", place, "index", "--anew").out.startswith("2 rows in the index, ")
    assert "switched off" in run("--db", place, "index", "--off").out
    ran = run("--db", place, "search", "bird")
    assert (ran.status, "index --on" in ran.err) == (2, True)
    assert run("--db", place, "index", "--on").status == 0
    assert run("--db", place, "search", "bird").status == 0


@pytest.mark.sqlite_only
def test_the_command_searches_all(run: Run, place: Path) -> None:
    """However much is new, and however long ago it was said."""
    with Store(place) as store:
        store.append("trip", [said("a walrus"), *[said("and more " * 99)] * 600])
    told = json.loads(run("--db", place, "search", "walrus", "--messages", "--json").out)
    assert ([each["seq"] for each in told["hits"]], told["behind"]) == ([3], 0)
    with Store(place) as store:
        assert (rows(store), store.search("walrus").behind) == (603, 0)


@pytest.mark.sqlite_only
def test_the_command_leaves_nothing_of_an_import_waiting(run: Run, tmp_path: Path) -> None:
    """What was imported is in the index, unless searching is switched off; so is what comes later."""
    file, place = tmp_path / "chat.jsonl", tmp_path / "chat.db"
    file.write_text("\n".join(json.dumps(said(f"turn {number}")) for number in range(700)))
    assert run("--db", place, "import", file).status == 0
    with Store(place) as store:
        assert rows(store) == 700
        store.index(on=False)
    with file.open("a") as added:
        added.write("\n" + json.dumps(said("and a walrus")))
    assert run("--db", place, "import", file).status == 0
    with Store(place) as store:
        assert rows(store) == 0
        assert store.index(on=True).messages == 701
