"""Files that tell more than the made-up one of their kind: titles, pictures, costs, compactions."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import test_transcripts_anthropic as anthropic
import test_transcripts_chatgpt as chatgpt
import test_transcripts_claude_ai as claude_ai
import test_transcripts_codex as codex
import test_transcripts_continue_dev as continue_dev
import test_transcripts_copilot_cli as copilot_cli
import test_transcripts_cursor as cursor
import test_transcripts_droid as droid
import test_transcripts_exchanges as exchanges
import test_transcripts_frameworks as frameworks
import test_transcripts_gemini_cli as gemini_cli
import test_transcripts_goose as goose
import test_transcripts_grok_build as grok_build
import test_transcripts_kimi as kimi
import test_transcripts_kiro as kiro
import test_transcripts_opencode as opencode
import test_transcripts_openhands as openhands
import test_transcripts_pi as pi
import test_transcripts_qwen_code as qwen_code
import test_transcripts_responses as responses
import test_transcripts_stream_json as stream_json
import test_transcripts_vscode_chat as vscode
from kind_checks import write_rows
from made_up import CLAUDE_CODE, PLAYED, ROLLOUT, SIMULATION, TALK

Writer = Callable[[Path], Any]
DATA = "iVBORw0KGgo="
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
URL = f"data:image/png;base64,{DATA}"


def rows_of(*rows: Any) -> Writer:
    """Return what writes a value a line."""
    return lambda path: write_rows(path, rows)


def claude_code(path: Path) -> Path:
    """Write a session with a title, a picture, costs and a subagent."""
    said = {"sessionId": "s", "cwd": "/app", "timestamp": "2026-01-01T00:00:00Z"}
    told = {
        "model": "claude-sonnet-4-5",
        "usage": {"input_tokens": 1, "cache_read_input_tokens": 2},
    }
    asked = {"type": "user", "message": {"role": "user", "content": [PICTURE]}, "uuid": "shown"}
    below = {**asked, "uuid": "below", "isSidechain": True, "agentId": "a"}
    rows = [
        {**row, "cwd": "/app", "message": {**told, **row["message"]}}
        if row["type"] == "assistant"
        else row
        for row in CLAUDE_CODE
    ]
    title = {"type": "custom-title", "customTitle": "A title", "sessionId": "s"}
    return write_rows(path, [title, *rows, {**said, **asked}, {**said, **below}])


SPENT = {"input_tokens": 9, "cached_input_tokens": 5, "output_tokens": 2, "total_tokens": 11}
ROLLED = [
    *ROLLOUT,
    codex.event("token_count", info={"last_token_usage": SPENT, "total_token_usage": SPENT}),
]
"""A rollout with what a request cost."""
SHOWN = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": URL}]}
KEPT = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "So far."}]}]
ASKED = {"role": "user", "content": "Look."}
CALLED = {
    "role": "assistant",
    "content": [anthropic.THOUGHT, anthropic.CALL],
}
SEEN = {"role": "user", "content": [anthropic.RESULT, PICTURE]}
ANSWERED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "So."}],
    "usage": {"input_tokens": 1, "cache_read_input_tokens": 5, "output_tokens": 2},
}
COST = {"modelInfo": {"id": "gpt-5"}, "metrics": anthropic.SPENT, "ts": 1_700_000_000_000}
LOOKED = {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": 1}}
FOUND = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "one"}]}
THOUGHTS = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Hm."}]}


def kimi_cli(path: Path) -> Path:
    """Write a session in the folder of its project, which a file of the program's names."""
    home, digest = path.parent, md5(b"/app", usedforsecurity=False).hexdigest()
    (home / "kimi.json").write_text(json.dumps({"work_dirs": [{"path": "/app"}]}))
    place = home / "sessions" / digest / "s" / "wire.jsonl"
    write_rows(place.with_name("state.json"), [{"title": "Names"}])
    return write_rows(place, kimi.WIRE)


def kiro_desktop(path: Path) -> Path:
    """Write a session of Kiro's editor, with the file beside it."""
    beside = {"id": "k", "title": "Names", "modelId": "auto", "workspacePaths": ["/app"]}
    write_rows(path.with_name("session.json"), [{**beside, "rootConversationId": "top"}])
    return kiro.write_records(path.with_name("messages.jsonl"), *kiro.RECORDS, *kiro.ENDED)


def vscode_chat(path: Path) -> Path:
    """Write a chat below the folder of its workspace."""
    place = path.parent / "chatSessions" / "f.json"
    place.parent.mkdir()
    path.with_name("workspace.json").write_text('{"folder": "file:///app"}')
    return vscode.whole(place, vscode.chat(vscode.agent(), customTitle="Names"))


