"""The cost of a request: the tokens of each kind at its model's price on that day.

Prices are rows of the table `prices`, of everybody and of single owners. The rows that come with
the release are data, `prices.toml` beside this module, which names the day of its prices; a user's
own file has the same shape (`price_files`). This module is imported when a store is opened, so it
imports little.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from functools import lru_cache
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

from ..clock import require_moment

PRICES_FILE = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000
DAY_MS = 86_400_000
EVERYBODY = ""
"""The owner of prices that are valid for the usages of all owners, and of none."""


class ModelPrice(NamedTuple):
    """The price of a million tokens of a model in US dollars, from a moment on (ms).

    ``cached`` tokens are read from the provider's cache, ``written`` tokens are put into it, and
    ``input`` is all other input; None is no price. It is valid until the next one of the model, for
    the sessions of ``owner`` (empty: of everybody, unless an owner has prices of that day).
    """

    owner: str
    model: str
    valid_from: int
    input: float | None
    cached: float | None
    written: float | None
    output: float | None

    def cost(self, tokens: Mapping[str, int]) -> float | None:
        """Return the cost of tokens; ``input`` includes those ``cached`` and ``written``.

        It is None if there are tokens of a kind without a price.
        """
        cached, written = tokens["cached"], tokens["written"]
        amounts = (tokens["input"] - cached - written, cached, written, tokens["output"])
        prices = (self.input, self.cached, self.written, self.output)
        if any(amount for amount, price in zip(amounts, prices, strict=True) if price is None):
            return None
        return math.fsum(map(mul, amounts, (price or 0.0 for price in prices))) / MILLION


class PriceList:
    """Prices by owner and model, in the order of their first days.

    Of several lists the first takes precedence that has a price of the model on that day.
    """

    def __init__(self, *lists: Iterable[ModelPrice]) -> None:
        self.prices: list[dict[tuple[str, str], list[ModelPrice]]] = []
        for rows in lists:
            by_model: dict[tuple[str, str], list[ModelPrice]] = {}
            for row in sorted(rows):
                by_model.setdefault((row.owner, row.model), []).append(row)
            self.prices.append(by_model)

    @property
    def owners(self) -> set[str]:
        """The owners who have prices of their own."""
        return {row.owner for row in self} - {EVERYBODY}

    @property
    def has_dates(self) -> bool:
        """Whether any price is not valid from the beginning of time."""
        return any(row.valid_from > 0 for row in self)

    @property
    def has_gaps(self) -> bool:
        """Whether any price lacks that of a kind of tokens."""
        return any(None in row for row in self)

    def __iter__(self) -> Iterator[ModelPrice]:
        """Yield all prices."""
        return (row for prices in self.prices for each in prices.values() for row in each)

    def find(self, model: str | None, owner: str | None, at: int) -> ModelPrice | None:
        """Return the price of a model, by the provider's name for it, on the day of a moment."""
        if model is None:
            return None
        day = at - at % DAY_MS
        for prices in self.prices:
            name = _find_listed_name(prices, model, owner)
            for key in ((owner or EVERYBODY, name), (EVERYBODY, name)):
                rows = prices.get(key, [])
                number = bisect_right(rows, day, key=lambda row: row.valid_from)
                if number:
                    return rows[number - 1]
        return None

    def cost(
        self, model: str | None, owner: str | None, at: int, tokens: Mapping[str, int]
    ) -> float | None:
        """Return the cost of tokens of a model, None if a price is not known."""
        price = self.find(model, owner, at)
        return price.cost(tokens) if price else None


def _find_listed_name(
    prices: Mapping[tuple[str, str], object], model: str, owner: str | None
) -> str:
    """Return the name of a model in prices: the provider's, or that without date and version."""
    is_listed = (EVERYBODY, model) in prices or (owner or EVERYBODY, model) in prices
    return model if is_listed else normalize_model_name(model)


_RESELLER_PREFIX = re.compile(r"^(.*/)?(([a-z]+\.)?anthropic\.)?")
_VERSION_SUFFIX = re.compile(r"([-@](\d{8}|\d{4}-\d\d-\d\d|latest))?(-v\d+(:\d+)?)?(\[\w+\])?$")


@lru_cache(maxsize=1 << 10)
def normalize_model_name(model: str) -> str:
    """Return a model's name without its reseller, date and version."""
    return _VERSION_SUFFIX.sub("", _RESELLER_PREFIX.sub("", model.lower(), count=1), count=1)


def build_price(owner: str, model: str, values: Mapping[str, Any]) -> ModelPrice:
    """Return the price of a line of a file; a cache without a price costs as plain input."""
    first_day: date | None = values.get("from")
    valid_from = 0
    if first_day is not None:
        valid_from = require_moment(datetime.combine(first_day, time(), UTC))
    plain = values["input"]
    cached, written = (
        plain if values.get(kind) is None else values[kind] for kind in ("cached", "written")
    )
    return ModelPrice(owner, model, valid_from, plain, cached, written, values["output"])


def build_prices(owner: str, models: Mapping[str, Any]) -> list[ModelPrice]:
    """Return the prices of the models of a file: a line, or a list of lines, for each."""
    return [
        build_price(owner, model, line)
        for model, lines in models.items()
        for line in (lines if isinstance(lines, list) else [lines])
    ]


def read_release_prices() -> list[ModelPrice]:
    """Return the prices that come with the release."""
    import tomllib

    return build_prices(EVERYBODY, tomllib.loads(PRICES_FILE.read_text("utf-8"))["models"])
