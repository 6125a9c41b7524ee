"""Made-up conversations with what providers added late in 2025 and in 2026, each in its own shape.

Names, ids and signatures are invented; the shapes are those of the providers' clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

Message = dict[str, Any]
PNG = "iVBORw0KGgo="
PNG_URL = f"data:image/png;base64,{PNG}"
PDF = "JVBERi0xLjQ="
SIGNATURE = "c2lnbmF0dXJl"
MARKER = {"type": "ephemeral", "ttl": "1h"}


class Feature(NamedTuple):
    """A conversation: its format, its messages, and how they come back where not as they went in.

    ``fields`` are those of the policy by which they do.
    """

    format: str
    messages: list[Message]
    back: list[Message] | None = None
    fields: Mapping[str, Any] = MappingProxyType({})


def asks(content: Any = "Do it.") -> Message:
    """A user's message of a chat or of Responses."""
    return {"role": "user", "content": content}


def answers(content: Any = "Done.", **more: Any) -> Message:
    """An assistant's message of a chat."""
    return {"role": "assistant", "content": content, **more}


def result(content: Any = "ok", call_id: str = "c1") -> Message:
    """A result of a chat's."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def function(call_id: str = "c1", name: str = "look", **more: Any) -> Message:
    """A call of a chat's."""
    asked = {"name": name, "arguments": '{"path": "a"}'}
    return {"id": call_id, "type": "function", "function": asked, **more}


