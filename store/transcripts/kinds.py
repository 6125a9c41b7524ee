"""The kinds of transcripts: one table, and a folder or a module for the code of each kind.

Kinds are recognized by content, in the order of the table: a kind comes before those that would
mistake its files for their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from . import (
    aider,
    amp,
    antigravity,
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    continue_dev,
    copilot_cli,
    cursor,
    cursor_cli,
    droid,
    frameworks,
    gemini_takeout,
    goose,
    grok_build,
    hermes,
    kimi,
    kiro,
    opencode,
    openhands,
    pi,
    store_export,
    traces,
    vscode_chat,
)
from .apis import anthropic, exchanges, openai, openai_agents, responses
from .data_sets import (
    agent_bench,
    inspect_log,
    mini_swe_agent,
    moatless,
    moss,
    oasst,
    sharegpt,
    swe_agent,
    tau2_bench,
    tau_bench,
    toolbench,
)
from .database import Layout
from .gemini import adk, gemini_cli, qwen_code
from .parser_events import Event
from .source import TranscriptSource
from .stores import langgraph, librechat, llm_logs, open_webui

KIRO_SESSION_FILES = (
    "sessions/cli/*.jsonl",
    "sessions/*/messages.jsonl",
    "sessions/*/sub-executions/*.jsonl",
)
"""The files of Kiro's sessions, and of their sub-agents, below its folder."""

VSCODE_CHAT_FILES = (
    "workspaceStorage/*/chatSessions/*.json",
    "workspaceStorage/*/chatSessions/*.jsonl",
    "globalStorage/emptyWindowChatSessions/*.json",
    "globalStorage/emptyWindowChatSessions/*.jsonl",
)
"""The files of VS Code's chats, below the folder of its user data."""

CURSOR_DATABASE_FILES = ("globalStorage/state.vscdb", "workspaceStorage/*/state.vscdb")
"""The database of Cursor's chats, and the database per folder of older versions."""

GOOSE_SESSION_FILES = ("sessions/sessions.db", "sessions/*.jsonl")
"""The database of goose, and the files of versions without a database."""

OPENCODE_SESSION_FILES = "storage/session/*.json"
"""The session files of opencode and its forks, from versions without a database."""


COWORK_FOLDERS = (".config/Claude", "Library/Application Support/Claude", "AppData/Roaming/Claude")
"""The folders of Claude's app for the desktop, on each system."""
COWORK_FILES = ("*/.claude/projects/*.jsonl",)
"""The sessions of Cowork, which Claude Code writes into a folder for each."""

CLINE_TASK_FILES = ("tasks/*/api_conversation_history.json",)
"""The task files of Cline and its forks."""

CLINE_FOLDERS = tuple(
    f"{user}/globalStorage/{extension}"
    for user in (
        ".config/Code/User",
        "Library/Application Support/Code/User",
        "AppData/Roaming/Code/User",
    )
    for extension in (
        "saoudrizwan.claude-dev",
        "rooveterinaryinc.roo-cline",
        "kilocode.kilo-code",
    )
)
"""The folders of Cline, Roo and Kilo: next to VS Code's own, on each system."""


class Home(NamedTuple):
    """A folder of the user's home in which a program keeps sessions.

    ``names`` are patterns of paths below it, in which * may also match several folders. The
    environment variable ``variable``, if set, names another folder.
    """

    folder: str
    names: tuple[str, ...]
    variable: str | None = None

    @property
    def path(self) -> Path:
        """Return the path of the folder on this machine, whether the folder exists or not."""
        return Path(self._told) if self._told else Path.home() / self.folder

    @property
    def _told(self) -> str | None:
        return os.environ.get(self.variable) if self.variable else None

    def holds(self, path: Path) -> bool | None:
        """Tell whether a file is one of the program's sessions; None if it is outside the folder.

        The folder may belong to any user, and may be a copy.
        """
        inner = self._below(path.as_posix())
        return None if inner is None else any(fnmatchcase(inner, name) for name in self.names)

    def _below(self, path: str) -> str | None:
        """Return the part of a path below such a folder."""
        named = [f"{Path(self._told).as_posix()}/"] if self._told else []
        for folder in (*named, f"/{self.folder}/"):
            _, found, inner = path.rpartition(folder)
            if found:
                return inner
        return None

    def files(self) -> Iterator[Path]:
        """Yield the session files on this machine, in order."""
        for folder, folders, names in os.walk(self.path):
            folders.sort()
            paths = (Path(folder, name) for name in sorted(names))
            yield from filter(self.holds, paths)


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
    parse: Callable[[TranscriptSource], Iterator[Event]]
    foreign: Callable[[Any], str | None] = lambda _: None
    seen: bool = True
    linked: str = ""
    left_out: str = ""
    homes: tuple[Home, ...] = ()
    layout: Layout | None = None
    name: str | None = None


