INSERT INTO draft_pieces (tree_id, draft, piece, at, key, text, sealed)
VALUES (
  %(tree_id)s::BIGINT,
  %(draft)s::BIGINT,
  %(piece)s::BIGINT,
  %(at)s::BIGINT,
  %(key)s::VARCHAR,
  %(text)s::VARCHAR,
  %(sealed)s
)
