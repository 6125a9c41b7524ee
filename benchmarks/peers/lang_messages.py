"""Chat messages as LangChain's objects, and back."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ..workload import Message


def native(message: Message) -> BaseMessage:
    """Return a message as LangChain has it; its moment among the other arguments."""
    given: dict[str, Any] = {
        "content": message["content"],
        "additional_kwargs": {"timestamp": message["timestamp"]},
    }
    if message["role"] == "user":
        return HumanMessage(**given)
    if message["role"] == "tool":
        return ToolMessage(**given, tool_call_id=message["tool_call_id"])
    return AIMessage(**given, tool_calls=[*map(_call, message.get("tool_calls", ()))])


def _call(call: Message) -> dict[str, Any]:
    function = call["function"]
    return {"id": call["id"], "name": function["name"], "args": json.loads(function["arguments"])}


def plain(message: BaseMessage) -> Message:
    """Return the message that went in."""
    roles = {"human": "user", "ai": "assistant", "tool": "tool"}
    found: Message = {"role": roles[message.type], "content": message.content}
    if isinstance(message, AIMessage) and message.tool_calls:
        found["tool_calls"] = [_plain_call(call) for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        found["tool_call_id"] = message.tool_call_id
    found["timestamp"] = message.additional_kwargs["timestamp"]
    return found


def _plain_call(call: Any) -> Message:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function}
