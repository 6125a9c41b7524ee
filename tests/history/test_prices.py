"""Prices are rows: by model, owner and day; the view of costs and the totals agree on them."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from store import Scoped, Store
from store.database import prices, settings
from store.errors import InvalidValue
from store.history.model_prices import PRICES_FILE, ModelPrice
from store.history.price_files import read_prices

DAY = 86_400_000
BEGIN = 1_767_225_600_000  # 2026-01-01, a Thursday
JULY = 1_784_505_600_000  # 2026-07-20
SONNET = "claude-sonnet-4-5-20250929"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url, durability="normal") as opened:
        yield opened


def chat(store: Store, session_id: str, owner: str | None = None, root: str | None = None) -> None:
    """Create a session with a message."""
    store.create_session(session_id, owner=owner, project_root=root, now=BEGIN)
    store.append(session_id, {"role": "user", "content": "Hi"}, now=BEGIN)


def written(path: Path, text: str) -> Path:
    """Write a file of prices."""
    path.write_text(f"[models]\n{text}\n")
    return path


def rows(store: Store, statement: str) -> list[dict[str, Any]]:
    """Return the rows of a query."""
    with store.database.reading() as connection:
        return [dict(row) for row in connection.exec_driver_sql(statement).mappings()]


# --- Prices of days and owners --------------------------------------------------------------------


def test_a_store_has_the_prices_of_the_release(store: Store) -> None:
    """Each of them is valid from the beginning of time, for everybody."""
    assert store.prices() == sorted(read_prices(PRICES_FILE))
    assert {(each.owner, each.valid_from) for each in store.prices()} == {("", 0)}


def test_a_usage_is_priced_by_its_day(store: Store, tmp_path: Path) -> None:
    """The price of the UTC day on which it was made."""
    file = written(
        tmp_path / "own.toml",
        "local = [{ input = 1, output = 0 }, { input = 3, output = 0, from = 2026-07-20 }]",
    )
    chat(store, "s")
    moments = (BEGIN, JULY - 1, JULY, JULY + DAY)
    for at in moments:
        store.record_usage("s", input=10**6, output=0, model="local", now=at)
    assert [each.cost for each in store.usages("s", prices=file)] == [1, 1, 3, 3]
    assert [each.cost for each in store.usages("s")] == [None] * 4
    stored = store.set_prices(file)
    assert [(each.model, each.valid_from, each.input) for each in stored] == [
        ("local", 0, 1),
        ("local", JULY, 3),
    ]
    assert [each.cost for each in store.usages("s")] == [1, 1, 3, 3]
    assert store.usage_totals(by="model")[0].cost == 8
    months = [(each.name, each.cost) for each in store.usage_totals(by="month")]
    assert months == [("2026-01", 1), ("2026-07", 7)]
    priced = rows(store, "SELECT cost, price_model, price_from FROM usage_costs ORDER BY number")
    assert [each["cost"] for each in priced] == [1, 1, 3, 3]
    assert {each["price_model"] for each in priced} == {"local"}
    assert priced[-1]["price_from"] == "2026-07-20T00:00:00.000Z"


def test_a_later_price_alone_leaves_earlier_usages_unpriced(store: Store, tmp_path: Path) -> None:
    """Where an earlier price of everybody is stored, that one counts."""
    text = "{ input = 9, output = 9, from = 2026-07-20 }"
    file = written(tmp_path / "own.toml", f'local = {text}\n"claude-sonnet-4-5" = {text}')
    chat(store, "s")
    for model in ("local", SONNET):
        store.record_usage("s", input=10**6, output=0, model=model, now=BEGIN)
    assert [each.cost for each in store.usages("s", prices=file)] == [None, 3]
    store.set_prices(file)
    assert [each.cost for each in store.usages("s")] == [None, 3]
    assert rows(store, "SELECT cost FROM usage_costs ORDER BY number") == [
        {"cost": None},
        {"cost": 3},
    ]


def test_prices_of_an_owner_come_first(store: Store, tmp_path: Path) -> None:
    """They price the owner's sessions alone, and no other owner's."""
    store.set_prices(written(tmp_path / "a.toml", "local = { input = 1, output = 0 }"))
    store.set_prices(written(tmp_path / "b.toml", "local = { input = 5, output = 0 }"), owner="ann")
    for owner in ("ann", "bob", None):
        chat(store, f"of {owner}", owner)
        kept = store.record_usage(f"of {owner}", input=10**6, output=0, model="local", now=BEGIN)
        assert kept.cost == (5 if owner == "ann" else 1)
    costs = {each.session_id: each.cost for each in store.usages()}
    assert costs == {"of ann": 5, "of bob": 1, "of None": 1}
    assert {each.name: each.cost for each in store.usage_totals(by="session")} == costs
    found = rows(store, "SELECT session_id, cost FROM usage_costs")
    assert {each["session_id"]: each["cost"] for each in found} == costs
    scoped: Scoped = store.scoped("bob")
    assert [each.cost for each in scoped.usage_totals()] == [1]
    assert {each.owner for each in store.prices("bob")} == {""}
    assert {each.owner for each in store.prices("ann")} == {"", "ann"}


def test_a_part_without_a_price_is_unpriced(store: Store) -> None:
    """If the request has tokens of that kind; a recorded cost needs no price."""
    row = ModelPrice("", "half", 0, 2.0, 1.0, None, 4.0)
    with store.database.writing() as connection:
        connection.execute(insert(prices).values(**row._asdict()))
    chat(store, "s")
    spent = {"input": 10**6, "output": 0, "model": "half", "now": BEGIN}
    store.record_usage("s", **spent)
    store.record_usage("s", **spent, written=1)
    store.record_usage("s", **spent, written=1, cost=7)
    assert [each.cost for each in store.usages()] == [2, None, 7]
    found = rows(store, "SELECT cost, price_model FROM usage_costs ORDER BY number")
    assert [(each["cost"], each["price_model"]) for each in found] == [
        (2, "half"),
        (None, "half"),
        (7, None),
    ]
    (total,) = store.usage_totals()
    assert (total.cost, total.unpriced, total.requests) == (9, 1, 3)


@pytest.mark.parametrize(
    "text",
    [
        "x = []\ny = 5",
        "x = [{ input = 1 }]",
        "x = { input = 1, output = 1, from = 'monday' }",
        "x = { input = 1, output = 1, until = 2026-07-20 }",
    ],
)
def test_a_file_that_is_no_list_of_prices_is_refused(
    store: Store, tmp_path: Path, text: str
) -> None:
    """Nothing of it is stored."""
    before = store.prices()
    with pytest.raises(InvalidValue, match=r"own\.toml"):
        store.set_prices(written(tmp_path / "own.toml", text))
    assert store.prices() == before


# --- Prices of a newer release --------------------------------------------------------------------


def test_a_newer_release_adds_its_prices(url: str, tmp_path: Path) -> None:
    """Models that a user has priced keep the user's prices; all others get the release's."""
    with Store(url, durability="normal") as store:
        store.set_prices(written(tmp_path / "own.toml", "gpt-5 = { input = 7, output = 8 }"))
        with store.database.writing() as connection:
            connection.execute(delete(prices).where(prices.c.model == "gpt-4o"))
            forget = update(settings).where(settings.c.name == "prices").values(value="older")
            connection.execute(forget)
    with Store(url, durability="normal") as store:
        by_model = {each.model: each for each in store.prices()}
        assert by_model["gpt-5"].input == 7
        assert by_model["gpt-4o"].input == 2.5
        with store.database.writing() as connection:
            connection.execute(delete(prices).where(prices.c.model == "gpt-4o"))
    with Store(url, durability="normal") as store:
        assert "gpt-4o" not in {each.model for each in store.prices()}
        with store.database.reading() as connection:
            assert len(connection.execute(select(settings)).all()) >= 2


# --- Totals and the view --------------------------------------------------------------------------


def spend(store: Store, count: int = 150) -> None:
    """Record usages of several owners, projects, models and months."""
    chance = random.Random(7)
    for number in range(6):
        owner, root = ("ann", "bob", None)[number % 3], ("/a", "/b")[number % 2]
        chat(store, f"s{number}", owner, root)
    models = [SONNET, "gpt-5", "openai/gpt-4o-2024-08-06", "local", "unknown", None]
    for _ in range(count):
        cached, put = chance.randrange(900), chance.randrange(900)
        store.record_usage(
            f"s{chance.randrange(6)}",
            input=chance.randrange(1000) + cached + put,
            output=chance.randrange(100),
            cached=cached,
            written=put,
            model=chance.choice(models),
            cost=chance.choice([None, None, 0.001]),
            now=BEGIN + chance.randrange(300 * DAY),
        )
    store.fork("s1", session_id="fork", now=BEGIN)


def price(store: Store, tmp_path: Path) -> None:
    """Store prices of several days, and of one owner."""
    text = "local = [{ input = 1, output = 2 }, { input = 3, output = 4, from = 2026-07-20 }]"
    store.set_prices(written(tmp_path / "all.toml", text))
    text = '"gpt-5" = { input = 0.5, output = 2, from = 2026-03-01 }'
    store.set_prices(written(tmp_path / "ann.toml", text), owner="ann")


def test_the_view_of_costs_and_totals_agree(store: Store, tmp_path: Path) -> None:
    """To 10⁻⁹ dollars, by each key; each usage stands in the view once."""
    spend(store)
    price(store, tmp_path)
    for by, key in (
        ("model", "model"),
        ("session", "session_id"),
        ("owner", "owner"),
        ("month", "substr(at, 1, 7)"),
        ("day", "substr(at, 1, 10)"),
    ):
        said = rows(
            store,
            f"SELECT {key} AS name, SUM(cost) AS cost, COUNT(*) - COUNT(cost) AS unpriced"
            f" FROM usage_costs GROUP BY 1",
        )
        summed = {each["name"]: (each["cost"], each["unpriced"]) for each in said}
        totals = store.usage_totals(by=by)
        assert {each.name for each in totals} == {*summed}
        for each in totals:
            cost, unpriced = summed[each.name]
            assert each.unpriced == unpriced
            assert (each.cost is None) == (cost is None)
            assert abs((each.cost or 0) - (cost or 0)) <= 1e-9, each
    listed = {(u.session_id, u.branch, u.seq, u.number): u.cost for u in store.usages()}
    seen = rows(store, "SELECT * FROM usage_costs")
    assert len(seen) == len(listed) == 150
    for row in seen:
        cost = listed[row["session_id"], row["branch"], row["seq"], row["number"]]
        assert (row["cost"] is None) == (cost is None)
        assert math.isclose(row["cost"] or 0, cost or 0, abs_tol=1e-12)


ZONES = [("UTC", UTC), ("Asia/Kathmandu", timezone(timedelta(hours=5, minutes=45)))]


@pytest.mark.parametrize(("zone", "clock"), ZONES, ids=str)
def test_totals_by_several_keys(store: Store, tmp_path: Path, zone: str, clock: timezone) -> None:
    """A name is a tuple in the order of the keys; times are in order, then the dearest."""
    spend(store)
    price(store, tmp_path)
    roots = {each.id: each.project_root for each in store.sessions()}
    totals = store.usage_totals(by=["project", "week", "model"], zone=zone)
    expected: dict[tuple[str | None, ...], list[float | None]] = {}
    for usage in store.usages():
        moment = datetime.fromtimestamp(usage.at / 1000, clock)
        year, week, _ = moment.isocalendar()
        name = (roots[usage.session_id], f"{year}-W{week:02}", usage.model)
        expected.setdefault(name, []).append(usage.cost)
    assert {each.name for each in totals} == {*expected}
    for each in totals:
        known = [cost for cost in expected[each.name] if cost is not None]
        assert each.requests == len(expected[each.name])
        assert each.unpriced == len(expected[each.name]) - len(known)
        assert each.cost == (pytest.approx(sum(known)) if known else None)
    ranks = [(each.name[1], -(each.cost or 0)) for each in totals]
    assert ranks == sorted(ranks)
    assert store.usage_totals(by=["project", "week", "model"], zone=clock) == totals


def test_a_list_of_one_key_names_by_tuples(store: Store) -> None:
    """So that a program that takes any list finds one shape."""
    chat(store, "s", root="/a")
    store.record_usage("s", input=1, output=1, now=BEGIN)
    assert [each.name for each in store.usage_totals(by=["project"])] == [("/a",)]
    assert [each.name for each in store.usage_totals(by="project")] == ["/a"]
    assert [each.name for each in store.usage_totals(by="source")] == [None]
    assert [each.name for each in store.usage_totals(by="week")] == ["2026-W01"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"by": []}, "at least one"),
        ({"by": ["model", "colour"]}, "colour"),
        ({"by": 5}, "not 5"),
        ({"by": [["model"]]}, "by is one of"),
        ({"by": "day", "zone": "Mars"}, "zone must be"),
        ({"by": "day", "zone": 5}, "zone must be"),
        ({"by": "day", "zone": None}, "zone must be"),
        ({"by": "day", "zone": "a\0"}, "zone must be"),
    ],
    ids=str,
)
def test_keys_and_zones_that_do_not_exist(store: Store, wrong: dict[str, Any], said: str) -> None:
    """An error of the store's own."""
    with pytest.raises(InvalidValue, match=said):
        store.usage_totals(**wrong)


@pytest.mark.slow
def test_a_store_is_opened_without_what_reads_files(tmp_path: Path) -> None:
    """Pydantic alone takes a third of the time in which a program opens a store."""
    with Store(tmp_path / "chat.db"):
        pass
    code = (
        "import sys; from store import Store; Store('chat.db').close();"
        "print({'pydantic', 'tomllib', 'store.history.price_files'} & {*sys.modules})"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout == "set()\n"
