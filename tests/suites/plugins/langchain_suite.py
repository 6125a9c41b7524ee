"""Puts `store.adapters.langchain.History` in the place of the community's SQL history."""

from __future__ import annotations

from typing import Any

import langchain_community.chat_message_histories as community

from store import Store
from store.adapters.langchain import History


class SQLChatMessageHistory(History):
    """Our history, made as theirs is; histories of one connection share a store."""

    def __init__(self, session_id: str, connection: str, **_: Any) -> None:
        shared = Store.shared(connection.replace("+aiosqlite", ""))
        super().__init__(session_id, shared)


community.SQLChatMessageHistory = SQLChatMessageHistory  # type: ignore[misc]
