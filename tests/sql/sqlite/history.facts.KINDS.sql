SELECT json_group_object(tool_kinds.name, tool_kinds.kind) AS anon_1
FROM tool_kinds
