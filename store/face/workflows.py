"""Workflows on sessions: they take several transactions, or do most of their work in none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .. import context as contexts
from .. import history
from ..clock import Now
from ..database import Database, pause_gc
from ..errors import check_progress
from .calls import Call, list_replica_operations
from .observers import Observers, observed
from .operations import LongOperations
from .replicas import Replica
from .streaming import SAVE_EVERY_BYTES, SAVE_EVERY_MS, Streaming, StreamRequest
from .watches import DraftWatch, RevisionWatch

if TYPE_CHECKING:
    from ..context import Context, Tools
    from ..messages import GivenMessage
    from ..policy import Policy
    from ..records import (
        Draft,
        Erasure,
        Metrics,
        ObserverCallback,
        ProgressCallback,
        Pruned,
        Session,
    )

ReadingT = TypeVar("ReadingT")
WorkResultT = TypeVar("WorkResultT")


class Workflows(LongOperations):
    """The workflows on sessions."""

    _database: Database
    _requests: contexts.Requests
    _observers: Observers
    _replica: Replica | None = None
    _own: str | None = None

    def _run_workflow(self, call: Call[WorkResultT]) -> WorkResultT:
        call.owner = self._own
        return self._observers.run_whole(call, self._choose_database)

    def _choose_database(self, call: Call[WorkResultT]) -> WorkResultT:
        """Do a workflow, on the replica if that may do it."""
        if self._replica is None or call.operation not in list_replica_operations():
            return self._open_workflow(call)

        def work(database: Database) -> WorkResultT:
            call.replica = database
            return self._open_workflow(call)

        return self._replica.read(work)

    def metrics(self) -> Metrics:
        """Return what was done since the store was opened in this process: counts and times.

        On a face of one owner's sessions: what was done on faces of this owner, since the first
        time that this was asked. `Metrics.text` is the format of Prometheus.
        """
        return self._observers.get_metrics(self._own)

    def observe(
        self, callback: ObserverCallback, *, owners: bool = False, tokens: bool = False
    ) -> Callable[[], None]:
        """Call ``callback`` with an `Observation` of each operation that ends from now on.

        It is called in the thread of the operation, after its transaction; what it raises goes to
        the log, and what it does with the store is not observed. On a face of one owner's sessions
        it is told the operations of that owner's faces. ``owners`` tells the owner of the face on
        which an operation was called, ``tokens`` the tokens of each view, which takes time for each
        of its messages. Returns the function that ends it. Raises InvalidValue.
        """
        return self._observers.add(callback, self._own, owners=owners, tokens=tokens)

    def wait(
        self,
        session_id: str,
        revision: str | None,
        timeout: float = 30.0,
        *,
        drafts: bool = False,
    ) -> Session | None:
        """Wait until a session has another revision and return it; None after ``timeout`` seconds.

        With ``drafts`` the wait also ends when one of the session's drafts begins, grows, ends or
        dies. Reads from a file only after somebody has written to it. A server tells of a change,
        and is asked again every 5 seconds; behind a pooler and on a standby it is asked five times
        a second. Raises SessionNotFound, also if the session is deleted meanwhile, and
        InvalidValue.
        """
        watch = self._watch(session_id, revision, timeout, drafts=drafts)
        alarm = threading.Event()
        with watch.changes.woken_by(alarm.set):
            while (changed := watch.look()) is None and watch.has_time():
                alarm.wait(watch.pause)
                alarm.clear()
        return changed

    def _watch(
        self, session_id: str, revision: str | None, timeout: float, *, drafts: bool
    ) -> RevisionWatch:
        states = Call(history.drafts.load_draft_states, (session_id,), {})
        asked = partial(self.session, session_id)
        found = partial(self._read, states) if drafts else None
        return RevisionWatch(self._database, session_id, asked, revision, timeout, found)

    def follow(self, draft: str | Draft, key: str = "content") -> Iterator[str]:
        """Yield the text of an answer that any process streams, from the beginning until its end.

        ``draft`` is its id, or a draft that `drafts` returned; ``key`` the key of the message that
        the text belongs to. Waits for more text as long as the draft is live. Afterwards the answer
        is a message of the session, or its draft is in `drafts` and no longer live. Raises
        DraftNotFound.
        """
        return self._watch_draft(draft, key).iterate_texts()

    def _watch_draft(self, draft: str | Draft, key: str) -> DraftWatch:
        return DraftWatch(self._database, self._read, draft, key)

    def streaming(
        self,
        session_id: str,
        message: GivenMessage,
        *,
        expected: str | None = None,
        every_bytes: int = SAVE_EVERY_BYTES,
        every_ms: int = SAVE_EVERY_MS,
        format: str | None = None,  # noqa: A002 - the public name
        alone: bool = False,
    ) -> Streaming:
        """Stream an answer: ``with store.streaming(id, message) as answer: answer.write(text)``.

        ``message`` is the beginning of the answer: its role, maybe more; ``format`` names the
        format of the whole, as in `append`. The text is saved beside the line, as a draft, after
        every ``every_bytes`` bytes of it (UTF-8), and at the latest with the first text that comes
        ``every_ms`` ms after the last save: a killed process loses less than that.

        Leaving the ``with`` appends the message and deletes the draft, in one change. After an
        exception the draft stays, with all of the text. It also stays, and Conflict is raised, if
        the head has moved since the beginning, or the revision ``expected`` is not the session's.
        Until the end the draft is live, however long no text comes: a heartbeat of the process
        tells others. ``alone`` refuses a session to which another answer is under way. Entering
        raises SessionNotFound, Conflict, DraftBusy, InvalidMessage, InvalidValue; leaving, and
        saving, DraftEnded if somebody finished or discarded the draft meanwhile.
        """
        pace = (every_bytes, every_ms)
        asked = StreamRequest(
            self, self._database, session_id, message, expected, *pace, format, alone
        )
        return Streaming(asked)

    @observed
    def delete_session(
        self,
        *session_ids: str | Sequence[str],
        missing: str = "refuse",
        purge: bool = False,
        expected: str | None = None,
        costs: str = "keep",
        now: Now = None,
    ) -> list[Erasure]:
        """Erase sessions for good: their messages and all that was derived from them.

        They are given as ids, or as a list of these. Each is gone for every reader at once, in a
        transaction of its own; its rows are erased between other writers, in slices of some
        milliseconds. Messages on the lines of other sessions stay; the erasure itself is recorded.
        Each `Erasure` says what the file may still hold until a purge; ``purge`` purges at once,
        which a face of one owner's sessions cannot. ``expected`` is the revision that a single
        session must have (None: any). The sums of usages by day and model are kept, for totals,
        unless ``costs="erase"``. Raises Conflict, InvalidValue, and SessionNotFound for an unknown
        id, unless ``missing="ignore"``. If anything is raised, nothing was erased. If one of
        several fails later, the erasures done so far are returned.
        """
        ids = history.erasure_batches.list_given_ids(session_ids, expected)
        moment = self._moment(now)
        return self._erase(tuple(ids), expected, moment, missing=missing, purge=purge, costs=costs)

    def forget(
        self,
        session_id: str,
        *,
        expected: str | None = None,
        costs: str = "keep",
        now: Now = None,
    ) -> Erasure:
        """Erase for good what a session's line has left: by rewinds, pops, replacements, switches.

        The line and its views stay as they are, and so do messages that the lines of other sessions
        show; there is nothing to undo or to switch to any more. It is recorded as an erasure;
        `purge` removes the last bytes from the file. ``expected`` is the revision that the session
        must have (None: any). The sums of the usages of what is erased are kept, for totals, unless
        ``costs="erase"``. Raises SessionNotFound, Conflict, InvalidValue.
        """
        begin = history.branch_erasure.begin_branch_erasure
        moment = self._moment(now)
        (erased,) = self._erase(
            (session_id,), expected, moment, purge=False, costs=costs, begin=begin
        )
        return erased

    def _erase(
        self,
        session_ids: tuple[str, ...],
        expected: str | None,
        moment: int,
        *,
        purge: bool,
        **options: Any,
    ) -> list[Erasure]:
        """Erase sessions with options of `delete_sessions`; purge the file if ``purge`` is true."""
        raise NotImplementedError

    @observed
    def prune(
        self,
        idle: timedelta | float | None = None,
        *,
        keep: Mapping[str, Any] | None = None,
        owner: str | None = None,
        source: str | None = None,
        archived: bool | None = None,
        max_bytes: int | None = None,
        costs: str = "keep",
        dry_run: bool = True,
        max_seconds: float | None = None,
        progress: ProgressCallback | None = None,
        now: Now = None,
    ) -> Pruned:
        """Erase the sessions that were not active for long, or tell what that would free.

        ``idle`` is the time without activity, a timedelta or a number of days. With ``max_bytes``
        the oldest of them go until the store has no more bytes than that, by the words of their
        messages; ``max_bytes`` alone may erase any session. ``owner``, ``source`` and ``archived``
        (None: both) choose among sessions as in `sessions`; those whose metadata have all of
        ``keep`` stay, and so do those to which an answer is being streamed, or that are being
        compacted.

        Messages that the lines of other sessions show stay. ``dry_run`` erases nothing; without it
        each session is erased as by `delete_session`, if nothing has changed it meanwhile; in a
        file some share a short transaction. After ``max_seconds`` the rest is left to the next
        prune; then ``bytes`` of the result are an estimate. ``costs`` is that of `delete_session`,
        ``progress`` gets the number of sessions done, and of all. Freed pages go back to the disk
        by `purge`. Raises InvalidValue.
        """
        check_progress(progress)
        options = {
            "keep": keep,
            "owner": owner,
            "source": source,
            "archived": archived,
            "max_bytes": max_bytes,
            "costs": costs,
            "now": self._moment(now),
        }
        plan = self._read(Call(history.retention.plan_prune, (idle,), options))
        if dry_run:
            return plan.effect
        return history.retention.prune_sessions(self._database, plan, max_seconds, progress)

    @observed
    def context(
        self,
        session_id: str,
        system: str | None = None,
        tools: Tools | None = None,
        user_input: str | None = None,
        todo_recap: str | None = None,
        root: str | os.PathLike[str] | None = None,
        policy: Policy | None = None,
        format: str = "openai",  # noqa: A002 - the public name
        now: Now = None,
        *,
        at: int | None = None,
        cache_markers: bool = False,
        record: bool = False,
        recall: bool = False,
    ) -> Context:
        """Return a whole request: prompts, the project's rules, the view, the input and open todos.

        ``tools`` is a text, or definitions in the form of any provider; `Context.tools` has them in
        that of ``format``. ``user_input`` is the input that is not stored yet (None: the last user
        message is the current input), ``todo_recap`` the open todos (None: those of the last todo
        list, "": none), ``root`` the project's folder (None: the session's), whose ``CODE_LAW.md``
        is read anew, ``policy`` that of the view, for a coding agent ``Policy.named("agent")``
        (None: ``Policy.named("turns")``), ``format`` a format of a view, or ``react`` for the whole
        as one text. With ``recall`` the tools have that of recall too, whose calls
        `store.recall.answer` answers. With ``cache_markers`` the ends of layers are marked for the
        prompt cache of a provider that asks for it, which is Anthropic: at most four blocks, or
        three if the turn is short. ``record`` keeps the request in the log, in a transaction of its
        own: `requests` lists it, and `request` makes it again. Raises SessionNotFound,
        PositionOutOfRange, InvalidValue, InvalidPolicy.
        """
        asked = contexts.request.check_inputs(
            system, tools, user_input, todo_recap, policy, recall=recall
        )
        options = {"recap": todo_recap is None, "root": root, "at": at, "format": format}
        options |= {"now": self._moment(now), "record": record}
        gather = Call(
            contexts.request.gather_parts, (session_id, asked.policy, user_input), options
        )
        gathered = self._read(gather)._replace(marked=cache_markers)
        law = contexts.code_law(gathered.project_root)
        with pause_gc(len(gathered.view.messages)):
            request = contexts.request.assemble_request(asked, gathered, law, format=format)
            if record:
                drawn = contexts.draft_context(request, asked, gathered, law)
                self._write(Call(contexts.record_request, (session_id, drawn), {}))
            return self._requests.remember(session_id, request, gathered.since)

    @observed
    def frame(self, name: str, session_id: str | None = None) -> Any:
        """Return records as a data frame of pandas, which has to be installed.

        ``name`` is one of ``sessions``, ``usages``, ``notes``, ``messages``, ``turns``, ``calls``
        and ``files``; a column is a field of the records, and times are in UTC. The rows are those
        of a session, or of all (None); then rows that a fork shares with its source count once.
        Raises SessionNotFound, InvalidValue for another name, StoreError without pandas.
        """
        from . import frames

        return frames.build_frame(self.reading, name, session_id)

    def reading(self, work: Callable[[Any], ReadingT]) -> ReadingT:
        """Do several reads of one state of the store; return the result of work."""
        raise NotImplementedError
