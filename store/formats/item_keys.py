"""The items of the Responses API and the keys of each type; any other key is the caller's own.

An item of a type that is not listed may belong to a later version of the API. Its keys are unknown,
so it is sent unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

MESSAGE_ITEM = "message"
ITEM_KEYS: Mapping[str, frozenset[str]] = {
    kind: frozenset(("type", "id", *keys.split()))
    for kind, keys in {
        MESSAGE_ITEM: "role content status phase",
        "additional_tools": "role tools",
        "apply_patch_call": "call_id caller operation status",
        "apply_patch_call_output": "call_id caller output status",
        "code_interpreter_call": "code container_id outputs status",
        "compaction": "encrypted_content",
        "compaction_trigger": "",
        "computer_call": "action actions call_id pending_safety_checks status",
        "computer_call_output": "acknowledged_safety_checks call_id output status",
        "configuration_update": "reasoning text",
        "custom_tool_call": "async call_id caller input name namespace",
        "custom_tool_call_output": "call_id caller output",
        "file_search_call": "queries results status",
        "function_call": "arguments async call_id caller name namespace status",
        "function_call_output": "call_id caller name namespace output status",
        "image_generation_call": (
            "action background error output_format quality result revised_prompt size status "
            "svg_usage"
        ),
        "item_reference": "",
        "local_shell_call": "action call_id status",
        "local_shell_call_output": "call_id output status",
        "mcp_approval_request": "arguments name server_label",
        "mcp_approval_response": "approval_request_id approve reason",
        "mcp_call": "approval_request_id arguments error name output server_label status",
        "mcp_list_tools": "error server_label tools",
        "program": "call_id code fingerprint",
        "program_output": "call_id result status",
        "reasoning": "content encrypted_content status summary",
        "shell_call": "action call_id caller environment status",
        "shell_call_output": "call_id caller max_output_length output status",
        "tool_search_call": "arguments call_id execution status",
        "tool_search_output": "call_id execution status tools",
        "web_search_call": "action status",
    }.items()
}
"""The keys that an item of each type may have in a request."""
RESULT_TYPES: Mapping[str, str] = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "function_call": "function_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""The types of calls that a client answers, with the types of their results."""
