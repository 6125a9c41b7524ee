"""What a request costs: the tokens of each kind at its model's price.

The table is data, `prices.toml` beside this module, and says of which day it is. A user's own file
of the same shape stands before it.
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
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, ValidationError

from ..errors import InvalidValue, check_ends, in_words, quoted

TABLE = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000

FilePath: TypeAlias = str | os.PathLike[str]


class Price(NamedTuple):
    """What a million tokens of a model cost, in US dollars.

    ``cached`` are read from the provider's cache, ``written`` put into it, ``input`` is all other
    input.
    """

    input: float
    output: float
    cached: float
    written: float

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return what tokens cost; of the ``input`` some are ``cached``, some ``written``."""
        plain = tokens["input"] - tokens["cached"] - tokens["written"]
        amounts = (plain, tokens["output"], tokens["cached"], tokens["written"])
        return math.fsum(map(mul, self, amounts)) / MILLION


class PriceList(NamedTuple):
    """Prices by model, and the day on which they held."""

    as_of: date | None
    models: dict[str, Price]

    def of(self, model: str | None) -> Price | None:
        """Return the price of a model, named as providers name it; None where it is not known."""
        if model is None:
            return None
        return self.models.get(model) or self.models.get(plain_name(model))

    def cost(self, model: str | None, tokens: Mapping[str, int]) -> float | None:
        """Return what tokens of a model cost, None where its price is not known."""
        price = self.of(model)
        return price.cost(tokens) if price else None


_RESOLD = re.compile(r"^(.*/)?(([a-z]+\.)?anthropic\.)?")
_DATED = re.compile(r"([-@](\d{8}|\d{4}-\d\d-\d\d|latest))?(-v\d+(:\d+)?)?(\[\w+\])?$")


def plain_name(model: str) -> str:
    """Return a model's name without whoever resells it, its day and its version."""
    return _DATED.sub("", _RESOLD.sub("", model.lower(), count=1), count=1)


class _Row(BaseModel):
    """A line of a table of prices."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None
    written: NonNegativeFloat | None = None

    @property
    def price(self) -> Price:
        """The price; what is not said of a cache costs as plain input does."""
        kinds = (self.cached, self.written)
        cached, written = (self.input if each is None else each for each in kinds)
        return Price(self.input, self.output, cached, written)


class _Table(BaseModel):
    """A file of prices."""

    model_config = ConfigDict(extra="forbid")

    as_of: date | None = None
    models: dict[str, _Row] = {}


def load_prices(own: FilePath | None = None) -> PriceList:
    """Return the prices that are known, those of a file of one's own before all others.

    Raises InvalidValue for a file that cannot be read, or is no table of prices.
    """
    public = _public()
    if own is None:
        return public
    return public._replace(models=public.models | _read(own).models)


@cache
def _public() -> PriceList:
    return _read(TABLE)


def _read(path: FilePath) -> PriceList:
    table = _table(path)
    models = {name: row.price for name, row in table.models.items()}
    return PriceList(table.as_of, models)


def _table(path: FilePath) -> _Table:
    try:
        return _Table.model_validate(_toml(Path(path)))
    except ValidationError as error:
        raise InvalidValue(f"no prices can be read from {path}: {_first_of(error)}") from error
    except TypeError as error:
        raise InvalidValue(f"prices are the path of a file, not {quoted(path)}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidValue(f"no prices can be read from {path}: {in_words(error)}") from error


def _toml(path: Path) -> dict[str, Any]:
    check_ends(path)
    return tomllib.loads(path.read_text("utf-8"))


def _first_of(error: ValidationError) -> str:
    """Say where a table is wrong, and what is wrong there."""
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
