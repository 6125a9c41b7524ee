"""Who is compared, and what they are asked for."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from .peer import Peer


class Side(NamedTuple):
    """A side: its name, what of it is used, its distribution, what is imported, its `Peer`."""

    label: str
    used: str
    distribution: str
    imported: str
    module: str
    peer: str

    def open(self, path: Path) -> Peer:
        """Import the library and open a file."""
        module = importlib.import_module(f".{self.module}", __package__)
        opened: Peer = getattr(module, self.peer)(path)
        return opened

    def is_there(self) -> bool:
        """Tell whether its library is installed."""
        try:
            return find_spec(self.imported) is not None
        except ModuleNotFoundError:
            return False


PEERS = {
    "raw": Side("by hand", "sqlite3", "", "sqlite3", "by_hand", "ByHand"),
    "ours": Side("convostore", "Store", "", "store.face.store", "ours", "Ours"),
    "agents": Side(
        "openai-agents", "SQLiteSession", "openai-agents", "agents", "openai_agents", "Agents"
    ),
    "llm": Side("llm", "LogStore", "llm", "llm.logs", "llm_logs", "Logs"),
    "langchain": Side(
        "LangChain",
        "SQLChatMessageHistory",
        "langchain-community",
        "langchain_community.chat_message_histories.sql",
        "langchain_history",
        "LangChain",
    ),
    "langgraph": Side(
        "LangGraph",
        "SqliteSaver",
        "langgraph-checkpoint-sqlite",
        "langgraph.checkpoint.sqlite",
        "langgraph_saver",
        "LangGraph",
    ),
    "adk": Side(
        "ADK",
        "SqliteSessionService",
        "google-adk",
        "google.adk.sessions.sqlite_session_service",
        "adk_sessions",
        "Adk",
    ),
}
"""By the name under which the program knows them; the first is what the others are divided by."""

OPERATIONS = {
    "append": "append one message",
    "batch": "append 1,000 in one call",
    "load": "load all",
    "newest": "load the newest 20",
    "view": "compacted view of all, the first",
    "again": "the same after three more messages",
    "behind": "view behind a summary",
    "rewind": "rewind by 10",
    "list": "list 200 of 1,000 sessions",
    "import": "import",
}
"""What is measured, in the words of the page."""
WHOLE_FILE = ("list", "import")
"""What does not depend on how many messages a session has."""
READING = ("load", "newest", "view", "behind", "list")
WRITING = ("again", "rewind", "append", "batch")
"""In the order in which they are taken: what reads before what writes."""
