"""The cost of a request: the tokens of each kind at its model's price on that day.

Prices are rows of the table `prices`, of everybody and of single owners. The rows that come with
the release are data, `prices.toml` beside this module, which names the day of its prices; a user's
own file has the same shape.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError

from ..clock import require_moment
from ..errors import InvalidValue, check_readable_to_end, describe_read_error, quote_value

PRICES_FILE = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000
DAY_MS = 86_400_000
EVERYBODY = ""
"""The owner of prices that are valid for the usages of all owners, and of none."""

TOKEN_KINDS = ("input", "cached", "written", "output")
"""The kinds of tokens that have a price."""

FilePath: TypeAlias = str | os.PathLike[str]


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
        plain = tokens["input"] - tokens["cached"] - tokens["written"]
        amounts = {**tokens, "input": plain}
        costs: list[float] = []
        for kind in TOKEN_KINDS:
            price = getattr(self, kind)
            if price is None and amounts[kind]:
                return None
            costs.append((price or 0.0) * amounts[kind])
        return math.fsum(costs) / MILLION


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


def normalize_model_name(model: str) -> str:
    """Return a model's name without its reseller, date and version."""
    return _VERSION_SUFFIX.sub("", _RESELLER_PREFIX.sub("", model.lower(), count=1), count=1)


class _PriceRow(BaseModel):
    """A line of a table of prices."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None
    written: NonNegativeFloat | None = None
    first_day: date | None = Field(None, alias="from")

    def build_price(self, owner: str, model: str) -> ModelPrice:
        """Return the price; a cache without a price of its own costs as much as plain input."""
        valid_from = 0
        if self.first_day is not None:
            valid_from = require_moment(datetime.combine(self.first_day, time(), UTC))
        caches = (self.cached, self.written)
        cached, written = (self.input if each is None else each for each in caches)
        return ModelPrice(owner, model, valid_from, self.input, cached, written, self.output)


class _PriceTable(BaseModel):
    """A file of prices."""

    model_config = ConfigDict(extra="forbid")

    as_of: date | None = None
    models: dict[str, _PriceRow | list[_PriceRow]] = {}


class ModelPrices(NamedTuple):
    """Prices by model, the newest of each, and the day of these prices."""

    as_of: date | None
    models: dict[str, ModelPrice]

    def of(self, model: str | None) -> ModelPrice | None:
        """Return the price of a model by the provider's name for it, None if it is not known."""
        if model is None:
            return None
        return self.models.get(model) or self.models.get(normalize_model_name(model))

    def cost(self, model: str | None, tokens: Mapping[str, int]) -> float | None:
        """Return the cost of tokens of a model, None if its price is not known."""
        price = self.of(model)
        return price.cost(tokens) if price else None


def load_prices(own: FilePath | None = None) -> ModelPrices:
    """Return the newest prices of the release; those of a file of one's own take precedence.

    Raises InvalidValue for a file that cannot be read, or is not a table of prices.
    """
    released = _load_released_prices()
    if own is None:
        return released
    return released._replace(models=released.models | _index_newest(read_prices(own)))


@cache
def _load_released_prices() -> ModelPrices:
    return ModelPrices(
        _read_price_table(PRICES_FILE).as_of, _index_newest(read_prices(PRICES_FILE))
    )


def _index_newest(rows: Iterable[ModelPrice]) -> dict[str, ModelPrice]:
    return {row.model: row for row in sorted(rows)}


def read_prices(path: FilePath, owner: str = EVERYBODY) -> list[ModelPrice]:
    """Return the prices of a file, as those of an owner. Raises InvalidValue as `load_prices`."""
    models = _read_price_table(path).models
    return [
        row.build_price(owner, model)
        for model, rows in models.items()
        for row in (rows if isinstance(rows, list) else [rows])
    ]


def _read_price_table(path: FilePath) -> _PriceTable:
    try:
        file = Path(path)
        check_readable_to_end(file)
        return _PriceTable.model_validate(tomllib.loads(file.read_text("utf-8")))
    except ValidationError as error:
        raise InvalidValue(
            f"no prices can be read from {path}: {_render_first_error(error)}"
        ) from error
    except TypeError as error:
        raise InvalidValue(f"prices must be the path of a file, not {quote_value(path)}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"no prices can be read from {path}: {describe_read_error(error)}"
        ) from error


def _render_first_error(error: ValidationError) -> str:
    """Return the place of the first error in a table, and the error."""
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