TRANSCRIPT_KINDS = {
    "tau2_bench": TranscriptKind(
        "simulations with 'messages' and how each ended, or a file of them",
        tau2_bench.has_tau2_simulation,
        tau2_bench.parse_tau2_bench,
        left_out="raw answers, which repeat the messages",
    ),
    "mini_swe_agent": TranscriptKind(
        "'messages' with the 'trajectory_format' of mini-swe-agent",
        mini_swe_agent.is_mini_swe_trajectory,
        mini_swe_agent.parse_mini_swe_agent,
        left_out="how a run ended",
    ),
    "inspect": TranscriptKind(
        "an 'eval' with 'samples', also as an archive",
        inspect_log.is_inspect_log,
        inspect_log.parse_inspect_log,
        left_out="events, stores of tools",
    ),
    "goose": TranscriptKind(
        "goose's database, its exports, or lines of messages that only it writes",
        goose.is_goose_value,
        goose.parse_goose,
        seen=False,
        linked="compactions",
        left_out="notices, requests to confirm",
        homes=(
            Home(".local/share/goose", GOOSE_SESSION_FILES),
            Home("AppData/Roaming/Block/goose/data", GOOSE_SESSION_FILES),
        ),
        layout=goose.GOOSE_LAYOUT,
    ),
    "amp": TranscriptKind(
        "a thread: an 'id' that begins with 'T-', and 'messages'",
        amp.is_amp_thread,
        amp.parse_amp,
        seen=False,
        left_out="what tools told the screen",
        homes=(Home(".local/share/amp", ("threads/T-*.json",)),),
    ),
    "openai": TranscriptKind(
        "messages with a role, in a list, under 'messages' or one a line",
        openai.has_openai_messages,
        openai.parse_openai,
        openai.find_openai_lookalike,
        left_out="what is no message",
    ),
    "anthropic": TranscriptKind(
        "messages with blocks of Anthropic's API, in a list, under 'messages' or one a line",
        anthropic.has_anthropic_messages,
        anthropic.parse_anthropic,
        anthropic.find_anthropic_lookalike,
        left_out="what is no message",
        homes=(
            *(Home(folder, CLINE_TASK_FILES) for folder in CLINE_FOLDERS),
            Home(".cline", ("data/sessions/*.messages.json",)),
        ),
    ),
    "exchanges": TranscriptKind(
        "a 'request' to an API with its 'response', one a line",
        exchanges.is_exchange,
        exchanges.parse_exchanges,
        linked="branches, compactions",
        left_out="answers that refuse",
    ),
    "tau_bench": TranscriptKind(
        "records with a 'traj' and a 'task_id'",
        tau_bench.has_tau_bench_trial,
        tau_bench.parse_tau_bench,
    ),
    "swe_agent": TranscriptKind(
        "an object with a 'history' of messages",
        swe_agent.is_swe_agent_trajectory,
        swe_agent.parse_swe_agent,
        left_out="steps, which repeat it",
    ),
    "qwen_code": TranscriptKind(
        "lines with a 'type', a 'sessionId' and a message of 'parts'",
        qwen_code.is_qwen_code_row,
        qwen_code.parse_qwen_code,
        seen=False,
        linked="branches",
        left_out="rows of the system",
        homes=(Home(".qwen", ("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl")),),
    ),
    "claude_code": TranscriptKind(
        "lines with a 'type' and a 'sessionId', or 'loglines' of a session on the web",
        claude_code.is_claude_code_row,
        claude_code.parse_claude_code,
        claude_code.find_claude_code_lookalike,
        linked="branches, subagents, resumed sessions, compactions",
        left_out="copies, progress of tools, hooks, snapshots",
        homes=(
            Home(".claude", ("projects/*.jsonl",), "CLAUDE_CONFIG_DIR"),
            Home(".config/claude", ("projects/*.jsonl",)),
            *(
                Home(f"{folder}/local-agent-mode-sessions", COWORK_FILES)
                for folder in COWORK_FOLDERS
            ),
        ),
    ),
    "stream_json": TranscriptKind(
        "lines with a 'type', a 'session_id' and a message",
        claude_code.stream.is_stream_json_row,
        claude_code.stream.parse_stream_json,
        claude_code.stream.find_stream_json_lookalike,
        linked="subagents, compactions",
        left_out="states, limits",
    ),
    "codex": TranscriptKind(
        "lines with a 'type' and a 'payload'",
        codex.is_codex_rollout,
        codex.parse_codex,
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
        responses.has_responses_items,
        responses.parse_responses,
        responses.find_responses_lookalike,
        left_out="what is no item",
    ),
    "openhands": TranscriptKind(
        "events with a 'source', in a list or one a line",
        openhands.is_openhands_history,
        openhands.parse_openhands,
        left_out="states, recalls, metrics",
    ),
    "convostore": TranscriptKind(
        "a head under 'convostore', and rows of tables on lines after it",
        store_export.is_store_head,
        store_export.parse_exported_store,
        linked="all there is",
    ),
    "chatgpt": TranscriptKind(
        "conversations with a 'mapping' of nodes, also in the export's zip",
        chatgpt.has_chatgpt_nodes,
        chatgpt.parse_chatgpt,
        seen=False,
        linked="branches",
        left_out="files beside it",
    ),
    "claude_ai": TranscriptKind(
        "conversations with 'chat_messages', also in the export's zip",
        claude_ai.has_claude_ai_messages,
        claude_ai.parse_claude_ai,
        seen=False,
        linked="branches",
        left_out="files beside it",
    ),
    "gemini_cli": TranscriptKind(
        "a head with a 'sessionId' and a 'projectHash', and messages in it or on lines after it",
        gemini_cli.is_gemini_cli_value,
        gemini_cli.parse_gemini_cli,
        linked="branches",
        left_out="notices",
        homes=(Home(".gemini", ("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl")),),
    ),
    "copilot_cli": TranscriptKind(
        "events with a 'type', 'data' and a 'parentId'",
        copilot_cli.is_readable_copilot_event,
        copilot_cli.parse_copilot_cli,
        linked="branches, subagents, compactions",
        left_out="hooks, permissions, turns",
        homes=(Home(".copilot", ("session-state/*.jsonl",)),),
    ),
    "vscode_chat": TranscriptKind(
        "a chat with 'requests', or the log of its changes",
        vscode_chat.is_vscode_chat,
        vscode_chat.parse_vscode_chat,
        seen=False,
        linked="branches",
        left_out="parts for the screen",
        homes=(
            Home(".config/Code/User", VSCODE_CHAT_FILES),
            Home("Library/Application Support/Code/User", VSCODE_CHAT_FILES),
            Home("AppData/Roaming/Code/User", VSCODE_CHAT_FILES),
        ),
    ),
    "cursor": TranscriptKind(
        "Cursor's database of chats, or lines with a 'role' and a 'message'",
        cursor.is_cursor_chat,
        cursor.parse_cursor,
        seen=False,
        linked="subagents, compactions",
        left_out="bubbles no longer shown, states of files",
        homes=(
            Home(".cursor", ("projects/*/agent-transcripts/*.jsonl",)),
            Home(".config/Cursor/User", CURSOR_DATABASE_FILES),
            Home("Library/Application Support/Cursor/User", CURSOR_DATABASE_FILES),
            Home("AppData/Roaming/Cursor/User", CURSOR_DATABASE_FILES),
            Home(".config/Windsurf/User", CURSOR_DATABASE_FILES),
            Home("Library/Application Support/Windsurf/User", CURSOR_DATABASE_FILES),
            Home("AppData/Roaming/Windsurf/User", CURSOR_DATABASE_FILES),
        ),
        layout=cursor.CURSOR_LAYOUT,
    ),
    "droid": TranscriptKind(
        "a 'session_start' and entries after it, or what droid exec prints as stream-json",
        droid.is_droid_value,
        droid.parse_droid,
        linked="branches, parents",
        left_out="todos, settings, outcomes of turns",
        homes=(Home(".factory", ("sessions/*.jsonl",)),),
    ),
    "kiro": TranscriptKind(
        "Kiro CLI's database, lines with a 'kind' and 'data', or records with a 'payload'",
        kiro.is_kiro_value,
        kiro.parse_kiro,
        seen=False,
        linked="branches, parents, subagents, compactions",
        left_out="tools, states of the program",
        homes=(
            Home(".kiro", KIRO_SESSION_FILES),
            Home(".local/share/kiro-cli", ("data.sqlite3",)),
            Home("Library/Application Support/kiro-cli", ("data.sqlite3",)),
        ),
        layout=kiro.KIRO_LAYOUT,
    ),
    "aider": TranscriptKind(
        "a '.aider.chat.history.md', whose chats begin with '# aider chat started at'",
        aider.is_aider_chat,
        aider.parse_aider,
        left_out="what aider said itself",
        name=aider.AIDER_HISTORY_NAME,
    ),
    "pi": TranscriptKind(
        "a head with a 'cwd', and entries on lines after it",
        pi.is_pi_header,
        pi.parse_pi,
        linked="branches, compactions",
        left_out="changes of model and state",
        homes=(
            Home(".pi", ("agent/sessions/*.jsonl",)),
            Home(".campfire", ("agent/sessions/*.jsonl",)),
        ),
    ),
    "opencode": TranscriptKind(
        "an 'info' with 'messages' of parts, as its export has it, or its database",
        opencode.is_opencode_export,
        opencode.parse_opencode,
        seen=False,
        linked="branches, compactions, parents",
        left_out="patches, snapshots",
        homes=(
            Home(".local/share/opencode", ("opencode*.db", OPENCODE_SESSION_FILES)),
            Home(".local/share/kilo", ("kilo*.db", OPENCODE_SESSION_FILES)),
        ),
        layout=opencode.OPENCODE_LAYOUT,
    ),
    "grok_build": TranscriptKind(
        "rows with a 'type' and a mark of Grok's, as 'prompt_index' or 'model_id'",
        grok_build.is_grok_row,
        grok_build.parse_grok_build,
        seen=False,
        linked="parents",
        left_out="searches of xAI's servers, thoughts without an answer",
        homes=(Home(".grok", ("sessions/*/chat_history.jsonl",), "GROK_HOME"),),
    ),
    "antigravity": TranscriptKind(
        "Antigravity's database of steps, or the log of a conversation's steps",
        antigravity.is_antigravity_value,
        antigravity.parse_antigravity,
        seen=False,
        left_out="checkpoints, notices, steps of the system",
        homes=(
            Home(".gemini/antigravity", ("conversations/*.db",)),
            Home(".gemini/antigravity-cli", ("conversations/*.db",)),
        ),
        layout=antigravity.ANTIGRAVITY_LAYOUT,
    ),
    "cursor_cli": TranscriptKind(
        "the 'store.db' of a chat of Cursor's command",
        cursor_cli.is_cursor_cli_chat,
        cursor_cli.parse_cursor_cli,
        seen=False,
        homes=(Home(".cursor/chats", ("*/store.db",)),),
        layout=cursor_cli.CURSOR_CLI_LAYOUT,
    ),
    "kimi": TranscriptKind(
        "a 'metadata' with a 'protocol_version', and events on lines after it",
        kimi.is_kimi_row,
        kimi.parse_kimi,
        seen=False,
        linked="subagents",
        left_out="requests to approve, events of the program",
        homes=(
            Home(".kimi", ("sessions/*/wire.jsonl",), "KIMI_SHARE_DIR"),
            Home(".kimi-code", ("sessions/*/wire.jsonl",)),
        ),
    ),
    "gemini_takeout": TranscriptKind(
        "records with a 'header' of Gemini's, a 'title' and a 'time'",
        gemini_takeout.is_takeout_activity,
        gemini_takeout.parse_gemini_takeout,
        seen=False,
        left_out="records without an answer",
    ),
    "traces": TranscriptKind(
        "spans of requests: OTLP as JSON, exports of Phoenix, Logfire and Langfuse",
        traces.is_trace_value,
        traces.parse_traces,
        seen=False,
        linked="branches",
        left_out="spans without messages",
    ),
    "hermes": TranscriptKind(
        "the database of Hermes Agent",
        hermes.is_hermes_session,
        hermes.parse_hermes,
        seen=False,
        linked="parents",
        left_out="rows taken back, rows of the program",
        homes=(Home(".hermes", ("state.db",), "HERMES_HOME"),),
        layout=hermes.HERMES_LAYOUT,
    ),
    "continue_dev": TranscriptKind(
        "a 'sessionId' and a 'history' of items, each with its 'message'",
        continue_dev.is_continue_session,
        continue_dev.parse_continue,
        seen=False,
        linked="compactions",
        left_out="prompts repeated, states of the editor",
        homes=(Home(".continue", ("sessions/*-*.json",), "CONTINUE_GLOBAL_DIR"),),
    ),
    "frameworks": TranscriptKind(
        "messages of LangChain, pydantic-ai, the Vercel AI SDK, Gemini's API, ATIF or Letta",
        frameworks.is_framework_value,
        frameworks.parse_frameworks,
        seen=False,
        left_out="data for the screen, tools that were offered",
    ),
    "sharegpt": TranscriptKind(
        "records with 'conversations' of turns",
        sharegpt.has_sharegpt_conversation,
        sharegpt.parse_sharegpt,
        left_out="what is no turn",
    ),
    "moss": TranscriptKind(
        "conversations with a 'chat' of turns, or a 'plain_text' of them",
        moss.is_moss_conversation,
        moss.parse_moss,
        left_out="the marks before and after each text",
        seen=False,
    ),
    "agent_bench": TranscriptKind(
        "runs with an 'output' that has a 'history'",
        agent_bench.is_agent_bench_run,
        agent_bench.parse_agent_bench,
        seen=False,
    ),
    "toolbench": TranscriptKind(
        "an 'answer_generation' and the tree that was searched",
        toolbench.is_toolbench_answer,
        toolbench.parse_toolbench,
        linked="branches",
        left_out="candidates compared, messages to train on",
    ),
    "moatless": TranscriptKind(
        "an 'agent' and 'nodes', each with its parent",
        moatless.is_moatless_tree,
        moatless.parse_moatless,
        linked="branches",
        left_out="contexts of files, prompts repeated",
    ),
    "oasst": TranscriptKind(
        "trees of a 'prompt' and its replies",
        oasst.has_oasst_tree,
        oasst.parse_oasst,
        linked="branches",
    ),
    "openai_agents": TranscriptKind(
        "the database of the OpenAI Agents SDK's SQLiteSession",
        openai_agents.is_openai_agents_session,
        openai_agents.parse_openai_agents,
        linked="branches",
        left_out="what is no item",
        layout=openai_agents.OPENAI_AGENTS_LAYOUT,
    ),
    "adk": TranscriptKind(
        "the database of Google's Agent Development Kit",
        adk.is_adk_session,
        adk.parse_adk,
        left_out="events that say nothing",
        layout=adk.ADK_LAYOUT,
    ),
    "llm": TranscriptKind(
        "the 'logs.db' of llm",
        llm_logs.is_llm_conversation,
        llm_logs.parse_llm_logs,
        linked="branches",
        left_out="schemas, options, tools that were offered",
        layout=llm_logs.LLM_LOGS_LAYOUT,
    ),
    "langgraph": TranscriptKind(
        "the database of LangGraph's SqliteSaver",
        langgraph.is_langgraph_thread,
        langgraph.parse_langgraph,
        linked="branches",
        left_out="graphs in the graph, channels without messages",
        layout=langgraph.LANGGRAPH_LAYOUT,
    ),
    "open_webui": TranscriptKind(
        "chats with a 'chat' that has a 'history' of messages",
        open_webui.is_open_webui_chat,
        open_webui.parse_open_webui,
        seen=False,
        linked="branches",
    ),
    "librechat": TranscriptKind(
        "conversations with 'messages' that a user created or not, or such messages",
        librechat.is_librechat_export,
        librechat.parse_librechat,
        seen=False,
        linked="branches",
    ),
}
"""The kinds of transcripts by name, in the order in which they are tried."""
