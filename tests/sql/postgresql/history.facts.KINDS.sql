SELECT COALESCE(
  CAST(json_object_agg(tool_kinds.name, tool_kinds.kind) AS text),
  '{}'
) AS anon_1
FROM tool_kinds