SIGNED = {"google": {"thought_signature": SIGNATURE}}
DETAILS = [
    {"type": "reasoning.text", "text": "Look.", "signature": SIGNATURE, "index": 0},
    {"type": "reasoning.encrypted", "data": SIGNATURE, "id": "r1", "index": 1},
]
CHATS: dict[str, Feature] = {
    "reasoning of DeepSeek, Kimi and GLM": Feature(
        "openai",
        [
            asks(),
            answers(None, reasoning_content="Look.", tool_calls=[function()]),
            result(),
            answers(reasoning_content="It is."),
        ],
    ),
    "reasoning of OpenRouter": Feature(
        "openai",
        [
            asks(),
            answers("", reasoning="Look.", reasoning_details=DETAILS, tool_calls=[function()]),
            result(),
        ],
    ),
    "signature of a thought of Gemini": Feature(
        "openai",
        [
            asks(),
            answers(None, tool_calls=[function(extra_content=SIGNED), function("c2")]),
            result(),
            result("ok", "c2"),
            answers(extra_content=SIGNED),
        ],
    ),
    "spoken answer": Feature(
        "openai",
        [asks(), {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}, asks("And?")],
    ),
    "spoken answer as it was returned": Feature(
        "openai",
        [
            asks(),
            answers(
                None,
                refusal=None,
                audio={"id": "a1", "data": PNG, "transcript": "Hello.", "expires_at": 2**40},
            ),
            asks("And?"),
        ],
        back=[asks(), answers(None, audio={"id": "a1"}), asks("And?")],
    ),
    "call of free text": Feature(
        "openai",
        [
            asks(),
            answers(
                None,
                tool_calls=[
                    {
                        "id": "c1",
                        "type": "custom",
                        "custom": {"name": "patch", "input": "*** Begin"},
                    }
                ],
            ),
            result(),
        ],
    ),
    "refusal": Feature(
        "openai",
        [asks(), answers(None, refusal="I will not."), asks("Why?")],
        back=[
            asks(),
            answers([{"type": "refusal", "refusal": "I will not."}]),
            asks("Why?"),
        ],
    ),
    "pictures, sounds and files": Feature(
        "openai",
        [
            asks(
                [
                    {"type": "text", "text": "See."},
                    {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "high"}},
                    {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file_1"}},
                    {
                        "type": "file",
                        "file": {
                            "filename": "a.pdf",
                            "file_data": f"data:application/pdf;base64,{PDF}",
                        },
                    },
                ]
            ),
            answers(),
        ],
    ),
    "developer, names and parts of results": Feature(
        "openai",
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": "Do it."},
            answers(None, tool_calls=[function()]),
            result([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
        ],
    ),
}


def item(kind: str, **fields: Any) -> Message:
    """An item of Responses."""
    return {"type": kind, **fields}


def called(call_id: str = "c1", **more: Any) -> Message:
    """A call of a function."""
    return item("function_call", call_id=call_id, name="look", arguments="{}", **more)


def returned(output: Any = "ok", call_id: str = "c1", **more: Any) -> Message:
    """A result of a function."""
    return item("function_call_output", call_id=call_id, output=output, **more)


SAYS = item("message", role="user", content="Do it.")
SPOKEN = item(
    "message",
    id="msg_1",
    role="assistant",
    status="completed",
    phase="final_answer",
    content=[{"type": "output_text", "text": "Done.", "annotations": []}],
)
BY_PROGRAM = {"type": "program", "caller_id": "p1"}
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
LOOK |= {"strict": True, "description": "Look.", "defer_loading": True}
ITEMS: dict[str, Feature] = {
    "program that calls tools": Feature(
        "responses",
        [
            SAYS,
            item("program", id="prog_1", call_id="p1", code="await look()", fingerprint="f"),
            called(caller=BY_PROGRAM),
            returned(caller=BY_PROGRAM),
            item("program_output", id="po_1", call_id="p1", result="1", status="completed"),
            SPOKEN,
        ],
    ),
    "client's search for tools": Feature(
        "responses",
        [
            SAYS,
            item(
                "tool_search_call",
                id="ts_1",
                call_id="s1",
                execution="client",
                arguments={"query": "look"},
                status="completed",
            ),
            item(
                "tool_search_output",
                call_id="s1",
                execution="client",
                status="completed",
                tools=[LOOK],
            ),
            called(namespace="files"),
            returned(),
        ],
    ),
    "server's search for tools": Feature(
        "responses",
        [
            SAYS,
            item(
                "tool_search_call", id="ts_1", execution="server", arguments={}, status="completed"
            ),
            item("tool_search_output", execution="server", status="completed", tools=[LOOK]),
            SPOKEN,
        ],
    ),
    "encrypted reasoning and compaction": Feature(
        "responses",
        [
            item("compaction", id="cmp_1", encrypted_content=SIGNATURE),
            SAYS,
            item("reasoning", id="rs_1", summary=[], encrypted_content=SIGNATURE),
            called(id="fc_1", status="completed"),
            returned(id="fco_1", status="completed"),
            item("reasoning", id="rs_2", summary=[{"type": "summary_text", "text": "So."}]),
            SPOKEN,
        ],
    ),
    "pictures and files of a result": Feature(
        "responses",
        [
            SAYS,
            called(),
            returned(
                [
                    {"type": "input_text", "text": "See."},
                    {"type": "input_image", "image_url": PNG_URL, "detail": "high"},
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": f"data:application/pdf;base64,{PDF}",
                    },
                ]
            ),
        ],
        fields={"picture_keep": "all"},
    ),
    "shell and patches": Feature(
        "responses",
        [
            SAYS,
            item("shell_call", call_id="c1", action={"commands": ["ls"]}, status="completed"),
            item(
                "shell_call_output",
                call_id="c1",
                max_output_length=1000,
                output=[{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            ),
            item(
                "apply_patch_call",
                call_id="c2",
                status="completed",
                operation={"type": "create_file", "path": "a", "diff": "+x"},
            ),
            item("apply_patch_call_output", call_id="c2", status="completed", output="ok"),
            item("custom_tool_call", call_id="c3", name="sql", input="SELECT 1"),
            item("custom_tool_call_output", call_id="c3", output="1"),
        ],
    ),
    "a computer": Feature(
        "responses",
        [
            SAYS,
            item(
                "computer_call",
                id="cu_1",
                call_id="c1",
                actions=[{"type": "screenshot"}],
                pending_safety_checks=[],
                status="completed",
            ),
            item(
                "computer_call_output",
                call_id="c1",
                output={"type": "computer_screenshot", "image_url": PNG_URL},
            ),
        ],
    ),
    "MCP with an approval": Feature(
        "responses",
        [
            SAYS,
            item("mcp_list_tools", id="l1", server_label="a", tools=[]),
            item("mcp_approval_request", id="r1", name="look", arguments="{}", server_label="a"),
            item("mcp_approval_response", approval_request_id="r1", approve=True),
            item(
                "mcp_call",
                id="m1",
                approval_request_id="r1",
                name="look",
                arguments="{}",
                server_label="a",
                output="1",
            ),
            SPOKEN,
        ],
    ),
    "search, code and pictures of the server": Feature(
        "responses",
        [
            item("additional_tools", role="developer", tools=[LOOK]),
            SAYS,
            item(
                "web_search_call",
                id="ws_1",
                status="completed",
                action={
                    "type": "search",
                    "query": "x",
                    "sources": [{"type": "url", "url": "https://x"}],
                },
            ),
            item("file_search_call", id="fs_1", queries=["x"], status="completed"),
            item(
                "code_interpreter_call",
                id="ci_1",
                code="1",
                container_id="k",
                outputs=[{"type": "logs", "logs": "1"}],
                status="completed",
            ),
            item("image_generation_call", id="ig_1", result=PNG, status="completed"),
            SPOKEN,
        ],
    ),
}


def text(said: str = "Do it.", **more: Any) -> Message:
    """A block of text."""
    return {"type": "text", "text": said, **more}


def user(*blocks: Message) -> Message:
    """A user's message of Anthropic."""
    return {"role": "user", "content": [*blocks]}


def says(*blocks: Message) -> Message:
    """An assistant's message of Anthropic."""
    return {"role": "assistant", "content": [*blocks]}


def used(call_id: str = "t1", **more: Any) -> Message:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {"path": "a"}, **more}


def gave(content: Any = "ok", call_id: str = "t1", **more: Any) -> Message:
    """A block of a result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def server(name: str, **given: Any) -> Message:
    """A call of the server's own tool."""
    return {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": given}


def found(kind: str, content: Any) -> Message:
    """What the server's own tool gave."""
    return {"type": kind, "tool_use_id": "srvtoolu_1", "content": content}


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
THOUGHT = {"type": "thinking", "thinking": "Look.", "signature": SIGNATURE}
BY_CODE = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
RAN = {
    "type": "code_execution_result",
    "stdout": "1",
    "stderr": "",
    "return_code": 0,
    "content": [],
}
BLOCKS: dict[str, Feature] = {
    "calls that the server's code makes": Feature(
        "anthropic",
        [
            user(text()),
            says(text("So."), server("code_execution", code="await look()"), used(caller=BY_CODE)),
            user(gave()),
            says(found("code_execution_tool_result", RAN), text("Done.")),
        ],
    ),
    "markers for a cache": Feature(
        "anthropic",
        [
            user(text("Long."), text("Longer.", cache_control=MARKER)),
            says(text("So."), used(cache_control={"type": "ephemeral"})),
            user(gave([text("one", cache_control={"type": "ephemeral"})], cache_control=MARKER)),
        ],
        fields={"cache_control": True},
    ),
    "thinking between calls": Feature(
        "anthropic",
        [
            user(text()),
            says(
                THOUGHT,
                {"type": "redacted_thinking", "data": SIGNATURE},
                used(),
                THOUGHT,
                used("t2"),
            ),
            user(gave(), gave("no", "t2", is_error=True)),
            says(text("Done.")),
        ],
    ),
    "search and pages of the server": Feature(
        "anthropic",
        [
            user(text()),
            says(
                server("web_search", query="x"),
                found(
                    "web_search_tool_result",
                    [
                        {
                            "type": "web_search_result",
                            "url": "https://x",
                            "title": "x",
                            "encrypted_content": SIGNATURE,
                        }
                    ],
                ),
                text(
                    "It is x.",
                    citations=[
                        {
                            "type": "web_search_result_location",
                            "url": "https://x",
                            "title": "x",
                            "encrypted_index": SIGNATURE,
                            "cited_text": "x",
                        }
                    ],
                ),
            ),
        ],
    ),
    "search for tools": Feature(
        "anthropic",
        [
            user(text()),
            says(
                server("tool_search_tool_regex", query="look"),
                found(
                    "tool_search_tool_result",
                    {
                        "type": "tool_search_tool_search_result",
                        "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
                    },
                ),
                used(),
            ),
            user(gave()),
        ],
    ),
    "MCP of the server": Feature(
        "anthropic",
        [
            user(text()),
            says(
                {
                    "type": "mcp_tool_use",
                    "id": "mcptoolu_1",
                    "name": "look",
                    "server_name": "a",
                    "input": {},
                },
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_1",
                    "is_error": False,
                    "content": [text("1")],
                },
                text("Done."),
            ),
        ],
    ),
    "compaction of the server": Feature(
        "anthropic",
        [
            user(text()),
            says({"type": "compaction", "content": "So far."}, text("Done.")),
            user(text("And?")),
        ],
    ),
    "pictures, documents and quotations": Feature(
        "anthropic",
        [
            user(
                PICTURE,
                {
                    "type": "document",
                    "title": "a",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                    "citations": {"enabled": True},
                },
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {"type": "container_upload", "file_id": "file_2"},
                text(),
            ),
            says(used()),
            user(
                gave(
                    [
                        text("See."),
                        PICTURE,
                        {
                            "type": "search_result",
                            "source": "https://x",
                            "title": "x",
                            "content": [text("x")],
                            "citations": {"enabled": True},
                        },
                        {"type": "tool_reference", "tool_name": "look"},
                    ]
                )
            ),
        ],
        fields={"picture_current_turn": True},
    ),
    "files of the server's code": Feature(
        "anthropic",
        [
            user(text()),
            says(
                server("bash_code_execution", command="ls"),
                found(
                    "bash_code_execution_tool_result",
                    {
                        "type": "bash_code_execution_result",
                        "stdout": "a",
                        "stderr": "",
                        "return_code": 0,
                        "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
                    },
                ),
                text("Done."),
            ),
        ],
    ),
}


def asked(*parts: Message) -> Message:
    """A user's content of Gemini."""
    return {"role": "user", "parts": [*(parts or ({"text": "Do it."},))]}


def told(*parts: Message) -> Message:
    """A model's content of Gemini."""
    return {"role": "model", "parts": [*parts]}


def calls(name: str = "look", call_id: str = "g1", **more: Any) -> Message:
    """A part that calls a function."""
    return {"functionCall": {"id": call_id, "name": name, "args": {"path": "a"}}, **more}


def responds(name: str = "look", call_id: str = "g1", **said: Any) -> Message:
    """A part of a function's response."""
    response = said.pop("response", {"output": "ok"})
    return {"functionResponse": {"id": call_id, "name": name, "response": response, **said}}


SIGNS = {"thoughtSignature": SIGNATURE}
CONTENTS: dict[str, Feature] = {
    "signatures of thoughts": Feature(
        "gemini",
        [
            asked(),
            told({"text": "Look.", "thought": True}, calls(**SIGNS), calls("list", "g2")),
            asked(responds(), responds("list", "g2")),
            told({"text": "Done.", **SIGNS}),
        ],
    ),
    "a text that only signs": Feature(
        "gemini", [asked(), told({"text": "Done."}, {"text": "", **SIGNS}), asked({"text": "And?"})]
    ),
    "code of the server": Feature(
        "gemini",
        [
            asked(),
            told(
                {"executableCode": {"language": "PYTHON", "code": "1"}, **SIGNS},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"text": "Done."},
            ),
        ],
    ),
    "files and films": Feature(
        "gemini",
        [
            asked(
                {"text": "See."},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"fileData": {"fileUri": "https://x/a", "mimeType": "application/pdf"}},
                {
                    "fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"},
                    "videoMetadata": {"fps": 1.0},
                },
            ),
            told({"text": "Done."}),
        ],
    ),
    "a response that is an object": Feature(
        "gemini",
        [
            asked(),
            told(calls(**SIGNS)),
            asked(responds(response={"files": ["a"], "n": 1})),
        ],
    ),
    "a response that failed": Feature(
        "gemini",
        [asked(), told(calls(**SIGNS)), asked(responds(response={"error": "no"}))],
    ),
    "calls without ids": Feature(
        "gemini",
        [
            asked(),
            told({"functionCall": {"name": "look", "args": {}}}),
            asked({"functionResponse": {"name": "look", "response": {"output": "ok"}}}),
        ],
        back=[
            asked(),
            told(
                {
                    "functionCall": {"id": "look", "name": "look", "args": {}},
                    "thoughtSignature": "skip_thought_signature_validator",
                }
            ),
            asked(
                {"functionResponse": {"id": "look", "name": "look", "response": {"output": "ok"}}}
            ),
        ],
    ),
    "tools of the server": Feature(
        "gemini",
        [
            asked(),
            told(
                {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}, **SIGNS},
                {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
                {"text": "Done."},
            ),
        ],
    ),
    "pictures that the model made": Feature(
        "gemini",
        [
            asked(),
            told(
                {"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": PNG}, **SIGNS}
            ),
            asked({"text": "Larger."}),
        ],
    ),
}
FEATURES: dict[str, Feature] = {**CHATS, **ITEMS, **BLOCKS, **CONTENTS}
