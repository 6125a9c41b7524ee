-- schema 0013

CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE sessions (
	tree_id INTEGER NOT NULL,
	id TEXT NOT NULL,
	head_branch INTEGER NOT NULL,
	head INTEGER NOT NULL,
	last_rewind INTEGER,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	forked_from TEXT,
	forked_at INTEGER,
	fold_case INTEGER NOT NULL,
	title TEXT,
	project_root TEXT,
	metadata TEXT, revision TEXT DEFAULT '0' NOT NULL, owner TEXT, archived INTEGER DEFAULT '0' NOT NULL, sealed BLOB, updated_second INTEGER DEFAULT '0' NOT NULL, source TEXT, file TEXT,
	CONSTRAINT pk_sessions PRIMARY KEY (tree_id, id),
	CONSTRAINT fk_sessions_branches FOREIGN KEY(tree_id, head_branch) REFERENCES branches (tree_id, branch)
)
 STRICT;

CREATE TABLE erasures (
	tree_id INTEGER NOT NULL,
	erasure INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	kept INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	kept_messages INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	finished_at INTEGER, newest_copy INTEGER DEFAULT '0' NOT NULL, purged_at INTEGER, sealed BLOB,
	CONSTRAINT pk_erasures PRIMARY KEY (tree_id, erasure, branch)
)
 STRICT;

CREATE TABLE messages (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	role TEXT NOT NULL,
	name TEXT,
	status TEXT,
	tool_call_id TEXT,
	wire_format TEXT,
	created_at INTEGER,
	stored_at INTEGER NOT NULL,
	message_id TEXT,
	digest BLOB NOT NULL,
	extra TEXT,
	content_form TEXT,
	content TEXT,
	CONSTRAINT pk_messages PRIMARY KEY (tree_id, branch, seq),
	CONSTRAINT fk_messages_branches FOREIGN KEY(tree_id, branch) REFERENCES branches (tree_id, branch)
)
 STRICT;

CREATE TABLE tool_calls (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	position INTEGER NOT NULL,
	call_id TEXT,
	name TEXT,
	arguments_form TEXT,
	arguments TEXT,
	extra TEXT,
	CONSTRAINT pk_tool_calls PRIMARY KEY (tree_id, branch, seq, position),
	CONSTRAINT fk_tool_calls_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq)
)
 STRICT;

