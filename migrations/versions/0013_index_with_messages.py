"""Make the index of searches on a server, whose entries are written with their messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
rewrites_rows = False

# Where searching is switched off, switching it on makes them.
MAKE_INDEX = """DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM settings WHERE name = 'search' AND value = 'off') THEN
        CREATE INDEX IF NOT EXISTS ix_search_rows_words ON search_rows USING gin (words);
        IF EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm') THEN
            CREATE INDEX IF NOT EXISTS ix_search_rows_names
            ON search_rows USING gin (names gin_trgm_ops);
        END IF;
        INSERT INTO settings (name, value) SELECT 'search_entries', 'complete'
        WHERE NOT EXISTS (SELECT 1 FROM messages)
        ON CONFLICT (name) DO NOTHING;
    END IF;
END $$"""


def upgrade() -> None:
    """Make the index on a server, and say that a store without messages lacks no entry."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(sa.DDL(MAKE_INDEX))


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")
