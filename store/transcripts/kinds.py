"""The kinds of transcripts: one table, and a folder or a module for the code of each kind.

Kinds are recognized by content, in the order of the table: a kind comes before those that would
mistake its files for their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import (
    aider,
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    copilot_cli,
    cursor,
    droid,
    exported,
    goose,
    kiro,
    opencode,
    openhands,
    pi,
    vscode_chat,
)
from .apis import anthropic, exchanges, openai, openai_agents, responses
from .data_sets import (
    inspect_log,
    mini_swe_agent,
    moatless,
    oasst,
    sharegpt,
    swe_agent,
    tau2_bench,
    tau_bench,
    toolbench,
)
from .database import Layout
from .events import Event
from .gemini import adk, gemini_cli, qwen_code
from .homes import (
    CLINE_FOLDERS,
    CLINE_TASKS,
    CURSOR_CHATS,
    GOOSE_SESSIONS,
    STORED,
    VSCODE_CHATS,
    Home,
)
from .source import Source
from .stores import langgraph, librechat, llm_logs, open_webui


class TranscriptKind(NamedTuple):
    """A kind of transcript: ``looks`` recognizes one of its values, ``parse`` reads a whole file.

    ``expected`` describes its look in words. ``foreign`` names the program of a value that only
    looks like it, None where its messages can be read. ``seen`` is true if real files were read;
    otherwise the parser is written from their description. ``linked`` names the link between
    sessions, ``left_out`` the things that a note counts. ``homes`` are the folders in which its
    program keeps files, ``layout`` is the layout of its database. ``name`` is the name of a hidden
    file that it leaves in any folder.
    """

    expected: str
    looks: Callable[[Any], bool]
    parse: Callable[[Source], Iterator[Event]]
    foreign: Callable[[Any], str | None] = lambda _: None
    seen: bool = True
    linked: str = ""
    left_out: str = ""
    homes: tuple[Home, ...] = ()
    layout: Layout | None = None
    name: str | None = None


KINDS = {
    "tau2_bench": TranscriptKind(
        "simulations with 'messages' and how each ended, or a file of them",
        tau2_bench.looks,
        tau2_bench.parse,
        left_out="raw answers, which repeat the messages",
    ),
    "mini_swe_agent": TranscriptKind(
        "'messages' with the 'trajectory_format' of mini-swe-agent",
        mini_swe_agent.looks,
        mini_swe_agent.parse,
        left_out="how a run ended",
    ),
    "inspect": TranscriptKind(
        "an 'eval' with 'samples', also as an archive",
        inspect_log.looks,
        inspect_log.parse,
        left_out="events, stores of tools",
    ),
    "goose": TranscriptKind(
        "goose's database, its exports, or lines of messages that only it writes",
        goose.looks,
        goose.parse,
        seen=False,
        linked="compactions",
        left_out="notices, requests to confirm",
        homes=(
            Home(".local/share/goose", GOOSE_SESSIONS),
            Home("AppData/Roaming/Block/goose/data", GOOSE_SESSIONS),
        ),
        layout=goose.LAYOUT,
    ),
    "openai": TranscriptKind(
        "messages with a role, in a list, under 'messages' or one a line",
        openai.looks,
        openai.parse,
        openai.foreign,
        left_out="what is no message",
    ),
    "anthropic": TranscriptKind(
        "messages with blocks of Anthropic's API, in a list, under 'messages' or one a line",
        anthropic.looks,
        anthropic.parse,
        anthropic.foreign,
        left_out="what is no message",
        homes=tuple(Home(folder, CLINE_TASKS) for folder in CLINE_FOLDERS),
    ),
    "exchanges": TranscriptKind(
        "a 'request' to an API with its 'response', one a line",
        exchanges.looks,
        exchanges.parse,
        linked="branches, compactions",
        left_out="answers that refuse",
    ),
    "tau_bench": TranscriptKind(
        "records with a 'traj' and a 'task_id'", tau_bench.looks, tau_bench.parse
    ),
    "swe_agent": TranscriptKind(
        "an object with a 'history' of messages",
        swe_agent.looks,
        swe_agent.parse,
        left_out="steps, which repeat it",
    ),
    "qwen_code": TranscriptKind(
        "lines with a 'type', a 'sessionId' and a message of 'parts'",
        qwen_code.looks,
        qwen_code.parse,
        seen=False,
        linked="branches",
        left_out="rows of the system",
        homes=(Home(".qwen", ("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl")),),
    ),
    "claude_code": TranscriptKind(
        "lines with a 'type' and a 'sessionId'",
        claude_code.looks,
        claude_code.parse,
        claude_code.foreign,
        linked="branches, subagents, resumed sessions, compactions",
        left_out="copies, progress of tools, hooks, snapshots",
        homes=(
            Home(".claude", ("projects/*.jsonl",), "CLAUDE_CONFIG_DIR"),
            Home(".config/claude", ("projects/*.jsonl",)),
        ),
    ),
    "stream_json": TranscriptKind(
        "lines with a 'type', a 'session_id' and a message",
        claude_code.stream.looks,
        claude_code.stream.parse,
        claude_code.stream.foreign,
        linked="subagents, compactions",
        left_out="states, limits",
    ),
    "codex": TranscriptKind(
        "lines with a 'type' and a 'payload'",
        codex.looks,
        codex.parse,
        linked="branches, parents, compactions",
        left_out="lines for the screen",
        homes=(
            Home(
                ".codex",
                ("sessions/*rollout-*.json*", "archived_sessions/*rollout-*.json*"),
                "CODEX_HOME",
            ),
        ),
    ),
    "responses": TranscriptKind(
        "items of OpenAI's Responses API, in a list, under 'input' and 'output' or one a line",
        responses.looks,
        responses.parse,
        responses.foreign,
        left_out="what is no item",
    ),
    "openhands": TranscriptKind(
        "events with a 'source', in a list or one a line",
        openhands.looks,
        openhands.parse,
        left_out="states, recalls, metrics",
    ),
    "convostore": TranscriptKind(
        "a head under 'convostore', and rows of tables on lines after it",
        exported.looks,
        exported.parse,
        linked="all there is",
    ),
    "chatgpt": TranscriptKind(
        "conversations with a 'mapping' of nodes, also in the export's zip",
        chatgpt.looks,
        chatgpt.parse,
        seen=False,
        linked="branches",
        left_out="files beside it",
    ),
    "claude_ai": TranscriptKind(
        "conversations with 'chat_messages', also in the export's zip",
        claude_ai.looks,
        claude_ai.parse,
        seen=False,
        linked="branches",
        left_out="files beside it",
    ),
    "gemini_cli": TranscriptKind(
        "a head with a 'sessionId' and a 'projectHash', and messages in it or on lines after it",
        gemini_cli.looks,
        gemini_cli.parse,
        linked="branches",
        left_out="notices",
        homes=(Home(".gemini", ("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl")),),
    ),
    "copilot_cli": TranscriptKind(
        "events with a 'type', 'data' and a 'parentId'",
        copilot_cli.looks,
        copilot_cli.parse,
        linked="branches, subagents, compactions",
        left_out="hooks, permissions, turns",
        homes=(Home(".copilot", ("session-state/*.jsonl",)),),
    ),
    "vscode_chat": TranscriptKind(
        "a chat with 'requests', or the log of its changes",
        vscode_chat.looks,
        vscode_chat.parse,
        seen=False,
        linked="branches",
        left_out="parts for the screen",
        homes=(
            Home(".config/Code/User", VSCODE_CHATS),
            Home("Library/Application Support/Code/User", VSCODE_CHATS),
            Home("AppData/Roaming/Code/User", VSCODE_CHATS),
        ),
    ),
    "cursor": TranscriptKind(
        "Cursor's database of chats, or lines with a 'role' and a 'message'",
        cursor.looks,
        cursor.parse,
        seen=False,
        linked="subagents, compactions",
        left_out="bubbles no longer shown, states of files",
        homes=(
            Home(".cursor", ("projects/*/agent-transcripts/*.jsonl",)),
            Home(".config/Cursor/User", CURSOR_CHATS),
            Home("Library/Application Support/Cursor/User", CURSOR_CHATS),
            Home("AppData/Roaming/Cursor/User", CURSOR_CHATS),
        ),
        layout=cursor.LAYOUT,
    ),
    "droid": TranscriptKind(
        "a 'session_start' and entries after it, or what droid exec prints as stream-json",
        droid.looks,
        droid.parse,
        linked="branches, parents",
        left_out="todos, settings, outcomes of turns",
        homes=(Home(".factory", ("sessions/*.jsonl",)),),
    ),
    "kiro": TranscriptKind(
        "Kiro CLI's database, lines with a 'kind' and 'data', or records with a 'payload'",
        kiro.looks,
        kiro.parse,
        seen=False,
        linked="branches, parents, compactions",
        left_out="tools, states of the program",
        homes=(
            Home(".kiro", ("sessions/cli/*.jsonl", "sessions/*/messages.jsonl")),
            Home(".local/share/kiro-cli", ("data.sqlite3",)),
            Home("Library/Application Support/kiro-cli", ("data.sqlite3",)),
        ),
        layout=kiro.LAYOUT,
    ),
    "aider": TranscriptKind(
        "a '.aider.chat.history.md', whose chats begin with '# aider chat started at'",
        aider.looks,
        aider.parse,
        left_out="what aider said itself",
        name=aider.NAME,
    ),
    "pi": TranscriptKind(
        "a head with a 'cwd', and entries on lines after it",
        pi.looks,
        pi.parse,
        linked="branches, compactions",
        left_out="changes of model and state",
        homes=(Home(".pi", ("agent/sessions/*.jsonl",)),),
    ),
    "opencode": TranscriptKind(
        "an 'info' with 'messages' of parts, as its export has it, or its database",
        opencode.looks,
        opencode.parse,
        seen=False,
        linked="branches, compactions, parents",
        left_out="patches, snapshots",
        homes=(
            Home(".local/share/opencode", ("opencode*.db", STORED)),
            Home(".local/share/kilo", ("kilo*.db", STORED)),
        ),
        layout=opencode.LAYOUT,
    ),
    "sharegpt": TranscriptKind(
        "records with 'conversations' of turns",
        sharegpt.looks,
        sharegpt.parse,
        left_out="what is no turn",
    ),
    "toolbench": TranscriptKind(
        "an 'answer_generation' and the tree that was searched",
        toolbench.looks,
        toolbench.parse,
        linked="branches",
        left_out="candidates compared, messages to train on",
    ),
    "moatless": TranscriptKind(
        "an 'agent' and 'nodes', each with its parent",
        moatless.looks,
        moatless.parse,
        linked="branches",
        left_out="contexts of files, prompts repeated",
    ),
    "oasst": TranscriptKind(
        "trees of a 'prompt' and its replies",
        oasst.looks,
        oasst.parse,
        linked="branches",
    ),
    "openai_agents": TranscriptKind(
        "the database of the OpenAI Agents SDK's SQLiteSession",
        openai_agents.looks,
        openai_agents.parse,
        linked="branches",
        left_out="what is no item",
        layout=openai_agents.LAYOUT,
    ),
    "adk": TranscriptKind(
        "the database of Google's Agent Development Kit",
        adk.looks,
        adk.parse,
        left_out="events that say nothing",
        layout=adk.LAYOUT,
    ),
    "llm": TranscriptKind(
        "the 'logs.db' of llm",
        llm_logs.looks,
        llm_logs.parse,
        linked="branches",
        left_out="schemas, options, tools that were offered",
        layout=llm_logs.LAYOUT,
    ),
    "langgraph": TranscriptKind(
        "the database of LangGraph's SqliteSaver",
        langgraph.looks,
        langgraph.parse,
        linked="branches",
        left_out="graphs in the graph, channels without messages",
        layout=langgraph.LAYOUT,
    ),
    "open_webui": TranscriptKind(
        "chats with a 'chat' that has a 'history' of messages",
        open_webui.looks,
        open_webui.parse,
        seen=False,
        linked="branches",
    ),
    "librechat": TranscriptKind(
        "conversations with 'messages' that a user created or not, or such messages",
        librechat.looks,
        librechat.parse,
        seen=False,
        linked="branches",
    ),
}