CREATE TABLE tool_results (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	call_seq INTEGER,
	call_position INTEGER,
	tool_name TEXT,
	at INTEGER,
	status TEXT,
	exit_code INTEGER,
	has_stderr INTEGER NOT NULL,
	error_prefix INTEGER NOT NULL,
	looks_terminal INTEGER NOT NULL,
	length INTEGER NOT NULL,
	size INTEGER NOT NULL,
	paths_complete INTEGER NOT NULL,
	CONSTRAINT pk_tool_results PRIMARY KEY (tree_id, branch, seq),
	CONSTRAINT fk_tool_results_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE tool_result_paths (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	path TEXT NOT NULL,
	start_line INTEGER,
	end_line INTEGER,
	contiguous INTEGER NOT NULL,
	mentions INTEGER NOT NULL,
	CONSTRAINT pk_tool_result_paths PRIMARY KEY (tree_id, branch, seq, path),
	CONSTRAINT fk_tool_result_paths_tool_results FOREIGN KEY(tree_id, branch, seq) REFERENCES tool_results (tree_id, branch, seq)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE tool_kinds (
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	CONSTRAINT pk_tool_kinds PRIMARY KEY (name)
)
 STRICT;

CREATE TABLE token_counts (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	encoding TEXT NOT NULL,
	tokens INTEGER NOT NULL, sealed BLOB,
	CONSTRAINT pk_token_counts PRIMARY KEY (tree_id, branch, seq, encoding),
	CONSTRAINT fk_token_counts_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE summaries (
	tree_id INTEGER NOT NULL,
	summary INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	first INTEGER NOT NULL,
	last INTEGER NOT NULL,
	supersedes INTEGER,
	tokens INTEGER,
	model TEXT,
	prompt_version TEXT,
	digest BLOB,
	created_at INTEGER NOT NULL,
	title TEXT,
	key_actions TEXT,
	file_changes TEXT,
	body TEXT NOT NULL, facts TEXT, notice TEXT, names TEXT, sealed BLOB,
	CONSTRAINT pk_summaries PRIMARY KEY (tree_id, summary),
	CONSTRAINT fk_summaries_branches FOREIGN KEY(tree_id, branch) REFERENCES branches (tree_id, branch),
	CONSTRAINT fk_summaries_summaries FOREIGN KEY(tree_id, supersedes) REFERENCES summaries (tree_id, summary)
)
 STRICT;

CREATE TABLE compaction_records (
	tree_id INTEGER NOT NULL,
	compaction INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	head INTEGER NOT NULL,
	reason TEXT NOT NULL,
	outcome TEXT NOT NULL,
	first_kept INTEGER,
	hidden_first INTEGER,
	hidden_last INTEGER,
	summary INTEGER,
	messages_before INTEGER,
	messages_after INTEGER,
	tokens_before INTEGER,
	tokens_after INTEGER,
	created_at INTEGER NOT NULL,
	policy TEXT,
	error TEXT, session_id TEXT, kind TEXT DEFAULT 'summary' NOT NULL, undoes INTEGER, lease_until INTEGER, pinned TEXT, cleared TEXT, error_kind TEXT, sealed BLOB,
	CONSTRAINT pk_compaction_records PRIMARY KEY (tree_id, compaction),
	CONSTRAINT fk_compaction_records_branches FOREIGN KEY(tree_id, branch) REFERENCES branches (tree_id, branch),
	CONSTRAINT fk_compaction_records_summaries FOREIGN KEY(tree_id, summary) REFERENCES summaries (tree_id, summary)
)
 STRICT;

CREATE TABLE message_facts (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	role TEXT NOT NULL,
	turn INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	tokens_through INTEGER NOT NULL,
	CONSTRAINT pk_message_facts PRIMARY KEY (tree_id, branch, seq),
	CONSTRAINT fk_message_facts_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE usages (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	usage INTEGER NOT NULL,
	input INTEGER NOT NULL,
	output INTEGER NOT NULL,
	cached INTEGER NOT NULL,
	at INTEGER NOT NULL, written INTEGER, cost REAL, model TEXT, provider TEXT, details TEXT, sealed BLOB, base_model TEXT,
	CONSTRAINT pk_usages PRIMARY KEY (tree_id, branch, seq, usage),
	CONSTRAINT fk_usages_branches FOREIGN KEY(tree_id, branch) REFERENCES branches (tree_id, branch)
)
 STRICT;

CREATE TABLE session_ids (
	id TEXT NOT NULL,
	tree_id INTEGER NOT NULL,
	CONSTRAINT pk_session_ids PRIMARY KEY (id)
)
 STRICT, WITHOUT ROWID;

CREATE TABLE branches (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	parent_branch INTEGER,
	parent_position INTEGER NOT NULL,
	session_id TEXT,
	created_at INTEGER NOT NULL, records_seen INTEGER DEFAULT '0' NOT NULL, sealed BLOB,
	CONSTRAINT pk_branches PRIMARY KEY (tree_id, branch),
	CONSTRAINT fk_branches_branches FOREIGN KEY(tree_id, parent_branch) REFERENCES branches (tree_id, branch)
)
 STRICT, WITHOUT ROWID;

CREATE TABLE head_moves (
	tree_id INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	move INTEGER NOT NULL,
	kind TEXT NOT NULL,
	from_branch INTEGER,
	from_position INTEGER,
	to_branch INTEGER NOT NULL,
	to_position INTEGER NOT NULL,
	earlier_rewind INTEGER,
	moved_at INTEGER NOT NULL, source_move INTEGER, source_record INTEGER, sealed BLOB,
	CONSTRAINT pk_head_moves PRIMARY KEY (tree_id, session_id, move)
)
 STRICT, WITHOUT ROWID;

CREATE TABLE copies (
	copy INTEGER NOT NULL,
	made_at INTEGER NOT NULL,
	size INTEGER,
	modified INTEGER,
	kind TEXT NOT NULL,
	path TEXT NOT NULL, sealed BLOB,
	CONSTRAINT pk_copies PRIMARY KEY (copy)
)
 STRICT;

CREATE TABLE session_keys (
	tree_id INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	"key" TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_session_keys PRIMARY KEY (tree_id, session_id, "key")
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE redactions (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	redacted_by TEXT,
	redacted_at INTEGER NOT NULL,
	summaries TEXT NOT NULL,
	newest_copy INTEGER NOT NULL,
	finished_at INTEGER,
	purged_at INTEGER, sealed BLOB,
	CONSTRAINT pk_redactions PRIMARY KEY (tree_id, branch, seq),
	CONSTRAINT fk_redactions_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq)
)
 STRICT;

CREATE TABLE drafts (
	tree_id INTEGER NOT NULL,
	draft INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	branch INTEGER NOT NULL,
	head INTEGER NOT NULL,
	at INTEGER NOT NULL,
	message TEXT NOT NULL,
	wire_format TEXT, sealed BLOB, writer TEXT, live_until INTEGER, usage TEXT,
	CONSTRAINT pk_drafts PRIMARY KEY (tree_id, draft),
	CONSTRAINT fk_drafts_branches FOREIGN KEY(tree_id, branch) REFERENCES branches (tree_id, branch)
)
 STRICT;

CREATE TABLE draft_pieces (
	tree_id INTEGER NOT NULL,
	draft INTEGER NOT NULL,
	piece INTEGER NOT NULL,
	at INTEGER NOT NULL,
	"key" TEXT NOT NULL,
	text TEXT NOT NULL, sealed BLOB,
	CONSTRAINT pk_draft_pieces PRIMARY KEY (tree_id, draft, piece),
	CONSTRAINT fk_draft_pieces_drafts FOREIGN KEY(tree_id, draft) REFERENCES drafts (tree_id, draft)
)
 STRICT;

CREATE TABLE notes (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	note INTEGER NOT NULL,
	"key" TEXT NOT NULL,
	session_id TEXT NOT NULL,
	owner TEXT,
	at INTEGER NOT NULL,
	value TEXT NOT NULL, sealed BLOB,
	CONSTRAINT pk_notes PRIMARY KEY (tree_id, branch, seq, note),
	CONSTRAINT fk_notes_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq)
)
 STRICT;

CREATE TABLE search_rows (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	summary INTEGER NOT NULL,
	number INTEGER NOT NULL,
	words TEXT,
	names TEXT,
	CONSTRAINT pk_search_rows PRIMARY KEY (tree_id, branch, seq, summary),
	CONSTRAINT fk_search_rows_branches FOREIGN KEY(tree_id, branch) REFERENCES branches (tree_id, branch)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE settings (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_settings PRIMARY KEY (name)
)
 STRICT;

CREATE TABLE prices (
	owner TEXT NOT NULL,
	model TEXT NOT NULL,
	valid_from INTEGER NOT NULL,
	input REAL,
	cached REAL,
	written REAL,
	output REAL,
	CONSTRAINT pk_prices PRIMARY KEY (owner, model, valid_from)
)
 STRICT;

CREATE TABLE requests (
	tree_id INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	request INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	at INTEGER NOT NULL,
	newest_record INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	unchanged_tokens INTEGER,
	usage_branch INTEGER,
	usage_seq INTEGER,
	usage_number INTEGER,
	kind TEXT NOT NULL,
	format TEXT NOT NULL,
	policy_name TEXT NOT NULL,
	release TEXT NOT NULL,
	digest BLOB NOT NULL,
	layers TEXT NOT NULL,
	compactions TEXT NOT NULL,
	texts TEXT NOT NULL,
	sealed BLOB,
	CONSTRAINT pk_requests PRIMARY KEY (tree_id, session_id, request)
)
 STRICT;

CREATE TABLE request_texts (
	tree_id INTEGER NOT NULL,
	text_digest TEXT NOT NULL,
	content TEXT NOT NULL,
	sealed BLOB,
	CONSTRAINT pk_request_texts PRIMARY KEY (tree_id, text_digest)
)
 STRICT;

CREATE TABLE kept_usages (
	tree_id INTEGER NOT NULL,
	erasure INTEGER NOT NULL,
	number INTEGER NOT NULL,
	day INTEGER NOT NULL,
	parts INTEGER NOT NULL,
	requests INTEGER NOT NULL,
	input INTEGER NOT NULL,
	output INTEGER NOT NULL,
	cached INTEGER NOT NULL,
	written INTEGER NOT NULL,
	cost REAL,
	model TEXT,
	base_model TEXT,
	source TEXT,
	owner TEXT,
	project_root TEXT,
	sealed BLOB,
	CONSTRAINT pk_kept_usages PRIMARY KEY (tree_id, erasure, number)
)
 STRICT;

CREATE TABLE running_bills (
	tree_id INTEGER NOT NULL,
	session_id TEXT NOT NULL,
	policy_name TEXT NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	at INTEGER NOT NULL,
	requests INTEGER NOT NULL,
	sent INTEGER NOT NULL,
	sent_before INTEGER NOT NULL,
	raw_before INTEGER NOT NULL,
	pause INTEGER,
	longest_alive INTEGER,
	shortest_over INTEGER,
	was_cold INTEGER NOT NULL,
	own_bill REAL NOT NULL,
	raw_bill REAL NOT NULL,
	CONSTRAINT pk_running_bills PRIMARY KEY (tree_id, session_id, policy_name)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE ancestors (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	level INTEGER NOT NULL,
	ancestor INTEGER NOT NULL,
	first INTEGER NOT NULL,
	last INTEGER NOT NULL,
	next_branch INTEGER NOT NULL,
	CONSTRAINT pk_ancestors PRIMARY KEY (tree_id, branch, level, ancestor)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE attachments (
	tree_id INTEGER NOT NULL,
	digest BLOB NOT NULL,
	data BLOB NOT NULL,
	CONSTRAINT pk_attachments PRIMARY KEY (tree_id, digest)
)
 STRICT;

CREATE TABLE message_attachments (
	tree_id INTEGER NOT NULL,
	branch INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	position INTEGER NOT NULL,
	encoding TEXT NOT NULL,
	digest BLOB NOT NULL,
	CONSTRAINT pk_message_attachments PRIMARY KEY (tree_id, branch, seq, position),
	CONSTRAINT fk_message_attachments_messages FOREIGN KEY(tree_id, branch, seq) REFERENCES messages (tree_id, branch, seq),
	CONSTRAINT fk_message_attachments_attachments FOREIGN KEY(tree_id, digest) REFERENCES attachments (tree_id, digest)
)
 STRICT;

CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages WHEN NOT EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND OLD.seq > erasures.kept AND erasures.finished_at IS NULL
)
BEGIN SELECT RAISE(ABORT, 'raw rows of messages go only by the erasure of a session'); END;

CREATE TRIGGER messages_no_replace BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM messages WHERE tree_id = NEW.tree_id AND branch = NEW.branch AND seq = NEW.seq)
    OR EXISTS (SELECT 1 FROM messages WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'raw rows of messages are never replaced'); END;

CREATE TRIGGER tool_calls_no_delete BEFORE DELETE ON tool_calls WHEN NOT EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND OLD.seq > erasures.kept AND erasures.finished_at IS NULL
)
BEGIN SELECT RAISE(ABORT, 'raw rows of tool_calls go only by the erasure of a session'); END;

CREATE TRIGGER tool_calls_no_replace BEFORE INSERT ON tool_calls
WHEN EXISTS (SELECT 1 FROM tool_calls WHERE tree_id = NEW.tree_id AND branch = NEW.branch AND seq = NEW.seq AND position = NEW.position)
    OR EXISTS (SELECT 1 FROM tool_calls WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'raw rows of tool_calls are never replaced'); END;

CREATE VIEW session_segments AS
WITH RECURSIVE segments (tree_id, session_id, branch, first, last, parent_branch) AS (
    SELECT s.tree_id, s.id, b.branch, b.parent_position + 1, s.head, b.parent_branch
    FROM sessions s JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
    UNION ALL
    SELECT c.tree_id, c.session_id, p.branch, p.parent_position + 1, c.first - 1, p.parent_branch
    FROM segments c JOIN branches p ON p.tree_id = c.tree_id AND p.branch = c.parent_branch
)
SELECT tree_id, session_id, branch, first, last FROM segments WHERE first <= last;

CREATE INDEX ix_compaction_records_tree_id_branch_compaction ON compaction_records (tree_id, branch, compaction);

CREATE UNIQUE INDEX uq_compaction_records_running ON compaction_records (tree_id, session_id) WHERE outcome = 'running';

CREATE INDEX ix_erasures_open ON erasures (tree_id, erasure) WHERE finished_at IS NULL;

CREATE INDEX ix_sessions_archived_created_at_id ON sessions (archived, created_at, id);

CREATE INDEX ix_sessions_owner_archived_created_at_id ON sessions (owner, archived, created_at, id) WHERE owner IS NOT NULL;

CREATE INDEX ix_session_keys_key_value_tree_id_session_id ON session_keys ("key", value, tree_id, session_id);

CREATE INDEX ix_messages_message_id_tree_id ON messages (message_id, tree_id) WHERE message_id IS NOT NULL;

CREATE INDEX ix_branches_tree_id_parent_branch ON branches (tree_id, parent_branch);

CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages
WHEN NOT EXISTS (
    SELECT 1 FROM redactions
    WHERE redactions.tree_id = OLD.tree_id AND redactions.branch = OLD.branch
      AND redactions.seq = OLD.seq AND redactions.finished_at IS NULL
)
    OR NEW.tree_id <> OLD.tree_id OR NEW.branch <> OLD.branch OR NEW.seq <> OLD.seq OR NEW.rowid <> OLD.rowid
BEGIN SELECT RAISE(ABORT, 'raw rows of messages change only by a redaction'); END;

CREATE TRIGGER tool_calls_no_update BEFORE UPDATE ON tool_calls
WHEN NOT EXISTS (
    SELECT 1 FROM redactions
    WHERE redactions.tree_id = OLD.tree_id AND redactions.branch = OLD.branch
      AND redactions.seq = OLD.seq AND redactions.finished_at IS NULL
)
    OR NEW.tree_id <> OLD.tree_id OR NEW.branch <> OLD.branch OR NEW.seq <> OLD.seq OR NEW.position <> OLD.position OR NEW.rowid <> OLD.rowid
BEGIN SELECT RAISE(ABORT, 'raw rows of tool_calls change only by a redaction'); END;

CREATE INDEX ix_usages_at ON usages (at);

CREATE INDEX ix_notes_key_at ON notes ("key", at);

CREATE INDEX ix_search_rows_number ON search_rows (number);

CREATE VIEW session_messages AS
SELECT g.session_id, m.seq, m.role, m.name, m.status, m.tool_call_id, m.message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', COALESCE(m.created_at, m.stored_at) / 1000.0, 'unixepoch') AS at, strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.stored_at / 1000.0, 'unixepoch') AS stored_at, m.branch, f.tokens,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited,
       m.content_form, m.content, m.extra
FROM session_segments g
JOIN messages m
    ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
LEFT JOIN message_facts f ON f.tree_id = m.tree_id AND f.branch = m.branch AND f.seq = m.seq;

CREATE VIEW branch_messages AS
SELECT b.session_id, m.branch, m.seq, m.role, m.name, m.status, m.tool_call_id, m.message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', COALESCE(m.created_at, m.stored_at) / 1000.0, 'unixepoch') AS at, strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.stored_at / 1000.0, 'unixepoch') AS stored_at, f.tokens, m.content_form, m.content, m.extra
FROM branches b
JOIN messages m ON m.tree_id = b.tree_id AND m.branch = b.branch
LEFT JOIN message_facts f ON f.tree_id = m.tree_id AND f.branch = m.branch AND f.seq = m.seq
LEFT JOIN session_segments g
    ON g.tree_id = b.tree_id AND g.session_id = b.session_id AND g.branch = b.branch
    AND m.seq BETWEEN g.first AND g.last
WHERE b.session_id IS NOT NULL AND g.branch IS NULL;

CREATE VIEW file_log AS
SELECT g.session_id, p.seq, s.project_root, p.path, p.start_line, p.end_line, r.tool_name,
       COALESCE(k.kind, 'other') AS kind,
       strftime('%Y-%m-%dT%H:%M:%fZ', COALESCE(m.created_at, m.stored_at) / 1000.0, 'unixepoch') AS at, strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.stored_at / 1000.0, 'unixepoch') AS stored_at, r.length,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM session_segments g
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
JOIN sessions s ON s.tree_id = g.tree_id AND s.id = g.session_id
JOIN tool_result_paths p
    ON p.tree_id = g.tree_id AND p.branch = g.branch AND p.seq BETWEEN g.first AND g.last
JOIN tool_results r ON r.tree_id = p.tree_id AND r.branch = p.branch AND r.seq = p.seq
JOIN messages m ON m.tree_id = p.tree_id AND m.branch = p.branch AND m.seq = p.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name;

CREATE VIEW compaction_log AS
WITH RECURSIVE
segments (tree_id, session_id, branch, last, seen, parent_branch, parent_position, own_seen) AS (
    SELECT s.tree_id, s.id, b.branch, s.head, CAST(NULL AS BIGINT), b.parent_branch,
           b.parent_position, b.records_seen
    FROM sessions s JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
    UNION ALL
    SELECT c.tree_id, c.session_id, p.branch, c.parent_position, c.own_seen, p.parent_branch,
           p.parent_position, p.records_seen
    FROM segments c JOIN branches p ON p.tree_id = c.tree_id AND p.branch = c.parent_branch
),
records AS (
    SELECT g.session_id AS line, c.*
    FROM segments g
    JOIN compaction_records c ON c.tree_id = g.tree_id AND c.branch = g.branch AND c.head <= g.last
     AND (g.seen IS NULL OR c.compaction <= g.seen)
)
SELECT r.line AS session_id, r.compaction, strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1000.0, 'unixepoch') AS created_at, r.kind,
       r.reason, r.policy,
       CASE WHEN u.compaction IS NULL THEN r.outcome ELSE 'undone' END AS outcome,
       r.head, r.hidden_first, r.hidden_last, r.first_kept, r.messages_before, r.messages_after,
       r.tokens_before, r.tokens_after, s.title, s.model, s.prompt_version, r.error,
       CASE WHEN b.session_id = r.line THEN 0 ELSE 1 END AS inherited
FROM records r
JOIN branches b ON b.tree_id = r.tree_id AND b.branch = r.branch
LEFT JOIN summaries s ON s.tree_id = r.tree_id AND s.summary = r.summary
LEFT JOIN records u
    ON u.tree_id = r.tree_id AND u.line = r.line AND u.kind = 'undo' AND u.undoes = r.compaction
WHERE r.kind <> 'undo';

CREATE VIEW hidden_messages AS
WITH RECURSIVE
segments (tree_id, session_id, branch, last, seen, parent_branch, parent_position, own_seen) AS (
    SELECT s.tree_id, s.id, b.branch, s.head, CAST(NULL AS BIGINT), b.parent_branch,
           b.parent_position, b.records_seen
    FROM sessions s JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
    UNION ALL
    SELECT c.tree_id, c.session_id, p.branch, c.parent_position, c.own_seen, p.parent_branch,
           p.parent_position, p.records_seen
    FROM segments c JOIN branches p ON p.tree_id = c.tree_id AND p.branch = c.parent_branch
),
records AS (
    SELECT g.session_id AS line, c.*
    FROM segments g
    JOIN compaction_records c ON c.tree_id = g.tree_id AND c.branch = g.branch AND c.head <= g.last
     AND (g.seen IS NULL OR c.compaction <= g.seen)
),
in_force AS (
    SELECT r.* FROM records r
    WHERE r.kind IN ('summary', 'hide') AND r.outcome = 'applied' AND NOT EXISTS (
        SELECT 1 FROM records u
        WHERE u.tree_id = r.tree_id AND u.line = r.line
            AND u.kind = 'undo' AND u.undoes = r.compaction
    )
),
pins AS (
    SELECT r.tree_id, r.line, CAST(p.value AS BIGINT) AS seq, MAX(r.compaction) AS pinned_by
    FROM in_force r CROSS JOIN json_each(r.pinned) AS p
    GROUP BY r.tree_id, r.line, CAST(p.value AS BIGINT)
),
hidden AS (
    SELECT g.tree_id, g.session_id, g.branch, m.seq, m.role, MIN(r.compaction) AS compaction
    FROM in_force r
    JOIN session_segments g ON g.tree_id = r.tree_id AND g.session_id = r.line
    JOIN message_facts m
        ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq BETWEEN g.first AND g.last
        AND m.seq BETWEEN r.hidden_first AND r.hidden_last
    LEFT JOIN pins p ON p.tree_id = r.tree_id AND p.line = r.line AND p.seq = m.seq
    WHERE p.pinned_by IS NULL OR r.compaction > p.pinned_by
    GROUP BY g.tree_id, g.session_id, g.branch, m.seq, m.role
)
SELECT h.session_id, h.seq, h.role, h.compaction, strftime('%Y-%m-%dT%H:%M:%fZ', c.created_at / 1000.0, 'unixepoch') AS compacted_at, c.summary
FROM hidden h
JOIN compaction_records c ON c.tree_id = h.tree_id AND c.compaction = h.compaction;

CREATE VIEW usage_log AS
SELECT b.session_id, u.branch, u.seq, strftime('%Y-%m-%dT%H:%M:%fZ', u.at / 1000.0, 'unixepoch') AS at, s.owner, u.model, u.provider, u.input,
       u.output, u.cached, COALESCE(u.written, 0) AS written, u.cost, u.details
FROM usages u
JOIN branches b ON b.tree_id = u.tree_id AND b.branch = u.branch
JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id;

CREATE TRIGGER summaries_no_update BEFORE UPDATE ON summaries
WHEN 1
    OR EXISTS (
        SELECT 1 FROM summaries
        WHERE (tree_id = NEW.tree_id AND summary = NEW.summary OR rowid = NEW.rowid)
          AND rowid <> OLD.rowid
    )
BEGIN SELECT RAISE(ABORT, 'rows of summaries never change'); END;

CREATE TRIGGER summaries_no_delete BEFORE DELETE ON summaries WHEN NOT EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND erasures.finished_at IS NULL
)
BEGIN SELECT RAISE(ABORT, 'rows of summaries go only by the erasure of a session'); END;

