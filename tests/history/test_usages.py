"""What requests cost: recorded with model and parts, listed, added up, priced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from store import Policy, Store
from store.errors import InvalidValue, PositionOutOfRange, SessionNotFound
from store.history.model_prices import ModelPrice, normalize_model_name
from store.history.price_files import load_prices
from store.history.usages import UsageInput

NOW = 1_800_000_000_000
DAY = 86_400_000
SONNET = "claude-sonnet-4-5-20250929"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


def said(text: str) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": text}


def chat(store: Store, session_id: str, owner: str | None = None, messages: int = 4) -> None:
    """Create a session with some messages."""
    store.create_session(session_id, owner=owner, now=NOW)
    store.append(session_id, [said(str(each)) for each in range(messages)], now=NOW)


# --- recorded and listed --------------------------------------------------------------------------


def test_what_was_recorded_comes_back(store: Store) -> None:
    """Every field, and a cost that was given stands before the list's."""
    chat(store, "s")
    details = {"service_tier": "standard", "server_tool_use": {"web": 2}}
    kept = store.record_usage(
        "s",
        input=1000,
        output=50,
        cached=700,
        written=200,
        model=SONNET,
        provider="anthropic",
        details=details,
        cost=0.25,
        now=NOW,
    )
    assert kept._asdict() == {
        "session_id": "s",
        "branch": 1,
        "seq": 4,
        "model": SONNET,
        "provider": "anthropic",
        "input": 1000,
        "output": 50,
        "cached": 700,
        "written": 200,
        "cost": 0.25,
        "details": details,
        "at": NOW,
        "number": 1,
    }
    assert store.usages("s") == [kept]


def test_a_cost_is_computed_where_none_is_given(store: Store) -> None:
    """By the parts of the input, each at its price; an unknown model has no cost."""
    chat(store, "s")
    priced = store.record_usage(
        "s", input=1_000_000, output=100_000, cached=600_000, written=300_000, model=SONNET, now=NOW
    )
    assert priced.cost == pytest.approx(0.1 * 3 + 0.6 * 0.3 + 0.3 * 3.75 + 0.1 * 15)
    assert store.record_usage("s", input=5, output=1, model="of-tomorrow", now=NOW).cost is None
    assert store.record_usage("s", input=5, output=1, now=NOW).cost is None
    assert [each.cost for each in store.usages()] == [priced.cost, None, None]
    assert [each.number for each in store.usages()] == [1, 2, 3]


def test_what_a_rewind_left_was_paid_and_forks_share(store: Store) -> None:
    """Rows stay with their branch and position; each counts once, for whose request it was."""
    chat(store, "s")
    store.record_usage("s", input=1, output=0, now=NOW)
    store.append("s", said("answer"), now=NOW)
    store.rewind("s", 2, now=NOW)
    store.append("s", said("instead"), now=NOW)
    store.record_usage("s", input=2, output=0, now=NOW + 1)
    store.fork("s", session_id="f", now=NOW)
    store.fork("f", session_id="g", now=NOW)
    store.append("f", said("on"), now=NOW)
    store.record_usage("f", input=4, output=0, now=NOW + 2)
    assert [(each.branch, each.seq, each.input) for each in store.usages("s")] == [
        (1, 4, 1),
        (2, 3, 2),
    ]
    assert [each.input for each in store.usages("f")] == [4]
    assert store.usages("g") == []
    assert [each.input for each in store.usages()] == [1, 2, 4]
    totals = store.usage_totals(by="session")
    assert {each.name: each.input for each in totals} == {"s": 3, "f": 4}