WEATHER = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
OPEN_WEBUI = {
    "u1": {"parentId": None, "role": "user", "content": "Weather?", "timestamp": 1_700_000_000},
    "a1": {"parentId": "u1", "role": "assistant", "content": "No idea.", "model": "m"},
    "a2": {
        "parentId": "u1",
        "role": "assistant",
        "content": "18C.",
        "output": [
            {"type": "function_call", "call_id": "c1", **WEATHER},
            {"type": "function_call_output", "call_id": "c1", "output": "18C"},
        ],
    },
}
"""Messages of Open WebUI: a question with two answers."""
USED = {"id": "c1", "name": "get_weather", "args": WEATHER["arguments"], "output": "18C"}
LIBRECHAT = [
    {"messageId": "u", "isCreatedByUser": True, "text": "Weather?"},
    {"messageId": "b", "parentMessageId": "u", "isCreatedByUser": False, "text": "No idea."},
    {
        "messageId": "a",
        "parentMessageId": "u",
        "isCreatedByUser": False,
        "text": "",
        "createdAt": "2026-01-01T00:00:00Z",
        "content": [
            {"type": "think", "think": "Hm."},
            {"type": "tool_call", "tool_call": USED},
            {"type": "text", "text": "18C."},
        ],
    },
]
"""Messages of LibreChat: a question with two answers."""