CREATE TRIGGER summaries_no_replace BEFORE INSERT ON summaries
WHEN EXISTS (SELECT 1 FROM summaries WHERE tree_id = NEW.tree_id AND summary = NEW.summary)
    OR EXISTS (SELECT 1 FROM summaries WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'rows of summaries are never replaced'); END;

CREATE TRIGGER compaction_records_no_update BEFORE UPDATE ON compaction_records
WHEN OLD.outcome <> 'running'
    OR EXISTS (
        SELECT 1 FROM compaction_records
        WHERE (tree_id = NEW.tree_id AND compaction = NEW.compaction OR rowid = NEW.rowid)
          AND rowid <> OLD.rowid
    )
BEGIN SELECT RAISE(ABORT, 'finished rows of compaction_records never change'); END;

CREATE TRIGGER compaction_records_no_delete BEFORE DELETE ON compaction_records WHEN NOT EXISTS (
    SELECT 1 FROM erasures
    WHERE erasures.tree_id = OLD.tree_id AND erasures.branch = OLD.branch
      AND erasures.finished_at IS NULL
)
BEGIN SELECT RAISE(ABORT, 'rows of compaction_records go only by the erasure of a session'); END;

CREATE TRIGGER compaction_records_no_replace BEFORE INSERT ON compaction_records
WHEN EXISTS (SELECT 1 FROM compaction_records WHERE tree_id = NEW.tree_id AND compaction = NEW.compaction)
    OR EXISTS (SELECT 1 FROM compaction_records WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'rows of compaction_records are never replaced'); END;

