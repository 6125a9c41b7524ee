INSERT INTO tool_calls (
  tree_id,
  branch,
  seq,
  position,
  call_id,
  name,
  arguments_form,
  arguments,
  extra
)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(position)s::BIGINT,
  %(call_id)s::VARCHAR,
  %(name)s::VARCHAR,
  %(arguments_form)s::VARCHAR,
  %(arguments)s::VARCHAR,
  %(extra)s::VARCHAR
)
