"""The rows of prices in a store: those of the release, and those that its users set."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

from sqlalchemy import Connection, bindparam, delete, select

from ..database import Insertion, Seed, Statement, prices
from ..records import FilePath
from .model_prices import (
    EVERYBODY,
    PRICES_FILE,
    ModelPrice,
    PriceList,
    normalize_model_name,
    read_release_prices,
)

_price_columns = [prices.c[name] for name in ModelPrice._fields]
_price_key = (prices.c.owner, prices.c.model, prices.c.valid_from)

LIST_PRICES = Statement(select(*_price_columns).order_by(*_price_key), row=ModelPrice)
LIST_OWNED_PRICES = Statement(
    select(*_price_columns)
    .where(prices.c.owner.in_((EVERYBODY, bindparam("owner", type_=prices.c.owner.type))))
    .order_by(*_price_key),
    row=ModelPrice,
)
MODEL_PRICES = Statement(
    select(*_price_columns).where(
        prices.c.owner.in_((EVERYBODY, bindparam("owner", type_=prices.c.owner.type))),
        prices.c.model.in_(
            bindparam(name, type_=prices.c.model.type) for name in ("model", "base_model")
        ),
    ),
    row=ModelPrice,
)
DELETE_PRICE = Statement(
    delete(prices).where(
        *(key == bindparam(f"old_{key.name}", type_=key.type) for key in _price_key)
    )
)
DELETE_OWNED_PRICES = Statement(
    delete(prices).where(prices.c.owner == bindparam("owner", type_=prices.c.owner.type))
)
INSERT_PRICE = Insertion(prices)


def list_prices(connection: Connection, owner: str | None = None) -> list[ModelPrice]:
    """Return the stored prices: those that are valid for an owner, or all."""
    if _validate_price_owner(owner) is None:
        return LIST_PRICES.rows(connection)
    return LIST_OWNED_PRICES.rows(connection, owner=owner)


def set_prices(
    connection: Connection, file: FilePath, *, owner: str | None = None
) -> list[ModelPrice]:
    """Store the prices of a TOML file, for the usages of an owner's sessions or of all.

    A price replaces the one of the same model, owner and first day. Costs follow at the next read.
    Returns the prices of the file. Raises InvalidValue for a file without valid prices.
    """
    from .price_files import read_prices

    rows = read_prices(file, _validate_price_owner(owner) or EVERYBODY)
    for row in rows:
        old = {"old_owner": row.owner, "old_model": row.model, "old_valid_from": row.valid_from}
        DELETE_PRICE.run(connection, **old)
        INSERT_PRICE.run(connection, **row._asdict())
    return rows


def _validate_price_owner(owner: str | None) -> str | None:
    """Return an owner of prices. Raises InvalidValue for no text."""
    from .sessions import validate_text  # a store is opened without it

    return validate_text("owner", owner)


def load_price_list(
    connection: Connection, file: FilePath | None = None, owner: str | None = None
) -> PriceList:
    """Return the prices of usages; those of a file take precedence over the stored ones."""
    stored = list_prices(connection, owner)
    if file is None:
        return PriceList(stored)
    from .price_files import read_prices

    return PriceList(read_prices(file), stored)


def load_model_prices(connection: Connection, model: str | None, owner: str | None) -> PriceList:
    """Return the prices of one model that are valid for an owner."""
    if model is None:
        return PriceList()
    named = {"model": model, "base_model": normalize_model_name(model)}
    return PriceList(MODEL_PRICES.rows(connection, **named, owner=owner or EVERYBODY))


def insert_release_prices(connection: Connection) -> None:
    """Insert the prices of the release, except those of models that a user has priced."""
    released = read_release_prices()
    stored = {row for row in LIST_PRICES.rows(connection) if row.owner == EVERYBODY}
    own = {row.model for row in stored.difference(released)}
    for row in released:
        if row.model not in own and row not in stored:
            INSERT_PRICE.run(connection, **row._asdict())


@cache
def load_release_seed() -> Seed:
    """Return the prices of the release as rows that a store is opened with."""
    digest = sha256(PRICES_FILE.read_bytes()).hexdigest()
    return Seed("prices", digest, insert_release_prices)
