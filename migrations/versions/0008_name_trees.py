"""Find sessions by the beginning of their ids, and guard tables whatever a partition is called."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
rewrites_rows = False

ERASED = """EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND erasures.finished_at IS NULL
)"""
GUARD = """CREATE {replacing}FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {erased} THEN RETURN OLD; END IF;{allowed}
    END IF;
    RAISE EXCEPTION '{rows} of % never change', TG_TABLE_NAME;
END $$"""
UNFINISHED = """
    ELSIF TG_OP = 'UPDATE' THEN
        IF OLD.outcome = 'running' THEN RETURN NEW; END IF;"""
"""What the guard of compaction records lets pass; a partition has another name than its table."""


def upgrade() -> None:
    """Add the index; on a server give compaction records a guard of their own."""
    op.create_index("ix_sessions_id", "sessions", ["id"])
    if op.get_context().dialect.name != "postgresql":
        return
    guards = (
        ("refuse_rewriting_records", "", "finished rows", UNFINISHED),
        ("refuse_rewriting", "OR REPLACE ", "rows", ""),
    )
    for name, replacing, rows, allowed in guards:
        guard = GUARD.format(
            name=name, replacing=replacing, rows=rows, allowed=allowed, erased=ERASED
        )
        op.execute(sa.DDL(guard.replace("%", "%%")))
    for suffix, events, each in (
        ("no_change", "UPDATE OR DELETE", "ROW"),
        ("no_truncate", "TRUNCATE", "STATEMENT"),
    ):
        trigger = f"compaction_records_{suffix}"
        op.execute(f"DROP TRIGGER {trigger} ON compaction_records")
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {events} ON compaction_records"
            f" FOR EACH {each} EXECUTE FUNCTION refuse_rewriting_records()"
        )


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
