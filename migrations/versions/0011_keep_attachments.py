"""Keep the large pictures and files of messages once a tree."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OF_BYTES = "tree_id = OLD.tree_id AND digest = OLD.digest"
OF_BRANCH = "tree_id = OLD.tree_id AND branch = OLD.branch"
KEPT = {
    "attachments": f"EXISTS (SELECT 1 FROM message_attachments WHERE {OF_BYTES})",
    "message_attachments": f"""NOT EXISTS (
    SELECT 1 FROM erasures
    WHERE {OF_BRANCH} AND OLD.seq > kept AND finished_at IS NULL
) AND NOT EXISTS (
    SELECT 1 FROM redactions
    WHERE {OF_BRANCH} AND redactions.seq = OLD.seq AND finished_at IS NULL
)""",
}
"""When a row stays: as long as a message has it, or as long as its message stays and is whole."""
KEYS = {
    "attachments": ("tree_id", "digest"),
    "message_attachments": ("tree_id", "branch", "seq", "position"),
}


def list_file_guards(table: str) -> tuple[str, ...]:
    """Return the triggers of a table in a file."""
    same = " AND ".join(f"{column} = NEW.{column}" for column in KEYS[table])
    return (
        f"""CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} never change'); END""",
        f"""CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
WHEN {KEPT[table]}
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} go only with a message that has them'); END""",
        f"""CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})
    OR EXISTS (SELECT 1 FROM {table} WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'raw rows of {table} are never replaced'); END""",
    )


def list_server_guards(table: str) -> tuple[str, ...]:
    """Return the function and the triggers of a table on a server."""
    return (
        f"""CREATE FUNCTION refuse_changing_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF NOT ({KEPT[table]}) THEN RETURN OLD; END IF;
    END IF;
    RAISE EXCEPTION 'raw rows of {table} go only with a message that has them';
END $$""",
        *(
            f"""CREATE TRIGGER {table}_{name} BEFORE {events} ON {table}
FOR EACH {what} EXECUTE FUNCTION refuse_changing_{table}()"""
            for name, events, what in (
                ("no_change", "UPDATE OR DELETE", "ROW"),
                ("no_truncate", "TRUNCATE", "STATEMENT"),
            )
        ),
    )


def upgrade() -> None:
    """Add the tables and their guards; messages of before keep their pictures in their text."""
    op.create_table(
        "attachments",
        sa.Column("tree_id", BIG, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tree_id", "digest", name="pk_attachments"),
        sqlite_strict=True,
    )
    place = ("tree_id", "branch", "seq")
    op.create_table(
        "message_attachments",
        *(sa.Column(name, BIG, nullable=False) for name in (*place, "position")),
        sa.Column("encoding", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            place,
            [f"messages.{name}" for name in place],
            name="fk_message_attachments_messages",
        ),
        sa.ForeignKeyConstraint(
            ("tree_id", "digest"),
            ("attachments.tree_id", "attachments.digest"),
            name="fk_message_attachments_attachments",
        ),
        sa.PrimaryKeyConstraint(*place, "position", name="pk_message_attachments"),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_message_attachments_tree_id_digest", "message_attachments", ["tree_id", "digest"]
    )
    is_file = op.get_context().dialect.name == "sqlite"
    list_guards = list_file_guards if is_file else list_server_guards
    for table in KEYS:
        for statement in list_guards(table):
            op.execute(sa.DDL(statement.replace("%", "%%")))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
