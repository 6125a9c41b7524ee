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
  :tree_id,
  :branch,
  :seq,
  :position,
  :call_id,
  :name,
  :arguments_form,
  :arguments,
  :extra
)
