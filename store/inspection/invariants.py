"""The rules between the rows of sessions, branches, moves and records.

Each rule is a query that finds nothing in a sound store, and a comment before it: the place and
the problem of a breach, as formats that are filled in from the found row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import text

from ..database import Statement
from ..records import Finding

ROW_RULES = """
-- session {0!r}: is in the look-up of ids, but not in the tree {1} that this names
SELECT i.id, i.tree_id FROM session_ids i LEFT JOIN sessions s USING (tree_id, id) WHERE s.head IS NULL
-- session {0!r}: cannot be found, it is not in the look-up of ids
SELECT s.id FROM sessions s LEFT JOIN session_ids i USING (tree_id, id) WHERE i.id IS NULL
-- session {0!r}: its head is on branch {1}, which is not its own
SELECT s.id, s.head_branch FROM sessions s LEFT JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
WHERE b.session_id IS NULL OR b.session_id <> s.id
-- session {0!r}: its case rule is not that of session {1!r} in the same tree
SELECT s.id, o.id FROM sessions s
JOIN sessions o ON o.tree_id = s.tree_id AND o.id = (SELECT MIN(id) FROM sessions WHERE tree_id = s.tree_id)
WHERE s.fold_case <> o.fold_case
-- session {0!r}: its project root is not that of session {1!r}, which it continues
SELECT s.id, o.id FROM sessions s
JOIN head_moves f ON f.tree_id = s.tree_id AND f.session_id = s.id AND f.move = 1 AND f.source_move IS NOT NULL
JOIN branches b ON b.tree_id = s.tree_id AND b.branch = f.from_branch AND b.session_id = s.forked_from
JOIN sessions o ON o.tree_id = s.tree_id AND o.id = s.forked_from
WHERE COALESCE(s.project_root, '') <> COALESCE(o.project_root, '')
-- session {0!r}: was forked at {1}, but its first move went to {2}
SELECT s.id, s.forked_at, m.to_position FROM sessions s
LEFT JOIN head_moves m ON m.tree_id = s.tree_id AND m.session_id = s.id AND m.move = 1 AND m.kind = 'fork'
WHERE COALESCE(s.forked_at, -1) <> COALESCE(m.to_position, -1)
-- session {0!r}: its head is at {1} on branch {2}, its last move went to {3} on branch {4}
SELECT s.id, s.head, s.head_branch, m.to_position, m.to_branch FROM sessions s
JOIN head_moves m ON m.tree_id = s.tree_id AND m.session_id = s.id
    AND m.move = (SELECT MAX(move) FROM head_moves WHERE tree_id = s.tree_id AND session_id = s.id)
WHERE m.to_branch <> s.head_branch OR m.to_position > s.head
    OR (m.kind IN ('rewind', 'switch') AND COALESCE(s.last_rewind, 0) <> m.move)
-- session {0!r}: its head is at {1}, where no move went to, but its branch ends at {2}
SELECT s.id, s.head, s.last FROM (
    SELECT e.*, COALESCE((SELECT MAX(seq) FROM messages m WHERE m.tree_id = e.tree_id AND m.branch = e.head_branch), 0) AS last
    FROM sessions e) AS s
WHERE s.head <> s.last AND NOT EXISTS (
    SELECT 1 FROM head_moves m WHERE m.tree_id = s.tree_id AND m.session_id = s.id AND m.to_branch = s.head_branch
        AND m.to_position = s.head AND NOT EXISTS (
            SELECT 1 FROM head_moves n WHERE n.tree_id = m.tree_id AND n.session_id = m.session_id AND n.move > m.move))
-- session {0!r}: its last rewind is move {1}, which is none of its rewinds and switches
SELECT s.id, s.last_rewind FROM sessions s
LEFT JOIN head_moves m ON m.tree_id = s.tree_id AND m.session_id = s.id AND m.move = s.last_rewind
    AND kind IN ('rewind', 'switch')
