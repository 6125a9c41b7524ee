"""The operations of a store, awaited: one thread hop for each.

Written by ``python docs/generate.py`` from the tables in ``docs/parts/faces.py``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, overload

from .store import Scoped, Store
from .threads import AsyncPages, Threads
from .workflows import Workflows

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from datetime import timedelta, tzinfo
    from typing import Any, Literal

    from ..clock import Now
    from ..compaction import Clearing, Plan
    from ..context import Context, Tools
    from ..history import Dedupe, MessageInput, ModelPrice
    from ..messages import Message
    from ..policy import Policy
    from ..records import (
        Branch,
        CacheInfo,
        CallRecord,
        Check,
        Compaction,
        Copy,
        Draft,
        Erasure,
        FilePath,
        FileUse,
        Finding,
        Found,
        HeadMove,
        Health,
        Hidden,
        Hit,
        Hits,
        Index,
        Metrics,
        Note,
        ObserverCallback,
        OpenCall,
        Passage,
        ProgressCallback,
        Pruned,
        Purge,
        Reason,
        Redaction,
        Replaced,
        Request,
        RequestSummary,
        Session,
        SessionHit,
        Sibling,
        Size,
        StoredMessage,
        TokenTotal,
        Turn,
        Usage,
        UsageTotal,
        View,
    )
    from ..summaries import Summarizer
    from .atomic_steps import Snapshot, Steps
    from .store import Owned

AtomicResultT = TypeVar("AtomicResultT")


class AsyncOperations(Threads):
    """Operations on sessions, awaited."""

    async def create_session(
        self,
        session_id: str | None = None,
        *,
        title: str | None = None,
        project_root: str | os.PathLike[str] | None = None,
        metadata: dict[str, Any] | None = None,
        owner: str | None = None,
        fold_case: bool = False,
        exist_ok: bool = False,
        now: Now = None,
    ) -> Session:
        """Create a session with an empty line, the root of a new tree.

        Its id is the caller's or a new UUIDv7. ``owner`` is any text that names its owner; it never
        changes.

        File paths in tool calls are compared relative to ``project_root``, ignoring case with
        ``fold_case``. With ``exist_ok`` an existing session of that id is returned unchanged, whatever
        the other arguments are. Raises SessionExists if the id is taken, InvalidValue for an id, title,
        owner or metadata that cannot be stored.
        """
        work = partial(
            self._call,
            Workflows.create_session,
            session_id,
            title=title,
            project_root=project_root,
            metadata=metadata,
            owner=owner,
            fold_case=fold_case,
            exist_ok=exist_ok,
            now=now,
        )
        return await self._run(work, waits=True)

    async def session(
        self,
        session_id: str,
    ) -> Session:
        """Return one session. Raises SessionNotFound."""
        work = partial(
            self._call,
            Workflows.session,
            session_id,
        )
        return await self._run(work)

    async def title(
        self,
        session_id: str,
    ) -> str | None:
        """Return a session's title: the given one, else one made of its first user message.

        The latter is one line of at most 80 code points, made at each read and never stored, so
        `Session.title` tells whether one was given; None if nothing was said in words. Raises
        SessionNotFound.
        """
        work = partial(
            self._call,
            Workflows.title,
            session_id,
        )
        return await self._run(work)

    async def sessions(
        self,
        *,
        limit: int = 100,
        after: Session | str | None = None,
        owner: str | None = None,
        where: dict[str, Any] | None = None,
        prefix: str | None = None,
        tree: str | None = None,
        archived: bool = False,
        project: FilePath | None = None,
        source: str | None = None,
        since: Now = None,
        until: Now = None,
        title: str | None = None,
        parents: bool = False,
        order: str = "active",
    ) -> list[Session]:
        """Return at most ``limit`` sessions, newest first.

        By their last activity: messages count, metadata do not; with ``order="created"`` by when they
        were created, an order that no session changes. ``owner``, the ``prefix`` of ids, and a session
        of whose ``tree`` they are, itself and all forks, choose among them (None: all), and so does
        ``where``: keys that their metadata have, and the values of these, the rarest first.
        ``archived`` gives those that are archived instead of those that are not.

        ``project`` is a folder: their projects are there or below it. ``source`` is the program that
        they were imported from ("": none, they were made here). Their last activity was at or after
        ``since`` and before ``until``. ``title`` is a part of their titles, in any case. ``parents``
        leaves out sessions of subagents.

        ``after`` is the last one already seen, as it was returned. Then the list goes on behind it,
        though it was active again since, or was deleted. Its id alone tells where it stands now. Raises
        InvalidValue, and SessionNotFound for an id.
        """
        work = partial(
            self._call,
            Workflows.sessions,
            limit=limit,
            after=after,
            owner=owner,
            where=where,
            prefix=prefix,
            tree=tree,
            archived=archived,
            project=project,
            source=source,
            since=since,
            until=until,
            title=title,
            parents=parents,
            order=order,
        )
        return await self._run(work)

    async def count_sessions(
        self,
        *,
        owner: str | None = None,
        where: dict[str, Any] | None = None,
        prefix: str | None = None,
        tree: str | None = None,
        archived: bool = False,
        project: FilePath | None = None,
        source: str | None = None,
        since: Now = None,
        until: Now = None,
        title: str | None = None,
        parents: bool = False,
    ) -> int:
        """Return how many sessions there are, chosen as `sessions` chooses them.

        Raises InvalidValue, and SessionNotFound for a session whose ``tree`` is asked for.
        """
        work = partial(
            self._call,
            Workflows.count_sessions,
            owner=owner,
            where=where,
            prefix=prefix,
            tree=tree,
            archived=archived,
            project=project,
            source=source,
            since=since,
            until=until,
            title=title,
            parents=parents,
        )
        return await self._run(work)

    async def archive(
        self,
        session_id: str,
        *,
        expected: str | None = None,
    ) -> Session:
        """Take a session out of the lists of active sessions; nothing else changes.

        Archiving is no activity. ``expected`` is the revision that the session must have (None: any).
        Raises SessionNotFound, Conflict.
        """
        work = partial(
            self._call,
            Workflows.archive,
            session_id,
            expected=expected,
        )
        return await self._run(work, waits=True)

    async def unarchive(
        self,
        session_id: str,
        *,
        expected: str | None = None,
    ) -> Session:
        """Put a session back into the lists of active sessions, at its old place.

        ``expected`` is the revision that the session must have (None: any). Raises SessionNotFound,
        Conflict.
        """
        work = partial(
            self._call,
            Workflows.unarchive,
            session_id,
            expected=expected,
        )
        return await self._run(work, waits=True)

    async def rename_session(
        self,
        session_id: str,
        title: str | None,
        *,
        expected: str | None = None,
        now: Now = None,
    ) -> Session:
        """Give a session another title (None: none), if its revision is the expected one (None: any).

        Raises SessionNotFound, Conflict, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.rename_session,
            session_id,
            title,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def set_metadata(
        self,
        session_id: str,
        metadata: dict[str, Any] | None,
        *,
        merge: bool = False,
        expected: str | None = None,
    ) -> Session:
        """Give a session other metadata, a JSON object, or with ``merge`` change them in part.

        With ``merge``, ``metadata`` is a merge patch (RFC 7396): its keys are set, its keys with the
        value null are removed, objects within are merged likewise, and all other keys stay. No change
        that others make meanwhile is lost. Setting metadata is no activity: the session keeps its place
        in lists. With ``expected`` they are set only if that is the session's revision. Raises
        SessionNotFound, Conflict, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.set_metadata,
            session_id,
            metadata,
            merge=merge,
            expected=expected,
        )
        return await self._run(work, waits=True)

    async def set_origin(
        self,
        session_id: str,
        source: str,
        file: str | None = None,
    ) -> Session:
        """Tell which program and which file a session was imported from.

        An import tells it by itself. Raises SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.set_origin,
            session_id,
            source,
            file,
        )
        return await self._run(work, waits=True)

    async def file_state(
        self,
        file: str,
        *,
        owner: str | None = None,
    ) -> str | None:
        """Return what the last import of a file remembered (None: nothing).

        An import asks for it by itself. Raises InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.file_state,
            file,
            owner=owner,
        )
        return await self._run(work)

    async def set_file_state(
        self,
        file: str,
        state: str | None,
        *,
        owner: str | None = None,
    ) -> None:
        """Remember a text about an imported file, or nothing (None).

        It is forgotten when a session of the file is erased, redacted or imported from another file. An
        import sets it by itself. Raises InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.set_file_state,
            file,
            state,
            owner=owner,
        )
        return await self._run(work, waits=True)

    async def set_project_root(
        self,
        session_id: str,
        project_root: str | os.PathLike[str] | None,
        *,
        expected: str | None = None,
    ) -> Session:
        """Give a session, and all that share its tree, another project root (None: none).

        The files that were read and changed are derived again for all their messages, which takes a
        while for long lines. The session keeps its place in lists. ``expected`` is the revision that
        the session must have (None: any). Raises SessionNotFound, Conflict, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.set_project_root,
            session_id,
            project_root,
            expected=expected,
        )
        return await self._run(work, waits=True)

    async def append(
        self,
        session_id: str,
        messages: MessageInput,
        *,
        expected_head: int | None = None,
        expected: str | None = None,
        dedupe: Dedupe = "refuse",
        create: bool = False,
        metadata: dict[str, Any] | None = None,
        now: Now = None,
        format: str | None = None,  # noqa: A002 - the public name
        alone: bool = False,
    ) -> list[StoredMessage]:
        """Append a message, or a batch as one, to a session's line, and return them as stored.

        They are returned in the given order. A message may be a pydantic object, such as a provider's
        client returns: it is stored as the JSON of the fields that are set. It may have any of the
        formats of a view: ``format`` names it, or each message's shape decides (None). A message that
        holds several results takes a position for each, and is returned with the last.

        A message whose ``id`` is on the line already is not stored again but returned, so a call whose
        outcome is unknown can be repeated; another message under that id is refused. With
        ``dedupe="ignore"`` it is left out whatever it holds, with ``"off"`` ids are no keys and every
        message is stored. ``create`` creates the session if there is none of that id. ``metadata`` are
        merged into the session's as `set_metadata` does, as part of the same change.

        With ``expected_head`` the batch is stored only if the head is there, with ``expected`` only if
        that is the session's revision, with ``alone`` only if no answer to the session is under way.
        Raises SessionNotFound, Conflict, HeadMoved, DraftBusy, InvalidValue, InvalidMessage (naming
        index and key); then nothing of the batch is stored.
        """
        work = partial(
            self._call,
            Workflows.append,
            session_id,
            messages,
            expected_head=expected_head,
            expected=expected,
            dedupe=dedupe,
            create=create,
            metadata=metadata,
            now=now,
            format=format,
            alone=alone,
        )
        return await self._run(work, is_grouped=True)

    async def messages(
        self,
        session_id: str,
        start: int = 1,
        stop: int | None = None,
        at: int | None = None,
        *,
        branch: int | None = None,
        last: int | None = None,
        format: str | None = None,  # noqa: A002 - the public name
    ) -> list[StoredMessage]:
        """Return a line's raw messages from position ``start`` to ``stop``, both included.

        The line is read as of the position ``at``. A negative ``start`` counts positions from the end:
        -20 gives the newest 20 positions, or all where there are fewer. A message that takes several
        positions, such as one with several results, is at the last of them. ``last`` counts
        messages instead: that many of the newest, whatever positions they take; it excludes ``start``
        and ``stop``. ``branch`` names a line that the session can go back to. With ``format`` messages
        of other formats are written in that one, each position for itself, so that all have one shape;
        None gives each as it went in. Raises SessionNotFound, InvalidValue, and PositionOutOfRange if
        ``at`` is not on the line; a range beyond it is just empty.
        """
        work = partial(
            self._call,
            Workflows.messages,
            session_id,
            start,
            stop,
            at,
            branch=branch,
            last=last,
            format=format,
        )
        return await self._run(work)

    async def message(
        self,
        session_id: str,
        seq_or_message_id: int | str | list[Any] | tuple[Any, ...],
    ) -> Any:
        """Return a message of a session's line, by its position or its id (the newest of that id).

        Of a list of positions and ids, a list of their messages in its order. Raises SessionNotFound,
        PositionOutOfRange for a position, MessageNotFound for an id that are not on the line.
        """
        work = partial(
            self._call,
            Workflows.message,
            session_id,
            seq_or_message_id,
        )
        return await self._run(work)

    async def calls(
        self,
        session_id: str,
        kind: str | None = None,
        failed: bool | None = None,
    ) -> list[CallRecord]:
        """Return the tool calls of a session's line in order, with how they ended.

        ``kind`` selects those of a kind of tools, in the words of the table ``tool_kinds``, ``failed``
        those that failed (True) or did not (False), and none without a result. Raises
        SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.calls,
            session_id,
            kind,
            failed,
        )
        return await self._run(work)

    async def open_calls(
        self,
        session_id: str,
    ) -> list[OpenCall]:
        """Return the calls of a session's line that have no result yet, in order.

        A result appended under the ``id`` of an open call answers that call. Raises SessionNotFound.
        """
        work = partial(
            self._call,
            Workflows.open_calls,
            session_id,
        )
        return await self._run(work)

    async def files(
        self,
        session_id: str,
        path: str | None = None,
    ) -> list[FileUse]:
        """Return the files that the tool calls of a session's line named, in the order of the results.

        ``path`` selects one file, relative to the project or absolute. Raises SessionNotFound,
        InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.files,
            session_id,
            path,
        )
        return await self._run(work)

    async def find(
        self,
        message_id: str | None = None,
        session: str | None = None,
        *,
        prefix: str | None = None,
        owner: str | None = None,
    ) -> list[Found]:
        """Return where messages of an id are: in the whole store, or on the lines of one session.

        Or in all sessions of an ``owner``, where no session is given. ``prefix``, in place of an id,
        finds the messages whose ids begin with it, in the order of the ids (by code points); a redacted
        message is found by the id that it has since.

        A session has a message that its line runs through, or one that it has left: ``branch`` is one
        of its own, the one of its head if possible, by which the message can be read, and switched to.
        The sessions that were last active come first. Raises SessionNotFound for a session that is not
        there, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.find,
            message_id,
            session,
            prefix=prefix,
            owner=owner,
        )
        return await self._run(work)

    async def turns(
        self,
        session_id: str,
        start: int = 1,
        stop: int | None = None,
    ) -> list[Turn]:
        """Return the turns of a session's line, oldest first; what comes before the first is in none.

        ``start`` and ``stop`` are the numbers of the first and the last of them, both included: a
        negative ``start`` counts from the newest. Raises SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.turns,
            session_id,
            start,
            stop,
        )
        return await self._run(work)

    async def fork(
        self,
        source: str,
        at: int | None = None,
        session_id: str | None = None,
        *,
        branch: int | None = None,
        title: str | None = None,
        owner: str | None = None,
        metadata: dict[str, Any] | None = None,
        project_root: str | os.PathLike[str] | None = None,
        expected: str | None = None,
        now: Now = None,
    ) -> Session:
        """Create a session that continues another one from position ``at`` (its head).

        Copies no message. ``branch`` is one that the source can go back to (None: the present one).
        ``title`` and ``metadata`` are the fork's own (None: those of its source). A fork with another
        ``owner`` than its source (None: the same) gets the line alone: it sees no other branch, and has
        only the title, metadata and ``project_root`` given here. ``expected`` is the revision that the
        source must have (None: any). Raises SessionNotFound, SessionExists, Conflict,
        PositionOutOfRange, InvalidValue for a branch, and for a project root of a fork that stays with
        its owner: it has its source's.
        """
        work = partial(
            self._call,
            Workflows.fork,
            source,
            at,
            session_id,
            branch=branch,
            title=title,
            owner=owner,
            metadata=metadata,
            project_root=project_root,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def rewind(
        self,
        session_id: str,
        to: int,
        *,
        expected: str | None = None,
        now: Now = None,
    ) -> Session:
        """Move a session's head back to position ``to`` (0: before the first message).

        Deletes nothing, and can be undone. ``expected`` is the revision that the session must have
        (None: any). Raises SessionNotFound, Conflict, PositionOutOfRange.
        """
        work = partial(
            self._call,
            Workflows.rewind,
            session_id,
            to,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def switch(
        self,
        session_id: str,
        branch: int | None,
        to: int | None = None,
        *,
        of: str | None = None,
        expected: str | None = None,
        now: Now = None,
    ) -> Session:
        """Move a session's head to another branch: to its end, or back from there to position ``to``.

        `branches` lists the existing branches. ``of`` names another session of the tree, whose branch
        it is (None: the present one); both sessions continue from there independently. It is undone
        like a rewind. ``expected`` is the revision that the session must have (None: any). Raises
        SessionNotFound, Conflict, InvalidValue for a branch, PositionOutOfRange.
        """
        work = partial(
            self._call,
            Workflows.switch,
            session_id,
            branch,
            to,
            of=of,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def branches(
        self,
        session_id: str,
    ) -> list[Branch]:
        """Return the branches that a session can go back to with `switch`, and its present one.

        Oldest first. A fork also has the branches that its source had left when the fork was made, as
        they were then; where the fork continues one itself, its own branch replaces it. Raises
        SessionNotFound.
        """
        work = partial(
            self._call,
            Workflows.branches,
            session_id,
        )
        return await self._run(work)

    async def siblings(
        self,
        session_id: str,
        seq: int,
    ) -> list[Sibling]:
        """Return the message at a position and all others that follow the same message.

        They are on the branches that `branches` lists, and are sorted by the age of the branches that
        hold them. `switch` to the branch of one brings it back with the newest messages after it.
        ``seq`` may be the position after the head: then none is current. Raises SessionNotFound,
        PositionOutOfRange.
        """
        work = partial(
            self._call,
            Workflows.siblings,
            session_id,
            seq,
        )
        return await self._run(work)

    async def replace(
        self,
        session_id: str,
        after: int,
        messages: MessageInput,
        *,
        expected: str | None = None,
        now: Now = None,
        format: str | None = None,  # noqa: A002 - the public name
    ) -> Session:
        """Replace the messages after position ``after`` by others, or none: rewind and append, as one.

        Positions 1 to ``after`` stay. The replaced messages are kept on the branch that the head
        leaves; `undo_rewind` brings them back. ``expected`` is the revision that the session must have
        (None: any), ``format`` names that of the messages as in `append`. Raises SessionNotFound,
        Conflict, PositionOutOfRange, InvalidMessage.
        """
        work = partial(
            self._call,
            Workflows.replace,
            session_id,
            after,
            messages,
            expected=expected,
            now=now,
            format=format,
        )
        return await self._run(work, waits=True)

    async def pop(
        self,
        session_id: str,
        *,
        expected: str | None = None,
        now: Now = None,
    ) -> StoredMessage | None:
        """Remove the last message from a line and return it; None if the line is empty.

        It is a rewind to the position before it: the message stays stored, and `undo_rewind` brings it
        back. No other caller gets the same message. ``expected`` is the revision that the session must
        have (None: any). Raises SessionNotFound, Conflict.
        """
        work = partial(
            self._call,
            Workflows.pop,
            session_id,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def drafts(
        self,
        session_id: str | None = None,
        *,
        owner: str | None = None,
        before: Now = None,
    ) -> list[Draft]:
        """Return the drafts of a session, of an owner's sessions or of all, the oldest first.

        They are answers that broke off, and those that are being streamed, which are ``live``.
        ``before`` is a moment: only drafts to which nothing was added since are returned. Raises
        SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.drafts,
            session_id,
            owner=owner,
            before=before,
        )
        return await self._run(work)

    async def finish_draft(
        self,
        draft: str | Draft,
        *,
        update: Message | None = None,
        expected: str | None = None,
        owner: str | None = None,
        now: Now = None,
        format: str | None = None,  # noqa: A002 - the public name
        force: bool = False,
    ) -> StoredMessage:
        """Append the saved message of a draft at its session's head, and delete the draft.

        ``draft`` is its id, or a draft that `drafts` returned. ``update`` are values for keys of the
        message, such as one that marks it as incomplete; without them it is stored as received.
        ``expected`` is the revision that the session must have (None: any), ``owner`` its owner (None:
        any), ``format`` names that of the message as in `append` (None: the one in which it began).
        A live draft is only finished with ``force``: its stream then raises DraftEnded. Raises
        DraftNotFound, DraftBusy for a live one, Conflict, InvalidMessage, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.finish_draft,
            draft,
            update=update,
            expected=expected,
            owner=owner,
            now=now,
            format=format,
            force=force,
        )
        return await self._run(work, waits=True)

    async def discard_draft(
        self,
        draft: str | Draft,
        *,
        owner: str | None = None,
        force: bool = False,
    ) -> Draft:
        """Delete a draft and return its saved message, which is stored nowhere else.

        ``draft`` is its id, or a draft that `drafts` returned; ``owner`` is the owner of its session
        (None: any). A live draft is only discarded with ``force``: its stream then raises DraftEnded.
        Raises DraftNotFound, and DraftBusy for a live one.
        """
        work = partial(
            self._call,
            Workflows.discard_draft,
            draft,
            owner=owner,
            force=force,
        )
        return await self._run(work, waits=True)

    async def undo_rewind(
        self,
        session_id: str,
        *,
        expected: str | None = None,
        now: Now = None,
    ) -> Session:
        """Move a session's head back to its place before its last rewind or switch.

        A second undo goes one move further back. Messages appended since stay stored, on the branch
        that the head leaves. ``expected`` is the revision that the session must have (None: any).
        Raises SessionNotFound, Conflict, NothingToUndo.
        """
        work = partial(
            self._call,
            Workflows.undo_rewind,
            session_id,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def head_moves(
        self,
        session_id: str,
    ) -> list[HeadMove]:
        """Return a session's head-move log, oldest first.

        It holds the fork that created the session, rewinds, switches and undos. Raises SessionNotFound.
        """
        work = partial(
            self._call,
            Workflows.head_moves,
            session_id,
        )
        return await self._run(work)

    async def view(
        self,
        session_id: str,
        policy: Policy | None = None,
        *,
        at: int | None = None,
        now: Now = None,
        format: str = "openai",  # noqa: A002 - the public name
        branch: int | None = None,
        record: bool = False,
        whole: bool = False,
    ) -> View:
        """Return the messages for the model: a line up to position ``at``, by a policy at a moment.

        Defaults: ``at`` is the end of the line, ``policy`` is ``Policy()``, ``now`` is the present. For
        coding agents ``Policy.named("agent")`` is the better policy. The same line, policy and moment
        always give the same messages, unless a compaction is recorded later at that very position.
        ``branch`` names a line that the session can go back to, so that its requests can be replayed
        too. ``record`` keeps the request in the log, in a transaction of its own: `requests` lists it,
        and `request` makes it again. With ``whole`` the messages keep all that is stored of them, such
        as ids, times and keys of an app, and have the texts that are sent; that is no request, so it
        goes neither with ``record`` nor with another format. Raises SessionNotFound,
        PositionOutOfRange, and InvalidValue for a branch or an unknown format.
        """
        work = partial(
            self._call,
            Workflows.view,
            session_id,
            policy,
            at=at,
            now=now,
            format=format,
            branch=branch,
            record=record,
            whole=whole,
        )
        return await self._run(work, waits=record)

    async def view_sql(
        self,
        session_id: str,
        policy: Policy | None = None,
        *,
        at: int | None = None,
        now: Now = None,
    ) -> str:
        """Return a view as one SQL statement, without values to bind, in the database's dialect.

        It has a row for each message of the line up to position ``at``, in order: ``position``,
        ``role``, ``rule`` and ``reason`` as the view's entry has them, ``content`` as it is sent (as
        JSON if it is no text), and ``made_by``. That is ``sql`` if the rule is ``terminal``,
        ``file_read`` or none, else ``python`` with NULL as the content. Messages hidden by a compaction
        have the rule ``hidden``, messages left out of requests ``left_out``. Messages that a view makes
        up have no row. Raises SessionNotFound, PositionOutOfRange, InvalidPolicy.
        """
        work = partial(
            self._call,
            Workflows.view_sql,
            session_id,
            policy,
            at=at,
            now=now,
        )
        return await self._run(work)

    async def check(
        self,
        session_id: str,
        policy: Policy,
        max_tokens: int | None = None,
        last_usage: int | None = None,
        user_input: str = "",
        fixed_tokens: int = 0,
        *,
        now: Now = None,
    ) -> Check:
        """Tell whether a session's view should be compacted before the next request.

        ``max_tokens`` is the model's window (the policy's ``context_window``; 0: unknown, which never
        overflows); ``last_usage`` all tokens of the last request (as `record_usage` recorded it);
        ``user_input`` the input to be added: with it a new turn begins, so that the check counts the
        last turn in its short form; ``fixed_tokens`` the tokens sent beside the view: prompts, tools,
        rules (as given by a `Context`). Raises SessionNotFound, InvalidPolicy, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.check,
            session_id,
            policy,
            max_tokens,
            last_usage,
            user_input,
            fixed_tokens,
            now=now,
        )
        return await self._run(work)

    async def requests(
        self,
        session_id: str,
        *,
        start: int = 1,
        stop: int | None = None,
        last: int | None = None,
        first_seq: int = 0,
        last_seq: int | None = None,
    ) -> list[RequestSummary]:
        """Return the recorded requests of a session, oldest first.

        A session without any has those of its usages: such a request is not ``recorded``. They have the
        numbers ``start`` to ``stop`` (None: to the newest) and ended at the positions ``first_seq`` to
        ``last_seq`` (None: any); of them the ``last`` ones are returned (None: all). Raises
        SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.requests,
            session_id,
            start=start,
            stop=stop,
            last=last,
            first_seq=first_seq,
            last_seq=last_seq,
        )
        return await self._run(work)

    async def request(
        self,
        session_id: str,
        number: int,
    ) -> Request:
        """Return a request of a session, made again as it was sent: the same bytes.

        ``number`` counts the session's records from 1, and is never used again. A session without
        records has its usages instead, whose requests are made by ``Policy.named("raw")``. What has
        been erased or redacted since cannot be sent again: ``missing`` names it. Raises
        SessionNotFound, InvalidValue for a number that the session does not have.
        """
        work = partial(
            self._call,
            Workflows.request,
            session_id,
            number,
        )
        return await self._run(work)

    async def record_usage(
        self,
        session_id: str,
        response: object = None,
        *,
        input: int | None = None,  # noqa: A002 - the public name
        output: int | None = None,
        cached: int = 0,
        model: str | None = None,
        provider: str | None = None,
        written: int = 0,
        details: dict[str, Any] | None = None,
        cost: float | None = None,
        received: Message | None = None,
        seq: int | None = None,
        now: Now = None,
    ) -> Usage:
        """Record the real cost of the request at the session's head, as the provider reports it.

        ``response`` is the response of a client of OpenAI (chat or Responses), Anthropic or Gemini, or
        its usage, as an object or a dict. Its tokens, model and provider are recorded, and the usage in
        its own words in ``details["told"]``.

        Without a response ``input`` are all tokens that were sent; ``cached`` and ``written`` those of
        them that were read from the provider's cache and put into it. (Anthropic's ``input_tokens``
        exclude both: add all three.) ``model`` and ``provider`` are the provider's names, ``details``
        is an object with any other values. ``cost`` is in US dollars, if it is known; else it follows
        from the prices at each read.

        ``received`` is the received part of an answer whose stream broke off: its tokens are counted
        where the response tells fewer, and ``details["estimated"]`` is true. Unknown input is 0,
        and `check` ignores such a usage.

        The request held the messages up to ``seq`` (None: to the head), so record it before its answer
        is appended. The session's revision does not change. Raises SessionNotFound, PositionOutOfRange,
        InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.record_usage,
            session_id,
            response,
            input=input,
            output=output,
            cached=cached,
            model=model,
            provider=provider,
            written=written,
            details=details,
            cost=cost,
            received=received,
            seq=seq,
            now=now,
        )
        return await self._run(work, waits=True)

    async def usages(
        self,
        session_id: str | None = None,
        *,
        owner: str | None = None,
        since: Now = None,
        until: Now = None,
        limit: int | None = None,
        after: Usage | None = None,
        prices: FilePath | None = None,
    ) -> list[Usage]:
        """Return recorded usages, oldest first: of a session, of an owner's sessions, or of all.

        Each is returned once, for the session that made the request, however many forks continue from
        its place; usages whose answers a rewind left are included. They were recorded from ``since`` on
        and before ``until`` (None: any), are at most ``limit`` (None: all), and follow ``after``, the
        last one already seen. A usage without a recorded cost is priced by the prices of its UTC day.
        ``prices`` is a TOML file with prices that take precedence over the stored ones. Raises
        SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.usages,
            session_id,
            owner=owner,
            since=since,
            until=until,
            limit=limit,
            after=after,
            prices=prices,
        )
        return await self._run(work)

    async def usage_totals(
        self,
        session_id: str | None = None,
        *,
        by: str | Sequence[str] = "model",
        owner: str | None = None,
        since: Now = None,
        until: Now = None,
        prices: FilePath | None = None,
        zone: str | tzinfo = "UTC",
    ) -> list[UsageTotal]:
        """Return usages added up ``by`` a key or several, the dearest first, times in order.

        Keys are model, session, owner, project (the session's folder), source (its program), day, week
        (such as 2026-W07) and month. Given a list, the name of a total is a tuple in its order. Days
        begin in ``zone``, a name such as ``"Europe/Berlin"`` or a tzinfo. Usages are selected as by
        `usages`, and priced by the same prices; each total gives the number of requests without a
        price. Usages that an erasure kept count too, without a session and by the day in UTC. Raises
        SessionNotFound, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.usage_totals,
            session_id,
            by=by,
            owner=owner,
            since=since,
            until=until,
            prices=prices,
            zone=zone,
        )
        return await self._run(work)

    async def annotate(
        self,
        session_id: str,
        seq: int,
        key: str,
        value: Any,
        *,
        now: Now = None,
    ) -> Note | None:
        """Note a JSON value under a key beside a message of a session's line; None removes the note.

        The message and the session's revision do not change. A message has one note for each key, the
        newest. The note is visible on every line of the same owner through the message, and is erased
        with the message. Raises SessionNotFound, PositionOutOfRange, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.annotate,
            session_id,
            seq,
            key,
            value,
            now=now,
        )
        return await self._run(work, waits=True)

    async def annotations(
        self,
        session_id: str | None = None,
        *,
        key: str | None = None,
        seq: int | None = None,
        owner: str | None = None,
        limit: int | None = None,
        after: Note | None = None,
    ) -> list[Note]:
        """Return notes: those on a session's line in its order, or over all sessions, oldest first.

        ``key`` selects the notes of one key, ``seq`` those of the message at a position of a session's
        line. A line has the notes of the session's owner, in whichever
        session they were made. Over all sessions the notes are those of an ``owner`` (None: any), at
        most ``limit`` of them (None: all), that follow ``after``, the last one already seen. Raises
        SessionNotFound, PositionOutOfRange, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.annotations,
            session_id,
            key=key,
            seq=seq,
            owner=owner,
            limit=limit,
            after=after,
        )
        return await self._run(work)

    async def compactions(
        self,
        session_id: str,
    ) -> list[Compaction]:
        """Return a line's compactions, oldest first, undone ones marked. Raises SessionNotFound."""
        work = partial(
            self._call,
            Workflows.compactions,
            session_id,
        )
        return await self._run(work)

    async def hidden(
        self,
        session_id: str,
        at: int | None = None,
    ) -> dict[int, Hidden]:
        """Return the positions that compactions hide in the view of a line, and since when.

        Raises SessionNotFound, PositionOutOfRange.
        """
        work = partial(
            self._call,
            Workflows.hidden,
            session_id,
            at,
        )
        return await self._run(work)

    async def recall(
        self,
        session_id: str,
        wanted: str | Iterable[str],
        *,
        policy: Policy | None = None,
        budget: int = 6000,
        now: Now = None,
    ) -> list[Passage]:
        """Return passages of a session's line that a view hides, wholly or in part, by a query.

        ``wanted`` is a text, whose words all count, or names. Hidden are the messages that a view by
        the ``policy`` (None: ``Policy.named("agent")``) does not send as stored: those that a
        compaction hides, and those that were cleared, shortened or left out. The best passage comes
        first; a passage is a whole message, or a call with all its results. All passages together are
        about ``budget`` tokens at most; if the best one alone is larger, its text around the words is
        returned, and the calls that the names are about are cut last. Raises SessionNotFound,
        InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.recall,
            session_id,
            wanted,
            policy=policy,
            budget=budget,
            now=now,
        )
        return await self._run(work)

    async def replaced(
        self,
        session_id: str,
        policy: Policy | None = None,
        *,
        at: int | None = None,
        now: Now = None,
    ) -> list[Replaced]:
        """Return the tool results that a view replaces or shortens, in the order of their positions.

        The view is that of the line up to position ``at`` at a moment, as for `view`. It leaves out
        messages that a compaction hides; `hidden` lists them. Raises SessionNotFound,
        PositionOutOfRange.
        """
        work = partial(
            self._call,
            Workflows.replaced,
            session_id,
            policy,
            at=at,
            now=now,
        )
        return await self._run(work)

    async def hide(
        self,
        session_id: str,
        first: int,
        last: int,
        summary: str | None = None,
        *,
        expected: str | None = None,
        now: Now = None,
    ) -> Compaction:
        """Hide the positions ``first`` to ``last``, replacing them by your own text or by nothing.

        The range grows to whole groups: a call goes with its results, and a range hidden before goes
        whole, with its text. Return the record, whose ``hidden`` is the range; ``undo_compaction``
        brings it back. Its ``messages`` and ``tokens`` are those of a view that no rule changes. No
        message is changed and the session's revision stays. ``expected`` is the revision that the
        session is to have (None: any). Raises SessionNotFound, Conflict, PositionOutOfRange,
        InvalidValue, and CompactionError for messages that no view may do without: the latest user
        message, system messages, calls without results, and for a range hidden by a compaction already.
        """
        work = partial(
            self._call,
            Workflows.hide,
            session_id,
            first,
            last,
            summary,
            expected=expected,
            now=now,
        )
        return await self._run(work, waits=True)

    async def plan_clearing(
        self,
        session_id: str,
        policy: Policy,
        *,
        now: Now = None,
    ) -> Clearing | None:
        """Return the clearing that `compact_if_needed` would make now, changing nothing.

        None if too little would be freed, or the policy replaces results at any time. Raises
        SessionNotFound, InvalidPolicy.
        """
        work = partial(
            self._call,
            Workflows.plan_clearing,
            session_id,
            policy,
            now=now,
        )
        return await self._run(work)

    async def plan_compaction(
        self,
        session_id: str,
        policy: Policy,
        *,
        now: Now = None,
    ) -> Plan:
        """Return what `compact` would do now, changing nothing.

        Raises SessionNotFound, InvalidPolicy.
        """
        work = partial(
            self._call,
            Workflows.plan_compaction,
            session_id,
            policy,
            now=now,
        )
        return await self._run(work)

    async def undo_compaction(
        self,
        session_id: str,
        compaction_id: int,
        *,
        now: Now = None,
    ) -> Compaction:
        """Bring back the messages that a compaction hid or cleared, by a record of the undoing.

        Return the compaction. Later ones that depend on it have to be undone first: of compactions, and
        of clearings, the newest in force; of ranges hidden by name those that contain it. Raises
        SessionNotFound, CompactionError.
        """
        work = partial(
            self._call,
            Workflows.undo_compaction,
            session_id,
            compaction_id,
            now=now,
        )
        return await self._run(work, waits=True)

    async def redact(
        self,
        session_id: str,
        seq: int,
        reason: str,
        *,
        replacement: str | None = None,
        by: str | None = None,
        now: Now = None,
    ) -> Redaction:
        """Overwrite the content of a message, on every line that has it, and record the reason.

        Its content, the arguments of its calls and all other keys are removed. Its time stays; its
        role, status, names of tools and ids stay where they are known words or generated, others are
        replaced by neutral values, by which calls and results still find each other. A title that
        repeats the message becomes ``[redacted]``. The message then says ``[redacted]`` and has a key
        ``redacted``. Returns the record: that of the first time, if it was redacted before. Summaries
        that cover the message are named, not changed: undo those compactions and compact again. `purge`
        leaves no byte of it in the file; copies are named.

        With a ``replacement``, the whole message at that position, which may take several, is redacted
        and says this text: in place of what it said, or of the last of its results; ``redacted`` is
        ``"replaced"``. What was redacted before stays as it is. Where no words have to go, use
        `replace` instead, which can be undone.
        Raises SessionNotFound, PositionOutOfRange, InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.redact,
            session_id,
            seq,
            reason,
            replacement=replacement,
            by=by,
            now=now,
        )
        return await self._run(work, waits=True)

    def pages(
        self,
        session_id: str,
        start: int = 1,
        stop: int | None = None,
        at: int | None = None,
        *,
        size: int = 500,
    ) -> AsyncIterator[list[StoredMessage]]:
        """Yield a line's raw messages in lists of at most ``size``, so any line fits in memory.

        The line is the one that the session has at the first page, wherever its head moves meanwhile.
        Raises the errors of `messages`, and StoreError after the iterator, or the store, was closed.
        """
        work = partial(
            self._call,
            Workflows.pages,
            session_id,
            start,
            stop,
            at,
            size=size,
        )
        return AsyncPages(self, work)

    async def compact(
        self,
        session_id: str,
        policy: Policy,
        summarizer: Summarizer | None = None,
        reason: Reason = "manual",
        now: Now = None,
    ) -> Compaction:
        """Hide the messages that a policy does not keep, and summarize them.

        Return the record, or the answer that there is nothing to do.

        ``summarizer`` is any callable from a SummaryRequest to a text or Summary (the built-in
        extractive one); no transaction is open while it works, for at most the policy's
        ``summary_timeout``. Whatever it does, nothing is lost and nothing is raised: the outcome says
        so. Only KeyboardInterrupt and SystemExit pass, which end the compaction as failed. Raises
        SessionNotFound, InvalidPolicy for an invalid policy, InvalidValue for an unknown reason and an
        invalid summarizer.
        """
        work = partial(
            self._call,
            Workflows.compact,
            session_id,
            policy,
            summarizer,
            reason,
            now,
        )
        return await self._run(work, waits=True)

    async def compact_if_needed(
        self,
        session_id: str,
        policy: Policy,
        summarizer: Summarizer | None = None,
        reason: Reason = "llm_call",
        *,
        max_tokens: int | None = None,
        last_usage: int | None = None,
        user_input: str = "",
        fixed_tokens: int = 0,
        now: Now = None,
    ) -> Compaction | None:
        """Compact if a trigger of the policy fires.

        By a policy that clears at recorded moments, clear first if it is worth it.

        A policy that trims is kept to its hard limit, whatever prevents a summary. Returns the last
        record that was made, None if nothing was needed. If nothing could be done the answer says why,
        without an id: ``rejected`` while another compaction runs, and for a view that is over the
        window ``nothing`` if nothing can be hidden or no trigger of the policy fires, ``rejected``
        while failures hold attempts back. Arguments as for `check` and `compact`.
        """
        work = partial(
            self._call,
            Workflows.compact_if_needed,
            session_id,
            policy,
            summarizer,
            reason,
            max_tokens=max_tokens,
            last_usage=last_usage,
            user_input=user_input,
            fixed_tokens=fixed_tokens,
            now=now,
        )
        return await self._run(work, waits=True)

    async def count_tokens(
        self,
        session_id: str,
        encoding: str | None = None,
    ) -> TokenTotal:
        """Count the tokens of a session's line and store the counts.

        Only new messages are counted, outside of any transaction. Without the vocabulary of a tokenizer
        the total is an estimate, as its ``encoding`` says, and nothing is stored. Raises
        SessionNotFound.
        """
        work = partial(
            self._call,
            Workflows.count_tokens,
            session_id,
            encoding,
        )
        return await self._run(work, waits=True)

    @overload
    async def search(
        self,
        text: str,
        *,
        owner: str | None = None,
        session: str | None = None,
        roles: Iterable[str] | None = None,
        tools: Iterable[str] | None = None,
        since: Now = None,
        until: Now = None,
        order: str = "best",
        limit: int = 20,
        after: Hit | None = None,
        left: bool = False,
        any: bool = False,
        by: Literal["message"] = "message",
    ) -> Hits: ...
    @overload
    async def search(
        self,
        text: str,
        *,
        owner: str | None = None,
        session: str | None = None,
        roles: Iterable[str] | None = None,
        tools: Iterable[str] | None = None,
        since: Now = None,
        until: Now = None,
        order: str = "best",
        limit: int = 20,
        after: Hit | None = None,
        left: bool = False,
        any: bool = False,
        by: Literal["session"],
    ) -> list[SessionHit]: ...
    async def search(
        self,
        text: str,
        *,
        owner: str | None = None,
        session: str | None = None,
        roles: Iterable[str] | None = None,
        tools: Iterable[str] | None = None,
        since: Now = None,
        until: Now = None,
        order: str = "best",
        limit: int = 20,
        after: Hit | None = None,
        left: bool = False,
        any: bool = False,  # noqa: A002 - the public name
        by: str = "message",
    ) -> Hits | list[SessionHit]:
        """Return the messages with all words of a text, or the sessions that have them.

        The words are in the texts, calls and results of a message, or anywhere in a session
        (``by="session"``). With ``any``, those that lack some of the words follow those that have all.
        Titles with the words come first, and summaries are found too, as hits of the roles ``title``
        and ``summary``. Words in double quotes must be adjacent. Case and accents do not count; parts
        of words are found in names, that is in identifiers and paths. A message that several sessions
        share is one hit. ``owner``, ``session``, ``roles``, ``tools`` (their calls and results) and the
        moments ``since`` and ``until`` filter the hits. With ``left``, messages are found too that the
        lines of these sessions have left.

        ``order`` is ``best``, with what apps and programs wrote last (system and developer messages,
        reminders in the role of the user), or ``newest``: the last stored first. The latter is used too
        if more than 1,000 messages have the words. ``rarest``, for questions, gives messages with some
        of the words, those with the rarest ones first, without a next page and titles; words that say
        nothing and the endings of words do not count. ``after`` is the last hit already seen; sessions
        have no pages. A search first indexes at most 256 new messages, and reads those that are not
        indexed yet, the last stored first, for 0.3 seconds at most; the field ``behind`` of messages
        found is the number of messages of the searched sessions that it did not read. Raises
        SessionNotFound, StoreError if searching is switched off, and InvalidValue, also for an empty
        text and for a role that no message has.
        """
        work = partial(
            self._call,
            Workflows.search,  # type: ignore[arg-type] # overloads
            text,
            owner=owner,
            session=session,
            roles=roles,
            tools=tools,
            since=since,
            until=until,
            order=order,
            limit=limit,
            after=after,
            left=left,
            any=any,
            by=by,
        )
        return await self._run(work)

    async def delete_session(
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
        work = partial(
            self._call,
            Workflows.delete_session,
            *session_ids,
            missing=missing,
            purge=purge,
            expected=expected,
            costs=costs,
            now=now,
        )
        return await self._run(work, waits=True)

    async def forget(
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
        work = partial(
            self._call,
            Workflows.forget,
            session_id,
            expected=expected,
            costs=costs,
            now=now,
        )
        return await self._run(work, waits=True)

    async def prune(
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
        work = partial(
            self._call,
            Workflows.prune,
            idle,
            keep=keep,
            owner=owner,
            source=source,
            archived=archived,
            max_bytes=max_bytes,
            costs=costs,
            dry_run=dry_run,
            max_seconds=max_seconds,
            progress=progress,
            now=now,
        )
        return await self._run(work, waits=True)

    async def context(
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
        work = partial(
            self._call,
            Workflows.context,
            session_id,
            system,
            tools,
            user_input,
            todo_recap,
            root,
            policy,
            format,
            now,
            at=at,
            cache_markers=cache_markers,
            record=record,
            recall=recall,
        )
        return await self._run(work, waits=record)

    async def frame(
        self,
        name: str,
        session_id: str | None = None,
    ) -> Any:
        """Return records as a data frame of pandas, which has to be installed.

        ``name`` is one of ``sessions``, ``usages``, ``notes``, ``messages``, ``turns``, ``calls``
        and ``files``; a column is a field of the records, and times are in UTC. The rows are those
        of a session, or of all (None); then rows that a fork shares with its source count once.
        Raises SessionNotFound, InvalidValue for another name, StoreError without pandas.
        """
        work = partial(
            self._call,
            Workflows.frame,
            name,
            session_id,
        )
        return await self._run(work)

    async def metrics(
        self,
    ) -> Metrics:
        """Return what was done since the store was opened in this process: counts and times.

        On a face of one owner's sessions: what was done on faces of this owner, since the first
        time that this was asked. `Metrics.text` is the format of Prometheus.
        """
        work = partial(
            self._call,
            Workflows.metrics,
        )
        return await self._run(work)

    async def observe(
        self,
        callback: ObserverCallback,
        *,
        owners: bool = False,
        tokens: bool = False,
    ) -> Callable[[], None]:
        """Call ``callback`` with an `Observation` of each operation that ends from now on.

        It is called in the thread of the operation, after its transaction; what it raises goes to
        the log, and what it does with the store is not observed. On a face of one owner's sessions
        it is told the operations of that owner's faces. ``owners`` tells the owner of the face on
        which an operation was called, ``tokens`` the tokens of each view, which takes time for each
        of its messages. Returns the function that ends it. Raises InvalidValue.
        """
        work = partial(
            self._call,
            Workflows.observe,
            callback,
            owners=owners,
            tokens=tokens,
        )
        return await self._run(work)


class AsyncStoreOperations(AsyncOperations):
    """Operations on a whole store, awaited."""

    async def redactions(
        self,
        session_id: str | None = None,
    ) -> list[Redaction]:
        """Return the redactions of a session's line, or of the whole store, oldest first.

        Raises SessionNotFound.
        """
        work = partial(
            self._call,
            Store.redactions,
            session_id,
        )
        return await self._run(work)

    async def erasures(
        self,
    ) -> list[Erasure]:
        """Return every erasure of the store, oldest first."""
        work = partial(
            self._call,
            Store.erasures,
        )
        return await self._run(work)

    async def copies(
        self,
    ) -> list[Copy]:
        """Return the listed copies of a store, oldest first."""
        work = partial(
            self._call,
            Store.copies,
        )
        return await self._run(work)

    async def verify(
        self,
        *,
        progress: ProgressCallback | None = None,
    ) -> list[Finding]:
        """Run all checks and return at most 1,000 findings.

        [] means a sound store. Nothing is changed. The call takes as long as reading every message
        once; a sample of the recorded requests is made again. ``progress`` gets the number of checks
        done so far, and of all. Messages that an earlier release did not protect are reported in the
        log.
        """
        work = partial(
            self._call,
            Store.verify,
            progress=progress,
        )
        return await self._run(work)

    async def size(
        self,
        by: str = "table",
    ) -> Size:
        """Return the bytes that the store takes, as a whole and ``by`` its parts.

        ``by`` is ``table``, with the indexes of each (no parts where SQLite was built without
        ``dbstat``), or ``session``, ``owner``, ``source`` or ``month`` (of storing, in UTC): the words
        of their messages and calls. A server tells no free bytes, and its log is not that of one
        database. Raises InvalidValue.
        """
        work = partial(
            self._call,
            Store.size,
            by,
        )
        return await self._run(work)

    async def prices(
        self,
        owner: str | None = None,
    ) -> list[ModelPrice]:
        """Return the stored prices: those that are valid for an owner, or all."""
        work = partial(
            self._call,
            Store.prices,
            owner,
        )
        return await self._run(work)

    async def set_prices(
        self,
        file: FilePath,
        *,
        owner: str | None = None,
    ) -> list[ModelPrice]:
        """Store the prices of a TOML file, for the usages of an owner's sessions or of all.

        A price replaces the one of the same model, owner and first day. Costs follow at the next read.
        Returns the prices of the file. Raises InvalidValue for a file without valid prices.
        """
        work = partial(
            self._call,
            Store.set_prices,
            file,
            owner=owner,
        )
        return await self._run(work)

    async def delete_owner(
        self,
        owner: str,
        *,
        costs: str = "erase",
    ) -> list[Erasure]:
        """Erase everything of an owner: all their sessions, archived ones too, and their prices.

        Each session is erased as by `delete_session`; messages stay if sessions of others show
        them. The kept sums of their usages go too; with ``costs="anonymous"`` they stay, without
        the owner and the project. `purge` removes the last bytes from the file. Called again after
        an interruption, it goes on. Raises InvalidValue.
        """
        work = partial(
            self._call,
            Store.delete_owner,
            owner,
            costs=costs,
        )
        return await self._run(work, waits=True)

    async def purge(
        self,
        *,
        backups: bool = False,
        idle: bool = False,
        longest: float = 15.0,
        progress: ProgressCallback | None = None,
        now: Now = None,
    ) -> Purge:
        """Remove the last bytes of erased rows from the file: write it anew, once for all erasures.

        Writers wait meanwhile, a second per 100 MB or so; a purge that would take more than
        ``longest`` seconds is given up. With ``idle`` it is only done if nobody else reads or
        writes just now. A problem is returned, not raised; the file is whole either way.
        ``backups`` removes the copies that may still hold erased rows. ``progress`` gets the number
        of steps done, and of all: open erasures, the writing anew, the index. On a server it only
        finishes open erasures and writes nothing anew. Raises InvalidValue.
        """
        work = partial(
            self._call,
            Store.purge,
            backups=backups,
            idle=idle,
            longest=longest,
            progress=progress,
            now=now,
        )
        return await self._run(work, waits=True)

    async def index(
        self,
        *,
        on: bool | None = None,
        anew: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Index:
        """Add everything that is not indexed yet to the index; return the state of the index.

        Other writers take turns between its steps. ``on=False`` switches searching off, for all
        users of the store, and drops the index; ``on=True`` switches it on again. ``anew`` rebuilds
        the index from the messages. ``progress`` gets the number of messages and summaries in the
        index, and of all, after each step. Raises StoreError.
        """
        work = partial(
            self._call,
            Store.index,
            on=on,
            anew=anew,
            progress=progress,
        )
        return await self._run(work, waits=True)

    async def backup(
        self,
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        now: Now = None,
    ) -> Copy:
        """Copy the store to a new file, while others read and write; check the copy and list it.

        The copy is one state of the store, with everything that was acknowledged before the call.
        It is readable by its owner alone, and complete as soon as it has its name. ``replace``
        allows it to replace an earlier copy, never a file that is in use. Raises StoreError if it
        cannot be made or does not pass its check, StoreFull without room, StoreBusy if the file to
        replace is in use; then nothing is left of the copy.
        """
        work = partial(
            self._call,
            Store.backup,
            path,
            replace=replace,
            now=now,
        )
        return await self._run(work, waits=True)

    async def cache_info(
        self,
    ) -> CacheInfo:
        """Return the size of the cache of views and messages, and how often it was used."""
        work = partial(
            self._call,
            Store.cache_info,
        )
        return await self._run(work)

    async def health(
        self,
    ) -> Health:
        """Return whether the store can be read and written now, and what to watch.

        It takes no lock and writes nothing; a store that cannot be reached is told, not raised.
        """
        work = partial(
            self._call,
            Store.health,
        )
        return await self._run(work)

    async def atomically(
        self,
        work: Callable[[Steps], AtomicResultT],
        *,
        now: Now = None,
    ) -> AtomicResultT:
        """Do several steps as one: all of them are stored, or none; return the result of work.

        ``work`` gets an object with the operations as methods, on as many sessions as it likes, and
        sees the changes of its earlier steps. A step that fails leaves no changes; an exception
        that leaves ``work`` rolls back all of them. No other writer of a file goes on meanwhile, so
        ``work`` should not wait for anything else; on a server the first step that reads a session
        locks it, so the rows read stay the same. A server may ask for a retry from the beginning:
        ``work`` must change nothing except by its steps. On a database that is spread over machines
        by tree (Citus) all sessions must be in one tree. The steps end with ``work`` and belong to
        its thread: used later, or in another thread, they raise StoreError. Raises the exceptions
        of its steps, StoreBusy, StoreError if ``work`` writes to the store by other means,
        InvalidValue.
        """
        work = partial(
            self._call,
            Store.atomically,
            work,
            now=now,
        )
        return await self._run(work, waits=True)

    async def reading(
        self,
        work: Callable[[Snapshot], AtomicResultT],
    ) -> AtomicResultT:
        """Do several reads of one state of the store; return the result of work.

        ``work`` gets an object with the operations as methods; those that write raise InvalidValue.
        All of them see the state at the first one, whatever others write meanwhile, and nobody
        waits for ``work``; a file keeps what is written meanwhile in its log, so ``work`` should
        not wait for long. The object ends with ``work`` and belongs to its thread: used later, or
        in another thread, it raises StoreError. Raises the exceptions of its reads, InvalidValue.
        """
        work = partial(
            self._call,
            Store.reading,
            work,
        )
        return await self._run(work)


class AsyncScopedOperations(AsyncOperations):
    """Operations on an owner's sessions, awaited."""

    async def delete_owner(
        self,
        *,
        costs: str = "erase",
    ) -> list[Erasure]:
        """Erase everything of the owner, as `Store.delete_owner` does."""
        work = partial(
            self._call,
            Scoped.delete_owner,
            costs=costs,
        )
        return await self._run(work, waits=True)

    async def redactions(
        self,
        session_id: str,
    ) -> list[Redaction]:
        """Return the redactions of a session's line, oldest first, whichever session they name.

        Raises SessionNotFound.
        """
        work = partial(
            self._call,
            Scoped.redactions,
            session_id,
        )
        return await self._run(work)

    async def index(
        self,
        *,
        owner: str | None = None,
        progress: ProgressCallback | None = None,
    ) -> Index:
        """Add everything that is not indexed yet to the index; return the owner's part of it.

        Other writers take turns between its steps. ``progress`` gets the number of the owner's
        messages and summaries in the index, and of all of these, after each step. Raises
        StoreError, InvalidValue.
        """
        work = partial(
            self._call,
            Scoped.index,
            owner=owner,
            progress=progress,
        )
        return await self._run(work, waits=True)

    async def atomically(
        self,
        work: Callable[[Owned], AtomicResultT],
        *,
        now: Now = None,
    ) -> AtomicResultT:
        """Do several steps on the owner's sessions as one; return the result of work.

        ``work`` gets an object with the operations as methods, as in `Store.atomically`. Raises the
        exceptions of its steps, StoreError if ``work`` writes by other means, InvalidValue.
        """
        work = partial(
            self._call,
            Scoped.atomically,
            work,
            now=now,
        )
        return await self._run(work, waits=True)

    async def reading(
        self,
        work: Callable[[Owned], AtomicResultT],
    ) -> AtomicResultT:
        """Do several reads of one state of the owner's sessions; return the result of work.

        ``work`` gets an object with the operations as methods, as in `Store.reading`. Raises the
        exceptions of its reads, InvalidValue.
        """
        work = partial(
            self._call,
            Scoped.reading,
            work,
        )
        return await self._run(work)
