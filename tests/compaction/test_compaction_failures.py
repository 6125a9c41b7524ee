"""What happens when no summary comes.

Nothing is lost, nothing escapes, every attempt is a record.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from store import Policy, Store
from store.database.schema import compaction_records
from store.errors import CompactionError, SummaryGenerationError, SummaryTimedOut
from store.summaries import TIMED_OUT_NOTICE, Summary, SummaryRequest
from store.tokens import FRAMING_TOKENS

Message = dict[str, Any]
FAILED = "未能生成摘要，仅保留近期历史。"
LOG_LINE = "摘要生成失败，回退到硬截断: "


def chat(count: int, first: int = 0) -> list[Message]:
    """Users and assistants in turn."""
    return [
        {"role": "assistant" if i % 2 else "user", "content": f"消息 {i} " + "说的话" * 20}
        for i in range(first, first + count)
    ]


def begun(store: Store, messages: list[Message]) -> str:
    """A session with these messages."""
    session_id = store.create_session().id
    store.append(session_id, messages)
    return session_id


def policy(on_failure: str, summarizer: object = None, **fields: Any) -> Policy:
    """The same limits, another ladder.

    Patience with whoever does not hang, on however busy a machine.
    """
    timeout = 0.2 if summarizer is hanging else 30
    given = {
        "summary_timeout": timeout,
        "keep_messages": 10,
        "hard_limit": 50,
        "on_failure": on_failure,
        **fields,
    }
    return Policy(name=on_failure, **given)


class Panic(BaseException):
    """What no ``except Exception`` catches."""


def raising(request: SummaryRequest) -> str:
    """The network is down."""
    raise ConnectionError("no route to host")


def panicking(request: SummaryRequest) -> str:
    """As a library written in Rust may."""
    raise Panic("worse")


def hanging(request: SummaryRequest) -> str:
    """For longer than it may."""
    threading.Event().wait(5)
    return "too late"


async def awaiting(request: SummaryRequest) -> str:
    """Given where a plain function is wanted."""
    return "never awaited"


FAILING: dict[str, Callable[[SummaryRequest], Any]] = {
    "raising": raising,
    "panicking": panicking,
    "hanging": hanging,
    "awaiting": awaiting,
    "empty": lambda request: "",
    "whitespace": lambda request: " \n\t\u200b　",
    "bare label": lambda request: "对话摘要：",
    "none": lambda request: None,
    "number": lambda request: 42,
    "bytes": lambda request: b"summary",
    "no text": lambda request: Summary(None),  # type: ignore[arg-type]
    "no pairs": lambda request: Summary("body", key_actions=("used",)),  # type: ignore[arg-type]
}
every_failure = pytest.mark.parametrize("summarizer", FAILING.values(), ids=FAILING.keys())


# --- the ladder -----------------------------------------------------------------------------------


@every_failure
def test_abort_changes_nothing(store: Store, summarizer: Callable[[SummaryRequest], Any]) -> None:
    """S3.38: rolled back, recorded, and said in the answer; the next attempt may succeed."""
    session_id = begun(store, chat(60))
    made = store.compact(session_id, policy("abort", summarizer), summarizer)
    assert (made.id, made.outcome, made.hidden, made.summary) == (1, "failed", None, None)
    assert made.error
    assert store.compactions(session_id) == [made]
    assert store.view(session_id).messages == chat(60)
    assert store.hidden(session_id) == {}
    assert (
        store.compact(session_id, policy("abort"), lambda request: "at last").outcome == "applied"
    )


@pytest.mark.sampled(5)
@every_failure
def test_trim_keeps_to_the_hard_limit(
    store: Store, summarizer: Callable[[SummaryRequest], Any]
) -> None:
    """S2.27, S2.32: the oldest turns go, without a summary.

    Within the limit nothing goes (A2.8).
    """
    session_id = begun(store, chat(61))
    made = store.compact(session_id, policy("trim", summarizer), summarizer)
    assert (made.outcome, made.hidden, made.summary) == ("applied", (1, 12), None)
    assert made.error
    assert store.view(session_id).messages == chat(61)[12:]
    within = begun(store, chat(50))
    assert store.compact(within, policy("trim", summarizer), summarizer).outcome == "failed"
    assert store.view(within).messages == chat(50)


def commands(number: int) -> list[Message]:
    """A turn of four messages in which a command runs."""
    arguments = f'{{"command":"make step-{number}"}}'
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "terminal-execute", "arguments": arguments},
    }
    return [
        {"role": "user", "content": f"step {number} " + "please " * 60},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": '{"stdout":"made","exitCode":0}'},
        {"role": "assistant", "content": "done"},
    ]


@pytest.mark.parametrize("previous", ["fold", "append"])
def test_the_facts_of_what_is_trimmed_stay(store: Store, previous: str) -> None:
    """S2.27: no word of a model, within the hard limit, and however often it happens.

    Until a summary is made.
    """
    chosen = policy("trim", hard_limit=20, keep_messages=4, previous_summary=previous)
    session_id = begun(store, [each for number in range(5) for each in commands(number)])
    for number in range(5, 9):
        store.append(session_id, commands(number))
        made = store.compact(session_id, chosen, raising)
        assert (made.outcome, made.summary, made.hidden) == (
            "applied",
            "",
            ((1, 8), (9, 12), (13, 16), (17, 20))[number - 5],
        )
        view = store.view(session_id, chosen)
        assert made.messages_after == len(view.messages) == 17
        assert made.tokens_after == store.check(session_id, chosen).tokens < made.tokens_before  # type: ignore[operator]
        told = [f"- make step-{each} (退出码 0)" for each in range(number - 3)]
        assert view.messages[0] == {
            "role": "system",
            "content": "\n".join(["执行的命令：", *told]),
        }
        assert view.messages[1:] == [
            each for turn in range(number - 3, number + 1) for each in commands(turn)
        ]
    asked: list[SummaryRequest] = []
    store.compact(session_id, chosen, lambda request: asked.append(request) or "a summary")  # type: ignore[func-returns-value]
    assert asked[0].previous_summary is None
    told = [
        str(each["content"])
        for each in store.view(session_id, chosen).messages
        if each["role"] == "system"
    ]
    assert len(told) == (1 if previous == "fold" else 2)
    assert [
        number
        for number in range(8)
        if f"- make step-{number} (退出码 0)\n" not in "\n".join([*told, ""])
    ] == []
    assert store.verify() == []


def test_a_trim_carries_the_summary_before_it_with_the_facts(store: Store) -> None:
    """Word by word; an archive is left as it is and the facts stand behind it."""
    for previous, texts in (
        ("fold", ["alpha\n\n执行的命令："]),
        ("append", ["alpha", "执行的命令："]),
    ):
        chosen = policy(
            "trim", hard_limit=20, keep_messages=0, previous_summary=previous, facts_chars=300
        )
        session_id = begun(store, chat(10))
        store.compact(session_id, chosen, lambda request: "alpha")
        store.append(session_id, [each for number in range(6) for each in commands(number)])
        made = store.compact(session_id, chosen, raising)
        told = [
            str(each["content"])
            for each in store.view(session_id, chosen).messages
            if each["role"] == "system"
        ]
        assert [text.split("\n- ")[0] for text in told] == texts
        assert made.messages_after == len(store.view(session_id, chosen).messages) <= 20
        store.undo_compaction(session_id, made.id)
        assert [str(each["content"]) for each in store.view(session_id).messages[:1]] == ["alpha"]


@pytest.mark.parametrize("fields", [{"facts_chars": 0}, {}])
def test_a_trim_leaves_nothing_where_there_is_no_fact_or_no_gain(
    store: Store, fields: dict[str, Any]
) -> None:
    """Facts that take more than what goes are left to the next summary."""
    short = [{**each, "content": "a"} if each["role"] == "user" else each for each in commands(0)]
    chosen = policy("trim", hard_limit=4, keep_messages=0, summary_heading="word" * 100, **fields)
    session_id = begun(store, [*short, *commands(1)])
    made = store.compact(session_id, chosen, raising)
    assert (made.hidden, made.summary, made.messages_after) == ((1, 4), None, 4)
    assert store.view(session_id, chosen).messages == commands(1)


@pytest.mark.sampled(5)
@every_failure
@pytest.mark.parametrize("on_failure", ["skip", "truncate"])
def test_skip_and_truncate_hide_with_a_notice(
    store: Store, on_failure: str, summarizer: Callable[[SummaryRequest], Any]
) -> None:
    """S3.39, S4.33: not a silent gap (A3.12); the notice of S4.34 is for time alone (A4.19)."""
    session_id = begun(store, chat(60))
    made = store.compact(session_id, policy(on_failure, summarizer), summarizer)
    assert (made.outcome, made.hidden) == ("applied", (1, 50))
    notice = TIMED_OUT_NOTICE if summarizer is hanging else FAILED
    assert made.summary == notice
    assert made.error
    view = store.view(session_id)
    assert view.messages == [{"role": "system", "content": notice}, *chat(60)[50:]]
    store.undo_compaction(session_id, made.id)
    assert store.view(session_id).messages == chat(60)


def test_only_the_notice_of_the_store_is_left_behind(store: Store) -> None:
    """A model may say the same words: what it wrote is carried on as it is."""
    session_id = begun(store, chat(60))
    chosen = policy("truncate", previous_summary="fold")
    said = f"The build stopped with: {FAILED}"
    store.compact(session_id, chosen, lambda request: said)
    store.append(session_id, chat(60, 100))
    made = store.compact(session_id, chosen, raising)
    assert made.summary == f"{said}\n\n{FAILED}"
    store.append(session_id, chat(60, 200))
    again = store.compact(session_id, chosen, raising)
    assert again.summary == f"{said}\n\n{FAILED}"


def test_an_error_is_what_was_recorded_and_not_what_its_words_say(store: Store) -> None:
    """The kind of an error is a column of its record."""
    session_id = begun(store, chat(60))
    failed = store.compact(session_id, policy("abort"), raising)
    assert (failed.error_kind, type(failed.problem)) == (
        "SummaryGenerationError",
        SummaryGenerationError,
    )
    alike = failed._replace(error="SummaryTimedOut: said by somebody else", error_kind=None)
    assert type(alike.problem) is CompactionError


def test_the_words_of_the_specification(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """S2.16, S2.20, S4.34."""
    assert TIMED_OUT_NOTICE == "Summary generation timed out, keeping recent history only."
    session_id = begun(store, chat(40))
    with caplog.at_level(logging.DEBUG, "store"):
        empty = store.compact(session_id, Policy.named("message_count"), lambda request: " ")
    assert "LLM 返回空摘要" in str(empty.error)
    levels = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert levels == [
        ("INFO", "history 达到 40 条，触发压缩（窗口: 30 条）"),
        ("WARNING", f"{LOG_LINE}LLM 返回空摘要"),
    ]
    assert caplog.records[1].__dict__["error"] == "LLM 返回空摘要"
    timed_out = store.compact(session_id, policy("abort", hanging), hanging)
    assert timed_out.error == "SummaryTimedOut: no summary within 0.2 s"


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("trim", "摘要生成失败，回退到硬截断: "),
        ("abort", "no summary, nothing is hidden: "),
        ("skip", "no summary, one line stands in its place: "),
        ("truncate", "no summary, one line stands in its place: "),
    ],
)
def test_the_warning_says_what_really_happens(
    store: Store, caplog: pytest.LogCaptureFixture, does: Any, told: str
) -> None:
    """And of a foreign exception its type and place; its words are in the record, and at DEBUG."""
    session_id = begun(store, chat(60))

    def careless(_: SummaryRequest) -> str:
        try:
            raise KeyError("SECRET")
        except KeyError as error:
            raise RuntimeError("POST SECRET failed") from error

    with caplog.at_level(logging.DEBUG, "store"):
        made = store.compact(session_id, policy(does), careless)
    chain = "RuntimeError: POST SECRET failed; caused by KeyError: 'SECRET'"
    assert made.error == f"SummaryGenerationError: {chain}"
    assert store.compactions(session_id)[-1].error == made.error
    (warned,) = (each for each in caplog.records if each.levelno == logging.WARNING)
    assert warned.getMessage().startswith(f"{told}RuntimeError at {__name__}:")
    (explained,) = (each for each in caplog.records if "SECRET" in str(vars(each)))
    assert explained.levelno == logging.DEBUG
    assert explained.getMessage().endswith(chain)


def recorded_errors(store: Store) -> int:
    """How many records there are of something that was raised."""
    with store.database.reading() as connection:
        of_errors = select(func.count()).where(
            compaction_records.c.error.contains("the erased words")
        )
        return int(connection.execute(of_errors).scalar_one())


def test_what_failed_is_erased_with_its_session(store: Store) -> None:
    """A record keeps what an exception said as long as the messages that it may quote."""
    session_id = begun(store, chat(60))

    def quoting(_: SummaryRequest) -> str:
        raise RuntimeError("the erased words")

    store.compact(session_id, policy("abort"), quoting)
    assert recorded_errors(store) == 1
    store.delete_session(session_id)
    assert recorded_errors(store) == 0


def test_a_trigger_that_can_hide_nothing_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A2.2: no model is asked, and still it is told."""
    session_id = begun(store, [{"role": "user", "content": "a"}, *chat(50)[1::2]])
    with caplog.at_level(logging.INFO, "store"):
        assert store.compact_if_needed(session_id, Policy(trigger_messages=2)) is None
    (told,) = caplog.records
    assert told.getMessage().startswith(
        "a trigger fires, but nothing can be hidden: 26 messages; nothing to compact: "
    )


