"""What imported sessions cost: the view of costs and the totals agree, whatever their program."""

from __future__ import annotations

import math
from pathlib import Path

from made_up import SAMPLES
from test_imported_usages import CLAUDE, rollout, written

from store import Store
from store.importing import import_file

PROGRAMS = ("inspect", "exchanges", "qwen_code", "gemini_cli", "langgraph")


def test_costs_in_sql_are_those_of_the_totals(url: str, tmp_path: Path) -> None:
    """Of a home of seven programs, to 10⁻⁹ dollars; no import records a cost of its own."""
    with Store(url, durability="normal") as store:
        for kind in PROGRAMS:
            folder = tmp_path / kind
            folder.mkdir()
            path = folder / f"{kind}.jsonl"
            SAMPLES[kind](path)
            import_file(store, path)
        import_file(store, written(tmp_path / "claude.jsonl", CLAUDE))
        import_file(store, written(tmp_path / "rollout.jsonl", rollout([[(10, 10)], [(20, 30)]])))
        models = {each.model for each in store.usages()} - {None}
        lines = (f'"{model}" = {{ input = 0.7, output = 1.9 }}' for model in models)
        own = tmp_path / "own.toml"
        own.write_text("[models]\n" + "\n".join(lines))
        store.set_prices(own)
        with store.database.reading() as connection:
            rows = connection.exec_driver_sql("SELECT session_id, cost FROM usage_costs").all()
        totals = store.usage_totals(by="session")
        assert len(totals) == 7
        for total in totals:
            costs = [cost for name, cost in rows if name == total.name and cost is not None]
            assert abs(math.fsum(costs) - (total.cost or 0)) <= 1e-9, total
        assert sum(each.requests for each in totals) == len(rows)
        assert sum(each.cost or 0 for each in totals) > 0
