"""What is asked of sessions and takes several transactions, or none for the most part."""

from __future__ import annotations

import os
import time

from .. import compaction
from ..clock import Now
from ..context import Context, Tools, code_law
from ..context import request as contexts
from ..database import Database, paused
from ..errors import InvalidValue
from ..history import raw as history
from ..history import token_counts
from ..policy import TURNS, Policy
from ..records import Session
from .binding import Call, Opening, runs
from .operations import Operations
from .watch import Watch


class Workflows(Operations, Opening):
    """What can be asked of sessions."""

    _database: Database
    _requests: contexts.Requests

    pages = runs(history.pages)
    compact = runs(compaction.compact)
    compact_if_needed = runs(compaction.compact_if_needed)
    count_tokens = runs(token_counts.count_tokens)

    def wait(self, session_id: str, revision: str | None, timeout: float = 30.0) -> Session | None:
        """Wait until a session has another revision; return it as it is then, else None.

        At most ``timeout`` seconds. Looks some times a second, at a file only where anybody has
        written to it. Raises SessionNotFound, also when it is deleted meanwhile, and InvalidValue.
        """
        watch = self._watch(session_id, revision, timeout)
        while (changed := watch.look()) is None and watch.has_time():
            time.sleep(watch.pause)
        return changed

    def _watch(self, session_id: str, revision: str | None, timeout: float) -> Watch:
        return Watch(self._database, self.session, session_id, revision, timeout)

    def context(
        self,
        session_id: str,
        system: str | None = None,
        tools: Tools | None = None,
        user_input: str | None = None,
        todo_recap: str | None = None,
        root: str | os.PathLike[str] | None = None,
        policy: Policy = TURNS,
        format: str = "openai",  # noqa: A002 - the public name
        now: Now = None,
        *,
        at: int | None = None,
    ) -> Context:
        """Return a whole request.

        Prompts, the project's rules, the view, the input and what is left to do.

        ``tools`` are a text, or definitions that are sent beside the messages; ``user_input`` what
        is not stored yet (None: the last user message is the current input); ``todo_recap`` what is
        left to do (None: what the last todo list says, "": nothing); ``root`` the project's folder
        (None: the session's), whose ``CODE_LAW.md`` is read anew; ``policy`` that of the view, for
        a coding agent ``Policy.named("agent")``; ``format`` one of a view's, or ``react`` for the
        whole as one text. Raises SessionNotFound, PositionOutOfRange, InvalidValue.
        """
        asked = contexts.asked(system, tools, user_input, todo_recap)
        options = {"recap": todo_recap is None, "root": root, "at": at, "format": format}
        options["now"] = self._moment(now)
        gather = Call(contexts.gather, (session_id, policy, user_input), options)
        gathered = self._read(gather)
        law = code_law(gathered.project_root)
        with paused(len(gathered.view.messages)):
            request = contexts.assemble(asked, gathered, law, policy, format=format)
            return self._requests.compared(session_id, request)


def check_single(session_ids: tuple[str, ...], expected: str | None) -> None:
    """Refuse one revision for several sessions."""
    if expected is not None and len(session_ids) != 1:
        raise InvalidValue("a revision is that of one session; delete sessions one by one with it")