CREATE INDEX ix_sessions_archived_updated_second ON sessions (archived, updated_second, source, project_root);

CREATE INDEX ix_sessions_owner_archived_updated_second ON sessions (owner, archived, updated_second, source, project_root) WHERE owner IS NOT NULL;

CREATE VIEW tool_log AS
SELECT g.session_id, r.seq, r.tool_name,
       CASE
           WHEN k.kind IS NOT NULL THEN k.kind
           WHEN r.tool_name IS NULL AND m.content LIKE '📄%' THEN 'file_read'
           WHEN r.tool_name IS NULL AND LTRIM(m.content, ' 0123456789') LIKE '→%'
               AND LTRIM(m.content) NOT LIKE '→%' THEN 'file_read'
           WHEN r.tool_name IS NULL AND r.looks_terminal = 1 THEN 'terminal'
           ELSE 'other'
       END AS kind,
       CASE WHEN k.kind = 'terminal' THEN (
           SELECT replace(replace(replace(replace(replace(
               CASE
                   WHEN words GLOB '*sh' || char(3) || '-*c' || char(3) || '*'
                   THEN substr(words, instr(words, 'c' || char(3)) + 2)
                   ELSE words
               END,
               char(3), ' '), '\n', char(10)), '\t', char(9)), char(2), '"'), char(1), '\')
           FROM (SELECT CASE substr(given, 1, 1)
               WHEN '"' THEN substr(given, 2, NULLIF(instr(substr(given, 2), '"'), 0) - 1)
               WHEN '[' THEN replace(replace(
                   substr(given, 3, NULLIF(instr(given, '"]'), 0) - 3),
                   '", "', char(3)), '","', char(3))
           END AS words FROM (SELECT replace(replace(ltrim(CASE
               WHEN instr(c.arguments, '"command":')
               THEN substr(c.arguments, instr(c.arguments, '"command":') + 10)
               WHEN instr(c.arguments, '"cmd":')
               THEN substr(c.arguments, instr(c.arguments, '"cmd":') + 6)
               WHEN instr(c.arguments, '"CommandLine":')
               THEN substr(c.arguments, instr(c.arguments, '"CommandLine":') + 14)
               WHEN instr(c.arguments, '"commandLine":')
               THEN substr(c.arguments, instr(c.arguments, '"commandLine":') + 14)
               WHEN instr(c.arguments, '"commands":')
               THEN substr(c.arguments, instr(c.arguments, '"commands":') + 11)
               WHEN instr(c.arguments, '"cmds":')
               THEN substr(c.arguments, instr(c.arguments, '"cmds":') + 7)
               WHEN instr(c.arguments, '"script":')
               THEN substr(c.arguments, instr(c.arguments, '"script":') + 9)
               WHEN instr(c.arguments, '"code":')
               THEN substr(c.arguments, instr(c.arguments, '"code":') + 7)
               WHEN substr(ltrim(c.arguments), 1, 1) NOT IN ('{', '[', '"')
               THEN '"' || replace(c.arguments, '"', '\"') || '"'
           END), '\\', char(1)), '\"', char(2)) AS given))
       ) END AS command,
       r.call_seq, r.call_position, c.call_id, c.arguments,
       strftime('%Y-%m-%dT%H:%M:%fZ', COALESCE(m.created_at, m.stored_at) / 1000.0, 'unixepoch') AS at, strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.stored_at / 1000.0, 'unixepoch') AS stored_at,
       CAST(
           COALESCE(m.created_at, m.stored_at) - COALESCE(n.created_at, n.stored_at)
           AS DOUBLE PRECISION
       ) / 1000 AS seconds,
       r.status, r.exit_code, r.has_stderr, r.error_prefix, r.length,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM session_segments g
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
JOIN tool_results r
    ON r.tree_id = g.tree_id AND r.branch = g.branch AND r.seq BETWEEN g.first AND g.last
