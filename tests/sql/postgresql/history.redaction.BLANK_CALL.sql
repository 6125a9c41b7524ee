UPDATE tool_calls
SET call_id=%(new_call_id)s::VARCHAR,
  name=%(new_name)s::VARCHAR,
  arguments_form=%(new_arguments_form)s::VARCHAR,
  arguments=%(new_arguments)s::VARCHAR,
  extra=%(new_extra)s::VARCHAR
WHERE tool_calls.tree_id = %(tree)s::BIGINT
  AND tool_calls.branch = %(of)s::BIGINT
  AND tool_calls.seq = %(position)s::BIGINT
  AND tool_calls.position = %(number)s::BIGINT
