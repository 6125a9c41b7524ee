"""Run the revisions on the connection that is handed over, or on a development database.

``alembic upgrade head`` upgrades the database of ``-x url=URL``, or of ``alembic.ini``; with
``--sql`` it prints the statements that make a new one instead. The loggers of the host application
are left alone: no logging is configured here.
"""

from typing import Any

from alembic import context
from sqlalchemy import create_engine, make_url

attributes = context.config.attributes
if "tables" not in attributes:  # the package hands over its own, since an app may have a `store`
    from store.database.schema import METADATA

    attributes["tables"] = METADATA

SWITCHED_INDEXES = {"ix_search_rows_words", "ix_search_rows_names"}
"""Indexes of a server that are there only while searching is switched on."""


def run(**target: Any) -> None:
    """Run all revisions in one transaction, so that all of them count or none."""
    context.configure(
        **target,
        target_metadata=attributes["tables"],
        render_as_batch=True,
        transactional_ddl=True,
        compare_type=True,
        include_name=lambda name, *_: name not in SWITCHED_INDEXES,
    )
    with context.begin_transaction():
        context.run_migrations()


given = attributes.get("connection")
url = context.get_x_argument(as_dictionary=True).get("url") or context.config.get_main_option(
    "sqlalchemy.url"
)
if given is not None:
    run(connection=given)
elif context.is_offline_mode():
    run(
        dialect_name=make_url(url).get_backend_name(),
        dialect_opts={"paramstyle": "named"},  # or percent signs are doubled
        literal_binds=True,
    )
else:
    with create_engine(url).begin() as connection:
        run(connection=connection)
