"""The conversation of a session, row by row: on a shelf, and in memory the data for sorting.

Most of a file's bytes are text of messages. So a row takes about two hundred bytes here, whatever
its length, and a whole row is only held while a message is made of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from ..blocks import count_user_messages, parse_blocks
from ..shelf import KeyNumbers, Shelf
from .rows import CALL_BLOCK_BY_ROLE, ConversationRow, RowOutline

NO_ANSWER = -1

_CONTENT_INDEX = ConversationRow._fields.index("content")


class SessionRows:
    """The rows of a session, by their index in the order of the file.

    Of each there is its ``outlines``, and in ``answers`` the first row of the same answer of the
    API (NO_ANSWER where no id tells). ``copies`` are the uuids of rows that repeat one, by its
    index. ``_links`` are numbers of the calls that rows make or answer, those of a row up to its
    ``_ends``.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._places = array("q")
        self._links = array("q")
        self._ends = array("q", [0])
        self._shared: dict[RowOutline, RowOutline] = {}
        self._calls = KeyNumbers()
        self._requests = KeyNumbers()
        self.outlines: list[RowOutline] = []
        self.answers = array("q")
        self.copies: dict[int, list[str]] = {}

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.outlines)

    def __getitem__(self, index: int) -> ConversationRow:
        """Return a row as it was read."""
        kept = self._shelf.at(self._places[index])
        return ConversationRow._make((*kept, parse_blocks(kept[_CONTENT_INDEX]) or []))

    def of(self, indices: Iterable[int]) -> Iterator[ConversationRow]:
        """Return rows one by one."""
        return map(self.__getitem__, indices)

    def append(self, row: ConversationRow) -> None:
        """Keep the next row."""
        prompt = (
            False
            if row.role != "user" or row.sidechain or row.is_summary
            else not row.holds("tool_result")
        )
        outline = RowOutline(
            role=row.role,
            sidechain=row.sidechain,
            agent=row.agent,
            is_prompt=prompt,
            begins_turn=prompt and row.envelope.get("isMeta") is not True,
            is_summary=row.is_summary,
            has_request=row.request_id is not None,
            width=1 if row.role == "assistant" else count_user_messages(row.blocks),
        )
        self._places.append(self._shelf.put(row[:-1]))
        self.answers.append(self._answer_of(row))
        kind, key = CALL_BLOCK_BY_ROLE[row.role]
        named = (block.get(key) for block in row.blocks if block.get("type") == kind)
        for call in [each for each in named if isinstance(each, str)]:
            self._links.append(self._calls.setdefault(call, len(self)))
        self._ends.append(len(self._links))
        self.outlines.append(self._shared.setdefault(outline, outline))

    def links_of(self, index: int) -> Sequence[int]:
        """Return the numbers of the calls that a row makes or answers."""
        return self._links[self._ends[index] : self._ends[index + 1]]

    def _answer_of(self, row: ConversationRow) -> int:
        if row.role != "assistant" or not row.message_id:
            return NO_ANSWER
        return self._requests.setdefault((row.message_id, row.request_id), len(self))
