UPDATE tool_calls
SET call_id=:new_call_id,
  name=:new_name,
  arguments_form=:new_arguments_form,
  arguments=:new_arguments,
  extra=:new_extra
WHERE tool_calls.tree_id = :tree
  AND tool_calls.branch = :of
  AND tool_calls.seq = :position
  AND tool_calls.position = :number