FULLER: dict[str, tuple[Writer, ...]] = {
    "anthropic": (
        lambda path: anthropic.cline(path.parent),
        rows_of(*anthropic.LINE, {"role": "user", "content": [PICTURE]}),
    ),
    "chatgpt": (
        rows_of(
            chatgpt.conversation(
                "a3",
                chatgpt.QUESTION,
                chatgpt.node("a1", "u1", "assistant", THOUGHTS),
                chatgpt.node("a2", "a1", "assistant", chatgpt.CODE, recipient="python"),
                chatgpt.node("t1", "a2", "tool", chatgpt.OUTPUT),
                chatgpt.node("a3", "t1", "assistant", "One."),
            )
        ),
    ),
    "claude_ai": (
        rows_of(
            claude_ai.conversation(
                claude_ai.TALK[0],
                claude_ai.said(
                    "a1",
                    "assistant",
                    [{"type": "thinking", "thinking": "Hm."}, LOOKED, FOUND],
                ),
            )
        ),
        rows_of(
            claude_ai.conversation(
                claude_ai.said("u1", "human", "One?", parent_message_uuid=claude_ai.ROOT),
                claude_ai.said("a1", "assistant", "1", parent_message_uuid="u1"),
                claude_ai.said("a2", "assistant", "2", parent_message_uuid="u1"),
            )
        ),
    ),
    "droid": (
        rows_of(
            droid.HEAD,
            *droid.TALK,
            droid.entry("u3", "user", {"type": "text", "text": "Read b."}, PICTURE, parent="u1"),
        ),
        rows_of(
            droid.INIT,
            {"type": "message", "role": "user", "id": "u", "text": "Go.", "session_id": "s"},
        ),
    ),
    "librechat": (rows_of({"conversationId": "l", "title": "Names", "messages": LIBRECHAT}),),
    "open_webui": (
        rows_of(
            {
                "id": "w",
                "chat": {
                    "title": "Names",
                    "history": {"currentId": "a2", "messages": OPEN_WEBUI},
                },
            }
        ),
    ),
    "claude_code": (claude_code,),
    "codex": (
        rows_of(*ROLLED),
        rows_of(
            *ROLLED,
            codex.line("response_item", **SHOWN),
            codex.said("assistant", "A dot."),
            codex.event("thread_name_updated", thread_name="Named"),
            codex.line("compacted", message="So far.", replacement_history=KEPT),
            codex.said("user", "On."),
        ),
    ),
    "continue_dev": (lambda path: continue_dev.session(path, continue_dev.SUMMARIZED),),
    "copilot_cli": (
        rows_of(
            *copilot_cli.events(
                *copilot_cli.TURN,
                ("session.title_changed", {"title": "Names"}),
                ("session.compaction_start", {}),
                ("session.compaction_complete", {"success": True, "summaryContent": "So far."}),
            )
        ),
    ),
    "cursor": (
        lambda path: cursor.chat(
            path,
            {"s": {"type": 2, "text": "A dot.", "modelInfo": {"modelName": "m"}}, **cursor.BUBBLES},
            workspaceIdentifier={"uri": {"fsPath": "/app"}},
            name="Names",
            latestConversationSummary={
                "summary": {"summary": "So far.", "truncationLastBubbleIdInclusive": "t1"}
            },
        ),
    ),
    "exchanges": (
        lambda path: path.write_text(
            exchanges.exchange("/v1/messages", {"messages": [ASKED, CALLED, SEEN]}, ANSWERED)
            + "\n"
            + exchanges.exchange("/v1/messages", {"messages": [exchanges.MORE]}, ANSWERED)
        ),
    ),
    "frameworks": (*(rows_of(each) for each in frameworks.DOCUMENTS.values()),),
    "gemini_cli": (
        rows_of(
            {
                **gemini_cli.HEAD,
                "summary": "Reading",
                "messages": [
                    gemini_cli.record(
                        "u0",
                        "user",
                        [{"text": "See"}, {"inlineData": {"mimeType": "image/png", "data": DATA}}],
                    ),
                    *gemini_cli.TALK,
                ],
            }
        ),
        rows_of(
            gemini_cli.HEAD,
            *gemini_cli.TALK,
            {"$rewindTo": "u2"},
            gemini_cli.record("u3", "user", "Or?"),
        ),
    ),
    "goose": (
        lambda path: goose.database(
            path,
            goose.said("user", goose.text("One?"), metadata={"agentVisible": False}),
            *goose.TALK,
        ),
        lambda path: goose.database(
            path,
            goose.said("user", {"type": "image", "data": DATA, "mimeType": "image/png"}),
            goose.said(
                "assistant",
                goose.text("A dot."),
                metadata={
                    "usage": {"inputTokens": 9, "cacheReadTokens": 5, "outputTokens": 2},
                    "model": "m",
                },
            ),
        ),
    ),
    "grok_build": (lambda path: grok_build.session(path.parent),),
    "kimi": (kimi_cli, rows_of(*kimi.CODE_WIRE)),
    "kiro": (kiro_desktop,),
    "vscode_chat": (vscode_chat,),
    "openai": (
        rows_of({"title": "Names", "project_root": "/app", "messages": TALK}),
        rows_of(
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
            {"role": "assistant", "content": "A dot.", "reasoning_content": "Hm.", **COST},
        ),
    ),
    "opencode": (
        rows_of(
            opencode.session(
                opencode.said(
                    "m0",
                    "user",
                    {"type": "file", "mime": "image/png", "url": URL},
                    {"type": "text", "text": "See."},
                ),
                *opencode.TALK,
                opencode.said("m4", "user", {"type": "compaction", "auto": True}),
                opencode.said(
                    "m5",
                    "assistant",
                    {"type": "text", "text": "So far."},
                    summary=True,
                    parentID="m4",
                ),
                title="Names",
            )
        ),
    ),
    "openhands": (rows_of(*openhands.TASK),),
    "pi": (
        rows_of(
            pi.HEAD,
            *pi.TALK,
            pi.entry("n", "a2", "session_info", name="Names"),
            pi.said("i", "n", "user", [{"type": "image", "data": DATA, "mimeType": "image/png"}]),
            pi.entry("k", "i", "compaction", summary="So far.", firstKeptEntryId="i"),
        ),
    ),
    "qwen_code": (
        rows_of(
            *qwen_code.TALK,
            qwen_code.row(
                "i", "a2", "user", {"inlineData": {"mimeType": "image/png", "data": DATA}}
            ),
            qwen_code.row(
                "s2",
                "i",
                "system",
                subtype="custom_title",
                systemPayload={"customTitle": "Names"},
            ),
        ),
        rows_of(
            *qwen_code.TALK,
            qwen_code.row(
                "r", "u1", "system", subtype="rewind", systemPayload={"truncatedCount": 2}
            ),
            qwen_code.row("a3", "r", "assistant", {"text": "No."}),
        ),
    ),
    "responses": (rows_of(responses.RESPONSE),),
    "stream_json": (
        rows_of(
            *stream_json.STREAM,
            stream_json.row("system", 6, subtype="compact_boundary"),
            stream_json.row("user", 7, message={"role": "user", "content": [PICTURE]}),
        ),
    ),
    "tau2_bench": (
        rows_of(
            {
                **SIMULATION,
                "messages": [
                    {**each, "timestamp": "2026-01-01T00:00:00", "usage": {"prompt_tokens": 9}}
                    for each in PLAYED[:2]
                ],
            }
        ),
    ),
}
"""Kind → what writes files that tell more."""


def write_fuller(kind: str, folder: Path) -> list[Path]:
    """Write these files of a kind, each in a folder of its own; return them."""
    paths = []
    for number, write in enumerate(FULLER.get(kind, ())):
        place = folder / str(number) / "sample.jsonl"
        place.parent.mkdir(parents=True)
        written = write(place)
        paths.append(written if isinstance(written, Path) else place)
    return paths
