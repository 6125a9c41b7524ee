"""Answers that are streamed: kept as they come, a message in the end, a draft where they break off."""

from __future__ import annotations

import mmap
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from sqlalchemy import func, select

from store import Conflict, Draft, DraftNotFound, Policy, Store, Streaming
from store.database.schema import METADATA
from store.errors import InvalidMessage, InvalidValue, SessionNotFound, StoreBusy
from store.face import streaming
from store.history import drafts

ANSWER = {"role": "assistant"}
NEVER = {"every_bytes": 2**40, "every_ms": 2**40}
"""The pace of a stream that keeps nothing by itself."""


class Broken(Exception):
    """What makes a stream break off."""


@pytest.fixture
def chat(url: str) -> Iterator[Store]:
    """A store with a session in which something was asked."""
    with Store(url, durability="normal") as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "why?"})
        yield store


def stream(
    store: Store, text: str, then: Callable[[Streaming], Any], /, **options: Any
) -> Streaming:
    """Stream an answer, and do something before it ends."""
    with store.streaming("s", ANSWER, **NEVER, **options) as answer:
        answer.write(text)
        then(answer)
    return answer


def breaks(*_: object) -> None:
    """Break off."""
    raise Broken


def broken(store: Store, *texts: str, session: str = "s", **message: Any) -> Draft:
    """Let an answer break off behind some texts; return its draft."""
    with suppress(Broken), store.streaming(session, ANSWER | message) as answer:
        for text in texts:
            answer.write(text)
        raise Broken
    (draft,) = (each for each in store.drafts(session) if each.draft == answer.draft)
    return draft


def said(store: Store) -> list[Any]:
    """What the messages of the session say."""
    return [each.message.get("content") for each in store.messages("s")]


def pieces(store: Store) -> int:
    """How many pieces of drafts there are."""
    with store.database.reading() as connection:
        table = METADATA.tables["draft_pieces"]
        return connection.scalar(select(func.count()).select_from(table)) or 0


# --- as it goes -----------------------------------------------------------------------------------


def test_an_answer_is_a_message_in_the_end(chat: Store) -> None:
    """Equal to what was given and written, facts and all; nothing is left beside it."""
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    before = chat.session("s").revision
    with chat.streaming("s", {"role": "assistant", "id": "m", "content": "So: "}) as answer:
        answer.write("be")
        answer.write("cause", key="content")
        answer.write("hm", key="reasoning")
        answer.update({"tool_calls": [call]})
        assert answer.message["content"] == "So: because"
        assert said(chat) == ["why?"]
        assert chat.session("s").revision == before
    (_, stored) = chat.messages("s")
    whole = {"content": "So: because", "reasoning": "hm", "tool_calls": [call]}
    assert stored.message == {"role": "assistant", "id": "m"} | whole
    assert answer.stored == stored
    assert chat.drafts() == []
    assert pieces(chat) == 0
    assert chat.append("s", stored.message) == [stored]
    assert chat.verify() == []


def test_nothing_is_a_message_too(chat: Store) -> None:
    """Where the model had nothing to say, the message says what it began with."""
    with chat.streaming("s", ANSWER):
        pass
    assert chat.messages("s")[-1].message == ANSWER


@pytest.mark.parametrize(("pace", "kept"), [(4, 4), (5, 5), (0, 6)])
def test_what_has_become_much_is_kept(chat: Store, pace: int, kept: int) -> None:
    """By bytes: as soon as there are so many, at 0 with each text; another reader sees it."""
    with chat.streaming("s", ANSWER, every_bytes=pace, every_ms=10**9) as answer:
        for letter in "abcdef":
            answer.write(letter)
        (draft,) = chat.drafts("s")
        assert draft.message == {**ANSWER, "content": "abcdef"[:kept]}
        assert (draft.session_id, draft.branch, draft.head) == ("s", 1, 1)
    assert said(chat) == ["why?", "abcdef"]


