"""The operations of a store as methods: what each face has under the same names.

Written by ``python docs/generate.py`` from the tables in ``docs/parts/faces.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from .. import compaction, context, history, inspection, search, view
from .calls import Call, Face, WorkflowFace

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo
    from typing import Any, Literal

    from ..clock import Now
    from ..compaction import Clearing, Plan
    from ..history import Dedupe, MessageInput, ModelPrice
    from ..messages import Message
    from ..policy import Policy
    from ..records import (
        Branch,
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
        Hidden,
        Hit,
        Hits,
        Note,
        OpenCall,
        Passage,
        ProgressCallback,
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


class Operations(Face):
    """Operations on sessions, each of one transaction."""

    def create_session(
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
        call = Call(
            history.sessions.create_session,
            (session_id,),
            {
                "title": title,
                "project_root": project_root,
                "metadata": metadata,
                "owner": owner,
                "fold_case": fold_case,
                "exist_ok": exist_ok,
                "now": self._moment(now),
            },
            name="create_session",
        )
        return self._write(call)

    def session(
        self,
        session_id: str,
    ) -> Session:
        """Return one session. Raises SessionNotFound."""
        call = Call(
            history.sessions.load_session,
            (session_id,),
            {},
            name="session",
        )
        return self._read(call)

    def title(
        self,
        session_id: str,
    ) -> str | None:
        """Return a session's title: the given one, else one made of its first user message.

        The latter is one line of at most 80 code points, made at each read and never stored, so
        `Session.title` tells whether one was given; None if nothing was said in words. Raises
        SessionNotFound.
        """
        call = Call(
            history.message_lookup.load_title,
            (session_id,),
            {},
            name="title",
        )
        return self._read(call)

    def sessions(
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
        call = Call(
            history.listing.list_sessions,
            (),
            {
                "limit": limit,
                "after": after,
                "owner": owner,
                "where": where,
                "prefix": prefix,
                "tree": tree,
                "archived": archived,
                "project": project,
                "source": source,
                "since": since,
                "until": until,
                "title": title,
                "parents": parents,
                "order": order,
            },
            name="sessions",
        )
        return self._read(call)

    def count_sessions(
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
        call = Call(
            history.listing.count_sessions,
            (),
            {
                "owner": owner,
                "where": where,
                "prefix": prefix,
                "tree": tree,
                "archived": archived,
                "project": project,
                "source": source,
                "since": since,
                "until": until,
                "title": title,
                "parents": parents,
            },
            name="count_sessions",
        )
        return self._read(call)

    def archive(
        self,
        session_id: str,
        *,
        expected: str | None = None,
    ) -> Session:
        """Take a session out of the lists of active sessions; nothing else changes.

        Archiving is no activity. ``expected`` is the revision that the session must have (None: any).
        Raises SessionNotFound, Conflict.
        """
        call = Call(
            history.sessions.archive_session,
            (session_id,),
            {
                "expected": expected,
            },
            name="archive",
        )
        return self._write(call)

    def unarchive(
        self,
        session_id: str,
        *,
        expected: str | None = None,
    ) -> Session:
        """Put a session back into the lists of active sessions, at its old place.

        ``expected`` is the revision that the session must have (None: any). Raises SessionNotFound,
        Conflict.
        """
        call = Call(
            history.sessions.unarchive_session,
            (session_id,),
            {
                "expected": expected,
            },
            name="unarchive",
        )
        return self._write(call)

    def rename_session(
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
        call = Call(
            history.sessions.rename_session,
            (session_id, title),
            {
                "expected": expected,
                "now": self._moment(now),
            },
            name="rename_session",
        )
        return self._write(call)

    def set_metadata(
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
        call = Call(
            history.sessions.set_metadata,
            (session_id, metadata),
            {
                "merge": merge,
                "expected": expected,
            },
            name="set_metadata",
        )
        return self._write(call)

    def set_origin(
        self,
        session_id: str,
        source: str,
        file: str | None = None,
    ) -> Session:
        """Tell which program and which file a session was imported from.

        An import tells it by itself. Raises SessionNotFound, InvalidValue.
        """
        call = Call(
            history.sessions.set_origin,
            (session_id, source, file),
            {},
            name="set_origin",
        )
        return self._write(call)

    def file_state(
        self,
        file: str,
        *,
        owner: str | None = None,
    ) -> str | None:
        """Return what the last import of a file remembered (None: nothing).

        An import asks for it by itself. Raises InvalidValue.
        """
        call = Call(
            history.imported_files.load_file_state,
            (file,),
            {
                "owner": owner,
            },
            name="file_state",
        )
        return self._read(call)

    def set_file_state(
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
        call = Call(
            history.imported_files.set_file_state,
            (file, state),
            {
                "owner": owner,
            },
            name="set_file_state",
        )
        return self._write(call)

    def set_project_root(
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
        call = Call(
            history.facts.set_project_root,
            (session_id, project_root),
            {
                "expected": expected,
            },
            name="set_project_root",
        )
        return self._write(call)

    def append(
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
        call = Call(
            history.append.append_messages,
            (session_id, messages),
            {
                "expected_head": expected_head,
                "expected": expected,
                "dedupe": dedupe,
                "create": create,
                "metadata": metadata,
                "now": self._moment(now),
                "format": format,
                "alone": alone,
            },
            name="append",
        )
        return self._write(call)

    def messages(
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
        call = Call(
            history.raw_messages.load_session_messages,
            (session_id, start, stop, at),
            {
                "branch": branch,
                "last": last,
                "format": format,
            },
            name="messages",
        )
        return self._read(call)

    def message(
        self,
        session_id: str,
        seq_or_message_id: int | str | list[Any] | tuple[Any, ...],
    ) -> Any:
        """Return a message of a session's line, by its position or its id (the newest of that id).

        Of a list of positions and ids, a list of their messages in its order. Raises SessionNotFound,
        PositionOutOfRange for a position, MessageNotFound for an id that are not on the line.
        """
        call = Call(
            history.message_lookup.load_message,
            (session_id, seq_or_message_id),
            {},
            name="message",
        )
        return self._read(call)

    def calls(
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
        call = Call(
            history.tool_use.list_calls,
            (session_id, kind, failed),
            {},
            name="calls",
        )
        return self._read(call)

    def open_calls(
        self,
        session_id: str,
    ) -> list[OpenCall]:
        """Return the calls of a session's line that have no result yet, in order.

        A result appended under the ``id`` of an open call answers that call. Raises SessionNotFound.
        """
        call = Call(
            history.tool_use.list_open_calls,
            (session_id,),
            {},
            name="open_calls",
        )
        return self._read(call)

    def files(
        self,
        session_id: str,
        path: str | None = None,
    ) -> list[FileUse]:
        """Return the files that the tool calls of a session's line named, in the order of the results.

        ``path`` selects one file, relative to the project or absolute. Raises SessionNotFound,
        InvalidValue.
        """
        call = Call(
            history.tool_use.list_file_uses,
            (session_id, path),
            {},
            name="files",
        )
        return self._read(call)

    def find(
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
        call = Call(
            history.message_lookup.find_messages_by_id,
            (message_id, session),
            {
                "prefix": prefix,
                "owner": owner,
            },
            name="find",
        )
        return self._read(call)

    def turns(
        self,
        session_id: str,
        start: int = 1,
        stop: int | None = None,
    ) -> list[Turn]:
        """Return the turns of a session's line, oldest first; what comes before the first is in none.

        ``start`` and ``stop`` are the numbers of the first and the last of them, both included: a
        negative ``start`` counts from the newest. Raises SessionNotFound, InvalidValue.
        """
        call = Call(
            history.message_lookup.list_turns,
            (session_id, start, stop),
            {},
            name="turns",
        )
        return self._read(call)

    def fork(
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
        call = Call(
            history.heads.fork_session,
            (source, at, session_id),
            {
                "branch": branch,
                "title": title,
                "owner": owner,
                "metadata": metadata,
                "project_root": project_root,
                "expected": expected,
                "now": self._moment(now),
            },
            name="fork",
        )
        return self._write(call)

    def rewind(
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
        call = Call(
            history.heads.rewind_session,
            (session_id, to),
            {
                "expected": expected,
                "now": self._moment(now),
            },
            name="rewind",
        )
        return self._write(call)

    def switch(
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
        call = Call(
            history.heads.switch_branch,
            (session_id, branch, to),
            {
                "of": of,
                "expected": expected,
                "now": self._moment(now),
            },
            name="switch",
        )
        return self._write(call)

    def branches(
        self,
        session_id: str,
    ) -> list[Branch]:
        """Return the branches that a session can go back to with `switch`, and its present one.

        Oldest first. A fork also has the branches that its source had left when the fork was made, as
        they were then; where the fork continues one itself, its own branch replaces it. Raises
        SessionNotFound.
        """
        call = Call(
            history.session_branches.list_branches,
            (session_id,),
            {},
            name="branches",
        )
        return self._read(call)

    def siblings(
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
        call = Call(
            history.message_lookup.list_siblings,
            (session_id, seq),
            {},
            name="siblings",
        )
        return self._read(call)

    def replace(
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
        call = Call(
            history.heads.replace_messages,
            (session_id, after, messages),
            {
                "expected": expected,
                "now": self._moment(now),
                "format": format,
            },
            name="replace",
        )
        return self._write(call)

    def pop(
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
        call = Call(
            history.heads.pop_message,
            (session_id,),
            {
                "expected": expected,
                "now": self._moment(now),
            },
            name="pop",
        )
        return self._write(call)

    def drafts(
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
        call = Call(
            history.drafts.list_drafts,
            (session_id,),
            {
                "owner": owner,
                "before": before,
            },
            name="drafts",
        )
        return self._read(call)

    def finish_draft(
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
        call = Call(
            history.drafts.finish_draft,
            (draft,),
            {
                "update": update,
                "expected": expected,
                "owner": owner,
                "now": self._moment(now),
                "format": format,
                "force": force,
            },
            name="finish_draft",
        )
        return self._write(call)

    def discard_draft(
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
        call = Call(
            history.drafts.discard_draft,
            (draft,),
            {
                "owner": owner,
                "force": force,
            },
            name="discard_draft",
        )
        return self._write(call)

    def undo_rewind(
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
        call = Call(
            history.heads.undo_rewind,
            (session_id,),
            {
                "expected": expected,
                "now": self._moment(now),
            },
            name="undo_rewind",
        )
        return self._write(call)

    def head_moves(
        self,
        session_id: str,
    ) -> list[HeadMove]:
        """Return a session's head-move log, oldest first.

        It holds the fork that created the session, rewinds, switches and undos. Raises SessionNotFound.
        """
        call = Call(
            history.heads.list_head_moves,
            (session_id,),
            {},
            name="head_moves",
        )
        return self._read(call)

    def view(
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
        call = Call(
            view.build.view,
            (session_id, policy),
            {
                "at": at,
                "now": self._moment(now),
                "format": format,
                "branch": branch,
                "record": record,
                "whole": whole,
            },
            name="view",
        )
        return self._read_view(call)

    def view_sql(
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
        call = Call(
            view.statement.view_sql,
            (session_id, policy),
            {
                "at": at,
                "now": self._moment(now),
            },
            name="view_sql",
        )
        return self._read(call)

    def check(
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
        call = Call(
            compaction.compaction_check.check,
            (session_id, policy, max_tokens, last_usage, user_input, fixed_tokens),
            {
                "now": self._moment(now),
            },
            name="check",
        )
        return self._read(call)

    def requests(
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
        call = Call(
            context.request_log.list_requests,
            (session_id,),
            {
                "start": start,
                "stop": stop,
                "last": last,
                "first_seq": first_seq,
                "last_seq": last_seq,
            },
            name="requests",
        )
        return self._read(call)

    def request(
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
        call = Call(
            context.request_log.load_request,
            (session_id, number),
            {},
            name="request",
        )
        return self._read(call)

    def record_usage(
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
        call = Call(
            history.usages.record_usage,
            (session_id, response),
            {
                "input": input,
                "output": output,
                "cached": cached,
                "model": model,
                "provider": provider,
                "written": written,
                "details": details,
                "cost": cost,
                "received": received,
                "seq": seq,
                "now": self._moment(now),
            },
            name="record_usage",
        )
        return self._write(call)

    def usages(
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
        call = Call(
            history.usages.list_usages,
            (session_id,),
            {
                "owner": owner,
                "since": since,
                "until": until,
                "limit": limit,
                "after": after,
                "prices": prices,
            },
            name="usages",
        )
        return self._read(call)

    def usage_totals(
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
        call = Call(
            history.usages.compute_usage_totals,
            (session_id,),
            {
                "by": by,
                "owner": owner,
                "since": since,
                "until": until,
                "prices": prices,
                "zone": zone,
            },
            name="usage_totals",
        )
        return self._read(call)

    def annotate(
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
        call = Call(
            history.message_notes.annotate_message,
            (session_id, seq, key, value),
            {
                "now": self._moment(now),
            },
            name="annotate",
        )
        return self._write(call)

    def annotations(
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
        call = Call(
            history.message_notes.list_notes,
            (session_id,),
            {
                "key": key,
                "seq": seq,
                "owner": owner,
                "limit": limit,
                "after": after,
            },
            name="annotations",
        )
        return self._read(call)

    def compactions(
        self,
        session_id: str,
    ) -> list[Compaction]:
        """Return a line's compactions, oldest first, undone ones marked. Raises SessionNotFound."""
        call = Call(
            compaction.workflow.compactions,
            (session_id,),
            {},
            name="compactions",
        )
        return self._read(call)

    def hidden(
        self,
        session_id: str,
        at: int | None = None,
    ) -> dict[int, Hidden]:
        """Return the positions that compactions hide in the view of a line, and since when.

        Raises SessionNotFound, PositionOutOfRange.
        """
        call = Call(
            view.visible_set.hidden,
            (session_id, at),
            {},
            name="hidden",
        )
        return self._read(call)

    def recall(
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
        call = Call(
            search.hidden_passages.recall,
            (session_id, wanted),
            {
                "policy": policy,
                "budget": budget,
                "now": self._moment(now),
            },
            name="recall",
        )
        return self._read(call)

    def replaced(
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
        call = Call(
            inspection.usage_statistics.replaced,
            (session_id, policy),
            {
                "at": at,
                "now": self._moment(now),
            },
            name="replaced",
        )
        return self._read(call)

    def hide(
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
        call = Call(
            compaction.hidden_range.hide,
            (session_id, first, last, summary),
            {
                "expected": expected,
                "now": self._moment(now),
            },
            name="hide",
        )
        return self._write(call)

    def plan_clearing(
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
        call = Call(
            compaction.workflow.plan_clearing,
            (session_id, policy),
            {
                "now": self._moment(now),
            },
            name="plan_clearing",
        )
        return self._read(call)

    def plan_compaction(
        self,
        session_id: str,
        policy: Policy,
        *,
        now: Now = None,
    ) -> Plan:
        """Return what `compact` would do now, changing nothing.

        Raises SessionNotFound, InvalidPolicy.
        """
        call = Call(
            compaction.workflow.plan_compaction,
            (session_id, policy),
            {
                "now": self._moment(now),
            },
            name="plan_compaction",
        )
        return self._read(call)

    def undo_compaction(
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
        call = Call(
            compaction.workflow.undo_compaction,
            (session_id, compaction_id),
            {
                "now": self._moment(now),
            },
            name="undo_compaction",
        )
        return self._write(call)

    def redact(
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
        call = Call(
            history.redaction.redact_message_at,
            (session_id, seq, reason),
            {
                "replacement": replacement,
                "by": by,
                "now": self._moment(now),
            },
            name="redact",
        )
        return self._write(call)


class LongOperations(Operations, WorkflowFace):
    """Operations on sessions, some of several transactions."""

    def pages(
        self,
        session_id: str,
        start: int = 1,
        stop: int | None = None,
        at: int | None = None,
        *,
        size: int = 500,
    ) -> Iterator[list[StoredMessage]]:
        """Yield a line's raw messages in lists of at most ``size``, so any line fits in memory.

        The line is the one that the session has at the first page, wherever its head moves meanwhile.
        Raises the errors of `messages`, and StoreError after the iterator, or the store, was closed.
        """
        call = Call(
            history.raw_messages.iterate_pages,
            (session_id, start, stop, at),
            {
                "size": size,
            },
            name="pages",
        )
        return self._run_workflow(call)

    def compact(
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
        call = Call(
            compaction.workflow.compact,
            (session_id, policy, summarizer, reason, now),
            {},
            name="compact",
        )
        return self._run_workflow(call)

    def compact_if_needed(
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
        call = Call(
            compaction.workflow.compact_if_needed,
            (session_id, policy, summarizer, reason),
            {
                "max_tokens": max_tokens,
                "last_usage": last_usage,
                "user_input": user_input,
                "fixed_tokens": fixed_tokens,
                "now": now,
            },
            name="compact_if_needed",
        )
        return self._run_workflow(call)

    def count_tokens(
        self,
        session_id: str,
        encoding: str | None = None,
    ) -> TokenTotal:
        """Count the tokens of a session's line and store the counts.

        Only new messages are counted, outside of any transaction. Without the vocabulary of a tokenizer
        the total is an estimate, as its ``encoding`` says, and nothing is stored. Raises
        SessionNotFound.
        """
        call = Call(
            history.token_counts.count_tokens,
            (session_id, encoding),
            {},
            name="count_tokens",
        )
        return self._run_workflow(call)

    @overload
    def search(
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
    def search(
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
    def search(
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
        call = Call(
            search.hits.search,
            (text,),
            {
                "owner": owner,
                "session": session,
                "roles": roles,
                "tools": tools,
                "since": since,
                "until": until,
                "order": order,
                "limit": limit,
                "after": after,
                "left": left,
                "any": any,
                "by": by,
            },
            name="search",
        )
        return self._run_workflow(call)


class StoreOperations(Operations):
    """Operations on a whole store, each of one transaction."""

    def redactions(
        self,
        session_id: str | None = None,
    ) -> list[Redaction]:
        """Return the redactions of a session's line, or of the whole store, oldest first.

        Raises SessionNotFound.
        """
        call = Call(
            history.redaction.list_redactions,
            (session_id,),
            {},
            name="redactions",
        )
        return self._read(call)

    def erasures(
        self,
    ) -> list[Erasure]:
        """Return every erasure of the store, oldest first."""
        call = Call(
            history.erasure.list_erasures,
            (),
            {},
            name="erasures",
        )
        return self._read(call)

    def copies(
        self,
    ) -> list[Copy]:
        """Return the listed copies of a store, oldest first."""
        call = Call(
            inspection.copies.listed,
            (),
            {},
            name="copies",
        )
        return self._read(call)

    def verify(
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
        call = Call(
            inspection.integrity.verify,
            (),
            {
                "progress": progress,
            },
            name="verify",
        )
        return self._check_store(call)

    def size(
        self,
        by: str = "table",
    ) -> Size:
        """Return the bytes that the store takes, as a whole and ``by`` its parts.

        ``by`` is ``table``, with the indexes of each (no parts where SQLite was built without
        ``dbstat``), or ``session``, ``owner``, ``source`` or ``month`` (of storing, in UTC): the words
        of their messages and calls. A server tells no free bytes, and its log is not that of one
        database. Raises InvalidValue.
        """
        call = Call(
            inspection.storage_use.measure_size,
            (by,),
            {},
            name="size",
        )
        return self._read(call)

    def prices(
        self,
        owner: str | None = None,
    ) -> list[ModelPrice]:
        """Return the stored prices: those that are valid for an owner, or all."""
        call = Call(
            history.price_rows.list_prices,
            (owner,),
            {},
            name="prices",
        )
        return self._read(call)

    def set_prices(
        self,
        file: FilePath,
        *,
        owner: str | None = None,
    ) -> list[ModelPrice]:
        """Store the prices of a TOML file, for the usages of an owner's sessions or of all.

        A price replaces the one of the same model, owner and first day. Costs follow at the next read.
        Returns the prices of the file. Raises InvalidValue for a file without valid prices.
        """
        call = Call(
            history.price_rows.set_prices,
            (file,),
            {
                "owner": owner,
            },
            name="set_prices",
        )
        return self._write(call)
