"""Run the revisions on the connection that is handed over.

From the command line, on a development database.

The host application's loggers are left alone: no logging is configured here.
"""

from alembic import context
from sqlalchemy import Connection, create_engine

attributes = context.config.attributes
if "package" not in attributes:  # an app that knows the package by its second name hands it over
    import store

    attributes["package"] = store


def run(connection: Connection) -> None:
    """Run all revisions in the transaction of the connection, so that all of them count or none."""
    context.configure(
        connection=connection,
        target_metadata=attributes["package"].database.schema.METADATA,
        render_as_batch=True,
        transactional_ddl=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = attributes.get("connection")
if given is not None:
    run(given)
else:
    url = context.get_x_argument(as_dictionary=True).get("url") or context.config.get_main_option(
        "sqlalchemy.url"
    )
    with create_engine(url).begin() as connection:
        run(connection)