def test_bytes_are_those_of_utf_8(chat: Store) -> None:
    """Two Chinese characters are six of them."""
    with chat.streaming("s", ANSWER, every_bytes=6, every_ms=10**9) as answer:
        answer.write("因")
        assert pieces(chat) == 0
        answer.write("为")
        assert pieces(chat) == 1


def test_what_has_waited_is_kept(chat: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """By time: with the first text so long after the last time."""
    now = [100.0]
    monkeypatch.setattr(streaming.time, "monotonic", lambda: now[0])
    with chat.streaming("s", ANSWER, every_bytes=10**9, every_ms=250) as answer:
        answer.write("a")
        now[0] += 0.2
        answer.write("b")
        assert pieces(chat) == 0
        now[0] += 0.1
        answer.write("c")
        assert chat.drafts("s")[0].message["content"] == "abc"
        answer.write("d")
        assert pieces(chat) == 1


def test_a_step_writes_what_is_new(chat: Store) -> None:
    """However much there is: a piece is as long as what came, and the message is not written anew."""
    with chat.streaming("s", ANSWER, **NEVER) as answer:
        for text in ("x" * 100_000, "y", "z"):
            answer.write(text)
            answer.keep()
        with chat.database.reading() as connection:
            text = METADATA.tables["draft_pieces"].c.text
            found = connection.scalars(select(text).order_by(func.length(text))).all()
            message = connection.scalar(select(METADATA.tables["drafts"].c.message))
    assert found[:2] == ['"y"', '"z"']
    assert message == '{"role":"assistant"}'


@pytest.mark.parametrize("text", ["\0", "\ud83d", "", 'a"b\\', "字🎈\u2028"])
def test_any_text_is_kept(chat: Store, text: str) -> None:
    """Half a character, too: the other half may come with the next text."""
    draft = broken(chat, text, "x", text, "y")
    assert draft.message["content"] == f"{text}x{text}y"


def test_what_was_kept_is_kept_again(chat: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows whether a step was done, the next one does it anew: nothing comes twice."""
    write = chat._write

    def write_and_fail(call: Any) -> None:
        write(call)
        raise StoreBusy("nobody knows")

    with chat.streaming("s", ANSWER, **NEVER) as answer:
        answer.write("a")
        monkeypatch.setattr(chat, "_write", write_and_fail)
        answer.write("r", key="reasoning")
        with pytest.raises(StoreBusy):
            answer.keep()
        monkeypatch.undo()
        answer.write("s", key="reasoning")
        answer.write("b")
        answer.keep()
        (draft,) = chat.drafts("s")
        assert draft.message == {**ANSWER, "content": "ab", "reasoning": "rs"}


# --- where it breaks off --------------------------------------------------------------------------


def test_an_exception_keeps_the_draft(chat: Store) -> None:
    """With what came last; it goes on to who raised it."""
    with pytest.raises(Broken):
        stream(chat, "half", breaks)
    (draft,) = chat.drafts("s")
    assert draft.message == {**ANSWER, "content": "half"}
    assert said(chat) == ["why?"]
    assert chat.view("s").messages == [{"role": "user", "content": "why?"}]


def test_an_answer_to_what_is_not_the_end_any_more(chat: Store) -> None:
    """Conflict, and the draft stays; so it does after a rewind to the same position."""
    for move in (
        lambda _: chat.append("s", {"role": "user", "content": "and?"}),
        lambda _: chat.rewind("s", 1),
    ):
        with pytest.raises(Conflict):
            stream(chat, "half", move)
    assert [each.message["content"] for each in chat.drafts("s")] == ["half", "half"]
    assert said(chat) == ["why?"]
    assert chat.verify() == []


def test_a_revision_may_be_expected(chat: Store) -> None:
    """At the beginning, and at the end too: then nothing at all may have changed."""
    with pytest.raises(Conflict), chat.streaming("s", ANSWER, expected="another"):
        raise AssertionError
    assert chat.drafts() == []
    known = chat.session("s").revision
    with pytest.raises(Conflict):
        stream(chat, "x", lambda _: chat.rename_session("s", "other"), expected=known)
    stream(chat, "y", str, expected=chat.session("s").revision)
    assert said(chat) == ["why?", "y"]
    assert [each.message["content"] for each in chat.drafts()] == ["x"]


def test_two_answers_to_one_question(chat: Store) -> None:
    """Who ends first has answered; the other one is a draft."""
    late, soon = (ExitStack() for _ in range(2))
    for stack, text in ((late, "ab"), (soon, "AB")):
        stack.enter_context(chat.streaming("s", ANSWER)).write(text)
    soon.close()
    with pytest.raises(Conflict):
        late.close()
    assert said(chat) == ["why?", "AB"]
    assert [each.message["content"] for each in chat.drafts("s")] == ["ab"]


def test_a_draft_that_is_gone_ends_its_stream(chat: Store) -> None:
    """Discarded by somebody, or erased with its session: nothing of it comes back."""

    def erase(answer: Streaming) -> None:
        answer.keep()
        chat.delete_session("s")
        with pytest.raises(DraftNotFound):
            chat.finish_draft(answer.draft)

    with pytest.raises(DraftNotFound):
        stream(chat, "x", lambda answer: chat.discard_draft(answer.draft, force=True))
    with pytest.raises(SessionNotFound):
        stream(chat, "x", erase)
    assert chat.drafts() == []
    assert pieces(chat) == 0
    assert chat.verify() == []


def test_another_message_of_the_same_id(chat: Store) -> None:
    """Is refused as by any append, and the draft stays."""
    chat.append("s", {"role": "assistant", "content": "x", "id": "m"})
    with pytest.raises(InvalidMessage), chat.streaming("s", {**ANSWER, "id": "m"}) as answer:
        answer.write("y")
    assert [each.message["content"] for each in chat.drafts("s")] == ["y"]


WRONG: list[tuple[Callable[[Any], None], type[Exception]]] = [
    (lambda answer: answer.write(5), InvalidValue),
    (lambda answer: answer.write("x", key=None), InvalidValue),
    (lambda answer: answer.write("x", key="\ud800"), InvalidValue),
    (lambda answer: answer.write("x", key="a\0b"), InvalidValue),
    (lambda answer: answer.update(5), InvalidValue),
    (lambda answer: answer.write("x", key="parts"), InvalidValue),
    (lambda answer: answer.update({"content": "other"}), InvalidValue),
    (lambda answer: answer.update({"role": None}), InvalidMessage),
    (lambda answer: answer.update({"x": {1}}), InvalidMessage),
]


@pytest.mark.parametrize(("wrong", "error"), WRONG)
def test_what_cannot_be_written(
    chat: Store, wrong: Callable[[Any], None], error: type[Exception]
) -> None:
    """Is refused at once, and what came before stays as it is."""
    with chat.streaming("s", {**ANSWER, "parts": []}) as answer:
        answer.write("x")
        with pytest.raises(error):
            wrong(answer)
        answer.write("y")
    assert chat.messages("s")[-1].message == {**ANSWER, "parts": [], "content": "xy"}


def test_an_answer_grows_inside_of_its_stream(chat: Store) -> None:
    """What came before or after would be kept by nobody."""
    answer = chat.streaming("s", ANSWER)
    for add in (lambda: answer.write("x"), lambda: answer.update({"a": 1}), answer.keep):
        with pytest.raises(InvalidValue, match="inside of the `with`"):
            add()
    with answer:
        answer.write("yes")
    with pytest.raises(InvalidValue, match="inside of the `with`"):
        answer.write(" and no")
    with suppress(Broken), chat.streaming("s", ANSWER) as broken_off:
        raise Broken
    with pytest.raises(InvalidValue, match="inside of the `with`"):
        broken_off.write("x")
    assert chat.messages("s")[-1].message["content"] == "yes"


@pytest.mark.parametrize("pace", [-1, 1.5, None, True, 2**63])
@pytest.mark.parametrize("name", ["every_bytes", "every_ms"])
def test_a_pace_is_a_number(chat: Store, name: str, pace: Any) -> None:
    """From 0."""
    with pytest.raises(InvalidValue, match=name):
        chat.streaming("s", ANSWER, **{name: pace})


def test_what_cannot_begin(chat: Store) -> None:
    """No session, no message: nothing is there then."""
    for session, message, error in (
        ("none", ANSWER, SessionNotFound),
        ("s", {"content": "x"}, InvalidMessage),
        ("s", [ANSWER], InvalidMessage),
    ):
        with pytest.raises(error), chat.streaming(session, message):  # type: ignore[arg-type]
            raise AssertionError
    assert chat.drafts() == []


# --- what is done with drafts ---------------------------------------------------------------------


def test_a_draft_is_finished(chat: Store) -> None:
    """It becomes the message at the head, wherever that is by now, as it came."""
    draft = broken(chat, "half ", "an answer", id="m")
    chat.append("s", {"role": "user", "content": "go on"})
    stored = chat.finish_draft(draft)
    assert stored == chat.messages("s")[-1]
    assert (stored.seq, stored.message) == (3, {**ANSWER, "id": "m", "content": "half an answer"})
    assert chat.drafts() == []
    assert pieces(chat) == 0
    for again in (chat.finish_draft, chat.discard_draft):
        with pytest.raises(DraftNotFound):
            again(draft.draft)


def test_a_draft_is_finished_with_a_word(chat: Store) -> None:
    """What the message is given says that it is not whole; a revision may be expected."""
    draft = broken(chat, "half")
    with pytest.raises(Conflict):
        chat.finish_draft(draft, expected="another")
    known = chat.session("s").revision
    stored = chat.finish_draft(draft.draft, update={"messageStatus": "broken"}, expected=known)
    assert stored.message == {**ANSWER, "content": "half", "messageStatus": "broken"}
    draft = broken(chat, "more")
    with pytest.raises(InvalidMessage):
        chat.finish_draft(draft, update={"role": 5})
    assert chat.drafts("s") == [draft]


CALL = {"type": "function_call", "call_id": "c", "name": "Read", "arguments": "{}"}
PARTS = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b", "signature": "c"}]


@pytest.mark.parametrize("broke_off", [False, True])
@pytest.mark.parametrize(
    ("named", "began", "update", "key"),
    [
        ("anthropic", ANSWER, {"content": PARTS}, None),
        ("anthropic", ANSWER, {}, "content"),
        ("gemini", {"role": "model"}, {"parts": [{"text": "so"}]}, None),
        ("responses", {"type": "function_call", "call_id": "c"}, CALL, None),
        ("responses", {"type": "reasoning", "id": "r"}, {"summary": []}, "encrypted_content"),
    ],
)
def test_an_answer_may_be_of_any_format(
    chat: Store, named: str, began: Any, update: Any, key: str | None, broke_off: bool
) -> None:
    """It is one of that format when it has ended, also where it broke off before."""
    said = {**began, **update, **({key: "because"} if key else {})}
    if broke_off:
        with suppress(Broken), chat.streaming("s", began, format=named):
            raise Broken
        (draft,) = chat.drafts("s")
        assert draft.format == named
        assert chat.view("s", Policy(show_drafts=True)).messages
        chat.finish_draft(draft, update=said)
    else:
        with chat.streaming("s", began, format=named) as answer:
            answer.update(update)
            if key:
                answer.write("because", key)
    (stored,) = chat.messages("s", start=2)
    assert stored.message == said
    assert wire_format(chat) == named


def wire_format(store: Store) -> Any:
    """As what the second message came."""
    return store._database.read(lambda connection: connection.execute(WIRE).scalar_one())


WIRE = select(METADATA.tables["messages"].c.wire_format).order_by("seq").offset(1)


def test_an_answer_of_another_format_stays_a_draft(chat: Store) -> None:
    """What came is not lost."""
    for name in ("nothing", "", []):
        with pytest.raises(InvalidValue), chat.streaming("s", ANSWER, format=name):
            pass
    assert chat.drafts("s") == []
    with pytest.raises(InvalidMessage), chat.streaming("s", ANSWER, format="gemini") as answer:
        answer.write("because")
    (draft,) = chat.drafts("s")
    assert draft.message == {**ANSWER, "content": "because"}
    with pytest.raises(InvalidMessage):
        chat.finish_draft(draft)
    with pytest.raises(InvalidValue, match="no format is named ''"):
        chat.finish_draft(draft, format="")
    assert chat.finish_draft(draft, format="openai").seq == 2


def test_a_draft_without_a_format_is_told_by_its_shape(chat: Store) -> None:
    """In the end, when all of it is there."""
    with suppress(Broken), chat.streaming("s", {"role": "assistant"}) as answer:
        answer.update({"content": PARTS})
        raise Broken
    (draft,) = chat.drafts("s")
    assert draft.format is None
    assert chat.finish_draft(draft).message["content"] == PARTS
    assert wire_format(chat) == "anthropic"


def test_a_draft_is_discarded(chat: Store) -> None:
    """Nothing of it is left; what it held is told once more."""
    draft = broken(chat, "half")
    assert chat.discard_draft(draft) == draft
    assert chat.drafts() == []
    assert pieces(chat) == 0
    assert said(chat) == ["why?"]


def test_a_draft_is_of_its_own_session(chat: Store) -> None:
    """Nothing of it is kept, and it does not end, in another one."""
    chat.create_session("t")
    draft = broken(chat, "half").draft
    with chat.database.writing() as connection:
        with pytest.raises(DraftNotFound):
            drafts.save_pieces(connection, "t", draft, 1, [], None, now=1_800_000_000_000)
        with pytest.raises(DraftNotFound):
            drafts.append_draft(connection, "t", draft, ANSWER, now=1_800_000_000_000)


def test_what_is_no_update_finishes_no_draft(chat: Store) -> None:
    """The draft stays."""
    draft = broken(chat, "half")
    with pytest.raises(InvalidValue, match="keys and values, not 5"):
        chat.finish_draft(draft, update=5)  # type: ignore[arg-type]
    assert chat.drafts() == [draft]


@pytest.mark.parametrize("wrong", ["", "x", "f" * 32, "0" * 32, "0" * 33, None, 5])
def test_what_is_no_draft(chat: Store, wrong: Any) -> None:
    """Whatever it looks like."""
    for ask in (chat.finish_draft, chat.discard_draft):
        with pytest.raises(DraftNotFound):
            ask(wrong)


def test_drafts_are_listed(chat: Store) -> None:
    """Of a session, an owner or all, the one to which nothing was added for longest first."""
    chat.create_session("t")
    one, two, three = (broken(chat, each, session=each) for each in "sts")
    listed = sorted([one, two, three], key=lambda each: (each.at, each.draft))
    of_ann = [each for each in listed if each != two]
    assert chat.drafts("s") == of_ann
    assert chat.drafts("t") == [two]
    assert chat.drafts() == listed
    assert chat.drafts(owner="ann") == of_ann
    assert chat.drafts(owner="bob") == []
    assert chat.drafts("s", owner="ann") == of_ann
    with pytest.raises(SessionNotFound):
        chat.drafts("t", owner="ann")
    with pytest.raises(SessionNotFound):
        chat.drafts("none")
    assert chat.drafts("t", before=two.at) == []
    assert chat.drafts("t", before=two.at + 1) == [two]


def test_an_owner_streams(chat: Store) -> None:
    """All of it, for the owner's sessions."""
    mine = chat.scoped("ann")
    with mine.streaming("s", ANSWER) as answer:
        answer.write("x")
        assert [each.draft for each in mine.drafts()] == [answer.draft]
        assert chat.scoped("bob").drafts() == []
    draft = broken(chat, "y")
    assert mine.finish_draft(draft).seq == 3
    assert mine.discard_draft(broken(chat, "z")).message["content"] == "z"
    with mine.streaming("s", ANSWER, **NEVER) as answer:
        answer.write("!")
    assert said(chat) == ["why?", "x", "y", "!"]


def test_a_fork_takes_no_draft(chat: Store) -> None:
    """Nor does a rewind touch one; what is redacted is a message."""
    draft = broken(chat, "half")
    assert chat.drafts(chat.fork("s").id) == []
    chat.rewind("s", 0)
    chat.undo_rewind("s")
    chat.redact("s", 1, "asked for")
    assert chat.drafts("s") == [draft]


# --- beside others --------------------------------------------------------------------------------


def test_other_writers_go_on(chat: Store, url: str) -> None:
    """A stream holds nothing while it waits for its model."""
    with Store(url, timeout=60) as other, chat.streaming("s", ANSWER) as answer:
        answer.write("a")
        answer.keep()
        other.create_session("t")
        for number in range(20):
            other.append("t", {"role": "user", "content": number})
            answer.write("b")
    assert said(chat) == ["why?", "a" + "b" * 20]


def test_streams_of_threads(chat: Store) -> None:
    """Of several sessions at once, each kept at each text."""

    def stream(name: str) -> None:
        chat.create_session(name)
        with chat.streaming(name, ANSWER, every_bytes=0) as answer:
            for number in range(30):
                answer.write(f"{name}{number} ")

    threads = [threading.Thread(target=stream, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for name in "abcd":
        (stored,) = chat.messages(name)
        assert stored.message["content"] == "".join(f"{name}{n} " for n in range(30))
    assert chat.drafts() == []


# --- kills ----------------------------------------------------------------------------------------

TEXT = "".join(f"{number:05} " for number in range(50))
EVERY = 64


def answers(url: str, progress: mmap.mmap, seed: int) -> None:
    """Stream answers one after the other, and tell how much of each was written."""
    chance = random.Random(seed)
    with Store(url, durability="normal") as store:
        for number in range(10**9):
            pace = {"every_bytes": EVERY, "every_ms": 2**40}
            with store.streaming("s", {**ANSWER, "id": f"m{number}"}, **pace) as answer:
                at = 0
                while at < len(TEXT):
                    to = at + chance.randrange(1, 20)
                    answer.write(TEXT[at:to])
                    at = to
                    progress[:16] = struct.pack("qq", number, min(at, len(TEXT)))


def killed(url: str, fork: Callable[..., Any], seed: int) -> None:
    """Kill a stream at a random point, and look at what there is."""
    progress = mmap.mmap(-1, 16)
    progress[:16] = struct.pack("qq", -1, 0)
    with Store(url) as store:
        before = store.session("s").head
        child = fork(answers, url, progress, seed)
        while struct.unpack("qq", progress[:16])[0] < 0:
            time.sleep(0.001)
        time.sleep(random.Random(seed).random() * 0.05)
        child.end(9)
        number, written = struct.unpack("qq", progress[:16])
        whole = store.messages("s", before + 1)
        assert {each.message["content"] for each in whole} <= {TEXT}
        drafts = store.drafts("s")
        known = {each.message["id"] for each in whole}
        for draft in drafts:
            assert TEXT.startswith(draft.message.get("content", ""))
            assert draft.message["id"] not in known
        lost = written - sum(
            len(each.message.get("content", ""))
            for each in [*whole, *drafts]
            if each.message["id"] == f"m{number}"
        )
        assert lost < EVERY, (number, written, lost)
        assert len(drafts) <= 1
        for draft in drafts:
            store.finish_draft(draft, force=True)  # on a server its lease may not have ended yet
        store.rewind("s", 1)


@pytest.mark.parametrize("points", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_a_kill_loses_no_more_than_was_said(
    chat: Store, url: str, fork: Callable[..., Any], points: int
) -> None:
    """At random points of a stream: less than `every_bytes` of what was written is lost, what is
    raw is whole, and the store is sound.
    """
    chat.close()
    for seed in range(points):
        killed(url, fork, seed)
    with Store(url) as store:
        assert store.verify() == []