def test_a_usage_of_an_earlier_request(store: Store) -> None:
    """`seq` says which messages it held; the last request is the one that stands last."""
    chat(store, "s")
    turns = Policy.named("turns", keep_turns=1)
    late = store.record_usage("s", input=170_000, output=0, now=NOW)
    early = store.record_usage("s", input=5, output=0, seq=2, now=NOW + 5)
    assert (early.seq, late.seq) == (2, 4)
    assert store.check("s", turns).should_compact
    for wrong in (5, -1, "2"):
        with pytest.raises(PositionOutOfRange):
            store.record_usage("s", input=1, output=1, seq=wrong, now=NOW)  # type: ignore[arg-type]


def used(store: Store, session_id: str) -> int | None:
    """Return the tokens of the last request as a check goes by them; None where it estimates."""
    reason = store.check(session_id, Policy(), max_tokens=1).reason
    tokens = int(reason.split()[0])
    return tokens if tokens > 1_000 else None


def test_a_fork_goes_by_what_was_recorded_before_it(store: Store) -> None:
    """Not by what its source records later, whatever position and moment that is given."""
    chat(store, "s", owner="ann")
    store.record_usage("s", input=2_000, output=0, seq=2, now=NOW)
    store.record_usage("s", input=4_000, output=0, now=NOW)
    store.fork("s", session_id="f", now=NOW)
    store.fork("s", at=3, session_id="early", now=NOW)
    store.fork("s", session_id="bobs", owner="bob", now=NOW)
    for seq in (1, 2, 3, 4):
        store.record_usage("s", input=900_000, output=0, seq=seq, now=NOW - DAY)
    found = [used(store, name) for name in ("s", "f", "early", "bobs")]
    assert found == [900_000, 4_000, 2_000, None]
    assert [store.usages(name) for name in ("f", "early", "bobs")] == [[], [], []]
    store.rewind("f", 3, now=NOW)
    assert used(store, "f") == 2_000
    store.undo_rewind("f", now=NOW)
    store.fork("f", at=3, session_id="g", now=NOW)
    assert used(store, "g") == 2_000
    store.record_usage("f", input=8_000, output=0, seq=1, now=NOW)
    assert [used(store, name) for name in ("f", "g")] == [4_000, 2_000]
    store.append("f", said("on"), now=NOW)
    store.record_usage("f", input=16_000, output=0, now=NOW)
    assert [used(store, name) for name in ("f", "g")] == [16_000, 2_000]
    store.fork("s", session_id="late", now=NOW)
    assert used(store, "late") == 900_000
    assert store.verify() == []


def test_a_fork_whose_source_is_erased_estimates(store: Store) -> None:
    """What the source had recorded goes with it; an id that is taken anew brings nothing back."""
    chat(store, "s")
    store.record_usage("s", input=4_000, output=0, now=NOW)
    store.fork("s", session_id="f", now=NOW)
    store.fork("f", session_id="g", now=NOW)
    assert (used(store, "f"), used(store, "g")) == (4_000, 4_000)
    store.delete_session("f", now=NOW)
    store.fork("s", session_id="f", now=NOW)
    assert used(store, "g") is None
    assert used(store, "f") == 4_000
    store.delete_session("s", now=NOW)
    assert (used(store, "f"), used(store, "g")) == (None, None)
    assert store.verify() == []


def test_many_at_once_are_recorded_as_one_by_one(store: Store) -> None:
    """In their order, those of one position behind what stands there; all of them or none."""
    requests = [
        UsageInput(input=number, output=1, model=SONNET, details={"n": number}, seq=seq, now=NOW)
        for number, seq in enumerate((2, 4, 2, None), 1)
    ]
    for name in ("one", "many"):
        chat(store, name)
        store.record_usage(name, input=9, output=0, seq=2, now=NOW)
    for request in requests:
        store.record_usage("one", **request._asdict())
    store.atomically(lambda t: t.record_usages("many", requests))
    stored = [each._replace(session_id="one", branch=1) for each in store.usages("many")]
    assert stored == [each._replace(branch=1) for each in store.usages("one")]
    assert [(each.seq, each.number) for each in stored] == [(2, 1), (2, 2), (2, 3), (4, 1), (4, 2)]
    assert [*store.verify()] == []
    wrong = [requests[0], requests[1]._replace(cached=10**6)]
    with pytest.raises(InvalidValue, match="cannot hold"):
        store.atomically(lambda t: t.record_usages("many", wrong))
    assert len(store.usages("many")) == len(stored)