JOIN messages m ON m.tree_id = r.tree_id AND m.branch = r.branch AND m.seq = r.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name
LEFT JOIN session_segments h
    ON h.tree_id = g.tree_id AND h.session_id = g.session_id
    AND r.call_seq BETWEEN h.first AND h.last
LEFT JOIN messages n ON n.tree_id = h.tree_id AND n.branch = h.branch AND n.seq = r.call_seq
LEFT JOIN tool_calls c
    ON c.tree_id = h.tree_id AND c.branch = h.branch
    AND c.seq = r.call_seq AND c.position = r.call_position;

CREATE VIEW note_log AS
SELECT n.session_id, n.branch, n.seq, m.role, n.key, n.value, strftime('%Y-%m-%dT%H:%M:%fZ', n.at / 1000.0, 'unixepoch') AS at, n.owner,
       (SELECT u.model FROM usages u
        WHERE u.tree_id = n.tree_id AND u.branch = n.branch AND u.seq <= n.seq
        ORDER BY u.seq DESC, u.usage DESC LIMIT 1) AS model
FROM notes n
JOIN sessions s ON s.tree_id = n.tree_id AND s.id = n.session_id
JOIN messages m ON m.tree_id = n.tree_id AND m.branch = n.branch AND m.seq = n.seq;

