UPDATE messages
SET role=:new_role,
  name=:new_name,
  status=:new_status,
  tool_call_id=:new_tool_call_id,
  created_at=:new_created_at,
  message_id=:new_message_id,
  digest=:new_digest,
  extra=:new_extra,
  content_form=:new_content_form,
  content=:new_content
WHERE messages.tree_id = :tree
  AND messages.branch = :of
  AND messages.seq = :position