def test_a_request_made_anew_is_the_last(store: Store) -> None:
    """At the same position, on a later branch, whatever the clocks said."""
    turns = Policy.named("turns", keep_turns=1)
    chat(store, "s")
    store.record_usage("s", input=170_000, output=0, now=NOW + 1)
    store.append("s", said("answer"), now=NOW)
    assert store.check("s", turns).should_compact
    store.rewind("s", 4, now=NOW)
    store.append("s", said("another"), now=NOW)
    for number in range(3):
        store.record_usage("s", input=5, output=0, seq=4, now=NOW)
        assert not store.check("s", turns).should_compact, number


def test_a_usage_changes_no_session(store: Store) -> None:
    """Neither its revision nor when it was last active."""
    chat(store, "s")
    before = store.session("s")
    store.record_usage("s", input=1, output=1, model=SONNET, now=NOW + 5)
    store.usages("s")
    assert store.session("s") == before


@pytest.mark.parametrize(
    ("wrong", "said_"),
    [
        ({"written": -1}, "written must be a number of tokens"),
        ({"written": True}, "written must be a number of tokens"),
        ({"cached": 11}, "input must include the cached"),
        ({"cached": 6, "written": 5}, "10 tokens cannot hold 11"),
        ({"model": 5}, "model must be a text"),
        ({"provider": "a\0"}, "provider must be a text"),
        ({"details": [1]}, "details is an object"),
        ({"details": {"a": float("nan")}}, "details cannot be stored"),
        ({"cost": -0.1}, "cost must be a number of US dollars"),
        ({"cost": float("inf")}, "cost must be a number of US dollars"),
        ({"cost": "1"}, "cost must be a number of US dollars"),
        ({"cost": True}, "cost must be a number of US dollars"),
    ],
)
def test_what_is_no_usage_is_refused(store: Store, wrong: dict[str, Any], said_: str) -> None:
    """Nothing is written, and the text says what is right."""
    chat(store, "s")
    with pytest.raises(InvalidValue, match=said_):
        store.record_usage("s", input=10, output=1, **wrong)
    assert store.usages() == []


# --- asked for ------------------------------------------------------------------------------------


def spend(store: Store, seed: int = 1, count: int = 60) -> None:
    """Record usages of several owners, models and days, many at one moment."""
    chance = random.Random(seed)
    for number in range(6):
        chat(store, f"s{number}", owner=("ann", "bob", None)[number % 3])
    for _ in range(count):
        store.record_usage(
            f"s{chance.randrange(6)}",
            input=chance.randrange(1000) + 10,
            output=chance.randrange(100),
            cached=chance.randrange(10),
            model=chance.choice([SONNET, "gpt-5", "local", None]),
            cost=chance.choice([None, None, 0.5]),
            now=NOW + chance.randrange(4) * DAY,
        )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize(
    "asked", [{}, {"owner": "ann"}, {"since": NOW + DAY}, {"session_id": "s1"}], ids=str
)
def test_pages_give_each_once(store: Store, size: int, asked: dict[str, Any]) -> None:
    """Those of one moment, too; a page after the last is empty."""
    spend(store, count=30)
    whole = store.usages(**asked)
    assert whole == sorted(whole, key=lambda u: (u.at, u.session_id, u.branch, u.seq, u.number))
    assert whole
    paged = []
    while page := store.usages(**asked, limit=size, after=paged[-1] if paged else None):
        assert len(page) <= size
        paged += page
    assert paged == whole