def test_a_compaction_that_is_rejected_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the language that the environment chooses."""
    monkeypatch.setenv("CONVOSTORE_LANGUAGE", "en")
    session_id = begun(store, [{**each, "content": "a"} for each in chat(60)])
    with caplog.at_level(logging.INFO, "store"):
        made = store.compact(session_id, policy("abort"), lambda request: "长" * 1500)
    assert made.outcome == "rejected"
    begun_line, told = (each.getMessage() for each in caplog.records)
    assert begun_line.startswith("compacting a history of 60 messages")
    assert told == f"a compaction was rejected: {made.error}"


def test_too_long_a_summary_is_cut(store: Store) -> None:
    """S2.21: to code points, the ellipsis included (A2.6)."""
    session_id = begun(
        store, [{**message, "content": message["content"] * 5} for message in chat(40)]
    )
    made = store.compact(session_id, Policy.named("message_count"), lambda request: "长" * 100_000)
    assert (made.outcome, made.summary) == ("applied", "长" * 1497 + "...")


def test_what_does_not_make_the_view_smaller_is_rejected(store: Store) -> None:
    """And recorded, where the policy does nothing without a summary."""
    session_id = begun(
        store, [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 6
    )
    made = store.compact(
        session_id, policy("abort", keep_messages=2), lambda request: "long " * 100
    )
    assert (made.outcome, made.hidden, made.summary) == ("rejected", None, None)
    assert "would not get smaller" in str(made.error)
    assert len(store.view(session_id).messages) == 12
    assert store.compactions(session_id) == [made]


def worded(tokens: int) -> Callable[[SummaryRequest], str]:
    """A summarizer whose text has so many tokens by the estimate."""
    return lambda request: "word" * tokens


def half(store: Store, session_id: str) -> tuple[int, int]:
    """What a view has, and what it keeps of it when all but the newest ten messages are hidden."""
    tokens = store.check(session_id, Policy()).tokens
    return tokens, tokens - store.plan_compaction(session_id, policy("abort")).tokens_hidden


def test_what_stays_above_the_trigger_and_need_not_is_rejected(store: Store) -> None:
    """Smaller is not enough where a shorter summary gets the view below the trigger."""
    session_id = begun(store, chat(60))
    tokens, kept = half(store, session_id)
    limit = kept + 100
    chosen = policy("abort", trigger_tokens=limit, facts_chars=0)
    made = store.compact_if_needed(session_id, chosen, worded(100 - FRAMING_TOKENS))
    assert made is not None
    assert (made.outcome, made.hidden, made.summary) == ("rejected", None, None)
    assert str(made.error).startswith("the summary is too long")
    for number in (limit, kept + FRAMING_TOKENS):
        assert str(number) in str(made.error)
    assert store.view(session_id).messages == chat(60)
    assert store.check(session_id, chosen).tokens == tokens
    made = store.compact(session_id, chosen, worded(99 - FRAMING_TOKENS))
    assert (made.outcome, made.tokens_after) == ("applied", limit - 1)


@pytest.mark.parametrize(
    ("on_failure", "summary"), [("skip", FAILED), ("truncate", FAILED), ("trim", None)]
)
def test_a_summary_of_no_help_is_as_good_as_none(
    store: Store, on_failure: str, summary: str | None
) -> None:
    """What the policy does without a summary is done where one is refused for its size."""
    for fields, tokens in (({"trigger_tokens": 100}, 100), ({}, 6000)):
        session_id = begun(store, chat(60))
        limits = {key: value + half(store, session_id)[1] for key, value in fields.items()}
        chosen = policy(on_failure, facts_chars=0, summary_max_chars=50_000, **limits)
        made = store.compact(session_id, chosen, worded(tokens))
        assert (made.outcome, made.summary) == ("applied", summary)
        assert str(made.error).startswith(("the view would not get", "the summary is too long"))
        assert isinstance(made.problem, CompactionError)


def test_a_hard_limit_holds_where_summaries_are_refused(store: Store) -> None:
    """S2.7: at 50 messages, whatever a talkative model says, and it is not asked for ever."""
    policy, asked = Policy.named("message_count"), []
    session_id = begun(store, [])

    def talkative(request: SummaryRequest) -> str:
        asked.append(request.last)
        return "The user asked and the assistant answered. " * 20

    for _ in range(40):
        store.append(session_id, chat(2))
        store.compact_if_needed(session_id, policy, talkative)
        assert len(store.view(session_id, policy).messages) <= 50
    assert len(asked) <= 6


@pytest.mark.parametrize("on_failure", ["abort", "truncate"])
def test_no_view_over_the_window_stays_for_a_long_summary(store: Store, on_failure: str) -> None:
    """One within it is better, and of two over it the smaller."""
    long = [("user", "o" * 4200), ("assistant", "a" * 4200), ("user", "k" * 12_000)]
    long += [("assistant", "b" * 11_900), ("user", "now")]
    messages = [{"role": role, "content": content} for role, content in long]
    wordy = "word " * 790
    for window, over in ((8000, False), (6500, on_failure == "abort"), (3000, True)):
        session_id = begun(store, messages)
        chosen = Policy.named(
            "turns", context_window=window, keep_turns=2, facts_chars=0, on_failure=on_failure
        )
        made = store.compact_if_needed(session_id, chosen, lambda request: wordy)
        assert made is not None
        assert made.outcome == "applied"
        assert made.tokens_after < made.tokens_before  # type: ignore[operator]
        assert store.check(session_id, chosen).overflow is over


def test_what_frees_too_little_is_neither_asked_for_nor_applied(store: Store) -> None:
    """No cache is given up for a few tokens; not so by hand, or over the window."""
    small, large = chat(4), [{**each, "content": "word " * 800} for each in chat(4)]
    session_id = begun(store, [*small, *large])
    asked: list[int] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request.last)
        return "short"

    few = Policy(trigger_tokens=1000, keep_turns=2, least_freed=0.15, facts_chars=0)
    check = store.check(session_id, few)
    assert not check.should_compact
    assert "are less than the policy wants to be freed" in check.reason
    assert store.compact_if_needed(session_id, few, summarizer) is None
    made = store.compact(session_id, few, summarizer, reason="llm_call")
    assert (made.outcome, asked) == ("nothing", [])
    over = store.compact_if_needed(session_id, few, summarizer, max_tokens=1000)
    assert over is not None
    assert over.outcome == "applied"
    store.undo_compaction(session_id, over.id)
    assert store.compact(session_id, few, summarizer).outcome == "applied"


def test_a_summary_that_leaves_too_little_freed_is_refused(store: Store) -> None:
    """Hiding would have freed enough, the summary took it."""
    session_id = begun(store, chat(60))
    chosen = policy("abort", trigger_messages=40, least_freed=0.8, facts_chars=0)
    made = store.compact_if_needed(session_id, chosen, worded(200))
    assert made is not None
    assert made.outcome == "rejected"
    assert "too little smaller" in str(made.error)


def test_what_no_summary_brings_below_the_trigger_is_progress(store: Store) -> None:
    """Not even an empty one.

    By its tokens, by its messages, or by the facts that the store adds itself.
    """
    for fields in ({"trigger_tokens": 1}, {"trigger_messages": 11}):
        session_id = begun(store, chat(60))
        made = store.compact_if_needed(session_id, policy("abort", **fields), worded(200))
        assert made is not None
        assert (made.outcome, made.error) == ("applied", None)
    session_id = begun(store, chat(60))
    _, kept = half(store, session_id)
    heading = policy("abort", trigger_tokens=kept + 50, summary_heading="word" * 50)
    assert store.compact(session_id, heading, worded(50)).outcome == "applied"


def test_what_is_still_over_the_trigger_says_so(store: Store) -> None:
    """A4.6: whatever came of it, by the window and the input it was checked with.

    A record of the past does not.
    """
    session_id = begun(store, chat(60))
    _, kept = half(store, session_id)

    def made(limit: int, summarizer: Callable[[SummaryRequest], Any], **checks: Any) -> list[Any]:
        chosen = policy("abort", trigger_tokens=limit, facts_chars=0)
        done = store.compact_if_needed(store.fork(session_id).id, chosen, summarizer, **checks)
        return [done and (done.outcome, done.still_over)]

    assert made(kept + 20, worded(1)) == [("applied", False)]
    assert made(kept + 20, worded(1), user_input="x" * 90) == [("applied", True)]
    assert made(kept, worded(1)) == [("applied", True)]
    assert made(kept + 20, worded(20)) == [("rejected", True)]
    assert made(kept + 20, raising) == [("failed", True)]
    windowed = policy("abort", trigger_ratio=0.5, facts_chars=0)
    done = store.compact_if_needed(session_id, windowed, worded(1), max_tokens=2 * kept)
    assert done is not None
    assert done.still_over
    assert store.compactions(session_id) == [done._replace(still_over=False)]
    assert not store.compact(session_id, windowed, worded(1)).still_over
    nothing = store.compact(
        session_id, windowed.model_copy(update={"context_window": 2 * kept}), worded(1)
    )
    assert (nothing.outcome, nothing.still_over) == ("nothing", True)


def test_the_trigger_is_that_of_the_window_and_the_input_it_was_checked_with(store: Store) -> None:
    """Not of the policy's own window where the check named another.

    A compaction by hand knows the policy's alone.
    """
    window = {"trigger_ratio": 0.1, "context_window": 1_000_000, "facts_chars": 0}
    _, kept = half(store, begun(store, chat(60)))
    asked = {"max_tokens": 10 * kept + 1000, "user_input": "x" * 90}
    for tokens, outcome in ((70 - FRAMING_TOKENS, "rejected"), (69 - FRAMING_TOKENS, "applied")):
        session_id = begun(store, chat(60))
        made = store.compact_if_needed(
            session_id, policy("abort", **window), worded(tokens), **asked
        )
        assert made is not None
        assert made.outcome == outcome
    session_id = begun(store, chat(60))
    assert store.compact(session_id, policy("abort", **window), worded(100)).outcome == "applied"
    session_id = begun(store, chat(60))
    window["context_window"] = 10 * kept + 1000
    assert store.compact(session_id, policy("abort", **window), worded(100)).outcome == "rejected"


def test_a_notice_is_never_too_long_for_the_trigger(store: Store) -> None:
    """What stands in the place of a summary cannot be made shorter.

    It carries the earlier one and one line.
    """
    session_id = begun(store, chat(60))
    _, kept = half(store, session_id)
    chosen = policy("skip", trigger_tokens=kept + 10, facts_chars=0)
    made = store.compact_if_needed(session_id, chosen, raising)
    assert made is not None
    assert made.outcome == "applied"
    assert made.tokens_after >= kept + 10  # type: ignore[operator]


def test_what_was_rejected_for_its_size_is_not_tried_again(store: Store) -> None:
    """Until there is more to hide, or a new turn, or another policy.

    Who asks by hand is not held back.
    """
    session_id = begun(store, chat(61))
    _, kept = half(store, session_id)
    chosen = policy("abort", trigger_tokens=kept + 100, facts_chars=0, back_off_after=4)
    made = [store.compact_if_needed(session_id, chosen, worded(200)) for _ in range(3)]
    assert [each and each.outcome for each in made] == ["rejected", None, None]
    check = store.check(session_id, chosen)
    assert not check.should_compact
    assert (
        "no more could be hidden than by compaction 1, which was rejected for its size"
        in check.reason
    )
    assert store.check(session_id, chosen.model_copy(update={"name": "another"})).should_compact
    assert store.compact(session_id, chosen, worded(200)).outcome == "rejected"
    grown = []
    for role in ("assistant", "assistant", "user"):
        store.append(session_id, {"role": role, "content": "and on"})
        grown.append(
            store.compact_if_needed(session_id, chosen, worded(1 if role == "user" else 200))
        )
    assert [each and (each.outcome, each.first_kept) for each in grown] == [
        ("rejected", 53),
        None,
        ("applied", 55),
    ]


def test_a_range_that_a_transcript_cuts_short_is_not_tried_again_either(store: Store) -> None:
    """It is as it was as long as what the policy would hide is."""
    session_id = begun(
        store, [{**each, "content": each["content"] + "word" * 400} for each in chat(61)]
    )
    chosen = policy(
        "abort", trigger_tokens=40, transcript_max_chars=1000, summary_max_chars=100_000
    )
    made = [
        store.compact_if_needed(session_id, chosen, lambda request: "长" * 50_000) for _ in range(3)
    ]
    assert made[0] is not None
    assert str(made[0].error).startswith("the view would not get smaller")
    assert [each and each.outcome for each in made] == ["rejected", None, None]


def test_what_no_longer_fits_its_line_may_be_tried_again(store: Store) -> None:
    """It was not rejected for its size."""
    session_id = begun(store, chat(61))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, 5)
        return "of what is gone"

    chosen = policy("abort", trigger_messages=40)
    made = store.compact_if_needed(session_id, chosen, rewinding)
    assert made is not None
    assert (made.outcome, made.first_kept) == ("rejected", None)
    store.undo_rewind(session_id)
    assert store.check(session_id, chosen).should_compact


def test_a_notice_longer_than_what_it_stands_for_is_rejected(store: Store) -> None:
    """Nothing goes because something failed."""
    session_id = begun(store, [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    assert store.compact(session_id, policy("skip", keep_messages=1), raising).outcome == "rejected"
    assert len(store.view(session_id).messages) == 2


# --- what must not go -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_failure", "summarizer"), [("skip", raising), ("truncate", hanging), ("trim", raising)]
)
@pytest.mark.sampled(3)
def test_a_failure_loses_no_earlier_summary(
    store: Store, on_failure: str, summarizer: Callable[[SummaryRequest], Any]
) -> None:
    """A2.9: hard limits drop turns, never summaries.

    Failing again and again neither grows nor loses it.
    """
    session_id = begun(store, chat(60))
    store.compact(session_id, policy(on_failure), lambda request: "alpha is the code")
    for first, failing in ((60, summarizer), (110, hanging), (160, raising)):
        store.append(session_id, chat(50, first))
        made = store.compact(session_id, policy(on_failure, failing), failing)
        assert made.outcome == "applied"
        texts = [str(message["content"]) for message in store.view(session_id).messages]
        assert sum("alpha is the code" in text for text in texts) == 1
        notices = (TIMED_OUT_NOTICE, "未能生成摘要，仅保留近期历史。")
        told = sum(text.count(notice) for text in texts for notice in notices)
        assert told == int(on_failure != "trim")
    asked: list[SummaryRequest] = []
    store.append(session_id, chat(20, 210))
    store.compact(session_id, policy(on_failure), lambda request: str(asked.append(request)))
    assert "alpha is the code" in str(asked[0].previous_summary)


@pytest.mark.parametrize("systems", [1, 3])
def test_the_hard_limit_holds_with_system_messages(store: Store, systems: int) -> None:
    """They stay, so more of the others go."""
    rules = [{"role": "system", "content": f"rule {number}"} for number in range(systems)]
    session_id = begun(store, [*rules, *chat(54)])
    made = store.compact(session_id, policy("trim"), raising)
    assert made.outcome == "applied"
    view = store.view(session_id)
    assert view.messages[:systems] == rules
    assert 49 <= len(view.messages) <= 50
    assert view.messages[systems:] == chat(54)[54 - len(view.messages) + systems :]


def test_the_hard_limit_drops_turns_until_the_current_one(store: Store) -> None:
    """Which stays whole, however long it is."""
    long = [
        {"role": "user", "content": "now"},
        *[{"role": "assistant", "content": f"step {i}"} for i in range(70)],
    ]
    session_id = begun(store, [*chat(10), *long])
    made = store.compact(session_id, policy("trim"), raising)
    assert (made.outcome, made.hidden) == ("applied", (1, 10))
    assert store.view(session_id).messages == long


def test_the_hard_limit_parts_no_call_from_its_result(store: Store) -> None:
    """Where a result came after the next user message, the cut moves back before both turns."""
    call = {"id": "slow", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    waits = [
        {"role": "user", "content": "run"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "hurry"},
        {"role": "tool", "tool_call_id": "slow", "content": "done"},
        *[{"role": "assistant", "content": f"step {i}"} for i in range(50)],
    ]
    session_id = begun(store, [*chat(10), *waits])
    made = store.compact(session_id, policy("trim"), raising)
    assert (made.outcome, made.hidden) == ("applied", (1, 10))
    assert "repair" not in {
        entry.rule for entry in store.view(session_id).entries if entry.seq is None
    }


def test_failed_attempts_leave_the_numbers_as_they_were(store: Store) -> None:
    """No token more, no token less; many of them in a row do no harm."""
    session_id = begun(store, chat(40))
    before = store.check(session_id, policy("abort"))
    for _ in range(5):
        store.compact(session_id, policy("abort"), raising)
    assert store.check(session_id, policy("abort")) == before
    assert [made.outcome for made in store.compactions(session_id)] == ["failed"] * 5


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_the_users_wish_to_stop_passes_through(store: Store, stop: type[BaseException]) -> None:
    """And changes nothing.

    What was begun has failed, so that the next one need not wait until its time is over.
    """
    session_id = begun(store, chat(40))

    def stopped(request: SummaryRequest) -> str:
        raise stop

    with pytest.raises(stop):
        store.compact(session_id, policy("truncate"), stopped, now=10**12 + 1_000)
    [record] = store.compactions(session_id)
    assert (record.outcome, record.hidden, record.error) == (
        "failed",
        None,
        f"stopped by {stop.__name__}",
    )
    assert store.view(session_id).messages == chat(40)
    assert (
        store.compact(session_id, policy("abort"), lambda request: "on", now=10**12 + 1_001).outcome
        == "applied"
    )


def test_a_wish_to_stop_is_told_even_where_its_record_cannot_be_ended(store: Store) -> None:
    """The session was erased meanwhile, or somebody else has taken the compaction over."""
    patient = policy("abort")
    session_id = begun(store, chat(40))

    def erasing(request: SummaryRequest) -> str:
        store.delete_session(session_id)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.compact(session_id, patient, erasing)
    session_id = begun(store, chat(40))

    def overtaken(request: SummaryRequest) -> str:
        assert (
            store.compact(session_id, patient, lambda request: "on", now=10**12 + 99_000).outcome
            == "applied"
        )
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.compact(session_id, patient, overtaken, now=10**12 + 1_000)
    outcomes = [(made.outcome, made.error) for made in store.compactions(session_id)]
    assert outcomes == [("failed", "it never ended"), ("applied", None)]


def test_a_compaction_that_cannot_be_finished_does_not_stay_running(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong between the summary and its record."""
    session_id = begun(store, chat(40))

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("store.compaction.lifecycle.insert_summary", full)
    with pytest.raises(OSError, match="no space"):
        store.compact(session_id, policy("abort"), lambda request: "lost")
    [record] = store.compactions(session_id)
    assert (record.outcome, record.error) == ("failed", "stopped by OSError")
    assert [row.seq for row in store.messages(session_id)] == [*range(1, 41)]


