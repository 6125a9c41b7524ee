"""What erased sessions cost is kept: totals and the costs of SQL are those of before."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from store import InvalidValue, Store
from store.inspection import query

DAY = 86_400_000
NOW = 1_790_000_000_000
MODELS = ("gpt-5", "claude-sonnet-4-5", "nobody-knows", None)
GROUPED = ("model", "owner", "project", "source", "month", ["day", "model", "source"])


def fill(store: Store, seed: int) -> list[str]:
    """Make sessions with forks, rewinds and usages of many days; return their ids."""
    dice, names = random.Random(seed), list[str]()
    for number in range(8):
        name = f"{seed}-{number}"
        if names and dice.random() < 0.5:
            source = dice.choice(names)
            store.fork(source, at=dice.randint(0, store.session(source).head), session_id=name)
        else:
            owner = dice.choice(["ann", "bob", None])
            store.create_session(name, owner=owner, project_root=dice.choice(["/p", "/q", None]))
            store.set_origin(name, dice.choice(["codex", None]), None)
        for _ in range(5):
            store.append(name, {"role": "user", "content": "x"})
            given = {"model": dice.choice(MODELS), "cost": dice.choice([None, None, 0.25])}
            tokens = dice.randint(0, 10**6)
            cached = dice.choice([0, tokens // 2])
            at = NOW - dice.randint(0, 60 * DAY)
            output = dice.choice([0, 7])
            store.record_usage(name, input=tokens, cached=cached, output=output, now=at, **given)
        store.rewind(name, dice.randint(0, store.session(name).head))
        names.append(name)
    return names


def sum_up(store: Store) -> dict[str, Any]:
    """Return all totals, with costs as sums that do not depend on an order."""
    found: dict[str, Any] = {}
    for by in GROUPED:
        for each in store.usage_totals(by=by):
            found[f"{by} {each.name}"] = (
                each.requests,
                each.input,
                each.output,
                each.cached,
                each.unpriced,
                round(each.cost or 0, 9),
            )
    return found


def sum_costs(url: str) -> float:
    """Return what all usages cost, by the view for people."""
    return float(query(url, "SELECT SUM(cost) FROM usage_costs").rows[0][0])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_totals_outlive_sessions(url: str, seed: int) -> None:
    """Whichever are erased in whatever order, one by one."""
    with Store(url) as store:
        names = fill(store, seed)
        told, cost = sum_up(store), sum_costs(url)
        assert math.isclose(cost, sum(x.cost or 0 for x in store.usage_totals()), abs_tol=1e-9)
        random.Random(seed).shuffle(names)
        for name in names:
            store.delete_session(name)
            assert sum_up(store) == told
            assert math.isclose(sum_costs(url), cost, abs_tol=1e-9)
        assert store.sessions() == []
        assert store.usages() == []
        assert store.verify() == []


def test_they_go_where_that_is_asked(url: str) -> None:
    """With their session, or with all of their owner; or they stay and tell of nobody."""
    with Store(url) as store:
        for name, owner in (("a", "ann"), ("b", "ann"), ("c", "bob"), ("d", "bob")):
            store.create_session(name, owner=owner, project_root="/p")
            store.record_usage(name, input=10, output=1, cost=1.0, now=NOW)
        store.delete_session("a", costs="erase")
        assert [each.cost for each in store.usage_totals()] == [3.0]
        store.delete_session("b", "c")
        assert store.usage_totals("d")[0].cost == 1.0
        owners = {each.name: each.cost for each in store.usage_totals(by="owner")}
        assert owners == {"ann": 1.0, "bob": 2.0}
        assert store.scoped("ann").usage_totals(by="project")[0].cost == 1.0
        store.delete_owner("ann")
        assert {each.name for each in store.usage_totals(by="owner")} == {"bob"}
        store.delete_owner("bob", costs="anonymous")
        (left,) = store.usage_totals(by=["owner", "project", "day"])
        assert (left.name, left.cost) == ((None, None, "2026-09-21"), 2.0)
        assert store.verify() == []
        with pytest.raises(InvalidValue, match="costs is one of"):
            store.delete_owner("ann", costs="keep")
        with pytest.raises(InvalidValue, match="costs is one of"):
            store.delete_session("x", costs="all")
        with pytest.raises(InvalidValue, match="costs is one of"):
            store.prune(1, costs="all")


def test_a_prune_keeps_them_too(url: str) -> None:
    """Or erases them; a day counts by its beginning."""
    with Store(url) as store:
        for name in ("a", "b"):
            store.create_session(name, now=NOW - 100 * DAY)
            store.record_usage(name, input=10, output=1, cost=1.0, now=NOW - 100 * DAY)
        store.prune(90, now=NOW, dry_run=False)
        assert store.usage_totals()[0].cost == 2.0
        start = (NOW - 100 * DAY) // DAY * DAY
        assert store.usage_totals(since=start, until=start + 1)[0].cost == 2.0
        assert store.usage_totals(since=start + 1) == []
        store.create_session("c", now=NOW - 100 * DAY)
        store.record_usage("c", input=10, output=1, cost=1.0, now=NOW)
        store.prune(90, now=NOW, dry_run=False, costs="erase")
        assert store.usage_totals()[0].cost == 2.0


def test_a_whole_store_takes_them_along(tmp_path: Path) -> None:
    """Its export has them, and an import brings them in."""
    from store.exporting import export_store
    from store.importing import import_file

    with Store(tmp_path / "a.db") as store, Store(tmp_path / "b.db") as other:
        names = fill(store, 1)
        store.delete_session(*names[:4])
        told = sum_up(store)
        export_store(store, tmp_path / "all.jsonl")
        import_file(other, tmp_path / "all.jsonl")
        assert sum_up(other) == told