CREATE VIEW draft_log AS
SELECT d.session_id, d.draft, d.branch, d.head, strftime('%Y-%m-%dT%H:%M:%fZ', d.at / 1000.0, 'unixepoch') AS at, s.owner,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.live_until / 1000.0, 'unixepoch') AS live_until, d.wire_format, d.message
FROM drafts d
JOIN sessions s ON s.tree_id = d.tree_id AND s.id = d.session_id;

CREATE VIEW session_log AS
WITH runs AS (
    SELECT g.tree_id, g.session_id, g.last, f.turn, f.tokens_through,
           CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
    FROM session_segments g
    JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
    LEFT JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq = g.last
),
lines AS (
    SELECT tree_id, session_id, MAX(turn) AS turns, MAX(tokens_through) AS tokens,
           MAX(CASE WHEN inherited = 1 THEN last ELSE 0 END) AS inherited,
           MAX(CASE WHEN inherited = 1 THEN tokens_through ELSE 0 END) AS inherited_tokens
    FROM runs
    GROUP BY tree_id, session_id
),
costs AS (
    SELECT session_id, SUM(cost) AS cost FROM usage_costs GROUP BY session_id
),
asked AS (
    SELECT session_id, GROUP_CONCAT(model, ', ') AS models
    FROM (
        SELECT DISTINCT session_id, model FROM usage_costs
        WHERE model IS NOT NULL ORDER BY session_id, model
    ) AS named
    GROUP BY session_id
)
SELECT s.id AS session_id, s.title, strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.updated_at / 1000.0, 'unixepoch') AS updated_at, s.project_root,
       (SELECT r.id FROM sessions r
        WHERE r.tree_id = s.tree_id AND r.forked_at IS NULL) AS root_session,
       s.forked_from, s.forked_at,
       (SELECT COUNT(*) FROM sessions f
        WHERE f.tree_id = s.tree_id AND f.forked_from = s.id) AS forks,
       s.head AS messages, s.head - COALESCE(l.inherited, 0) AS own_messages,
       COALESCE(l.turns, 0) AS turns, COALESCE(l.tokens, 0) AS tokens,
       COALESCE(l.tokens - l.inherited_tokens, 0) AS own_tokens,
       s.owner, s.archived, s.source, a.models, c.cost, s.metadata