def test_a_summarizer_cannot_change_what_is_stored(store: Store) -> None:
    """It is given messages of its own."""
    session_id = begun(store, chat(40))

    def vandal(request: SummaryRequest) -> str:
        for message in request.messages:
            message.clear()
        request.messages.clear()
        return "gone?"

    assert store.compact(session_id, policy("abort"), vandal).outcome == "applied"
    assert [stored.message for stored in store.messages(session_id)] == chat(40)


def test_a_summary_of_hostile_text_is_stored_and_sent(store: Store) -> None:
    """NUL, lone surrogates, terminal escapes, fences."""
    session_id = begun(store, chat(40))
    made = store.compact(
        session_id, policy("abort"), lambda request: "a\0b\ud800c\x1b[2J\n---\n{transcript}"
    )
    assert made.outcome == "applied"
    text = store.view(session_id).messages[0]["content"]
    assert "\0" not in text
    assert "\x1b" not in text
    text.encode()
    store.append(session_id, chat(30, 40))
    assert (
        store.compact(session_id, policy("abort"), lambda request: request.prompt[:50]).outcome
        == "applied"
    )


@pytest.mark.parametrize("on_failure", ["abort", "skip"])
def test_what_went_wrong_is_an_error_for_those_who_want_one(store: Store, on_failure: str) -> None:
    """S3.38-S3.40b: not raised, whatever was done in the place of the summary.

    Nothing where nothing went wrong.
    """
    kept = policy(on_failure, keep_messages=2)
    session_id = begun(store, chat(20))
    problem = store.compact(session_id, kept, raising, "tool_execution").problem
    assert type(problem) is SummaryGenerationError
    details = {"sessionId": session_id, "reason": "tool_execution", "canRetry": True}
    assert problem.response() == {
        "name": "SummaryGenerationError",
        "message": str(problem),
        "details": details,
    }
    assert [type(each.problem) for each in store.compactions(session_id)] == [
        SummaryGenerationError
    ]
    hanging_on = kept.model_copy(update={"summary_timeout": 0.05})
    other = begun(store, chat(20))
    assert type(store.compact(other, hanging_on, hanging).problem) is SummaryTimedOut
    short = begun(store, [{"role": "user", "content": "hi"}] * 5)
    larger = store.compact(short, kept, lambda request: "long " * 100)
    assert (larger.outcome, type(larger.problem)) == ("rejected", CompactionError)
    assert store.compact(begun(store, chat(20)), kept).problem is None
    assert store.compact(begun(store, chat(2)), kept).problem is None