def test_usages_are_chosen(store: Store) -> None:
    """By owner, by moment from since to before until, by session; all of it together."""
    spend(store)
    every = store.usages()
    assert len(every) == 60
    owners = {each.id: each.owner for each in store.sessions()}
    of_ann = [each for each in every if owners[each.session_id] == "ann"]
    assert store.usages(owner="ann") == of_ann
    begin, end = NOW + DAY, NOW + 2 * DAY
    middle = [each for each in every if begin <= each.at < end]
    assert store.usages(since=begin, until=end) == middle
    aware = datetime.fromtimestamp(begin / 1000, UTC)
    assert store.usages(since=aware, until=aware + timedelta(days=1)) == middle
    both = [each for each in of_ann if each.at >= begin and each.session_id == "s0"]
    assert store.usages("s0", owner="ann", since=begin) == both
    assert store.usages("s0", owner="bob") == []
    assert store.usages(limit=0) == []
    with pytest.raises(SessionNotFound):
        store.usages("nobody")


@pytest.mark.parametrize("by", ["model", "session", "owner", "day"])
def test_totals_are_sums_of_what_is_listed(store: Store, by: str) -> None:
    """By hand from the list; what has no cost is counted."""
    spend(store)
    owners = {each.id: each.owner for each in store.sessions()}
    key = {
        "model": lambda u: u.model,
        "session": lambda u: u.session_id,
        "owner": lambda u: owners[u.session_id],
        "day": lambda u: datetime.fromtimestamp(u.at / 1000, UTC).date().isoformat(),
    }[by]
    totals = store.usage_totals(by=by)
    usages = store.usages()
    assert {each.name for each in totals} == {key(each) for each in usages}
    for total in totals:
        of_it = [each for each in usages if key(each) == total.name]
        costs = [each.cost for each in of_it if each.cost is not None]
        assert total.requests == len(of_it)
        for name in ("input", "output", "cached", "written"):
            assert getattr(total, name) == sum(getattr(each, name) for each in of_it)
        assert total.unpriced == len(of_it) - len(costs)
        assert total.cost == (pytest.approx(sum(costs)) if costs else None)
    if by == "day":
        assert [each.name for each in totals] == sorted(each.name or "" for each in totals)
    else:
        costs = [each.cost or 0 for each in totals]
        assert costs == sorted(costs, reverse=True)


def test_totals_of_a_part(store: Store) -> None:
    """What is chosen is chosen as for the list; of nothing there is no total."""
    spend(store)
    listed = store.usages(owner="bob", since=NOW + DAY)
    totals = store.usage_totals(owner="bob", since=NOW + DAY)
    assert sum(each.requests for each in totals) == len(listed)
    assert store.usage_totals("s0", until=NOW) == []
    known = "model, session, owner, project, source, day, week, month"
    with pytest.raises(InvalidValue, match=f"{known}, not 'year'"):
        store.usage_totals(by="year")


@pytest.mark.parametrize(
    "wrong",
    [{"limit": -1}, {"limit": True}, {"after": 5}, {"since": "monday"}, {"owner": 5}],
    ids=str,
)
def test_what_cannot_be_asked(store: Store, wrong: dict[str, Any]) -> None:
    """An error of the store's own."""
    with pytest.raises(InvalidValue):
        store.usages(**wrong)


def test_the_erased_have_no_usages(store: Store) -> None:
    """Nor where others go on from their messages, but in sums; a redaction leaves them."""
    chat(store, "s")
    store.record_usage("s", input=3, output=1, now=NOW)
    store.redact("s", 4, "asked for", now=NOW)
    assert len(store.usages("s")) == 1
    store.fork("s", session_id="f", now=NOW)
    store.record_usage("f", input=4, output=1, now=NOW)
    store.delete_session("s", now=NOW)
    assert [each.session_id for each in store.usages()] == ["f"]
    assert [each.name for each in store.usage_totals(by="session")] == ["f", None]
    store.delete_session("f", now=NOW)
    assert store.usages() == []
    assert store.verify() == []