WHERE s.last_rewind IS NOT NULL AND m.move IS NULL
-- session {0!r}, move {1}: does not follow from the move before it
SELECT session_id, move FROM (
    SELECT m.*, LAG(move) OVER w AS earlier, LAG(to_branch) OVER w AS branch, LAG(to_position) OVER w AS position,
        CASE LAG(kind) OVER w WHEN 'fork' THEN NULL WHEN 'undo' THEN earlier_rewind ELSE move - 1 END AS undoable
    FROM head_moves m WINDOW w AS (PARTITION BY tree_id, session_id ORDER BY move)
) AS followed WHERE move <> COALESCE(earlier, 0) + 1 OR from_branch <> branch OR from_position < position
    OR (kind IN ('rewind', 'switch') AND COALESCE(earlier_rewind, 0) <> COALESCE(undoable, 0))
-- session {0!r}, move {1}: no {2} goes from {3} to {4}
SELECT m.session_id, m.move, m.kind, m.from_position, m.to_position FROM head_moves m
WHERE m.kind NOT IN ('fork', 'rewind', 'switch', 'undo') OR (m.kind = 'fork' AND m.move <> 1)
    OR (m.kind = 'rewind' AND m.to_position >= m.from_position)
    OR (m.kind = 'undo' AND NOT EXISTS (
        SELECT 1 FROM head_moves r
        WHERE r.tree_id = m.tree_id AND r.session_id = m.session_id AND r.kind IN ('rewind', 'switch')
            AND r.move < m.move AND r.from_position = m.to_position
            AND (r.from_branch = m.to_branch OR r.to_branch < m.to_branch)))
-- session {0!r}: has keys of metadata, but there is no such session
SELECT DISTINCT k.session_id FROM session_keys k
LEFT JOIN sessions s ON s.tree_id = k.tree_id AND s.id = k.session_id WHERE s.id IS NULL
-- session {0!r}: has a draft, but there is no such session
SELECT d.session_id FROM drafts d
LEFT JOIN sessions s ON s.tree_id = d.tree_id AND s.id = d.session_id WHERE s.id IS NULL
-- session {0!r}, move {1}: there is no such session
SELECT m.session_id, m.move FROM head_moves m
LEFT JOIN sessions s ON s.tree_id = m.tree_id AND s.id = m.session_id WHERE s.id IS NULL
-- tree {0}, branch {1}: belongs to session {2!r}, which does not exist
SELECT b.tree_id, b.branch, b.session_id FROM branches b
LEFT JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id WHERE b.session_id IS NOT NULL AND s.id IS NULL
-- tree {0}, branch {1}: belongs to no session, and no line runs through it
SELECT b.tree_id, b.branch FROM branches b WHERE b.session_id IS NULL
    AND NOT EXISTS (SELECT 1 FROM branches c WHERE c.tree_id = b.tree_id AND c.parent_branch = b.branch)
    AND NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.tree_id = b.tree_id AND e.branch = b.branch AND e.finished_at IS NULL)
-- tree {0}, branch {1}: knows of compaction {2}, which this tree never had
SELECT b.tree_id, b.branch, b.records_seen FROM branches b WHERE b.records_seen > COALESCE(
    (SELECT MAX(compaction) FROM compaction_records c WHERE c.tree_id = b.tree_id), 0)
-- session {0!r}, move {1}: knows of compaction {2}, which this tree never had
SELECT m.session_id, m.move, m.source_record FROM head_moves m WHERE m.source_record > COALESCE(
    (SELECT MAX(compaction) FROM compaction_records c WHERE c.tree_id = m.tree_id), 0)
-- tree {0}, branch {1}: continues branch {2} from {3}, which this does not hold
SELECT b.tree_id, b.branch, b.parent_branch, b.parent_position FROM branches b
WHERE (b.parent_branch IS NULL AND b.parent_position <> 0) OR b.parent_branch >= b.branch
    OR (b.parent_branch IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM branches p
        LEFT JOIN messages m ON m.tree_id = p.tree_id AND m.branch = p.branch AND m.seq = b.parent_position
        WHERE p.tree_id = b.tree_id AND p.branch = b.parent_branch
            AND (p.parent_position < m.seq OR (p.parent_position = b.parent_position AND EXISTS (
                SELECT 1 FROM compaction_records c
                WHERE c.tree_id = p.tree_id AND c.branch = p.branch AND c.head = p.parent_position)))))
    AND NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.tree_id = b.tree_id AND e.branch = b.branch AND e.finished_at IS NULL)
