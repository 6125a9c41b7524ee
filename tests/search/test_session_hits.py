"""Searches by session: all words anywhere in a session, and searches for any of the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from store import Hit, SessionHit, Store
from store.errors import InvalidValue
from store.search import index

NOW = 1_767_225_600_000


def said(content: str, role: str = "user") -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": content}


def found(hits: list[SessionHit]) -> list[tuple[str, int, int]]:
    """Return the sessions found, the number of their hits, and the position of the best."""
    return [(hit.session.id, hit.hits, hit.best.seq) for hit in hits]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store of its own to each test: what is in the index is part of it."""
    with Store(url, durability="normal") as opened:
        yield opened


@pytest.fixture
def chats(store: Store) -> Store:
    """Return a store with sessions that have the words in one message, in several, in prompts."""
    for name, messages in {
        "one": [said("red apples"), said("a red apple, a red pear"), said("red is an apple")],
        "spread": [said("a red car"), said("nothing"), said("an apple", "assistant")],
        "prompt": [said("You sell red fruit, an apple each.", "system"), said("hello")],
        "half": [said("only red")],
        "late": [said("Be red.", "developer"), said("the apple")],
    }.items():
        store.create_session(name, owner="bob" if name == "half" else "ann", now=NOW)
        store.append(name, messages, now=NOW)
    return store


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_session_has_the_words_anywhere(
    chats: Store, is_indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message before several, what people said before prompts; indexed or not."""
    if is_indexed:
        chats.index()
    else:
        monkeypatch.setattr(index, "STEP_MESSAGES", 0)
    expected = [("one", 2, 2), ("spread", 2, 3), ("prompt", 1, 1), ("late", 2, 2)]
    assert found(chats.search("red apple", by="session")) == expected
    assert found(chats.search("apple red", by="session", limit=2)) == expected[:2]
    assert found(chats.scoped("bob").search("red apple", by="session")) == []
    assert found(chats.scoped("bob").search("red", by="session")) == [("half", 1, 1)]


def test_any_of_the_words(chats: Store) -> None:
    """Those that have all come first; each is found once, page by page as at once."""
    whole = chats.search("red apple", any=True, limit=50)
    assert [(hit.session_id, hit.seq) for hit in whole[:2]] == [("one", 2), ("one", 3)]
    prompts = [hit.role in ("system", "developer") for hit in whole]
    assert prompts == sorted(prompts)
    assert len({(hit.session_id, hit.seq) for hit in whole}) == len(whole) == 9
    paged, after = [], None
    while page := chats.search("red apple", any=True, limit=2, after=after):
        paged += page
        after = page[-1]
    assert paged == whole
    sessions = [hit.session.id for hit in chats.search("red apple", any=True, by="session")]
    assert sessions == ["one", "spread", "half", "late", "prompt"]
    assert chats.search("apple nowhere") == []
    assert len(chats.search("pear nowhere", any=True)) == 1


@pytest.mark.parametrize("ranked", [1_000, 3])
def test_prompts_are_last_on_every_page(
    store: Store, ranked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether hits are ranked or not; in the order of storing they keep their place."""
    monkeypatch.setattr("store.search.hits.MOST_RANKED", ranked)
    store.create_session("s")
    roles = ("user", "system", "developer", "assistant", "system", "user", "user")
    store.append("s", [said(f"word {number}", role) for number, role in enumerate(roles)])
    whole = store.search("word", limit=50)
    assert sorted(hit.seq for hit in whole[:4]) == [1, 4, 6, 7]
    pages = [store.search("word", limit=2, after=whole[end - 1]) for end in range(1, 8)]
    assert pages == [whole[end : end + 2] for end in range(1, 8)]
    assert [hit.seq for hit in store.search("word", order="newest")] == [7, 6, 5, 4, 3, 2, 1]


AGENTS = "# AGENTS.md instructions for /home/me\n\n<INSTRUCTIONS>\nSort the words.\n</INSTRUCTIONS>"
REMINDER = "<system-reminder>The words changed.</system-reminder>"


def test_what_programs_say_for_a_user_is_last(store: Store) -> None:
    """The instructions of Codex, reminders of Claude Code; not what a user says after them."""
    context = "<environment_context>\n<cwd>/home/words</cwd>\n</environment_context>"
    parts = [{"type": "input_text", "text": each} for each in (AGENTS, context)]
    said_in_parts = [{"type": "text", "text": each} for each in (REMINDER, "Count the words.")]
    store.create_session("codex")
    store.append("codex", [{"role": "user", "content": parts}, said(context), said("my words")])
    store.create_session("claude", title="words in a title")
    caveat = said("Caveat: The messages below are words of a command.")
    store.append("claude", [{"role": "user", "content": said_in_parts}, said(REMINDER), caveat])
    store.create_session("empty")
    store.append("empty", [said(f"{AGENTS}\n")])
    for is_indexed in (False, True):
        whole = store.search("words", limit=50)
        assert [(hit.session_id, hit.seq) for hit in whole[:3]] == [
            ("claude", 0),
            ("claude", 1),
            ("codex", 3),
        ]
        assert {hit.role for hit in whole[1:]} == {"user"}
        assert len(whole) == 8
        pages = [store.search("words", limit=2, after=whole[end - 1]) for end in range(1, 8)]
        assert pages == [whole[end : end + 2] for end in range(1, 8)], is_indexed
        best = [(each.session.id, each.best.seq) for each in store.search("words", by="session")]
        assert best == [("claude", 0), ("codex", 3), ("empty", 1)]
        (rarest, *_) = store.search("words nowhere", order="rarest")
        assert (rarest.session_id, rarest.seq) in (("codex", 3), ("claude", 1))
        store.index()


def test_a_title_finds_a_session(chats: Store) -> None:
    """It is the best hit, and one of its hits."""
    chats.rename_session("half", "Apple of the red tree")
    (first, *_) = chats.search("red apple", by="session")
    assert (first.session.id, first.hits, first.best.role) == ("half", 1, "title")
    assert first.session == chats.session("half")


def test_a_fork_has_the_words_of_its_past(store: Store) -> None:
    """It is found by what it said itself and the past it continues; not by the past alone."""
    store.create_session("first")
    store.append("first", [said("a red car"), said("a pear")])
    store.fork("first", 1, "second")
    store.append("second", said("an apple"))
    store.index()
    assert [hit.session.id for hit in store.search("red apple", by="session")] == ["second"]
    assert [hit.session.id for hit in store.search("red", by="session")] == ["first"]
    store.rewind("second", to=1)
    assert store.search("red apple", by="session") == []
    (left,) = store.search("red apple", by="session", left=True)
    assert (left.session.id, left.best.on_line) == ("second", False)


def test_only_messages_that_pass_the_filters_count(chats: Store) -> None:
    """Roles, times and one session; a search by session has no pages."""
    assert found(chats.search("red apple", by="session", session="spread")) == [("spread", 2, 3)]
    assert found(chats.search("apple", by="session", roles=["assistant"])) == [("spread", 1, 3)]
    assert chats.search("red apple", by="session", until=NOW - 1) == []
    (hit,) = chats.search("pear", by="session")
    with pytest.raises(InvalidValue, match="limit"):
        chats.search("red", by="session", after=hit.best)
    with pytest.raises(InvalidValue, match="session"):
        chats.search("red", by="sessions")  # type: ignore[call-overload]


def test_only_messages_of_the_tools_count(store: Store) -> None:
    """A word that other messages of the session have is no hit among calls and results."""
    store.create_session("s")
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "Bash", "arguments": '{"a": "pear"}'},
    }
    store.append(
        "s", [said("a pear"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    )
    assert found(store.search("pear", by="session")) == [("s", 2, 1)]
    assert found(store.search("pear", by="session", tools=["Bash"])) == [("s", 1, 2)]


def test_an_older_call_of_a_tool_is_found_behind_what_was_said(store: Store) -> None:
    """Newest first, where the first message with the word is no call."""
    store.create_session("s")
    function = {"name": "Bash", "arguments": '{"command": "eat pear"}'}
    call = {"id": "c", "type": "function", "function": function}
    store.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append("s", said("a pear"))
    found_calls = store.search("pear", by="session", tools=["Bash"], order="newest")
    assert found(found_calls) == [("s", 1, 1)]


def test_a_shared_past_counts_for_the_session_that_holds_it(store: Store) -> None:
    """What a fork adds counts for the fork; what a rewind has left counts only with ``left``."""
    store.create_session("root")
    store.append("root", [said(f"a pear {number}") for number in range(4)])
    store.fork("root", at=2, session_id="fork")
    store.append("fork", [said("a pear"), said("a pear")])
    store.rewind("root", to=1)
    store.append("root", said("a pear again"))
    store.index()
    counts = {hit.session.id: hit.hits for hit in store.search("pear", by="session")}
    assert counts == {"root": 2, "fork": 3}
    counts = {hit.session.id: hit.hits for hit in store.search("pear", by="session", left=True)}
    assert sum(counts.values()) == 7


def test_hits_are_counted_wherever_messages_lie(store: Store) -> None:
    """In a row, between those of another session, around one that was redacted."""
    for name in ("row", "one", "two", "hole"):
        store.create_session(name)
    store.append("row", [said(f"a pear {number}") for number in range(4)])
    for name in ("one", "two", "one", "two"):
        store.append(name, [said("a pear of read_config"), said("nothing")])
    store.append("hole", [said(f"a pear of read_config {number}") for number in range(5)])
    store.index()
    store.redact("hole", 3, "a secret")
    for words, expected in {
        "pear": {"row": 4, "one": 2, "two": 2, "hole": 4},
        "onfig": {"one": 2, "two": 2, "hole": 4},
        "pear onfig": {"one": 2, "two": 2, "hole": 4},
    }.items():
        assert {
            each.session.id: each.hits for each in store.search(words, by="session")
        } == expected


@pytest.mark.sqlite_only
def test_many_messages_found_by_names_are_counted_by_the_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs of three letters decide; the best hit has the part itself."""
    store.create_session("s")
    store.append("s", [said("a read_config"), said("of con_onf_nfi_fig"), said("a read_config")])
    counts = []
    for most in (3, 2):
        monkeypatch.setattr("store.search.hits.MOST_READ_NAMES", most)
        counts.append(found(store.search("onfig", by="session")))
    assert counts == [[("s", 2, 3)], [("s", 3, 3)]]


WORDS = ("red", "apple", "pear", "read_config", "nothing")
QUESTIONS = ("red apple", "apple pear red", "pear onfig", "config red", "onfig apple nowhere")
LIMITS: dict[str, dict[str, Any]] = {
    "usual": {},
    "few at a time": {"session_hits.FIRST_SPREAD": 1},
    "no word is rare": {"index_queries.RARE_TERM": 1},
    "few trees listed": {"session_hits.MOST_LISTED_TREES": 1},
    "few numbers at a time": {
        "index_ranges.NEWEST_RANGES": (2, 3),
        "index_ranges.FIRST_NUMBERS": 2,
    },
    "a small owner": {"index_ranges.WIDE_SHARE": 1},
    "frequent words": {"index_queries.MOST_PLACED": 3, "hits.MOST_RANKED": 2},
    "half not indexed": {"index.STEP_MESSAGES": 0},
}
"""Constants of the search, by what they make happen in a small store."""


class Said(NamedTuple):
    """A message of a session, and whether it is in the index."""

    session: str
    seq: int
    role: str
    words: tuple[str, ...]
    is_indexed: bool

    def has(self, word: str) -> bool:
        """Tell whether the message has a word, or a part of a name."""
        is_part = word in ("config", "onfig") and "read_config" in self.words
        return is_part or word in self.words


def fill_sessions(store: Store, chance: Random) -> list[Said]:
    """Append messages to some sessions in turn; return them in that order."""
    for number in range(9):
        store.create_session(f"s{number}", owner="ann" if number % 3 else "bob")
    heads: Counter[str] = Counter()
    stored = []
    for number in range(40):
        if number == 20:
            store.index()
        session, words = (
            f"s{chance.randrange(9)}",
            (*chance.sample(WORDS, chance.choice((1, 1, 2))),),
        )
        role = chance.choice(("user", "assistant", "user", "system"))
        store.append(session, said(" ".join(words), role), now=NOW + number)
        heads[session] += 1
        stored.append(Said(session, heads[session], role, words, number < 20))
    return stored


def read_sessions(
    stored: list[Said], words: list[str], whole: list[Hit]
) -> list[tuple[str, int, int]]:
    """Return what a search has to find, from all messages, and the order of those with all words."""
    rarest = min(
        words,
        key=lambda word: sum(
            each.is_indexed and word != "onfig" and each.has(word) for each in stored
        ),
    )
    order: dict[str, int] = {}
    late: dict[str, int] = {}
    prompts: dict[str, int] = {}
    for hit in whole:
        (prompts if hit.role == "system" else order).setdefault(hit.session_id, hit.seq)
    for start in [each for each in reversed(stored) if each.has(rarest)]:
        own = [each for each in stored if each.session == start.session]
        for found, there in ((order, [each for each in own if each.role != "system"]), (late, own)):
            if all(any(each.has(word) for each in there) for word in words):
                best = max(there, key=lambda each: (sum(map(each.has, words)), each.seq))
                found.setdefault(start.session, best.seq)
                break
    counts = Counter(hit.session_id for hit in whole)
    for session in {*order, *late} - {*counts}:
        own = [each for each in stored if each.session == session]
        counts[session] = sum(any(map(each.has, words)) for each in own)
    best_of = {**order, **{each: prompts[each] for each in prompts if each not in order}}
    best_of |= {each: late[each] for each in late if each not in best_of}
    return [(session, counts[session], seq) for session, seq in best_of.items()]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", LIMITS)
def test_a_search_finds_what_reading_all_messages_does(
    store: Store, limits: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, their order, their best hits and the numbers of hits; also of one owner."""
    stored = fill_sessions(store, Random(seed))
    if limits != "half not indexed" or not store.database.path:
        store.index()
        stored = [each._replace(is_indexed=True) for each in stored]
    for name, value in LIMITS[limits].items():
        monkeypatch.setattr(f"store.search.{name}", value)
    for owner in (None, "ann"):
        scope = store if owner is None else store.scoped(owner)
        seen = [each for each in stored if owner is None or int(each.session[1:]) % 3]
        for question in QUESTIONS:
            whole = [*scope.search(question, limit=100)]
            expected = read_sessions(seen, question.split(), whole)
            assert found(scope.search(question, by="session", limit=100)) == expected
            assert found(scope.search(question, by="session", limit=2)) == expected[:2]
