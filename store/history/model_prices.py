"""The cost of a request: the tokens of each kind at its model's price.

The table is data, `prices.toml` beside this module, and names the day of its prices. A user's own
file of the same shape takes precedence.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from operator import mul
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, ValidationError

from ..errors import InvalidValue, check_readable_to_end, describe_read_error, quote_value

PRICES_FILE = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000

FilePath: TypeAlias = str | os.PathLike[str]


class Price(NamedTuple):
    """The price of a million tokens of a model, in US dollars.

    ``cached`` tokens are read from the provider's cache, ``written`` tokens are put into it, and
    ``input`` is all other input.
    """

    input: float
    output: float
    cached: float
    written: float

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the cost of tokens; ``input`` includes those ``cached`` and ``written``."""
        plain = tokens["input"] - tokens["cached"] - tokens["written"]
        amounts = (plain, tokens["output"], tokens["cached"], tokens["written"])
        return math.fsum(map(mul, self, amounts)) / MILLION


class ModelPrices(NamedTuple):
    """Prices by model, and the day of these prices."""

    as_of: date | None
    models: dict[str, Price]

    def of(self, model: str | None) -> Price | None:
        """Return the price of a model by the provider's name for it, None if it is not known."""
        if model is None:
            return None
        return self.models.get(model) or self.models.get(normalize_model_name(model))

    def cost(self, model: str | None, tokens: Mapping[str, int]) -> float | None:
        """Return the cost of tokens of a model, None if its price is not known."""
        price = self.of(model)
        return price.cost(tokens) if price else None


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

    @property
    def price(self) -> Price:
        """The price; a cache without a price of its own costs as much as plain input."""
        kinds = (self.cached, self.written)
        cached, written = (self.input if each is None else each for each in kinds)
        return Price(self.input, self.output, cached, written)


class _PriceTable(BaseModel):
    """A file of prices."""

    model_config = ConfigDict(extra="forbid")

    as_of: date | None = None
    models: dict[str, _PriceRow] = {}


def load_prices(own: FilePath | None = None) -> ModelPrices:
    """Return all known prices; those of a file of one's own take precedence.

    Raises InvalidValue for a file that cannot be read, or is not a table of prices.
    """
    public = _load_public_prices()
    if own is None:
        return public
    return public._replace(models=public.models | _read_price_list(own).models)


@cache
def _load_public_prices() -> ModelPrices:
    return _read_price_list(PRICES_FILE)


def _read_price_list(path: FilePath) -> ModelPrices:
    try:
        file = Path(path)
        check_readable_to_end(file)
        table = _PriceTable.model_validate(tomllib.loads(file.read_text("utf-8")))
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
    models = {name: row.price for name, row in table.models.items()}
    return ModelPrices(table.as_of, models)


def _render_first_error(error: ValidationError) -> str:
    """Return the place of the first error in a table, and the error."""
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
