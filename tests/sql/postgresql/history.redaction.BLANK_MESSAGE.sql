UPDATE messages
SET role=%(new_role)s::VARCHAR,
  name=%(new_name)s::VARCHAR,
  status=%(new_status)s::VARCHAR,
  tool_call_id=%(new_tool_call_id)s::VARCHAR,
  created_at=%(new_created_at)s::BIGINT,
  message_id=%(new_message_id)s::VARCHAR,
  digest=%(new_digest)s,
  extra=%(new_extra)s::VARCHAR,
  content_form=%(new_content_form)s::VARCHAR,
  content=%(new_content)s::VARCHAR
WHERE messages.tree_id = %(tree)s::BIGINT
  AND messages.branch = %(of)s::BIGINT
  AND messages.seq = %(position)s::BIGINT