FROM sessions s
LEFT JOIN lines l ON l.tree_id = s.tree_id AND l.session_id = s.id
LEFT JOIN costs c ON c.session_id = s.id
LEFT JOIN asked a ON a.session_id = s.id;

CREATE VIEW request_log AS
SELECT r.session_id, r.request, r.branch, r.seq, strftime('%Y-%m-%dT%H:%M:%fZ', r.at / 1000.0, 'unixepoch') AS at, s.owner, r.kind, r.format,
    r.policy_name AS policy, r.tokens, r.unchanged_tokens, u.input, u.cached,
    COALESCE(u.written, 0) AS written, u.output, u.model, r.usage_seq, r.usage_number,
    r.layers, r.compactions, r.release, r.digest
FROM requests r
JOIN sessions s ON s.tree_id = r.tree_id AND s.id = r.session_id
LEFT JOIN usages u ON u.tree_id = r.tree_id AND u.branch = r.usage_branch
    AND u.seq = r.usage_seq AND u.usage % 4294967296 = r.usage_number;

CREATE INDEX ix_kept_usages_owner ON kept_usages (owner) WHERE owner IS NOT NULL;

CREATE VIEW usage_costs AS
WITH spent AS (
    SELECT b.session_id, u.branch, u.seq, u.usage % 4294967296 AS number, u.at, s.owner, u.model,
        u.input - u.cached - COALESCE(u.written, 0) AS input, u.cached,
        COALESCE(u.written, 0) AS written, u.output, u.cost, u.at - u.at % 86400000 AS day,
        CASE WHEN EXISTS (
            SELECT 1 FROM prices p WHERE p.model = u.model AND p.owner IN ('', s.owner)
        ) THEN u.model ELSE u.base_model END AS listed
    FROM usages u
    JOIN branches b ON b.tree_id = u.tree_id AND b.branch = u.branch
    JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, k.day * 86400000, k.owner, k.model,
        k.input - k.cached - k.written, k.cached, k.written, k.output, k.cost, k.day * 86400000,
        CASE WHEN EXISTS (
            SELECT 1 FROM prices p WHERE p.model = k.model AND p.owner IN ('', k.owner)
        ) THEN k.model ELSE k.base_model END
    FROM kept_usages k
), dated AS (
    SELECT spent.*, (
            SELECT MAX(p.valid_from) FROM prices p
            WHERE p.owner = spent.owner AND p.model = spent.listed AND p.valid_from <= spent.day
        ) AS own_from, (
            SELECT MAX(p.valid_from) FROM prices p
            WHERE p.owner = '' AND p.model = spent.listed AND p.valid_from <= spent.day
        ) AS public_from
    FROM spent
)
SELECT d.session_id, d.branch, d.seq, d.number, strftime('%Y-%m-%dT%H:%M:%fZ', d.at / 1000.0, 'unixepoch') AS at, d.owner, d.model,
    CASE WHEN p.model IS NULL THEN d.cost ELSE (
        CASE WHEN d.input = 0 THEN 0 ELSE d.input * p.input END
        + CASE WHEN d.cached = 0 THEN 0 ELSE d.cached * p.cached END
        + CASE WHEN d.written = 0 THEN 0 ELSE d.written * p.written END
        + CASE WHEN d.output = 0 THEN 0 ELSE d.output * p.output END
    ) / 1000000.0 END AS cost, p.model AS price_model, strftime('%Y-%m-%dT%H:%M:%fZ', p.valid_from / 1000.0, 'unixepoch') AS price_from
