"""Files of prices: a user's own, and the one that comes with the release."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError

from ..errors import InvalidValue, check_readable_to_end, describe_read_error, quote_value
from ..records import FilePath
from .model_prices import (
    EVERYBODY,
    PRICES_FILE,
    ModelPrice,
    build_prices,
    normalize_model_name,
)


class _PriceRow(BaseModel):
    """A line of a table of prices."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None
    written: NonNegativeFloat | None = None
    first_day: date | None = Field(None, alias="from")


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
    models = _read_price_table(path).model_dump(by_alias=True)["models"]
    return build_prices(owner, models)


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