def test_a_log_for_sql_has_each_once(url: str) -> None:
    """`usage_log` tells what is recorded, whatever forks there are."""
    with Store(url, durability="normal") as store:
        chat(store, "s", owner="ann")
        store.record_usage(
            "s", input=3, output=1, model="m", provider="p", details={"a": 1}, cost=2, now=NOW
        )
        for name in ("f", "g"):
            store.fork("s", session_id=name, now=NOW)
        with store.database.reading() as connection:
            rows = connection.exec_driver_sql("SELECT * FROM usage_log").mappings().all()
        (row,) = map(dict, rows)
        assert row == {
            "session_id": "s",
            "branch": 1,
            "seq": 4,
            "at": "2027-01-15T08:00:00.000Z",
            "owner": "ann",
            "model": "m",
            "provider": "p",
            "input": 3,
            "output": 1,
            "cached": 0,
            "written": 0,
            "cost": 2.0,
            "details": '{"a":1}',
        }


# --- prices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("anthropic/claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4.1", "gpt-4.1"),
        ("GPT-5-mini", "gpt-5-mini"),
    ],
)
def test_a_model_is_known_by_its_names(name: str, plain: str) -> None:
    """With its day, its version, and by whomever it is resold; no other model for it."""
    assert normalize_model_name(name) == plain
    assert load_prices().of(name) == load_prices().models[plain]


@pytest.mark.parametrize("name", ["claude-opus-4-99", "gpt-4o-audio", "gpt-5-pro", "", None])
def test_no_price_is_guessed(name: str | None) -> None:
    """A name that only begins like a known one is unknown."""
    assert load_prices().of(name) is None


def test_the_table_is_whole() -> None:
    """It has a day, and no price of it is nothing."""
    listed = load_prices()
    assert listed.as_of is not None
    for name, price in listed.models.items():
        assert None not in (price.input, price.cached, price.written, price.output)
        assert 0 < price.cached <= price.input < price.output, name  # type: ignore[operator]
        assert price.written >= price.input, name  # type: ignore[operator]


def test_ones_own_prices_come_first(store: Store, tmp_path: Path) -> None:
    """For a model of one's own, and in place of the public ones."""
    chat(store, "s")
    store.record_usage("s", input=10**6, output=0, model="local", now=NOW)
    store.record_usage("s", input=10**6, output=0, cached=10**6, model=SONNET, now=NOW)
    file = tmp_path / "prices.toml"
    file.write_text(
        '[models]\nlocal = { input = 0.5, output = 1 }\n"claude-sonnet-4-5" = '
        "{ input = 2, output = 4, cached = 1 }\n"
    )
    assert [each.cost for each in store.usages(prices=file)] == [0.5, 1.0]
    totals = store.usage_totals(prices=str(file), by="session")
    assert [(each.cost, each.unpriced) for each in totals] == [(1.5, 0)]
    assert load_prices(file).of("gpt-5") == load_prices().of("gpt-5")
    assert load_prices(file).of("local") == ModelPrice("", "local", 0, 0.5, 0.5, 0.5, 1)


@pytest.mark.parametrize(
    "text",
    [
        "[models",
        "[models]\nx = 5",
        "[models]\nx = { input = 1 }",
        "[models]\nx = { input = -1, output = 1 }",
        "[models]\nx = { input = nan, output = 1 }",
        "[models]\nx = { input = 1, output = 1, per = 3 }",
        "[prices]\nx = { input = 1, output = 1 }",
    ],
)
def test_what_is_no_table_is_refused(store: Store, tmp_path: Path, text: str) -> None:
    """The error names the file."""
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(InvalidValue, match=r"prices\.toml"):
        store.usages(prices=file)
    with pytest.raises(InvalidValue, match="missing"):
        store.usage_totals(prices=tmp_path / "missing")