FROM dated d
LEFT JOIN prices p ON d.cost IS NULL AND p.model = d.listed
    AND p.owner = CASE WHEN d.own_from IS NULL THEN '' ELSE d.owner END
    AND p.valid_from = COALESCE(d.own_from, d.public_from);

CREATE INDEX ix_sessions_id ON sessions (id);

CREATE VIEW turn_log AS
WITH turns AS (
    SELECT g.tree_id, g.session_id, f.turn, MIN(f.seq) AS first, MAX(f.seq) AS last,
           COUNT(*) AS messages, CAST(SUM(f.tokens) AS BIGINT) AS tokens,
           SUM(CASE WHEN f.role = 'tool' THEN 1 ELSE 0 END) AS tool_results,
           MIN(f.seq * 4294967296 + f.branch) % 4294967296 AS first_branch,
           MAX(f.seq * 4294967296 + f.branch) % 4294967296 AS last_branch
    FROM session_segments g
    JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq BETWEEN g.first AND g.last
    GROUP BY g.tree_id, g.session_id, f.turn
)
SELECT t.session_id, t.turn, t.first, t.last, t.messages, t.tool_results, t.tokens,
       strftime('%Y-%m-%dT%H:%M:%fZ', COALESCE(m.created_at, m.stored_at) / 1000.0, 'unixepoch') AS at, strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.stored_at / 1000.0, 'unixepoch') AS stored_at,
       CAST(
           COALESCE(n.created_at, n.stored_at) - COALESCE(m.created_at, m.stored_at)
           AS DOUBLE PRECISION
       ) / 1000 AS seconds,
       CASE WHEN m.role = 'user' THEN m.content END AS user_content,
       CASE WHEN b.session_id = t.session_id THEN 0 ELSE 1 END AS inherited
FROM turns t
JOIN branches b ON b.tree_id = t.tree_id AND b.branch = t.first_branch
JOIN messages m ON m.tree_id = t.tree_id AND m.branch = t.first_branch AND m.seq = t.first
JOIN messages n ON n.tree_id = t.tree_id AND n.branch = t.last_branch AND n.seq = t.last;

CREATE INDEX ix_message_attachments_tree_id_digest ON message_attachments (tree_id, digest);

CREATE TRIGGER attachments_no_update BEFORE UPDATE ON attachments
BEGIN SELECT RAISE(ABORT, 'raw rows of attachments never change'); END;

CREATE TRIGGER attachments_no_delete BEFORE DELETE ON attachments
WHEN EXISTS (SELECT 1 FROM message_attachments WHERE tree_id = OLD.tree_id AND digest = OLD.digest)
BEGIN SELECT RAISE(ABORT, 'raw rows of attachments go only with a message that has them'); END;

CREATE TRIGGER attachments_no_replace BEFORE INSERT ON attachments
WHEN EXISTS (SELECT 1 FROM attachments WHERE tree_id = NEW.tree_id AND digest = NEW.digest)
    OR EXISTS (SELECT 1 FROM attachments WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'raw rows of attachments are never replaced'); END;

CREATE TRIGGER message_attachments_no_update BEFORE UPDATE ON message_attachments
BEGIN SELECT RAISE(ABORT, 'raw rows of message_attachments never change'); END;

CREATE TRIGGER message_attachments_no_delete BEFORE DELETE ON message_attachments
WHEN NOT EXISTS (
    SELECT 1 FROM erasures
    WHERE tree_id = OLD.tree_id AND branch = OLD.branch AND OLD.seq > kept AND finished_at IS NULL
) AND NOT EXISTS (
    SELECT 1 FROM redactions
    WHERE tree_id = OLD.tree_id AND branch = OLD.branch AND redactions.seq = OLD.seq AND finished_at IS NULL
)
BEGIN SELECT RAISE(ABORT, 'raw rows of message_attachments go only with a message that has them'); END;

CREATE TRIGGER message_attachments_no_replace BEFORE INSERT ON message_attachments
WHEN EXISTS (SELECT 1 FROM message_attachments WHERE tree_id = NEW.tree_id AND branch = NEW.branch AND seq = NEW.seq AND position = NEW.position)
    OR EXISTS (SELECT 1 FROM message_attachments WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'raw rows of message_attachments are never replaced'); END;

INSERT INTO alembic_version VALUES
('0013');
