SELECT tool_kinds.name,
  tool_kinds.kind
FROM tool_kinds
