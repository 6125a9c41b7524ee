INSERT INTO copies (copy, made_at, size, modified, kind, path, sealed)
VALUES (
  %(copy)s::BIGINT,
  %(made_at)s::BIGINT,
  %(size)s::BIGINT,
  %(modified)s::BIGINT,
  %(kind)s::VARCHAR,
  %(path)s::VARCHAR,
  %(sealed)s
)
