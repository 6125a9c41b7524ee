"""The definition of tables: the place of their rows, and the columns that many of them share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    ColumnElement,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    event,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import UserDefinedType

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)

BIG_INTEGER = BigInteger().with_variant(Integer(), "sqlite")
REAL_NUMBER: Double[Any] = Double().with_variant(REAL(), "sqlite")
IDENTIFIER = Text().with_variant(Text(collation="C"), "postgresql")


class SearchVector(UserDefinedType[str]):
    """The words of a text with their places; defined here, so that no dialect has to be loaded."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the server's name of the type."""
        return "TSVECTOR"


MUTABLE_COLUMN_INFO = {"changes": True}
"""Marks a column that may change after its row was written."""


def define_seal_column() -> Column[object]:
    """Define the column of a row's seal."""
    return Column("sealed", LargeBinary)


def define_table(name: str, *items: SchemaItem) -> Table:
    """Define a table."""
    return Table(name, METADATA, *items, info={"sqlite_strict": True})


def define_narrow_table(name: str, *items: SchemaItem) -> Table:
    """Define a table whose rows are stored in its key itself.

    This halves the pages of narrow rows, and each write touches one page less.
    """
    options = {"sqlite_strict": True, "sqlite_with_rowid": False}
    return Table(name, METADATA, *items, info=options)


def restrict_index(condition: ColumnElement[bool]) -> dict[str, Any]:
    """Limit an index to the rows for which a condition holds."""
    return {"sqlite_where": condition, "postgresql_where": condition}


@event.listens_for(METADATA, "before_create")
def _apply_dialect_options(metadata: MetaData, *_: object, **__: object) -> None:
    """Give each dialect its own options.

    They are kept in ``info`` until then, since naming a dialect loads it, and most programs create
    no table.
    """
    for made in metadata.tables.values():
        of_it: list[Table | Index] = [made, *made.indexes]
        for each in of_it:
            each.dialect_kwargs.update(each.info)


def define_key_column(
    name: str, type_: BigInteger | Integer | Text = BIG_INTEGER, info: dict[str, bool] | None = None
) -> Column[object]:
    """Define a column of a table's key."""
    return Column(name, type_, primary_key=True, autoincrement=False, nullable=False, info=info)


def define_place_columns() -> tuple[Column[object], ...]:
    """Define the columns of a message's place."""
    return define_key_column("tree_id"), define_key_column("branch"), define_key_column("seq")


def define_foreign_key(parent: str, *columns: str) -> ForeignKeyConstraint:
    """Define the foreign key to another table, by columns of the same names."""
    return ForeignKeyConstraint(columns, [f"{parent}.{column}" for column in columns])