-- tree {0}, branch {1}, {2} {3}: is about position {4}, beyond the end of its branch
SELECT c.tree_id, c.branch, c.kind, c.number, c.position FROM (
    SELECT tree_id, branch, 'compaction' AS kind, compaction AS number, head AS position FROM compaction_records
    UNION ALL SELECT tree_id, branch, 'summary', summary, last FROM summaries
) AS c JOIN branches b USING (tree_id, branch) WHERE c.position > b.parent_position AND c.position > COALESCE(
    (SELECT MAX(seq) FROM messages m WHERE m.tree_id = c.tree_id AND m.branch = c.branch), 0)
    AND NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.tree_id = c.tree_id AND e.branch = c.branch AND e.finished_at IS NULL)
-- tree {0}, compaction {1}: hides positions {2} to {3}, which are no range before its head
SELECT tree_id, compaction, hidden_first, hidden_last FROM compaction_records
WHERE kind = 'hide' AND (first_kept IS NOT NULL OR COALESCE(hidden_first, 0) NOT BETWEEN 1 AND hidden_last
    OR COALESCE(hidden_last, 0) NOT BETWEEN 1 AND head)
-- tree {0}, branch {1}, position {2}: its redaction is still open, so its raw rows are not protected
SELECT tree_id, branch, seq FROM redactions WHERE finished_at IS NULL
-- tree {0}, branch {1}, position {2}: is recorded as redacted, but says something
SELECT r.tree_id, r.branch, r.seq FROM redactions r LEFT JOIN messages m USING (tree_id, branch, seq)
WHERE COALESCE(m.content, '') <> '[redacted]'
-- tree {0}, erasure {1}: is recorded as purged, but not as ended
SELECT tree_id, erasure FROM erasures WHERE finished_at IS NULL AND purged_at IS NOT NULL
-- tree {0}, erasure {1}: is still open, so raw rows of branch {2} are not protected, though it is none to erase
SELECT e.tree_id, e.erasure, e.branch FROM erasures e
LEFT JOIN branches b ON b.tree_id = e.tree_id AND b.branch = e.branch
WHERE e.finished_at IS NULL AND (b.branch IS NULL OR b.session_id IS NOT NULL)
"""
"""The rules between rows: the place and the problem of a breach, and a query for breaches."""


class RowRule(NamedTuple):
    """A rule: the place and the problem of a breach, as formats, and the query that finds them."""

    where: str
    problem: str
    query: str

    def breaches(self, rows: Iterable[Any]) -> Iterator[Finding]:
        """Yield a finding for each row that the query found."""
        for row in rows:
            yield Finding("heads", self.where.format(*row), self.problem.format(*row))


@cache
def parse_rules() -> list[RowRule]:
    """Return the rules one by one."""
    parts = (each.partition("\n") for each in ROW_RULES.split("\n-- ")[1:])
    split = ((*comment.partition(": "), query) for comment, _, query in parts)
    return [RowRule(where, problem, query) for where, _, problem, query in split]


_RULE_TABLES = (
    *("session_ids", "sessions", "branches", "head_moves", "session_keys", "drafts"),
    *("compaction_records", "summaries", "redactions", "erasures"),
)


@cache
def list_tree_rules(dialect: str) -> list[tuple[RowRule, Statement[Any]]]:
    """Return the rules with statements that check one tree, ``tree_id``.

    Each query of all trees follows definitions of its tables that hold only the rows of the tree.
    """
    schema = "main." if dialect == "sqlite" else ""  # a bare name means the new one in SQLite
    of_tree = "{0} AS NOT MATERIALIZED (SELECT * FROM {1}{0} WHERE tree_id = :tree_id)"
    begin = f"WITH {', '.join(of_tree.format(name, schema) for name in _RULE_TABLES)}"
    return [(rule, Statement(text(f"{begin} {rule.query}"))) for rule in parse_rules()]
